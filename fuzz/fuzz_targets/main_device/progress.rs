//! Progress of the bring-up, judged by the frames alone: the MainDevice asks for something that it has not asked for in
//! this phase. Whatever it only repeats, it waits for.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use core::time::Duration;
use ethercat::main_device::BringUpPhase;
use ethercat::register::dc;
use ethercat::time::Instant;
use ethercat::wire::{Command, Frame};

#[derive(Debug)]
pub(crate) struct Progress {
    phase: BringUpPhase,
    /// When, by [`Self::awake`].
    since: Duration,
    /// Requests of this phase.
    asked: Requests,
    /// Frames since then that asked for nothing new.
    repeated: u32,
    /// Time that the host stood still: nothing can be given up meanwhile.
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
            (self.phase, self.asked) = (phase, Requests::default());
            self.made(now);
        }
    }

    /// The MainDevice sends this.
    pub(crate) fn sent(&mut self, frame: &Frame<'_>, now: Instant) {
        self.repeated += 1;
        for datagram in frame.datagrams() {
            let header = datagram.header;
            if header.command == Command::Nop || header.command.is_logical() {
                continue;
            }
            // When SYNC0 is to start is another time with each attempt.
            let tells = header.command.writes() && header.ado() != dc::START_TIME;
            let written = if tells { datagram.data } else { &[] };
            let mut request = Fnv::default();
            request.write(&[header.command.number()]);
            request.write(&header.address.to_le_bytes());
            request.write(&header.length.to_le_bytes());
            request.write(written);
            if self.asked.insert(request.finish()) {
                self.made(now);
            }
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

/// Frames that ask for nothing new, after which time passes faster: what takes long is to take few of them.
const MANY_FRAMES: u32 = 40;

/// Requests by their number ([`Fnv`]).
type Requests = HashSet<u64, BuildHasherDefault<Fnv>>;

/// FNV-1a: shorter than the standard library's for these few bytes, and the same in each run.
#[derive(Clone, Copy, Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
