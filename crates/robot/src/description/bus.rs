use std::path::PathBuf;

use ethercat::main_device::{ExpectedIdentity, ProcessDataSource, Replies, StartupSdo, Sync0, Watchdog};
use ethercat::pdo::PdoMapping;

/// The SubDevices, and what they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Bus {
    /// Whether the distributed clocks are set up and kept in step.
    pub distributed_clocks: bool,
    /// What tells replies from frames on their way out.
    pub replies: Replies,
    /// The SubDevices in the order of the cable.
    pub sub_devices: Vec<SubDevice>,
}

/// One SubDevice.
#[derive(Clone, Debug, PartialEq)]
pub struct SubDevice {
    /// What it is called; unique on the bus.
    pub name: String,
    /// What the SubDevice found at this position must be; `None` accepts any.
    pub identity: Option<ExpectedIdentity>,
    /// Configured station alias it must have (ETG.1000.4, 6.2, register 0x0012).
    pub alias: Option<u16>,
    /// Where its process data mapping comes from.
    pub process_data: ProcessDataSource,
    /// Objects written in PreOp, in this order.
    pub startup: Vec<StartupSdo>,
    /// SYNC0, where the SubDevice is to have one.
    pub sync0: Option<Sync0>,
    /// Time its outputs may stay away before it leaves Op by itself.
    pub process_data_watchdog: Watchdog,
    /// Time its application may be silent towards its ESC; `None` leaves what ESCs start with.
    pub pdi_watchdog: Option<Watchdog>,
    /// Where it hangs; `None` for the first.
    pub parent: Option<Parent>,
    /// Whether its outputs carry the number of the beat, for those who measure from outside.
    pub beat_number: bool,
    /// The group that stands and falls together, if it belongs to one; at least one other SubDevice does too.
    pub group: Option<String>,
    /// How to simulate it; `None` where the file does not say.
    pub simulation: Option<Simulation>,
}

impl SubDevice {
    /// Its mapping, if the robot file gives it.
    #[must_use]
    pub fn explicit_mapping(&self) -> Option<&PdoMapping> {
        match &self.process_data {
            ProcessDataSource::Sii => None,
            ProcessDataSource::Explicit(mapping) => Some(mapping),
        }
    }
}

/// Where a SubDevice hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Position on the bus of the SubDevice before it.
    pub position: usize,
    /// Port of that SubDevice, 1 to 3. A frame visits 3, then 1, then 2 (ETG.1000.4, 4.6).
    pub port: u8,
}

/// How to simulate a SubDevice.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// What the simulated SubDevice does.
    pub application: Application,
    /// SII image it starts from; `None` makes one from the description.
    pub sii: Option<PathBuf>,
}

/// What a simulated SubDevice does.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// Nothing but pass frames on: couplers and junctions.
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
    },
    /// A CiA 402 servo drive with a motor on it.
    ServoDrive(ServoDrivePlant),
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
    /// Torque that 1000 per mille stand for, in N m.
    pub rated_torque: f64,
    /// Torque the motor cannot exceed, in N m.
    pub torque_limit: f64,
    /// Angles of the motor shaft up to which and from which on it presses a limit switch, in rad from where it stands at
    /// power-on, the lower one first; `None` where there are none.
    pub limit_switches: Option<(f64, f64)>,
}
