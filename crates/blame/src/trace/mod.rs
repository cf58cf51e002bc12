//! The kernel's own trace: switched on, kept in a ring, read back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`tracefs`] | tracefs without a mount point, and an instance of our own in it |
//! | [`recorder`] | the flight recorder: the newest events of some CPUs |
//! | [`format`](mod@format), [`page`] | the kernel's layouts, read from its own words |
//! | [`decoder`], [`event`] | records to events |
//! | [`symbols`] | names of kernel functions |

pub mod decoder;
pub mod event;
pub mod format;
pub mod page;
pub mod recorder;
pub mod symbols;
pub mod tracefs;

pub use decoder::Decoder;
pub use event::{Name, Task, TraceEvent, What};
pub use recorder::Recorder;
