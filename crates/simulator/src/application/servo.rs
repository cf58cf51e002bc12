//! Servo drive by CiA 402 (IEC 61800-7-201) with its motor.
//!
//! Profile position, velocity and torque, homing, interpolated position, CSP, CSV and CST; the mode
//! changes at once, also in Operation enabled, and the new one begins with the motion of the one
//! before. Velocities are in position units per second, torques in thousandths of the rated torque.
//! Control loops and plant run at [`CONTROL_PERIOD`], independent of steps and frames; the drive
//! brakes and faults by itself when communication ends.
//!
//! The drive follows no target beyond its own limits of position and speed (0x607D, 0x607F), nor
//! gives more torque than 0x6072. Stops go by their option codes (0x605A to 0x605E). 0x1003 keeps
//! the last eight errors. Digital outputs (0x60FE) are driven where their mask allows; bit 0 sets
//! the brake. Positions are in position units, encoder counts by default: gear ratio and feed
//! constant (0x6091, 0x6092) scale them, and are taken over while the power stage is off. Touch
//! probes (0x60B8 to 0x60BD) store positions at their edges.
//!
//! A drive has up to [`MOST_AXES`] axes. Each has the objects of the profile, 0x800 after the
//! previous axis, and its own motor, switches and faults. The axes share 0x1001, 0x1003 and main
//! power; emergencies name the axis.
//!
//! Simplified against a real drive: torque follows its demand at once, power comes and goes at
//! once, and Disable operation (where its option code does not say otherwise), Shutdown and Disable
//! voltage let the motor coast. Interpolated position is linear and has no buffer. The current
//! limit and the voltage limit of a stop are both the motor's torque.

mod axis;
mod drive;
mod entries;
mod homing;
mod objects;
mod plant;
mod profile;
mod record;
mod set_point;
mod settings;
mod touch_probe;

use core::time::Duration;

use ethercat::cia402::CyclicMode;
use ethercat::cia402::object::MOST_AXES;
use ethercat::pdo::PdoMapping;
use ethercat::sii::Image;

use super::sii::pdos;
use crate::coe::DeviceDescription;
pub use axis::ServoAxis;
pub use drive::ServoDrive;
pub use objects::{SIMULATION, default_mapping, default_mapping_of};
pub use plant::Encoder;
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
    /// Axes, 1 to [`MOST_AXES`], all alike.
    pub axes: u8,
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
    /// Angles of the shaft, in rad, at which the limit switches operate: pressed up to the first
    /// and from the second on, the lower one first; `None` without switches. 0x60FD shows them.
    pub limit_switches: Option<(f64, f64)>,
    /// Angles of the shaft, in rad, between which the home switch is pressed, the lower one first;
    /// `None` without one. Bit 2 of 0x60FD shows it.
    pub home_switch: Option<(f64, f64)>,
    /// Angles of the shaft, in rad, between which the inputs of touch probe 1 and 2 are high, the
    /// lower one first; `None` for a missing probe. Bits 16 and 17 of 0x60FD show them.
    pub touch_probes: [Option<(f64, f64)>; 2],
    /// Time the power stage takes for each step towards Operation enabled.
    pub transition_time: Duration,
    /// False for a drive that has no quick stop: it stays in Operation enabled under Quick stop,
    /// and continues.
    pub quick_stop: bool,
}

impl ServoDescription {
    /// A drive with one axis of 2.4 N m with a 20-bit encoder, and the mapping of
    /// [`default_mapping`], in CSP.
    #[must_use]
    pub fn new(device: DeviceDescription) -> Self {
        Self {
            device: DeviceDescription { device_type: DEVICE_TYPE, ..device },
            mapping: default_mapping(),
            axes: 1,
            plant: PlantParameters::default(),
            encoder_counts: 1 << 20,
            rated_torque: 2.4,
            initial_position: 0.0,
            mode: CyclicMode::Position,
            limit_switches: None,
            home_switch: None,
            touch_probes: [None; 2],
            transition_time: Duration::from_millis(2),
            quick_stop: true,
        }
    }

    /// A drive with identity and PDOs of `image`; the rest as [`new`](Self::new).
    #[must_use]
    pub fn from_sii(image: &Image) -> Self {
        Self { mapping: pdos(image), ..Self::new(DeviceDescription::from_sii(image)) }
    }
}

/// Error register (0x1001) for an error code: generic, and the kind (CiA 301, 7.5.2.2); 0 for no
/// error.
fn error_register(error_code: u16) -> u8 {
    const GENERIC: u8 = 1 << 0;
    if error_code == 0 {
        return 0;
    }
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
