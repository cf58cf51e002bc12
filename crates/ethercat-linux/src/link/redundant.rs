//! Two interfaces at the two ends of a ring of SubDevices, as one link: [`ethercat::redundancy`]
//! describes the frames of a ring.

mod check;
mod slot;

use std::fmt;
use std::io;
use std::time::Duration;

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH};
use ethercat::redundancy::{self, Ring};
use ethercat::time::Instant;

use super::Link;
use rt::clock::{Clock, MonotonicClock};
use slot::{Arrived, Slot};

pub use check::RingError;

/// A link over a ring: each frame goes out at both ends, and its two replies are handed out as one.
///
/// The link works with the ring open at any place: a break loses at most the cycle of the frames
/// under way. Each frame costs one more transmit; a receive waits at the end where the reply is
/// expected, and takes waiting frames at the other, which costs no system call with a packet
/// socket. Nothing is allocated after construction: 64 frames can be under way.
///
/// A reply of one end alone is returned when the other cannot come any more: at once, if that
/// interface refused its copy or has been silent for three consecutive frames, else when the frame
/// is [`with_wait`](Self::with_wait) old. A break thus never takes more than that time from a
/// cycle.
pub struct Redundant<A, B, C = MonotonicClock> {
    first: A,
    second: B,
    clock: C,
    slots: Box<[Slot]>,
    /// Replies that wait for their other half.
    held: usize,
    /// Age of a frame at which its second half is not waited for any more.
    wait: Duration,
    ring: Option<Ring>,
    /// Replies in a row that lack the half of an end.
    silent: [u32; 2],
    /// All frames enter at the first end alone, and come back from the second: this reaches
    /// SubDevices with swapped ports. For bring-up, which reports them.
    is_line: bool,
    /// The reference clock's time, and when the frame that read it was sent.
    time: Option<(u64, Instant)>,
}

impl<A: Link, B: Link> Redundant<A, B> {
    /// A link over the ring from `first`, at which SubDevices are entered by their port 0, to
    /// `second`.
    #[must_use]
    pub fn new(first: A, second: B) -> Self {
        Self::with_clock(first, second, MonotonicClock)
    }
}

impl<A: Link, B: Link, C: Clock> Redundant<A, B, C> {
    /// The same by another clock.
    #[must_use]
    pub fn with_clock(first: A, second: B, clock: C) -> Self {
        let slots = vec![Slot::default(); SLOTS].into_boxed_slice();
        let (wait, silent) = (WAIT, [0; 2]);
        Self { first, second, clock, slots, held: 0, wait, ring: None, silent, is_line: false, time: None }
    }

    /// Sets another age at which the second half of a reply is given up: half the period of a
    /// cycle, as both halves must arrive by then.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Both links.
    pub fn links(&mut self) -> (&mut A, &mut B) {
        (&mut self.first, &mut self.second)
    }

    /// SubDevices that the first copy passes, if the ring is known to be open.
    fn before(&self) -> Option<u16> {
        match self.ring? {
            Ring::Closed | Ring::Turned => None,
            Ring::Open { before } => Some(before),
        }
    }

    /// The reference clock's time at `now`.
    fn reference_time(&self, now: Instant) -> Option<u64> {
        let (time, at) = self.time?;
        Some(time.wrapping_add(ethercat::time::nanoseconds(now.since(at))))
    }

    fn fetch(&mut self, end: End, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        match end {
            End::First => self.first.receive(buffer, timeout),
            End::Second => self.second.receive(buffer, timeout),
        }
    }

    /// True if no frame is expected from this end.
    fn is_silent(&self, end: End) -> bool {
        self.silent[end as usize] >= SILENT
    }

