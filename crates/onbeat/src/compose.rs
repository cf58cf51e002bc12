//! From a robot's description to the parts that run it, for programs that need a part alone.
//!
//! [`crate::Robot`] is all of them.

pub(crate) mod axes;
pub mod barriers;
pub mod configuration;
pub(crate) mod controller;
pub mod findings;
pub(crate) mod ipc;
pub mod link;
pub mod names;
#[cfg(feature = "devices")]
pub(crate) mod peripherals;
pub(crate) mod rules;
pub mod segment;
pub(crate) mod signals;
pub mod sii_files;
mod urdf;
