//! Reports of the MainDevice: counters, cycles and events.

use core::time::Duration;

use crate::al::AlStatus;
use crate::al_status_code::AlStatusCode;
use crate::sii::Identity;
use crate::time::Instant;
use crate::wire::MacAddress;

use super::error::{BusError, SubDeviceError, SyncMiss};
use super::request::MailboxOutcome;

/// Fate of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reception {
    /// It answers a frame on its way.
    Accepted,
    /// It answers a frame that was already given up.
    Late,
    /// It answers a frame that was already answered.
    Duplicate,
    /// It is none of ours: another protocol, or no SubDevice has processed it.
    Foreign,
    /// SubDevices have processed it, and we did not send it: another MainDevice is on this wire.
    OtherMainDevice,
    /// It ends before its datagrams do.
    Truncated,
    /// Index and generation are ours, but a datagram's command, address, length or index is not, or
    /// it went round a broken ring.
    Mismatched,
}

/// Frames sent and received since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceptionCounters {
    /// Frames handed out for sending.
    pub sent: u64,
    /// Replies accepted.
    pub accepted: u64,
    /// Frames given up.
    pub lost: u64,
    /// Replies dropped: their frame was given up before.
    pub late: u64,
    /// Replies dropped: their frame was answered before.
    pub duplicate: u64,
    /// Frames dropped: of another protocol, or not processed by a SubDevice.
    pub foreign: u64,
    /// Frames dropped: processed by SubDevices, and sent by another MainDevice.
    pub other_main_device: u64,
    /// Frames dropped: too short.
    pub truncated: u64,
    /// Frames dropped because they differ from the sent ones.
    pub mismatched: u64,
}

impl ReceptionCounters {
    pub(super) fn count(&mut self, reception: Reception) {
        let counter = match reception {
            Reception::Accepted => &mut self.accepted,
            Reception::Late => &mut self.late,
            Reception::Duplicate => &mut self.duplicate,
            Reception::Foreign => &mut self.foreign,
            Reception::OtherMainDevice => &mut self.other_main_device,
            Reception::Truncated => &mut self.truncated,
            Reception::Mismatched => &mut self.mismatched,
        };
        *counter += 1;
    }

    /// Frames received and dropped, of all kinds.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let foreign = self.foreign + self.other_main_device;
        self.late + self.duplicate + foreign + self.truncated + self.mismatched
    }
}

/// Outcome of one cycle's process data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CycleReport {
    /// Process data frames sent in the cycle.
    pub frames_sent: u16,
    /// Of these, frames without a reply when the cycle ended.
    pub frames_lost: u16,
    /// Process data datagrams that came back with another working counter than expected.
    pub working_counter_errors: u16,
    /// True if every input is of this cycle, and every output was taken.
    pub all_fresh: bool,
    /// True if process data was spread over more datagrams, because of a recent short working
    /// counter.
    pub spread: bool,
}

pub use types::state::BringUpPhase;

/// An event worth a report.
#[derive(Debug)]
pub enum Event {
    /// A new phase was reached.
    BringUpPhase {
        /// The phase.
        phase: BringUpPhase,
        /// Time of that.
        at: Instant,
    },
    /// The bus cannot be brought up or kept up: it goes back to Init.
    Failed(BusError),
    /// A SubDevice left the state it was brought to.
    StateChanged {
        /// Place in the segment, from 0.
        position: u16,
        /// State it shows now.
        status: AlStatus,
        /// AL status code, if it shows an error.
        code: AlStatusCode,
    },
    /// A SubDevice no longer answers to its station address: it was unplugged, or its power went
    /// away.
    Unreachable {
        /// Place in the segment, from 0.
        position: u16,
    },
    /// A SubDevice that was without power has its station address again, or changed from Op to a
    /// state below SafeOp. It is configured again, from Init on: it may have forgotten all
    /// settings, and its position.
    Reconfiguring {
        /// Place in the segment, from 0.
        position: u16,
    },
    /// A SubDevice is not on the bus, and need not be: it joins when it comes.
    Absent {
        /// Place in the segment, from 0.
        position: u16,
    },
    /// A SubDevice that was absent is in Op for the first time.
    Joined {
        /// Place in the segment, from 0.
        position: u16,
    },
    /// It is in Op again.
    Recovered {
        /// Place in the segment, from 0.
        position: u16,
        /// It was configured again.
        anew: bool,
    },
    /// A try to bring a SubDevice back to Op failed.
    NotRecovered {
        /// Place in the segment, from 0.
        position: u16,
        /// Reason.
        error: SubDeviceError,
        /// Pause before the next try; `None` if it is left alone until it vanishes and comes again.
        again_in: Option<Duration>,
    },
    /// An unexpected SubDevice is on the bus, and stays in Init.
    Stranger {
        /// Place in the order in which SubDevices process frames, from 0.
        place: u16,
        /// Its identity.
        identity: Identity,
        /// Position of the SubDevice that is missing and has its place there, where there is one.
        expected: Option<u16>,
        /// Position of the missing SubDevice with this identity, if it is not in its place: two may
        /// have changed places.
        known: Option<u16>,
    },
    /// SYNC0 of a SubDevice did not start, and is started again.
    SyncMissed {
        /// Place in the segment, from 0.
        position: u16,
        /// Reason.
        miss: SyncMiss,
    },
    /// The clock of a SubDevice that uses it still differs from the reference clock after the
    /// settling time before the cycle begins. The bus continues, and the cycle also distributes the
    /// time.
    ClockUnsettled {
        /// Place in the segment, from 0.
        position: u16,
        /// Its difference (0x092C), in ns; positive is ahead.
        difference: i32,
    },
    /// Another MainDevice is on this wire. Reported once, when its frames keep coming.
    OtherMainDevice {
        /// Source address of its replies, with bit 1 of the first byte set by the SubDevices.
        source: MacAddress,
        /// Frames of it until now.
        frames: u64,
    },
    /// A SubDevice sent an emergency message.
    Emergency {
        /// Place in the segment, from 0.
        position: u16,
        /// Error code (CiA 301, Table 26).
        error_code: u16,
        /// Error register, object 0x1001.
        error_register: u8,
        /// Manufacturer's five bytes.
        manufacturer: [u8; 5],
    },
    /// A mailbox request is done.
    Mailbox(MailboxOutcome),
}

/// Distributed clocks as they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReport {
    /// Place of the reference clock.
    pub reference: Option<u16>,
    /// System time of the reference clock in the last cycle, in ns.
    pub reference_time: u64,
    /// Largest magnitude of the differences read last from the SubDevices.
    pub largest_difference: Duration,
}
