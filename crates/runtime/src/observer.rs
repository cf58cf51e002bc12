//! From the real-time thread to whoever listens: bounded, never waiting, what does not fit is counted.

use bridge::ring::{Receiver, Sender, bounded};
use ethercat::main_device::Event;
use timing::CycleRecord;

use crate::status::{Status, StatusReader, StatusWriter, status_cell};

/// Records between two looks: eight seconds at 1 kHz.
const RECORDS: usize = 8192;

/// Events between two looks; bring-up of a long line has a few for each SubDevice.
const EVENTS: usize = 4096;

/// What a running cycle tells.
///
/// Look every second or more often: records and events that find no room are dropped and counted.
#[derive(Debug)]
pub struct Observer {
    records: Receiver<CycleRecord>,
    events: Receiver<Event>,
    status: StatusReader,
}

impl Observer {
    /// The next cycle record, oldest first.
    pub fn next_record(&mut self) -> Option<CycleRecord> {
        self.records.next()
    }

    /// The next event, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.next()
    }

    /// How the cycle stands now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.read()
    }

    /// A handle for the status alone, for as many threads as like.
    #[must_use]
    pub fn status_reader(&self) -> StatusReader {
        self.status.clone()
    }

    /// Records that were dropped because nobody took them.
    #[must_use]
    pub fn dropped_records(&self) -> u64 {
        self.records.dropped()
    }

    /// Events that were dropped because nobody took them.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.events.dropped()
    }

    /// Whether the cycle is over: nothing will come after what is still here.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.records.is_over()
    }
}

/// The real-time side's end.
#[derive(Debug)]
pub(crate) struct Publisher {
    records: Sender<CycleRecord>,
    events: Sender<Event>,
    status: StatusWriter,
}

impl Publisher {
    pub(crate) fn record(&mut self, record: CycleRecord) {
        self.records.send(record);
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.send(event);
    }

    pub(crate) fn status(&mut self, status: &Status) {
        self.status.publish(status);
    }
}

/// Both ends, for a robot with this many axes.
pub(crate) fn publication(axes: usize) -> (Publisher, Observer) {
    let (record_sender, records) = bounded(RECORDS);
    let (event_sender, events) = bounded(EVENTS);
    let (status_writer, status) = status_cell(axes);
    let publisher = Publisher { records: record_sender, events: event_sender, status: status_writer };
    (publisher, Observer { records, events, status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_drops_the_newest_and_counts() {
        let (mut publisher, mut observer) = publication(0);
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
