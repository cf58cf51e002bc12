//! Several controllers, one of which is active, and the requests to a running cycle.
//!
//! A [`ControllerManager`] answers port `control` ([`ipc::message::control`]) and passes port `trajectory` to the
//! active controller.
//!
//! * Controllers are switched only while all axes are at rest. The new one is shown
//!   [`AxisPhase::HoldingAt`] in its first cycle, as after enabling, and so starts at the present
//!   positions. Axes it does not move are held.
//! * One request is processed at a time; *stop* and *disable* replace the one in progress.
//! * After *stop* the active controller ignores the command valid then, until another is given or it goes
//!   stale: a joystick that still says "ahead" moves nothing.
//! * After *reset faults* drives that were requested to be enabled are enabled again, and hold.

mod jobs;
mod member;
mod orders;

use control::controller::{
    AxisCommand, AxisReport, Controller, ControllerOutput, CycleInfo, ExternalCommand,
};
use control::signal::{Io, SignalError, Signals};
use ethercat::cia402::{CyclicMode, Request, State};
use ipc::message::MOST_AXES;
use ipc::message::control::{self as requests, Action, Refusal, Reply, Request as Asking};
use ipc::message::trajectory;
use motion::{AxisPhase, AxisSetpoint, Radians, RadiansPerSecond, Seconds};

use self::jobs::{Doing, Job};
pub use self::member::{Member, MemberKind};
use crate::axis::elapsed;
use crate::hold::hold;
use crate::port::Port;

/// Axis settings that a switch needs in advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManagedAxis {
    /// Mode of the drive.
    pub mode: CyclicMode,
    /// Highest speed; an axis is at rest below a hundredth of it.
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
    active: usize,
    /// True until the first cycle of the active controller.
    entering: bool,
    enabled: bool,
    job: Option<Job>,
    control: Option<Box<dyn Port>>,
    trajectory: Option<Box<dyn Port>>,
    bound: bool,
    /// Reports shown to the active controller.
    shown: Vec<AxisReport>,
    /// Set-points of the previous cycle.
    last: Vec<AxisSetpoint>,
    /// Cycles for which all axes have been at rest.
    standing: u32,
    /// Command that the active controller ignores.
    deaf: ExternalCommand,
    is_deaf: bool,
    command: ExternalCommand,
    nothing: ExternalCommand,
    buffer: [u8; trajectory::size(MOST_AXES)],
}

