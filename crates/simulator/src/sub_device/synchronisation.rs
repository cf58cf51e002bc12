//! Supervision of SYNC0 and of its process data (ETG.1020, 13; ETG.1000.6, Table 11), as slave
//! stacks do it.
//!
//! Each SYNC0 without outputs since the previous one adds three to a counter, each new set of
//! outputs takes one off; a single late or lost frame counts nothing. Above the limit (0x10F1:02)
//! the SubDevice leaves Op with 0x1A. If SYNC0 is missing for two cycles, and at least a
//! millisecond, Op ends with 0x2C.

use core::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::register::dc;
use ethercat::time::Instant;

use crate::application::{Synchronisation, SynchronisationState};
use crate::esc::Esc;

use super::SubDevice;

/// Activation bits (0x0981).
const CYCLIC_OPERATION: u8 = 1 << 0;
const SYNC0: u8 = 1 << 1;
const SYNC1: u8 = 1 << 2;

/// Synchronisation types (ETG.1020, 13.3).
const FREE_RUN: u16 = 0;
const WITH_SYNC0: u16 = 2;
const WITH_SYNC1: u16 = 3;

/// Added for each SYNC0 without outputs.
const MISSED: u16 = 3;

/// Shortest time without SYNC0 that ends Op.
const SHORTEST_LOSS: Duration = Duration::from_millis(1);

/// Supervision from SafeOp on.
#[derive(Clone, Debug)]
pub(super) struct Supervision {
    limit: u16,
    /// Time that outputs need before SYNC0.
    calc_and_copy: Duration,
    watches_outputs: bool,
    last_sync0: Option<Instant>,
    /// SYNC0s since the last outputs.
    without_outputs: u8,
    state: SynchronisationState,
}

/// Supervision as `esc` is configured, or `None` if the application follows no SYNC0.
///
/// # Errors
/// The AL status code with which a change to SafeOp is refused.
pub(super) fn supervision(
    esc: &Esc,
    expected: Option<Synchronisation>,
    watches_outputs: bool,
) -> Result<Option<Supervision>, AlStatusCode> {
    let Some(expected) = expected else { return Ok(None) };
    let activation =
        if esc.features().distributed_clocks() { esc.memory().byte(dc::ACTIVATION) } else { 0 };
    let is = |bit| activation & (CYCLIC_OPERATION | bit) == CYCLIC_OPERATION | bit;
    let missing = expected.kinds.iter().any(|&kind| match kind {
        WITH_SYNC0 => !is(SYNC0),
        WITH_SYNC1 => !is(SYNC1),
        _ => false,
    });
    if missing || activation & CYCLIC_OPERATION != 0 && !is(SYNC0) {
        return Err(AlStatusCode::INVALID_DC_SYNC_CONFIGURATION);
    }
    if !is(SYNC0) || expected.kinds == [FREE_RUN; 2] {
        return Ok(None);
    }
    let cycle = esc.memory().double_word(dc::SYNC0_CYCLE_TIME);
    // 0 is a single pulse.
    if cycle != 0 && cycle < expected.minimum_cycle {
        return Err(AlStatusCode::DC_INVALID_SYNC0_CYCLE_TIME);
    }
    let (long, short) = (cycle.max(expected.cycle_time), cycle.min(expected.cycle_time));
    if short != 0 && long % short != 0 {
        return Err(AlStatusCode::DC_INVALID_SYNC_CYCLE_TIME);
    }
    Ok(Some(Supervision {
        limit: expected.error_limit,
        calc_and_copy: Duration::from_nanos(expected.calc_and_copy.into()),
        watches_outputs,
        last_sync0: None,
        without_outputs: 0,
        state: SynchronisationState { cycle, ..SynchronisationState::default() },
    }))
}

impl Supervision {
    /// State to show.
    pub(super) fn state(&self) -> &SynchronisationState {
        &self.state
    }

    /// Registers SYNC0 at `now`, and the sets of outputs since the one before with the time of the
    /// newest; `true` if the state has changed.
    pub(super) fn sync0(&mut self, now: Instant, (outputs, newest): (u32, Instant)) -> bool {
        self.last_sync0 = Some(now);
        if !self.watches_outputs {
            return false;
        }
        let before = self.state;
        let SynchronisationState { events_missed, cycle_too_short, shift_too_short, error, .. } =
            &mut self.state;
        if outputs > 0 {
            let late = now.since(newest) < self.calc_and_copy;
            *shift_too_short = shift_too_short.saturating_add(late.into());
            self.without_outputs = 0;
            *events_missed = events_missed.saturating_sub(outputs.min(u16::MAX.into()) as u16);
            *cycle_too_short = cycle_too_short.saturating_add((outputs - 1).min(u16::MAX.into()) as u16);
        }
        if self.without_outputs > 1 && (self.limit == 0 || *events_missed <= self.limit) {
            *events_missed = events_missed.saturating_add(MISSED);
        }
        self.without_outputs = self.without_outputs.saturating_add(1);
        *error = self.limit > 0 && *events_missed > self.limit;
        self.state != before
    }

