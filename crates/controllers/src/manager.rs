//! Several controllers, one of which is active, and the requests to a running cycle.
//!
//! A [`ControllerManager`] answers the ports `control` and `stop` ([`ipc::message::control`]) and
//! passes port `trajectory` to the active controller.
//!
//! * Controllers are switched only while all axes are at standstill. The new one is shown
//!   [`AxisPhase::HoldingAt`] in its first cycle, as after enabling, and so starts at the present
//!   positions. Axes it does not move are held, in their own modes.
//! * A controller may have its axes in another mode of operation than their own
//!   ([`Member::in_mode`]). They are held until their drives show it; if one does not take it, all
//!   go back to the modes of the controller before.
//! * One request is processed at a time; *stop*, *disable* and *deactivate* replace the one in
//!   progress.
//! * After *deactivate* no controller is active, and all axes are held until one is switched to.
//! * After *stop*, and after *reset faults* or *enable* that ended a stop, the active controller
//!   ignores the command valid then, until another one arrives or it becomes stale: a joystick that
//!   is still pushed forward moves nothing.
//! * *Enable* is the start request of axes that wait for one ([`StopReason::AwaitsStart`]).
//! * After *reset faults* drives that were requested to be enabled are enabled again, and hold. A
//!   controller that moves without commands, such as a sinusoid, moves them again. The
//!   drive of an unreferenced axis stays as it is until *enable*.

mod orders;
mod requests;
mod rest;

use control::controller::{
    AxisCommand, AxisReport, ClientRequest, Controller, ControllerOutput, CycleInfo, ExternalCommand, Io,
};
use control::signal::{SignalError, Signals};
use ethercat::cia402::{AxisMode, CyclicMode, Request, State};
use ipc::message::MOST_AXES;
use ipc::message::control::Refusal;
use ipc::message::trajectory;
use ipc::state::{NO_CONTROLLER, ProcessState};
use motion::supervision::{STANDS, StopReason};
use motion::{AxisPhase, AxisSetpoint, Radians, RadiansPerSecond};

use self::orders::changes_modes;
use self::requests::{ANSWER_CYCLES, Doing, FAULT_TIME, Job};
use crate::axis::elapsed;
use crate::base::BaseController;
use crate::hold::{hold, hold_set_points};
use crate::port::Port;
use crate::trajectory::JointTrajectory;

/// Axis settings that the manager needs in advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManagedAxis {
    /// Its own mode of operation.
    pub mode: AxisMode,
    /// Highest speed; below a hundredth of it an axis is at standstill.
    pub velocity_limit: RadiansPerSecond,
    /// Homing by request.
    pub homing: HomedBy,
}

/// Method of homing by request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomedBy {
    /// No homing: the encoder is absolute.
    Nobody,
    /// The operator has moved it to its mark: its present position is its home.
    Hand,
    /// The drive finds the mark.
    Drive,
}

/// Holds several controllers, one of which moves the axes.
pub struct ControllerManager {
    axes: Vec<ManagedAxis>,
    members: Vec<Member>,
    /// Index of the active controller; [`NONE`] for none.
    active: usize,
    /// True until the first cycle of the active controller.
    entering: bool,
    /// It is that cycle: axes that follow are shown as held.
    shows_held: bool,
    enabled: bool,
    /// The active controller enables no axis.
    unwanted: bool,
    job: Option<Job>,
    /// A request stops the axes in this cycle.
    rests: bool,
    /// The active controller does not stop its axes: they are held.
    hold: rest::MemberHold,
    /// Request that was accepted or refused in this cycle.
    request: Option<ClientRequest>,
    /// The refusal that was reported last, and its cycle.
    refused: Option<(Refusal, u64)>,
    /// Ports of requests: `control`, then `stop`.
    control: Vec<Box<dyn Port>>,
    trajectory: Option<Box<dyn Port>>,
    bound: bool,
    /// Reports shown to the active controller.
    shown: Vec<AxisReport>,
    /// Set-points of the previous cycle.
    last: Vec<AxisSetpoint>,
    /// Axes with a stop or fault that was present when the request in progress began, and still is:
    /// that request acknowledges no other. A request that waits for a process acknowledges none
    /// yet.
    acknowledges: Vec<bool>,
    /// Axes with a drive that was not enabled when the last reset began.
    off: Vec<bool>,
    /// Axes with a drive that stays off until the next request to enable.
    withheld: Vec<bool>,
    /// Cycles for which all axes have been at standstill.
    standing: u32,
    /// The same without the axes that exchange no process data.
    standing_known: u32,
    /// Members have axes in different modes.
    changes_modes: bool,
    /// Command that the active controller ignores.
    deaf: ExternalCommand,
    is_deaf: bool,
    command: ExternalCommand,
    nothing: ExternalCommand,
    buffer: [u8; trajectory::size(MOST_AXES)],
}

