//! Applications behind an ESC: the program of a real SubDevice's microcontroller.
//!
//! The ESC and its state machine belong to the simulator; an [`Application`] is called before a
//! change of state, is stepped by time, and serves CoE messages. It never sees frames or registers.

pub mod analogue;
pub mod analogue_output;
pub mod brake;
pub mod coe_application;
pub mod description;
pub mod digital;
pub mod encoder;
pub mod force_torque;
pub mod generic;
pub mod oversampling;
pub mod serial;
pub mod servo;
pub mod signal;
pub mod sii;
pub mod terminal;
pub mod time_stamp;

use std::collections::VecDeque;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::pdo::{Pdo, PdoEntry};
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;

pub use analogue::AnalogueInputs;
pub use analogue_output::AnalogueOutputs;
pub use brake::ShaftBrake;
pub use coe_application::CoeApplication;
pub use description::DescriptionError;
pub use digital::{DigitalInputs, DigitalOutputs, Wires};
pub use encoder::Encoders;
pub use force_torque::ForceTorqueSensor;
pub use generic::GenericDevice;
pub use oversampling::{OversamplingInputs, OversamplingOutputs};
pub use serial::SerialLines;
pub use servo::{PlantParameters, ServoDescription, ServoDrive};
pub use signal::{Level, Signal};
pub use time_stamp::TimeStampedInputs;

/// The program behind an ESC.
///
/// Calls come in the order of simulated time, from one thread. None of them may block; [`step`] and
/// [`sync0`] run often and do not allocate.
///
/// [`step`]: Application::step
/// [`sync0`]: Application::sync0
pub trait Application: Send {
    /// Receives the bytes of each SyncManager's process data, by number; 0 for a SyncManager
    /// without. For applications that adapt to the lengths in use. Called on PreOp -> SafeOp,
    /// before the lengths are read.
    fn arrange(&mut self, sync_managers: &[usize; SYNC_MANAGERS]) {
        let _ = sync_managers;
    }

    /// Bytes of process data in the current PDO assignment. Read on PreOp -> SafeOp, before
    /// [`enter`](Application::enter): a SyncManager of another length refuses the change with AL
    /// status code 0x001D (outputs) or 0x001E (inputs).
    fn process_data_lengths(&self) -> ProcessDataLengths;

    /// Power is switched on, for the first time or again: values that are not stored return to
    /// their defaults. The state is Init.
    fn power_on(&mut self) {}

    /// A change of state is about to happen; the checks of the ESC have passed.
    ///
    /// Called for every change, including the SubDevice's own fall from Op to SafeOp (watchdog).
    /// Not called for a request of the present state.
    ///
    /// # Errors
    /// The AL status code to show; the old state is then kept. On the way down, and where the ESC
    /// has device emulation, a change cannot be refused and the result is ignored.
    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        let _ = change;
        Ok(())
    }

    /// Synchronisation that its objects ask for, of an application that supervises SYNC0. Read on
    /// PreOp -> SafeOp.
    fn synchronisation(&self) -> Option<Synchronisation> {
        None
    }

    /// Shows the synchronisation in use, from SafeOp on and with each change; `None` when it ends.
    fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        let _ = shown;
    }

    /// Advances time to `now`: called at fixed steps (see `Segment`), in every state, with or
    /// without frames.
    ///
    /// `outputs` is the newest complete set of outputs, only in Op; in all other states it is
    /// `None` and outputs must be safe. `inputs` holds the values of the previous call and is
    /// exposed to the MainDevice after the call; it is empty below SafeOp. Both are as long as the
    /// SyncManagers (several of one direction are joined in the order of their numbers), which by
    /// then agree with [`process_data_lengths`](Application::process_data_lengths).
    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]);

    /// True if further steps change neither the application, its inputs nor what it shows to
    /// others, until outputs, a message, SYNC0 or SYNC1, a change of state or a call from outside.
    /// Queried after steps, these signals and messages. Steps without effect may be left out.
    fn rests(&self) -> bool {
        false
    }

    /// True if steps may be omitted until SYNC0, for some milliseconds at most.
    /// [`sync0`](Application::sync0) makes up for them, and so does an earlier step, as if each had
    /// been made. Queried as `rests` is.
    fn waits_for_sync0(&self) -> bool {
        false
    }

    /// True for plain logic without a program, such as digital inputs and outputs. The ESC then
    /// calls it with each frame after outputs may have arrived, not only at steps.
    fn is_logic(&self) -> bool {
        false
    }

    /// SYNC0 rises. Comes between two steps, in order of time; `outputs` and `inputs` as for
    /// `step`.
    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let _ = (event, outputs, inputs);
    }

    /// Levels at the latch inputs of the ESC, of a terminal that uses them. Read after every step.
    fn latch_inputs(&self) -> Option<[bool; 2]> {
        None
    }

    /// Sets the level at a latch input of the ESC, of a terminal that uses them, until it changes.
    fn set_latch_input(&mut self, input: usize, high: bool) {
        let _ = (input, high);
    }

    /// SYNC1 rises, behind the SYNC0 it depends on; else as `sync0`.
    fn sync1(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let _ = (event, outputs, inputs);
    }

    /// Serves a CoE message. `request` is the mailbox message after the six-byte mailbox header,
    /// beginning with the CoE header. Any number of replies go to `replies`.
    ///
    /// # Errors
    /// Error that the mailbox answers instead (ETG.1000.4, 5.6, Table 29): "unsupported protocol"
    /// where it has no CoE.
    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        let _ = (request, replies);
        Err(MailboxError::UNSUPPORTED_PROTOCOL)
    }

    /// Digital inputs of this application, if it is a terminal with digital inputs.
    fn digital_inputs_mut(&mut self) -> Option<&mut DigitalInputs> {
        None
    }

    /// Servo drive of this application, for observers of its set-points.
    fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        None
    }

    /// Sends unsolicited messages: emergencies. Polled after every step while the mailbox is open.
    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        let _ = replies;
    }
}

