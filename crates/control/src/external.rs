//! A controller in a separate process: requested in each cycle, and waited for until its deadline.
//!
//! | the answer | what follows |
//! |---|---|
//! | before the deadline | taken in this cycle |
//! | late, or none | positions extrapolate, others stay; a late answer is taken in the next cycle |
//! | late or none in [`Settings::max_late`] consecutive cycles | stop |
//! | wrong ([`Wrong`]), or the process is gone | stop |
//!
//! A stop is [`ControllerOutput::lost`]: supervision brings the axes to rest as the robot file's
//! `on_stale` says, and outputs follow theirs, until an answer comes before its deadline again,
//! from this process or another one. Nothing that the process does keeps the cycle beyond the
//! deadline, and set-points go through supervision as any controller's.
//!
//! A cycle that asks makes two system calls for it: a wake, and a wait if the answer is not there
//! yet.

mod axis;
mod process;
mod settings;

use std::time::Duration;

use ethercat::time::Instant;
use ipc::controller::{Answer, ControllerCounters, CycleEnd, Received, Request, Wrong};
use ipc::state::{self, ProcessState};
use motion::base::{Pose, Twist};
use motion::{Metres, Radians};
use types::{Value, ValueKind};

use crate::controller::{Controller, ControllerOutput, CycleInfo, ExternalCommand, Io};
use crate::signal::{SignalError, SignalState, Signals};
use axis::AxisTrack;
use rt::clock::{Clock, MonotonicClock};

pub use axis::ExternalAxis;
pub use process::{ControllerProcess, ProcessError};
pub use settings::{ProcessSettings, Refused, is_real_time};

/// Settings of a controller process.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Time from the release of a cycle to the deadline of its answer.
    pub deadline: Duration,
    /// Consecutive cycles without an answer before its deadline, after which the axes are stopped.
    pub max_late: u32,
    /// Axes of the robot, in their order; `None` for axes that the process does not move.
    pub axes: Vec<Option<ExternalAxis>>,
}

/// Way to a controller process.
pub trait Remote: Send {
    /// A request with space for all axes and signals.
    fn blank_request(&self) -> Request;

    /// An answer with space for all axes and outputs.
    fn blank_answer(&self) -> Answer;

    /// Reads the newest answer if it is newer than the last one.
    fn newest(&mut self, answer: &mut Answer) -> Received;

    /// Number of the process, each another one, as of the last [`Remote::newest`]; `None` while
    /// there is none.
    fn holder(&self) -> Option<u64>;

    /// Publishes a request and wakes the process.
    fn ask(&mut self, request: &Request);

    /// Waits for another answer, until `deadline` at most.
    fn wait(&mut self, deadline: Instant);

    /// Current time.
    fn now(&self) -> Instant;

    /// Publishes the counts.
    fn count(&self, counters: &ControllerCounters);
}

impl Remote for CycleEnd {
    fn blank_request(&self) -> Request {
        Self::blank_request(self)
    }

    fn blank_answer(&self) -> Answer {
        Self::blank_answer(self)
    }

    fn newest(&mut self, answer: &mut Answer) -> Received {
        Self::newest(self, answer)
    }

    fn holder(&self) -> Option<u64> {
        Self::holder(self)
    }

    fn ask(&mut self, request: &Request) {
        Self::ask(self, request);
    }

    fn wait(&mut self, deadline: Instant) {
        Self::wait(self, deadline.as_nanos());
    }

    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn count(&self, counters: &ControllerCounters) {
        self.counters().write(counters);
    }
}

/// A controller with set-points from another process.
#[derive(Debug)]
pub struct External<R> {
    remote: R,
    settings: Settings,
    axes: Vec<AxisTrack>,
    /// Kind of each output that it may set.
    kinds: Vec<Option<ValueKind>>,
    /// Values it has set.
    outputs: Vec<Option<Value>>,
    request: Request,
    answer: Answer,
    /// Output of the last answer.
    output: ControllerOutput,
    /// Cycle of its last call.
    called: Option<u64>,
    /// Last requested cycle.
    asked: Option<u64>,
    /// Last cycle with an answer that was read.
    taken: Option<u64>,
    holder: Option<u64>,
    late_in_a_row: u32,
    /// Its answers hold.
    is_fresh: bool,
    /// They did before.
    has_served: bool,
    /// The attached process has answered, in time, late or wrongly.
    has_answered: bool,
    responses: u64,
    response_sum: u64,
    counters: ControllerCounters,
}

/// Outcome of a poll of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Nothing,
    /// The answer to the requested cycle.
    InTime,
    /// The answer to a cycle before.
    Late,
    Wrong(Wrong, Option<usize>),
}

/// Outcome of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    InTime,
    Late,
    /// With the axis that the answer is wrong for.
    Wrong(Wrong, Option<usize>),
    /// There is no process.
    Absent,
}

