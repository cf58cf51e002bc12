//! Server of the shared-memory interface: the thread of the running process that lets clients
//! attach.
//!
//! It answers on a Unix socket and hands out file descriptors. It is an ordinary thread: nothing
//! real-time waits for it.
//!
//! | user | may |
//! |---|---|
//! | any user that the socket's permissions let connect | read description, state and diagnostics |
//! | the user that runs the cycle, root, members of the interface's group | also hold the command lease, force signals, become the controller process, and open ports |

pub mod protocol;
mod serve;
mod visitors;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::channel::PortCounters;
use crate::controller::{self, ControllerCounters};
use crate::diagnostics::{self, TooLong};
use crate::place::{PlaceError, Placed};

pub(crate) use serve::{Handed, Serve};

/// Handle of an open interface. Dropping it ends the server and removes the socket; readers keep
/// the last state and see that the cycle has ended.
#[derive(Debug)]
pub struct Server {
    placed: Placed,
    passed_over: Option<PlaceError>,
    diagnostics: Mutex<diagnostics::Writer>,
    counters: Vec<(Box<str>, Arc<crate::channel::Counters>)>,
    controller: Option<Arc<controller::Counters>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread that serves at the listening socket of this path.
    pub(crate) fn open(
        path: PathBuf,
        passed_over: Option<PlaceError>,
        serve: Serve,
        diagnostics: diagnostics::Writer,
    ) -> std::io::Result<Self> {
        let placed = Placed::at(path)?;
        let wake = serve.wake();
        let (counters, controller) = (serve.counters(), serve.controller_counters());
        let thread = std::thread::Builder::new().name("onbeat-ipc".into()).spawn(move || serve.run())?;
        Ok(Self {
            placed,
            passed_over,
            diagnostics: Mutex::new(diagnostics),
            counters,
            controller,
            wake,
            thread: Some(thread),
        })
    }

    /// Publishes a JSON document to all readers, in place of the former one. For an ordinary
    /// thread.
    ///
    /// # Errors
    /// The document is longer than [`diagnostics::LONGEST`]; the former one stays.
    pub fn diagnostics(&self, json: &str) -> Result<(), TooLong> {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).publish(json)
    }

    /// Traffic of each port so far, in the order of their creation.
    #[must_use]
    pub fn counters(&self) -> Vec<PortCounters> {
        self.counters.iter().map(|(name, counters)| counters.read(name)).collect()
    }

    /// Answers of the controller process so far; `None` in a cycle without the role.
    #[must_use]
    pub fn controller(&self) -> Option<ControllerCounters> {
        self.controller.as_ref().map(|counters| counters.read())
    }

    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.placed.path()
    }

    /// Reason that the socket is not in the first of the usual folders, if it is in another one.
    #[must_use]
    pub fn passed_over(&self) -> Option<&PlaceError> {
        self.passed_over.as_ref()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
