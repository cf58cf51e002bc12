//! Causes of late cycles, from the kernel's trace around them.
//!
//! | module | contents |
//! |---|---|
//! | [`explain`] | explanation of a run while it goes on |
//! | [`explanation`] | its result: the late cycles with their causes |
//! | [`trace`] | the kernel's trace: a flight recorder and its decoder |
//! | [`cycle`] | a late cycle and its lateness |
//! | [`timeline`] | activity of a CPU over time |
//! | [`attribute`](mod@attribute) | causes from the events around a cycle: pure |
//! | [`cause`] | causes, for people and programs |
//! | [`perfetto`] | a late cycle as a trace for viewers |
//! | `steal`, `counters` | counters of the kernel: stolen time, and the fallback without a trace |
#![forbid(unsafe_code)]

pub mod attribute;
pub mod cause;
mod counters;
pub mod explain;
pub mod explanation;
pub mod late;
pub mod perfetto;
mod steal;
pub mod timeline;
pub mod trace;
mod words;

pub use attribute::{Evidence, attribute};
pub use cause::{Cause, Kind};
pub use explain::{Explainer, Settings};
pub use explanation::{Explanation, LateCycle};
pub use late::{CycleTimes, Late};
