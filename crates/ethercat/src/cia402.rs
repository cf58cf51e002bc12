//! Servo drives by CiA 402 (IEC 61800-7-201, mapped on EtherCAT by ETG.6010).
//!
//! | module | part |
//! |---|---|
//! | [`object`] | indices of the profile's objects |
//! | [`word`] | [`Statusword`] and [`Controlword`]: checked bits |
//! | [`state`] | the eight states, the commands and the transitions 0 to 15 |
//! | [`state_machine`] | the drive's own side: one pure step, used by simulated drives |
//! | [`error_code`] | error codes (0x603F, emergencies) in words |
//! | [`mode`] | modes of operation and their bits |
//! | [`drive`] | the MainDevice's side: enables without a jump, holds, stops, resets faults |
//! | [`homing`] | the MainDevice's side of homing by the drive |
//! | [`touch_probe`] | the MainDevice's side of touch probes |
//! | [`profile`] | the MainDevice's side of profile position, velocity and torque |
//!
//! Numbers here are in the drive's units (counts, counts per second, 0.1 % of rated torque). Other
//! crates convert to SI units.

pub mod drive;
pub mod error_code;
pub mod mode;
pub mod object;
pub mod profile;
mod profile_drive;
pub mod state;
pub mod state_machine;
pub mod touch_probe;
pub mod word;

pub use drive::homing::{self, HomingProgress};
pub use drive::{
    BLIND_CYCLES, Drive, DriveCommand, DriveInput, DriveOutput, Phase, QuickStopHelp, Request,
};
pub use error_code::ErrorCode;
pub use mode::{ModeOfOperation, SupportedModes};
pub use profile::{Change, ProfileMode, ProfilePosition, SetPoint, SetPointProgress};
pub use profile_drive::ProfileDrive;
pub use state::{Command, State, Transition};
pub use state_machine::{StateMachine, Surroundings};
pub use touch_probe::{ProbeProgress, ProbeSource, ProbeTrigger, TouchProbe};
pub use types::{AxisMode, CyclicMode};
pub use word::{Controlword, Statusword};
