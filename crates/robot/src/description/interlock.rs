/// A digital input that stops axes, or permits them to be enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interlock {
    /// Name; unique in the robot.
    pub name: String,
    /// Effect while its input does not permit.
    pub kind: InterlockKind,
    /// Position on the bus of its SubDevice.
    pub sub_device: usize,
    /// Number of the digital input ([`ethercat::pdo::PdoMapping::digital_inputs`]), from 1.
    pub channel: usize,
    /// True if the input permits while it is low.
    pub inverted: bool,
    /// Indices of its axes.
    pub axes: Vec<usize>,
}

/// Effect of an interlock while its input does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterlockKind {
    /// Brings its axes to rest, then disables them, until they are reset.
    Stop,
    /// Brings its axes to rest, then disables them; once the input permits again, they may be enabled.
    Enable,
}
