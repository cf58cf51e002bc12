//! Requests from the ports `control` and `stop`, one of which may take more than a cycle.

use control::controller::{AxisCommand, AxisReport, ClientRequest, CycleInfo};
use ethercat::cia402::State;
use ipc::message::control::{Action, Refusal, Reply, Request, SIZE};
use ipc::state::{InputLevel, ProcessState};
use motion::supervision::StopReason;
use motion::{AxisPhase, Seconds};

use super::rest::{MemberHold, SILENCE, is_silent};
use super::{ControllerManager, HomedBy, NONE, STANDING_CYCLES, elapsed, id_of, is_in_fault, is_latched};

/// Origin of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct From {
    /// Index of its port in the manager.
    port: usize,
    /// Id of the request.
    id: u64,
}

/// A request in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Job {
    pub(super) from: From,
    pub(super) doing: Doing,
    /// Cycles since the start of this step, and that time.
    pub(super) cycles: u32,
    pub(super) since: Seconds,
    /// Time for which the answers of the process have been late or wrong.
    fails: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// No process is attached for the active controller yet.
    AwaitingProcess,
    Enabling,
    /// The axes stop before they are disabled.
    Disabling,
    /// The axes are at standstill; the drives are being disabled.
    SteppingDown,
    Stopping,
    /// The axes stop before no controller is active.
    Deactivating,
    Resetting,
    /// `begun`: the drive has been seen homing, or the place of the axis was taken, which was taken
    /// `before` times before.
    Homing {
        axis: usize,
        begun: bool,
        before: u32,
    },
    /// The axes are brought to the modes of this controller.
    Switching {
        to: usize,
    },
}

impl Doing {
    /// The request, if it readies axes.
    fn action(self) -> Option<Action> {
        match self {
            Self::AwaitingProcess | Self::Enabling => Some(Action::Enable),
            Self::Resetting => Some(Action::ResetFaults),
            Self::Homing { axis, .. } => u32::try_from(axis).ok().map(Action::Home),
            _ => None,
        }
    }

    pub(super) const fn enables(self) -> bool {
        matches!(self, Self::AwaitingProcess | Self::Enabling)
    }

    pub(super) const fn brings_to_rest(self) -> bool {
        matches!(self, Self::Stopping | Self::Disabling | Self::Deactivating)
    }
}

impl ControllerManager {
    /// Takes requests from the ports, first requests that stop the axes.
    pub(super) fn take_requests(&mut self, info: &CycleInfo, commands: &[AxisCommand]) {
        for place in (0..self.control.len()).rev() {
            for _ in 0..REQUESTS_A_CYCLE {
                if !self.take_request(place, info, commands) {
                    break;
                }
            }
        }
    }

    /// Takes one request, if there is one.
    fn take_request(&mut self, place: usize, info: &CycleInfo, commands: &[AxisCommand]) -> bool {
        let mut buffer = [0; SIZE + 1];
        let Some(length) = self.control[place].receive(&mut buffer) else { return false };
        let bytes = &buffer[..length.min(buffer.len())];
        let from = |id| From { port: place, id };
        match Request::decode(bytes) {
            Ok(Request { what, id }) if place == STOPS && !what.brings_to_rest() => {
                self.reply(from(id), Err(Refusal::NotPossible));
            }
            Ok(Request { what, id }) => {
                if let Some(outcome) = self.begin(what, from(id), info, commands) {
                    self.note_refusal(what, place, outcome, info.cycle);
                    self.reply(from(id), outcome);
                }
            }
            Err(_) => self.reply(from(id_of(bytes)), Err(Refusal::Malformed)),
        }
        true
    }

    /// Has a refusal reported; the same one again only after a while.
    fn note_refusal(&mut self, what: Action, port: usize, outcome: Result<(), Refusal>, cycle: u64) {
        let Err(why) = outcome else { return };
        let is_new = |(last, at)| last != why || cycle.saturating_sub(at) >= SAME_REFUSAL;
        if self.refused.is_none_or(is_new) {
            self.refused = Some((why, cycle));
            let by = self.control.get(port).and_then(|port| port.client());
            let forbids = self.shown.iter().find(|it| is_forbidden(it)).and_then(|it| it.interlock);
            let interlock = forbids.filter(|_| why == Refusal::Interlock);
            self.request = Some(ClientRequest { what, by, refused: Some(why), interlock });
        }
    }

