//! Latency from an edge on a GPIO line, stamped by the kernel's interrupt handler, to user code,
//! and to the edge of the line that answers.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gpiocdev::line::{EdgeDetection, EdgeKind, EventClock, Value};
use gpiocdev::request::{Builder as RequestBuilder, Request};
use rt::clock::{Clock, MonotonicClock};
use rt::profile::{Granted, RealTimeProfile};

use crate::distribution::resident;

/// Line of a GPIO chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Device of the chip, for example `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// Offset of the line on the chip.
    pub offset: u32,
}

impl FromStr for Line {
    type Err = String;

    /// Parses `gpiochip0:17`, also with the whole path.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("found \"{text}\", expected a GPIO line as gpiochip0:17");
        let (chip, offset) = text.rsplit_once(':').ok_or_else(wrong)?;
        let offset = offset.parse().map_err(|_| wrong())?;
        if chip.is_empty() {
            return Err(wrong());
        }
        let chip =
            if chip.starts_with('/') { PathBuf::from(chip) } else { PathBuf::from("/dev").join(chip) };
        Ok(Self { chip, offset })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chip.display(), self.offset)
    }
}

/// Chips of this machine, and the remedy if there is none; a sentence for people.
pub(super) fn what_there_is() -> String {
    match gpiocdev::chip::chips().unwrap_or_default() {
        chips if chips.is_empty() => {
            "GPIO: this machine has no GPIO chip (/dev/gpiochip*): not measured.".into()
        }
        chips => {
            let names: Vec<String> = chips.iter().map(|chip| chip.display().to_string()).collect();
            format!(
                "GPIO: not measured, because no line was named. This machine has {}: wire an \
                 output to an input, and name both with --gpio-input CHIP:LINE --gpio-output \
                 CHIP:LINE; or an input alone, with edges from outside.",
                names.join(", ")
            )
        }
    }
}

/// Lines of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines<'a> {
    /// Input line; the experiment waits for its edges.
    pub(super) input: &'a Line,
    /// Line wired to it, which makes the edges, one per interval; without it they are waited for.
    pub(super) output: Option<&'a Line>,
    /// Line that is set to the level of the input after each edge, by the thread that waits for it.
    pub(super) answer: Option<&'a Line>,
    /// Line wired to the one that answers.
    pub(super) observe: Option<&'a Line>,
}

/// Edges of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges {
    /// From the kernel's stamp on an edge to user code, ns.
    pub(super) latencies: Vec<u64>,
    /// From the kernel's stamp on an edge to its stamp on that of the answer, ns.
    pub(super) reactions: Vec<u64>,
    /// Settings refused.
    pub(super) refusals: Vec<String>,
}

/// Edge of the input: the kernel's stamp, ns, and the level after it.
type Edge = (u64, bool);

/// Edge of an answer: the kernel's count of them on this line, from 1, and its stamp, ns.
type Answer = (u32, u64);

/// Measures `samples` edges.
///
/// # Errors
/// A line cannot be requested; it is named.
pub(super) fn measure(
    lines: Lines<'_>,
    samples: usize,
    interval: Duration,
    profile: &RealTimeProfile,
    stop: &AtomicBool,
) -> Result<Edges, String> {
    let edges = stamped(lines.input)?;
    let [driven, answer] = [lines.output, lines.answer].map(|line| line.map(output).transpose());
    let (driven, answer) = (driven?, answer?);
    let observed = lines.observe.map(stamped).transpose()?;
    let over = AtomicBool::new(false);
    let spawned = |error| format!("GPIO: a thread: {error}");
    thread::scope(|scope| {
        let watching = thread::Builder::new().name("gpio".into());
        let watching = watching
            .spawn_scoped(scope, || watch(&edges, answer.as_ref(), samples, profile, &over))
            .map_err(spawned)?;
        let answers = observed.as_ref().map(|observed| {
            let observing = thread::Builder::new().name("gpio answers".into());
            observing.spawn_scoped(scope, || see_answers(observed, samples, &over)).map_err(spawned)
        });
        let driven = driven.as_ref().map_or(Ok(()), |driven| drive(driven, samples, interval, stop));
        let begin = Instant::now();
        // Wait for the last edges, or for external ones: their expected duration, and a second.
        let timeout =
            interval.saturating_mul(u32::try_from(samples).unwrap_or(u32::MAX)) + Duration::from_secs(1);
        while !watching.is_finished() && begin.elapsed() < timeout && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
        let watched = join(watching);
        let answers = answers.transpose()?.map(join).transpose()?.unwrap_or_default();
        driven?;
        let (seen, edges) = watched?;
        Ok(Edges { reactions: reactions(&seen, &answers), ..edges })
    })
}

fn request(line: &Line) -> RequestBuilder {
    let mut builder = Request::builder();
    builder.on_chip(&line.chip).with_consumer("onbeat measure").with_line(line.offset);
    builder
}

fn stamped(line: &Line) -> Result<Request, String> {
    let mut builder = request(line);
    builder.with_edge_detection(EdgeDetection::BothEdges).with_event_clock(EventClock::Monotonic);
    builder.request().map_err(|error| format!("GPIO line {line}: {error}"))
}

