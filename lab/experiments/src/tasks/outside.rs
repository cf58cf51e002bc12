//! Outputs that tasks toggle, up at the start of a job and down at its end, and when they did as
//! seen from outside (controllers paper, Figure 7).
//!
//! An output is a frame over a private cable, which the kernel stamps as it arrives at the other
//! end, or a GPIO line: then another one, wired to it, stamps its edges, or an instrument looks at
//! it.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, EdgeKind, EventClock, Value};

use crate::Error;
use crate::cable::{Cable, FAR, NEAR, Room};
use crate::interrupt::Line;
use crate::interrupt::frames::{FRAME, build, number};
use crate::sys::stamped::StampedSocket;

/// Outputs that tasks toggle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Toggle {
    /// None.
    #[default]
    Nothing,
    /// A frame for each edge, over a private cable.
    Frames,
    /// A GPIO line for each task.
    Lines {
        /// Lines that the tasks drive, in the order of the tasks.
        outputs: Vec<Line>,
        /// Lines wired to them, in the same order; none if an instrument looks at them.
        inputs: Vec<Line>,
    },
}

/// Lines in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines(pub Vec<Line>);

impl FromStr for Lines {
    type Err = String;

    /// Parses `gpiochip0:17,gpiochip0:18`.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(Line::from_str).collect::<Result<_, _>>().map(Self)
    }
}

impl Toggle {
    /// Output that toggles, and input that looks at it; `None` without an output.
    pub(super) fn words(&self) -> Option<String> {
        let names = |lines: &[Line]| lines.iter().map(Line::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Nothing => None,
            Self::Frames => Some(
                "a frame at the start and at the end of each job over a private veth cable, stamped by the kernel as it arrives \
                 at the other end"
                    .into(),
            ),
            Self::Lines { outputs, inputs } if inputs.is_empty() => {
                Some(format!("GPIO lines {}, looked at by an instrument", names(outputs)))
            }
            Self::Lines { outputs, inputs } => Some(format!(
                "GPIO lines {}, with edges stamped by the kernel on {}",
                names(outputs),
                names(inputs)
            )),
        }
    }

    /// True if this program sees the edges, too.
    pub(super) fn is_seen(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Frames => true,
            Self::Lines { inputs, .. } => !inputs.is_empty(),
        }
    }

    /// Opens the outputs of tasks with so many jobs each, and begins to look at them.
    ///
    /// # Errors
    /// Another number of lines than of tasks, a line that is refused, or no right to lay a cable.
    pub(super) fn open(&self, jobs: &[usize]) -> Result<(Vec<Box<dyn Output>>, Watch), Error> {
        match self {
            Self::Nothing => Ok((jobs.iter().map(|_| Box::new(Nothing) as _).collect(), Watch::default())),
            Self::Frames => frames(jobs),
            Self::Lines { outputs, inputs } => lines(outputs, inputs, jobs),
        }
    }
}

/// Output of one task.
pub(super) trait Output: Send {
    /// Sets it, at the start or the end of this job.
    ///
    /// # Errors
    /// The operating system's error.
    fn set(&mut self, job: usize, up: bool) -> io::Result<()>;
}

struct Nothing;

impl Output for Nothing {
    fn set(&mut self, _job: usize, _up: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Stamps of the edges up and down of each job, ns of one clock; 0 for one that was not seen.
pub(super) type Edges = Vec<[u64; 2]>;

/// Threads that see the edges.
#[derive(Default)]
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    watching: Vec<JoinHandle<Result<Vec<Edges>, String>>>,
    _cable: Option<Cable>,
}

impl Watch {
    /// Ends them; the edges of each task that were seen.
    ///
    /// # Errors
    /// A line or a socket failed.
    pub(super) fn finish(mut self) -> Result<Vec<Edges>, Error> {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for watching in self.watching.drain(..) {
            let seen = watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.extend(seen.map_err(Error::other)?);
        }
        Ok(all)
    }