    pub(super) fn reply(&mut self, from: From, outcome: Result<(), Refusal>) {
        let mut buffer = [0; SIZE];
        let From { port, id } = from;
        if let (Some(port), Ok(length)) =
            (self.control.get_mut(port), Reply { id, outcome }.encode(&mut buffer))
        {
            // A full port counts the message; no client reads it.
            let _ = port.send(&buffer[..length]);
        }
    }

    /// Starts a request; returns the reply, if it is due at once.
    fn begin(
        &mut self,
        what: Action,
        from: From,
        cycle: &CycleInfo,
        commands: &[AxisCommand],
    ) -> Option<Result<(), Refusal>> {
        if cycle.stopping {
            return Some(Err(Refusal::Stopping));
        }
        let doing = match what {
            Action::Stop => Doing::Stopping,
            Action::Disable => Doing::Disabling,
            Action::Deactivate => Doing::Deactivating,
            Action::SwitchController(index) if index as usize >= self.members.len() => {
                return Some(Err(Refusal::NoSuchController));
            }
            Action::Home(axis) if axis as usize >= self.axes.len() => {
                return Some(Err(Refusal::NoSuchAxis));
            }
            _ if self.job.is_some() => return Some(Err(Refusal::Busy)),
            Action::Enable if self.bar().is_some() => return self.bar().map(Err),
            Action::Enable if self.process() == ProcessState::Absent => Doing::AwaitingProcess,
            Action::Enable => Doing::Enabling,
            Action::ResetFaults => Doing::Resetting,
            Action::SwitchController(index) if index as usize == self.active => {
                self.hold = MemberHold::default();
                return Some(Ok(()));
            }
            Action::SwitchController(_) if !self.stands() => return Some(Err(Refusal::Moving)),
            Action::SwitchController(index) if self.changes_modes => {
                self.leave(commands);
                Doing::Switching { to: index as usize }
            }
            Action::SwitchController(index) => {
                self.leave(commands);
                self.enter(index as usize);
                return Some(Ok(()));
            }
            Action::Home(axis) if self.axes[axis as usize].homing == HomedBy::Nobody => {
                return Some(Err(Refusal::NotPossible));
            }
            Action::Home(axis) if self.is_powerless(axis as usize) => {
                return Some(Err(Refusal::NotEnabled));
            }
            Action::Home(_) if !self.stands() => return Some(Err(Refusal::Moving)),
            Action::Home(axis) => {
                let axis = axis as usize;
                Doing::Homing { axis, begun: false, before: self.shown[axis].homed_by_hand }
            }
        };
        if let Some(job) = self.job.take() {
            self.withhold(&job);
            self.reply(job.from, Err(Refusal::Replaced));
        }
        match doing {
            Doing::Enabling => self.permit(),
            Doing::Resetting => {
                self.note_off();
                self.hold = MemberHold::default();
            }
            _ => {}
        }
        let by = self.control.get(from.port).and_then(|port| port.client());
        self.request = Some(ClientRequest { what, by, refused: None, interlock: None });
        self.job = Some(Job { from, doing, cycles: 0, since: Seconds::ZERO, fails: Seconds::ZERO });
        None
    }

    /// Reason for which no drive may be enabled.
    fn bar(&self) -> Option<Refusal> {
        let fault = self.shown.iter().any(is_in_fault).then_some(Refusal::Fault);
        fault.or_else(|| self.shown.iter().any(is_forbidden).then_some(Refusal::Interlock))
    }

    /// The drives may be enabled.
    fn permit(&mut self) {
        self.enabled = true;
        self.off.fill(false);
        self.withheld.fill(false);
        self.hold = MemberHold::default();
    }

