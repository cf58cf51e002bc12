//! Applications with an object dictionary as process data: terminals and sensors.

use ethercat::al_status_code::AlStatusCode;
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;

use super::{Application, ProcessDataLengths, Replies, StateChange, Synchronisation, SynchronisationState};
use crate::coe::CoeDevice;

/// The part of an [`Application`] that differs from terminal to terminal: its work, between outputs
/// taken and inputs shown.
pub trait CoeApplication: Send {
    /// Object dictionary, server and process data.
    fn device(&self) -> &CoeDevice;

    /// The same, to change it.
    fn device_mut(&mut self) -> &mut CoeDevice;

    /// Works up to `now`, by the dictionary; the outputs there are the MainDevice's if
    /// `operational`.
    fn work(&mut self, now: Instant, operational: bool);

    /// True if further work without outputs, messages or calls from outside would change nothing.
    fn rests(&self) -> bool {
        false
    }

    /// Resets values that are not stored, at power-on: the dictionary has its defaults again.
    fn restart(&mut self) {}

    /// False if the mailbox answers CoE as not supported.
    fn serves_coe(&self) -> bool {
        true
    }
}

impl<T: CoeApplication> Application for T {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.device().lengths()
    }

    fn power_on(&mut self) {
        self.device_mut().power_on();
        self.restart();
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.device_mut().enter(change);
        Ok(())
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        self.serves_coe().then(|| self.device().synchronisation())
    }

    fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        self.device_mut().show_synchronisation(shown);
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            self.device_mut().take_outputs(outputs);
        }
        self.work(now, outputs.is_some());
        self.device().put_inputs(inputs);
    }

    fn rests(&self) -> bool {
        CoeApplication::rests(self) && !self.device().has_messages()
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        if !self.serves_coe() {
            return Err(MailboxError::UNSUPPORTED_PROTOCOL);
        }
        self.device_mut().serve(request, replies)
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        self.device_mut().poll(replies);
    }
}