impl<R: Remote> External<R> {
    /// For the process at the other end of `remote`.
    #[must_use]
    pub fn new(remote: R, settings: Settings) -> Self {
        let (request, answer) = (remote.blank_request(), remote.blank_answer());
        let signals = request.signals.len();
        Self {
            axes: vec![AxisTrack::default(); settings.axes.len()],
            kinds: vec![None; signals],
            outputs: vec![None; signals],
            remote,
            settings,
            request,
            answer,
            output: ControllerOutput::default(),
            called: None,
            asked: None,
            taken: None,
            holder: None,
            late_in_a_row: 0,
            is_fresh: false,
            has_served: false,
            has_answered: false,
            responses: 0,
            response_sum: 0,
            counters: ControllerCounters::default(),
        }
    }

    /// Asks, and waits for the answer until the deadline.
    fn serve(&mut self, cycle: u64, deadline: Instant) -> Served {
        let before = self.look(cycle);
        let holder = self.remote.holder();
        // The next process does not know where the one before had the axes: it finds them stopped.
        if std::mem::replace(&mut self.holder, holder) != holder || holder.is_none() {
            self.has_answered = false;
            return Served::Absent;
        }
        self.remote.ask(&self.request);
        self.asked = Some(cycle);
        if let Look::Wrong(why, axis) = before {
            return Served::Wrong(why, axis);
        }
        let asked = self.remote.now();
        for _ in 0..LOOKS {
            let now = match self.look(cycle) {
                Look::InTime => {
                    self.note_response(self.remote.now().since(asked));
                    return Served::InTime;
                }
                Look::Wrong(why, axis) => return Served::Wrong(why, axis),
                Look::Nothing | Look::Late => self.remote.now(),
            };
            if now >= deadline {
                break;
            }
            self.remote.wait(deadline);
        }
        Served::Late
    }

    /// Polls for an answer, and takes its valid parts.
    fn look(&mut self, cycle: u64) -> Look {
        let received = self.remote.newest(&mut self.answer);
        self.has_answered |= received != Received::Nothing;
        match received {
            Received::Nothing => return Look::Nothing,
            Received::Wrong(why) => return Look::Wrong(why, None),
            Received::Answer => {}
        }
        if let Err((why, axis)) = self.check() {
            return Look::Wrong(why, axis);
        }
        self.take();
        if self.answer.cycle == cycle {
            return Look::InTime;
        }
        self.counters.taken_late += 1;
        Look::Late
    }

