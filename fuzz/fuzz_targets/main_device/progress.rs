//! Progress of the bring-up, by the frames alone: the MainDevice makes a request that is new in
//! this phase. A repeated request is a wait.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use core::time::Duration;
use ethercat::main_device::BringUpPhase;
use ethercat::register::dc;
use ethercat::time::Instant;
use ethercat::wire::{Command, DatagramHeader};

#[derive(Debug)]
pub(crate) struct Progress {
    phase: BringUpPhase,
    /// When, by [`Self::awake`].
    since: Duration,
    /// Requests of this phase.
    asked: Requests,
    /// Frames since then without a new request.
    repeated: u32,
    /// Total time of host stalls: nothing can be given up meanwhile.
    stalls: Duration,
}

impl Progress {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            phase: BringUpPhase::Scan,
            since: now.since(Instant::EPOCH),
            asked: Requests::default(),
            repeated: 0,
            stalls: Duration::ZERO,
        }
    }

    /// The MainDevice is there.
    pub(crate) fn at(&mut self, phase: BringUpPhase, now: Instant) {
        if phase != self.phase {
            self.phase = phase;
            self.asked.clear();
            self.made(now);
        }
    }

    /// The MainDevice sends a frame.
    pub(crate) fn sent(&mut self) {
        self.repeated += 1;
    }

    /// This is in it.
    pub(crate) fn requested(&mut self, header: &DatagramHeader, data: &[u8], now: Instant) {
        if header.command == Command::Nop || header.command.is_logical() {
            return;
        }
        // When SYNC0 is to start is another time with each attempt.
        let tells = header.command.writes() && header.ado() != dc::START_TIME;
        let written = if tells { data } else { &[] };
        let target = u64::from(header.address) << 24 | u64::from(header.length) << 8;
        let mut request = mixed(0, target | u64::from(header.command.number()));
        for bytes in written.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            request = mixed(request, u64::from_le_bytes(word));
        }
        if self.asked.insert(request) {
            self.made(now);
        }
    }

    pub(crate) fn stalled(&mut self, time: Duration) {
        self.stalls += time;
    }

    /// Time in which the host did not stand still.
    pub(crate) fn awake(&self, now: Instant) -> Duration {
        now.since(Instant::EPOCH).saturating_sub(self.stalls)
    }

    /// Time without any, in which the host did not stand still.
    pub(crate) fn missing_for(&self, now: Instant) -> Duration {
        self.awake(now).saturating_sub(self.since)
    }

    /// True if it has waited for long already.
    pub(crate) fn is_awaited(&self) -> bool {
        self.repeated > MANY_FRAMES
    }

    fn made(&mut self, now: Instant) {
        (self.since, self.repeated) = (self.awake(now), 0);
    }
}

/// Frames without a new request, after which time passes faster, so that long waits take few of
/// them.
const MANY_FRAMES: u32 = 40;

/// Requests by their number, which is mixed well enough to be its own hash.
type Requests = HashSet<u64, BuildHasherDefault<Unchanged>>;

/// Number of what was before, and then `word`: the same in each run, and a word at a time.
fn mixed(before: u64, word: u64) -> u64 {
    let product = u128::from((before ^ word).wrapping_add(ODD)) * u128::from(ODD);
    (product as u64) ^ (product >> 64) as u64
}

/// Two to the 64th, divided by the golden ratio.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hash of a number: the number.
#[derive(Clone, Copy, Debug, Default)]
struct Unchanged(u64);

impl Hasher for Unchanged {
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
