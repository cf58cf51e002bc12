//! Signals to a run with axes that need long to stop: the second signal ends it within two seconds.
//!
//! An axis that only holds its load: the first stop waits and says what to do, the second one
//! disables it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ethercat::wire::frame::places;
use rustix::process::{Pid, Signal, kill_process};

use crate::brake::frames;
use crate::brake_feedback::with_brake;
use crate::common::{Ran, Running, await_cycles, file, folder, onbeat, shared, six_axis_with};
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

/// A run with its standard error read meanwhile.
struct Loaded {
    child: Child,
    errors: PathBuf,
}

impl Loaded {
    fn start(robot: &Path, arguments: &[&str], script: &Path, name: &str) -> Self {
        let errors = folder(name).join("stderr.txt");
        let mut command = onbeat();
        command.arg("run").arg(robot).args(arguments).arg("--faults").arg(script);
        command.stdout(Stdio::null()).stderr(File::create(&errors).expect("a file"));
        Self { child: command.spawn().expect("the program"), errors }
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).expect("its standard error")
    }

    /// Waits for a text on its standard error.
    fn says(&mut self, what: &str) {
        let begin = Instant::now();
        while !self.errors().contains(what) {
            let ended = self.child.try_wait().expect("its status");
            assert!(ended.is_none(), "{ended:?} before it said \"{what}\": {}", self.errors());
            assert!(begin.elapsed() < PATIENCE, "it never said \"{what}\": {}", self.errors());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn interrupt(&self) {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("its number");
        kill_process(process, Signal::INT).expect("a signal");
    }

    /// Its exit code.
    fn end(&mut self) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status.code();
            }
            assert!(begin.elapsed() < PATIENCE, "the run continues: {}", self.errors());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

// feature(program): an axis that is enabled only to hold its load: the first stop waits and says what to do, the second disables it, also with `--time fast`
#[test]
fn a_second_stop_disables_an_axis_that_only_holds_its_load() {
    let _shared = shared();
    let text = include_str!("../../../../examples/first-drive.toml");
    let text = text.replace("kind = \"servo_drive\"\n", "kind = \"servo_drive\"\nquick_stop = false\n");
    let text = text.replace("mode = \"csp\"\n", "mode = \"csp\"\nholds_load = true\n");
    let text = text.replace("[cycle]\n", "[cycle]\noutage_time = \"20ms\"\n");
    let text = format!("{text}\n[bus]\nprocess_data_watchdog = \"2min\"\n");
    let robot = file("only-holds.toml", &text);
    let script = file("only-holds.txt", "1s frames lose 100% for 100ms\n");
    for (name, arguments) in [("only-holds", &["--no-ipc"][..]), ("only-holds-fast", &["--time", "fast"])] {
        let mut run = Loaded::start(&robot, arguments, &script, name);
        let step =
            "its drive does not carry out the quick stop, it was stopped by set-points to standstill";
        run.says(step);
        run.interrupt();
        run.says(
            "shaft stays enabled: its drive did not carry out a quick stop, and its load falls without torque; \
             secure the load, then stop again (a second Ctrl-C)",
        );
        // It waits for the second one.
        std::thread::sleep(Duration::from_millis(700));
        let ended = run.child.try_wait().expect("its status");
        assert!(ended.is_none(), "{name} {ended:?}: the load falls: {}", run.errors());
        run.interrupt();
        assert_eq!(run.end(), Some(3), "{name}: {}", run.errors());
        let said = run.errors();
        let last = said.lines().last().expect("a last line");
        assert!(last.contains("\"shaft\"") && last.contains("(outage)") && last.contains(step), "{said}");
    }
}

// feature(program): a brake that does not close at the end of the run is named, and its load is held until the second stop
#[test]
fn second_stop_disables_an_axis_with_an_open_brake() {
    let _shared = shared();
    let robot = file("stuck-at-the-end.toml", &with_brake());
    let script = file("stuck-at-the-end.txt", "500ms drive load drive 0.5Nm\n1s brake stuck-open drive\n");
    let mut run = Loaded::start(&robot, &["--no-ipc"], &script, "stuck-at-the-end");
    run.says("brake stuck-open drive");
    run.interrupt();
    run.says(
        "shaft stays enabled: its brake is not closed, and its load falls without torque; secure the load, \
         then stop again (a second Ctrl-C)",
    );
    assert!(run.errors().contains("disables a drive that only holds its load"), "{}", run.errors());
    std::thread::sleep(Duration::from_millis(700));
    let ended = run.child.try_wait().expect("its status");
    assert!(ended.is_none(), "{ended:?}: the load falls: {}", run.errors());
    run.interrupt();
    assert_eq!(run.end(), Some(3), "{}", run.errors());
}
