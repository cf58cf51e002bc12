//! Kinds of the parts of a robot.

use core::time::Duration;

use crate::axis::AxisMode;
use crate::macros::named;

named! {
    /// Kind of a controller.
    ControllerKind {
        /// Enables every axis and keeps it in place.
        Hold = "hold";
        /// Swings every axis about its position at the start.
        Sinusoid = "sinusoid";
        /// Follows trajectories.
        JointTrajectory = "joint_trajectory";
        /// Moves the axes to commanded positions, within their limits.
        JointPosition = "joint_position";
        /// Turns the axes at commanded velocities, within their limits.
        JointVelocity = "joint_velocity";
        /// Gives the axes commanded torques.
        JointEffort = "joint_effort";
        /// Drives a base of two driven wheels by a twist.
        DiffDrive = "diff_drive";
        /// Drives a base that can move in any direction by a twist.
        OmniDrive = "omni_drive";
        /// Moves the tool of the arm to poses, on straight lines.
        Cartesian = "cartesian";
        /// Runs in a separate process, which the cycle waits for.
        External = "external";
    }
}

impl ControllerKind {
    /// True if it drives a base by a twist.
    #[must_use]
    pub const fn drives_a_base(self) -> bool {
        matches!(self, Self::DiffDrive | Self::OmniDrive)
    }

    /// Modes of the axes that it can move.
    #[must_use]
    pub const fn modes(self) -> &'static [AxisMode] {
        use AxisMode::{
            CyclicPosition, CyclicTorque, CyclicVelocity, InterpolatedPosition, ProfilePosition,
            ProfileTorque, ProfileVelocity,
        };
        match self {
            Self::Hold | Self::External => &AxisMode::ALL,
            // The torque that makes an axis swing depends on its load, and a drive that makes its
            // own way does not swing along.
            Self::Sinusoid => &[CyclicPosition, InterpolatedPosition, CyclicVelocity],
            Self::JointTrajectory | Self::Cartesian => &[CyclicPosition, InterpolatedPosition],
            Self::JointPosition => &[CyclicPosition, InterpolatedPosition, ProfilePosition],
            Self::JointVelocity => &[CyclicPosition, InterpolatedPosition, CyclicVelocity, ProfileVelocity],
            Self::DiffDrive | Self::OmniDrive => &[CyclicVelocity],
            Self::JointEffort => &[CyclicTorque, ProfileTorque],
        }
    }
}

named! {
    /// Arrangement of the wheels of a base.
    BaseKind {
        /// Two driven wheels on one axle.
        Differential = "differential";
        /// Four wheels with rollers at an angle, and axles across.
        Mecanum = "mecanum";
        /// Four wheels with rollers across, at the corners, rolling along the sides' diagonals.
        Omni = "omni";
    }
}

named! {
    /// Measurement of a sensor.
    SensorKind {
        /// Force x, y, z in N; torque x, y, z in N m.
        ForceTorque = "force_torque";
        /// Acceleration x, y, z in m/s²; angular velocity x, y, z in rad/s; if there are four more,
        /// orientation x, y, z, w.
        Imu = "imu";
        /// Temperature in degrees Celsius.
        Temperature = "temperature";
    }
}

named! {
    /// Kind of a port.
    PortKind {
        /// A queue of messages each way.
        Message = "message";
        /// A byte stream each way.
        Stream = "stream";
    }
}

named! {
    /// Kind of a device that is not on the bus.
    PeripheralKind {
        /// HC-SR04 on two lines of a GPIO chip.
        Sonar = "sonar";
        /// SCIP 2.0 on a serial port.
        RangeFinder = "range_finder";
        /// LED strip on an SPI bus.
        LedStrip = "led_strip";
        /// Inertial measurement unit on an I2C bus.
        Imu = "imu";
        /// Two driven wheels.
        Actuators = "actuators";
    }
}

impl PeripheralKind {
    /// Usual name of its port.
    #[must_use]
    pub const fn port(self) -> &'static str {
        match self {
            Self::Sonar => "sonar",
            Self::RangeFinder => "scan",
            Self::LedStrip => "led",
            Self::Imu => "imu",
            Self::Actuators => "wheels",
        }
    }

    /// Usual period of its real-time task, from the service robot paper.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_millis(match self {
            Self::Sonar => 30,
            Self::RangeFinder => 200,
            Self::LedStrip => 20,
            Self::Imu | Self::Actuators => 10,
        })
    }
}

named! {
    /// Chip of a strip's LEDs.
    #[derive(Default)]
    LedChip {
        /// APA102 or SK9822, with a clock line.
        #[default]
        Apa102 = "apa102";
        /// WS2812 or SK6812, without a clock line.
        Ws2812 = "ws2812";
    }
}

named! {
    /// Inertial measurement unit.
    #[derive(Default)]
    ImuUnit {
        /// MPU-6050: angular velocities and accelerations.
        #[default]
        Mpu6050 = "mpu6050";
        /// myAHRS+: with a magnetometer, and its own orientation estimate.
        MyAhrs = "myahrs";
    }
}

