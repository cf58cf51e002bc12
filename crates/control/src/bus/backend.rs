//! The server's way to the cycle, on an ordinary thread.

use std::cell::LazyCell;
use std::collections::VecDeque;

use ethercat::cia402::State;
use ethercat::main_device::{Latches, MailboxError, MailboxOutcome, MailboxRequest, MailboxService};
use ethercat::wire::coe::{ListType, ValueInfo};
use ipc::bus::{Backend, BusStatus, Bytes, LONGEST_OBJECT, Outcome, Service, Ticket};
use rtrb::{Consumer, Producer};
use serde_json::Value;

use super::SLOTS;
use super::picture::{Picture, Wanted, bus_status, latch_inputs};
use super::queue::{Answer, Ask};
use super::write_protection::WriteProtection;
use crate::status::StatusReader;

/// Description of the SubDevices for clients: with a thousand of them it is long, and often not
/// requested.
pub(super) type Description = LazyCell<Value, Box<dyn FnOnce() -> Value + Send>>;

/// Mailboxes and state of a running bus, for [`ipc::bus::Server::start`].
#[derive(Debug)]
pub struct BusBackend {
    asks: Producer<Ask>,
    answers: Consumer<Answer>,
    protection: WriteProtection,
    status: StatusReader,
    description: Description,
    /// Requests under way, by slot.
    slots: [Option<UnderWay>; SLOTS],
    /// Buffers of [`LONGEST_OBJECT`] bytes that are here.
    buffers: Vec<Vec<u8>>,
    /// The one picture, while it is here.
    picture: Option<Box<Picture>>,
    /// Client that waits for it, and for its part in the description.
    pictured: Option<(Ticket, Shown)>,
    /// Client that waits for the error counters to be cleared.
    clearing: Option<Ticket>,
    /// Client that waits for the latch inputs of a SubDevice, and which.
    latching: Option<(Ticket, u16)>,
    done: VecDeque<(Ticket, Outcome)>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    ticket: Ticket,
    reads_only: bool,
    is_upload: bool,
}

/// Answer that a picture goes into.
#[derive(Clone, Copy, Debug)]
enum Shown {
    Status,
    Description,
}

impl BusBackend {
    pub(super) fn new(
        asks: Producer<Ask>,
        answers: Consumer<Answer>,
        protection: WriteProtection,
        status: StatusReader,
        description: Description,
        sub_devices: usize,
    ) -> Self {
        Self {
            asks,
            answers,
            protection,
            status,
            description,
            slots: [None; SLOTS],
            buffers: (0..SLOTS).map(|_| buffer()).collect(),
            picture: Some(Box::new(Picture::new(sub_devices))),
            pictured: None,
            clearing: None,
            latching: None,
            done: VecDeque::new(),
        }
    }

    /// Hands a request to the cycle; false if there is no slot for it now.
    fn ask(&mut self, under_way: UnderWay, position: u16, service: MailboxService, value: &[u8]) -> bool {
        let taken = |it: &UnderWay| it.reads_only;
        let of_readers = self.slots.iter().flatten().filter(|it| taken(it)).count();
        // Clients with read access only leave space for the others.
        if under_way.reads_only && of_readers >= SLOTS / 2 {
            return false;
        }
        let Some(slot) = self.slots.iter().position(Option::is_none) else { return false };
        let mut data = self.buffers.pop().unwrap_or_else(buffer);
        data.clear();
        data.extend_from_slice(value);
        let request = MailboxRequest { position, service, data };
        if self.asks.push(Ask::Mailbox { slot, request }).is_err() {
            return false;
        }
        self.slots[slot] = Some(under_way);
        true
    }

    fn refuse(&mut self, ticket: Ticket, why: impl std::fmt::Display) -> bool {
        self.done.push_back((ticket, Outcome::error(why)));
        true
    }

    fn ask_picture(&mut self, ticket: Ticket, wanted: Wanted, shown: Shown) -> bool {
        let Some(picture) = self.picture.take() else { return false };
        self.pictured = Some((ticket, shown));
        let _ = self.asks.push(Ask::Picture { picture, wanted });
        true
    }

    fn ask_clear(&mut self, ticket: Ticket) -> bool {
        if self.clearing.is_some() || self.asks.push(Ask::Clear).is_err() {
            return false;
        }
        self.clearing = Some(ticket);
        true
    }

    fn ask_latches(&mut self, ticket: Ticket, position: u16) -> bool {
        if self.latching.is_some() || self.asks.push(Ask::Latches { position }).is_err() {
            return false;
        }
        self.latching = Some((ticket, position));
        true
    }

    fn latched(&mut self, latches: Option<Latches>) -> Option<(Ticket, Outcome)> {
        let (ticket, position) = self.latching.take()?;
        let none = || {
            Outcome::error(format_args!(
                "SubDevice {position} reports no latch times: it is absent, does not answer, or \
                 has no distributed clock"
            ))
        };
        Some((ticket, latches.map_or_else(none, |it| Outcome::Latches(latch_inputs(it)))))
    }

    /// Refusal of this download, if it is refused.
    fn refusal(
        &self,
        position: u16,
        (index, sub_index): (u16, Option<u8>),
        force: bool,
        reads_only: Option<&str>,
    ) -> Option<String> {
        if let Some(why) = reads_only {
            return Some(why.to_owned());
        }
        let status = self.status.read();
        let has_power =
            |axis: usize| status.axes.get(axis).is_some_and(|it| it.state.is_some_and(has_power));
        let checked = self.protection.check(position.into(), (index, sub_index), force, has_power);
        checked.err().map(|protected| protected.to_string())
    }

