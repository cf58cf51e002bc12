//! Commands from outside: each is checked by the rules of the robot, and taken or refused, whole;
//! the one taken last holds for its time-to-live.
//!
//! Checked is that it is finite, of this robot, and of a kind that it follows. Beyond a limit is
//! none of it: the controller that follows a target clamps it, and reports that.

use std::time::Duration;

use ethercat::time::Instant;
use ipc::command::{AxisTarget, Command, JOG_TIME_TO_LIVE, Read, Reader, ToolPose, Twist};
use ipc::state::Clamped;
use ipc::state::{CommandState, Refusal};
use motion::MetresPerSecond;
pub use types::Takes;
use types::{Signal, Value};

use crate::axis::{Gates, JogRequest};
use crate::controller::{ControllerOutput, ExternalCommand, Freshness};

/// The command in effect, and the results of received ones.
#[derive(Debug)]
pub(crate) struct Commands {
    reader: Reader,
    rules: Rules,
    incoming: Command,
    /// The command that came in was taken, in this cycle.
    taken: bool,
    external: ExternalCommand,
    /// The jog that it asks for in place of all other targets.
    jog: Option<JogRequest>,
    /// A jog that was refused, and the time until which its key counts as held.
    held_key: Option<(JogRequest, Instant)>,
    /// Until when the last command holds.
    pub(super) holds_until: Option<Instant>,
    pub(super) counts: CommandState,
    /// Commands taken as of the last one that is counted as clamped.
    clamped_of: u64,
    /// Place of the active controller among the controllers of the robot, at the end of the
    /// previous cycle.
    active: usize,
}

impl Commands {
    pub(super) fn new(reader: Reader, rules: Rules) -> Self {
        let axes = vec![None; rules.axes.len()];
        Self {
            incoming: reader.blank(),
            taken: false,
            external: ExternalCommand { axes, ..ExternalCommand::default() },
            jog: None,
            held_key: None,
            holds_until: None,
            counts: CommandState {
                last_refused_axis: u16::MAX,
                last_refused_signal: u16::MAX,
                last_clamped_axis: u16::MAX,
                ..CommandState::default()
            },
            clamped_of: 0,
            active: 0,
            reader,
            rules,
        }
    }

    /// Reads the command. `now` reads the clock, if there is something to check; `gates`: the
    /// permissions of the axes.
    pub(crate) fn read(&mut self, now: impl Fn() -> Instant, gates: &Gates) {
        match self.reader.newest(&mut self.incoming) {
            Read::Nothing | Read::Same => {}
            Read::Torn => self.refuse(Refused::whole(Refusal::Torn)),
            // The clock is read behind the command: an honest stamp is never in the future.
            Read::New => match self.rules.check(&self.incoming, now().as_nanos(), self.active, gates) {
                Ok(()) => {
                    self.take();
                    self.note_fast_jog(gates);
                }
                Err(refused) => {
                    self.note_held_key(now());
                    self.refuse(refused);
                }
            },
        }
        self.held_key = self.held_key.filter(|&(_, until)| now() < until);
        let fresh = |until: Instant| if now() < until { Freshness::Fresh } else { Freshness::Stale };
        self.external.freshness = self.holds_until.map_or(Freshness::Never, fresh);
    }

    /// The command that was taken last.
    pub(crate) fn external(&self) -> &ExternalCommand {
        &self.external
    }

    /// The jog that a fresh command asks for.
    pub(crate) fn jog(&self) -> Option<JogRequest> {
        let fresh = self.jog.filter(|_| self.external.freshness == Freshness::Fresh);
        fresh.or(self.held_key.map(|(jog, _)| jog))
    }

    /// Notes a refused jog: the earlier motion does not resume with the same key.
    fn note_held_key(&mut self, now: Instant) {
        let until = now.as_nanos().saturating_add(types::time::nanoseconds(JOG_TIME_TO_LIVE));
        let refused = jog_of(&self.incoming.axes).map(|jog| JogRequest { refused: true, ..jog });
        self.held_key = refused.map(|jog| (jog, Instant::from_nanos(until)));
    }

    /// Values of outputs in a command that was taken since this was asked last.
    pub(super) fn new_signals(&mut self) -> Option<&[Option<Value>]> {
        std::mem::take(&mut self.taken).then_some(&self.incoming.signals)
    }

    /// Counts the parts of the command that the controller refuses, or clamps.
    pub(super) fn note(&mut self, output: &ControllerOutput) {
        self.active = usize::from(output.control.active);
        if let Some(why) = output.refused {
            self.refuse(Refused::whole(why));
        }
        if let Some(clamped) = output.clamped {
            self.note_clamp(clamped);
        }
    }

    /// State for readers.
    pub(super) fn state(&self) -> CommandState {
        CommandState { freshness: self.external.freshness, ..self.counts }
    }