impl ControllerManager {
    /// A manager with the first member active at the start; `members` must not be empty. With
    /// `enable` the drives are enabled at the start, otherwise on request.
    #[must_use]
    pub fn new(axes: &[ManagedAxis], members: Vec<Member>, enable: bool) -> Self {
        let nothing = ExternalCommand { axes: vec![None; axes.len()], ..ExternalCommand::default() };
        Self {
            axes: axes.to_vec(),
            changes_modes: changes_modes(axes, &members),
            members,
            active: 0,
            entering: false,
            shows_held: false,
            enabled: enable,
            unwanted: false,
            job: None,
            rests: false,
            hold: rest::MemberHold::default(),
            request: None,
            refused: None,
            control: Vec::new(),
            trajectory: None,
            bound: false,
            shown: vec![AxisReport::default(); axes.len()],
            last: vec![AxisSetpoint::default(); axes.len()],
            acknowledges: vec![false; axes.len()],
            off: vec![false; axes.len()],
            withheld: vec![false; axes.len()],
            standing: 0,
            standing_known: 0,
            deaf: nothing.clone(),
            is_deaf: false,
            command: nothing.clone(),
            nothing,
            buffer: [0; trajectory::size(MOST_AXES)],
        }
    }

    /// Adds the ports.
    #[must_use]
    pub fn with_ports(self, control: Box<dyn Port>, trajectory: Box<dyn Port>) -> Self {
        Self { control: vec![control], trajectory: Some(trajectory), ..self }
    }

    /// Adds the port for requests that stop the axes, after the port for all requests
    /// ([`ControllerManager::with_ports`]).
    #[must_use]
    pub fn with_stop_port(mut self, stop: Box<dyn Port>) -> Self {
        self.control.push(stop);
        self
    }

    fn stands(&self) -> bool {
        self.standing >= STANDING_CYCLES
    }

    /// State of the process of the active controller, if its axes need one.
    fn process(&self) -> ProcessState {
        let active = self.members.get(self.active).filter(|it| !it.axes.is_empty());
        active.map_or(ProcessState::InCycle, |it| it.output().control.process)
    }

    /// A request to enable axes of a process was refused: drives without torque stay off until the
    /// next one. The others keep their torque: they may hold a load, or brake. Other requests lapse
    /// by supervision.
    fn withhold(&mut self, job: &Job) {
        if !job.doing.enables() || self.process() == ProcessState::InCycle {
            return;
        }
        for (withheld, report) in self.withheld.iter_mut().zip(&self.shown) {
            *withheld |= !has_torque(report);
        }
    }

    /// Prepares the reports for the active controller.
    fn show(&mut self, reports: &[AxisReport]) {
        for (axis, report) in reports.iter().enumerate() {
            let mode = self.mode_with(self.active, axis);
            let (Some(shown), Some(last)) = (self.shown.get_mut(axis), self.last.get(axis)) else {
                continue;
            };
            *shown = *report;
            if self.entering && shown.feedback.phase == AxisPhase::Following {
                let place = match mode.cyclic() {
                    CyclicMode::Position => last.position,
                    CyclicMode::Velocity | CyclicMode::Torque => report.feedback.position,
                };
                shown.feedback.phase = AxisPhase::HoldingAt(place);
            }
        }
        self.shows_held = std::mem::take(&mut self.entering);
    }

    /// Sets the requests to the drives, which override the controller's requests.
    fn request(&mut self, commands: &mut [AxisCommand]) {
        let doing = self.job.map(|job| job.doing);
        let early = self.job.is_some_and(|job| job.cycles <= ANSWER_CYCLES);
        let in_time = self.job.is_some_and(|job| job.since <= FAULT_TIME);
        self.unwanted = !commands.is_empty();
        let drives = self.off.iter_mut().zip(&self.withheld);
        let axes = commands.iter_mut().zip(&self.shown).zip(&self.acknowledges).zip(drives);
        for (((command, report), acknowledges), (off, withheld)) in axes {
            let wanted = match doing {
                // A stop is acknowledged once. A drive may take longer to leave its fault.
                Some(doing)
                    if *acknowledges
                        && doing != Doing::AwaitingProcess
                        && (early || in_time && is_in_fault(report)) =>
                {
                    Request::FaultReset
                }
                _ if !self.enabled || *withheld => Request::Disable,
                // The drive moves the axis, so no controller could stop it.
                Some(doing) if doing.brings_to_rest() && report.homing => Request::Halt,
                _ => command.request,
            };
            self.unwanted &= wanted == Request::Disable;
            command.request = Self::leave_off(off, report, wanted);
            command.home_again = false;
        }
        if let Some(Job { doing: Doing::Homing { axis, begun, before }, cycles, .. }) = self.job {
            let by_hand = self.axes.get(axis).is_some_and(|it| it.homing == HomedBy::Hand);
            // Until the place was taken: a reply may be lost.
            let is_open = |it: &AxisReport| by_hand && !begun && it.homed_by_hand == before;
            let asks = cycles == 0 || self.shown.get(axis).is_some_and(is_open);
            if let Some(command) = commands.get_mut(axis).filter(|_| asks) {
                (command.home, command.home_again) = (true, true);
            }
        }
    }