    /// The active controller drops its motion; set-points continue from its last.
    fn leave(&mut self, commands: &[AxisCommand]) {
        self.leave_trajectory();
        for (last, command) in self.last.iter_mut().zip(commands) {
            *last = command.setpoint;
        }
    }

    fn enter(&mut self, index: usize) {
        self.hold = MemberHold::default();
        self.active = index;
        self.entering = true;
    }

    /// True if an axis is homed by its drive and that drive is powerless.
    fn is_powerless(&self, axis: usize) -> bool {
        let enabled = self.enabled && self.shown[axis].state == Some(State::OperationEnabled);
        self.axes[axis].homing == HomedBy::Drive && !enabled
    }

    /// Advances the request in progress; replies when it is done.
    pub(super) fn pursue(&mut self, info: &CycleInfo, reports: &[AxisReport]) {
        let Some(mut job) = self.job else { return };
        job.cycles = job.cycles.saturating_add(1);
        job.since += elapsed(info);
        let process = self.process();
        job.fails =
            if process == ProcessState::Failing { job.fails + elapsed(info) } else { Seconds::ZERO };
        self.job = Some(job);
        let is_switching = matches!(job.doing, Doing::Switching { .. });
        let late = job.since > if is_switching { MODE_TIMEOUT } else { TIMEOUT };
        // Requests to drives take effect some cycles later.
        let settled = job.cycles > ANSWER_CYCLES;
        let outcome = match job.doing {
            // A process that has just attached is seen one cycle later.
            Doing::AwaitingProcess if process == ProcessState::Absent => {
                (job.since > HELD).then_some(Err(Refusal::NoProcess))
            }
            Doing::AwaitingProcess if self.bar().is_some() => self.bar().map(Err),
            Doing::AwaitingProcess => {
                self.permit();
                // Not 0: stops that came later have had no start request.
                self.job = Some(Job { doing: Doing::Enabling, cycles: 1, since: Seconds::ZERO, ..job });
                return;
            }
            Doing::Enabling => enabled(&job, process, reports),
            Doing::Disabling => {
                if self.stands() || self.stands_as_known(&job, info, reports) || late {
                    self.leave_trajectory();
                    self.enabled = false;
                    let next = Job { doing: Doing::SteppingDown, cycles: 0, since: Seconds::ZERO, ..job };
                    self.job = Some(next);
                }
                return;
            }
            Doing::SteppingDown => {
                let off = [State::NotReadyToSwitchOn, State::SwitchOnDisabled, State::Fault];
                let is_off = |it: &AxisReport| it.state.is_none_or(|state| off.contains(&state));
                let is_unknown =
                    |it: &AxisReport| !is_off(it) && is_silent(it, info) && job.since >= SILENCE;
                let unknown = reports.iter().any(is_unknown);
                let down = reports.iter().all(|it| is_off(it) || is_unknown(it));
                // A drive keeps its torque at a brake that does not close.
                let keeps = |it: &AxisReport| is_enabled(it) && it.stop == Some(StopReason::BrakeNotClosed);
                match settled {
                    true if down && unknown => Some(Err(Refusal::NoProcessData)),
                    true if down => Some(Ok(())),
                    true if reports.iter().any(keeps) => Some(Err(Refusal::Held)),
                    _ => None,
                }
            }
            Doing::Stopping | Doing::Deactivating => self.pursue_stop(&job, late, info, reports),
            Doing::Resetting => reset(&job, self.acknowledges.contains(&true), reports),
            Doing::Homing { axis, begun, before } => {
                let Some(report) = reports.get(axis) else { return };
                let begun = begun || report.homing || report.homed_by_hand != before;
                self.job = Some(Job { doing: Doing::Homing { axis, begun, before }, ..job });
                if report.homing {
                    // The axis supervises the time of its drive.
                    return;
                }
                let is_taken = self.axes[axis].homing == HomedBy::Drive || begun;
                match settled {
                    // A place is taken only from a reply that came.
                    true if !is_taken && report.stop.is_none() => {
                        late_enough(job.cycles).then_some(Err(Refusal::TimedOut))
                    }
                    true => Some(homed(report, begun)),
                    false => None,
                }
            }
            Doing::Switching { to } => {
                let differs = |(axis, report)| self.shows_another(to, axis, report);
                (settled && !reports.iter().enumerate().any(differs)).then(|| {
                    self.enter(to);
                    Ok(())
                })
            }
        };
        let too_late = match job.doing {
            Doing::Resetting if reports.iter().any(is_in_fault) => Refusal::Fault,
            Doing::Switching { .. } => Refusal::Mode,
            _ => Refusal::TimedOut,
        };
        if let Some(outcome) = outcome.or(late.then_some(Err(too_late))) {
            self.job = None;
            if matches!(outcome, Err(Refusal::NoProcess | Refusal::TimedOut)) {
                self.withhold(&job);
            }
            if let Some(what) = job.doing.action() {
                self.note_refusal(what, job.from.port, outcome, info.cycle);
            }
            self.reply(job.from, outcome);
        }
    }

