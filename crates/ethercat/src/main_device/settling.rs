//! Static drift compensation: before the cycle begins the reference clock's time is distributed
//! frame after frame, until all clocks agree.
//!
//! The control loop of an ESC averages the received times over writes, and the rate of its clock
//! over 4096 of them by default (0x0935; ESC data sheet, section I, 9.1.5, and section II, 2.22):
//! in a cycle of 1 ms it takes many seconds to learn the rate of its crystal. So the time is sent
//! back to back here, and each millisecond on the way there, so that the learnt rate is not lost
//! while SubDevices are configured. One datagram reads all differences (0x092C): if each of them is
//! below a power of two, so is their bitwise or.
//!
//! Only SubDevices that use their clock need this, for SYNC0, SYNC1 or latch inputs.

use core::time::Duration;

use crate::al::AlState;
use crate::register::dc;
use crate::time::Instant;
use crate::wire::{Address, Command, read_u32};

use super::MainDevice;
use super::exchange::{Outgoing, Owner};
use super::limits;
use super::phase::Phase;
use super::plan::{Action, Reading};
use super::report::Event;

/// Frames of the static drift compensation.
#[derive(Debug, Default)]
pub(super) struct Settling {
    since: Instant,
    writes: u32,
    in_flight: u32,
    /// Time of the last read of the differences.
    looked: Option<Instant>,
    /// Looks in a row by which all agreed.
    agreed: u32,
    /// When the time was handed on last while SubDevices were being configured.
    handed_on: Instant,
}

/// Where the clocks stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    NotYet,
    Agree,
    GivenUp,
}

impl Settling {
    /// True if a frame is due.
    pub(super) fn is_due(&self) -> bool {
        self.in_flight == 0 && self.writes < limits::SETTLING_WRITES
    }

    /// The reply to a frame came, or did not.
    pub(super) fn over(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The differences of all clocks, or-ed into each other; `of_all`: every SubDevice with a clock
    /// was read.
    pub(super) fn spread_came(&mut self, data: &[u8], of_all: bool) {
        let magnitudes = read_u32(data, 0).unwrap_or(u32::MAX) & !dc::DIFFERENCE_SIGN;
        self.agreed = if of_all && magnitudes < limits::SETTLED_NANOSECONDS { self.agreed + 1 } else { 0 };
    }

    fn settled(&self, now: Instant) -> Settled {
        let is_over = now.since(self.since) >= limits::SETTLING
            || self.writes >= limits::SETTLING_WRITES && self.in_flight == 0;
        match self.agreed >= limits::SETTLED_LOOKS {
            true => Settled::Agree,
            false if is_over => Settled::GivenUp,
            false => Settled::NotYet,
        }
    }
}

impl MainDevice {
    /// True if a SubDevice on the way to SafeOp uses its clock.
    fn needs_agreeing_clocks(&self) -> bool {
        self.configuration.target > AlState::PreOp
            && self.reference.is_some()
            && (0..self.sub_devices.len()).any(|position| self.uses_its_clock(position))
    }

    fn uses_its_clock(&self, position: usize) -> bool {
        let configured = self.configuration.sub_devices.as_ref().and_then(|it| it.get(position));
        let uses = configured.is_some_and(|it| it.sync0.is_some() || it.latches.is_some());
        let it = &self.sub_devices[position];
        uses && it.clock.is_some() && !it.is_absent
    }

    /// Number of clocks that answer a read of the differences.
    pub(super) fn clocks(&self) -> usize {
        self.sub_devices.iter().filter(|it| it.clock.is_some() && !it.is_absent).count()
    }

    /// After the configuration of all: clocks that are used are brought together; without any,
    /// nothing is done.
    pub(super) fn begin_settling(&mut self, now: Instant) {
        self.phase = match self.needs_agreeing_clocks() {
            true => Phase::SettleClocks,
            false => Phase::Ready,
        };
        self.settling = Settling { since: now, ..Settling::default() };
    }

