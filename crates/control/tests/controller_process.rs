//! Controller processes killed and stopped at a thousand random instants, beside a cycle whose process is left alone.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ethercat::main_device::BringUpPhase;
use ipc::client::{Client, ControllerError};
use ipc::controller::Counters;
use ipc::server::Server;
use ipc::state::StopReason;
use onbeat_control::clock::MonotonicClock;
use onbeat_control::cycle::{CycleConfiguration, Ended, FrameOrder};
use onbeat_control::external::External;
use onbeat_control::ipc::Ipc;
use onbeat_control::link::SimulatedLink;
use onbeat_control::stop::StopHandle;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use simulator::Segment;
use support::controller::{open, settings, socket, turn};
use support::{IpcFolder, cycle_of, rules, segment, supervised};

const DRIVES: usize = 2;

/// Room for two cycles on a machine that does other things, too.
const PERIOD: Duration = Duration::from_millis(4);
const DEADLINE: Duration = Duration::from_millis(2);
const MAX_LATE: u32 = 3;

const KILLS: usize = 250;
const STOPS: usize = 750;

/// Overruns that a machine gives one cycle and not the other.
const BY_CHANCE: u64 = 30;

const SOCKET: &str = "ONBEAT_TEST_CONTROLLER_SOCKET";

// feature(ipc): a thousand controller processes killed and stopped at random instants hold up no cycle
#[test]
fn a_thousand_killed_and_stopped_controller_processes_hold_up_no_cycle() {
    let (mut calm, mut hit) = (Rig::start("calm"), Rig::start("hit"));
    let undisturbed = ControllerProcess::start(&calm);
    let mut random = fastrand::Rng::with_seed(9);
    let (mut kills, mut stops) = (0, 0);
    while kills < KILLS || stops < STOPS {
        let process = ControllerProcess::start(&hit);
        for _ in 0..STOPS / KILLS {
            pause(&mut random, 6_000);
            process.signal(Signal::STOP);
            stops += 1;
            pause(&mut random, 20_000);
            process.signal(Signal::CONT);
        }
        pause(&mut random, 6_000);
        kills += 1;
        let comes_to_rest = kills % 25 == 0;
        drop(process);
        if comes_to_rest {
            hit.rests();
        }
    }
    drop(undisturbed);
    let (calm, hit) = (calm.finish(), hit.finish());
    for ended in [&calm, &hit] {
        assert_eq!(ended.ended.failure, None);
        assert_eq!(ended.ended.before_stop.phase, BringUpPhase::Op);
        assert_eq!(ended.ended.lost, None);
    }
    let (calm_overruns, hit_overruns) = (calm.ended.overruns.count, hit.ended.overruns.count);
    eprintln!("overruns: {calm_overruns} beside, {hit_overruns} hit; {:?}", hit.counters.read());
    assert!(hit_overruns <= calm_overruns * 2 + BY_CHANCE, "{hit_overruns} {calm_overruns}");
    let (calm, hit) = (calm.counters.read(), hit.counters.read());
    // Each that is stopped for longer than the patience, or killed, stops the axes; a machine that is busy adds to that.
    assert!(hit.stops >= KILLS as u64, "{hit:?}");
    assert!(hit.late > calm.late && hit.late >= STOPS as u64, "{hit:?} {calm:?}");
    assert_eq!((hit.wrong, calm.wrong), (0, 0), "{hit:?} {calm:?}");
    assert!(hit.answered > 1_000, "{hit:?}");
}

#[test]
fn one_process_at_a_time_and_of_the_same_version_only() {
    let mut rig = Rig::start("one");
    let client = rig.client();
    let holder = client.controller().unwrap();
    match client.controller() {
        Err(ControllerError::Taken { process }) => assert_eq!(process, std::process::id()),
        other => panic!("{other:?}"),
    }
    drop(holder);
    let again = client.controller().unwrap();
    drop(again);
    rig.finish();
}

