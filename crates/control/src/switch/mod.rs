//! Several controllers, one of which has the axes, and what people ask of the cycle.
//!
//! A [`Switch`] answers port `control` ([`bridge::message::control`]) and hands on port `trajectory` to the active
//! controller.
//!
//! * A controller is switched to only while all axes stand. It is shown [`AxisPhase::HoldingAt`] on its first beat, as after
//!   enabling, and so begins where the axes are. Axes it does not move are held.
//! * One thing is done at a time; *stop* and *disable* take the place of what is being done.
//! * After *stop* the active controller is deaf to the command that held then, until another is given or it goes stale: a
//!   joystick that still says "ahead" moves nothing.
//! * After *reset faults* drives that were asked to be enabled are enabled again, and hold.

mod jobs;
mod member;
mod orders;

use bridge::message::MOST_AXES;
use bridge::message::control::{self, Action, Refusal, Reply, Request as Asking};
use bridge::message::trajectory;
use ethercat::cia402::{CyclicMode, Request, State};
use motion::{AxisPhase, AxisSetpoint, Radians, RadiansPerSecond, Seconds};
use runtime::controller::{Asked, AxisCommand, AxisReport, Beat, Controller, Told};

use self::jobs::{Doing, Job};
pub use self::member::{Member, Mover};
use crate::axis::elapsed;
use crate::hold::hold;
use crate::port::Port;

/// What a switch knows of an axis beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchAxis {
    /// The mode of its drive.
    pub mode: CyclicMode,
    /// Highest speed; an axis stands below a hundredth of it.
    pub velocity_limit: RadiansPerSecond,
    /// How it is homed by request.
    pub homing: HomedBy,
}

/// How an axis is homed when somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomedBy {
    /// It is not: its encoder is absolute.
    Nobody,
    /// Whoever asks has brought it to its mark: it is home where it stands.
    Hand,
    /// Its drive finds the mark.
    Drive,
}

/// Holds several controllers and lets one of them move the axes.
pub struct Switch {
    axes: Vec<SwitchAxis>,
    members: Vec<Member>,
    active: usize,
    /// The active controller has not had a beat yet.
    entering: bool,
    enabled: bool,
    job: Option<Job>,
    control: Option<Box<dyn Port>>,
    trajectory: Option<Box<dyn Port>>,
    bound: bool,
    /// What the active controller is shown.
    shown: Vec<AxisReport>,
    /// Set-points of the last beat.
    last: Vec<AxisSetpoint>,
    /// Beats for which all axes have stood.
    standing: u32,
    /// What the active controller is not to hear.
    deaf: Asked,
    is_deaf: bool,
    heard: Asked,
    nothing: Asked,
    buffer: [u8; trajectory::size(MOST_AXES)],
}

