//! Keeps the state that a robot needs after a restart, in the state directory, on a separate
//! thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use control::axis::AxisConfiguration;
use control::axis::memory::MemoryGate;
use control::bus::{PartNames, event};
use control::observer::{CycleEvent, Happening};
use control::signal::ForceEvent;
use ethercat::main_device::{Event, MainDevice};
use motion::supervision::StopReason;
use robot::RobotConfig;
use serde::{Deserialize, Serialize};

use crate::compose::names::part_names;
use crate::robot::Settings;
use crate::state::{AxisMemory, Folder, History, Kept, KeptKind, PositionMemory, StateError, unix_ms};
use crate::{Notice, Reporter};

/// State of a robot, open.
pub(super) struct KeptState {
    folder: Folder,
    history: History,
    memories: Vec<AxisMemory>,
    names: PartNames,
    sha256: Option<String>,
    /// Events of the start, still to be written.
    events: Vec<Kept>,
}

/// The run in progress, or the end of the last one.
#[derive(Debug, Serialize, Deserialize)]
struct LastRun {
    /// SHA-256 of the robot file.
    robot_file: Option<String>,
    /// It ended normally.
    ended: bool,
}

impl Settings {
    /// Opens the state of `robot`, if it is kept. A failure is reported in a sentence.
    pub(super) fn open_state(&self, robot: &RobotConfig, reporter: &mut dyn Reporter) -> Option<KeptState> {
        let directory = self.state.as_deref().filter(|_| !self.wire.is_fast())?;
        let is_simulated = self.wire.interface.is_none();
        let mut tell = |error: &StateError| reporter.notice(&Notice::State(error.to_string()));
        let folder = Folder::open(directory, &robot.name, is_simulated).inspect_err(&mut tell).ok()?;
        let history = History::read(&folder).inspect_err(&mut tell).unwrap_or_default();
        let last = folder.read::<LastRun>(RUN).inspect_err(&mut tell).ok().flatten();
        let sha256 = robot.sha256();
        let file = |sha256: &Option<String>| sha256.clone().unwrap_or_else(|| "built in".to_owned());
        let mut events = Vec::new();
        if let Some(last) = &last {
            if !last.ended {
                let sentence = "the run before did not end: it was killed, or the computer lost its power";
                events.push(Kept::now(KeptKind::NotEnded, sentence));
            }
            if last.robot_file != sha256 {
                let sentence = format!(
                    "the robot file was changed: SHA-256 {}, before {}",
                    file(&sha256),
                    file(&last.robot_file)
                );
                events.push(Kept::now(KeptKind::FileChanged, sentence));
            }
        }
        let sentence = format!("a run of \"{}\" began, robot file {}", robot.name, file(&sha256));
        events.push(Kept::now(KeptKind::RunBegan, sentence));
        let names = part_names(robot, self.wire.interface.clone());
        Some(KeptState { folder, history, memories: Vec::new(), names, sha256, events })
    }
}

/// Axes with `position_memory` and a state that cannot be kept: no position is known.
pub(super) fn forget(robot: &RobotConfig, axes: &mut [AxisConfiguration]) {
    for (_, configuration) in robot.axes.iter().zip(axes).filter(|(axis, _)| axis.position_memory) {
        let gate = Arc::new(MemoryGate::without_writer());
        configuration.memory =
            Some(control::axis::memory::PositionMemory { last: Err(StopReason::UnreferencedMemory), gate });
    }
}

impl KeptState {
    /// Gives the axes with `position_memory` the positions of the run before; their drives are in
    /// PreOp.
    pub(super) fn remember(
        &mut self,
        robot: &RobotConfig,
        main_device: &MainDevice,
        axes: &mut [AxisConfiguration],
        reporter: &mut dyn Reporter,
    ) {
        for (axis, configuration) in robot.axes.iter().zip(axes).filter(|(axis, _)| axis.position_memory) {
            let identity = main_device.sub_devices().get(axis.sub_device).map(|it| it.identity);
            let drive = identity.map_or([0; 3], |it| [it.vendor_id, it.product_code, it.serial]);
            let now = PositionMemory {
                drive,
                encoder: axis.encoder.map_or("unknown", robot::Encoder::name).to_owned(),
                scale: axis.scale_sha256(),
                at_rest: None,
            };
            let noise = axis.position_sense.tolerance.0 / 4.0 * axis.scale.counts_per_radian().abs();
            let (memory, of_cycle, error) =
                AxisMemory::open(&self.folder, &axis.name, now, noise.min(f64::from(i32::MAX)) as i64);
            error.iter().for_each(|error| reporter.notice(&Notice::State(error.to_string())));
            self.memories.push(memory);
            configuration.memory = Some(of_cycle);
        }
    }

