//! The controllers a robot file names.
//!
//! | module | what it holds |
//! |---|---|
//! | [`hold`] | every axis stays where it is |
//! | [`sinusoid`] | axes that swing |
//!
//! A controller moves the axes it was given and leaves the others alone.
#![forbid(unsafe_code)]

pub mod hold;
pub mod sinusoid;

pub use hold::Hold;
pub use sinusoid::{Sinusoid, SwingSettings};
