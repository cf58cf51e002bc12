//! Silence: no frame of the cycle comes back.
//!
//! Lost frames prove nothing about one SubDevice, and recovery waits until frames come back. But
//! after [`REPORTED_AFTER`] of silence the first SubDevice does not answer: its power or its cable
//! is off. That is reported during the outage, not at its end.

use core::time::Duration;

use crate::time::Instant;

use super::super::MainDevice;
use super::super::exchange::Purpose;
use super::super::phase::Phase;
use super::super::report::Event;

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
    pub(in super::super) fn lose_process_data(&mut self, now: Instant, sent: u16) -> u16 {
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