    /// Counts a reset of faults at the start, of these axes; the count is on the disk when this
    /// returns.
    ///
    /// # Errors
    /// The reason that no more may be reset.
    pub(super) fn count_reset(&mut self, axes: &str) -> Result<(), String> {
        // Times that cannot be read are an error: the count is not known.
        let mut resets: Vec<u64> =
            self.folder.read(RESETS).map_err(|it| it.to_string())?.unwrap_or_default();
        let now = unix_ms();
        // One of the future is of a clock that was set back: it counts.
        resets.retain(|&at| now.saturating_sub(at) < RESETS_WITHIN_MS);
        if resets.len() >= MOST_RESETS {
            return Err(format!(
                "{} starts within ten minutes had a reset; find the cause, then `onbeat control reset`",
                resets.len()
            ));
        }
        resets.push(now);
        self.folder.write(RESETS, &resets).map_err(|it| it.to_string())?;
        let sentence = format!("{axes}: faults from before the start were reset (reset_faults)");
        self.events.push(Kept::now(KeptKind::FaultsReset, sentence));
        Ok(())
    }

    /// Keeps it from now on, on a separate thread.
    pub(super) fn start(self) -> Keeper {
        let Self { folder, history, memories, names, sha256, events } = self;
        let (tell, told) = mpsc::sync_channel(WAITING);
        let (complain, sentences) = mpsc::sync_channel(WAITING);
        let is_over = Arc::new(AtomicBool::new(false));
        let steps = Arc::new(AtomicU32::new(0));
        let last_complaint = String::new();
        let done = Arc::clone(&steps);
        let writer = Writer { folder, history, memories, sha256, complain, last_complaint, done };
        let over = Arc::clone(&is_over);
        let run = move || writer.run(events, &told, &over);
        let thread = thread::Builder::new().name("state".to_owned()).spawn(run).ok();
        Keeper { tell, sentences, is_over, steps, thread, names, causes: Causes::default() }
    }
}

/// Watches the events of a run for the thread that writes.
pub(super) struct Keeper {
    tell: SyncSender<Kept>,
    sentences: Receiver<String>,
    is_over: Arc<AtomicBool>,
    /// Number of files that were checked or written.
    steps: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
    names: PartNames,
    causes: Causes,
}

impl Keeper {
    /// Takes the events of the cycle.
    pub(super) fn see(&mut self, events: &[CycleEvent]) {
        for happened in events {
            if let Some(kept) = self.causes.see(happened, &self.names) {
                // A disk that is too slow loses details.
                let _ = self.tell.try_send(kept);
            }
        }
    }

    /// Reports failed writes.
    pub(super) fn look(&self, reporter: &mut dyn Reporter) {
        self.sentences.try_iter().for_each(|sentence| reporter.notice(&Notice::State(sentence)));
    }

    /// Has the rest written at the end of the cycle. The wait lasts as long as the disk makes
    /// progress.
    pub(super) fn finish(mut self, is_whole: bool, reporter: &mut dyn Reporter) {
        let sentence = match is_whole {
            true => "the run came to its end",
            false => "the thread of the cycle panicked",
        };
        let _ = self.tell.try_send(Kept::now(KeptKind::RunEnded, sentence));
        self.is_over.store(true, Ordering::Release);
        let (mut steps, mut since) = (self.steps.load(Ordering::Relaxed), Instant::now());
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() && since.elapsed() < END_TIME {
            thread::sleep(LOOK_EVERY / 4);
            let now = self.steps.load(Ordering::Relaxed);
            if now != steps {
                (steps, since) = (now, Instant::now());
            }
        }
        self.look(reporter);
        if !thread.is_finished() {
            let sentence = "the last events are not in the state directory yet: check its disk";
            reporter.notice(&Notice::State(sentence.to_owned()));
        }
    }
}

/// The thread that writes.
struct Writer {
    folder: Folder,
    history: History,
    memories: Vec<AxisMemory>,
    sha256: Option<String>,
    complain: SyncSender<String>,
    last_complaint: String,
    /// Counts checks and writes.
    done: Arc<AtomicU32>,
}

