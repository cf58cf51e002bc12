//! Description of a running cycle, written once as JSON before the first cycle.

use serde::{Deserialize, Serialize};
use types::signal::Direction;
use types::{
    AxisMode, BaseKind, ControllerKind, InterlockKind, PortKind, SensorKind, Takes, ValueKind, ValueType,
};

use crate::state::region::Rows;

/// Description of a cycle and its robot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Version of the program that runs the cycle.
    pub version: String,
    /// Name of the robot.
    pub robot: String,
    /// Time between two releases.
    pub period_ns: u64,
    /// Longest time-to-live of a command; 0 where it is not known.
    #[serde(default)]
    pub longest_time_to_live_ns: u64,
    /// Axes, in the order of the robot file.
    pub axes: Vec<AxisDescription>,
    /// Controllers that can be switched to; the first one is active at the start.
    pub controllers: Vec<ControllerDescription>,
    /// Mobile base, if the robot has one.
    pub base: Option<BaseDescription>,
    /// Frames that are fixed to others: the wheels' axles, and the frames named in the robot file.
    #[serde(default)]
    pub frames: Vec<FrameDescription>,
    /// The arm that follows tool poses; none without such a controller.
    #[serde(default)]
    pub arm: Option<ArmDescription>,
    /// URDF of the arm, if the robot has one: the text of the file.
    pub urdf: Option<String>,
    /// Names of the SubDevices, in the order a frame passes them.
    pub sub_devices: Vec<String>,
    /// Process data by name: the named signals, then every other entry.
    #[serde(default)]
    pub signals: Vec<SignalDescription>,
    /// Signals that together are a measurement.
    #[serde(default)]
    pub sensors: Vec<SensorDescription>,
    /// Digital inputs that stop axes, or permit something, in the order of the robot file.
    #[serde(default)]
    pub interlocks: Vec<InterlockDescription>,
    /// Digital inputs that show whether the brakes are open or closed, in the order of the axes.
    #[serde(default)]
    pub brake_inputs: Vec<BrakeInputDescription>,
    /// Ports that can be opened.
    pub ports: Vec<PortDescription>,
}

/// Description of a digital input that stops axes, or permits them to be enabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterlockDescription {
    /// Unique name.
    pub name: String,
    /// Effect while its input does not permit.
    pub kind: InterlockKind,
    /// Name of the SubDevice of its input.
    pub sub_device: String,
    /// Number of the digital input of that SubDevice, from 1.
    pub channel: usize,
    /// True if the input permits while it is low.
    pub inverted: bool,
    /// Indices of its axes.
    pub axes: Vec<usize>,
}

impl InterlockDescription {
    /// The interlock for a sentence: `interlock "door" (inputs-1, channel 3)`.
    #[must_use]
    pub fn words(&self) -> String {
        interlock_input(&self.name, &self.sub_device, self.channel)
    }
}

/// Description of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisDescription {
    /// Unique name.
    pub name: String,
    /// Mode of its drive in the robot file.
    pub mode: AxisMode,
    /// Lowest and highest position, rad; none for a continuous axis.
    pub position_limits: Option<(f64, f64)>,
    /// Highest speed in either direction, rad/s.
    pub velocity_limit: f64,
    /// Highest acceleration, rad/s^2; none where the cycle has none.
    #[serde(default)]
    pub acceleration_limit: Option<f64>,
    /// Highest jerk, rad/s^3; none where the cycle has none.
    #[serde(default)]
    pub jerk_limit: Option<f64>,
    /// Highest torque in either direction at the axis, N m.
    pub effort_limit: f64,
    /// Highest speed of a jog in either direction, rad/s; none where the cycle does not tell.
    #[serde(default)]
    pub jog_velocity: Option<f64>,
    /// True if its drive has the torque in its process data; else the torque in a state is 0.
    #[serde(default = "told")]
    pub measures_effort: bool,
    /// Kinds of targets that commands may give it; none where the cycle does not tell.
    #[serde(default)]
    pub takes: Option<Takes>,
    /// Index of the SubDevice of its drive; none where the cycle does not report it.
    #[serde(default)]
    pub sub_device: Option<usize>,
    /// Ways to make it ready while it is unreferenced; none where the cycle does not report them.
    #[serde(default)]
    pub referencing: Option<Referencing>,
}

/// Ways to make an unreferenced axis ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Referencing {
    /// Its homing finds a switch.
    pub by_switch: bool,
    /// Its encoder is absolute: a measured position can be accepted.
    pub by_measurement: bool,
}

