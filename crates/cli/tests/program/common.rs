//! Runs the program as a user does.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use onbeat::ipc::client::Client;
use onbeat::ipc::state::State;
use serde_json::Value;

/// Output and exit of a run of the program.
pub(crate) struct Ran {
    /// Exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The JSON on standard output.
    pub(crate) fn json(&self) -> Value {
        // A host stall longer than `outage_time` must stop the axes.
        let held_up = matches!(self.code, Some(3 | 4))
            && ["(outage)", "this computer stalled"].iter().any(|it| self.stderr.contains(it));
        assert!(self.code == Some(0) || held_up, "{:?} {}{}", self.code, self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// The one sentence on standard error of a run that failed.
    pub(crate) fn sentence(&self) -> &str {
        assert_eq!(self.code, Some(1), "{}{}", self.stdout, self.stderr);
        let said = self.stderr.trim_end();
        // The line that says which bus it was.
        let sentence =
            said.split_once('\n').filter(|(bus, _)| bus.starts_with(SIMULATED)).map_or(said, |it| it.1);
        assert!(!sentence.contains('\n') && !sentence.contains("panicked"), "{sentence}");
        sentence
    }
}

/// Begins the line of a command on a bus that is simulated for it alone.
pub(crate) const SIMULATED: &str = "on a separate simulated bus";

/// The program, ready for arguments. It ends with the test.
pub(crate) fn onbeat() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    testkit::end_with_parent(&mut command);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).stdin(Stdio::null());
    command
}

/// `onbeat measure`, with the program of the experiments in the same folder.
pub(crate) fn measure() -> Command {
    experiments_built();
    let mut command = onbeat();
    command.arg("measure");
    command
}

/// Builds the program of the experiments, which has the commands `measure`, `report` and `analyse`.
fn experiments_built() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        // `cargo xtask test` has built it with all others, and with their features.
        if std::env::var_os("ONBEAT_BUILT").is_some() {
            return;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--offline", "--package", "onbeat-experiments"]);
        let optimised =
            Path::new(env!("CARGO_BIN_EXE_onbeat")).parent().is_some_and(|it| it.ends_with("release"));
        build.args(optimised.then_some("--release")).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().expect("cargo").success(), "the experiments are not built");
    });
}

static BUSES: RwLock<()> = RwLock::new(());

/// Exclusive use of the machine for a test that checks times, changes the machine, or looks for the
/// only cycle. A test that holds this or [`shared`] may start programs with [`finished`]; [`run`]
/// takes its turn by itself.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    // A test that failed has left nothing behind that could spoil the next.
    BUSES.write().unwrap_or_else(PoisonError::into_inner)
}

/// A bus that other tests may run next to, one per test thread: its times are not checked, and it
/// is found by its name only. A thread that holds it takes it again at once: a second lock would
/// wait for [`alone`], which waits for the first.
pub(crate) fn shared() -> Shared {
    let is_first = DEPTH.replace(DEPTH.get() + 1) == 0;
    Shared { _lock: is_first.then(|| BUSES.read().unwrap_or_else(PoisonError::into_inner)) }
}

