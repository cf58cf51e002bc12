use std::path::PathBuf;
use std::time::Duration;

/// A device beside the bus, with a real-time task and an ordinary one.
#[derive(Clone, Debug, PartialEq)]
pub struct Peripheral {
    /// Name; unique.
    pub name: String,
    /// Port of its messages; unique.
    pub port: String,
    /// Period of its real-time task.
    pub period: Duration,
    /// SCHED_FIFO priority of its real-time task; by default it follows from the periods, below the
    /// cycle's.
    pub priority: Option<u8>,
    /// CPU of its real-time task.
    pub cpu: Option<usize>,
    /// Device file; `None` simulates the device.
    pub device: Option<PathBuf>,
    /// Kind.
    pub kind: PeripheralKind,
}

/// Kind of a device beside the bus.
#[derive(Clone, Debug, PartialEq)]
pub enum PeripheralKind {
    /// HC-SR04 on two lines of a GPIO chip.
    Sonar {
        /// Trigger and echo line.
        lines: (u32, u32),
        /// Temperature of the air, K.
        temperature: f64,
    },
    /// SCIP 2.0 on a serial port.
    RangeFinder {
        /// Baud rate, bits per second.
        baud: u32,
        /// Angle to both sides of the front within which obstacles count, rad.
        watched: f64,
    },
    /// LED strip on an SPI bus.
    LedStrip {
        /// True for WS2812 and compatible, without a clock line; otherwise APA102 and compatible.
        without_clock: bool,
        /// Number of LEDs.
        leds: usize,
        /// Brightness, 0 to 31.
        brightness: u8,
    },
    /// MPU-6050 on an I2C bus.
    Imu {
        /// I2C address.
        address: u16,
    },
    /// Two driven wheels.
    Actuators {
        /// Indices of the left and the right axis; `None` simulates the drives.
        axes: Option<[usize; 2]>,
        /// Highest speed, rad/s.
        velocity: f64,
        /// Highest acceleration, rad/s^2.
        acceleration: f64,
    },
}
