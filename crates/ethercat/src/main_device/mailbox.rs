//! The client that carries a mailbox request through a SubDevice's SyncManagers 0 and 1
//! (ETG.1000.4, 6.10; ETG.1000.6, 5.6).

use alloc::vec::Vec;
use core::time::Duration;

use crate::register::SyncManager;
use crate::register::sync_manager::{
    ACTIVATE_OFFSET, ACTIVATE_REPEAT, PDI_CONTROL_OFFSET, PDI_CONTROL_REPEAT_ACK, STATUS_MAILBOX_FULL,
    STATUS_OFFSET,
};
use crate::time::Instant;
use crate::wire::coe::Emergency;
use crate::wire::mailbox::{self, Header, MailboxType};
use crate::wire::{Address, Command};

use super::exchange::{Outgoing, Owner};
use super::limits;
use super::request::{MailboxError, MailboxOutcome, MailboxRequest};
use super::sdo_transfer::{Reaction, SdoTransfer};
use super::sub_device::{MAXIMUM_MAILBOX_LENGTH, Mailbox};

/// Result of a reply to the client's datagram.
#[derive(Debug)]
pub(super) enum Progress {
    /// Continue at once.
    Continue,
    /// Continue a little later: the SubDevice needs time.
    Wait,
    /// An emergency came in; continue.
    Emergency(Emergency),
    /// The request is done.
    Done(MailboxOutcome),
    /// The mailbox is empty, and there is no request.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Write the message.
    Write,
    /// Is there an answer?
    Poll,
    /// Read it.
    Read,
    /// The answer to a read was lost: ask for the message once more.
    RequestRepeat,
    /// Is it there again?
    PollRepeat,
}

/// The client of one mailbox.
#[derive(Debug)]
pub(super) struct MailboxClient {
    mailbox: Option<Mailbox>,
    state: State,
    request: Option<MailboxRequest>,
    transfer: SdoTransfer,
    /// The message being written, all of the mailbox.
    out: Vec<u8>,
    counter_out: u8,
    counter_in: u8,
    /// The repeat bit as it was written last.
    repeat: bool,
    /// The repeat is not acknowledged yet.
    awaits_repeat: bool,
    /// A late answer was requested once more.
    asked_again: bool,
    /// True if the SubDevice answered the last datagram.
    answered: bool,
    /// When the answer to the message on its way is given up.
    deadline: Instant,
    timeout: Duration,
    /// When the request was started.
    started: Instant,
    /// When it got further last, and how many bytes it was then.
    progressed: (Instant, usize),
    transfer_timeout: Duration,
    /// Answers that took the request further.
    answers: u32,
}

impl MailboxClient {
    pub(super) fn new(timeout: Duration, transfer_timeout: Duration) -> Self {
        Self {
            mailbox: None,
            state: State::Idle,
            request: None,
            transfer: SdoTransfer::default(),
            out: Vec::new(),
            counter_out: 0,
            counter_in: 0,
            repeat: false,
            awaits_repeat: false,
            asked_again: false,
            answered: false,
            deadline: Instant::EPOCH,
            timeout,
            started: Instant::EPOCH,
            progressed: (Instant::EPOCH, 0),
            // Where one answer is waited for longer, all of them are.
            transfer_timeout: transfer_timeout.max(timeout),
            answers: 0,
        }
    }

    /// The mailbox is set up and empty.
    pub(super) fn open(&mut self, mailbox: Option<Mailbox>) {
        self.mailbox = mailbox;
        self.out.clear();
        self.out.resize(mailbox.map_or(0, |mailbox| usize::from(mailbox.out_length)), 0);
    }

    /// Reserves memory for any mailbox, before its size is known.
    pub(super) fn reserve(&mut self) {
        self.out.reserve_exact(usize::from(MAXIMUM_MAILBOX_LENGTH));
    }

