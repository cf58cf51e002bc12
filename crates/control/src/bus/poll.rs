//! Slow poll of the counters of each SubDevice, one after the other, and a view of the bus for one
//! other thread.
//!
//! A cycle has one SubDevice's error counters and links read, in its service frame. Then it pauses
//! for so many cycles that each SubDevice is read once a second, or, with many of them, reads one
//! every [`FASTEST`] cycles. Receive times are latched and read with each view.

use std::time::Duration;

use ethercat::main_device::{BringUpPhase, MainDevice};
use ipc::bus::BusStatus;
use rtrb::{Consumer, Producer, RingBuffer};

use super::picture::{Picture, Wanted, bus_status};
use super::working_counters::History;
use crate::status::StatusReader;

/// Cycles from one SubDevice to the next, at least.
const FASTEST: u64 = 8;

/// Time in which each SubDevice is read once, at the fastest.
const ROUND: Duration = Duration::from_secs(1);

/// The cycle's end.
#[derive(Debug)]
pub(super) struct Poll {
    pictures: Consumer<Box<Picture>>,
    filled: Producer<Box<Picture>>,
    pause: u64,
    /// The SubDevice to be read next, and the cycle from which on.
    next: usize,
    due: u64,
}

/// View of a running bus for the thread that watches it: states, working counters, clocks, error
/// counters as the slow poll has read them, and receive times latched since the view before.
#[derive(Debug)]
pub struct BusPoll {
    pictures: Producer<Box<Picture>>,
    filled: Consumer<Box<Picture>>,
    status: StatusReader,
}

/// Both ends for a cycle of this period.
pub(super) fn poll(sub_devices: usize, period: Duration, status: StatusReader) -> (Poll, BusPoll) {
    let ((mut pictures, asked), (filled, answered)) = (RingBuffer::new(1), RingBuffer::new(1));
    // The one picture goes to and fro.
    let _ = pictures.push(Box::new(Picture::new(sub_devices)));
    let pause = pause(sub_devices, period);
    (
        Poll { pictures: asked, filled, pause, next: 0, due: 0 },
        BusPoll { pictures, filled: answered, status },
    )
}

/// Cycles from one SubDevice to the next.
fn pause(sub_devices: usize, period: Duration) -> u64 {
    let in_a_round = ROUND.as_nanos() / period.as_nanos().max(1);
    let each = in_a_round / sub_devices.max(1) as u128;
    u64::try_from(each).unwrap_or(u64::MAX).max(FASTEST)
}

impl Poll {
    pub(super) fn look(&mut self, cycle: u64, main_device: &mut MainDevice, history: &History) {
        if let Ok(mut picture) = self.pictures.pop() {
            picture.fill(main_device, history, Wanted { errors: true, receive_times: true });
            // There is space for the one there is.
            let _ = self.filled.push(picture);
            // Latched for the next one: they are read by then.
            if main_device.phase() == BringUpPhase::Op {
                main_device.latch_receive_times();
            }
        }
        if cycle >= self.due && main_device.phase() == BringUpPhase::Op {
            self.due = cycle + self.pause;
            let count = main_device.sub_devices().len();
            main_device.read_error_counters_of(self.next);
            self.next = (self.next + 1) % count.max(1);
        }
    }
}

impl BusPoll {
    /// The bus as it was when this was asked before; `None` the first time, and where the cycle has
    /// not been at it since.
    pub fn read(&mut self) -> Option<BusStatus> {
        let picture = self.filled.pop().ok()?;
        let status = bus_status(&self.status.read(), &picture);
        let _ = self.pictures.push(picture);
        Some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_once_a_second_and_of_many_one_every_few_cycles() {
        let millisecond = Duration::from_millis(1);
        assert_eq!([1, 6, 1000].map(|count| pause(count, millisecond)), [1000, 166, FASTEST]);
        assert_eq!(pause(0, Duration::from_secs(2)), FASTEST);
    }
}