    /// Notes the axes with a stop or fault that the request in progress acknowledges. Later stops
    /// and faults need another request: power, safe torque off or an axis that was stopped
    /// meanwhile.
    fn note_acknowledged(&mut self) {
        let job = self.job.filter(|job| job.doing.enables() || job.doing == Doing::Resetting);
        let Some(Job { doing, cycles, .. }) = job else { return self.acknowledges.fill(false) };
        for (acknowledges, report) in self.acknowledges.iter_mut().zip(&self.shown) {
            let waits = match doing {
                doing if doing.enables() => awaits_start(report, &self.shown),
                _ => is_in_fault(report) || is_latched(report),
            };
            *acknowledges = waits && (cycles == 0 || *acknowledges);
        }
        if cycles == 0 && self.acknowledges.contains(&true) {
            // The command is from before: a joystick that still says "ahead" moves nothing.
            self.turn_deaf();
        }
    }

    /// Counts the cycles for which all axes are at standstill.
    fn watch_standing(&mut self, commands: &[AxisCommand], info: &CycleInfo) {
        let (mut stand, mut stand_known) = (true, true);
        for (number, (command, report)) in commands.iter().zip(&self.shown).enumerate() {
            let mode = self.mode_with(self.active, number);
            let (Some(axis), Some(last)) = (self.axes.get(number), self.last.get_mut(number)) else {
                continue;
            };
            let setpoint = command.setpoint;
            let still = match mode.cyclic() {
                CyclicMode::Position => (setpoint.position - last.position).abs() <= SAME_PLACE,
                CyclicMode::Velocity => setpoint.velocity == RadiansPerSecond::ZERO,
                CyclicMode::Torque => true,
            };
            let slow = report.feedback.velocity.abs() <= axis.velocity_limit * STANDS;
            // A slow jog is a motion as well.
            let jogged = report.stop == Some(StopReason::Jog);
            let stands = report.feedback.phase == AxisPhase::NotEnabled || (still && slow && !jogged);
            stand &= stands;
            stand_known &= stands || rest::is_silent(report, info);
            *last = setpoint;
        }
        let count = |before: u32, stand: bool| if stand { before.saturating_add(1) } else { 0 };
        self.standing = count(self.standing, stand);
        self.standing_known = count(self.standing_known, stand_known);
    }

    /// Passes the command to the active controller, unless it is ignored.
    fn listen(&mut self) {
        self.is_deaf &= self.deaf == self.command;
        let command = if self.is_deaf { &self.nothing } else { &self.command };
        if let Some(member) = self.members.get_mut(self.active) {
            member.controller().command(command);
        }
    }
}

