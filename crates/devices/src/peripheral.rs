//! What a robot has of devices.

use std::path::PathBuf;
use std::time::Duration;

use runtime::profile::RealTimeProfile;

use crate::led::Chip;
use crate::task::actuators::WheelLimits;

/// A device and its pair of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Peripheral {
    /// Its name; the real-time task's is the same.
    pub name: String,
    /// Name of the port it tells the world by. The two tasks are joined by another one, with `.device` behind it.
    pub port: String,
    /// Period of the real-time task.
    pub period: Duration,
    /// What the real-time task's thread asks of the system.
    pub profile: RealTimeProfile,
    /// What it is, and where.
    pub kind: Kind,
}

/// What a device is, and where; nowhere: it is simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// HC-SR04 on GPIO lines.
    Sonar {
        /// Chip, trigger line, echo line.
        gpio: Option<(PathBuf, u32, u32)>,
        /// Of the air, K.
        temperature: f64,
    },
    /// SCIP 2.0 on a serial port.
    RangeFinder {
        /// Port and bits a second.
        serial: Option<(PathBuf, u32)>,
        /// Obstacles count this far to both sides of the front, rad.
        watched: f64,
    },
    /// APA102 or WS2812 on an SPI bus.
    LedStrip {
        /// The bus's device.
        spi: Option<PathBuf>,
        /// What it is made of.
        chip: Chip,
        /// How many there are.
        leds: usize,
        /// How bright they are, of 31.
        brightness: u8,
    },
    /// MPU-6050 on an I2C bus.
    Imu {
        /// Bus and address.
        i2c: Option<(PathBuf, u16)>,
    },
    /// Two driven wheels.
    Actuators {
        /// Names of two axes of the cycle, left and right.
        axes: Option<[String; 2]>,
        /// What they can do.
        limits: WheelLimits,
    },
}

impl Kind {
    /// The word for it: `sonar`, `range_finder`, `led_strip`, `imu`, `actuators`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Sonar { .. } => "sonar",
            Self::RangeFinder { .. } => "range_finder",
            Self::LedStrip { .. } => "led_strip",
            Self::Imu { .. } => "imu",
            Self::Actuators { .. } => "actuators",
        }
    }

    /// The port it tells the world by unless told otherwise.
    #[must_use]
    pub fn usual_port(&self) -> &'static str {
        match self {
            Self::Sonar { .. } => "sonar",
            Self::RangeFinder { .. } => "scan",
            Self::LedStrip { .. } => "led",
            Self::Imu { .. } => "imu",
            Self::Actuators { .. } => "wheels",
        }
    }
}

/// The service robot's five, simulated, with the paper's periods: sonar 30 ms, laser range finder 200 ms, LED strip 20 ms,
/// IMU 10 ms, actuators 10 ms. The shorter the period, the higher the priority (rate monotonic), from `priority` down.
#[must_use]
pub fn service_robot(profile: RealTimeProfile, priority: u8) -> Vec<Peripheral> {
    let kinds = [
        (30, Kind::Sonar { gpio: None, temperature: 293.15 }, 3),
        (200, Kind::RangeFinder { serial: None, watched: 0.5 }, 4),
        (20, Kind::LedStrip { spi: None, chip: Chip::Apa102, leds: 60, brightness: 8 }, 2),
        (10, Kind::Imu { i2c: None }, 1),
        (10, Kind::Actuators { axes: None, limits: WheelLimits::default() }, 0),
    ];
    let peripheral = |(period, kind, below): (u64, Kind, u8)| Peripheral {
        name: kind.word().into(),
        port: kind.usual_port().into(),
        period: Duration::from_millis(period),
        profile: with_priority(profile, priority.saturating_sub(below).max(1)),
        kind,
    };
    kinds.map(peripheral).into()
}

/// The same profile with another SCHED_FIFO priority, if it has one.
fn with_priority(profile: RealTimeProfile, priority: u8) -> RealTimeProfile {
    use runtime::profile::Scheduling;
    let scheduling = profile.scheduling.map(|scheduling| match scheduling {
        Scheduling::Fifo { .. } => Scheduling::Fifo { priority },
        other @ Scheduling::Deadline { .. } => other,
    });
    RealTimeProfile { scheduling, ..profile }
}