    fn answered(&mut self, slot: usize, outcome: MailboxOutcome) -> Option<(Ticket, Outcome)> {
        let MailboxOutcome { request, result } = outcome;
        let under_way = self.slots.get_mut(slot).and_then(Option::take);
        let outcome = under_way.map(|UnderWay { ticket, is_upload, .. }| {
            let outcome = match result {
                Ok(()) if is_upload => Outcome::Data(Bytes(request.data.clone())),
                Ok(()) => Outcome::Done(true),
                Err(error) => Outcome::Error {
                    text: error.to_string(),
                    abort_code: match error {
                        MailboxError::Aborted(code) => Some(code.0),
                        _ => None,
                    },
                },
            };
            (ticket, outcome)
        });
        // Where a fault's own question was answered with it, a short one came back in its place.
        if request.data.capacity() >= LONGEST_OBJECT {
            self.buffers.push(request.data);
        }
        outcome
    }

    fn shown(&mut self, picture: Box<Picture>) -> Option<(Ticket, Outcome)> {
        let status = bus_status(&self.status.read(), &picture);
        self.picture = Some(picture);
        let (ticket, shown) = self.pictured.take()?;
        let outcome = match shown {
            Shown::Status => Outcome::Status(Box::new(status)),
            Shown::Description => Outcome::SubDevices(self.described(&status)),
        };
        Some((ticket, outcome))
    }

    /// The SubDevices as they were found, in their states and places of now.
    fn described(&self, status: &BusStatus) -> Value {
        let mut description = Value::clone(&self.description);
        let found = description.as_array_mut().into_iter().flatten();
        found.zip(&status.sub_devices).for_each(|(it, now)| now.describe(it));
        description
    }

    /// A request that the cycle has left behind.
    fn left(&mut self) -> Option<(Ticket, Outcome)> {
        let left = self.slots.iter_mut().find_map(Option::take).map(|it| it.ticket);
        let left = left
            .or_else(|| self.pictured.take().map(|(ticket, _)| ticket))
            .or_else(|| self.clearing.take());
        let left = left.or_else(|| self.latching.take().map(|(ticket, _)| ticket));
        left.map(|ticket| (ticket, Outcome::error(ENDED)))
    }
}

impl Backend for BusBackend {
    fn submit(&mut self, ticket: Ticket, service: &Service, reads_only: Option<&str>) -> bool {
        if self.asks.is_abandoned() {
            return self.refuse(ticket, ENDED);
        }
        let read = UnderWay { ticket, reads_only: reads_only.is_some(), is_upload: true };
        match *service {
            Service::Upload { position, index, sub_index, complete_access } => {
                let service = MailboxService::Upload { index, sub_index, complete_access };
                self.ask(read, position, service, &[])
            }
            Service::Download { position, index, sub_index, complete_access, ref data, force } => {
                let entry = (!complete_access).then_some(sub_index);
                if let Some(why) = self.refusal(position, (index, entry), force, reads_only) {
                    return self.refuse(ticket, why);
                }
                if data.0.is_empty() {
                    return self.refuse(ticket, "no bytes to write, expected at least one");
                }
                let service = MailboxService::Download { index, sub_index, complete_access };
                self.ask(UnderWay { is_upload: false, ..read }, position, service, &data.0)
            }
            Service::ObjectList { position, list } => {
                self.ask(read, position, MailboxService::ObjectList(ListType(list)), &[])
            }
            Service::DescribeObject { position, index } => {
                self.ask(read, position, MailboxService::DescribeObject { index }, &[])
            }
            Service::DescribeEntry { position, index, sub_index, value_info } => {
                let value_info = ValueInfo(value_info);
                let service = MailboxService::DescribeEntry { index, sub_index, value_info };
                self.ask(read, position, service, &[])
            }
            Service::Status { errors, receive_times } => {
                self.ask_picture(ticket, Wanted { errors, receive_times }, Shown::Status)
            }
            Service::ClearErrors => match reads_only {
                Some(why) => self.refuse(ticket, why),
                None => self.ask_clear(ticket),
            },
            Service::Latches { position } => match reads_only {
                Some(why) => self.refuse(ticket, why),
                None => self.ask_latches(ticket, position),
            },
            Service::Describe => self.ask_picture(ticket, Wanted::default(), Shown::Description),
            Service::Events { .. } => self.refuse(ticket, "events are the server's"),
            Service::Record { .. } => self.refuse(ticket, "recordings are the run's"),
            Service::Late { .. } => self.refuse(ticket, "late cycles are the run's"),
        }
    }

    fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        if let Some(done) = self.done.pop_front() {
            return Some(done);
        }
        // Read before the answers: all answers of an abandoned ring are in it then.
        let is_over = self.answers.is_abandoned();
        while let Ok(answer) = self.answers.pop() {
            let outcome = match answer {
                Answer::Mailbox { slot, outcome } => self.answered(slot, outcome),
                Answer::Picture(picture) => self.shown(picture),
                Answer::Latches(latches) => self.latched(latches),
                Answer::Cleared(done) => self.clearing.take().map(|ticket| {
                    let not_yet =
                        || Outcome::error("the SubDevices do not answer: the bus is down, or coming up");
                    (ticket, if done { Outcome::Done(true) } else { not_yet() })
                }),
            };
            if outcome.is_some() {
                return outcome;
            }
        }
        if is_over { self.left() } else { None }
    }
}

/// A buffer with all pages present before the cycle writes to it.
fn buffer() -> Vec<u8> {
    vec![1; LONGEST_OBJECT]
}

/// True if a drive in this state may move its axis.
fn has_power(state: State) -> bool {
    use State::{FaultReactionActive, OperationEnabled, QuickStopActive, SwitchedOn};
    matches!(state, SwitchedOn | OperationEnabled | QuickStopActive | FaultReactionActive)
}

/// Outcome of requests of a cycle that has ended.
const ENDED: &str = "the cycle has ended";