    /// The SubDevice's mailbox was set up again, and is empty.
    pub(super) fn reset(&mut self) {
        (self.counter_out, self.counter_in) = (0, 0);
        (self.repeat, self.awaits_repeat) = (false, false);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Starts a request; only when idle.
    pub(super) fn start(
        &mut self,
        now: Instant,
        mut request: MailboxRequest,
    ) -> Result<(), MailboxOutcome> {
        let outcome = |request, error| Err(MailboxOutcome { request, result: Err(error) });
        if !self.mailbox.is_some_and(|mailbox| mailbox.coe) {
            return outcome(request, MailboxError::NoCoe);
        }
        let payload = &mut self.out[mailbox::HEADER_LENGTH..];
        match self.transfer.start(&mut request, payload) {
            Err(error) => outcome(request, error),
            Ok(length) => {
                self.request = Some(request);
                (self.started, self.answers) = (now, 0);
                self.progressed = (now, self.transferred());
                self.send(now, length);
                Ok(())
            }
        }
    }

    /// Looks for unsolicited mail; only when idle.
    pub(super) fn fetch_mail(&mut self, now: Instant) {
        if self.mailbox.is_some() && self.is_idle() {
            self.state = State::Read;
            self.deadline = now + self.timeout;
        }
    }

    /// Gives up the current request.
    pub(super) fn close(&mut self, error: MailboxError) -> Option<MailboxOutcome> {
        self.state = State::Idle;
        self.request.take().map(|request| MailboxOutcome { request, result: Err(error) })
    }

    /// Appends the datagram that comes next.
    pub(super) fn emit(&mut self, station: u16, owner: Owner, outgoing: &mut Outgoing<'_>) -> bool {
        let Some(mailbox) = self.mailbox else { return false };
        let at = |register| Address::Station { station, register };
        let sync_manager_in = SyncManager::register(1);
        let (command, register, length) = match self.state {
            State::Idle => return false,
            State::Write => (Command::Fpwr, mailbox.out_address, self.out.len()),
            State::Poll => (Command::Fprd, sync_manager_in + STATUS_OFFSET, 1),
            State::Read => (Command::Fprd, mailbox.in_address, usize::from(mailbox.in_length)),
            State::RequestRepeat => (Command::Fpwr, sync_manager_in + ACTIVATE_OFFSET, 1),
            State::PollRepeat => (Command::Fprd, sync_manager_in + PDI_CONTROL_OFFSET, 1),
        };
        let Some(data) = outgoing.push(command, at(register), length, owner) else { return false };
        match self.state {
            State::Write => data.copy_from_slice(&self.out),
            State::RequestRepeat => data[0] = 1 | if self.repeat { ACTIVATE_REPEAT } else { 0 },
            _ => {}
        }
        true
    }

    /// The datagram was lost.
    pub(super) fn lost(&mut self) {
        if self.state == State::Read {
            // The SubDevice may think the message was read. A write is safe to send again: the
            // counter marks it as a repetition.
            self.request_repeat();
        }
    }

    /// The datagram came back.
    pub(super) fn reply(&mut self, now: Instant, data: &[u8], working_counter: u16) -> Progress {
        let answered = working_counter == 1;
        self.answered = answered;
        match self.state {
            State::Idle => return Progress::Idle,
            State::Write if answered => {
                self.state = State::Poll;
                return Progress::Continue;
            }
            State::Poll if answered => {
                if data[0] & STATUS_MAILBOX_FULL != 0 {
                    self.state = State::Read;
                    return Progress::Continue;
                }
                if self.awaits_repeat {
                    self.state = State::PollRepeat;
                } else if !self.asked_again && now + self.timeout / 2 >= self.deadline {
                    // A read that came out of order may have taken the answer with it.
                    self.asked_again = true;
                    self.request_repeat();
                }
            }
            State::Read if answered => return self.received(now, data),
            State::Read if self.request.is_none() => {
                self.state = State::Idle;
                return Progress::Idle;
            }
            // There was a message: another copy of this read has taken it.
            State::Read => self.request_repeat(),
            State::RequestRepeat if answered => {
                self.state = State::PollRepeat;
                return Progress::Continue;
            }
            State::PollRepeat if answered => {
                let acknowledged = data[0] & PDI_CONTROL_REPEAT_ACK != 0;
                if acknowledged == self.repeat {
                    self.awaits_repeat = false;
                    self.state = if self.request.is_some() { State::Poll } else { State::Read };
                    return Progress::Continue;
                }
                // A SubDevice that does not know repeats may still answer.
                if self.request.is_some() {
                    self.state = State::Poll;
                }
            }
            State::Write | State::Poll | State::RequestRepeat | State::PollRepeat => {}
        }
        if now < self.deadline { Progress::Wait } else { self.give_up() }
    }

    /// True if the time of the message on its way is up.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.state != State::Idle && now >= self.deadline
    }

    /// Puts off when it is given up.
    pub(super) fn put_off(&mut self, by: Duration) {
        let (progressed, bytes) = self.progressed;
        self.progressed = (progressed + by, bytes);
        (self.started, self.deadline) = (self.started + by, self.deadline + by);
    }