/// A cycle in real time that waits for a controller process.
struct Rig {
    folder: IpcFolder,
    counters: Arc<Counters>,
    stop: StopHandle,
    thread: Option<thread::JoinHandle<Ended<SimulatedLink<Segment>>>>,
    server: Option<Server>,
}

struct Finished {
    ended: Ended<SimulatedLink<Segment>>,
    counters: Arc<Counters>,
}

impl Rig {
    fn start(name: &str) -> Self {
        let folder = IpcFolder::new(&format!("controller-{name}"));
        let (end, ends, server) = open(&folder, DRIVES);
        let counters = Arc::clone(end.counters());
        let controller = External::new(end, settings(DRIVES, DEADLINE, MAX_LATE));
        let configuration = CycleConfiguration {
            order: FrameOrder::ReplyOfLastCycle,
            loss: None,
            ..CycleConfiguration::every(PERIOD)
        };
        let link = SimulatedLink::new(segment(DRIVES));
        let (cycle, _observer) =
            cycle_of(link, MonotonicClock, &supervised(DRIVES), controller, configuration);
        let cycle = cycle.with_ipc(Ipc::new(ends, rules(DRIVES)));
        let stop = StopHandle::new();
        let handle = stop.clone();
        let thread = thread::spawn(move || cycle.run(&handle));
        let rig = Self { folder, counters, stop, thread: Some(thread), server: Some(server) };
        let state = rig.client().state();
        eventually("Op", || state.read().is_ok_and(|state| state.bus.phase == 7));
        rig
    }

    fn client(&self) -> Client {
        Client::open(&socket(&self.folder)).unwrap()
    }

    /// Waits until supervision has brought the axes to rest, with the bus in Op.
    fn rests(&self) {
        let state = self.client().state();
        let what = || format!("the axes rest: {:?} {:?}", state.read().unwrap().axes, self.counters.read());
        eventually_or(what, || {
            let state = state.read().unwrap();
            assert_eq!(state.bus.phase, 7, "the bus stays in Op");
            // A machine that stood still has drives in fault, which rest as well.
            let stopped = [StopReason::Stale as u8, StopReason::Fault as u8];
            state.axes.iter().all(|axis| stopped.contains(&axis.stop) && axis.velocity.abs() < 0.05)
        });
    }

    fn finish(&mut self) -> Finished {
        self.stop.stop();
        let ended = self.thread.take().unwrap().join().unwrap();
        drop(self.server.take());
        Finished { ended, counters: Arc::clone(&self.counters) }
    }
}

/// A controller process that answers.
struct ControllerProcess(Child);

impl ControllerProcess {
    /// Returns once the cycle has taken answers of it.
    fn start(rig: &Rig) -> Self {
        let this = std::env::current_exe().unwrap();
        let child = Process::new(this)
            .args(["--exact", "controller", "--ignored", "--nocapture"])
            .env(SOCKET, socket(&rig.folder))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let process = Self(child);
        let id = u64::from(process.0.id());
        eventually("the process is the controller", || rig.counters.read().process == id);
        let before = rig.counters.read().answered;
        eventually("it is heard", || rig.counters.read().answered > before);
        process
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for ControllerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pause(random: &mut fastrand::Rng, longest_us: u64) {
    thread::sleep(Duration::from_micros(random.u64(..longest_us)));
}

fn eventually(what: &str, look: impl FnMut() -> bool) {
    eventually_or(|| what.to_owned(), look);
}

fn eventually_or(what: impl Fn() -> String, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !look() {
        assert!(Instant::now() < deadline, "still not: {}", what());
        thread::sleep(Duration::from_micros(500));
    }
}

#[test]
#[ignore = "a part of the tests above, which start it as a process"]
fn controller() {
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    // Started by hand, or its parent is gone already.
    let Some(socket) = std::env::var_os(SOCKET).filter(|_| parent_id() != 1) else { return };
    let client = Client::open(Path::new(&socket)).unwrap();
    turn(&mut client.controller().unwrap(), DRIVES);
}
