//! From the real-time thread to other threads: bounded, never waiting; items that do not fit are
//! counted.

use std::sync::Arc;
use std::time::Duration;

use ethercat::main_device::{CableEnd, Event};
use ethercat::time::Instant;
use ipc::force::Client;
use ipc::ring::{Receiver, Sender, bounded};
use motion::Radians;
use motion::supervision::{QuickStopStep, StopReason};
use record::CycleRecord;
use types::state::InputLevel;
use types::{LockState, Value};

use crate::controller::{AxisReport, BrakeInputCause, ClientRequest, IgnoredSetpoint, InterlockCause};

use crate::signal::ReleaseReason;
use crate::status::{Status, StatusReader, StatusWriter, status_cell};

/// Records between two polls: eight seconds at 1 kHz.
const RECORDS: usize = 8192;

/// Events between two polls; bring-up of a long line has a few for each SubDevice.
const EVENTS: usize = 4096;

/// An event of a cycle, and its time.
#[derive(Debug)]
pub struct CycleEvent {
    /// Number of the cycle.
    pub cycle: u64,
    /// CLOCK_MONOTONIC, as the cycle's clock showed it.
    pub at: Instant,
    /// Both ends of the cable by which frames reach the SubDevice concerned, if known and relevant
    /// ([`ethercat::main_device::SubDevice::cable`]).
    pub cable: Option<[CableEnd; 2]>,
    /// Event.
    pub what: Happening,
}

/// Cause of a stop, where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cause {
    /// Interlock that stopped the axis, or keeps it from being enabled.
    pub interlock: Option<InterlockCause>,
    /// Input that shows the fault of its brake.
    pub brake: Option<BrakeInputCause>,
    /// Cycles for which the host stalled; 0 for another cause of an outage.
    pub stalled: u32,
    /// The last command ended at standstill, as at the end of a jog: no failure.
    pub ended: bool,
    /// Positions at the end of the last run and at the start of this one, if they differ.
    pub moved: Option<[Radians; 2]>,
}

impl Cause {
    /// Cause of the stop of an axis.
    #[must_use]
    pub fn of(report: &AxisReport) -> Self {
        let AxisReport { interlock, brake, stalled, ended, moved, .. } = *report;
        Self { interlock, brake, stalled, ended, moved }
    }
}

/// Event in a cycle.
#[derive(Debug)]
pub enum Happening {
    /// Event of the bus, from the MainDevice.
    Bus(Event),
    /// The process data of a SubDevice in Op does not come and go any more.
    SubDeviceLost {
        /// Place in the segment, from 0.
        position: usize,
    },
    /// It does again.
    SubDeviceBack {
        /// Place in the segment, from 0.
        position: usize,
        /// Cycles it was lost for.
        after: u64,
    },
    /// The lock of the cycle to the reference clock has changed.
    ClockLock {
        /// State of the lock now.
        state: LockState,
        /// Distance of the release from its place; positive is late.
        phase_error_ns: i64,
    },
    /// The operating system takes or gives no frames any more.
    LinkFailed {
        /// Its error number (errno), of the first frame.
        code: i32,
    },
    /// It does again.
    LinkWorks {
        /// Cycles it did not for.
        after: u64,
    },
    /// The ring of SubDevices is open; all SubDevices reached from either end continue.
    RingOpen {
        /// Both ends of the cable; [`ethercat::main_device::ring_break`].
        between: [CableEnd; 2],
    },
    /// It is closed again.
    RingClosed {
        /// Cycles it was open for.
        after: u64,
    },
    /// Supervision has stopped an axis, or holds it back, for this reason.
    AxisStopped {
        /// Place among the axes, from 0.
        axis: usize,
        /// Reason.
        reason: StopReason,
        /// Place of the axis that it was stopped with ([`StopReason::OtherAxis`]).
        with: Option<usize>,
        /// Cause of that reason, where it is known.
        because: Cause,
    },
    /// The drive of an axis did not carry out a quick stop, and the axis was stopped by this step.
    QuickStopIgnored {
        /// Place among the axes, from 0.
        axis: usize,
        /// Step that worked.
        step: QuickStopStep,
    },
    /// An axis in a torque mode stopped beyond a position limit.
    Overshoot {
        /// Place among the axes, from 0.
        axis: usize,
        /// Way beyond the limit.
        by: Radians,
    },
    /// The axis is its controller's again.
    AxisFreed {
        /// Place among the axes, from 0.
        axis: usize,
    },
    /// The controller of an axis gives it a set-point that its mode does not take, and no other.
    SetpointIgnored {
        /// Place among the axes, from 0.
        axis: usize,
        /// The mode, and the given set-point.
        what: IgnoredSetpoint,
    },
    /// A drive in fault has reported the error code of an axis, object 0x603F.
    DriveFault {
        /// Place among the axes, from 0.
        axis: usize,
        /// Place in the segment, from 0.
        position: usize,
        /// The code.
        code: u16,
    },
    /// The input of an interlock allows, or does not any more.
    Interlock {
        /// Place among the interlocks, from 0.
        interlock: usize,
        /// True if it allows.
        allows: bool,
        /// Level of its input.
        level: InputLevel,
    },
    /// A person gave the position of an axis.
    PositionGiven {
        /// The position, and the request.
        given: ipc::reference::Given,
        /// The position before, rad, or the reason that it was refused.
        outcome: ipc::reference::Outcome,
        /// The client that requested it.
        by: Client,
    },
    /// A request of a client was accepted or refused: enable, reset, or home.
    Requested {
        /// The request, the client, and the decision.
        request: ClientRequest,
    },
    /// A signal is forced: held at a value.
    SignalForced {
        /// Its name.
        signal: Arc<str>,
        /// The value, in its unit.
        value: Value,
        /// Time it lasts unless it is released.
        time: Duration,
        /// The client that requested it.
        by: Client,
    },
    /// A signal is forced no more.
    SignalReleased {
        /// Its name.
        signal: Arc<str>,
        /// Its value afterwards, in its unit.
        value: Value,
        /// Reason for the end.
        reason: ReleaseReason,
        /// Cycles it was forced for.
        after: u64,
    },
    /// The host stalled: number of skipped cycles.
    Stalled {
        /// Count.
        cycles: u64,
    },
}

