//! strace sees the cycle on a real interface, with an IPC that others read and write all the time,
//! and rows for a recording: one call to send a frame, one to sleep.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ethercat::cia402::State;
use ethercat_linux::link::{InterfaceLink, LinkKind, OpenError, SimulatedLink};
use ethercat_linux::serve::Server;
use ipc::client::Client;
use ipc::controller::CycleEnd;
use onbeat_control::controller::{Controller, ControllerOutput, CycleInfo, ExternalCommand, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::external::External;
use onbeat_control::ipc::Ipc;
use onbeat_control::stop::StopHandle;
use rt::clock::MonotonicClock;
use support::controller;
use support::{IpcFolder, Peers, Servant, cycle_of, ipc, rules, segment, supervised};
use testkit::strace::{self, IN_VAIN, Trace};
use testkit::{Side, Testbed};

const DRIVES: usize = 6;

/// strace makes every system call slow: a period with space for it.
const PERIOD: Duration = Duration::from_millis(20);

/// Cycles between the two marks.
const CYCLES: u64 = 100;

// feature(ipc): the real-time ends ask for no memory, and make no system call
// feature(cycle): one system call a frame, and the sleep
#[test]
fn a_cycle_makes_one_system_call_a_frame_and_one_sleep() {
    one_system_call_a_frame("cycle_under_strace", LinkKind::Packet);
}

// feature(cycle): one system call a frame, and the sleep
#[test]
fn af_xdp_cycle_makes_one_call_per_frame_and_one_sleep() {
    one_system_call_a_frame("cycle_by_af_xdp_under_strace", LinkKind::Xdp);
}

fn one_system_call_a_frame(test: &str, kind: LinkKind) {
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    match testbed.inside(Side::Near, || near(kind)) {
        Err(error @ (OpenError::XdpUnsupported { .. } | OpenError::XdpNotPermitted { .. })) => {
            return testkit::skip!("{error}");
        }
        link => drop(link.unwrap()),
    }
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
    let stop = AtomicBool::new(false);
    let trace = thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&mut segment(DRIVES), &stop));
        let trace = Trace::of_test(test, |strace| testbed.run_in(Side::Near, strace));
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        trace
    });
    let calls = match trace {
        Ok(trace) => trace.calls(),
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let count = |name: &str| calls.get(name).copied().unwrap_or(0);
    // Process data, and at most one service frame; the last mark may cut one off.
    assert!((CYCLES..=2 * CYCLES + 1).contains(&count("sendto")), "{calls:?}");
    assert_eq!(count("clock_nanosleep"), CYCLES, "{calls:?}");
    // Replies lie in memory that the kernel shares: none is waited for, and taking one is no call.
    assert!(calls.keys().all(|name| ["sendto", "clock_nanosleep"].contains(&name.as_str())), "{calls:?}");
}

// feature(ipc): a cycle with a controller process allocates nothing and makes two system calls more
#[test]
fn a_controller_process_adds_one_wake_and_one_wait_a_cycle() {
    let calls = match Trace::of_test("external_under_strace", |strace| strace) {
        Ok(trace) => trace.calls(),
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let count = |name: &str| calls.get(name).copied().unwrap_or(0);
    assert_eq!(count("clock_nanosleep"), CYCLES, "{calls:?}");
    // A wake and a wait; a simulated bus is woken, too, and wakes back. A wait ends at once if the
    // answer is already there.
    let futex = count("futex") + count(IN_VAIN);
    assert!(futex >= 2 * CYCLES, "{calls:?}");
    assert!(futex <= (2 + SIMULATED_CALLS) * CYCLES, "{calls:?}");
}

/// Calls of a cycle for a simulated bus at most: a ring for each of its two ends.
const SIMULATED_CALLS: u64 = 2;

#[test]
#[ignore = "a part of the test above, which starts it under strace"]
fn external_under_strace() {
    let folder = IpcFolder::new("external-system-calls");
    let (end, ends, server) = controller::open(&folder, DRIVES);
    let settings = controller::settings(DRIVES, PERIOD / 2, 1000);
    let controller = MarkingExternal { external: External::new(end, settings), cycles: 0 };
    let configuration =
        CycleConfiguration { cycles: Some(CYCLES + 100), ..CycleConfiguration::every(PERIOD) };
    let link = SimulatedLink::new(segment(DRIVES));
    let axes = supervised(DRIVES);
    let (cycle, _observer) = cycle_of(link, MonotonicClock, &axes, controller, configuration);
    let client = Client::open(&controller::socket(&folder)).unwrap();
    let mut process = client.controller().unwrap();
    let process = thread::spawn(move || controller::turn(&mut process, DRIVES));
    let ended = cycle.with_ipc(Ipc::new(ends, rules(DRIVES))).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let counters = server.controller().unwrap();
    assert!(counters.answered > CYCLES, "{counters:?}");
    drop(server);
    process.join().unwrap();
}

/// Marks a cycle in Op, and the one [`CYCLES`] later.
struct MarkingExternal {
    external: External<CycleEnd>,
    cycles: u64,
}

impl Controller for MarkingExternal {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.external.update(info, io);
        if io.axes().iter().all(|report| report.state == Some(State::OperationEnabled)) {
            if self.cycles == 0 || self.cycles == CYCLES {
                strace::mark();
            }
            self.cycles += 1;
        }
    }

    fn output(&self) -> ControllerOutput {
        self.external.output()
    }
}

/// Marks the first enabled cycle, and the one [`CYCLES`] later.
struct Marking {
    servant: Servant,
    enabled: u64,
}

impl Controller for Marking {
    fn command(&mut self, command: &ExternalCommand) {
        self.servant.command(command);
    }

    fn output(&self) -> ControllerOutput {
        self.servant.output()
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.servant.update(info, io);
        if io.axes().iter().all(|report| report.state == Some(State::OperationEnabled)) {
            if self.enabled == 0 || self.enabled == CYCLES {
                strace::mark();
            }
            self.enabled += 1;
        }
    }
}

#[test]
#[ignore = "a part of the test above, which starts it under strace"]
fn cycle_under_strace() {
    run(near(LinkKind::Packet).unwrap());
}

#[test]
#[ignore = "a part of the test above, which starts it under strace"]
fn cycle_by_af_xdp_under_strace() {
    run(near(LinkKind::Xdp).unwrap());
}

fn near(kind: LinkKind) -> Result<InterfaceLink, OpenError> {
    InterfaceLink::open_as_owner(Side::Near.interface(), kind, Duration::from_secs(5), "run")
}

/// Runs some cycles, marked.
fn run(link: InterfaceLink) {
    let controller = Marking { servant: Servant::new(DRIVES, 1.0), enabled: 0 };
    let configuration =
        CycleConfiguration { cycles: Some(CYCLES + 100), ..CycleConfiguration::every(PERIOD) };
    let axes = supervised(DRIVES);
    let (cycle, _observer) = cycle_of(link, MonotonicClock, &axes, controller, configuration);
    let folder = IpcFolder::new("system-calls");
    let (ipc, _server, client) = ipc(&folder, rules(DRIVES));
    let peers = Peers::start(&client, DRIVES);
    let mut cycle = cycle.with_ipc(ipc);
    let mut samples = cycle.sample(vec![]);
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    let sampled = (0..100 * CYCLES).filter(|&cycle| samples.go_to(cycle)).count() as u64;
    assert!(sampled >= CYCLES, "{sampled} rows for a recording");
    let (read, sent) = peers.stop();
    let command = client.state().read().unwrap().command;
    assert!(read > 10 && sent > 10 && command.accepted > 10, "{read} {sent} {command:?}");
}
