//! Signals to a run with axes that need long to stop: the second signal ends it within two seconds.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ethercat::wire::frame::places;
use rustix::process::{Pid, Signal, kill_process};

use crate::brake::frames;
use crate::common::{Ran, Running, await_cycles, onbeat, shared, six_axis_with};
use crate::wire::SIX_AXIS;

/// A run of a cycle every 10 ms, and where its frames are.
struct Slow {
    running: Running,
    capture: PathBuf,
}

impl Slow {
    fn start(robot: &str, name: &str) -> Self {
        let capture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = onbeat();
        command.args(["run", robot, "--period", "10ms", "--json", "--no-ipc", "--capture"]).arg(&capture);
        Self { running: Running::start(command), capture }
    }

    /// Sends SIGINT; when.
    fn signal(&self) -> u64 {
        self.send(Signal::INT);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        u64::try_from(now.as_nanos()).expect("this century")
    }

    fn send(&self, signal: Signal) {
        let process = Pid::from_raw(self.running.id() as i32).expect("a process");
        kill_process(process, signal).expect("it has not ended");
    }

    /// Cycles with process data from this time to the end, of a run that ended well. A host stall
    /// skips cycles: there are fewer then, or none if it stopped the axes before.
    fn cycles_since(self, time: u64) -> usize {
        let Ran { code, stdout, stderr } = self.running.finish();
        if matches!(code, Some(3 | 4)) {
            assert!(stderr.contains("outage"), "{stdout}{stderr}");
            return 0;
        }
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let capture = std::fs::read(&self.capture).expect("the capture");
        let logical = |frame: &[u8]| places(frame).any(|place| place.header.command.is_logical());
        let sent = frames(&capture).filter(|(_, came_back, _)| !came_back);
        sent.filter(|(at, _, frame)| *at > time && logical(frame)).count()
    }
}

/// Cycles after one signal, and after the second of two, where the one takes long.
fn one_signal_and_two(robot: &str) -> (usize, usize) {
    let mut short = Vec::new();
    for _ in 0..4 {
        let (one, two) =
            (Slow::start(robot, "one-signal.pcapng"), Slow::start(robot, "two-signals.pcapng"));
        // A swing begins gently.
        std::thread::sleep(Duration::from_secs(20));
        let asked = one.signal();
        two.signal();
        std::thread::sleep(Duration::from_millis(500));
        let hurried = two.signal();
        let (one, two) = (one.cycles_since(asked), two.cycles_since(hurried));
        if one > 260 && two > 0 {
            return (one, two);
        }
        short.push(one);
    }
    panic!("{short:?} cycles: the ramp of one signal is too short to tell");
}

// feature(program): signals: a second one within 2 s; an axis in torque mode too
#[test]
fn a_second_signal_stops_slow_axes_within_two_seconds() {
    // From the fastest point of these swings it takes 1 / (2 pi 0.05 Hz) to rest as hard as they
    // swing, 3.2 s.
    let robot = six_axis_with("slow-swings.toml", "amplitude = 1.0 ", "amplitude = 8.0 ");
    let text = std::fs::read_to_string(&robot).expect("it was just written");
    std::fs::write(&robot, text.replace("frequency = 0.5 ", "frequency = 0.05 ")).expect("a file");
    let robot = robot.to_str().expect("UTF-8");
    let _shared = shared();
    let (one, two) = one_signal_and_two(robot);
    assert!(two <= 200, "{two} cycles after the second signal; {one} after only one");
}

// feature(program): SIGQUIT, SIGXCPU, SIGUSR1 and others that would end it stop in order, as SIGTERM does; a second one hurries, a third ends, signals close together are one; Ctrl-Z suspends nothing
#[test]
fn signals_that_end_programs_bring_the_axes_to_rest_first() {
    let signals = [
        Signal::QUIT,
        Signal::XCPU,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::POWER,
        Signal::TERM,
    ];
    let _shared = shared();
    let start = |signal: &Signal| Slow::start(SIX_AXIS, &format!("signal-{}.pcapng", signal.as_raw()));
    let runs: Vec<_> = signals.iter().map(start).collect();
    for (run, signal) in runs.iter().zip(signals) {
        await_cycles(run.running.id(), 300);
        run.send(signal);
    }
    for (run, signal) in runs.into_iter().zip(signals) {
        // An axis that does not come to rest, or keeps its torque, ends it with 3.
        let Ran { code, stdout, stderr } = run.running.finish();
        assert_eq!(code, Some(0), "{signal:?}: {stdout}{stderr}");
        assert!(stderr.contains("stopping: the axes stop"), "{signal:?}: {stderr}");
    }
}