impl Switch {
    /// The first of `members`, of which there has to be one, has the axes at the start. With `enable` the drives are enabled
    /// then, otherwise when somebody asks.
    #[must_use]
    pub fn new(axes: &[SwitchAxis], members: Vec<Member>, enable: bool) -> Self {
        let nothing = Asked { axes: vec![None; axes.len()], ..Asked::default() };
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
            heard: nothing.clone(),
            nothing,
            buffer: [0; trajectory::size(MOST_AXES)],
        }
    }

    /// The same with its ports.
    #[must_use]
    pub fn with_ports(self, control: Box<dyn Port>, trajectory: Box<dyn Port>) -> Self {
        Self { control: Some(control), trajectory: Some(trajectory), ..self }
    }

    /// What people ask.
    fn take_requests(&mut self, beat: &Beat, commands: &[AxisCommand]) {
        let mut buffer = [0; control::SIZE + 1];
        for _ in 0..REQUESTS_A_BEAT {
            let Some(port) = &mut self.control else { return };
            let Some(length) = port.receive(&mut buffer) else { return };
            let bytes = &buffer[..length.min(buffer.len())];
            match Asking::decode(bytes) {
                Ok(request) => {
                    if let Some(outcome) = self.begin(request, beat, commands) {
                        self.reply(request.id, outcome);
                    }
                }
                Err(_) => self.reply(id_of(bytes), Err(Refusal::Malformed)),
            }
        }
    }

    fn reply(&mut self, id: u64, outcome: Result<(), Refusal>) {
        let mut buffer = [0; control::SIZE];
        if let (Some(port), Ok(length)) = (&mut self.control, Reply { id, outcome }.encode(&mut buffer)) {
            // Full: the port counts it; nobody listens.
            let _ = port.send(&buffer[..length]);
        }
    }

    /// Begins what is asked; what to answer at once, if anything.
    fn begin(
        &mut self,
        Asking { id, what }: Asking,
        beat: &Beat,
        commands: &[AxisCommand],
    ) -> Option<Result<(), Refusal>> {
        if beat.stopping {
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
        self.job = Some(Job { id, doing, beats: 0, since: Seconds::ZERO });
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

    /// Whether an axis that its drive homes has a drive that does nothing.
    fn is_powerless(&self, axis: usize) -> bool {
        let enabled = self.enabled && self.shown[axis].state == Some(State::OperationEnabled);
        self.axes[axis].homing == HomedBy::Drive && !enabled
    }

    fn stands(&self) -> bool {
        self.standing >= STANDING_BEATS
    }

    /// Prepares what the active controller is shown.
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

    /// What the drives shall do, over what the controller asks.
    fn request(&mut self, commands: &mut [AxisCommand]) {
        let doing = self.job.map(|job| job.doing);
        for (command, report) in commands.iter_mut().zip(&self.shown) {
            let wanted = match doing {
                Some(Doing::Resetting) if is_in_fault(report) || is_latched(report) => Request::FaultReset,
                _ if !self.enabled => Request::Disable,
                // Its drive moves it, not a controller that could come to rest.
                Some(doing) if doing.brings_to_rest() && report.homing => Request::Halt,
                _ => command.request,
            };
            command.request = wanted;
        }
        if let Some(Job { doing: Doing::Homing { axis, .. }, beats: 0, .. }) = self.job {
            if let Some(command) = commands.get_mut(axis) {
                command.home = true;
            }
        }
    }

    /// Counts the beats for which all axes stand.
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

    /// What the active controller hears of `asked`.
    fn listen(&mut self) {
        self.is_deaf &= self.deaf == self.heard;
        let asked = if self.is_deaf { &self.nothing } else { &self.heard };
        if let Some(member) = self.members.get_mut(self.active) {
            member.controller().hear(asked);
        }
    }
}

impl Controller for Switch {
    fn hear(&mut self, asked: &Asked) {
        self.heard.clone_from(asked);
    }

    fn update(&mut self, beat: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        if !std::mem::replace(&mut self.bound, true) {
            self.control.iter_mut().chain(&mut self.trajectory).for_each(|port| port.bind());
        }
        if beat.stopping {
            if let Some(job) = self.job.take() {
                self.reply(job.id, Err(Refusal::Stopping));
            }
        }
        self.take_requests(&beat, commands);
        self.show(reports);
        self.listen();
        let resting = self.job.is_some_and(|job| job.doing.brings_to_rest());
        let told = Beat { stopping: beat.stopping || resting, ..beat };
        self.take_orders(&told);
        let homing = matches!(self.job, Some(Job { doing: Doing::Homing { .. }, .. }));
        let Self { members, active, shown, .. } = self;
        for (index, member) in members.iter_mut().enumerate() {
            let Mover::Drive(drive) = &mut member.mover else { continue };
            if homing {
                // On one of these beats a position jumps, and the base does not.
                drive.restart();
            }
            // It does so itself while it is active.
            if index != *active {
                drive.watch(reports);
            }
        }
        if let Some(member) = members.get_mut(*active) {
            for (axis, (report, command)) in shown.iter().zip(commands.iter_mut()).enumerate() {
                if !member.moves(axis) {
                    hold(report, command);
                }
            }
            member.controller().update(told, shown, commands);
        }
        self.request(commands);
        self.watch_standing(commands);
        self.pursue(elapsed(&beat), reports);
        self.send_reports();
    }

    fn tell(&self) -> Told {
        let mut told = self.members.get(self.active).map(Member::tell).unwrap_or_default();
        told.control.active = self.active as u16;
        told.control.enabled = self.enabled;
        if let Some(drive) = self.members.iter().find_map(Member::drive) {
            let base = drive.tell();
            (told.pose, told.twist) = (base.pose, base.twist);
        }
        told
    }
}

impl std::fmt::Debug for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switch")
            .field("active", &self.active)
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

fn is_in_fault(report: &AxisReport) -> bool {
    matches!(report.state, Some(State::Fault | State::FaultReactionActive))
}

/// Supervision has stopped it until somebody acknowledges that.
fn is_latched(report: &AxisReport) -> bool {
    let stopped = report.feedback.phase != AxisPhase::Following;
    stopped && report.stop.is_some_and(|stop| stop.is_latched())
}

/// The id a message has that cannot be read, as far as it goes.
fn id_of(bytes: &[u8]) -> u64 {
    bytes.get(8..16).and_then(<[u8]>::first_chunk).map_or(0, |id| u64::from_le_bytes(*id))
}

/// Requests taken in one beat.
const REQUESTS_A_BEAT: usize = 4;

/// Beats after which axes that have not moved are said to stand.
const STANDING_BEATS: u32 = 10;

/// Share of the highest speed below which an axis stands.
const STANDS: f64 = 0.01;

/// Set-points nearer than this are the same.
const SAME_PLACE: Radians = Radians(1e-9);