    fn take(&mut self) {
        let Command { sequence, stamp_ns, time_to_live_ns, twist, pose, axes, signals: _ } = &self.incoming;
        self.taken = true;
        self.counts.sequence = *sequence;
        self.counts.stamp_ns = *stamp_ns;
        self.counts.accepted += 1;
        self.holds_until = Some(Instant::from_nanos(stamp_ns.saturating_add(*time_to_live_ns)));
        (self.external.twist, self.external.pose) = (*twist, *pose);
        self.external.axes.clone_from(axes);
        self.jog = jog_of(axes);
        self.held_key = None;
        if self.jog.is_some() {
            // It is the cycle's: no controller moves for it.
            self.external.axes.fill(None);
        }
    }

    /// Counts a jog that is asked to be faster than a jog may be.
    fn note_fast_jog(&mut self, gates: &Gates) {
        let Some(jog) = self.jog else { return };
        let is_fast = gates.axes.get(jog.axis).is_some_and(|gate| jog.velocity.abs() > gate.fastest);
        if is_fast {
            self.note_clamp(Clamped { limit: ipc::state::Limit::Velocity, axis: Some(jog.axis) });
        }
    }

    /// Counts a refusal; the command taken before stays.
    fn refuse(&mut self, refused: Refused) {
        self.counts.refused += 1;
        self.counts.last_refusal = refused.why as u8;
        self.counts.last_refused_axis = place(refused.axis);
        self.counts.last_refused_signal = place(refused.signal);
    }

    /// Counts a clamp, once a command however long that holds.
    fn note_clamp(&mut self, clamped: Clamped) {
        if self.clamped_of != self.counts.accepted {
            self.clamped_of = self.counts.accepted;
            self.counts.clamped += 1;
        }
        self.counts.last_clamp = clamped.limit as u8;
        self.counts.last_clamped_axis = place(clamped.axis);
    }
}

/// The first jog among the targets of the axes.
fn jog_of(axes: &[Option<AxisTarget>]) -> Option<JogRequest> {
    axes.iter().enumerate().find_map(|(axis, target)| match target {
        Some(AxisTarget::Jog(velocity)) => Some(JogRequest { axis, velocity: *velocity, refused: false }),
        _ => None,
    })
}

/// Index as the state has it.
fn place(index: Option<usize>) -> u16 {
    index.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX)
}

/// Rules of a robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The axes, in their order.
    pub axes: Vec<Takes>,
    /// Its base, if it moves about.
    pub base: Option<BaseRules>,
    /// Some controller brings the tool of an arm to poses.
    pub pose: bool,
    /// Parts that each controller follows, in their order; empty where one moves all.
    pub controllers: Vec<Follows>,
    /// The outputs that are set from outside, in their order.
    pub signals: Vec<Commanded>,
    /// A command may hold no longer than this.
    pub longest_time_to_live: Duration,
}

/// An output that is set from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Commanded {
    /// Its place among all signals.
    pub place: usize,
    /// The signal.
    pub signal: Signal,
}

impl Commanded {
    /// The rules of these signals.
    #[must_use]
    pub fn of(signals: &[Signal]) -> Vec<Self> {
        let places = signals.iter().enumerate().filter(|(_, signal)| signal.is_commanded());
        places.map(|(place, signal)| Self { place, signal: signal.clone() }).collect()
    }

    fn check(&self, value: Value) -> Result<(), Refusal> {
        match self.signal.raw(value) {
            Some((_, false)) => Ok(()),
            Some((_, true)) => Err(Refusal::SignalRange),
            None if value.is_finite() => Err(Refusal::SignalType),
            None => Err(Refusal::NotFinite),
        }
    }
}

/// Parts of a command that a controller follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follows {
    /// Targets of each axis, in their order.
    pub axes: Vec<Takes>,
    /// The velocity of the base.
    pub twist: bool,
    /// The pose of the tool.
    pub pose: bool,
}

impl Follows {
    /// True if it follows some target of a command.
    fn any(&self, command: &Command) -> bool {
        let mut axes = self.axes.iter().zip(&command.axes);
        axes.any(|(takes, target)| target.is_some_and(|target| takes.takes(target)))
            || (self.twist && command.twist.is_some())
            || (self.pose && command.pose.is_some())
    }
}

/// Limits of a base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseRules {
    /// It can move to its side.
    pub sideways: bool,
}

/// Reason that a command is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused {
    why: Refusal,
    /// The axis at fault; `None` for the whole command.
    axis: Option<usize>,
    /// The signal at fault, by its place among all.
    signal: Option<usize>,
}

impl Refused {
    fn whole(why: Refusal) -> Self {
        Self { why, axis: None, signal: None }
    }
}

