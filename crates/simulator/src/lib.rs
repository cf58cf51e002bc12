//! SubDevices in software, and the cable between them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`application`] | what sits behind an ESC: the trait and its implementations |
#![forbid(unsafe_code)]

pub mod application;

pub use application::Application;
