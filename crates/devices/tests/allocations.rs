//! Allocation test of the real-time tasks of all five devices: a counting allocator watches while
//! samples arrive, ports are read, valid and invalid requests are sent, and devices fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onbeat_devices::Kind;
use rt::task::{Settings, Task};
use support::{Robot, Users, five_every, only};
use testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

const JOBS: u64 = 300;

fn watch(robot: &Robot) {
    let numbers: Vec<i32> = robot.running.tasks().iter().map(Task::tid).collect();
    assert!(numbers.iter().all(|number| *number > 0));
    allocations::watch_threads(&numbers);
}

/// A single test, so that no other test runs in parallel.
// feature(devices): their real-time tasks neither allocate nor call the system
#[test]
fn the_real_time_tasks_of_devices_neither_allocate_nor_free() {
    let robot = Robot::start("allocations", &five_every(Duration::from_millis(5)));
    let mut users = Users::of(&robot);
    users.for_jobs(&robot, 20);
    watch(&robot);
    users.for_jobs(&robot, JOBS);
    // A range finder answers when its side of the line has the processor.
    let is_rare = || robot.running.status().iter().any(|it| it.samples <= 3);
    (0..20).take_while(|_| is_rare()).for_each(|_| drop(users.for_jobs(&robot, JOBS)));
    assert_eq!(allocations::calls(), 0, "calls of the allocator");
    let (samples, seen): (Vec<u64>, Vec<_>) =
        robot.running.status().into_iter().map(|it| (it.samples, it.name)).unzip();
    assert!(samples.iter().all(|samples| *samples > 3), "{samples:?} of {seen:?}");
    allocations::watch_threads(&[]);
    drop((users, robot));

    // A device that does not exist.
    let missing = only(Kind::mpu6050(Some((PathBuf::from("/dev/onbeat-no-such-device"), 0x68))));
    let robot = Robot::start("allocations-none", &missing);
    watch(&robot);
    robot.wait_for(|it| it.running.status()[0].failures > 2 && it.running.tasks()[0].live().jobs > 20);
    assert_eq!(allocations::calls(), 0, "calls of the allocator");
    allocations::watch_threads(&[]);
    drop(robot);

    // The counter works: one box is made and dropped on purpose.
    static PLANTED: AtomicBool = AtomicBool::new(false);
    let careless = Settings::every("careless", Duration::from_millis(1)).create(|job| {
        if PLANTED.swap(false, Ordering::Relaxed) {
            std::hint::black_box(Box::new(job.release.cycle));
        }
    });
    let (task, _records) = careless.unwrap();
    task.start();
    wait_for(|| task.live().jobs > 0);
    allocations::watch_threads(&[task.tid()]);
    PLANTED.store(true, Ordering::Relaxed);
    wait_for(|| !PLANTED.load(Ordering::Relaxed));
    // The job that did it has ended once the next one has.
    let jobs = task.live().jobs;
    wait_for(|| task.live().jobs > jobs + 1);
    allocations::watch_threads(&[]);
    assert_eq!(allocations::calls(), 2);
}

fn wait_for(done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < support::TIMEOUT, "{} calls of the allocator", allocations::calls());
        std::thread::sleep(Duration::from_millis(1));
    }
}
