//! Source of pictures: the shared-memory interface of a running cycle, only read.

use std::time::Instant;

use ipc::client::Client;
use ipc::state;
use rt::clock::now_ns;

use super::picture::{Picture, Standing};
use crate::failure::Failure;
use crate::target::STILL;

/// A cycle that pictures are taken of.
#[derive(Debug)]
pub(super) struct Source {
    ipc: Client,
    reader: state::Reader,
    heartbeat: u64,
    /// When that last changed, or when it was first seen.
    beating: Instant,
    ended: Option<Instant>,
}

impl Source {
    pub(super) fn new(ipc: Client) -> Self {
        let reader = ipc.state();
        Self { heartbeat: reader.heartbeat(), reader, ipc, beating: Instant::now(), ended: None }
    }

    /// A first picture: what never changes.
    pub(super) fn picture(&self) -> Picture {
        Picture { description: self.ipc.description().clone(), ..Picture::default() }
    }

    /// True if anything can be seen of it.
    pub(super) fn has_state(&self) -> bool {
        self.reader.heartbeat() > 0
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() || self.ipc.has_ended()
    }

    /// Takes what is newest into the picture. After the end the last state stays.
    pub(super) fn look(&mut self, picture: &mut Picture) -> Result<(), Failure> {
        self.look_at_its_end(picture);
        // Otherwise looked at again soon.
        if let Ok(state) = self.reader.read() {
            picture.take(state, now_ns());
        }
        if let Ok(document) = self.ipc.diagnostics() {
            // What cannot be read is shown as it is.
            let value = serde_json::from_str(&document).unwrap_or(serde_json::Value::String(document));
            picture.diagnostics = Some(value);
        }
        Ok(())
    }

    /// Checks whether the cycle has ended; all else stays in the picture.
    pub(super) fn look_at_its_end(&mut self, picture: &mut Picture) {
        let now = Instant::now();
        if self.ended.is_none() && self.ipc.has_ended() {
            self.ended = Some(now);
        }
        let heartbeat = self.reader.heartbeat();
        if heartbeat != self.heartbeat {
            (self.heartbeat, self.beating) = (heartbeat, now);
        }
        let still = now.duration_since(self.beating);
        picture.standing = match self.ended {
            Some(ended) => {
                let why = format!("ended: process {} has ended or closed its IPC", self.ipc.process());
                Standing::Ended(why, now.duration_since(ended))
            }
            None if still > STILL => Standing::Still(still),
            None => Standing::Live,
        };
    }
}
