//! A servo drive by CiA 402 (IEC 61800-7-201) with the motor it turns.
//!
//! Modes CSP, CSV and CST, and homing. Velocities are in counts per second, torques in thousandths of the rated torque.
//! Control loops and plant run at [`CONTROL_PERIOD`], whatever the steps and frames; the drive brakes and
//! faults by itself when communication ends.
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

/// Longest time made up for in one step; of a longer gap the rest is left out.
pub const MAXIMUM_CATCH_UP: Duration = Duration::from_millis(200);

/// Error code of a following error (CiA 402, 0x603F).
pub const FOLLOWING_ERROR: u16 = 0x8611;
/// Error code of communication that ended while the drive was enabled.
pub const COMMUNICATION_LOSS: u16 = 0x7500;
/// Error code of main power that went away: DC link under-voltage.
pub const UNDER_VOLTAGE: u16 = 0x3220;

/// Device type of a servo drive (CiA 402, 0x1000): profile 402, servo drive.
pub const DEVICE_TYPE: u32 = 0x0002_0192;

/// A servo drive as built.
#[derive(Clone, Debug, PartialEq)]
pub struct ServoDescription {
    /// Identity and names.
    pub device: DeviceDescription,
    /// PDOs and what they map by default; objects unknown to the drive are stored and nothing else.
    pub mapping: PdoMapping,
    /// Motor and load.
    pub plant: PlantParameters,
    /// Encoder counts per motor revolution; above 0.
    pub encoder_counts: u32,
    /// Torque that 1000 per mille stand for, in N m; above 0.
    pub rated_torque: f64,
    /// Angle of the shaft at power-on, in rad.
    pub initial_position: f64,
    /// Mode of operation until 0x6060 is written.
    pub mode: CyclicMode,
    /// Angles of the shaft, in rad, up to which and from which on it presses a limit switch, the lower one first; `None`
    /// where there are none. 0x60FD shows them.
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

    /// The drive that `image` says it is, with the PDOs the image has; the rest as [`new`](Self::new).
    #[must_use]
    pub fn from_sii(image: &Image) -> Self {
        Self { mapping: pdos(image), ..Self::new(DeviceDescription::from_sii(image)) }
    }
}

/// The error register (0x1001) that goes with an error code: generic, and the kind (CiA 301, 7.5.2.2).
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
