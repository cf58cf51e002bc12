//! The cycle's end of the requests: bounded, nothing is allocated or freed.

use std::time::Duration;

use ethercat::main_device::{Latches, MailboxOutcome, MailboxRequest, MailboxService, MainDevice};
use rtrb::{Consumer, Producer};

use super::SLOTS;
use super::picture::{Picture, Wanted};
use super::poll::{BusPoll, Poll, poll};
use super::working_counters::History;
use crate::status::StatusReader;

/// Request to the cycle.
#[derive(Debug)]
pub(super) enum Ask {
    /// For a mailbox, under the number of its slot.
    Mailbox { slot: usize, request: MailboxRequest },
    /// The current bus, after the requested parts have been read.
    Picture { picture: Box<Picture>, wanted: Wanted },
    /// Clear the error counters.
    Clear,
    /// Latch inputs of a SubDevice.
    Latches { position: u16 },
}

/// Answer of the cycle.
#[derive(Debug)]
pub(super) enum Answer {
    Mailbox {
        slot: usize,
        outcome: MailboxOutcome,
    },
    Picture(Box<Picture>),
    /// Latch inputs, if the SubDevice has them.
    Latches(Option<Latches>),
    /// True if the error counters were cleared at all SubDevices that answer.
    Cleared(bool),
}

/// The cycle's end of the requests to its bus: for [`crate::cycle::Cycle::with_bus`].
#[derive(Debug)]
pub struct BusRequests {
    asks: Consumer<Ask>,
    answers: Producer<Answer>,
    /// Mailbox requests under way, in the order they were asked.
    under_way: Vec<(usize, u16, MailboxService)>,
    /// A picture with reads in progress, and for how many cycles.
    picture: Option<(Box<Picture>, Wanted, u32)>,
    /// Cycles since the error counters are being cleared.
    clearing: Option<u32>,
    /// SubDevice with a read of its latch inputs in progress, and for how many cycles.
    latching: Option<(usize, u32)>,
    history: History,
    poll: Option<Poll>,
}

impl BusRequests {
    pub(super) fn new(asks: Consumer<Ask>, answers: Producer<Answer>) -> Self {
        Self {
            asks,
            answers,
            under_way: Vec::with_capacity(SLOTS),
            picture: None,
            clearing: None,
            latching: None,
            history: History::default(),
            poll: None,
        }
    }

    /// The same with a slow poll of the SubDevices' counters, in a cycle of this period, and the
    /// end for the watching thread.
    #[must_use]
    pub fn polling(
        self,
        main_device: &MainDevice,
        period: Duration,
        status: StatusReader,
    ) -> (Self, BusPoll) {
        let (poll, watched) = poll(main_device.sub_devices().len(), period, status);
        (Self { poll: Some(poll), ..self }, watched)
    }

    /// Hands new requests to the MainDevice, a few in each cycle.
    pub(crate) fn look(&mut self, cycle: u64, main_device: &mut MainDevice) {
        self.history.note(cycle, main_device.working_counters());
        if let Some(poll) = &mut self.poll {
            poll.look(cycle, main_device, &self.history);
        }
        if let Some(waited) = self.clearing.take() {
            let is_done = !main_device.reads_error_counters();
            if is_done || waited == LONGEST_READING {
                self.answer(Answer::Cleared(is_done));
            } else {
                self.clearing = Some(waited + 1);
            }
        }
        if let Some((position, waited)) = self.latching.take() {
            let is_done = !main_device.reads_latches(position);
            if is_done || waited == LONGEST_READING {
                let it = main_device.sub_devices().get(position).filter(|_| is_done);
                self.answer(Answer::Latches(it.and_then(|it| it.latches)));
            } else {
                self.latching = Some((position, waited + 1));
            }
        }
        if let Some((picture, wanted, waited)) = self.picture.take() {
            let reads = main_device.reads_error_counters() || main_device.reads_receive_times();
            if reads && waited < LONGEST_READING {
                self.picture = Some((picture, wanted, waited + 1));
            } else {
                self.show(picture, main_device, wanted);
            }
        }
        for _ in 0..MOST_IN_A_CYCLE {
            match self.asks.pop() {
                Err(_) => return,
                Ok(Ask::Mailbox { slot, request }) => self.submit(slot, request, main_device),
                Ok(Ask::Picture { picture, wanted }) => {
                    if wanted.errors {
                        main_device.read_error_counters();
                    }
                    if wanted.receive_times {
                        main_device.latch_receive_times();
                    }
                    if wanted == Wanted::default() {
                        self.show(picture, main_device, wanted);
                    } else {
                        self.picture = Some((picture, wanted, 0));
                    }
                }
                Ok(Ask::Clear) => {
                    main_device.clear_error_counters();
                    self.clearing = Some(0);
                }
                Ok(Ask::Latches { position }) => {
                    main_device.read_latches(position.into());
                    self.latching = Some((position.into(), 0));
                }
            }
        }
    }

    fn submit(&mut self, slot: usize, request: MailboxRequest, main_device: &mut MainDevice) {
        let (position, service) = (request.position, request.service);
        match main_device.submit(request) {
            Ok(()) => self.under_way.push((slot, position, service)),
            Err(outcome) => self.answer(Answer::Mailbox { slot, outcome }),
        }
    }

    fn show(&mut self, mut picture: Box<Picture>, main_device: &MainDevice, wanted: Wanted) {
        picture.fill(main_device, &self.history, wanted);
        self.answer(Answer::Picture(picture));
    }

    /// Takes the outcome of a request of this queue; returns any other. Of two equal requests the
    /// older one is done first.
    pub(crate) fn take(&mut self, outcome: MailboxOutcome) -> Option<MailboxOutcome> {
        let (position, service) = (outcome.request.position, outcome.request.service);
        let ours = |&(_, at, what): &(usize, u16, MailboxService)| (at, what) == (position, service);
        let Some(place) = self.under_way.iter().position(ours) else { return Some(outcome) };
        let (slot, ..) = self.under_way.remove(place);
        self.answer(Answer::Mailbox { slot, outcome });
        None
    }

    /// There is space for the answer to each request.
    fn answer(&mut self, answer: Answer) {
        let pushed = self.answers.push(answer);
        debug_assert!(pushed.is_ok(), "room for each slot");
    }
}

/// Requests taken in one cycle.
const MOST_IN_A_CYCLE: usize = 4;

/// Cycles that error counters and receive times are waited for: on a bus that is down they do not
/// come.
const LONGEST_READING: u32 = 1000;