    /// True if too many sets of outputs were missed.
    pub(super) fn failed(&self) -> bool {
        self.state.error
    }

    /// True if SYNC0 comes in time.
    pub(super) fn runs(&self, now: Instant) -> bool {
        self.last_sync0.is_some() && self.lost_at().is_none_or(|lost| now < lost)
    }

    /// When SYNC0 is lost, unless it comes before; of a single pulse never.
    fn lost_at(&self) -> Option<Instant> {
        let longest = SHORTEST_LOSS.max(2 * Duration::from_nanos(self.state.cycle.into()));
        let last = self.last_sync0.unwrap_or(Instant::EPOCH);
        (self.state.cycle > 0).then(|| last + longest + Duration::from_nanos(1))
    }

    /// Restarts counting, before Op.
    pub(super) fn restart(&mut self) {
        self.without_outputs = 0;
        (self.state.events_missed, self.state.error) = (0, false);
    }

    /// Follows a time jump to `now`, without steps in between; `came`: the first SYNC0, if none
    /// before, would have occurred in it.
    pub(super) fn leap(&mut self, now: Instant, came: bool) {
        self.last_sync0 = self.last_sync0.map(|_| now).or(came.then_some(now));
        self.without_outputs = 0;
    }
}

impl SubDevice {
    /// Checks that outputs came since the SYNC0 before.
    pub(super) fn supervise(&mut self, now: Instant) {
        let outputs = self.esc.take_output_events();
        let Some(supervision) = &mut self.supervision else { return };
        if supervision.sync0(now, outputs) {
            self.application.show_synchronisation(Some(supervision.state()));
        }
        if self.state == AlState::Op && supervision.failed() {
            self.fall(AlState::SafeOp, AlStatusCode::SYNCHRONIZATION);
        }
    }

    /// When a supervised SYNC0 that stays away ends Op.
    pub(super) fn sync0_lost_at(&self) -> Option<Instant> {
        self.supervision.as_ref().filter(|_| self.state == AlState::Op)?.lost_at()
    }

    /// True if SYNC0 is in time, or not supervised.
    pub(super) fn sync0_runs(&self, now: Instant) -> bool {
        self.supervision.as_ref().is_none_or(|it| it.runs(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: u32 = 500_000;

    fn at(cycles: u64) -> Instant {
        Instant::from_nanos(cycles * u64::from(CYCLE))
    }

    fn watching(limit: u16) -> Supervision {
        Supervision {
            limit,
            calc_and_copy: Duration::from_micros(20),
            watches_outputs: true,
            last_sync0: None,
            without_outputs: 0,
            state: SynchronisationState { cycle: CYCLE, ..SynchronisationState::default() },
        }
    }

    /// Missed events after SYNC0s, with `outputs` sets of outputs before each.
    fn missed(limit: u16, outputs: &[u32]) -> (u16, bool) {
        let mut it = watching(limit);
        for (number, outputs) in (1..).zip(outputs) {
            it.sync0(at(number), (*outputs, Instant::EPOCH));
        }
        (it.state.events_missed, it.failed())
    }

    #[test]
    fn one_late_frame_is_tolerated_and_three_in_a_row_are_not() {
        assert_eq!(missed(4, &[1, 1, 0, 1, 0, 1]), (0, false));
        assert_eq!(missed(4, &[1, 0, 0]), (3, false));
        assert_eq!(missed(4, &[1, 0, 0, 1, 1, 1]), (0, false));
        assert_eq!(missed(4, &[1, 0, 0, 0]), (6, true));
        assert_eq!(missed(4, &[1, 0, 0, 0, 0, 0]), (6, true), "it stays there");
        // Without a limit they are counted alone.
        assert_eq!(missed(0, &[1, 0, 0, 0, 0, 0]), (12, false));
    }

    #[test]
    fn two_sets_of_outputs_in_a_cycle_are_a_cycle_too_short() {
        let mut it = watching(0);
        assert!(!it.sync0(at(1), (1, at(0))) && it.sync0(at(2), (3, at(1))));
        assert_eq!(it.state.cycle_too_short, 2);
    }

    #[test]
    fn outputs_just_before_sync0_come_too_late_for_it() {
        let mut it = watching(4);
        let before =
            |cycles, microseconds: u64| Instant::from_nanos(at(cycles).as_nanos() - 1_000 * microseconds);
        it.sync0(at(1), (1, before(1, 20)));
        it.sync0(at(2), (1, before(2, 19)));
        it.sync0(at(3), (0, before(2, 19)));
        assert_eq!((it.state.shift_too_short, it.failed()), (1, false));
    }

    #[test]
    fn sync0_runs_while_it_comes_within_two_cycles() {
        let mut it = watching(0);
        assert!(!it.runs(at(1)));
        it.sync0(at(1), (1, at(0)));
        assert!(it.runs(at(3)) && !it.runs(at(4)));
        it.leap(at(90), false);
        assert!(it.runs(at(91)));
    }
}
