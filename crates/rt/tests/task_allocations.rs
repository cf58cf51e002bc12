//! A counting allocator sees a task: from its first period to its last, with rings that are full
//! and rings that are not.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::thread;
use std::time::Duration;

use ipc::channel::Kind;
use ipc::description::Description;
use ipc::ring;
use ipc::server::Builder;
use onbeat_rt::task::Settings;
use testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

const JOBS: u64 = 500;

/// Allocator calls between the first wait and the last.
fn run(leaks: bool) -> u64 {
    let before = allocations::calls();
    let folder = std::env::temp_dir().join(format!("onbeat-task-allocations-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut ipc = Builder::new("tasks", &Description::default());
    ipc.folder(&folder);
    let mut port = ipc.port("numbers", Kind::Message { size: 8, depth: 16 }).unwrap();
    let (_ends, server) = ipc.open().unwrap();
    let (mut sender, mut receiver) = ring::bounded(4);
    // Space for fewer records than there are jobs: the others are dropped and counted.
    let settings = Settings { records: 100, ..Settings::every("watched", Duration::from_millis(1)) };
    let (task, mut records) = settings
        .create_loop(move |periods| {
            port.bind();
            let mut jobs = 0;
            while periods.wait_period().is_some() && jobs < JOBS {
                allocations::watch(true);
                jobs += 1;
                sender.send(jobs);
                // No reader has opened it: it is full soon.
                let _ = port.send(&jobs.to_le_bytes());
                let _ = port.receive(&mut [0; 8]);
                if leaks && jobs == 7 {
                    std::hint::black_box(Box::new(jobs));
                }
            }
            allocations::watch(false);
        })
        .unwrap();
    task.start();
    while !task.is_over() {
        receiver.next();
        thread::sleep(Duration::from_millis(1));
    }
    let live = task.join().unwrap().live;
    assert!(live.jobs > JOBS && live.dropped_records == live.jobs - 100, "{live:?}");
    assert_eq!(std::iter::from_fn(|| records.next_record()).count(), 100);
    drop(server);
    std::fs::remove_dir(&folder).unwrap();
    allocations::calls() - before
}

/// One test, so that no other test runs in parallel.
#[test]
fn task_neither_allocates_nor_frees_while_running() {
    assert_eq!(run(false), 0);
    // The count counts: one box made and dropped on purpose.
    assert_eq!(run(true), 2);
}
