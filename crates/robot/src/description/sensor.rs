/// Signals that together are a measurement others know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sensor {
    /// Name; unique, and one that ROS takes.
    pub name: String,
    /// Measurement.
    pub kind: SensorKind,
    /// Frame its values are in.
    pub frame: String,
    /// Names of its signals, in the order of its kind.
    pub signals: Vec<String>,
}

/// Measurement of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensorKind {
    /// Force x, y, z in N; torque x, y, z in N m.
    ForceTorque,
    /// Acceleration x, y, z in m/s²; angular velocity x, y, z in rad/s; if there are four more, orientation x, y, z, w.
    Imu,
    /// Temperature in degrees Celsius.
    Temperature,
}

impl SensorKind {
    /// Name in the robot file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForceTorque => "force_torque",
            Self::Imu => "imu",
            Self::Temperature => "temperature",
        }
    }
}
