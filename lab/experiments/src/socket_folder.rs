//! Folder for the socket of an experiment's own interface.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Folder for a socket, removed on drop. The experiment's own folder may have a path too long for a
/// socket.
pub(crate) struct SocketFolder(pub(crate) PathBuf);

impl SocketFolder {
    /// Makes one, with the experiment's name in its own.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(experiment: &str) -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("onbeat-measure-{experiment}-{process}-{number}"));
        std::fs::create_dir_all(&path).map_err(|error| Error::file(&path, error))?;
        Ok(Self(path))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