fn output(line: &Line) -> Result<Request, String> {
    let request = request(line).as_output(Value::Inactive).request();
    request.map_err(|error| format!("GPIO line {line}: {error}"))
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn drive(line: &Request, samples: usize, interval: Duration, stop: &AtomicBool) -> Result<(), String> {
    for edge in 0..samples {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(interval);
        line.set_lone_value(level(edge % 2 == 0)).map_err(|error| format!("GPIO output: {error}"))?;
    }
    Ok(())
}

fn level(up: bool) -> Value {
    if up { Value::Active } else { Value::Inactive }
}

/// Waits for the edges of the input, and answers each.
fn watch(
    edges: &Request,
    answer: Option<&Request>,
    samples: usize,
    profile: &RealTimeProfile,
    over: &AtomicBool,
) -> Result<(Vec<Edge>, Edges), String> {
    let granted = Granted::ask(profile);
    let failed = |error| format!("GPIO input: {error}");
    let mut latencies = resident(samples);
    let mut seen: Vec<Edge> = vec![(u64::MAX, false); samples];
    std::hint::black_box(&mut seen).clear();
    while latencies.len() < samples && !over.load(Ordering::Relaxed) {
        if edges.wait_edge_event(LOOK).map_err(failed)? {
            let event = edges.read_edge_event().map_err(failed)?;
            let now = MonotonicClock.now().as_nanos();
            let up = event.kind == EdgeKind::Rising;
            if let Some(answer) = answer {
                answer.set_lone_value(level(up)).map_err(|error| format!("GPIO answer: {error}"))?;
            }
            latencies.push(now.saturating_sub(event.timestamp_ns));
            seen.push((event.timestamp_ns, up));
        }
    }
    let refusals = granted.refusals().collect();
    Ok((seen, Edges { latencies, refusals, ..Edges::default() }))
}

/// Takes the stamps of the answers' edges until no more come.
fn see_answers(line: &Request, samples: usize, over: &AtomicBool) -> Result<Vec<Answer>, String> {
    let failed = |error| format!("GPIO answers: {error}");
    let mut seen = Vec::with_capacity(samples);
    loop {
        // All that has come is read before the end.
        let ends = over.load(Ordering::Relaxed);
        if line.wait_edge_event(LOOK).map_err(failed)? {
            let event = line.read_edge_event().map_err(failed)?;
            seen.push((event.line_seqno, event.timestamp_ns));
        } else if ends {
            return Ok(seen);
        }
    }
}

/// Longest wait for an edge before a thread looks for the end.
const LOOK: Duration = Duration::from_millis(100);

/// Times from edges to the edges of their answers. The answering line, low at first, has an edge
/// where the input's level differs from before.
fn reactions(edges: &[Edge], answers: &[Answer]) -> Vec<u64> {
    let mut reactions = Vec::new();
    let (mut answers, mut last, mut count) = (answers.iter().peekable(), false, 0);
    for &(stamp, up) in edges.iter() {
        if up == std::mem::replace(&mut last, up) {
            continue;
        }
        count += 1;
        while answers.next_if(|(number, _)| *number < count).is_some() {}
        let answer = answers.next_if(|(number, _)| *number == count);
        reactions.extend(answer.and_then(|(_, answered)| answered.checked_sub(stamp)));
    }
    reactions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_what_is_none_is_refused() {
        let line: Line = "gpiochip0:17".parse().unwrap();
        assert_eq!(line, Line { chip: "/dev/gpiochip0".into(), offset: 17 });
        assert_eq!("/dev/gpiochip3:4".parse::<Line>().unwrap().to_string(), "/dev/gpiochip3:4");
        for wrong in ["", ":", "gpiochip0", "gpiochip0:", ":3", "gpiochip0:x", "gpiochip0:-1"] {
            assert!(wrong.parse::<Line>().unwrap_err().contains("expected a GPIO line"), "{wrong}");
        }
    }

    #[test]
    fn a_chip_that_is_not_there_is_named() {
        let input = &Line { chip: "/dev/gpiochip999".into(), offset: 1 };
        let lines = Lines { input, output: None, answer: None, observe: None };
        let measured =
            measure(lines, 1, Duration::ZERO, &RealTimeProfile::ORDINARY, &AtomicBool::new(false));
        assert!(measured.unwrap_err().starts_with("GPIO line /dev/gpiochip999:1: "));
    }

    #[test]
    fn answers_are_matched_by_the_kernels_count_of_their_edges() {
        let edges = [(100, true), (200, false), (300, true), (400, true), (500, false), (600, true)];
        // The third edge of the answers found no room; at 400 the level was the same, an edge
        // before it was lost.
        let answers = [(1, 110), (2, 230), (4, 550), (5, 661)];
        assert_eq!(reactions(&edges, &answers), [10, 30, 50, 61]);
        assert_eq!(reactions(&edges, &[]), [0; 0]);
        // The line was up at the start: its first edge is down, which the answer is already.
        assert_eq!(reactions(&[(100, false), (200, true)], &[(1, 207)]), [7]);
    }
}
