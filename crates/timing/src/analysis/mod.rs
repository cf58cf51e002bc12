//! Whether tasks meet their deadlines, proven from their times.
//!
//! | module | what it holds |
//! |---|---|
//! | [`task`] | [`Task`], [`TaskSet`]: what is analysed |
//! | [`fixed_priority`] | worst response times under fixed priorities |
//! | [`earliest_deadline`], [`reservation`] | the same for earliest deadline first and `SCHED_DEADLINE` |
//! | [`verdict`] | [`analyse`]: the whole answer |
//! | [`advice`] | why tasks are late, and what would help |
//! | [`timeline`] | the critical instant, played |
//! | [`sensitivity`] | slack: how far execution times may grow |
//! | [`assignment`] | priorities and processors for tasks |
//! | [`blocking`] | how long lower priorities can hold a task up, by lock protocol |
//! | [`utilisation`] | the share of the processor asked for, and the bounds on it |
//! | [`effort`] | how much work an analysis may take |
//!
//! All of it is exact: whole nanoseconds and fractions of whole numbers, never floating point where a verdict hangs
//! on it. Every search has an end: where the effort runs out, the answer is "not proven", never a guess.

pub mod advice;
pub mod assignment;
pub mod blocking;
pub mod earliest_deadline;
pub mod effort;
pub mod fixed_priority;
mod level;
pub mod reservation;
pub mod sensitivity;
pub mod task;
pub mod timeline;
pub mod utilisation;
pub mod verdict;

pub use effort::Effort;
pub use fixed_priority::ResponseTime;
pub use sensitivity::Slack;
pub use task::{Policy, Protocol, Section, Task, TaskError, TaskSet};
pub use verdict::{Analysis, analyse};
