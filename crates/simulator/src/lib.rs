//! Simulated SubDevices, and the cables between them.
//!
//! | module | contents |
//! |---|---|
//! | [`application`] | the application behind an ESC: the trait and its implementations |
//! | [`coe`] | CANopen over EtherCAT: object dictionary, SDO, SDO information, emergencies |
//! | [`sub_device`] | one SubDevice: ESC, EtherCAT state machine, mailbox, application |
//! | [`segment`] | SubDevices joined by cables, which answer frames |
#![forbid(unsafe_code)]

pub mod application;
pub mod coe;
mod esc;
pub mod segment;
pub mod sub_device;

pub use application::Application;
pub use esc::{EscDescription, Oscillator};
pub use segment::Segment;
pub use sub_device::{SiiStore, SubDevice};
pub use types::{EscKind, TerminalModel};