/// Lock of the machine that other tests may hold as well.
pub(crate) struct Shared {
    _lock: Option<RwLockReadGuard<'static, ()>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

thread_local! {
    /// Times that this thread holds [`shared`].
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs the program with these arguments, parallel to other tests.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    let _shared = shared();
    ran(arguments)
}

/// The same, alone.
pub(crate) fn run_alone(arguments: &[&str]) -> Ran {
    let _alone = alone();
    ran(arguments)
}

fn ran(arguments: &[&str]) -> Ran {
    if matches!(arguments, ["report" | "analyse", ..]) {
        experiments_built();
    }
    let mut command = onbeat();
    command.args(arguments);
    finished(command)
}

/// Runs an experiment into a separate folder; returns the result and the folder.
pub(crate) fn measured(name: &str, arguments: &[&str]) -> (Ran, PathBuf) {
    let _alone = alone();
    measured_now(name, arguments)
}

/// The same, parallel to other tests: its times are not checked.
pub(crate) fn measured_beside(name: &str, arguments: &[&str]) -> (Ran, PathBuf) {
    let _shared = shared();
    measured_now(name, arguments)
}

fn measured_now(name: &str, arguments: &[&str]) -> (Ran, PathBuf) {
    let folder = folder(name);
    let mut command = measure();
    command.args(arguments).arg("--out").arg(&folder);
    // Every cell brings a bus up and down, on a machine that may be busy.
    (Running::start(command).finish_within(Duration::from_secs(300)), folder)
}

/// Tables and figures of the paper in a report, in addition to the report's own numbers.
pub(crate) fn of_the_paper(report: &Value) -> Vec<&str> {
    let all = report["values"]["paper"].as_array().expect("the paper's numbers");
    assert!(report["found"].as_str().is_some_and(|it| !it.is_empty()), "what the paper found");
    let sections = report["sections"].as_array().expect("sections");
    let tables = sections.iter().filter(|it| it["table"]["rows"][0]["from_paper"] == true).count();
    assert_eq!(tables, all.len(), "each is a table of the report");
    all.iter().map(|it| it["figure"]["name"].as_str().expect("a name")).collect()
}

/// An empty folder of this test run.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Looks until the state is so; a minute at most.
pub(crate) fn until(ipc: &Client, what: &str, is: impl Fn(&State) -> bool) -> State {
    let (reader, started) = (ipc.state(), Instant::now());
    loop {
        let state = reader.read();
        match state {
            Ok(state) if is(&state) => return state,
            state => assert!(started.elapsed() < Duration::from_secs(60), "not {what}: {state:?}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Output and exit of a command; one that takes longer than a minute is killed and fails.
pub(crate) fn finished(command: Command) -> Ran {
    Running::start(command).finish()
}

/// A program that runs. Dropped by a test that fails, it is killed.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self(Some(child.expect("the program")))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().expect("it runs until it is finished").id()
    }

    /// Ends it at once, as cannot be prevented.
    pub(crate) fn kill(&mut self) {
        let child = self.0.as_mut().expect("it runs until it is finished");
        child.kill().expect("kill");
        child.wait().expect("its end");
    }

    /// Its output and exit; one that takes longer than a minute from now is killed and fails.
    pub(crate) fn finish(self) -> Ran {
        self.finish_within(Duration::from_secs(60))
    }

    /// Its output and exit; one that takes longer than `timeout` from now is killed and fails.
    pub(crate) fn finish_within(mut self, timeout: Duration) -> Ran {
        finish(self.0.take().expect("it runs until it is finished"), timeout)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn finish(mut child: Child, timeout: Duration) -> Ran {
    let pipes = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let read = |mut pipe: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).expect("UTF-8");
            text
        })
    };
    let (stdout, stderr) = (read(Box::new(pipes.0)), read(Box::new(pipes.1)));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("status") {
            break status;
        }
        if started.elapsed() > timeout {
            child.kill().expect("kill");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = (stdout.join().expect("stdout"), stderr.join().expect("stderr"));
    Ran { code: status.code(), stdout, stderr }
}

/// JSON of a run that the machine did not disturb. A host stall longer than a drive's watchdog (100
/// ms) throws drives out of Op, as it must, and says nothing about the program.
pub(crate) fn undisturbed(run: impl FnMut() -> Ran) -> Value {
    until_still(run, |end| longest_period(end).max(number(end, "lost_frames") * number(end, "period_ns")))
}

/// The same for a run that is to lose frames.
pub(crate) fn undisturbed_with_losses(run: impl FnMut() -> Ran) -> Value {
    until_still(run, longest_period)
}

fn until_still(mut run: impl FnMut() -> Ran, disturbance_ns: impl Fn(&Value) -> u64) -> Value {
    for _ in 0..5 {
        let ran = run();
        let end = ran.json();
        let disturbance = disturbance_ns(&end);
        if disturbance < 90_000_000 && ran.code == Some(0) {
            return end;
        }
        eprintln!("the machine stood still for up to {} ms: once more", disturbance / 1_000_000);
    }
    panic!("the machine stands still all the time");
}

fn longest_period(end: &Value) -> u64 {
    number(&end["t_period_ns"], "maximum")
}

/// A whole number of an object.
pub(crate) fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or_else(|| panic!("{name} in {object}"))
}

/// Waits until the cycle of a running program has slept `cycles` times, which it does once a cycle.
pub(crate) fn await_cycles(process: u32, cycles: u64) {
    let started = Instant::now();
    while slept(process).is_none_or(|slept| slept < cycles) {
        assert!(started.elapsed() < Duration::from_secs(60), "no {cycles} cycles within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Number of sleeps of the program's thread "cycle"; `None` while there is none.
pub(crate) fn slept(process: u32) -> Option<u64> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if value("Name:") == Some("cycle") {
            return value("voluntary_ctxt_switches:")?.parse().ok();
        }
    }
    None
}

/// A file of this test run, with this content.
pub(crate) fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    // An earlier run may have left a FIFO there; a write to it would block.
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, content).expect("a file in the target folder");
    path
}

/// The built-in robot's file, with `good` replaced by `other`.
pub(crate) fn six_axis_with(name: &str, good: &str, other: &str) -> PathBuf {
    let text = include_str!("../../../../examples/six-axis.toml");
    assert!(text.contains(good), "the six-axis robot has no `{good}`");
    file(name, &text.replace(good, other))
}