impl Rules {
    /// Checks every number of `command`, read at `now_ns` with this controller active and axes that
    /// allow this.
    fn check(&self, command: &Command, now_ns: u64, active: usize, gates: &Gates) -> Result<(), Refused> {
        let whole = Refused::whole;
        let longest = types::time::nanoseconds(self.longest_time_to_live);
        if command.stamp_ns > now_ns || !(1..=longest).contains(&command.time_to_live_ns) {
            return Err(whole(Refusal::Time));
        }
        if command.axes.len() != self.axes.len() {
            return Err(whole(Refusal::Axes));
        }
        if command.signals.len() != self.signals.len() {
            return Err(whole(Refusal::Signals));
        }
        if let Some(twist) = command.twist {
            self.check_twist(twist).map_err(whole)?;
        }
        if let Some(pose) = command.pose {
            self.check_pose(pose).map_err(whole)?;
        }
        for (index, (takes, target)) in self.axes.iter().zip(&command.axes).enumerate() {
            let checked = target.map_or(Ok(()), |target| check_target(*takes, target));
            checked.map_err(|why| Refused { axis: Some(index), ..whole(why) })?;
        }
        for (commanded, value) in self.signals.iter().zip(&command.signals) {
            let checked = value.map_or(Ok(()), |value| commanded.check(value));
            checked.map_err(|why| Refused { signal: Some(commanded.place), ..whole(why) })?;
        }
        if let Some(jog) = jog_of(&command.axes) {
            let refused = |why| Refused { axis: Some(jog.axis), ..whole(why) };
            return check_jog(jog, command, gates).map_err(refused);
        }
        check_gates(command, gates)?;
        let first = command.axes.iter().position(Option::is_some);
        let has_target = first.is_some() || command.twist.is_some() || command.pose.is_some();
        // Outputs of the same command do not go stale for it.
        let has_signal = command.signals.iter().any(Option::is_some);
        let follows = || self.controllers.get(active).is_some_and(|it| it.any(command));
        if has_target && !has_signal && !self.controllers.is_empty() && !follows() {
            return Err(Refused { axis: first, ..whole(Refusal::Inactive) });
        }
        Ok(())
    }

    fn check_twist(&self, twist: Twist) -> Result<(), Refusal> {
        if !twist.is_finite() {
            return Err(Refusal::NotFinite);
        }
        match self.base {
            None => Err(Refusal::Mode),
            Some(base) if twist.y != MetresPerSecond::ZERO && !base.sideways => Err(Refusal::Mode),
            Some(_) => Ok(()),
        }
    }

    fn check_pose(&self, ToolPose { position, orientation }: ToolPose) -> Result<(), Refusal> {
        let finite = position.iter().all(|metres| metres.is_finite());
        if !(finite && orientation.iter().all(|number| number.is_finite())) {
            return Err(Refusal::NotFinite);
        }
        let length = orientation.iter().fold(0.0, |length: f64, part| length.hypot(*part));
        match self.pose {
            false => Err(Refusal::Mode),
            true if (length - 1.0).abs() > ToolPose::UNIT => Err(Refusal::Orientation),
            true => Ok(()),
        }
    }
}

/// Checks a jog, which is the only target of its command. One at 0 rad/s brings the axis to rest,
/// and is always taken.
fn check_jog(jog: JogRequest, command: &Command, gates: &Gates) -> Result<(), Refusal> {
    let alone = command.axes.iter().flatten().count() == 1;
    if !alone || command.twist.is_some() || command.pose.is_some() {
        return Err(Refusal::JogAlone);
    }
    if command.time_to_live_ns > types::time::nanoseconds(JOG_TIME_TO_LIVE) {
        return Err(Refusal::JogTime);
    }
    match gates.axes.get(jog.axis) {
        Some(gate) if jog.velocity.0 != 0.0 => gate.jog,
        _ => Ok(()),
    }
}

/// Checks that the axes of a command may be moved by a controller.
fn check_gates(command: &Command, gates: &Gates) -> Result<(), Refused> {
    let refused = |axis, why| Refused { axis: Some(axis), ..Refused::whole(why) };
    for (axis, (gate, target)) in gates.axes.iter().zip(&command.axes).enumerate() {
        if target.is_some() {
            gate.target.map_err(|why| refused(axis, why))?;
        }
    }
    match gates.chain.filter(|_| command.twist.is_some() || command.pose.is_some()) {
        Some((axis, why)) => Err(refused(axis, why)),
        None => Ok(()),
    }
}

fn check_target(takes: Takes, target: AxisTarget) -> Result<(), Refusal> {
    let takes_it = takes.takes(target) || matches!(target, AxisTarget::Jog(_));
    match (target.number().is_finite(), takes_it) {
        (false, _) => Err(Refusal::NotFinite),
        (true, false) => Err(Refusal::Mode),
        (true, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
