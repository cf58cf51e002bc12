//! Whether tasks meet their deadlines, proven from their times.
//!
//! | module | what it holds |
//! |---|---|
//! | [`task`] | [`Task`], [`TaskSet`]: what is analysed |
//! | [`fixed_priority`] | worst response times under fixed priorities |
//! | [`blocking`] | how long lower priorities can hold a task up, by lock protocol |
//! | [`utilisation`] | the share of the processor asked for, and the bounds on it |
//! | [`effort`] | how much work an analysis may take |
//!
//! All of it is exact: whole nanoseconds and fractions of whole numbers, never floating point where a verdict hangs
//! on it. Every search has an end: where the effort runs out, the answer is "not proven", never a guess.

pub mod blocking;
pub mod effort;
pub mod fixed_priority;
mod level;
pub mod task;
pub mod utilisation;

pub use effort::Effort;
pub use fixed_priority::ResponseTime;
pub use task::{Policy, Protocol, Section, Task, TaskError, TaskSet};