    /// Checks an answer against the robot: it is taken whole or not at all.
    fn check(&self) -> Result<(), (Wrong, Option<usize>)> {
        let Answer { cycle, axes, outputs, .. } = &self.answer;
        if self.asked.is_none_or(|asked| *cycle > asked) || self.taken.is_some_and(|taken| *cycle <= taken)
        {
            return Err((Wrong::Cycle, None));
        }
        if (axes.len(), outputs.len()) != (self.axes.len(), self.kinds.len()) {
            return Err((Wrong::Rows, None));
        }
        for (index, (answer, settings)) in axes.iter().zip(&self.settings.axes).enumerate() {
            axis::check(answer, settings.as_ref()).map_err(|why| (why, Some(index)))?;
        }
        for (output, kind) in outputs.iter().zip(&self.kinds) {
            let Some(word) = *output else { continue };
            let kind = kind.ok_or((Wrong::Output, None))?;
            match value(word, kind) {
                Value::Real(number) if !number.is_finite() => return Err((Wrong::NotFinite, None)),
                Value::Bool(_) if word > 1 => return Err((Wrong::Code, None)),
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self) {
        let Answer { cycle, commanded, refused, clamped, base, axes, outputs } = &self.answer;
        self.taken = Some(*cycle);
        let ([x, y, yaw], [vx, vy, vyaw]) = (base.pose, base.twist);
        self.output = ControllerOutput {
            commanded: *commanded,
            refused: *refused,
            clamped: *clamped,
            pose: Pose { x: Metres(x), y: Metres(y), yaw: Radians(yaw) },
            twist: Twist::new(vx, vy, vyaw),
            ..ControllerOutput::default()
        };
        for (track, answer) in self.axes.iter_mut().zip(axes) {
            track.take(*cycle, answer);
        }
        for ((set, output), kind) in self.outputs.iter_mut().zip(outputs).zip(&self.kinds) {
            if let (Some(word), Some(kind)) = (*output, *kind) {
                *set = Some(value(word, kind));
            }
        }
    }

    /// Inputs of this cycle.
    fn fill(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        // The first call, and the first after another controller: set-points restart.
        let enters = self.called.replace(info.cycle) != info.cycle.checked_sub(info.periods);
        let request = &mut self.request;
        request.cycle = info.cycle;
        request.release_ns = info.release.as_nanos();
        request.deadline_ns = (info.release + self.settings.deadline).as_nanos();
        request.period_ns = types::time::nanoseconds(info.period);
        request.periods = info.periods;
        request.stopping = info.stopping;
        let (reports, commands) = io.split();
        let reports = reports.iter().zip(&*commands);
        let settings = self.settings.axes.iter();
        for ((track, settings), ((report, command), axis)) in
            self.axes.iter_mut().zip(settings).zip(reports.zip(&mut request.axes))
        {
            *axis = track.shown(info.cycle, report, command, enters, settings.as_ref());
        }
        for (signal, SignalState { value, fresh, forced }) in request.signals.iter_mut().zip(io.signals()) {
            *signal = state::Signal { word: value.word(), fresh, forced };
        }
    }

    /// True if there is something to stop: outputs of a robot without axes, or an axis that was not
    /// disabled.
    fn has_axes_in_use(&self) -> bool {
        self.axes.is_empty() || self.axes.iter().any(AxisTrack::is_in_use)
    }

    fn note(&mut self, served: Served, cycle: u64) {
        let held = self.is_fresh;
        let in_use = self.has_axes_in_use();
        let counters = &mut self.counters;
        match served {
            Served::InTime => {
                (self.late_in_a_row, self.is_fresh, self.has_served) = (0, true, true);
                counters.answered += 1;
            }
            Served::Late => {
                self.late_in_a_row = self.late_in_a_row.saturating_add(1);
                counters.late += 1;
                counters.last_late = cycle;
                counters.most_late_in_a_row = counters.most_late_in_a_row.max(self.late_in_a_row.into());
                self.is_fresh &= self.late_in_a_row < self.settings.max_late;
            }
            Served::Wrong(why, axis) => {
                self.is_fresh = false;
                counters.wrong += 1;
                counters.wrong_axis = axis.map_or(0, |axis| axis as u64 + 1);
                (counters.last_wrong, counters.why_wrong) = (cycle, why as u64);
            }
            Served::Absent => (self.late_in_a_row, self.is_fresh) = (0, false),
        }
        if held && !self.is_fresh {
            counters.stops += u64::from(in_use);
            self.axes.iter_mut().for_each(|track| track.freeze(cycle));
        }
        self.remote.count(&self.counters);
    }

    fn note_response(&mut self, took: Duration) {
        let took = types::time::nanoseconds(took);
        self.responses += 1;
        self.response_sum = self.response_sum.saturating_add(took);
        let spread = &mut self.counters.response_ns;
        spread.minimum = if self.responses == 1 { took } else { spread.minimum.min(took) };
        spread.maximum = spread.maximum.max(took);
        spread.mean = self.response_sum / self.responses;
    }
}

impl<R: Remote> Controller for External<R> {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        for (kind, found) in self.kinds.iter_mut().zip(signals.output_kinds()) {
            *kind = found;
        }
        Ok(())
    }

    fn command(&mut self, asked: &ExternalCommand) {
        self.request.command.clone_from(asked);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        // Refusals and clamps were reported in the previous cycle.
        (self.output.refused, self.output.clamped) = (None, None);
        self.fill(info, io);
        let deadline = info.release + self.settings.deadline;
        let served = self.serve(info.cycle, deadline);
        let overstay = self.remote.now().since(deadline).as_nanos();
        if served == Served::Late {
            let overstay = u64::try_from(overstay).unwrap_or(u64::MAX);
            self.counters.worst_overstay_ns = self.counters.worst_overstay_ns.max(overstay);
        }
        self.note(served, info.cycle);
        if self.is_fresh {
            for (place, value) in self.outputs.iter().enumerate() {
                if let Some(value) = *value {
                    io.set_at(place, value);
                }
            }
        }
        for ((track, settings), command) in self.axes.iter_mut().zip(&self.settings.axes).zip(io.commands())
        {
            if let Some(settings) = settings {
                track.command(info.cycle, settings, command);
            }
        }
    }

    fn output(&self) -> ControllerOutput {
        let lost = self.has_served && !self.is_fresh;
        let mut output =
            ControllerOutput { lost, left_in_use: lost && self.has_axes_in_use(), ..self.output };
        output.control.process = match self.holder {
            None => ProcessState::Absent,
            Some(_) if self.is_fresh => ProcessState::Answering,
            Some(_) if self.has_answered => ProcessState::Failing,
            Some(_) => ProcessState::Attached,
        };
        output
    }
}

fn value(word: u64, kind: ValueKind) -> Value {
    state::Signal { word, fresh: true, forced: false }.value(kind)
}

/// Polls per cycle: late answers, and spurious wakeups, must not prolong the wait without limit.
const LOOKS: usize = 16;
