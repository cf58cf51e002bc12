//! What sits behind an ESC: the program that a real SubDevice's microcontroller runs.
//!
//! The ESC and its state machine are the simulator's; an [`Application`] is asked when a state is about
//! to change, is stepped by time, and serves CoE messages. It never sees frames or registers.

pub mod analogue;
pub mod description;
pub mod digital;
pub mod generic;
pub mod servo;
pub mod sii;

use std::collections::VecDeque;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;

pub use analogue::{AnalogueInputs, Signal};
pub use description::DescriptionError;
pub use digital::{DigitalInputs, DigitalOutputs, Wires};
pub use generic::GenericDevice;
pub use servo::{PlantParameters, ServoDescription, ServoDrive};

/// The program behind an ESC.
///
/// Calls come in the order of simulated time, from one thread. None of them may block; [`step`] and
/// [`sync0`] run often and do not allocate.
///
/// [`step`]: Application::step
/// [`sync0`]: Application::sync0
pub trait Application: Send {
    /// Bytes of process data that the current PDO assignment asks for. Asked on PreOp -> SafeOp, before
    /// [`enter`](Application::enter): a SyncManager of another length refuses the change with AL status
    /// code 0x001D (outputs) or 0x001E (inputs).
    fn process_data_lengths(&self) -> ProcessDataLengths;

    /// Power comes, for the first time or again: what was set and is not stored is as at first. The state is Init.
    fn power_on(&mut self) {}

    /// A change of state is about to happen; the ESC's own checks have passed.
    ///
    /// Called for every change, also the SubDevice's own fall from Op to SafeOp (watchdog). Not called
    /// for a request of the state it is in.
    ///
    /// # Errors
    /// The AL status code to show; the old state is then kept. On the way down, and where the ESC has
    /// device emulation, nothing can be refused and the answer is ignored.
    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        let _ = change;
        Ok(())
    }

    /// Time passes to `now`: called at fixed steps (see `Segment`), in every state, whether or not
    /// frames come.
    ///
    /// `outputs` is the newest complete set of outputs, only in Op; in all other states it is `None` and
    /// outputs are to be safe. `inputs` holds what was last put there and is exposed to the MainDevice
    /// after the call; it is empty below SafeOp. Both are as long as the SyncManagers (several of one
    /// direction are joined in the order of their numbers), which by then agree with
    /// [`process_data_lengths`](Application::process_data_lengths).
    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]);

    /// SYNC0 rises. Comes between two steps, in order of time; `outputs` and `inputs` as for `step`.
    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let _ = (event, outputs, inputs);
    }

    /// A CoE message arrived: `request` is the mailbox message behind the six-byte mailbox header,
    /// beginning with the CoE header. Replies, none or several, go to `replies`.
    ///
    /// # Errors
    /// What the mailbox answers instead (ETG.1000.4, 5.6, Table 29): "unsupported protocol" where it speaks no CoE.
    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        let _ = (request, replies);
        Err(MailboxError::UNSUPPORTED_PROTOCOL)
    }

    /// The servo drive that this is, for those who watch what it takes.
    fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        None
    }

    /// Messages nobody asked for: emergencies. Polled after every step while the mailbox is open.
    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        let _ = replies;
    }
}

/// Bytes of process data, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessDataLengths {
    /// From the MainDevice (RxPDOs).
    pub outputs: usize,
    /// To the MainDevice (TxPDOs).
    pub inputs: usize,
}

/// What an application is told about a change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The state it is in.
    pub from: AlState,
    /// The state it is about to be in.
    pub to: AlState,
    /// Process data as the SyncManagers are set up; zero below SafeOp.
    pub lengths: ProcessDataLengths,
    /// SYNC0 as the MainDevice has activated it, or `None` if it has not.
    pub sync0: Option<Sync0Configuration>,
}

/// SYNC0 as the registers have it (ETG.1000.4, 6.12; 0x0990 and 0x09A0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync0Configuration {
    /// Time between two events in ns of system time; 0 is a single event.
    pub cycle_nanoseconds: u32,
}

/// One rise of SYNC0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync0Event {
    /// When it happens on the simulation's own time.
    pub now: Instant,
    /// The SubDevice's system time in ns at which it was due.
    pub system_time: u64,
}

/// Where an application puts the CoE messages it sends.
///
/// They wait here until the MainDevice has read the ones before them.
#[derive(Debug)]
pub struct Replies<'a> {
    queue: &'a mut VecDeque<Vec<u8>>,
    payload_limit: usize,
}

impl<'a> Replies<'a> {
    /// Collects messages in `queue`, each of at most `payload_limit` bytes.
    #[must_use]
    pub fn new(queue: &'a mut VecDeque<Vec<u8>>, payload_limit: usize) -> Self {
        Self { queue, payload_limit }
    }

    /// Longest message that fits, in bytes behind the mailbox header: the length of SyncManager 1 less
    /// six. Also what a request may have had at most is known by its own length.
    #[must_use]
    pub fn payload_limit(&self) -> usize {
        self.payload_limit
    }

    /// Appends a message that begins with the CoE header. Returns `false`, with nothing queued, if it is
    /// longer than [`payload_limit`](Self::payload_limit) or if [`QUEUE_LIMIT`] messages are waiting.
    pub fn push(&mut self, message: &[u8]) -> bool {
        let fits = message.len() <= self.payload_limit && self.queue.len() < QUEUE_LIMIT;
        if fits {
            self.queue.push_back(message.to_vec());
        }
        fits
    }

    /// Messages that wait to be read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Messages that wait at most; a MainDevice that never reads must not make a SubDevice grow.
pub const QUEUE_LIMIT: usize = 64;

/// An application without process data or mailbox services: a coupler or a junction.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApplication;

impl Application for NoApplication {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_refuse_what_would_not_fit_the_mailbox_or_the_queue() {
        let mut queue = VecDeque::new();
        let mut replies = Replies::new(&mut queue, 10);
        assert!(!replies.push(&[0; 11]));
        assert!(replies.is_empty());
        for _ in 0..QUEUE_LIMIT {
            assert!(replies.push(&[0; 10]));
        }
        assert!(!replies.push(&[0; 10]));
        assert_eq!(replies.len(), QUEUE_LIMIT);
    }
}