impl Writer {
    fn run(mut self, events: Vec<Kept>, told: &Receiver<Kept>, is_over: &AtomicBool) {
        self.mark(false);
        self.keep(events);
        loop {
            let over = is_over.load(Ordering::Acquire);
            let first = match told.recv_timeout(if over { Duration::ZERO } else { LOOK_EVERY }) {
                Ok(kept) => Some(kept),
                Err(RecvTimeoutError::Timeout) => None,
                // The run has panicked: its cycle may continue for a moment, but nothing is known
                // of it.
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let events: Vec<_> = first.into_iter().chain(told.try_iter()).collect();
            for place in 0..self.memories.len() {
                let memory = &mut self.memories[place];
                let looked = match over {
                    true => memory.finish(&self.folder),
                    false => memory.look(&self.folder),
                };
                self.note(looked);
            }
            self.keep(events);
            if over {
                self.mark(true);
                return;
            }
        }
    }

    fn keep(&mut self, events: Vec<Kept>) {
        if !events.is_empty() {
            let added = self.history.add(&self.folder, events);
            self.note(added);
        }
    }

    fn mark(&mut self, ended: bool) {
        let run = LastRun { robot_file: self.sha256.clone(), ended };
        let written = self.folder.write(RUN, &run);
        self.note(written);
    }

    /// Reports a failed write once.
    fn note(&mut self, result: Result<(), StateError>) {
        self.done.fetch_add(1, Ordering::Relaxed);
        let Err(error) = result else { return };
        let sentence = error.to_string();
        if sentence != self.last_complaint {
            let _ = self.complain.try_send(sentence.clone());
            self.last_complaint = sentence;
        }
    }
}

/// Finds the first cause of each stop.
#[derive(Default)]
struct Causes {
    /// The first of the latest events that may stop an axis: its time in ns, and its sentence.
    first: Option<(u64, String)>,
    /// Axes that are stopped.
    stopped: BTreeSet<usize>,
}

impl Causes {
    /// The event, if it is to be kept.
    fn see(&mut self, happened: &CycleEvent, names: &PartNames) -> Option<Kept> {
        let at_ns = happened.at.as_nanos();
        let sentence = || event(happened, names).map(|it| it.sentence);
        match &happened.what {
            &Happening::AxisStopped { axis, reason, .. } => {
                if !reason.is_latched() || reason == StopReason::Ending {
                    return None;
                }
                let is_first = self.stopped.is_empty();
                self.stopped.insert(axis);
                if !is_first {
                    return None;
                }
                let first = self.first.take().filter(|(at, _)| at_ns.saturating_sub(*at) <= TOGETHER_NS);
                let stop = sentence()?;
                let sentence = first.map_or_else(|| stop.clone(), |(_, first)| format!("{first}; {stop}"));
                Some(Kept::now(KeptKind::Stop, sentence))
            }
            Happening::AxisFreed { axis } => {
                self.stopped.remove(axis);
                None
            }
            Happening::SubDeviceLost { .. }
            | Happening::LinkFailed { .. }
            | Happening::DriveFault { .. }
            | Happening::Stalled { .. }
            | Happening::Interlock { allows: false, .. }
            | Happening::Bus(
                Event::Emergency { .. } | Event::StateChanged { .. } | Event::Reconfiguring { .. },
            ) => {
                let is_old =
                    self.first.as_ref().is_none_or(|(at, _)| at_ns.saturating_sub(*at) > TOGETHER_NS);
                if is_old && self.stopped.is_empty() {
                    self.first = sentence().map(|sentence| (at_ns, sentence));
                }
                None
            }
            Happening::Bus(Event::Failed(_)) => Some(Kept::now(KeptKind::Stop, sentence()?)),
            Happening::Requested { request } => {
                let kept = Kept::now(KeptKind::Request, sentence()?);
                Some(request.by.map_or(kept.clone(), |by| kept.by(by.user, by.process)))
            }
            Happening::Force(ForceEvent::Forced { by, .. }) => {
                Some(Kept::now(KeptKind::Forced, sentence()?).by(by.user, by.process))
            }
            Happening::PositionGiven { by, .. } => {
                Some(Kept::now(KeptKind::PositionGiven, sentence()?).by(by.user, by.process))
            }
            _ => None,
        }
    }
}

const RUN: &str = "run.json";

const RESETS: &str = "resets.json";

/// Starts with a reset within that time.
const MOST_RESETS: usize = 3;
const RESETS_WITHIN_MS: u64 = 10 * 60 * 1_000;

/// Polling interval of the writer thread: the longest time that an axis waits for it, plus the
/// disk's, before it is enabled.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Events and sentences that wait.
const WAITING: usize = 256;

/// Time that one file of the rest may take.
const END_TIME: Duration = Duration::from_secs(3);

/// Time within which events have one cause, ns.
const TOGETHER_NS: u64 = 2_000_000_000;
