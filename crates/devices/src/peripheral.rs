//! Configuration of a robot's devices.

use std::path::PathBuf;
use std::time::Duration;

use rt::profile::RealTimeProfile;
use types::{DacChip, ImuOutput, ImuUnit, LedChip, PeripheralKind};

use crate::task::actuators::WheelLimits;

/// Device with its pair of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Peripheral {
    /// Name of the device and of its real-time task.
    pub name: String,
    /// Name of its published port. The two tasks are joined by another port, with `.device`
    /// appended to the name.
    pub port: String,
    /// Period of the real-time task.
    pub period: Duration,
    /// Real-time profile of the real-time task's thread.
    pub profile: RealTimeProfile,
    /// Kind and connection.
    pub kind: Kind,
}

/// Kind of a device, and its connection; without one it is simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// HC-SR04 on GPIO lines.
    Sonar {
        /// GPIO chip, trigger line, echo line.
        gpio: Option<(PathBuf, u32, u32)>,
        /// Temperature of the air, K.
        temperature: f64,
    },
    /// SCIP 2.0 on a serial port.
    RangeFinder {
        /// Serial port and its speed, bit/s.
        serial: Option<(PathBuf, u32)>,
        /// Half of the sector ahead in which obstacles are detected, rad.
        watched: f64,
    },
    /// APA102 or WS2812 on an SPI bus.
    LedStrip {
        /// Path of the SPI bus's device.
        spi: Option<PathBuf>,
        /// Chip of the LEDs.
        chip: LedChip,
        /// Number of LEDs.
        leds: usize,
        /// Brightness, out of 31.
        brightness: u8,
    },
    /// Inertial measurement unit on an I2C bus.
    Imu {
        /// Unit.
        unit: ImuUnit,
        /// Output of a myAHRS+.
        output: ImuOutput,
        /// I2C bus and address.
        i2c: Option<(PathBuf, u16)>,
    },
    /// Two driven wheels.
    Actuators {
        /// Their drives.
        drives: WheelDrives,
        /// Limits of the wheels.
        limits: WheelLimits,
    },
}

/// Drives of two wheels, left and right.
#[derive(Clone, Debug, PartialEq)]
pub enum WheelDrives {
    /// Simulated ones that follow their velocities.
    Simulated,
    /// Axes of the cycle of these names.
    Axes([String; 2]),
    /// DC motors behind a digital-to-analogue converter, with AS5045 encoders.
    DcMotors {
        /// SPI devices: of the converter, of the left and the right encoder.
        spi: Option<[PathBuf; 3]>,
        /// Converter.
        dac: DacChip,
        /// Velocity of a wheel at the end of the converter's range, without load, rad/s.
        full_scale: f64,
        /// Motors that turn the other way round.
        motors_reversed: [bool; 2],
        /// Encoders that count the other way round.
        encoders_reversed: [bool; 2],
    },
}

impl Kind {
    /// An MPU-6050 at this I2C bus and address.
    #[must_use]
    pub fn mpu6050(i2c: Option<(PathBuf, u16)>) -> Self {
        Self::Imu { unit: ImuUnit::Mpu6050, output: ImuOutput::default(), i2c }
    }

    /// Kind without its connection.
    #[must_use]
    pub fn bare(&self) -> PeripheralKind {
        match self {
            Self::Sonar { .. } => PeripheralKind::Sonar,
            Self::RangeFinder { .. } => PeripheralKind::RangeFinder,
            Self::LedStrip { .. } => PeripheralKind::LedStrip,
            Self::Imu { .. } => PeripheralKind::Imu,
            Self::Actuators { .. } => PeripheralKind::Actuators,
        }
    }
}

/// The five devices of the service robot, simulated, with the paper's parts and periods: sonar 30
/// ms, laser range finder 200 ms, LED strip with words of 24 bits 20 ms, IMU (myAHRS+) 10 ms, DC
/// motors behind a converter of 10 bits with encoders of 12 bits 10 ms. The number of LEDs and the
/// converter's full scale are our choice. Priorities are rate monotonic, the shorter the period the
/// higher, from `priority` down.
#[must_use]
pub fn service_robot(profile: RealTimeProfile, priority: u8) -> Vec<Peripheral> {
    // The right motor and its encoder are mounted the other way round.
    let reversed = [false, true];
    let (dac, full_scale) = (DacChip::Mcp4912, 25.0);
    let drives = WheelDrives::DcMotors {
        spi: None,
        dac,
        full_scale,
        motors_reversed: reversed,
        encoders_reversed: reversed,
    };
    let (unit, output) = (ImuUnit::MyAhrs, ImuOutput::Quaternion);
    let kinds = [
        (Kind::Sonar { gpio: None, temperature: 293.15 }, 3),
        (Kind::RangeFinder { serial: None, watched: 0.5 }, 4),
        (Kind::LedStrip { spi: None, chip: LedChip::Ws2812, leds: 60, brightness: 8 }, 2),
        (Kind::Imu { unit, output, i2c: None }, 1),
        (Kind::Actuators { drives, limits: WheelLimits::default() }, 0),
    ];
    let peripheral = |(kind, below): (Kind, u8)| Peripheral {
        name: kind.bare().name().into(),
        port: kind.bare().port().into(),
        period: kind.bare().period(),
        profile: with_priority(profile, priority.saturating_sub(below).max(1)),
        kind,
    };
    kinds.map(peripheral).into()
}

/// The profile with another SCHED_FIFO priority, if it has one.
fn with_priority(profile: RealTimeProfile, priority: u8) -> RealTimeProfile {
    use rt::profile::Scheduling;
    let scheduling = profile.scheduling.map(|scheduling| match scheduling {
        Scheduling::Fifo { .. } => Scheduling::Fifo { priority },
        other @ Scheduling::Deadline { .. } => other,
    });
    RealTimeProfile { scheduling, ..profile }
}
