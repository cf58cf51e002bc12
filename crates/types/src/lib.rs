//! Types that more than one crate of Onbeat speaks of, declared once.
//!
//! | module | part |
//! |---|---|
//! | [`axis`] | modes, interlocks and reactions of axes |
//! | [`cause`] | causes of lateness and of disturbances |
//! | [`cycle`] | choices of a cycle, [`Profile`] |
//! | [`signal`] | [`Signal`]: process data by name |
//! | [`time`] | [`Instant`], the house clock's |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod axis;
pub mod cause;
pub mod cycle;
pub mod signal;
pub mod time;

pub use axis::{CyclicMode, DigitalOutput, Interlock, InterlockKind, OnStale};
pub use cycle::{AfterOutage, FrameOrder, OverrunPolicy, Profile, ProfileError};
pub use signal::{Signal, Value, ValueType};
pub use time::Instant;