    /// Keeps a stop once the axes are at standstill, as far as that is known, or the time has
    /// expired: their motion is dropped. Returns the reply, if one is due.
    fn pursue_stop(
        &mut self,
        job: &Job,
        late: bool,
        info: &CycleInfo,
        reports: &[AxisReport],
    ) -> Option<Result<(), Refusal>> {
        let stands = self.stands();
        let outcome = match (stands, self.stands_as_known(job, info, reports)) {
            (true, _) => Some(Ok(())),
            (false, true) => Some(Err(Refusal::NoProcessData)),
            (false, false) if late => None,
            (false, false) => return None,
        };
        self.leave_trajectory();
        self.turn_deaf();
        match job.doing {
            Doing::Deactivating => self.enter(NONE),
            _ => self.hold_after_stop(stands),
        }
        outcome
    }

    /// True if some axes exchange no process data, since the request began, and all others are at
    /// standstill: there is nothing to wait for.
    fn stands_as_known(&self, job: &Job, info: &CycleInfo, reports: &[AxisReport]) -> bool {
        let some_silent = reports.iter().any(|it| is_silent(it, info));
        job.since >= SILENCE && some_silent && self.standing_known >= STANDING_CYCLES
    }

    /// Ignores the present command from now on.
    pub(super) fn turn_deaf(&mut self) {
        self.deaf.clone_from(&self.command);
        self.is_deaf = true;
    }
}

/// Reply to a request to enable the drives, as soon as it is due.
fn enabled(job: &Job, process: ProcessState, reports: &[AxisReport]) -> Option<Result<(), Refusal>> {
    let (settled, lasts) = (job.cycles > ANSWER_CYCLES, job.since > HELD);
    let fault = settled && reports.iter().any(is_in_fault);
    let is_held = |it: &AxisReport| is_latched(it) && (is_enabled(it) || lasts);
    let held = settled && reports.iter().any(is_held);
    match (reports.iter().all(can_be_moved), fault, held) {
        (true, ..) => Some(Ok(())),
        (_, true, _) => Some(Err(Refusal::Fault)),
        _ if reports.iter().any(is_forbidden) => Some(Err(Refusal::Interlock)),
        (.., true) => Some(Err(Refusal::Held)),
        _ if lasts => without(process, job),
        _ => None,
    }
}