    /// Continues when the clocks agree; clocks that do not agree in time are read one by one.
    pub(super) fn go_on_settling(&mut self, now: Instant) {
        match self.settling.settled(now) {
            Settled::NotYet => {}
            Settled::Agree => self.phase = Phase::Ready,
            Settled::GivenUp => {
                for position in 0..self.sub_devices.len() {
                    if self.uses_its_clock(position) {
                        let mut plan = alloc::vec![Action::Read(Reading::ClockDifference)];
                        self.workers[position].start(&mut plan);
                    }
                }
                self.phase = Phase::ReadDifferences;
            }
        }
    }

    /// Reports the SubDevices that disagree with the reference clock.
    pub(super) fn tell_who_is_off(&mut self) {
        for position in 0..self.sub_devices.len() {
            let difference = self.sub_devices[position].clock_difference.unwrap_or(0);
            if self.uses_its_clock(position) && difference.unsigned_abs() >= limits::SETTLED_NANOSECONDS {
                self.tell(Event::ClockUnsettled { position: position as u16, difference });
            }
        }
    }

    /// True if a service frame carries the reference clock's time.
    pub(super) fn hands_on_in_services(&self, now: Instant) -> bool {
        match self.phase {
            Phase::SettleClocks => self.settling.is_due(),
            Phase::PreOp | Phase::ProcessData => {
                now.since(self.settling.handed_on) >= HAND_ON_PAUSE && self.needs_agreeing_clocks()
            }
            _ => false,
        }
    }

    /// Appends the datagrams of a service frame that carries the reference clock's time.
    pub(super) fn hand_on(
        settling: &mut Settling,
        (station, length): (u16, usize),
        (now, phase): (Instant, Phase),
        outgoing: &mut Outgoing<'_>,
    ) {
        let time = Address::Station { station, register: dc::SYSTEM_TIME };
        if phase != Phase::SettleClocks {
            settling.handed_on = now;
            outgoing.push(Command::Frmw, time, length, Owner::ReferenceTime);
            return;
        }
        if outgoing.push(Command::Frmw, time, length, Owner::Settling).is_some() {
            settling.writes += 1;
            settling.in_flight += 1;
        }
        if settling.looked.is_none_or(|looked| now.since(looked) >= limits::SETTLED_LOOK_PAUSE) {
            settling.looked = Some(now);
            let differences = Address::Broadcast { register: dc::SYSTEM_TIME_DIFFERENCE };
            outgoing.push(Command::Brd, differences, 4, Owner::Spread);
        }
    }
}

/// Pause between two frames with the reference clock's time while SubDevices are configured.
const HAND_ON_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// The or of all differences is below a power of two if each is, without the sign. Consecutive
    /// reads count.
    #[test]
    fn clocks_agree_when_looks_in_a_row_say_so() {
        let start = Instant::from_nanos(1_000);
        let mut settling = Settling { since: start, ..Settling::default() };
        let sign = dc::DIFFERENCE_SIGN;
        for _ in 1..limits::SETTLED_LOOKS {
            settling.spread_came(&(300 | 200 | sign).to_le_bytes(), true);
        }
        assert_eq!(settling.settled(start), Settled::NotYet);
        settling.spread_came(&limits::SETTLED_NANOSECONDS.to_le_bytes(), true);
        settling.spread_came(&[0; 4], false);
        for _ in 0..limits::SETTLED_LOOKS {
            assert_eq!(settling.settled(start), Settled::NotYet, "in a row");
            settling.spread_came(&sign.to_le_bytes(), true);
        }
        assert_eq!(settling.settled(start), Settled::Agree);
    }

    /// Time and number are bounded, each.
    #[test]
    fn settling_gives_up_after_a_time_or_a_number_of_writes() {
        let start = Instant::from_nanos(1_000);
        let mut settling = Settling { since: start, ..Settling::default() };
        assert_eq!(settling.settled(start + limits::SETTLING / 2), Settled::NotYet);
        assert_eq!(settling.settled(start + limits::SETTLING), Settled::GivenUp);
        settling.writes = limits::SETTLING_WRITES;
        settling.in_flight = 1;
        assert!(!settling.is_due() && settling.settled(start) == Settled::NotYet, "a reply is on its way");
        settling.over();
        assert_eq!(settling.settled(start), Settled::GivenUp);
    }
}