/// SyncManagers of an ESC at most.
pub const SYNC_MANAGERS: usize = 16;

/// Bytes of process data, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessDataLengths {
    /// From the MainDevice (RxPDOs).
    pub outputs: usize,
    /// To the MainDevice (TxPDOs).
    pub inputs: usize,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Present state.
    pub from: AlState,
    /// Next state.
    pub to: AlState,
    /// Lengths of process data in the SyncManagers; zero below SafeOp.
    pub lengths: ProcessDataLengths,
    /// SYNC0 as activated by the MainDevice; `None` while inactive.
    pub sync0: Option<Sync0Configuration>,
}

/// SYNC0 configuration in the registers (ETG.1000.4, 6.12; 0x0990 and 0x09A0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync0Configuration {
    /// Time between two events in ns of system time; 0 is a single event.
    pub cycle_nanoseconds: u32,
}

/// Synchronisation that an application requires (ETG.1020, 13.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synchronisation {
    /// Types of outputs and inputs (0x1C32:01, 0x1C33:01): 0 free run, 1 by the SyncManager, which
    /// SYNC0 replaces where it is active, 2 by SYNC0, 3 by SYNC1.
    pub kinds: [u16; 2],
    /// Cycle time in ns that the MainDevice has set; 0 is any.
    pub cycle_time: u32,
    /// Shortest cycle of SYNC0, in ns.
    pub minimum_cycle: u32,
    /// Time that outputs need before SYNC0, in ns (0x1C32:06).
    pub calc_and_copy: u32,
    /// Count of missed outputs above which it leaves Op; 0 is none.
    pub error_limit: u16,
}

/// Synchronisation in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynchronisationState {
    /// Cycle of SYNC0, in ns.
    pub cycle: u32,
    /// Three for each SYNC0 without outputs, one less for each set of outputs.
    pub events_missed: u16,
    /// Sets of outputs that arrived while the previous one still waited for SYNC0.
    pub cycle_too_short: u16,
    /// Sets of outputs that came less than the time to calculate and copy before SYNC0.
    pub shift_too_short: u16,
    /// True if more were missed than the limit allows.
    pub error: bool,
}

/// One rise of SYNC0, or of SYNC1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync0Event {
    /// Instant of the simulation's own time.
    pub now: Instant,
    /// System time of the SubDevice, in ns, at which it was due.
    pub system_time: u64,
}

/// Queue of CoE messages to send.
///
/// They wait here until the MainDevice has read the earlier ones.
#[derive(Debug)]
pub struct Replies<'a> {
    queue: &'a mut VecDeque<Vec<u8>>,
    payload_limit: usize,
}

impl<'a> Replies<'a> {
    /// A queue with messages of at most `payload_limit` bytes.
    #[must_use]
    pub fn new(queue: &'a mut VecDeque<Vec<u8>>, payload_limit: usize) -> Self {
        Self { queue, payload_limit }
    }

    /// Longest message that fits, in bytes behind the mailbox header: the length of SyncManager 1
    /// less six. A request's own length shows the limit of the other direction.
    #[must_use]
    pub fn payload_limit(&self) -> usize {
        self.payload_limit
    }

    /// Appends a message that begins with the CoE header. Returns `false`, with nothing queued, if
    /// it is longer than [`payload_limit`](Self::payload_limit) or if [`QUEUE_LIMIT`] messages are
    /// waiting.
    pub fn push(&mut self, message: &[u8]) -> bool {
        let fits = message.len() <= self.payload_limit && self.queue.len() < QUEUE_LIMIT;
        if fits {
            self.queue.push_back(message.to_vec());
        }
        fits
    }

    /// Number of messages that wait to be read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Largest number of messages that wait; a MainDevice that never reads must not grow a SubDevice's
/// memory.
pub const QUEUE_LIMIT: usize = 64;

/// An application without process data or mailbox services: a coupler or a junction.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApplication;

impl Application for NoApplication {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}

    fn rests(&self) -> bool {
        true
    }
}

/// A PDO with entries that the terminal fixes.
fn fixed_pdo(index: u16, sync_manager: u8, name: &str, entries: Vec<PdoEntry>) -> Pdo {
    Pdo { index, sync_manager: Some(sync_manager), fixed: true, name: name.to_owned(), entries }
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
