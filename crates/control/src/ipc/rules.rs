//! Rules for commands from outside: a command is taken whole, or not at all.

use std::time::Duration;

use ipc::command::{AxisTarget, Command, Pose, Twist};
use ipc::state::Refusal;
use motion::kinematics::ToolPose;
use motion::{MetresPerSecond, NewtonMetres, Radians, RadiansPerSecond};
use types::{Signal, Value};

/// Limits of a robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The axes, in their order.
    pub axes: Vec<AxisRules>,
    /// Its base, if it moves about.
    pub base: Option<BaseRules>,
    /// Some controller brings the tool of an arm to poses.
    pub pose: bool,
    /// The outputs that are set from outside, in their order.
    pub signals: Vec<Commanded>,
    /// A command may hold no longer than this.
    pub longest_time_to_live: Duration,
}

/// Limits of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisRules {
    /// Which kinds of targets some controller of the robot can follow.
    pub takes: Takes,
    /// Lowest and highest position; `None` for an axis that turns for ever.
    pub position: Option<(Radians, Radians)>,
    /// Highest speed either way.
    pub velocity: RadiansPerSecond,
    /// Highest torque either way.
    pub effort: NewtonMetres,
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
    /// Those of these signals.
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

/// Kinds of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// Positions.
    pub position: bool,
    /// Velocities.
    pub velocity: bool,
    /// Torques.
    pub effort: bool,
}

/// Limits of a base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseRules {
    /// It can move to its side.
    pub sideways: bool,
    /// Highest speed, whichever way.
    pub velocity: MetresPerSecond,
    /// Highest yaw rate either way.
    pub yaw: RadiansPerSecond,
}

/// Why a command is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: Refusal,
    /// The axis whose fault it is; `None` for the whole of it.
    pub(super) axis: Option<usize>,
    /// The signal whose fault it is, by its place among all.
    pub(super) signal: Option<usize>,
}

impl Refused {
    pub(super) fn whole(why: Refusal) -> Self {
        Self { why, axis: None, signal: None }
    }
}

impl Rules {
    /// Checks every number of `command`, read at `now_ns`.
    pub(super) fn check(&self, command: &Command, now_ns: u64) -> Result<(), Refused> {
        let whole = Refused::whole;
        let longest = u64::try_from(self.longest_time_to_live.as_nanos()).unwrap_or(u64::MAX);
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
        for (index, (rules, target)) in self.axes.iter().zip(&command.axes).enumerate() {
            let checked = target.map_or(Ok(()), |target| rules.check(target));
            checked.map_err(|why| Refused { axis: Some(index), ..whole(why) })?;
        }
        for (commanded, value) in self.signals.iter().zip(&command.signals) {
            let checked = value.map_or(Ok(()), |value| commanded.check(value));
            checked.map_err(|why| Refused { signal: Some(commanded.place), ..whole(why) })?;
        }
        Ok(())
    }

