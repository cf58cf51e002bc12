//! Causes of lateness in real-time threads, as the kernel's trace or its counters show them, in the
//! words of [`types::cause`].
//!
//! | module | contents |
//! |---|---|
//! | [`explain`] | explanation of a run in progress |
//! | [`explanation`] | its result: causes of all late cycles together, and the worst cycles |
//! | [`trace`] | the kernel's trace: a flight recorder and its decoder |
//! | [`timeline`] | activity of a CPU over time |
//! | [`mod@attribute`] | causes from the events around a cycle: pure |
//! | [`disturbance`] | watch of threads from outside: all but their work and their wait |
//! | [`recent`] | late cycles of the last minutes, for programs that ask a running cycle |
//! | [`perfetto`] | a late cycle as a trace for viewers |
//! | `steal`, `counters` | counters of the kernel: stolen time, and the fallback without a trace |
#![deny(unsafe_code)]

pub mod attribute;
mod counters;
pub mod disturbance;
pub mod explain;
pub mod explanation;
pub mod perfetto;
pub mod recent;
mod steal;
mod sys;
pub mod timeline;
pub mod trace;

pub use attribute::{CycleTimes, Evidence, attribute};
pub use explain::{Explainer, Settings};
pub use explanation::Explanation;
pub use recent::Recent;
pub use types::cause::Kind;
pub use types::late::{Cause, Late, LateCycle};