    /// Takes waiting frames at both ends, until they make a reply.
    fn take_ready(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut failed = None;
        for end in End::ALL {
            for _ in 0..AT_ONCE {
                match self.fetch(end, buffer, Duration::ZERO) {
                    Ok(None) => break,
                    Ok(Some(length)) => {
                        if let Some(length) = self.take(end, buffer, length) {
                            return Ok(Some(length));
                        }
                    }
                    // One that is down has nothing to say; both are the link's failure.
                    Err(error) if failed.is_some() => return Err(error),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Takes a frame that came in at `end`; the length of a reply that is in `buffer` now.
    fn take(&mut self, end: End, buffer: &mut [u8], length: usize) -> Option<usize> {
        let frame = buffer.get(..length)?;
        // Foreign and old frames: the MainDevice counts them.
        let Some((index, _)) = redundancy::identity(frame) else { return Some(length) };
        let number = usize::from(index) % SLOTS;
        let was_held = self.slots[number].is_held();
        let arrived = self.slots[number].arrived(end, frame);
        if let Some(before) = self.slots[number].take_passed() {
            self.ring = Some(Ring::Open { before });
        }
        match arrived {
            Arrived::Other => {
                self.silent[end as usize] = 0;
                return Some(length);
            }
            Arrived::Nothing { speaks } => {
                self.silent[end as usize] *= u32::from(!speaks);
                return None;
            }
            Arrived::ToTurn => {
                // Lost if it is refused: a latching frame is sent again.
                let _ = self.second.transmit(frame);
                return None;
            }
            Arrived::Half => {
                self.held += 1;
                self.silent[end as usize] = 0;
                if !self.slots[number].is_all(end) && !self.is_silent(end.other()) {
                    return None;
                }
                return self.hand_out_half(number, buffer);
            }
            Arrived::Whole => {
                self.silent = [0; 2];
                self.ring = Some(Ring::Closed);
            }
            Arrived::Both => {
                self.silent = [0; 2];
                self.copy_reply(number, buffer)?;
            }
            Arrived::Alone => {}
        }
        self.held -= usize::from(was_held);
        self.finish(number, &buffer[..length]);
        Some(length)
    }

    fn finish(&mut self, number: usize, reply: &[u8]) {
        let slot = &mut self.slots[number];
        if let Some(time) = slot.finish(reply) {
            self.time = Some((time, slot.sent_at));
        }
    }

    /// The reply as far as it is there, in `buffer`.
    fn copy_reply(&self, number: usize, buffer: &mut [u8]) -> Option<usize> {
        let reply = self.slots[number].reply();
        buffer.get_mut(..reply.len())?.copy_from_slice(reply);
        Some(reply.len())
    }

    /// Hands out a half without the other.
    fn hand_out_half(&mut self, number: usize, buffer: &mut [u8]) -> Option<usize> {
        let missing = self.slots[number].missing();
        let silent = &mut self.silent[missing as usize];
        *silent = silent.saturating_add(1);
        // If the first interface reaches no SubDevice, all are behind the break.
        if missing == End::First && self.is_silent(missing) {
            self.ring = Some(Ring::Open { before: 0 });
        }
        self.held -= 1;
        let length = self.copy_reply(number, buffer);
        self.finish(number, &buffer[..length.unwrap_or(0)]);
        length
    }

    /// A reply with its other half overdue at `now`.
    fn take_overdue(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if self.held == 0 {
            return None;
        }
        let is_overdue = |slot: &Slot| slot.is_held() && now.since(slot.sent_at) >= self.wait;
        let number = self.slots.iter().position(is_overdue)?;
        self.hand_out_half(number, buffer)
    }

    /// The end at which the next frame is expected, and the time at which a half is overdue.
    fn expected(&self) -> (End, Option<Instant>) {
        let mut held = self.slots.iter().filter(|slot| self.held > 0 && slot.is_held());
        if let Some(slot) = held.next() {
            let oldest = held.fold(slot.sent_at, |oldest, slot| oldest.min(slot.sent_at));
            return (slot.missing(), Some(oldest + self.wait));
        }
        let end = match self.ring {
            Some(Ring::Open { .. }) if !self.is_silent(End::First) => End::First,
            _ => End::Second,
        };
        (end, None)
    }
}

impl<A: Link, B: Link, C: Clock> Link for Redundant<A, B, C> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > MAXIMUM_FRAME_LENGTH {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let Some(identity) = redundancy::identity(frame) else { return self.first.transmit(frame) };
        let now = self.clock.now();
        let (before, time) = (self.before(), self.reference_time(now));
        let slot = &mut self.slots[usize::from(identity.0) % SLOTS];
        self.held -= usize::from(slot.is_held());
        slot.begin(identity, frame, before, time);
        slot.turns |= self.is_line;
        slot.sent_at = now;
        let first = self.first.transmit(frame);
        let Some(copy) = slot.second() else { return first };
        let second = self.second.transmit(copy);
        slot.note_sent([first.is_ok(), second.is_ok()]);
        first.or(second)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        let mut failed = [false; 2];
        let mut turn = false;
        loop {
            if let Some(length) = self.take_ready(buffer)? {
                return Ok(Some(length));
            }
            let now = self.clock.now();
            if let Some(length) = self.take_overdue(now, buffer) {
                return Ok(Some(length));
            }
            if now >= end {
                return Ok(None);
            }
            let (expected, overdue) = self.expected();
            let at = if turn { expected.other() } else { expected };
            let at = if failed[at as usize] { at.other() } else { at };
            let left = overdue.map_or(end, |overdue| overdue.min(end)).since(now);
            match self.fetch(at, buffer, share(left)) {
                Ok(Some(length)) => {
                    if let Some(length) = self.take(at, buffer, length) {
                        return Ok(Some(length));
                    }
                }
                Ok(None) => turn = !turn,
                // An interface that is down has nothing more to say than that.
                Err(error) if failed[at.other() as usize] => return Err(error),
                Err(_) => failed[at as usize] = true,
            }
        }
    }

    fn ring(&self) -> Option<Ring> {
        self.ring
    }

    fn take_simulation_time(&mut self) -> Duration {
        self.first.take_simulation_time() + self.second.take_simulation_time()
    }
}

impl<A, B, C> fmt::Debug for Redundant<A, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redundant").field("ring", &self.ring).finish_non_exhaustive()
    }
}

/// Share of the remaining time for which one end is waited for before the other is checked.
fn share(left: Duration) -> Duration {
    (left / 2).clamp(SHORTEST_SLEEP, LONGEST_SLEEP).min(left.max(Duration::from_nanos(1)))
}

/// Frames under way: as many as a MainDevice has.
const SLOTS: usize = 64;

/// Frames taken from one end at a time, so that a flood takes a bounded time.
const AT_ONCE: usize = 256;

/// Age at which the second half of a reply is given up, unless it is set.
const WAIT: Duration = Duration::from_micros(500);

/// Replies in a row without an end's half after which it is not waited for.
const SILENT: u32 = 3;

/// Shortest and longest wait at one end before the other is checked.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