    fn check_twist(&self, twist: Twist) -> Result<(), Refusal> {
        let Twist { x, y, yaw } = twist;
        if !(x.is_finite() && y.is_finite() && yaw.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        match self.base {
            None => Err(Refusal::Mode),
            Some(base) if y != 0.0 && !base.sideways => Err(Refusal::Mode),
            Some(base) if x.hypot(y) > base.velocity.0 * ROUNDED || yaw.abs() > base.yaw.0 * ROUNDED => {
                Err(Refusal::VelocityLimit)
            }
            Some(_) => Ok(()),
        }
    }

    fn check_pose(&self, Pose { position, orientation }: Pose) -> Result<(), Refusal> {
        if !position.iter().chain(&orientation).all(|number| number.is_finite()) {
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

impl AxisRules {
    fn check(&self, target: AxisTarget) -> Result<(), Refusal> {
        let (AxisTarget::Position(number) | AxisTarget::Velocity(number) | AxisTarget::Effort(number)) =
            target;
        if !number.is_finite() {
            return Err(Refusal::NotFinite);
        }
        let (taken, within, beyond) = match target {
            AxisTarget::Position(position) => {
                let within = self
                    .position
                    .is_none_or(|(lowest, highest)| (lowest.0..=highest.0).contains(&position));
                (self.takes.position, within, Refusal::PositionLimit)
            }
            AxisTarget::Velocity(velocity) => {
                let within = velocity.abs() <= self.velocity.0 * ROUNDED;
                (self.takes.velocity, within, Refusal::VelocityLimit)
            }
            AxisTarget::Effort(effort) => {
                let within = effort.abs() <= self.effort.0 * ROUNDED;
                (self.takes.effort, within, Refusal::EffortLimit)
            }
        };
        match (taken, within) {
            (false, _) => Err(Refusal::Mode),
            (true, false) => Err(beyond),
            (true, true) => Ok(()),
        }
    }
}

/// A speed of exactly the limit may have been rounded up on its way through other units.
const ROUNDED: f64 = 1.0 + 1e-9;

#[cfg(test)]
mod tests {
    use types::ValueType;
    use types::signal::{Flow, OutputBehaviour, Writer};

    use super::*;

    const NOW: u64 = 10_000_000_000;

    fn rules() -> Rules {
        let axis = |takes| AxisRules {
            takes,
            position: Some((Radians(-1.0), Radians(2.0))),
            velocity: RadiansPerSecond(3.0),
            effort: NewtonMetres(4.0),
        };
        let position = Takes { position: true, velocity: true, effort: false };
        let torque = Takes { effort: true, ..Takes::default() };
        Rules {
            axes: vec![axis(position), axis(torque)],
            base: Some(BaseRules {
                sideways: false,
                velocity: MetresPerSecond(1.0),
                yaw: RadiansPerSecond(2.0),
            }),
            pose: true,
            signals: Commanded::of(&signals()),
            longest_time_to_live: Duration::from_secs(1),
        }
    }

    fn good() -> Command {
        Command {
            sequence: 1,
            stamp_ns: NOW,
            time_to_live_ns: 100_000_000,
            twist: Some(Twist { x: -1.0, y: 0.0, yaw: 2.0 }),
            pose: Some(Pose { position: [0.1, 0.2, 0.3], orientation: [0.6, 0.0, -0.8, 0.0] }),
            axes: vec![Some(AxisTarget::Position(2.0)), Some(AxisTarget::Effort(-4.0))],
            signals: vec![Some(Value::Bool(true)), Some(Value::Real(9.5))],
        }
    }

    /// An input, and two outputs of the outside.
    fn signals() -> Vec<Signal> {
        let outside = OutputBehaviour { writer: Writer::Outside, ..OutputBehaviour::default() };
        let signal = |value_type, range, flow| Signal {
            name: String::new(),
            sub_device: 0,
            bit_offset: 0,
            value_type,
            unit: String::new(),
            scaling: None,
            range,
            flow,
        };
        vec![
            signal(ValueType::Bool, None, Flow::Input),
            signal(ValueType::Bool, None, Flow::Output(outside)),
            signal(ValueType::Signed(16), Some((-10.0, 10.0)), Flow::Output(outside)),
        ]
    }

    fn refused(change: impl FnOnce(&mut Command)) -> Option<(Refusal, Option<usize>)> {
        let mut command = good();
        change(&mut command);
        rules().check(&command, NOW).err().map(|Refused { why, axis, .. }| (why, axis))
    }

    #[test]
    fn a_command_within_every_limit_is_taken() {
        assert_eq!(refused(|_| ()), None);
        assert_eq!(refused(|command| command.axes = vec![None, None]), None);
        assert_eq!(refused(|command| command.time_to_live_ns = 1_000_000_000), None);
        assert_eq!(refused(|command| command.axes[0] = Some(AxisTarget::Velocity(-3.0))), None);
    }

    #[test]
    fn a_command_of_another_time_is_refused() {
        let time = Some((Refusal::Time, None));
        assert_eq!(refused(|command| command.stamp_ns = NOW + 1), time);
        assert_eq!(refused(|command| command.stamp_ns = u64::MAX), time);
        assert_eq!(refused(|command| command.time_to_live_ns = 0), time);
        assert_eq!(refused(|command| command.time_to_live_ns = 1_000_000_001), time);
    }

    #[test]
    fn a_command_for_another_robot_is_refused() {
        for axes in [vec![], vec![None], vec![None; 3]] {
            assert_eq!(refused(|command| command.axes = axes), Some((Refusal::Axes, None)));
        }
    }

    // feature(signals): values from outside that cannot be are refused with the signal and the reason
    #[test]
    fn each_signal_has_its_own_reason() {
        let rows = [
            (0, Value::Unsigned(1), Refusal::SignalType),
            (0, Value::Real(f64::NAN), Refusal::NotFinite),
            (1, Value::Bool(true), Refusal::SignalType),
            (1, Value::Real(f64::INFINITY), Refusal::NotFinite),
            (1, Value::Real(10.1), Refusal::SignalRange),
            (1, Value::Signed(i64::MIN), Refusal::SignalRange),
            (1, Value::Unsigned(u64::MAX), Refusal::SignalRange),
        ];
        for (index, value, why) in rows {
            let command = Command { signals: vec![None; 2], ..good() };
            assert_eq!(rules().check(&command, NOW), Ok(()));
            let mut command = good();
            command.signals[index] = Some(value);
            let refused = Refused { signal: Some(index + 1), ..Refused::whole(why) };
            assert_eq!(rules().check(&command, NOW), Err(refused), "{value:?}");
        }
        for signals in [vec![], vec![None], vec![None; 3]] {
            assert_eq!(refused(|command| command.signals = signals), Some((Refusal::Signals, None)));
        }
    }

    #[test]
    fn each_axis_has_its_own_reason() {
        use AxisTarget::{Effort, Position, Velocity};
        let rows = [
            (0, Position(2.000_001), Refusal::PositionLimit),
            (0, Position(-1.1), Refusal::PositionLimit),
            (0, Position(f64::NAN), Refusal::NotFinite),
            (0, Velocity(3.1), Refusal::VelocityLimit),
            (0, Velocity(f64::NEG_INFINITY), Refusal::NotFinite),
            (0, Effort(0.0), Refusal::Mode),
            (1, Position(0.0), Refusal::Mode),
            (1, Velocity(0.0), Refusal::Mode),
            (1, Effort(4.1), Refusal::EffortLimit),
            (1, Effort(f64::NAN), Refusal::NotFinite),
        ];
        for (axis, target, why) in rows {
            let found = refused(|command| command.axes[axis] = Some(target));
            assert_eq!(found, Some((why, Some(axis))), "{target:?}");
        }
    }

    #[test]
    fn a_twist_the_base_cannot_do_is_refused() {
        let rows = [
            ((1.1, 0.0, 0.0), Refusal::VelocityLimit),
            ((0.0, 0.1, 0.0), Refusal::Mode),
            ((0.0, 0.0, -2.1), Refusal::VelocityLimit),
            ((f64::NAN, 0.0, 0.0), Refusal::NotFinite),
            ((0.0, f64::INFINITY, 0.0), Refusal::NotFinite),
        ];
        for ((x, y, yaw), why) in rows {
            assert_eq!(refused(|command| command.twist = Some(Twist { x, y, yaw })), Some((why, None)));
        }
        let mut rules = rules();
        rules.base = Some(BaseRules { sideways: true, ..rules.base.unwrap() });
        let both = |speed| Command { twist: Some(Twist { x: speed, y: -speed, yaw: 0.0 }), ..good() };
        assert_eq!(rules.check(&both(0.7), NOW), Ok(()));
        let refused = rules.check(&both(0.8), NOW).unwrap_err();
        assert_eq!(refused.why, Refusal::VelocityLimit, "ahead and aside together are faster than 1 m/s");
        rules.base = None;
        let refused = rules.check(&good(), NOW).unwrap_err();
        assert_eq!((refused.why, refused.axis), (Refusal::Mode, None));
    }

    // feature(axes): `cartesian`: poses that are none are refused at the IPC
    #[test]
    fn a_pose_is_finite_and_turned_by_a_unit_quaternion() {
        let pose = |position, orientation| refused(|it| it.pose = Some(Pose { position, orientation }));
        assert_eq!(pose([9.0; 3], [0.5, 0.5, -0.5, 0.5004]), None);
        let rows = [
            ([0.0; 3], [0.0; 4], Refusal::Orientation),
            ([0.0; 3], [0.0, 0.0, 0.0, 1.002], Refusal::Orientation),
            ([0.0; 3], [f64::MAX; 4], Refusal::Orientation),
            ([0.0, f64::NAN, 0.0], [0.0, 0.0, 0.0, 1.0], Refusal::NotFinite),
            ([0.0; 3], [0.0, 0.0, f64::INFINITY, 1.0], Refusal::NotFinite),
        ];
        for (position, orientation, why) in rows {
            assert_eq!(pose(position, orientation), Some((why, None)), "{position:?} {orientation:?}");
        }
        let rules = Rules { pose: false, ..rules() };
        assert_eq!(rules.check(&good(), NOW), Err(Refused::whole(Refusal::Mode)));
    }

    // feature(ipc): any bits in a command: only numbers within the limits are taken
    #[test]
    fn whatever_bits_a_peer_writes_only_numbers_within_the_limits_are_taken() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut taken, rules) = (0, rules());
        for _ in 0..200_000 {
            // Mostly plausible, for otherwise nothing is ever taken.
            let mut number = || match random.u8(..8) {
                0 => f64::from_bits(random.u64(..)),
                _ => random.f64() * 8.0 - 4.0,
            };
            let numbers = [number(), number(), number(), number(), number()];
            let target = |kind: u8, number| match kind {
                0 => None,
                1 => Some(AxisTarget::Position(number)),
                2 => Some(AxisTarget::Velocity(number)),
                _ => Some(AxisTarget::Effort(number)),
            };
            let twist = Twist { x: numbers[2], y: 0.0, yaw: numbers[4] };
            let command = Command {
                twist: random.bool().then_some(twist),
                axes: vec![target(random.u8(..4), numbers[0]), target(random.u8(..4), numbers[1])],
                ..good()
            };
            if rules.check(&command, NOW).is_ok() {
                taken += 1;
                for target in command.axes.iter().flatten() {
                    match *target {
                        AxisTarget::Position(position) => assert!((-1.0..=2.0).contains(&position)),
                        AxisTarget::Velocity(velocity) => assert!(velocity.abs() < 3.001),
                        AxisTarget::Effort(effort) => assert!(effort.abs() < 4.001),
                    }
                }
                assert!(command.twist.is_none_or(|twist| twist.x.abs() < 1.001 && twist.yaw.abs() < 2.001));
            }
        }
        assert!(taken > 1_000, "{taken}");
    }
}
