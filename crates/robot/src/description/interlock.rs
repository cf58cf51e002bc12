/// A digital input that stops axes, or permits them to be enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interlock {
    /// What it is called; unique in the robot.
    pub name: String,
    /// What it does when its input does not allow.
    pub kind: InterlockKind,
    /// Position on the bus of its SubDevice.
    pub sub_device: usize,
    /// Which one of its digital inputs ([`ethercat::pdo::PdoMapping::digital_inputs`]), from 1.
    pub channel: usize,
    /// The input allows while it is low.
    pub inverted: bool,
    /// Indices of the axes it is for.
    pub axes: Vec<usize>,
}

/// What an interlock does when its input does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterlockKind {
    /// Brings its axes to rest, then takes their torque, until somebody resets them.
    Stop,
    /// The same, as long as it lasts.
    Enable,
}