/// Reply to a reset, as soon as it is due; `acknowledges`: a stop or fault that it acknowledges is
/// still there.
fn reset(job: &Job, acknowledges: bool, reports: &[AxisReport]) -> Option<Result<(), Refusal>> {
    let settled = job.cycles > ANSWER_CYCLES;
    let fails = |report: &&AxisReport| is_in_fault(report) || is_latched(report);
    // A forbidding interlock keeps its stop, even if others are reset.
    let kept = |report: &&AxisReport| is_latched(report) && is_forbidden(report);
    let (all, kept) = (reports.iter().filter(fails).count(), reports.iter().filter(kept).count());
    let forbidden = reports.iter().any(is_forbidden);
    // A reset readies neither an unreferenced axis nor an axis with a brake that
    // contradicts.
    let needs_more = |report: &AxisReport| {
        let of_brake = report.stop.is_some_and(StopReason::is_of_brake_feedback);
        let unreferenced = report.stop.is_some_and(StopReason::is_unreferenced);
        of_brake || (!is_in_fault(report) && unreferenced)
    };
    let held = late_enough(job.cycles) && reports.iter().any(needs_more);
    // Stops and faults that came later have not been acknowledged.
    let later = late_enough(job.cycles) && !acknowledges;
    let stays = job.since > FAULT_TIME;
    let faulted = reports.iter().any(is_in_fault);
    match settled {
        true if all == 0 && !forbidden => Some(Ok(())),
        // A drive may still be on its way out of its fault.
        true if forbidden && (all == kept || job.since > HELD && (stays || !faulted)) => {
            Some(Err(Refusal::Interlock))
        }
        _ if (later || stays) && faulted => Some(Err(Refusal::Fault)),
        _ if held || later => Some(Err(Refusal::Held)),
        _ => None,
    }
}

/// Reply to a request to enable drives that the process of the active controller does not enable.
fn without(process: ProcessState, job: &Job) -> Option<Result<(), Refusal>> {
    match process {
        ProcessState::InCycle | ProcessState::Answering => None,
        ProcessState::Absent => Some(Err(Refusal::NoProcess)),
        // The program that asks may be the process: it answers after this reply.
        ProcessState::Attached => Some(Ok(())),
        // Its first answers may be late, and one later.
        ProcessState::Failing => (job.fails > FAILS).then_some(Err(Refusal::TimedOut)),
    }
}

/// True if a drive had the time to leave its fault, and the axis to stop.
fn late_enough(cycles: u32) -> bool {
    cycles > RESET_CYCLES
}

/// True if set-points move it, or will with the next fresh command.
fn can_be_moved(report: &AxisReport) -> bool {
    let follows = report.feedback.phase == AxisPhase::Following || report.stop.is_some();
    is_enabled(report) && !is_latched(report) && follows
}

/// True if an interlock does not permit it to be enabled. An input that has not been read yet may
/// still permit it.
fn is_forbidden(report: &AxisReport) -> bool {
    let forbids = matches!(report.stop, Some(StopReason::Interlock | StopReason::NotPermitted));
    forbids && report.interlock.is_some_and(|it| !it.permits && it.level != InputLevel::Unknown)
}

fn is_enabled(report: &AxisReport) -> bool {
    report.state == Some(State::OperationEnabled)
}

/// Result of homing an axis.
fn homed(report: &AxisReport, begun: bool) -> Result<(), Refusal> {
    match report.stop {
        Some(StopReason::HomingTimedOut) => Err(Refusal::TimedOut),
        Some(StopReason::HomingError | StopReason::Fault) => Err(Refusal::Fault),
        _ if report.homed && begun => Ok(()),
        Some(_) => Err(Refusal::Held),
        _ => Err(Refusal::NotPossible),
    }
}

/// Index of the port for requests that stop the axes.
const STOPS: usize = 1;

/// Timeout of a request.
const TIMEOUT: Seconds = Seconds(10.0);

/// Time after which a remaining stop fails the reset.
const HELD: Seconds = Seconds(0.5);

/// Time without an answer in time after which a process fails a request to enable.
const FAILS: Seconds = Seconds(0.8);

/// Time within which a drive leaves its fault. If the fault ends later, such as by main power that
/// returns, it needs another reset.
pub(super) const FAULT_TIME: Seconds = Seconds(3.0);

/// Timeout of a change of modes: an axis gives a drive 0.1 s for it.
const MODE_TIMEOUT: Seconds = Seconds(0.5);

/// Cycles until drives show the effect of a request.
pub(super) const ANSWER_CYCLES: u32 = 8;

/// Cycles until an axis that a reset did not make ready is reported.
const RESET_CYCLES: u32 = 100;

/// Cycles after which the same refusal is reported again.
const SAME_REFUSAL: u64 = 1_000;

/// Requests taken from a port in one cycle.
const REQUESTS_A_CYCLE: usize = 4;
