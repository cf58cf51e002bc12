use std::path::PathBuf;

use ethercat::main_device::{ExpectedIdentity, ProcessDataSource, Replies, StartupSdo, Sync0, Watchdog};
use ethercat::pdo::PdoMapping;

/// SubDevices, and their common settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Bus {
    /// True if the distributed clocks are set up and kept synchronised.
    pub distributed_clocks: bool,
    /// Property that distinguishes replies from outgoing frames.
    pub replies: Replies,
    /// SubDevices in the order of the cable.
    pub sub_devices: Vec<SubDevice>,
}

/// One SubDevice.
#[derive(Clone, Debug, PartialEq)]
pub struct SubDevice {
    /// Name; unique on the bus.
    pub name: String,
    /// Expected identity of the SubDevice at this position; `None` accepts any.
    pub identity: Option<ExpectedIdentity>,
    /// Expected configured station alias (ETG.1000.4, 6.2, register 0x0012).
    pub alias: Option<u16>,
    /// Source of its process data mapping.
    pub process_data: ProcessDataSource,
    /// Objects written in PreOp, in this order.
    pub startup: Vec<StartupSdo>,
    /// SYNC0, if the SubDevice uses it.
    pub sync0: Option<Sync0>,
    /// Process data watchdog: time without outputs before it leaves Op by itself.
    pub process_data_watchdog: Watchdog,
    /// PDI watchdog: time without access by its application; `None` leaves the ESC's default.
    pub pdi_watchdog: Option<Watchdog>,
    /// Attachment; `None` for the first.
    pub parent: Option<Parent>,
    /// Group whose members count as missing together, if it belongs to one; at least one other SubDevice
    /// does too.
    pub group: Option<String>,
    /// Simulation; `None` where the file has none.
    pub simulation: Option<Simulation>,
}

impl SubDevice {
    /// Mapping, if the robot file gives it.
    #[must_use]
    pub fn explicit_mapping(&self) -> Option<&PdoMapping> {
        match &self.process_data {
            ProcessDataSource::Sii => None,
            ProcessDataSource::Explicit(mapping) => Some(mapping),
        }
    }
}

/// Attachment of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Position on the bus of the SubDevice it is attached to.
    pub position: usize,
    /// Port of that SubDevice, 1 to 3. A frame visits 3, then 1, then 2 (ETG.1000.4, 4.6).
    pub port: u8,
}

/// Simulation of a SubDevice.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Behaviour of the simulated SubDevice.
    pub application: Application,
    /// SII image to start from; `None` makes one from the description.
    pub sii: Option<PathBuf>,
}

/// Behaviour of a simulated SubDevice.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// None, frames are only passed on: couplers and junctions.
    Coupler,
    /// Digital outputs.
    DigitalOutputs {
        /// Number of channels, one bit each; 1 to 64.
        channels: u8,
    },
    /// Digital inputs.
    DigitalInputs {
        /// Number of channels, one bit each; 1 to 64.
        channels: u8,
    },
    /// Analogue inputs of 16 bits, each with a status word before it.
    AnalogueInput {
        /// Number of channels; 1 to 16.
        channels: u8,
        /// Measured quantity.
        source: AnalogueSource,
    },
    /// Analogue outputs of 16 bits.
    AnalogueOutput {
        /// Number of channels; 1 to 16.
        channels: u8,
    },
    /// Incremental encoders with counters of 32 bits.
    Encoder {
        /// Number of channels; 1 or 2.
        channels: u8,
        /// Counted quantity.
        source: EncoderSource,
    },
    /// A force-torque sensor with six values of 32 bits.
    ForceTorqueSensor {
        /// Largest force in N; of the torques a tenth, in N m.
        amplitude: f64,
        /// Of the first one, in Hz; each of the others is slower than the one before.
        frequency: f64,
    },
    /// A CiA 402 servo drive with a motor on it.
    ServoDrive(ServoDrivePlant),
}

/// Measured quantity of simulated analogue inputs, in digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnalogueSource {
    /// A sine on each, or a ramp from one end to the other.
    Course {
        /// True for ramps.
        ramp: bool,
        /// Value in the middle.
        offset: f64,
        /// Largest distance from it.
        amplitude: f64,
        /// Of the first one, in Hz; each of the others is slower than the one before.
        frequency: f64,
    },
    /// Analogue output of the same number, of those described last before.
    Outputs,
}

/// Counted quantity of simulated encoders.
#[derive(Clone, Debug, PartialEq)]
pub enum EncoderSource {
    /// Counts a second.
    Rate(f64),
    /// Shaft of a simulated servo drive.
    Shaft {
        /// Its SubDevice.
        sub_device: String,
        /// Counts a revolution.
        counts: u32,
    },
}

/// The motor, its load and its encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServoDrivePlant {
    /// Encoder counts per motor revolution.
    pub encoder_counts: u32,
    /// Inertia of rotor and load at the motor shaft, in kg m^2.
    pub inertia: f64,
    /// Viscous friction, in N m s/rad.
    pub viscous_friction: f64,
    /// Coulomb friction, in N m.
    pub coulomb_friction: f64,
    /// Torque of 1000 per mille, in N m.
    pub rated_torque: f64,
    /// Largest torque of the motor, in N m.
    pub torque_limit: f64,
    /// Angles of the motor shaft at which the limit switches operate, in rad from its position at power-on:
    /// pressed up to the first and from the second on, the lower one first; `None` without limit switches.
    pub limit_switches: Option<(f64, f64)>,
}
