//! A dictionary, its server, and the process data copied between them and the wire.

use ethercat::al::AlState;
use ethercat::wire::mailbox::MailboxError;

use super::dictionary::ObjectDictionary;
use super::mapping::{CopyPlan, Direction};
use super::server::CoeServer;
use crate::application::{ProcessDataLengths, Replies, StateChange};

/// What an application with CoE is built around.
#[derive(Clone, Debug)]
pub struct CoeDevice {
    server: CoeServer,
    /// The objects as power found them the first time.
    stored: Option<Box<ObjectDictionary>>,
    outputs: CopyPlan,
    inputs: CopyPlan,
}

impl CoeDevice {
    /// In Init, with the mapping that `dictionary` has.
    #[must_use]
    pub fn new(dictionary: ObjectDictionary) -> Self {
        let outputs = CopyPlan::new(&dictionary, Direction::Outputs);
        let inputs = CopyPlan::new(&dictionary, Direction::Inputs);
        Self { server: CoeServer::new(dictionary), stored: None, outputs, inputs }
    }

    /// Power comes: the first time the objects stay as they are, later all that was written to them is gone.
    pub fn power_on(&mut self) {
        let dictionary = match self.stored.take() {
            None => self.dictionary().clone(),
            Some(stored) => *stored,
        };
        *self = Self { stored: Some(Box::new(dictionary.clone())), ..Self::new(dictionary) };
    }

    /// The objects.
    #[must_use]
    pub fn dictionary(&self) -> &ObjectDictionary {
        self.server.dictionary()
    }

    /// The objects, to change values from inside the SubDevice.
    pub fn dictionary_mut(&mut self) -> &mut ObjectDictionary {
        self.server.dictionary_mut()
    }

    /// The server, to send emergencies.
    pub fn server_mut(&mut self) -> &mut CoeServer {
        &mut self.server
    }

    /// Bytes of process data by the present assignment.
    #[must_use]
    pub fn lengths(&self) -> ProcessDataLengths {
        let bytes = |direction| CopyPlan::new(self.dictionary(), direction).byte_length();
        ProcessDataLengths { outputs: bytes(Direction::Outputs), inputs: bytes(Direction::Inputs) }
    }

    /// The state changes; from PreOp to SafeOp the mapping takes effect.
    pub fn enter(&mut self, change: &StateChange) {
        if change.to == AlState::SafeOp {
            self.outputs = CopyPlan::new(self.dictionary(), Direction::Outputs);
            self.inputs = CopyPlan::new(self.dictionary(), Direction::Inputs);
        }
        self.server.enter(change.to);
    }

    /// Takes outputs into the dictionary.
    pub fn take_outputs(&mut self, outputs: &[u8]) {
        self.outputs.take(self.server.dictionary_mut(), outputs);
    }

    /// Puts inputs from the dictionary into process data.
    pub fn put_inputs(&self, inputs: &mut [u8]) {
        self.inputs.put(self.server.dictionary(), inputs);
    }

    /// Answers a CoE message.
    ///
    /// # Errors
    /// As [`CoeServer::handle`].
    pub fn serve(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.server.handle(request, replies)
    }

    /// Puts out what waits for the mailbox.
    pub fn poll(&mut self, replies: &mut Replies<'_>) {
        self.server.poll(replies);
    }
}
