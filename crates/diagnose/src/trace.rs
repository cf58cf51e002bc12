//! The kernel's trace: switching it on, keeping it in a ring, reading it.
//!
//! | module | contents |
//! |---|---|
//! | [`tracefs`] | tracefs without a mount point, and an instance of our own in it |
//! | [`recorder`] | flight recorder: the newest events of some CPUs, out of pages |
//! | [`format`](mod@format), [`page`] | layouts of events and pages, as the kernel describes them |
//! | [`event`] | events that are recorded: from records, and the names in them |

pub mod event;
pub mod format;
pub mod page;
pub mod recorder;
pub mod tracefs;

pub use event::{Name, Symbols, Task, TraceEvent, What};
pub use recorder::{Decoder, Recorder};
