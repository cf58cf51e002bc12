//! Independent measuring programs, run in addition to ours to confirm our numbers.
//!
//! All are from rt-tests (<https://git.kernel.org/pub/scm/utils/rt-tests/rt-tests.git>, Debian:
//! rt-tests).

pub(crate) mod hand_over;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

/// Reason for a peer without numbers; a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoPeer(String);

impl fmt::Display for NoPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Standard output of `program` until it ends. It is killed when `stop` is set or after `timeout`.
///
/// # Errors
/// It is not installed, was refused a right, or took too long.
fn output_of(
    program: &str,
    arguments: &[String],
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<String, NoPeer> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Killed(command.spawn().map_err(|error| no_start(program, &error))?);
    let (out, err) = (child.0.stdout.take(), child.0.stderr.take());
    let begin = Instant::now();
    thread::scope(|scope| {
        let out = scope.spawn(move || text(out));
        let err = scope.spawn(move || text(err));
        let status = loop {
            match child.0.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) if stop.load(Ordering::Relaxed) => break Err("was stopped".to_owned()),
                Ok(None) if begin.elapsed() > timeout => {
                    break Err(format!("had not ended after {} s", timeout.as_secs()));
                }
                Ok(None) => thread::sleep(LOOK_AGAIN),
                Err(error) => break Err(error.to_string()),
            }
        };
        // Its pipes must close for the readers to end.
        drop(child);
        let said = |reader: thread::ScopedJoinHandle<'_, String>| reader.join().unwrap_or_default();
        let (out, err) = (said(out), said(err));
        match status {
            Ok(status) if status.success() => Ok(out),
            Ok(status) => Err(NoPeer(format!("{program} failed ({status}): {}", last_words(&err, &out)))),
            Err(why) => Err(NoPeer(format!("{program} {why}"))),
        }
    })
}

/// Time limit of a program that does something `times` times, one `interval` apart: twice that, and
/// half a minute.
fn timeout(interval: Duration, times: u64) -> Duration {
    let twice = u32::try_from(times.saturating_mul(2)).unwrap_or(u32::MAX);
    interval.saturating_mul(twice).saturating_add(Duration::from_secs(30))
}

/// Child process that does not outlive its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have exited already; either way it is gone afterwards.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn no_start(program: &str, error: &io::Error) -> NoPeer {
    NoPeer(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{program} is not installed (Debian: apt-get install rt-tests); its rows are missing")
        }
        _ => format!("{program} does not start: {error}"),
    })
}

fn text(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // The output read before an error is still used.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Last non-empty line of the errors, or else of the output.
fn last_words(err: &str, out: &str) -> String {
    let last = |text: &str| {
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(200).collect::<String>())
    };
    last(err).or_else(|| last(out)).unwrap_or_else(|| "it said nothing".into())
}

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cyclictest {
    /// `SCHED_FIFO` priority; `None` for the ordinary policy.
    pub(crate) priority: Option<u8>,
    /// CPU of its measuring thread.
    pub(crate) cpu: usize,
    /// Period, in whole microseconds.
    pub(crate) period: Duration,
    /// Number of wake-ups.
    pub(crate) cycles: u64,
}

impl Cyclictest {
    /// Runs it, and returns the wake-up latency of each cycle in nanoseconds.
    ///
    /// # Errors
    /// The reason for missing latencies.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Vec<u64>, NoPeer> {
        let printed = output_of("cyclictest", &self.arguments(), timeout(self.period, self.cycles), stop)?;
        let latencies = latencies(&printed);
        if latencies.is_empty() {
            return Err(NoPeer("cyclictest printed no latencies (expected lines as `0: 1: 2345`)".into()));
        }
        Ok(latencies)
    }

    /// Arguments: memory locked, every wake-up printed (`-v`), in nanoseconds (`-N`).
    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = ["-m", "-N", "-v", "-t1", "-d0"].map(String::from).into();
        arguments.push(format!("-a{}", self.cpu));
        if let Some(priority) = self.priority {
            arguments.push(format!("-p{priority}"));
        }
        arguments.push(format!("-i{}", self.period.as_micros().max(1)));
        arguments.push(format!("-l{}", self.cycles));
        arguments
    }
}