    fn watch(
        &mut self,
        see: impl FnOnce(&AtomicBool) -> Result<Vec<Edges>, String> + Send + 'static,
    ) -> Result<(), Error> {
        let over = Arc::clone(&self.over);
        let spawned = thread::Builder::new().name("outside".into()).spawn(move || see(&over));
        self.watching.push(spawned.map_err(Error::other)?);
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Longest wait of a watching thread before it looks for the end.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of frames that wait to be read: some seconds of them.
const ROOM: usize = 8 << 20;

fn frames(jobs: &[usize]) -> Result<(Vec<Box<dyn Output>>, Watch), Error> {
    let cable = Cable::lay()?;
    let open = |room: &Room, name: &'static str| {
        room.within(move || {
            let failed = |error| Error::other(format_args!("{name}: {error}"));
            StampedSocket::open(name, LOOK).map_err(failed)
        })
    };
    let outputs = (0..jobs.len()).map(|task| {
        let socket = open(&cable.near, NEAR)?;
        Ok(Box::new(Frames { task, socket, buffer: [0; FRAME] }) as Box<dyn Output>)
    });
    let outputs = outputs.collect::<Result<_, Error>>()?;
    let far = open(&cable.far, FAR)?;
    far.make_room(ROOM);
    let seen: Vec<Edges> = jobs.iter().map(|jobs| vec![[0; 2]; *jobs]).collect();
    let mut watch = Watch { over: Arc::default(), watching: Vec::new(), _cable: Some(cable) };
    watch.watch(move |over| see_frames(far, seen, over).map_err(|error| format!("the cable: {error}")))?;
    Ok((outputs, watch))
}

struct Frames {
    task: usize,
    socket: StampedSocket,
    buffer: [u8; FRAME],
}

/// Number of an edge: task, job, and which of the two.
fn edge(task: usize, job: usize, up: bool) -> u64 {
    (task as u64) << 48 | (job as u64) << 1 | u64::from(!up)
}

impl Output for Frames {
    fn set(&mut self, job: usize, up: bool) -> io::Result<()> {
        let length = build(&mut self.buffer, edge(self.task, job, up));
        self.socket.send(&self.buffer[..length])
    }
}

fn see_frames(mut far: StampedSocket, mut seen: Vec<Edges>, over: &AtomicBool) -> io::Result<Vec<Edges>> {
    let mut buffer = [0; FRAME];
    loop {
        // All that has come is read before the end.
        let ends = over.load(Ordering::Relaxed);
        let Some(arrival) = far.receive(&mut buffer)? else {
            if ends {
                return Ok(seen);
            }
            continue;
        };
        let edge = number(&buffer[..arrival.length.min(FRAME)]);
        if let Some((edge, stamp)) = edge.zip(arrival.stamp_ns) {
            let (task, job) = ((edge >> 48) as usize, (edge >> 1 & ((1 << 47) - 1)) as usize);
            if let Some(job) = seen.get_mut(task).and_then(|edges| edges.get_mut(job)) {
                job[(edge & 1) as usize] = stamp;
            }
        }
    }
}

fn lines(
    outputs: &[Line],
    inputs: &[Line],
    jobs: &[usize],
) -> Result<(Vec<Box<dyn Output>>, Watch), Error> {
    for (lines, what) in [(outputs, "toggled"), (inputs, "observed")] {
        if lines.len() != jobs.len() && !(lines.is_empty() && what == "observed") {
            return Err(Error::other(format_args!(
                "{} GPIO lines to be {what}, expected {}, one for each task in the order of the set",
                lines.len(),
                jobs.len()
            )));
        }
    }
    let refused = |line: &Line, error| Error::other(format_args!("GPIO line {line}: {error}"));
    let request = |line: &Line| {
        let mut builder = Request::builder();
        builder.on_chip(&line.chip).with_consumer("onbeat measure").with_line(line.offset);
        builder
    };
    let driven = outputs.iter().map(|line| {
        let driven = request(line).as_output(Value::Inactive).request();
        driven
            .map(|driven| Box::new(Driven(driven)) as Box<dyn Output>)
            .map_err(|error| refused(line, error))
    });
    let driven = driven.collect::<Result<_, Error>>()?;
    let mut watch = Watch::default();
    for (line, jobs) in inputs.iter().zip(jobs.iter().copied()) {
        let edges = request(line)
            .with_edge_detection(EdgeDetection::BothEdges)
            .with_event_clock(EventClock::Monotonic)
            .request()
            .map_err(|error| refused(line, error))?;
        let name = line.to_string();
        watch.watch(move |over| {
            see_edges(&edges, jobs, over)
                .map(|edges| vec![edges])
                .map_err(|error| format!("GPIO line {name}: {error}"))
        })?;
    }
    Ok((driven, watch))
}

struct Driven(Request);

impl Output for Driven {
    fn set(&mut self, _job: usize, up: bool) -> io::Result<()> {
        let value = if up { Value::Active } else { Value::Inactive };
        self.0.set_lone_value(value).map_err(io::Error::other)
    }
}

fn see_edges(line: &Request, jobs: usize, over: &AtomicBool) -> gpiocdev::Result<Edges> {
    let mut seen = vec![[0; 2]; jobs];
    loop {
        let ends = over.load(Ordering::Relaxed);
        if !line.wait_edge_event(LOOK)? {
            if ends {
                return Ok(seen);
            }
            continue;
        }
        let event = line.read_edge_event()?;
        // The line's own count, from 1: it includes dropped events.
        let job = (event.line_seqno.saturating_sub(1) / 2) as usize;
        if let Some(job) = seen.get_mut(job) {
            job[usize::from(event.kind == EdgeKind::Falling)] = event.timestamp_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_over_a_cable_are_seen_by_task_and_job_in_their_order() {
        if let Err(error) = Cable::lay() {
            return testkit::skip!("{error}");
        }
        let (mut outputs, watch) = Toggle::Frames.open(&[3, 2]).unwrap();
        for job in 0..2 {
            for output in &mut outputs {
                output.set(job, true).unwrap();
                output.set(job, false).unwrap();
            }
        }
        let seen = watch.finish().unwrap();
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
        let order = [seen[0][0], seen[1][0], seen[0][1], seen[1][1]].concat();
        assert!(order[0] > 0 && order.is_sorted(), "{seen:?}");
        assert_eq!(seen[0][2], [0; 2], "a job that did not come was not seen");
    }

    #[test]
    fn each_task_has_a_line_and_a_missing_one_is_named() {
        let Lines(lines) = "gpiochip999:1,/dev/gpiochip999:2".parse().unwrap();
        assert_eq!(lines.len(), 2);
        assert!("gpiochip0:1,x".parse::<Lines>().unwrap_err().contains("expected a GPIO line"));
        let refused = |outputs: &[Line], inputs: &[Line]| {
            let toggle = Toggle::Lines { outputs: outputs.to_vec(), inputs: inputs.to_vec() };
            toggle.open(&[1, 1]).err().unwrap().to_string()
        };
        assert_eq!(
            refused(&lines[..1], &[]),
            "1 GPIO lines to be toggled, expected 2, one for each task in the order of the set"
        );
        let expected = "1 GPIO lines to be observed, expected 2, one for each task in the order of the set";
        assert_eq!(refused(&lines, &lines[..1]), expected);
        assert!(refused(&lines, &[]).starts_with("GPIO line /dev/gpiochip999:1: "));
    }
}
