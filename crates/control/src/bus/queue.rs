//! The cycle's end of the requests: bounded, nothing is allocated or freed.

use ethercat::main_device::{MailboxOutcome, MailboxRequest, MailboxService, MainDevice};
use rtrb::{Consumer, Producer};

use super::SLOTS;
use super::picture::Picture;

/// Request to the cycle.
#[derive(Debug)]
pub(super) enum Ask {
    /// For a mailbox, under the number of its slot.
    Mailbox { slot: usize, request: MailboxRequest },
    /// The bus as it is, with the error counters read first if `errors`.
    Picture { picture: Box<Picture>, errors: bool },
}

/// Answer of the cycle.
#[derive(Debug)]
pub(super) enum Answer {
    Mailbox { slot: usize, outcome: MailboxOutcome },
    Picture(Box<Picture>),
}

/// The cycle's end of the requests to its bus: for [`crate::cycle::Cycle::with_bus`].
#[derive(Debug)]
pub struct BusRequests {
    asks: Consumer<Ask>,
    answers: Producer<Answer>,
    /// Mailbox requests under way, in the order they were asked.
    under_way: Vec<(usize, u16, MailboxService)>,
    /// A picture whose error counters are being read, and for how many cycles.
    picture: Option<(Box<Picture>, u32)>,
}

impl BusRequests {
    pub(super) fn new(asks: Consumer<Ask>, answers: Producer<Answer>) -> Self {
        Self { asks, answers, under_way: Vec::with_capacity(SLOTS), picture: None }
    }

    /// Hands new requests to the MainDevice, a few in each cycle.
    pub(crate) fn look(&mut self, main_device: &mut MainDevice) {
        if let Some((picture, waited)) = self.picture.take() {
            if main_device.reads_error_counters() && waited < LONGEST_READING {
                self.picture = Some((picture, waited + 1));
            } else {
                self.show(picture, main_device, true);
            }
        }
        for _ in 0..MOST_IN_A_CYCLE {
            match self.asks.pop() {
                Err(_) => return,
                Ok(Ask::Mailbox { slot, request }) => self.submit(slot, request, main_device),
                Ok(Ask::Picture { picture, errors: true }) => {
                    main_device.read_error_counters();
                    self.picture = Some((picture, 0));
                }
                Ok(Ask::Picture { picture, errors: false }) => self.show(picture, main_device, false),
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

    fn show(&mut self, mut picture: Box<Picture>, main_device: &MainDevice, errors: bool) {
        picture.fill(main_device, errors);
        self.answer(Answer::Picture(picture));
    }

    /// Takes the outcome of a request of this queue; any other comes back. Of two alike the older one is done first.
    pub(crate) fn take(&mut self, outcome: MailboxOutcome) -> Option<MailboxOutcome> {
        let (position, service) = (outcome.request.position, outcome.request.service);
        let ours = |&(_, at, what): &(usize, u16, MailboxService)| (at, what) == (position, service);
        let Some(place) = self.under_way.iter().position(ours) else { return Some(outcome) };
        let (slot, ..) = self.under_way.remove(place);
        self.answer(Answer::Mailbox { slot, outcome });
        None
    }

    /// There is room for the answer to each request.
    fn answer(&mut self, answer: Answer) {
        let pushed = self.answers.push(answer);
        debug_assert!(pushed.is_ok(), "room for each slot");
    }
}

/// Requests taken in one cycle.
const MOST_IN_A_CYCLE: usize = 4;

/// Cycles that error counters are waited for: on a bus that is down they do not come.
const LONGEST_READING: u32 = 1000;
