use std::path::PathBuf;
use std::time::Duration;

/// A device beside the bus, with a real-time task and an ordinary one.
#[derive(Clone, Debug, PartialEq)]
pub struct Peripheral {
    /// What it is called; unique.
    pub name: String,
    /// The port it tells the world by; unique.
    pub port: String,
    /// Period of its real-time task.
    pub period: Duration,
    /// SCHED_FIFO priority of its real-time task; without one it follows from the periods, below the cycle's.
    pub priority: Option<u8>,
    /// CPU of its real-time task.
    pub cpu: Option<usize>,
    /// The device's file; without one it is simulated.
    pub device: Option<PathBuf>,
    /// What it is.
    pub kind: PeripheralKind,
}

/// What a device beside the bus is.
#[derive(Clone, Debug, PartialEq)]
pub enum PeripheralKind {
    /// HC-SR04 on two lines of a GPIO chip.
    Sonar {
        /// Trigger and echo line.
        lines: (u32, u32),
        /// Of the air, K.
        temperature: f64,
    },
    /// SCIP 2.0 on a serial port.
    RangeFinder {
        /// Bits a second.
        baud: u32,
        /// Obstacles count this far to both sides of the front, rad.
        watched: f64,
    },
    /// LED strip on an SPI bus.
    LedStrip {
        /// WS2812 and its like, without a clock line; otherwise APA102 and its like.
        without_clock: bool,
        /// How many LEDs.
        leds: usize,
        /// How bright, of 31.
        brightness: u8,
    },
    /// MPU-6050 on an I2C bus.
    Imu {
        /// Its address.
        address: u16,
    },
    /// Two driven wheels.
    Actuators {
        /// Indices of the left and the right axis; without them the drives are simulated.
        axes: Option<[usize; 2]>,
        /// rad/s.
        velocity: f64,
        /// rad/s^2.
        acceleration: f64,
    },
}
