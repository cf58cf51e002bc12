//! Mailbox on the side of the application: requests in, replies and repeats out (ETG.1000.4, 5.6
//! and 6.10).

use std::collections::VecDeque;

use ethercat::wire::mailbox::{self, Header, MailboxError, MailboxFormatError, MailboxType};

use crate::application::{Application, QUEUE_LIMIT, Replies};
use crate::esc::{Esc, Kind, SyncManagerUnit};

/// SyncManagers of the mailbox (ETG.1000.6, 5.6.7.2): the MainDevice writes 0 and reads 1.
pub(crate) const OUT: usize = 0;
pub(crate) const IN: usize = 1;

/// Server of the mailbox of one SubDevice.
#[derive(Debug, Default)]
pub(crate) struct MailboxServer {
    coe: VecDeque<Vec<u8>>,
    errors: VecDeque<MailboxError>,
    /// Counter of the last request taken, to recognise a repeated one.
    request_counter: u8,
    reply_counter: u8,
    /// Message in the mailbox.
    standing: Option<Vec<u8>>,
    /// Message that was read last, for a repeat request.
    last_read: Option<Vec<u8>>,
    /// Message displaced by a repeated one.
    held_back: Option<Vec<u8>>,
    repeating: bool,
}

impl MailboxServer {
    /// Serves requests and replies; the SubDevice is in PreOp or above.
    pub(crate) fn serve(&mut self, esc: &mut Esc, application: &mut dyn Application) {
        let Some(payload_limit) = payload_limit(esc) else { return };
        self.notice_read(esc);
        self.serve_repeat_request(esc);
        self.take_request(esc, application, payload_limit);
        application.poll_coe(&mut Replies::new(&mut self.coe, payload_limit));
        self.put_next(esc);
    }

    /// True if it waits for the MainDevice, after [`Self::serve`].
    pub(crate) fn is_at_rest(&self, esc: &Esc) -> bool {
        // Without a mailbox process data stand there, which are never taken out.
        let is_message = |it: &SyncManagerUnit| it.is_full() && matches!(it.kind(), Kind::Mailbox(_));
        let is_full = |number: usize| esc.sync_managers().get(number).is_some_and(is_message);
        let has_none = self.coe.is_empty() && self.errors.is_empty() && self.held_back.is_none();
        let waits = if self.standing.is_some() { is_full(IN) } else { has_none };
        waits && !is_full(OUT)
    }

    /// Drops all messages, after the mailbox was closed.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Registers that the message in the mailbox was read.
    fn notice_read(&mut self, esc: &Esc) {
        if self.standing.is_some() && !esc.sync_managers()[IN].is_full() {
            self.last_read = self.standing.take();
            self.repeating = false;
        }
    }

    /// Serves a repeat request, after the MainDevice lost a reply: the message read last is
    /// restored, then the acknowledge follows.
    fn serve_repeat_request(&mut self, esc: &mut Esc) {
        let Some((unit, memory)) = esc.sync_manager_mut(IN) else { return };
        let request = unit.repeat_request(memory);
        if request == unit.repeat_acknowledge(memory) {
            return;
        }
        if let (Some(message), false) = (&self.last_read, self.repeating) {
            unit.replace_message(memory, message);
            self.held_back = self.standing.replace(message.clone());
            self.repeating = true;
        }
        unit.set_repeat_acknowledge(memory, request);
    }

    fn take_request(&mut self, esc: &mut Esc, application: &mut dyn Application, payload_limit: usize) {
        // Replies to earlier requests are read first, or they would pile up.
        if self.coe.len() + self.errors.len() >= QUEUE_LIMIT / 2 {
            return;
        }
        let Some((unit, memory)) = esc.sync_manager_mut(OUT) else { return };
        if !unit.is_full() {
            return;
        }
        let mut message = vec![0; unit.length()];
        unit.application_read(memory, &mut message);
        if let Err(error) = self.answer(&message, application, payload_limit) {
            self.errors.push_back(error);
        }
    }

    fn answer(
        &mut self,
        message: &[u8],
        application: &mut dyn Application,
        payload_limit: usize,
    ) -> Result<(), MailboxError> {
        let (header, payload) = Header::parse(message).map_err(|error| match error {
            MailboxFormatError::LengthBeyondMailbox { .. } => MailboxError::INVALID_SIZE,
            _ => MailboxError::SYNTAX,
        })?;
        let repeated = header.counter != 0 && header.counter == self.request_counter;
        self.request_counter = header.counter;
        match header.kind {
            _ if repeated => Ok(()),
            MailboxType::Coe if payload.len() < 2 => Err(MailboxError::SIZE_TOO_SHORT),
            MailboxType::Coe => application.coe(payload, &mut Replies::new(&mut self.coe, payload_limit)),
            // Answering an error with an error would never end.
            MailboxType::Error => Ok(()),
            _ => Err(MailboxError::UNSUPPORTED_PROTOCOL),
        }
    }

    fn put_next(&mut self, esc: &mut Esc) {
        if self.standing.is_some() {
            return;
        }
        let Some(message) = self.held_back.take().or_else(|| self.next_message()) else { return };
        let Some((unit, memory)) = esc.sync_manager_mut(IN) else { return };
        // The last byte of the mailbox is always included, so that all of it is handed over.
        if unit.application_write(memory, &message) {
            self.standing = Some(message);
        }
    }

    fn next_message(&mut self) -> Option<Vec<u8>> {
        let (kind, payload) = match self.errors.pop_front() {
            Some(error) => (MailboxType::Error, error.emit().to_vec()),
            None => (MailboxType::Coe, self.coe.pop_front()?),
        };
        self.reply_counter = mailbox::next_counter(self.reply_counter);
        let mut message = vec![0; mailbox::HEADER_LENGTH + payload.len()];
        let length = mailbox::emit(kind, self.reply_counter, &payload, &mut message).ok()?;
        message.truncate(length);
        Some(message)
    }
}

/// Largest payload of a reply, if the mailbox is open in both directions.
fn payload_limit(esc: &Esc) -> Option<usize> {
    let [out, reply, ..] = esc.sync_managers() else { return None };
    let open = out.is_open() && reply.is_open();
    open.then(|| reply.length().saturating_sub(mailbox::HEADER_LENGTH))
}
