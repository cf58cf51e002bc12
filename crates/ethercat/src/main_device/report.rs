//! Reports of the MainDevice: counters, cycles and events.

use core::time::Duration;

use crate::al::AlStatus;
use crate::al_status_code::AlStatusCode;
use crate::time::Instant;
use crate::wire::MacAddress;

use super::error::BusError;
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
    /// Index and generation are ours, but a datagram's command, address, length or index is not, or it
    /// went round a broken ring.
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
    /// Frames dropped: not what was sent.
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
    /// True if process data was spread over more datagrams, because a working counter was short a while ago.
    pub spread: bool,
}

/// Working counter of one process data datagram in the last cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkingCounter {
    /// Value when every SubDevice takes part.
    pub expected: u16,
    /// Value that came back, or `None` if nothing did.
    pub received: Option<u16>,
}

impl WorkingCounter {
    /// True if every SubDevice took part.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.received == Some(self.expected)
    }
}

/// Phase of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BringUpPhase {
    /// Opening ports, counting, addressing, reading SIIs, measuring the cable.
    Scan,
    /// Setting clocks.
    Clocks,
    /// To PreOp, and the SDOs there.
    Configuration,
    /// All in PreOp and configured. With a target above PreOp: waiting for the first cycles.
    PreOp,
    /// Process data flows; on the way to SafeOp.
    ToSafeOp,
    /// All in SafeOp; waiting for whole working counters before Op is asked for.
    SafeOp,
    /// On the way to Op.
    ToOp,
    /// All in Op.
    Op,
    /// On the way back to Init.
    ToInit,
    /// All asked back to Init, at the end or after a failure.
    Down,
}

/// Something worth telling.
#[derive(Debug)]
pub enum Event {
    /// A new stage was reached.
    BringUpPhase {
        /// Which.
        stage: BringUpPhase,
        /// When.
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
        /// Why, if it shows an error.
        code: AlStatusCode,
    },
    /// A SubDevice no longer answers to its station address: it was unplugged, or its power went away.
    Unreachable {
        /// Place in the segment, from 0.
        position: u16,
    },
    /// Another MainDevice is on this wire. Told once, when its frames keep coming.
    OtherMainDevice {
        /// Source address of its replies: its own, with bit 1 of the first byte set by the SubDevices.
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
