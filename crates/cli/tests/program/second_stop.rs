//! An axis that only holds its load: the first stop waits and says what to do, the second one
//! disables it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::brake_feedback::with_brake;
use crate::common::{file, folder, onbeat, shared};

/// A run with its standard error read meanwhile.
struct Loaded {
    child: Child,
    errors: std::path::PathBuf,
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
