//! The door: the thread of the running process that lets others in.
//!
//! It answers on a Unix socket and hands out file descriptors. It is an ordinary thread: nothing real-time waits for it.
//!
//! | who | may |
//! |---|---|
//! | everybody whom the socket's permissions let connect | read description, state and diagnostics |
//! | the user that runs the cycle, root, members of the seam's group | also hold the command lease, and open ports |

pub mod protocol;
mod serve;
mod visitors;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::channel::PortCounters;
use crate::diagnostics::{self, TooLong};
use crate::place::Lock;

pub(crate) use serve::{Handed, Serve};

/// The guard of an open seam. Dropping it ends the thread and removes the socket; readers keep the last state, and see that
/// the cycle has ended.
#[derive(Debug)]
pub struct Door {
    path: PathBuf,
    identity: (u64, u64),
    diagnostics: Mutex<diagnostics::Writer>,
    counters: Vec<(Box<str>, Arc<crate::channel::Counters>)>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Starts the thread that serves at the listening socket of this path.
    pub(crate) fn open(
        path: PathBuf,
        serve: Serve,
        diagnostics: diagnostics::Writer,
    ) -> std::io::Result<Self> {
        let metadata = fs::symlink_metadata(&path)?;
        let wake = serve.wake();
        let counters = serve.counters();
        let thread = std::thread::Builder::new().name("onbeat-door".into()).spawn(move || serve.run())?;
        Ok(Self {
            path,
            identity: (metadata.dev(), metadata.ino()),
            diagnostics: Mutex::new(diagnostics),
            counters,
            wake,
            thread: Some(thread),
        })
    }

    /// Puts a JSON document before every reader, in place of the one before. For an ordinary thread.
    ///
    /// # Errors
    /// It is longer than [`diagnostics::LONGEST`]; the one before stays.
    pub fn diagnostics(&self, json: &str) -> Result<(), TooLong> {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).publish(json)
    }

    /// What passed each port so far, in the order they were made.
    #[must_use]
    pub fn counters(&self) -> Vec<PortCounters> {
        self.counters.iter().map(|(name, counters)| counters.read(name)).collect()
    }

    /// Where the socket is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Only what is still ours: somebody may have removed it, and another cycle taken its place.
        let _lock = self.path.parent().map(Lock::of);
        let found = fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        if found.is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
