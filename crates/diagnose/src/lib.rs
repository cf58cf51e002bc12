//! Causes of late cycles, from the kernel's trace around them, and of disturbances of real-time threads. They have the words of
//! [`types::cause`].
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
//! | [`disturbance`] | watch of threads from outside: all but their work and their wait |
//! | [`perfetto`] | a late cycle as a trace for viewers |
//! | `steal`, `counters` | counters of the kernel: stolen time, and the fallback without a trace |
#![deny(unsafe_code)]

pub mod attribute;
pub mod cause;
mod counters;
pub mod disturbance;
pub mod explain;
pub mod explanation;
pub mod late;
pub mod perfetto;
mod steal;
mod sys;
pub mod timeline;
pub mod trace;
mod words;

pub use attribute::{Evidence, attribute};
pub use cause::{Cause, Kind};
pub use explain::{Explainer, Settings};
pub use explanation::{Explanation, LateCycle};
pub use late::{CycleTimes, Late};