/// Description of a digital input that shows whether a brake is open or closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrakeInputDescription {
    /// Index of the axis of the brake.
    pub axis: usize,
    /// `released`: on while the brake is open; `closed`: on while it is closed.
    pub name: String,
    /// Name of the SubDevice of the input.
    pub sub_device: String,
    /// Number of the digital input of that SubDevice, from 1.
    pub channel: usize,
    /// True if the input is on while it is low.
    pub inverted: bool,
}

impl BrakeInputDescription {
    /// The input for a sentence: `input "released" (inputs-2, channel 1)`.
    #[must_use]
    pub fn words(&self) -> String {
        brake_input(&self.name, &self.sub_device, self.channel)
    }
}

impl AxisDescription {
    /// A continuous axis of this name, mode, velocity limit (rad/s) and effort limit (N m), without
    /// limits of acceleration and jerk, with a drive that reports its torque.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        mode: impl Into<AxisMode>,
        velocity_limit: f64,
        effort_limit: f64,
    ) -> Self {
        Self {
            name: name.into(),
            mode: mode.into(),
            position_limits: None,
            velocity_limit,
            acceleration_limit: None,
            jerk_limit: None,
            effort_limit,
            jog_velocity: None,
            measures_effort: true,
            takes: None,
            sub_device: None,
            referencing: None,
        }
    }
}

/// Effort of a cycle that says nothing about it.
fn told() -> bool {
    true
}

/// Description of a signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SignalDescription {
    /// Unique name.
    pub name: String,
    /// Name of its SubDevice.
    pub sub_device: String,
    /// Way of its value.
    pub direction: Direction,
    /// Type of its entry: in JSON `"bool"`, `"uint16"`, `"int12"`, `"float"`, `"double"`.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// Kind of its value in a state.
    pub kind: ValueKind,
    /// Unit, empty for none.
    pub unit: String,
    /// Lowest and highest value.
    pub range: Option<(f64, f64)>,
    /// Scale and offset that make its value of the entry's number; none for the number itself.
    #[serde(default)]
    pub scaling: Option<(f64, f64)>,
    /// Writer of an output: [`OUTSIDE`], `"controller"`, or a part of the robot, as
    /// `axis "spindle"`.
    pub writer: Option<String>,
    /// True if the robot file gives it its name.
    #[serde(default)]
    pub named: bool,
}

/// Description of signals that together are a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorDescription {
    /// Unique name.
    pub name: String,
    /// Measurement.
    pub kind: SensorKind,
    /// Frame its values are in.
    pub frame: String,
    /// Indices of its signals: force and torque; acceleration, angular velocity and perhaps
    /// orientation; temperature.
    pub signals: Vec<usize>,
}

/// Writer of the outputs that the holder of the lease commands.
pub const OUTSIDE: &str = "outside";

impl Description {
    /// Places of the outputs that are set from outside, in the order of
    /// [`crate::command::Command::signals`].
    pub fn commanded(&self) -> impl Iterator<Item = usize> + '_ {
        let outside = |it: &SignalDescription| it.writer.as_deref() == Some(OUTSIDE);
        let places = self.signals.iter().enumerate();
        places.filter(move |(_, it)| outside(it)).map(|(place, _)| place)
    }

    /// Places of the elements of a named signal with several values, in their order; empty for
    /// another name.
    #[must_use]
    pub fn elements(&self, name: &str) -> Vec<usize> {
        let places = self.signals.iter().enumerate();
        let found = places.filter(|(_, it)| it.named && types::signal::is_element(name, &it.name));
        found.map(|(place, _)| place).collect()
    }

    /// Rows of a command.
    pub(crate) fn commanded_rows(&self) -> Rows {
        Rows { axes: self.axes.len(), signals: self.commanded().count(), interlocks: 0 }
    }

    /// Rows of a state.
    pub(crate) fn rows(&self) -> Rows {
        let Self { axes, signals, interlocks, .. } = self;
        Rows { axes: axes.len(), signals: signals.len(), interlocks: interlocks.len() }
    }
}

/// Description of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerDescription {
    /// Unique name.
    pub name: String,
    /// Kind as in the robot file; `None` for one that a program brings along, in JSON `"own"`.
    #[serde(with = "own")]
    pub kind: Option<ControllerKind>,
    /// Indices of the axes it moves.
    pub axes: Vec<usize>,
}

impl ControllerDescription {
    /// Name of its kind.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        self.kind.map_or(own::NAME, ControllerKind::name)
    }
}

/// Kind of a controller as text.
mod own {
    use serde::de::{Deserialize, Deserializer, IntoDeserializer};
    use serde::{Serialize, Serializer};
    use types::ControllerKind;

