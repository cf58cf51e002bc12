//! Object dictionary, its server, and the process data copied between them and the wire.

use ethercat::al::AlState;
use ethercat::wire::mailbox::MailboxError;

use super::dictionary::{EntryId, ObjectDictionary};
use super::mapping::{CopyPlan, Direction};
use super::server::CoeServer;
use crate::application::{ProcessDataLengths, Replies, StateChange, SynchronisationState};

/// Core of an application with CoE.
#[derive(Clone, Debug)]
pub struct CoeDevice {
    server: CoeServer,
    /// Objects as of the first power-on.
    stored: Option<ObjectDictionary>,
    outputs: CopyPlan,
    inputs: CopyPlan,
    /// Outputs that were taken last, and changes of the dictionary since it was made until then.
    taken: Vec<u8>,
    taken_at: Option<u64>,
    /// Synchronisation in use, while it is shown.
    pub(super) shown_synchronisation: Option<ShownSynchronisation>,
}

impl CoeDevice {
    /// A device in Init, with the mapping of `dictionary`.
    #[must_use]
    pub fn new(dictionary: ObjectDictionary) -> Self {
        let outputs = CopyPlan::new(&dictionary, Direction::Outputs);
        let inputs = CopyPlan::new(&dictionary, Direction::Inputs);
        let server = CoeServer::new(dictionary);
        let (taken, taken_at) = (Vec::new(), None);
        Self { server, stored: None, outputs, inputs, taken, taken_at, shown_synchronisation: None }
    }

    /// Powers on: the first time the objects are stored, later all values written to them are lost.
    pub fn power_on(&mut self) {
        let dictionary = self.stored.take().unwrap_or_else(|| core::mem::take(self.dictionary_mut()));
        *self = Self { stored: Some(dictionary.clone()), ..Self::new(dictionary) };
    }

    /// Object dictionary.
    #[must_use]
    pub fn dictionary(&self) -> &ObjectDictionary {
        self.server.dictionary()
    }

    /// Object dictionary, to change values from inside the SubDevice.
    pub fn dictionary_mut(&mut self) -> &mut ObjectDictionary {
        self.server.dictionary_mut()
    }

    /// Server, to send emergencies.
    pub fn server_mut(&mut self) -> &mut CoeServer {
        &mut self.server
    }

    /// Bytes of process data in the present assignment.
    #[must_use]
    pub fn lengths(&self) -> ProcessDataLengths {
        let bytes = |direction| CopyPlan::new(self.dictionary(), direction).byte_length();
        ProcessDataLengths { outputs: bytes(Direction::Outputs), inputs: bytes(Direction::Inputs) }
    }

    /// Follows a change of state; from PreOp to SafeOp the mapping takes effect.
    pub fn enter(&mut self, change: &StateChange) {
        if change.to == AlState::SafeOp {
            self.outputs = CopyPlan::new(self.dictionary(), Direction::Outputs);
            self.inputs = CopyPlan::new(self.dictionary(), Direction::Inputs);
            let Self { outputs, inputs, server, .. } = self;
            [outputs, inputs].iter().for_each(|plan| plan.own(server.dictionary_mut()));
            self.taken_at = None;
        }
        self.server.enter(change.to);
    }

    /// Copies outputs into the dictionary. If nothing else has changed it, copies only the outputs
    /// that differ from the previous ones.
    pub fn take_outputs(&mut self, outputs: &[u8]) {
        let dictionary = self.server.dictionary_mut();
        let before = self.taken.as_slice();
        let before = (self.taken_at == Some(dictionary.changes())).then_some(before);
        self.outputs.take_changed(dictionary, outputs, before);
        self.taken_at = Some(dictionary.changes());
        self.taken.clear();
        self.taken.extend_from_slice(outputs);
    }

    /// Copies inputs from the dictionary into process data.
    pub fn put_inputs(&self, inputs: &mut [u8]) {
        self.inputs.put(self.server.dictionary(), inputs);
    }

    /// Serves a CoE message.
    ///
    /// # Errors
    /// As [`CoeServer::handle`].
    pub fn serve(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.server.handle(request, replies)
    }

    /// True if messages wait for the mailbox.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        self.server.has_messages()
    }

    /// Sends messages that wait for the mailbox.
    pub fn poll(&mut self, replies: &mut Replies<'_>) {
        self.server.poll(replies);
    }
}

/// Synchronisation that is shown in place of what the MainDevice has configured.
#[derive(Clone, Debug)]
pub(super) struct ShownSynchronisation {
    /// Types and cycle times as they were configured, of outputs and inputs.
    pub(super) configured: [(i64, i64); 2],
    /// Entries of the counters, of outputs and inputs.
    pub(super) counters: [[Option<EntryId>; SHOWN_COUNTERS]; 2],
    pub(super) state: SynchronisationState,
}

/// Entries of the synchronisation parameters that change while the synchronisation is in use.
pub(super) const SHOWN_COUNTERS: usize = 4;
