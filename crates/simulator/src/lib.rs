//! SubDevices in software, and the cable between them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`application`] | what sits behind an ESC: the trait and its implementations |
//! | [`coe`] | CANopen over EtherCAT: object dictionary, SDO, SDO information, emergencies |
#![forbid(unsafe_code)]

pub mod application;
pub mod coe;

pub use application::Application;
