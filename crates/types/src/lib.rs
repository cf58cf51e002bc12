//! Types that more than one crate of Onbeat speaks of, declared once.
//!
//! | module | part |
//! |---|---|
//! | [`time`] | [`Instant`], the house clock's |
#![no_std]
#![forbid(unsafe_code)]

pub mod time;

pub use time::Instant;
