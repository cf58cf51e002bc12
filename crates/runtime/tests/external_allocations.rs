//! A counting allocator sees a cycle that asks a controller process and takes its answers.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bridge::attach::Attachment;
use ethercat::cia402::State;
use onbeat_runtime::clock::MonotonicClock;
use onbeat_runtime::controller::{Beat, Controller, Told};
use onbeat_runtime::cycle::{CycleConfiguration, FrameOrder};
use onbeat_runtime::external::External;
use onbeat_runtime::link::SimulatedLink;
use onbeat_runtime::seam::Seam;
use onbeat_runtime::signal::Io;
use onbeat_runtime::stop::StopHandle;
use support::controller::{open, settings, socket, turn};
use support::{PERIOD, SeamFolder, cycle_of, rules, segment, supervised};
use testbed::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

static BEATS: AtomicU64 = AtomicU64::new(0);

const DRIVES: usize = 6;

const ENOUGH: u64 = 1_000;

/// Beats after which a machine too busy to bring the bus to Op is given up.
const TOO_MANY: u64 = 60_000;

/// Is watched from the first cycle in which the process has every axis enabled until it has been seen enough.
struct Watching<C> {
    controller: C,
    stop: StopHandle,
    leaks: bool,
}

impl<C: Controller> Controller for Watching<C> {
    fn update(&mut self, beat: Beat, io: &mut Io<'_>) {
        self.controller.update(beat, io);
        let enabled = io.axes().iter().all(|report| report.state == Some(State::OperationEnabled));
        if enabled && !beat.stopping {
            allocations::watch(true);
            let watched = BEATS.fetch_add(1, Ordering::Relaxed);
            if watched == 100 && self.leaks {
                std::hint::black_box(Box::new(beat));
            }
            if watched == ENOUGH {
                self.stop.stop();
            }
        }
        if beat.stopping {
            allocations::watch(false);
        }
    }

    fn tell(&self) -> Told {
        self.controller.tell()
    }
}

/// Allocator calls in the cycle.
fn run(order: FrameOrder, leaks: bool) -> u64 {
    let folder = SeamFolder::new("external-allocations");
    let (end, ends, door) = open(&folder, DRIVES);
    let stop = StopHandle::new();
    BEATS.store(0, Ordering::Relaxed);
    let before = allocations::calls();
    let settings = settings(DRIVES, Duration::from_micros(600), 3);
    let controller = Watching { controller: External::new(end, settings), stop: stop.clone(), leaks };
    let configuration =
        CycleConfiguration { order, beats: Some(TOO_MANY), ..CycleConfiguration::every(PERIOD) };
    let link = SimulatedLink::new(segment(DRIVES));
    let (cycle, _observer) = cycle_of(link, MonotonicClock, &supervised(DRIVES), controller, configuration);
    let attachment = Attachment::open(&socket(&folder)).unwrap();
    let mut process = attachment.controller().unwrap();
    let process = thread::spawn(move || turn(&mut process, DRIVES));
    let ended = cycle.with_seam(Seam::new(ends, rules(DRIVES))).run(&stop);
    assert_eq!(ended.failure, None);
    drop(door);
    process.join().unwrap();
    allocations::calls() - before
}

/// One test, so that nothing else runs beside it.
// feature(ipc): a cycle with a controller process allocates nothing and makes two system calls more
#[test]
fn asking_a_controller_process_neither_allocates_nor_frees() {
    for order in [FrameOrder::ReplyOfLastBeat, FrameOrder::WaitForReply] {
        let calls = run(order, false);
        let beats = BEATS.load(Ordering::Relaxed);
        assert!(beats >= ENOUGH, "{order:?}: watched {beats} beats only");
        assert_eq!(calls, 0, "{order:?}: allocator calls in {beats} beats");
    }
    // The count counts: one box made and dropped on purpose.
    assert_eq!(run(FrameOrder::ReplyOfLastBeat, true), 2);
}
