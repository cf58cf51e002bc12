//! Wire between both ends: delays frames, and loses, holds back, duplicates and reorders them on
//! demand.

use std::collections::HashMap;
use std::time::Duration;

use ethercat::time::Instant;
use ethercat::wire::{Command, Frame};

/// Delay one way, in either direction.
const TRAVEL: Duration = Duration::from_micros(10);

/// Faults, each as a share of all frames in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lost: f64,
    pub(crate) doubled: f64,
    /// Overtaken by the frames sent within the next 40 us.
    pub(crate) overtaken: f64,
    pub(crate) delayed: f64,
    pub(crate) delay: Duration,
    /// One byte changed; the frame check sequence is not checked.
    pub(crate) corrupted: f64,
    /// Cut off at a random place.
    pub(crate) truncated: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Reply,
}

/// A frame in transit.
#[derive(Debug)]
pub(crate) struct Travelling {
    pub(crate) arrival: Instant,
    number: u64,
    pub(crate) direction: Direction,
    pub(crate) bytes: Vec<u8>,
}

/// Fate of one frame of the MainDevice on the wire.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    answered_in_time: bool,
    replies: u64,
    is_process_data: bool,
    cycle: u64,
}

/// Counts that a MainDevice must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) sent: u64,
    pub(crate) accepted: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) duplicate: u64,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) faults: Faults,
    /// Faults of replies, if they differ.
    pub(crate) reply_faults: Option<Faults>,
    random: Random,
    travelling: Vec<Travelling>,
    frames: u64,
    /// Fates by generation number, which identifies every frame.
    fates: HashMap<u32, Fate>,
}

impl Wire {
    /// A wire without faults; `seed` determines the faults configured later.
    pub(crate) fn new(seed: u64) -> Self {
        let (travelling, fates) = (Vec::new(), HashMap::new());
        let (faults, reply_faults) = (Faults::default(), None);
        Self { faults, reply_faults, random: Random(seed), travelling, frames: 0, fates }
    }

    /// Takes a frame of the MainDevice, in cycle `cycle`.
    pub(crate) fn request(&mut self, now: Instant, cycle: u64, bytes: Vec<u8>) {
        let is_process_data = is_process_data(&bytes);
        let fate = Fate { is_process_data, cycle, ..Fate::default() };
        self.fates.insert(generation(&bytes).expect("a generation number"), fate);
        self.put(now, Direction::Request, bytes);
    }

    /// Takes a reply of the segment.
    pub(crate) fn reply(&mut self, now: Instant, bytes: Vec<u8>) {
        self.put(now, Direction::Reply, bytes);
    }

    /// Registers the delivery of this reply in cycle `cycle`.
    pub(crate) fn delivered(&mut self, cycle: u64, bytes: &[u8]) {
        let Some(fate) = generation(bytes).and_then(|it| self.fates.get_mut(&it)) else { return };
        fate.replies += 1;
        // Bring-up and mailbox frames have a longer timeout than any delay here.
        if fate.replies == 1 && (!fate.is_process_data || fate.cycle == cycle) {
            fate.answered_in_time = true;
        }
    }

    /// Arrival of the next frame.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.travelling.iter().map(|it| it.arrival).min()
    }

    /// Next frame that arrives up to `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Travelling> {
        let arrived = self.travelling.iter().enumerate().filter(|(_, it)| it.arrival <= now);
        let (place, _) = arrived.min_by_key(|(_, it)| (it.arrival, it.number))?;
        Some(self.travelling.swap_remove(place))
    }

    /// Expected counts once no frame is in transit.
    pub(crate) fn expected(&self) -> Expected {
        let mut expected = Expected { sent: self.fates.len() as u64, ..Expected::default() };
        for fate in self.fates.values() {
            if fate.answered_in_time {
                expected.accepted += 1;
                expected.duplicate += fate.replies - 1;
            } else {
                expected.lost += 1;
                expected.late += fate.replies;
            }
        }
        expected
    }

    fn put(&mut self, now: Instant, direction: Direction, bytes: Vec<u8>) {
        let faults = match (direction, self.reply_faults) {
            (Direction::Reply, Some(faults)) => faults,
            _ => self.faults,
        };
        let copies = if self.random.happens(faults.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            if self.random.happens(faults.lost) {
                continue;
            }
            let mut arrival = now + TRAVEL;
            if self.random.happens(faults.delayed) {
                arrival = arrival + faults.delay;
            } else if self.random.happens(faults.overtaken) {
                arrival = arrival + Duration::from_micros(40);
            }
            let mut bytes = bytes.clone();
            if self.random.happens(faults.corrupted) {
                let place = (self.random.share() * bytes.len() as f64) as usize;
                bytes[place] ^= 1 << (self.random.share() * 8.0) as u8;
            }
            if self.random.happens(faults.truncated) {
                bytes.truncate((self.random.share() * bytes.len() as f64) as usize);
            }
            self.frames += 1;
            self.travelling.push(Travelling { arrival, number: self.frames, direction, bytes });
        }
    }
}

/// Generation number in a frame's first datagram, a NOP.
fn generation(bytes: &[u8]) -> Option<u32> {
    let frame = Frame::parse(bytes).ok()?;
    let first = frame.datagrams().next()?;
    Some(u32::from_le_bytes(first.data.try_into().ok()?))
}

fn is_process_data(bytes: &[u8]) -> bool {
    let frame = Frame::parse(bytes).expect("a whole frame");
    let cyclic = [Command::Frmw, Command::Lrw, Command::Lrd, Command::Lwr];
    frame.datagrams().any(|it| cyclic.contains(&it.header.command))
}

/// SplitMix64: the same faults on every machine.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.share() < share
    }

    /// 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}
