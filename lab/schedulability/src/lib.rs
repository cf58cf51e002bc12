//! Schedulability analysis: proof from their times that tasks meet their deadlines.
//!
//! | module | contents |
//! |---|---|
//! | [`bus`] | frames, round trips and latencies of a bus, a resource like a processor |
//! | [`task`] | [`Task`], [`TaskSet`]: the input |
//! | [`fixed_priority`] | worst response times under fixed priorities |
//! | [`earliest_deadline`] | the same for earliest deadline first and `SCHED_DEADLINE` |
//! | [`verdict`] | [`analyse`]: the complete analysis |
//! | [`advice`] | causes of missed deadlines, and changes that would meet them |
//! | [`timeline`] | the schedule from the critical instant |
//! | [`sensitivity`] | slack: possible growth of execution times |
//! | [`assignment`] | priorities and processors for tasks |
//! | [`blocking`] | delay by lower priorities, by lock protocol |
//! | [`utilisation`] | utilisation, and the bounds on it |
//! | [`effort`] | bound on the work of an analysis |
//!
//! The analysis is exact: whole nanoseconds and fractions of whole numbers, never floating point
//! where a verdict depends on it. Every search ends: when the effort runs out, the answer is "not
//! proven", never a guess. Times are nanoseconds in `u64`.
#![forbid(unsafe_code)]

pub mod advice;
pub mod assignment;
pub mod blocking;
pub mod bus;
pub mod earliest_deadline;
pub mod effort;
pub mod fixed_priority;
mod level;
pub mod sensitivity;
pub mod task;
pub mod timeline;
pub mod utilisation;
pub mod verdict;

pub use effort::Effort;
pub use fixed_priority::ResponseTime;
pub use sensitivity::Slack;
pub use task::{Section, Task, TaskError, TaskSet};
pub use types::{Policy, Protocol};
pub use verdict::{Analysis, analyse};