impl Controller for ControllerManager {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.members.iter_mut().try_for_each(|member| member.controller().init(signals))
    }

    fn command(&mut self, command: &ExternalCommand) {
        self.command.clone_from(command);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        if !std::mem::replace(&mut self.bound, true) {
            self.control.iter_mut().chain(&mut self.trajectory).for_each(|port| port.bind());
        }
        if info.stopping {
            if let Some(job) = self.job.take() {
                self.reply(job.from, Err(Refusal::Stopping));
            }
        }
        self.request = None;
        self.take_requests(&info, io.commands());
        let resting = self.job.is_some_and(|job| job.doing.brings_to_rest());
        self.rests = resting;
        self.watch_rest(io.axes());
        self.show(io.axes());
        self.note_acknowledged();
        self.listen();
        let info = CycleInfo { stopping: info.stopping || resting, ..info };
        self.take_orders(&info);
        let homing = matches!(self.job, Some(Job { doing: Doing::Homing { .. }, .. }));
        let Self { members, active, shown, .. } = self;
        for (index, member) in members.iter_mut().enumerate() {
            let MemberKind::Base(drive) = &mut member.kind else { continue };
            if homing {
                // In one of these cycles a position jumps without the base.
                drive.restart();
            }
            // The active controller updates its own odometry.
            if index != *active {
                drive.watch(io.axes());
            }
        }
        if let Some(member) = members.get_mut(*active) {
            for (axis, (report, command)) in shown.iter().zip(io.commands().iter_mut()).enumerate() {
                if !member.moves(axis) {
                    hold(report, command);
                }
            }
            member.controller().update(info, &mut io.with_axes(shown));
            if self.hold.holds {
                // Only set-points: a controller may always disable its axes.
                hold_set_points(shown, io.commands());
            }
        } else {
            shown.iter().zip(io.commands().iter_mut()).for_each(|(report, command)| hold(report, command));
        }
        self.change_modes(io.commands());
        self.request(io.commands());
        self.watch_standing(io.commands(), &info);
        self.pursue(&info, io.axes());
        self.send_reports();
    }

    fn output(&self) -> ControllerOutput {
        let mut output = self.members.get(self.active).map(Member::output).unwrap_or_default();
        output.control.active = u16::try_from(self.active).unwrap_or(NO_CONTROLLER);
        output.control.enabled = self.enabled && !self.unwanted;
        output.rests = self.rests;
        output.request = self.request;
        if let Some(drive) = self.members.iter().find_map(Member::drive) {
            let base = drive.output();
            (output.pose, output.twist) = (base.pose, base.twist);
        }
        output
    }
}

impl std::fmt::Debug for ControllerManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerManager")
            .field("active", &self.active)
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

/// A controller, and its axes.
pub struct Member {
    kind: MemberKind,
    axes: Vec<usize>,
    /// Mode it moves them in, unless their own.
    mode: Option<AxisMode>,
}

/// Kinds of controllers.
pub enum MemberKind {
    /// Any other controller.
    Plain(Box<dyn Controller>),
    /// Follows trajectories from port `trajectory`.
    Trajectory(Box<JointTrajectory>),
    /// Drives a base: its odometry continues while another controller is active.
    Base(Box<BaseController>),
}

impl Member {
    /// A controller of the axes with these indices; the manager holds the others.
    #[must_use]
    pub fn new(kind: MemberKind, axes: &[usize]) -> Self {
        Self { kind, axes: axes.to_vec(), mode: None }
    }

    /// The same, moving its axes in this mode of operation, to which they are brought when it
    /// becomes active.
    #[must_use]
    pub fn in_mode(self, mode: AxisMode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    fn moves(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    fn controller(&mut self) -> &mut dyn Controller {
        match &mut self.kind {
            MemberKind::Plain(controller) => &mut **controller,
            MemberKind::Trajectory(controller) => &mut **controller,
            MemberKind::Base(controller) => &mut **controller,
        }
    }

    fn output(&self) -> ControllerOutput {
        match &self.kind {
            MemberKind::Plain(controller) => controller.output(),
            MemberKind::Trajectory(controller) => controller.output(),
            MemberKind::Base(controller) => controller.output(),
        }
    }

    fn drive(&self) -> Option<&BaseController> {
        match &self.kind {
            MemberKind::Base(drive) => Some(drive),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("axes", &self.axes).finish_non_exhaustive()
    }
}

/// Id of an invalid message, if it is long enough; else 0.
fn id_of(bytes: &[u8]) -> u64 {
    bytes.get(8..16).and_then(<[u8]>::first_chunk).map_or(0, |id| u64::from_le_bytes(*id))
}

fn is_in_fault(report: &AxisReport) -> bool {
    report.state.is_some_and(State::is_faulted)
}

/// True if supervision has stopped it until that is acknowledged.
fn is_latched(report: &AxisReport) -> bool {
    let stopped = report.feedback.phase != AxisPhase::Following;
    stopped && report.stop.is_some_and(|stop| stop.is_latched())
}

fn has_torque(report: &AxisReport) -> bool {
    let powered = [State::OperationEnabled, State::QuickStopActive, State::FaultReactionActive];
    report.state.is_some_and(|state| powered.contains(&state))
}

/// True if it waits for a start request, or was stopped with an axis that does.
fn awaits_start(report: &AxisReport, all: &[AxisReport]) -> bool {
    let waits = |it: &AxisReport| it.stop == Some(StopReason::AwaitsStart);
    let with = || report.stopped_with.and_then(|other| all.get(other));
    waits(report) || (report.stop == Some(StopReason::OtherAxis) && with().is_some_and(waits))
}

/// Index of no controller.
const NONE: usize = usize::MAX;

/// Cycles without motion after which axes are at standstill.
const STANDING_CYCLES: u32 = 10;

/// Set-points nearer than this are the same.
const SAME_PLACE: Radians = Radians(1e-9);
