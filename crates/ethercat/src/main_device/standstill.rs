//! Time in which the MainDevice was not called, as during a host stall or on a busy machine: it
//! counts towards no limit.
//!
//! Silence is the other gap: no frame of the cycle comes back. Lost frames prove nothing about one
//! SubDevice, and recovery waits until frames come back. But after [`REPORTED_AFTER`] the first
//! SubDevice does not answer: its power or its cable is off. That is reported during the outage,
//! not at its end.

use core::time::Duration;

use crate::time::Instant;

use super::MainDevice;
use super::exchange::Purpose;
use super::phase::Phase;
use super::report::Event;

/// Shorter gaps are as good as none.
const NOTICED: Duration = Duration::from_millis(2);

/// Time for which a cycle may wait for its replies.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

impl MainDevice {
    /// Notes a call at `now`. If a call was due earlier, all time-outs are put off by the
    /// difference.
    pub(super) fn note_served(&mut self, now: Instant) {
        let before = core::mem::replace(&mut self.served_at, now);
        // One comparison also finds a clock that was read before.
        if now.as_nanos().wrapping_sub(before.as_nanos()) > NOTICED.as_nanos() as u64 {
            self.note_gap(before, now);
        }
    }

    #[cold]
    fn note_gap(&mut self, before: Instant, now: Instant) {
        if now < before || before == Instant::EPOCH {
            return;
        }
        let due = if self.cycle.running {
            // From cycle to cycle, and for late replies before Op is requested.
            Some(before + (self.configuration.period * 2).max(LONGEST_WAIT))
        } else {
            self.poll_timeout()
        };
        let stood_still = due.map_or(Duration::ZERO, |due| now.since(due.max(before)));
        if stood_still > NOTICED && !self.check_quiet() {
            self.put_off(stood_still);
        }
    }

    fn put_off(&mut self, by: Duration) {
        self.phase_since = self.phase_since + by;
        self.broadcasts.put_off(by);
        self.together.put_off(by);
        self.workers.iter_mut().for_each(|worker| worker.put_off(by));
    }
}

/// Time of silence, in cycles that were made: a host stall is not silence of the bus.
const REPORTED_AFTER: Duration = Duration::from_millis(500);

/// Fewest cycles of silence.
const FEWEST: u32 = 3;

/// Time after the silence in which the SubDevice that was reported is found without its station
/// address.
const FOUND_WITHIN: Duration = Duration::from_secs(2);

/// Cycles without a frame that came back.
#[derive(Debug, Default)]
pub(super) struct Silence {
    cycles: u32,
    /// SubDevice that was reported, and the last silent cycle.
    reported: Option<(u16, Instant)>,
}

impl Silence {
    /// True if this SubDevice was reported in the silence that has just ended, and not since.
    pub(super) fn has_reported(&mut self, now: Instant, position: u16) -> bool {
        let is_same = |&mut (it, last): &mut (u16, Instant)| {
            it == position && (self.cycles > 0 || now.since(last) < FOUND_WITHIN)
        };
        self.reported.take_if(is_same).is_some()
    }
}

impl MainDevice {
    /// Gives up the frames that are still out, of so many that were sent; returns how many.
    pub(super) fn lose_process_data(&mut self, now: Instant, sent: u16) -> u16 {
        let expire = || self.exchange.expire(Purpose::ProcessData, now, Duration::ZERO);
        let lost = core::iter::from_fn(expire).count() as u16;
        self.watch_silence(now, sent > 0 && lost == sent && self.phase == Phase::Running);
        lost
    }

    fn watch_silence(&mut self, now: Instant, is_silent: bool) {
        let silence = &mut self.recovery.silence;
        silence.cycles = if is_silent { silence.cycles.saturating_add(1) } else { 0 };
        match (silence.cycles, &mut silence.reported) {
            (0, _) => return,
            (1, reported) => *reported = None,
            (_, Some((_, last))) => *last = now,
            (_, None) => {}
        }
        let lasts = self.configuration.period * silence.cycles;
        if silence.reported.is_some() || silence.cycles < FEWEST || lasts < REPORTED_AFTER {
            return;
        }
        let first = (0..self.sub_devices.len() as u16).find(|&it| !self.is_gone(it));
        if let Some(position) = first {
            self.recovery.silence.reported = Some((position, now));
            self.tell(Event::Unreachable { position });
        }
    }
}
