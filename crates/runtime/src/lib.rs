//! The real-time cycle on Linux: clock, scheduling, links.
//!
//! | module | what it holds |
//! |---|---|
//! | [`clock`] | the monotonic clock, and a virtual one |
//! | [`profile`] | what a real-time thread asks of the system, and what it was granted |
//! | [`controller`] | what moves the axes, in SI units |
//! | [`conditions`] | the machine a measurement was made on |
//! | [`pacer`] | absolute releases on a fixed grid |
//! | [`link`] | the wire, the simulated wire, capture and faults |
//! | [`serve`] | a simulated segment on a real interface |
#![deny(unsafe_code)]

pub mod clock;
pub mod conditions;
pub mod controller;
pub mod link;
pub mod pacer;
pub mod profile;
pub mod serve;
mod sys;