impl ControllerManager {
    /// A switch whose first member is active at the start; `members` must not be empty. With `enable` the
    /// drives are enabled at the start, otherwise on request.
    #[must_use]
    pub fn new(axes: &[ManagedAxis], members: Vec<Member>, enable: bool) -> Self {
        let nothing = ExternalCommand { axes: vec![None; axes.len()], ..ExternalCommand::default() };
        Self {
            axes: axes.to_vec(),
            members,
            active: 0,
            entering: false,
            enabled: enable,
            job: None,
            control: None,
            trajectory: None,
            bound: false,
            shown: vec![AxisReport::default(); axes.len()],
            last: vec![AxisSetpoint::default(); axes.len()],
            standing: 0,
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
        Self { control: Some(control), trajectory: Some(trajectory), ..self }
    }

    /// Takes requests from port `control`.
    fn take_requests(&mut self, info: &CycleInfo, commands: &[AxisCommand]) {
        let mut buffer = [0; requests::SIZE + 1];
        for _ in 0..REQUESTS_A_CYCLE {
            let Some(port) = &mut self.control else { return };
            let Some(length) = port.receive(&mut buffer) else { return };
            let bytes = &buffer[..length.min(buffer.len())];
            match Asking::decode(bytes) {
                Ok(request) => {
                    if let Some(outcome) = self.begin(request, info, commands) {
                        self.reply(request.id, outcome);
                    }
                }
                Err(_) => self.reply(id_of(bytes), Err(Refusal::Malformed)),
            }
        }
    }

    fn reply(&mut self, id: u64, outcome: Result<(), Refusal>) {
        let mut buffer = [0; requests::SIZE];
        if let (Some(port), Ok(length)) = (&mut self.control, Reply { id, outcome }.encode(&mut buffer)) {
            // A full port counts the message; no client reads it.
            let _ = port.send(&buffer[..length]);
        }
    }

    /// Starts a request; returns the reply, if it is due at once.
    fn begin(
        &mut self,
        Asking { id, what }: Asking,
        cycle: &CycleInfo,
        commands: &[AxisCommand],
    ) -> Option<Result<(), Refusal>> {
        if cycle.stopping {
            return Some(Err(Refusal::Stopping));
        }
        let doing = match what {
            Action::Stop => Doing::Stopping,
            Action::Disable => Doing::Disabling,
            Action::SwitchController(index) if index as usize >= self.members.len() => {
                return Some(Err(Refusal::NoSuchController));
            }
            Action::Home(axis) if axis as usize >= self.axes.len() => {
                return Some(Err(Refusal::NoSuchAxis));
            }
            _ if self.job.is_some() => return Some(Err(Refusal::Busy)),
            Action::Enable if self.shown.iter().any(is_in_fault) => return Some(Err(Refusal::Fault)),
            Action::Enable => Doing::Enabling,
            Action::ResetFaults => Doing::Resetting,
            Action::SwitchController(index) => return Some(self.switch_to(index as usize, commands)),
            Action::Home(axis) if self.axes[axis as usize].homing == HomedBy::Nobody => {
                return Some(Err(Refusal::NotPossible));
            }
            Action::Home(axis) if self.is_powerless(axis as usize) => {
                return Some(Err(Refusal::NotEnabled));
            }
            Action::Home(_) if !self.stands() => return Some(Err(Refusal::Moving)),
            Action::Home(axis) => Doing::Homing { axis: axis as usize, begun: false },
        };
        if let Some(job) = self.job.take() {
            self.reply(job.id, Err(Refusal::Replaced));
        }
        if doing == Doing::Enabling {
            self.enabled = true;
        }
        self.job = Some(Job { id, doing, cycles: 0, since: Seconds::ZERO });
        None
    }

    fn switch_to(&mut self, index: usize, commands: &[AxisCommand]) -> Result<(), Refusal> {
        if index == self.active {
            return Ok(());
        }
        if !self.stands() {
            return Err(Refusal::Moving);
        }
        self.leave_trajectory();
        for (last, command) in self.last.iter_mut().zip(commands) {
            *last = command.setpoint;
        }
        self.active = index;
        self.entering = true;
        Ok(())
    }

    /// True if an axis is homed by its drive and that drive is powerless.
    fn is_powerless(&self, axis: usize) -> bool {
        let enabled = self.enabled && self.shown[axis].state == Some(State::OperationEnabled);
        self.axes[axis].homing == HomedBy::Drive && !enabled
    }

    fn stands(&self) -> bool {
        self.standing >= STANDING_CYCLES
    }

    /// Prepares the reports for the active controller.
    fn show(&mut self, reports: &[AxisReport]) {
        for ((shown, report), (axis, last)) in
            self.shown.iter_mut().zip(reports).zip(self.axes.iter().zip(&self.last))
        {
            *shown = *report;
            if self.entering && shown.feedback.phase == AxisPhase::Following {
                let place = match axis.mode {
                    CyclicMode::Position => last.position,
                    CyclicMode::Velocity | CyclicMode::Torque => report.feedback.position,
                };
                shown.feedback.phase = AxisPhase::HoldingAt(place);
            }
        }
        self.entering = false;
    }

    /// Sets the requests to the drives, which override those of the controller.
    fn request(&mut self, commands: &mut [AxisCommand]) {
        let doing = self.job.map(|job| job.doing);
        for (command, report) in commands.iter_mut().zip(&self.shown) {
            let wanted = match doing {
                Some(Doing::Resetting) if is_in_fault(report) || is_latched(report) => Request::FaultReset,
                _ if !self.enabled => Request::Disable,
                // The drive moves the axis, not a controller that could bring it to rest.
                Some(doing) if doing.brings_to_rest() && report.homing => Request::Halt,
                _ => command.request,
            };
            command.request = wanted;
        }
        if let Some(Job { doing: Doing::Homing { axis, .. }, cycles: 0, .. }) = self.job {
            if let Some(command) = commands.get_mut(axis) {
                command.home = true;
            }
        }
    }

    /// Counts the cycles for which all axes are at rest.
    fn watch_standing(&mut self, commands: &[AxisCommand]) {
        let mut stand = true;
        for (((axis, last), command), report) in
            self.axes.iter().zip(&mut self.last).zip(commands).zip(&self.shown)
        {
            let setpoint = command.setpoint;
            let still = match axis.mode {
                CyclicMode::Position => (setpoint.position - last.position).abs() <= SAME_PLACE,
                CyclicMode::Velocity => setpoint.velocity == RadiansPerSecond::ZERO,
                CyclicMode::Torque => true,
            };
            let slow = report.feedback.velocity.abs() <= axis.velocity_limit * STANDS;
            stand &= report.feedback.phase == AxisPhase::NotEnabled || (still && slow);
            *last = setpoint;
        }
        self.standing = if stand { self.standing.saturating_add(1) } else { 0 };
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
                self.reply(job.id, Err(Refusal::Stopping));
            }
        }
        self.take_requests(&info, io.commands());
        self.show(io.axes());
        self.listen();
        let resting = self.job.is_some_and(|job| job.doing.brings_to_rest());
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
        }
        self.request(io.commands());
        self.watch_standing(io.commands());
        self.pursue(elapsed(&info), io.axes());
        self.send_reports();
    }

    fn output(&self) -> ControllerOutput {
        let mut output = self.members.get(self.active).map(Member::output).unwrap_or_default();
        output.control.active = self.active as u16;
        output.control.enabled = self.enabled;
        if let Some(drive) = self.members.iter().find_map(Member::drive) {
            let base = drive.output();
            (output.pose, output.twist) = (base.pose, base.twist);
        }
        output
    }
}

impl std::fmt::Debug for ControllerManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switch")
            .field("active", &self.active)
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

fn is_in_fault(report: &AxisReport) -> bool {
    report.state.is_some_and(State::is_faulted)
}

/// True if supervision has stopped it until that is acknowledged.
fn is_latched(report: &AxisReport) -> bool {
    let stopped = report.feedback.phase != AxisPhase::Following;
    stopped && report.stop.is_some_and(|stop| stop.is_latched())
}

/// Id of a message that cannot be read, as far as it goes.
fn id_of(bytes: &[u8]) -> u64 {
    bytes.get(8..16).and_then(<[u8]>::first_chunk).map_or(0, |id| u64::from_le_bytes(*id))
}

/// Requests taken in one cycle.
const REQUESTS_A_CYCLE: usize = 4;

/// Cycles without motion after which axes are at rest.
const STANDING_CYCLES: u32 = 10;

/// Share of the highest speed below which an axis is at rest.
const STANDS: f64 = 0.01;

/// Set-points nearer than this are the same.
const SAME_PLACE: Radians = Radians(1e-9);
