//! Drivers: what the ordinary tasks own.

pub mod serial;
