//! Servo drive by CiA 402 (IEC 61800-7-201) with its motor.
//!
//! Modes CSP, CSV and CST, and homing. Velocities are in counts per second, torques in thousandths of the
//! rated torque. Control loops and plant run at [`CONTROL_PERIOD`], independent of steps and frames; the
//! drive brakes and faults by itself when communication ends.
//!
//! Simplified against a real drive: torque follows its demand at once, power comes and goes at once, and
//! Disable operation, Shutdown and Disable voltage let the motor coast.

mod control;
mod drive;
mod homing;
mod objects;
mod plant;
mod record;
mod set_point;
mod settings;

use core::time::Duration;

use ethercat::cia402::CyclicMode;
use ethercat::pdo::PdoMapping;
use ethercat::sii::Image;

use super::sii::pdos;
use crate::coe::DeviceDescription;
pub use drive::ServoDrive;
pub use objects::{SIMULATION, default_mapping};
pub use plant::{Plant, PlantParameters};
pub use record::{ServoRecord, Taken};

/// Time between two steps of the control loops and of the plant.
pub const CONTROL_PERIOD: Duration = Duration::from_micros(125);

/// Longest time simulated in one step; the rest of a longer gap is skipped.
pub const MAXIMUM_CATCH_UP: Duration = Duration::from_millis(200);

/// Error code of a following error (CiA 402, 0x603F).
pub const FOLLOWING_ERROR: u16 = 0x8611;
/// Error code of a communication loss while the drive was enabled.
pub const COMMUNICATION_LOSS: u16 = 0x7500;
/// Error code of a loss of main power: DC link under-voltage.
pub const UNDER_VOLTAGE: u16 = 0x3220;

/// Device type of a servo drive (CiA 402, 0x1000): profile 402, servo drive.
pub const DEVICE_TYPE: u32 = 0x0002_0192;

/// Description of a servo drive.
#[derive(Clone, Debug, PartialEq)]
pub struct ServoDescription {
    /// Identity and names.
    pub device: DeviceDescription,
    /// PDOs and their default mapping; objects unknown to the drive are only stored.
    pub mapping: PdoMapping,
    /// Motor and load.
    pub plant: PlantParameters,
    /// Encoder counts per motor revolution; above 0.
    pub encoder_counts: u32,
    /// Torque of 1000 per mille, in N m; above 0.
    pub rated_torque: f64,
    /// Angle of the shaft at power-on, in rad.
    pub initial_position: f64,
    /// Mode of operation until 0x6060 is written.
    pub mode: CyclicMode,
    /// Angles of the shaft, in rad, at which the limit switches operate: pressed up to the first and from
    /// the second on, the lower one first; `None` without switches. 0x60FD shows them.
    pub limit_switches: Option<(f64, f64)>,
    /// Time the power stage takes for each step towards Operation enabled.
    pub transition_time: Duration,
}

impl ServoDescription {
    /// A drive of 2.4 N m with a 20-bit encoder and the mapping of [`default_mapping`], in CSP.
    #[must_use]
    pub fn new(device: DeviceDescription) -> Self {
        Self {
            device: DeviceDescription { device_type: DEVICE_TYPE, ..device },
            mapping: default_mapping(),
            plant: PlantParameters::default(),
            encoder_counts: 1 << 20,
            rated_torque: 2.4,
            initial_position: 0.0,
            mode: CyclicMode::Position,
            limit_switches: None,
            transition_time: Duration::from_millis(2),
        }
    }

    /// A drive with identity and PDOs of `image`; the rest as [`new`](Self::new).
    #[must_use]
    pub fn from_sii(image: &Image) -> Self {
        Self { mapping: pdos(image), ..Self::new(DeviceDescription::from_sii(image)) }
    }
}

/// Error register (0x1001) for an error code: generic, and the kind (CiA 301, 7.5.2.2).
fn error_register(error_code: u16) -> u8 {
    const GENERIC: u8 = 1 << 0;
    let kind = match error_code >> 12 {
        0x2 => 1 << 1,
        0x3 => 1 << 2,
        0x4 => 1 << 3,
        0x7 if error_code == COMMUNICATION_LOSS => 1 << 4,
        0x8 if error_code >> 8 == 0x81 => 1 << 4,
        0x7 | 0x8 => 1 << 5,
        0xF => 1 << 7,
        _ => 0,
    };
    GENERIC | kind
}

#[cfg(test)]
mod tests;
