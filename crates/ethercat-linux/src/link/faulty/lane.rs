//! One direction of a link with faults.

use std::time::Duration;

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::time::Instant;

use super::{FaultCounts, FaultRates};

/// Frames one direction can hold back at once; when all places are taken a frame passes unharmed.
const HELD: usize = 64;

/// One direction: its rates, its chance, and the frames it holds back.
#[derive(Debug)]
pub(super) struct Lane {
    rates: FaultRates,
    /// Number of next frames to lose, independent of the rates.
    lose_next: u32,
    random: fastrand::Rng,
    counts: FaultCounts,
    held: Vec<HeldFrame>,
    /// Places in use: mostly none, which saves a search.
    taken: usize,
}

/// A place for a frame that is held back.
#[derive(Debug)]
struct HeldFrame {
    release: HoldRule,
    length: usize,
    bytes: [u8; MAXIMUM_FRAME_LENGTH],
}

/// Until when a frame is held back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HoldRule {
    Free,
    /// Until this instant.
    Until(Instant),
    /// Until the next frame has passed, at the latest until this instant.
    UntilPassed(Instant),
}

impl Lane {
    pub(super) fn new(rates: FaultRates, random: fastrand::Rng) -> Self {
        let held = (0..HELD)
            .map(|_| HeldFrame { release: HoldRule::Free, length: 0, bytes: [0; MAXIMUM_FRAME_LENGTH] })
            .collect();
        Self { rates, lose_next: 0, random, counts: FaultCounts::default(), held, taken: 0 }
    }

    pub(super) fn counts(&self) -> FaultCounts {
        self.counts
    }

    pub(super) fn set_rates(&mut self, rates: FaultRates) {
        self.rates = rates;
    }

    pub(super) fn lose_next(&mut self, count: u32) {
        self.lose_next = count;
    }

    pub(super) fn set_chance(&mut self, random: fastrand::Rng) {
        self.random = random;
    }

    /// Decides a frame's fate and may change it; true if it is passed on now.
    pub(super) fn passes(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        // Every frame draws the same number of times: the fate of one does not shift the others'.
        let [lost, corrupted, duplicated, delayed, reordered] = [
            self.rates.loss,
            self.rates.corrupt,
            self.rates.duplicate,
            self.rates.delay,
            self.rates.reorder,
        ]
        .map(|probability| self.random.f64() < probability);
        let bit = self.random.u32(..) as usize;

        self.counts.frames += 1;
        // Frames reordered behind this one may follow it.
        self.release_passed(now);
        let is_next = self.lose_next > 0;
        self.lose_next -= u32::from(is_next);
        if lost || is_next {
            self.counts.lost += 1;
            return false;
        }
        if corrupted && frame.len() > ETHERNET_HEADER {
            let bits = (frame.len() - ETHERNET_HEADER) * 8;
            frame[ETHERNET_HEADER + bit % bits / 8] ^= 1 << (bit % 8);
            self.counts.corrupted += 1;
        }
        if duplicated && self.hold(HoldRule::Until(now), frame) {
            self.counts.duplicated += 1;
        }
        if delayed {
            // A full queue on the way loses new frames.
            let held = self.hold(HoldRule::Until(now + self.rates.delay_by), frame);
            let count = if held { &mut self.counts.delayed } else { &mut self.counts.lost };
            *count += 1;
            return false;
        }
        let latest = now + self.rates.delay_by.max(Duration::from_millis(2));
        if reordered && self.hold(HoldRule::UntilPassed(latest), frame) {
            self.counts.reordered += 1;
            return false;
        }
        true
    }

    fn release_passed(&mut self, now: Instant) {
        if self.taken == 0 {
            return;
        }
        for held in &mut self.held {
            if matches!(held.release, HoldRule::UntilPassed(_)) {
                held.release = HoldRule::Until(now);
            }
        }
    }

    /// Keeps a copy; false if all places are taken.
    fn hold(&mut self, release: HoldRule, frame: &[u8]) -> bool {
        let Some(held) = self.held.iter_mut().find(|held| held.release == HoldRule::Free) else {
            return false;
        };
        let Some(bytes) = held.bytes.get_mut(..frame.len()) else { return false };
        bytes.copy_from_slice(frame);
        held.length = frame.len();
        held.release = release;
        self.taken += 1;
        true
    }

    /// The place of the frame that has been due longest.
    fn due(&self, now: Instant) -> Option<usize> {
        if self.taken == 0 {
            return None;
        }
        let due = self.held.iter().enumerate().filter_map(|(slot, held)| Some((held.due()?, slot)));
        due.min().filter(|(due, _)| *due <= now).map(|(_, slot)| slot)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let held = if self.taken > 0 { &self.held[..] } else { &[] };
        held.iter().filter_map(HeldFrame::due).min()
    }

    /// The frame that has been due longest.
    pub(super) fn release_due(&mut self, now: Instant) -> Option<&[u8]> {
        let slot = self.due(now)?;
        let held = &mut self.held[slot];
        held.release = HoldRule::Free;
        self.taken -= 1;
        Some(&held.bytes[..held.length])
    }

    pub(super) fn take_due(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        let frame = self.release_due(now)?;
        let length = frame.len().min(buffer.len());
        buffer[..length].copy_from_slice(&frame[..length]);
        Some(length)
    }
}

impl HeldFrame {
    fn due(&self) -> Option<Instant> {
        match self.release {
            HoldRule::Free => None,
            HoldRule::Until(instant) | HoldRule::UntilPassed(instant) => Some(instant),
        }
    }
}

/// Destination, source, EtherType.
const ETHERNET_HEADER: usize = 14;
