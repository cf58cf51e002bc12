//! Why a beat was late: the kernel's trace around it, recorded and read.
//!
//! | module | what it holds |
//! |---|---|
//! | [`explain`] | a run watched |
//! | [`explanation`] | its late beats with their causes |
//! | [`trace`] | the kernel's own trace: a flight recorder and its decoder |
//! | [`beat`] | a beat, and how late it was |
//! | [`timeline`] | what a CPU did, moment by moment |
//! | [`attribute`](mod@attribute) | events and a beat to causes: pure |
//! | [`cause`] | what lateness is made of, for people and programs |
//! | [`perfetto`] | a late beat as a trace to look at |
//! | [`culprit`] | somebody to blame, for tests and for trying it out |
//! | `steal`, `counters` | what the kernel counts: time stolen, and the fallback without a trace |
#![deny(unsafe_code)]

pub mod attribute;
pub mod beat;
pub mod cause;
mod counters;
pub mod culprit;
pub mod explain;
pub mod explanation;
pub mod perfetto;
mod steal;
mod sys;
pub mod timeline;
pub mod trace;
mod words;

pub use attribute::{Evidence, attribute};
pub use beat::{Beat, Late};
pub use cause::{Cause, Kind};
pub use explain::{Explainer, Settings};
pub use explanation::{Explanation, LateBeat};
