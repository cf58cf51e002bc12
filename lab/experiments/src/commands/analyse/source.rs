//! Sources of the tasks.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use onbeat_experiments::runner;
use record::recording::is_text_recording;
use record::{CycleRecord, Recording};
use robot::task_set;
use schedulability::{Policy, Task, TaskSet};

use super::time;
use cli::failure::Failure;

/// Tasks, and what a reader must know of them.
pub(super) struct Source {
    pub(super) set: TaskSet,
    pub(super) notes: Vec<String>,
}

/// Reads a task set or a recorded run, whichever the file is.
pub(super) fn read(path: &Path, decided: task_set::Decided, margin: f64) -> Result<Source, Failure> {
    if is_recording(path) {
        return recorded(path, decided.policy, margin);
    }
    Ok(Source { set: task_set::read(path, decided)?, notes: Vec::new() })
}

fn is_recording(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = runner::open(path).and_then(|file| file.take(FIRST).read_to_end(&mut first));
    // Recordings of an earlier version and of other programs are refused with their reason.
    read.is_ok() && (first.starts_with(MCAP) || is_text_recording(&first))
}

/// First bytes of a file, by which it is recognised.
const FIRST: u64 = 32;

/// Beginning of an MCAP file.
const MCAP: &[u8] = b"\x89MCAP";

/// The cycle of a recorded run as a task: its longest execution time seen and a margin, its latest
/// start as jitter.
fn recorded(path: &Path, policy: Option<Policy>, margin: f64) -> Result<Source, Failure> {
    let file = path.display();
    let fail = |why: String| Failure::new(format!("{file}: {why}"));
    let opened = File::open(path).map_err(|error| fail(format!("cannot be read ({error})")))?;
    let recording = Recording::read(BufReader::new(opened)).map_err(|error| fail(error.to_string()))?;
    let (period, cycles) = record::cycles::cycles(&recording).map_err(&fail)?;
    let longest = |time: fn(&CycleRecord) -> u64| {
        cycles.iter().map(time).max().ok_or_else(|| fail("found no cycle, expected at least one".into()))
    };
    let execution = longest(|cycle| cycle.end_ns.saturating_sub(cycle.start_ns))?;
    let latency = longest(|cycle| cycle.start_ns.saturating_sub(cycle.release_ns))?;
    let with_margin = |ns: u64| (ns as f64 * (1.0 + margin)).ceil() as u64;
    let text = |name: &str| recording.header.facts.get(name).and_then(serde_json::Value::as_str);
    let name = text("robot").map_or_else(|| "cycle".to_owned(), |robot| format!("cycle of {robot}"));
    let mut task = Task::new(name, 99, period, with_margin(execution));
    task.jitter_ns = with_margin(latency);
    let mut notes = vec![format!(
        "measured over {} cycles: execution up to {}, started up to {} late; both taken {:.0} % longer. A measurement is \
         no proof that nothing takes longer",
        recording.len(),
        time(execution),
        time(latency),
        margin * 100.0
    )];
    if !recording.complete {
        notes.push("the recording was cut off: the cycles before that count".into());
    }
    let set = TaskSet { policy: policy.unwrap_or_default(), ..TaskSet::new(vec![task]) };
    Ok(Source { set, notes })
}
