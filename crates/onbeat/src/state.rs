//! The *state directory*, which a robot keeps over restarts: its history, the positions of its axes
//! (`position_memory`), and the resets at its start.
//!
//! | file | content | bound |
//! |---|---|---|
//! | `history.jsonl` | events that explain a stop, a JSON object a line | 200 events |
//! | `run.json` | the run in progress, or the end of the last one | 1 kB |
//! | `resets.json` | times of the last resets at a start | 16 times |
//! | `position-AXIS.json` | position of an axis at standstill, or that it is in use | 1 kB an axis |
//!
//! Each file is replaced as a whole: a new one is written, stored on the disk, and renamed. A file
//! that is a link, belongs to another user, is too large or cannot be read is a sentence, and
//! counts as missing. Nothing here is called by the thread of the cycle.

mod folder;
mod history;
mod memory;

use std::env;
use std::path::PathBuf;

pub use folder::{Folder, StateError};
pub(crate) use history::unix_ms;
pub use history::{History, Kept, KeptKind};
pub(crate) use memory::AxisMemory;
pub use memory::PositionMemory;

/// The usual state directory: `$STATE_DIRECTORY` of systemd, or `onbeat` in `$XDG_STATE_HOME` or in
/// `~/.local/state`. `None` where none of them is set.
#[must_use]
pub fn usual_directory() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    if let Some(given) = given_directory() {
        return Some(given);
    }
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("onbeat"))
}

/// The state directory that the service manager gives: the first of `$STATE_DIRECTORY`.
#[must_use]
pub fn given_directory() -> Option<PathBuf> {
    let given = env::var_os("STATE_DIRECTORY")?;
    env::split_paths(&given).next().filter(|it| it.is_absolute())
}