/// Receiving end of a running cycle's records, events and status.
///
/// Poll every second or more often: records and events that do not fit are dropped and counted.
#[derive(Debug)]
pub struct Observer {
    records: Receiver<CycleRecord>,
    events: Receiver<CycleEvent>,
    status: StatusReader,
}

impl Observer {
    /// The next cycle record, oldest first.
    pub fn next_record(&mut self) -> Option<CycleRecord> {
        self.records.next()
    }

    /// The next event, oldest first.
    pub fn next_event(&mut self) -> Option<CycleEvent> {
        self.events.next()
    }

    /// Status of the cycle now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.read()
    }

    /// A handle for the status alone, for as many threads as like.
    #[must_use]
    pub fn status_reader(&self) -> StatusReader {
        self.status.clone()
    }

    /// Records that were dropped because they were not taken in time.
    #[must_use]
    pub fn dropped_records(&self) -> u64 {
        self.records.dropped()
    }

    /// Events that were dropped because they were not taken in time.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.events.dropped()
    }

    /// True if the cycle has ended: nothing follows the items still in the ring.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.records.is_over()
    }
}

/// The real-time side's end.
#[derive(Debug)]
pub(crate) struct Publisher {
    records: Sender<CycleRecord>,
    events: Sender<CycleEvent>,
    status: StatusWriter,
}

impl Publisher {
    pub(crate) fn record(&mut self, record: CycleRecord) {
        self.records.send(record);
    }

    /// True while half of both rings is free.
    pub(crate) fn has_room(&self) -> bool {
        self.records.room() >= RECORDS / 2 && self.events.room() >= EVENTS / 2
    }

    pub(crate) fn event(&mut self, event: CycleEvent) {
        self.events.send(event);
    }

    pub(crate) fn status(&mut self, status: &Status, axes: &[u64]) {
        self.status.publish(status, axes);
    }
}

/// Both ends, for a robot with this many SubDevices and axes.
pub(crate) fn publication(sub_devices: usize, axes: usize) -> (Publisher, Observer) {
    let (record_sender, records) = bounded(RECORDS);
    let (event_sender, events) = bounded(EVENTS);
    let (status_writer, status) = status_cell(sub_devices, axes);
    let publisher = Publisher { records: record_sender, events: event_sender, status: status_writer };
    (publisher, Observer { records, events, status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_drops_the_newest_and_counts() {
        let (mut publisher, mut observer) = publication(0, 0);
        for cycle in 0..RECORDS as u64 + 10 {
            publisher.record(CycleRecord::begin(cycle, 0, 0));
        }
        assert_eq!(observer.dropped_records(), 10);
        let cycles: Vec<_> =
            std::iter::from_fn(|| observer.next_record()).map(|record| record.cycle).collect();
        assert_eq!(cycles, (0..RECORDS as u64).collect::<Vec<_>>());
        assert!(!observer.is_over());
        drop(publisher);
        assert!(observer.is_over());
    }
}