    fn request_repeat(&mut self) {
        self.repeat = !self.repeat;
        self.awaits_repeat = true;
        self.state = State::RequestRepeat;
    }

    /// The time is up: the mailbox is not there or takes nothing, or its answer does not come.
    pub(super) fn give_up(&mut self) -> Progress {
        let address = self.mailbox.map_or(0, |mailbox| mailbox.out_address);
        let bytes = self.transferred();
        let error = if self.deadline == self.last_moment() && self.answers > 0 {
            let after = self.last_moment().since(self.started);
            MailboxError::Unfinished { after, answers: self.answers, bytes }
        } else if self.answered && self.state != State::Write {
            MailboxError::Timeout(self.timeout)
        } else {
            MailboxError::NoAnswer { address }
        };
        self.close(error).map_or(Progress::Idle, Progress::Done)
    }

    fn received(&mut self, now: Instant, mailbox: &[u8]) -> Progress {
        let (header, payload) = match Header::parse(mailbox) {
            Ok(message) => message,
            Err(error) => return self.finish(Err(MailboxError::Mailbox(error))),
        };
        let is_repeated = header.counter != 0 && header.counter == self.counter_in;
        self.counter_in = header.counter;
        if is_repeated {
            return self.await_more();
        }
        match header.kind {
            MailboxType::Error => match mailbox::MailboxError::parse(payload) {
                Ok(error) => self.finish(Err(MailboxError::Refused(error))),
                Err(error) => self.finish(Err(MailboxError::Mailbox(error))),
            },
            MailboxType::Coe => self.received_coe(now, payload),
            _ => self.await_more(),
        }
    }

    fn received_coe(&mut self, now: Instant, payload: &[u8]) -> Progress {
        let Some(request) = &mut self.request else {
            self.state = State::Idle;
            let emergency = Emergency::parse(payload).ok();
            return emergency.map_or(Progress::Idle, Progress::Emergency);
        };
        match self.transfer.receive(request, payload, &mut self.out[mailbox::HEADER_LENGTH..]) {
            Reaction::Send(length) => {
                self.count_answer(now);
                self.send(now, length);
                Progress::Continue
            }
            Reaction::AwaitMore => {
                self.count_answer(now);
                self.deadline = self.last_moment().min(now + self.timeout);
                self.await_more()
            }
            Reaction::Ignore => self.await_more(),
            Reaction::Emergency(emergency) => {
                self.state = State::Poll;
                Progress::Emergency(emergency)
            }
            Reaction::Done(result) => self.finish(result),
        }
    }

    fn count_answer(&mut self, now: Instant) {
        self.answers = self.answers.saturating_add(1);
        let bytes = self.transferred();
        if bytes > self.progressed.1 {
            self.progressed = (now, bytes);
        }
    }

    fn await_more(&mut self) -> Progress {
        self.state = if self.request.is_some() { State::Poll } else { State::Idle };
        if self.request.is_some() { Progress::Continue } else { Progress::Idle }
    }

    fn finish(&mut self, result: Result<(), MailboxError>) -> Progress {
        self.state = State::Idle;
        match self.request.take() {
            Some(request) => Progress::Done(MailboxOutcome { request, result }),
            None => Progress::Idle,
        }
    }

    /// Puts the header before the `length` bytes of payload in the buffer, zeroes behind.
    fn send(&mut self, now: Instant, length: usize) {
        self.counter_out = mailbox::next_counter(self.counter_out);
        let header = Header::new(MailboxType::Coe, self.counter_out, length as u16);
        self.out[..mailbox::HEADER_LENGTH].copy_from_slice(&header.emit());
        self.out[mailbox::HEADER_LENGTH + length..].fill(0);
        self.state = State::Write;
        (self.awaits_repeat, self.asked_again) = (false, false);
        self.deadline = self.last_moment().min(now + self.timeout);
    }

    /// Time at which the request is given up, even if answers still come.
    fn last_moment(&self) -> Instant {
        let bytes = u32::try_from(self.transferred()).unwrap_or(u32::MAX);
        let in_all = self.started + self.transfer_timeout + limits::TRANSFER_PER_BYTE * bytes;
        in_all.min(self.progressed.0 + self.transfer_timeout)
    }

    fn transferred(&self) -> usize {
        self.request.as_ref().map_or(0, |request| self.transfer.transferred(request))
    }
}