impl ImuUnit {
    /// Usual I2C address.
    #[must_use]
    pub const fn address(self) -> u16 {
        match self {
            Self::Mpu6050 => 0x68,
            Self::MyAhrs => 0x20,
        }
    }
}

named! {
    /// Output of a myAHRS+ that the orientation comes from.
    #[derive(Default)]
    ImuOutput {
        /// Its quaternion.
        #[default]
        Quaternion = "quaternion";
        /// Its roll, pitch and yaw.
        Euler = "euler";
        /// Its uncorrected angular velocities and accelerations, from which the orientation is
        /// computed here.
        Raw = "raw";
    }
}

named! {
    /// Digital-to-analogue converter of two channels on an SPI bus.
    DacChip {
        /// 10 bits.
        Mcp4912 = "mcp4912";
        /// 12 bits.
        Mcp4922 = "mcp4922";
    }
}

named! {
    /// Kind of an ESC.
    EscKind {
        /// ASIC with eight FMMUs and SyncManagers and four ports, 8 KiB.
        Et1100 = "et1100";
        /// ASIC of small E-bus terminals: three FMMUs, four SyncManagers, 1 KiB.
        Et1200 = "et1200";
        /// ASIC with PHYs inside: three FMMUs, four SyncManagers, 4 KiB, two ports.
        Lan9252 = "lan9252";
        /// FPGA without distributed clocks: two FMMUs, four SyncManagers.
        Esc10 = "esc10";
        /// FPGA with clocks of 32 bits: four FMMUs and SyncManagers.
        Esc20 = "esc20";
        /// IP core as in a servo drive: three FMMUs, four SyncManagers, 4 KiB, clocks of 32 bits.
        IpCore = "ip_core";
    }
}

named! {
    /// Behaviour of a simulated SubDevice.
    #[derive(Default)]
    ApplicationKind {
        /// None, frames are only passed on: couplers and junctions.
        #[default]
        Coupler = "coupler";
        /// Digital outputs, one bit each.
        DigitalOutputs = "digital_outputs";
        /// Digital inputs, one bit each.
        DigitalInputs = "digital_inputs";
        /// Analogue inputs of 16 bits, each with a status word before it.
        AnalogueInput = "analogue_input";
        /// Analogue outputs of 16 bits.
        AnalogueOutput = "analogue_output";
        /// Incremental encoders with counters of 32 bits.
        Encoder = "encoder";
        /// A force-torque sensor with six values of 32 bits.
        ForceTorqueSensor = "force_torque_sensor";
        /// Two serial lines, joined.
        SerialLines = "serial_lines";
        /// A CiA 402 servo drive with a motor on it, by default of about 750 W with its load.
        ServoDrive = "servo_drive";
    }
}

named! {
    /// Terminal of a model.
    TerminalModel {
        /// Eight digital inputs.
        El1008 = "el1008";
        /// Two digital inputs with time stamps of their edges.
        El1252 = "el1252";
        /// Four digital outputs.
        El2004 = "el2004";
        /// Four analogue inputs, -10 to 10 V.
        El3104 = "el3104";
        /// Two analogue inputs with oversampling, -10 to 10 V.
        El3702 = "el3702";
        /// Four analogue outputs, -10 to 10 V.
        El4034 = "el4034";
        /// Two analogue outputs with oversampling, -10 to 10 V.
        El4732 = "el4732";
        /// Incremental encoder.
        El5101 = "el5101";
        /// Two serial lines.
        El6022 = "el6022";
    }
}

impl TerminalModel {
    /// Behaviour, and number of channels.
    #[must_use]
    pub const fn behaviour(self) -> (ApplicationKind, u8) {
        use ApplicationKind as Is;
        match self {
            Self::El1008 => (Is::DigitalInputs, 8),
            Self::El1252 => (Is::DigitalInputs, 2),
            Self::El2004 => (Is::DigitalOutputs, 4),
            Self::El3104 => (Is::AnalogueInput, 4),
            Self::El3702 => (Is::AnalogueInput, 2),
            Self::El4034 => (Is::AnalogueOutput, 4),
            Self::El4732 => (Is::AnalogueOutput, 2),
            Self::El5101 => (Is::Encoder, 1),
            Self::El6022 => (Is::SerialLines, 2),
        }
    }
}

impl PortKind {
    /// Describes the possible sizes of a port of this kind, if these are impossible. `size` is the
    /// longest message or the stream's buffer in bytes, `depth` the number of messages that fit.
    #[must_use]
    pub const fn complaint(self, size: usize, depth: usize) -> Option<&'static str> {
        match (self, size, depth) {
            (Self::Message, 1..=LONGEST, 1..=DEEPEST) if size * depth <= MOST => None,
            (Self::Message, ..) => {
                Some("messages of 1 to 65536 bytes, 1 to 4096 of them, not more than 16 MiB in all")
            }
            (Self::Stream, 1..=WIDEST, _) => None,
            (Self::Stream, ..) => Some("1 to 1048576 bytes"),
        }
    }
}

/// Longest message, bytes: a socket takes it in one piece.
const LONGEST: usize = 65_536;
const DEEPEST: usize = 4096;
/// Bytes of all messages in a port, at most.
const MOST: usize = 16 << 20;
const WIDEST: usize = 1 << 20;
