//! Runs the program as a user does.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run of the program left behind.
pub(crate) struct Ran {
    /// Exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The JSON on standard output.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// The one sentence on standard error of a run that failed.
    pub(crate) fn sentence(&self) -> &str {
        assert_eq!(self.code, Some(1), "{}{}", self.stdout, self.stderr);
        let sentence = self.stderr.trim_end();
        assert!(!sentence.contains('\n') && !sentence.contains("panicked"), "{sentence}");
        sentence
    }
}

/// The program, ready for arguments.
pub(crate) fn onbeat() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).stdin(Stdio::null());
    command
}

/// Runs the program with these arguments.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    let mut command = onbeat();
    command.args(arguments);
    finished(command)
}

/// What a command leaves behind; one that takes longer than a minute is killed and fails.
pub(crate) fn finished(mut command: Command) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
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
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().expect("kill");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = (stdout.join().expect("stdout"), stderr.join().expect("stderr"));
    Ran { code: status.code(), stdout, stderr }
}

/// A file of this test run, with this content.
pub(crate) fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("a file in the target folder");
    path
}

/// The built-in robot's file, with `good` replaced by `other`.
pub(crate) fn six_axis_with(name: &str, good: &str, other: &str) -> PathBuf {
    let text = include_str!("../../../../examples/six-axis.toml");
    assert!(text.contains(good), "the six-axis robot has no `{good}`");
    file(name, &text.replace(good, other))
}
