//! Loads in processes of their own: `onbeat-measure load NAME`.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::Load;
use crate::{Context, Error};

/// Running loads, until this is dropped.
#[derive(Debug)]
pub struct Loads {
    running: Vec<RunningLoad>,
}

#[derive(Debug)]
struct RunningLoad {
    load: Load,
    child: Child,
    complaint: Receiver<String>,
}

impl Loads {
    /// Starts all loads, and waits until they are well under way.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start(context: &Context, loads: &[Load]) -> Result<Self, Error> {
        let mut all = Self { running: Vec::new() };
        for &load in loads {
            let mut command = Command::new(&context.programs.measure);
            command.args(["load", load.name(), "--with-parent"]).process_group(0);
            command.arg("--directory").arg(&context.directory);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().map_err(|error| Error::Process {
                command: format!("onbeat-measure load {}", load.name()),
                how: format!("cannot be started: {error}"),
            })?;
            let (tell, complaint) = mpsc::channel();
            if let Some(pipe) = child.stderr.take() {
                // Ends with the process, which the drop below ends.
                thread::spawn(move || {
                    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                        let _ = tell.send(line);
                    }
                });
            }
            all.running.push(RunningLoad { load, child, complaint });
        }
        if !loads.is_empty() {
            context.wait(UNDER_WAY);
        }
        Ok(all)
    }

    /// Loads that have ended by themselves, each with its output: the machine lacks a requirement.
    pub fn ended(&mut self) -> Vec<String> {
        let mut sentences = Vec::new();
        for it in &mut self.running {
            if !matches!(it.child.try_wait(), Ok(None)) {
                let why =
                    it.complaint.recv_timeout(UNDER_WAY).unwrap_or_else(|_| "without a word".to_owned());
                sentences.push(format!(
                    "the load {} ended: {}",
                    it.load.name(),
                    why.trim_start_matches("onbeat: ")
                ));
            }
        }
        sentences
    }
}

/// Work of loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Units a second, of all processes together.
    pub rate: f64,
    /// Name of the unit, in the plural.
    pub what: String,
}

impl Loads {
    /// Ends the loads; returns their work if they reported it.
    #[must_use]
    pub fn end(mut self) -> Option<Work> {
        for it in &self.running {
            let pid = i32::try_from(it.child.id()).ok().and_then(Pid::from_raw);
            // A process that has ended needs no signal.
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        }
        let begin = Instant::now();
        for it in &mut self.running {
            while matches!(it.child.try_wait(), Ok(None)) && begin.elapsed() < ORDERLY {
                thread::sleep(Duration::from_millis(5));
            }
            // A killed load reports no work.
            let _ = it.child.kill();
        }
        let works = self.running.iter_mut().filter_map(|it| {
            let mut told = String::new();
            it.child.stdout.take()?.read_to_string(&mut told).ok()?;
            Work::of(&told)
        });
        works.reduce(|all, it| Work { rate: all.rate + it.rate, ..all })
    }
}

impl Work {
    /// Work as a process reports it: `40 MiB copied in 0.5 s`.
    fn of(told: &str) -> Option<Self> {
        let (done, time) = told.trim().strip_suffix(" s")?.rsplit_once(" in ")?;
        let (count, what) = done.split_once(' ')?;
        let (count, seconds): (f64, f64) = (count.parse().ok()?, time.parse().ok()?);
        (seconds > 0.0).then(|| Self { rate: count / seconds, what: what.to_owned() })
    }
}

impl Drop for Loads {
    /// Kills them: their work is not read any more, and their files are unlinked. An orderly end of
    /// hundreds of threads would take seconds while a cycle takes most of the processor.
    fn drop(&mut self) {
        for it in &mut self.running {
            let _ = it.child.kill();
        }
        for it in &mut self.running {
            let _ = it.child.wait();
        }
    }
}

/// Longest wait for the loads to end by themselves, and to tell their work.
const ORDERLY: Duration = Duration::from_secs(5);

/// Time for a load to start.
const UNDER_WAY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_reported_as_a_rate() {
        let work = Work::of("40 MiB copied in 0.5 s\n").unwrap();
        assert_eq!(work, Work { rate: 80.0, what: "MiB copied".to_owned() });
        for told in ["", "no GPU", "40 MiB copied in 0 s", "x MiB copied in 1 s"] {
            assert_eq!(Work::of(told), None, "{told}");
        }
    }
}
