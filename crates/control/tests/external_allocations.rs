//! A counting allocator sees a cycle that asks a controller process and takes its answers.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ethercat::cia402::State;
use ethercat_linux::link::SimulatedLink;
use ipc::client::Client;
use onbeat_control::controller::{Controller, ControllerOutput, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::external::External;
use onbeat_control::ipc::Ipc;
use onbeat_control::stop::StopHandle;
use rt::clock::MonotonicClock;
use support::controller::{open, settings, socket, turn};
use support::{IpcFolder, PERIOD, cycle_of, rules, segment, supervised};
use testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

static CYCLES: AtomicU64 = AtomicU64::new(0);

const DRIVES: usize = 6;

const ENOUGH: u64 = 1_000;

/// Cycles after which a machine too busy to bring the bus to Op is given up.
const TOO_MANY: u64 = 60_000;

/// Is watched from the first cycle in which the process has every axis enabled until it has been
/// seen enough.
struct Watching<C> {
    controller: C,
    stop: StopHandle,
    leaks: bool,
}

impl<C: Controller> Controller for Watching<C> {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.controller.update(info, io);
        let enabled = io.axes().iter().all(|report| report.state == Some(State::OperationEnabled));
        if enabled && !info.stopping {
            allocations::watch(true);
            let watched = CYCLES.fetch_add(1, Ordering::Relaxed);
            if watched == 100 && self.leaks {
                std::hint::black_box(Box::new(info));
            }
            if watched == ENOUGH {
                self.stop.stop();
            }
        }
        if info.stopping {
            allocations::watch(false);
        }
    }

    fn output(&self) -> ControllerOutput {
        self.controller.output()
    }
}

/// Allocator calls in the cycle.
fn run(order: FrameOrder, leaks: bool) -> u64 {
    let folder = IpcFolder::new("external-allocations");
    let (end, ends, server) = open(&folder, DRIVES);
    let stop = StopHandle::new();
    CYCLES.store(0, Ordering::Relaxed);
    let before = allocations::calls();
    let settings = settings(DRIVES, Duration::from_micros(600), 3);
    let controller = Watching { controller: External::new(end, settings), stop: stop.clone(), leaks };
    let configuration =
        CycleConfiguration { order, cycles: Some(TOO_MANY), ..CycleConfiguration::every(PERIOD) };
    let link = SimulatedLink::new(segment(DRIVES));
    let (cycle, _observer) = cycle_of(link, MonotonicClock, &supervised(DRIVES), controller, configuration);
    let client = Client::open(&socket(&folder)).unwrap();
    let mut process = client.controller().unwrap();
    let process = thread::spawn(move || turn(&mut process, DRIVES));
    let ended = cycle.with_ipc(Ipc::new(ends, rules(DRIVES))).run(&stop);
    assert_eq!(ended.failure, None);
    drop(server);
    process.join().unwrap();
    allocations::calls() - before
}

/// One test, so that nothing else runs at the same time.
// feature(ipc): a cycle with a controller process allocates nothing and makes two system calls more
#[test]
fn asking_a_controller_process_neither_allocates_nor_frees() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let calls = run(order, false);
        let cycles = CYCLES.load(Ordering::Relaxed);
        assert!(cycles >= ENOUGH, "{order:?}: watched {cycles} cycles only");
        assert_eq!(calls, 0, "{order:?}: allocator calls in {cycles} cycles");
    }
    // The count counts: one box made and dropped on purpose.
    assert_eq!(run(FrameOrder::ReplyOfLastCycle, true), 2);
}
