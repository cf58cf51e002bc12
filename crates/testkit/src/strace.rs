//! System calls between two marks, recorded by strace.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Skip;

/// Output of strace for a program and its threads.
#[derive(Clone, Debug)]
pub struct Trace {
    /// One line for each call, in the order in which they began: `1234  sendto(4, ...) = 92`.
    lines: Vec<String>,
    /// Standard output of the program.
    pub stdout: String,
}

/// Name under which calls that returned EAGAIN are counted.
pub const IN_VAIN: &str = "in_vain";

/// A mark in the trace: a system call that nothing else here makes.
const MARK: &str = "sched_yield(";

/// Marks the present place in the trace.
pub fn mark() {
    std::thread::yield_now();
}

impl Trace {
    /// Runs one ignored test of this test program under strace, in the environment that `within`
    /// prepares.
    ///
    /// # Errors
    /// strace is not available.
    ///
    /// # Panics
    /// The test fails, or the trace cannot be read.
    pub fn of_test(test: &str, within: impl FnOnce(Command) -> Command) -> Result<Self, Skip> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if Command::new("strace").arg("-V").output().is_err() {
            return Err(Skip("needs strace (Debian: strace)".to_owned()));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("onbeat-strace-{}-{number}", std::process::id()));
        let this = std::env::current_exe().expect("the path of this program");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(&file).arg(this);
        strace.args(["--exact", test, "--ignored", "--nocapture"]);
        let output = within(strace).output().expect("strace starts");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        assert!(
            output.status.success(),
            "{test} under strace: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Self { lines: text.lines().map(str::to_owned).collect(), stdout })
    }

    /// Calls of the thread that made the marks, between the first mark and the last, by name.
    ///
    /// # Panics
    /// Fewer than two marks.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<String, u64> {
        let (_, marking, _) = self.marks();
        self.calls_by(marking)
    }

    /// Calls of thread `number` between the marks.
    ///
    /// # Panics
    /// Fewer than two marks.
    #[must_use]
    pub fn calls_of(&self, number: i32) -> BTreeMap<String, u64> {
        self.calls_by(&number.to_string())
    }

    /// Lines of the first and the last mark, and the thread that made them.
    fn marks(&self) -> (usize, &str, usize) {
        let marked: Vec<(usize, &str)> = self
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.contains(MARK))
            .filter_map(|(number, line)| Some((number, line.split_whitespace().next()?)))
            .collect();
        let [(first, thread), .., (last, _)] = marked[..] else {
            panic!("no two marks in the trace: {marked:?}")
        };
        (first, thread, last)
    }

    fn calls_by(&self, thread: &str) -> BTreeMap<String, u64> {
        let (first, _, last) = self.marks();
        let mut calls = BTreeMap::new();
        for line in &self.lines[first + 1..last] {
            // "1234  <... sendto resumed>) = 92" is already counted.
            let Some((by, call)) = line.split_once(char::is_whitespace) else { continue };
            let Some((name, rest)) = call.trim_start().split_once('(') else { continue };
            let name = if rest.contains("EAGAIN") { IN_VAIN } else { name };
            if by == thread && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_between_the_marks_are_counted_by_thread_and_name() {
        let lines = [
            "7  read(3, \"\", 1) = 0",
            "7  sched_yield() = 0",
            "8  clock_nanosleep(1, 1, ... <unfinished ...>",
            "7  sendto(4, \"\", 60) = 60",
            "8  <... clock_nanosleep resumed>) = 0",
            "7  recvfrom(4, 0x7f, 60) = -1 EAGAIN (Resource temporarily unavailable)",
            "71 openat(3) = 0",
            "7  sched_yield() = 0",
            "8  write(1, \"\", 1) = 1",
        ];
        let trace = Trace { lines: lines.map(str::to_owned).to_vec(), stdout: String::new() };
        let named =
            |calls: &[&str]| calls.iter().map(|name| ((*name).to_owned(), 1)).collect::<BTreeMap<_, _>>();
        assert_eq!(trace.calls(), named(&[IN_VAIN, "sendto"]));
        assert_eq!(trace.calls_of(8), named(&["clock_nanosleep"]));
    }
}