/// Parses the lines `thread: cycle: latency` of thread 0 and skips all others.
fn latencies(printed: &str) -> Vec<u64> {
    let latency = |line: &str| {
        let mut parts = line.split(':').map(str::trim);
        let (thread, cycle, latency) = (parts.next()?, parts.next()?, parts.next()?);
        cycle.parse::<u64>().ok()?;
        let latency = latency.parse::<i64>().ok()?;
        // A clock stepped back gives a negative latency, which is ignored.
        (thread == "0" && parts.next().is_none()).then(|| u64::try_from(latency).ok())?
    };
    printed.lines().filter_map(latency).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &str, arguments: &[&str], timeout: Duration) -> Result<String, NoPeer> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        output_of(program, &arguments, timeout, &AtomicBool::new(false))
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_its_package() {
        let why = run("onbeat-no-such-program", &[], Duration::from_secs(5)).unwrap_err().to_string();
        assert!(
            why.starts_with("onbeat-no-such-program is not installed (Debian: apt-get install rt-tests)")
        );
    }

    #[test]
    fn a_program_that_fails_is_quoted_and_one_that_hangs_is_killed() {
        let why = run("sh", &["-c", "echo first; echo no such luck >&2; exit 3"], Duration::from_secs(30));
        let why = why.unwrap_err().to_string();
        assert!(why.starts_with("sh failed (") && why.ends_with(": no such luck"), "{why}");
        let begin = Instant::now();
        let why = run("sleep", &["1000"], Duration::from_millis(50)).unwrap_err().to_string();
        assert!(why.starts_with("sleep had not ended after"), "{why}");
        assert!(begin.elapsed() < Duration::from_secs(100));
    }

    #[test]
    fn what_it_prints_is_what_is_read() {
        assert_eq!(run("echo", &["a", "b"], Duration::from_secs(30)), Ok("a b\n".into()));
    }

    /// Output of cyclictest 2.40 on Debian 12: `cyclictest -m -N -v -t1 -a0 -p80 -i1000 -l4`.
    const PRINTED: &str = "Max CPUs = 2\nOnline CPUs = 2\nUsing 1 cpus.\n\
        # /dev/cpu_dma_latency set to 0us\nThread 0 using cpu 0.\nThread 0 Interval: 1500\n       \
        0:       0:   20563\n       0:       1:   26083\n       0:       2:   18064\n       0:       3:  114675\n";

    #[test]
    fn cycles_are_read_and_all_else_is_not() {
        assert_eq!(latencies(PRINTED), [20_563, 26_083, 18_064, 114_675]);
    }

    #[test]
    fn garbage_gives_no_latencies() {
        for garbage in [
            "",
            "\u{0}\u{1b}[2A::::",
            "0:0",
            "0:0:",
            "0:0:x",
            "0:x:5",
            "1:0:5",
            "0:0:5:6",
            "0:0:-5",
            "T: 0 (1) P:80 C: 5 Min: 1",
            "0: 0: 99999999999999999999999999",
        ] {
            assert_eq!(latencies(garbage), [0_u64; 0], "{garbage:?}");
        }
    }

    #[test]
    fn cyclictest_gets_the_same_parameters_as_ours() {
        let asked =
            Cyclictest { priority: Some(80), cpu: 1, period: Duration::from_micros(250), cycles: 7 };
        assert_eq!(asked.arguments().join(" "), "-m -N -v -t1 -d0 -a1 -p80 -i250 -l7");
        let ordinary = Cyclictest { priority: None, ..asked };
        assert_eq!(ordinary.arguments().join(" "), "-m -N -v -t1 -d0 -a1 -i250 -l7");
    }
}
