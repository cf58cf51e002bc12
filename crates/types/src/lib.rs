//! Types that more than one crate of Onbeat speaks of, declared once.
//!
//! | module | part |
//! |---|---|
//! | [`signal`] | [`Signal`]: process data by name |
//! | [`time`] | [`Instant`], the house clock's |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod signal;
pub mod time;

pub use signal::{Signal, Value, ValueType};
pub use time::Instant;
