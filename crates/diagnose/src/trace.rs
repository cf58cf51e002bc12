//! The kernel's trace: switching it on, keeping it in a ring, reading it.
//!
//! | module | contents |
//! |---|---|
//! | [`tracefs`] | tracefs without a mount point, and an instance of our own in it |
//! | [`recorder`] | flight recorder: the newest events of some CPUs |
//! | [`format`](mod@format), [`page`] | layouts of events and pages, as the kernel describes them |
//! | [`decoder`], [`event`] | events from records, and the names in them |

pub mod decoder;
pub mod event;
pub mod format;
pub mod page;
pub mod recorder;
pub mod tracefs;

pub use decoder::Decoder;
pub use event::{Name, Symbols, Task, TraceEvent, What};
pub use recorder::Recorder;