    /// Kind of a controller that a program brings along.
    pub(super) const NAME: &str = "own";

    pub(super) fn serialize<S: Serializer>(
        kind: &Option<ControllerKind>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        kind.map_or(NAME, ControllerKind::name).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ControllerKind>, D::Error> {
        let name = String::deserialize(deserializer)?;
        (name != NAME).then(|| ControllerKind::deserialize(name.into_deserializer())).transpose()
    }
}

/// Description of a mobile base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseDescription {
    /// Arrangement of its wheels.
    pub kind: BaseKind,
    /// Highest speed, m/s.
    pub velocity_limit: f64,
    /// Highest yaw rate, rad/s.
    pub yaw_limit: f64,
    /// Name of the fixed frame of odometry.
    pub odometry_frame: String,
    /// Name of the frame of the base.
    pub base_frame: String,
    /// Driven wheels.
    #[serde(default)]
    pub wheels: Vec<WheelDescription>,
}

/// Description of a driven wheel of a base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WheelDescription {
    /// Index of its axis.
    pub axis: usize,
    /// Velocity that the base has of 1 rad/s of this wheel, in its own frame: x, y, m/s; yaw,
    /// rad/s.
    pub twist: [f64; 3],
}

/// Description of a frame that is fixed to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FrameDescription {
    /// Unique name.
    pub name: String,
    /// Frame that it is fixed to.
    pub parent: String,
    /// Place in the parent, m.
    pub translation: [f64; 3],
    /// Orientation in the parent: quaternion x, y, z, w.
    pub rotation: [f64; 4],
}

/// Description of an arm that follows tool poses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmDescription {
    /// Link of the URDF that is the frame of poses.
    pub base: String,
    /// Link of the URDF that is brought to a pose.
    pub tool: String,
}

/// Description of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortDescription {
    /// Unique name.
    pub name: String,
    /// Messages or a stream.
    pub kind: PortKind,
    /// Longest message, or size of the stream's buffer, bytes.
    pub size: usize,
    /// Messages the buffer holds in each direction; 0 for a stream.
    pub depth: usize,
}

/// An interlock for a sentence, by its name and its input:
/// `interlock "door" (inputs-1, channel 3)`.
#[must_use]
pub fn interlock_input(name: &str, sub_device: &str, channel: usize) -> String {
    format!("interlock \"{name}\" ({sub_device}, channel {channel})")
}

/// An input of the feedback of a brake, for a sentence: `input "released" (inputs-2, channel 1)`.
#[must_use]
pub fn brake_input(name: &str, sub_device: &str, channel: usize) -> String {
    format!("input \"{name}\" ({sub_device}, channel {channel})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_go_by_their_names_in_json() {
        let named = |kind| ControllerDescription { name: "it".to_owned(), kind, axes: Vec::new() };
        let text = |kind: &str| format!(r#"{{"name":"it","kind":"{kind}","axes":[]}}"#);
        let kinds = ControllerKind::ALL.map(|kind| (kind.name(), Some(kind)));
        for (name, kind) in kinds.into_iter().chain([("own", None)]) {
            assert_eq!(named(kind).kind_name(), name);
            assert_eq!(serde_json::to_string(&named(kind)).unwrap(), text(name));
            assert_eq!(serde_json::from_str::<ControllerDescription>(&text(name)).unwrap(), named(kind));
        }
        let error = serde_json::from_str::<ControllerDescription>(&text("sine")).unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `sine`, expected one of `hold`, `sinusoid`"), "{error}");
        for mode in AxisMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
    }

    #[test]
    fn types_and_kinds_of_signals_go_by_their_names_in_json() {
        let signal = SignalDescription {
            value_type: ValueType::Signed(12),
            kind: ValueKind::Real,
            ..Default::default()
        };
        let text = serde_json::to_string(&signal).unwrap();
        assert!(text.contains(r#""type":"int12","kind":"real""#), "{text}");
        assert_eq!(serde_json::from_str::<SignalDescription>(&text).unwrap(), signal);
        let sentence = |wrong: &str, right: &str| {
            serde_json::from_str::<SignalDescription>(&text.replace(right, wrong)).unwrap_err().to_string()
        };
        let expected =
            "unknown type `int128`, expected bool, uint1 to uint64, int1 to int64, float or double";
        assert!(sentence("int128", "int12").starts_with(expected));
        assert!(
            sentence("complex", "real").starts_with("unknown variant `complex`, expected one of `bool`")
        );
    }
}
