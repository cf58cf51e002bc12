//! Watchdogs: the longest time without outputs, and without access by the application (ETG.1000.4,
//! 6.8; ESC data sheet, section II, 2.10).

use core::time::Duration;

use super::{WATCHDOG_DIVIDER_DEFAULT, WATCHDOG_TIME_DEFAULT};

/// One period of the 25 MHz that the divider counts.
const CLOCK: Duration = Duration::from_nanos(40);

/// The three registers of the two watchdogs, which share one divider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdogs {
    /// 0x0400: a tick is this and two more periods of 40 ns.
    pub divider: u16,
    /// 0x0410: ticks of the PDI watchdog; 0 switches it off.
    pub pdi: u16,
    /// 0x0420: ticks of the SyncManager watchdog, which outputs feed; 0 switches it off.
    pub process_data: u16,
}

impl Default for Watchdogs {
    /// As after a reset of the ESC: 100 ms each.
    fn default() -> Self {
        let time = WATCHDOG_TIME_DEFAULT;
        Self { divider: WATCHDOG_DIVIDER_DEFAULT, pdi: time, process_data: time }
    }
}

impl Watchdogs {
    /// The registers for these times; `None` is off. Exact if some divider makes both times a whole
    /// number of ticks; the reset divider is preferred. Otherwise both are longer than requested,
    /// by less than one of the shortest ticks that can hold them. More than 171 s are cut to that.
    #[must_use]
    pub fn new(process_data: Option<Duration>, pdi: Option<Duration>) -> Self {
        let (process_data, pdi) = (process_data.map(clocks), pdi.map(clocks));
        let longest = process_data.max(pdi).unwrap_or(1);
        let shortest_tick = longest.div_ceil(MOST_TICKS).max(SHORTEST_TICK);
        let is_exact = |tick: &u64| {
            *tick >= shortest_tick && [process_data, pdi].into_iter().flatten().all(|it| it % tick == 0)
        };
        let after_reset = u64::from(WATCHDOG_DIVIDER_DEFAULT) + SHORTEST_TICK;
        let mut ticks = [after_reset].into_iter().chain((shortest_tick..=LONGEST_TICK).rev());
        let tick = ticks.find(is_exact).unwrap_or(shortest_tick);
        let counted = |clocks: Option<u64>| clocks.map_or(0, |it| it.div_ceil(tick) as u16);
        Self {
            divider: (tick - SHORTEST_TICK) as u16,
            pdi: counted(pdi),
            process_data: counted(process_data),
        }
    }

    /// Time of the SyncManager watchdog; `None` if it is off.
    #[must_use]
    pub fn process_data_time(&self) -> Option<Duration> {
        time(self.divider, self.process_data)
    }

    /// Time of the PDI watchdog; `None` if it is off.
    #[must_use]
    pub fn pdi_time(&self) -> Option<Duration> {
        time(self.divider, self.pdi)
    }
}

/// Time of a watchdog from its registers; 0 ticks switch it off.
#[must_use]
pub fn time(divider: u16, ticks: u16) -> Option<Duration> {
    let tick = CLOCK * (u32::from(divider) + SHORTEST_TICK as u32);
    (ticks != 0).then(|| tick * u32::from(ticks))
}

/// Whole periods of the clock that are no shorter than `time`.
fn clocks(time: Duration) -> u64 {
    let most = u128::from(MOST_TICKS * LONGEST_TICK);
    time.as_nanos().div_ceil(CLOCK.as_nanos()).clamp(1, most) as u64
}

/// Clocks of a tick with divider 0.
const SHORTEST_TICK: u64 = 2;

/// Clocks of a tick with the largest divider.
const LONGEST_TICK: u64 = u16::MAX as u64 + SHORTEST_TICK;

const MOST_TICKS: u64 = u16::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reset_watchdog_time_is_a_tenth_of_a_second() {
        let tenth = Some(Duration::from_millis(100));
        assert_eq!(Watchdogs::new(tenth, tenth), Watchdogs::default());
        assert_eq!(Watchdogs::default().process_data_time(), tenth);
        assert_eq!(
            Watchdogs::new(None, None),
            Watchdogs { pdi: 0, process_data: 0, ..Watchdogs::default() }
        );
    }

    #[test]
    fn the_shortest_and_the_longest_times() {
        let shortest = Watchdogs::new(Some(Duration::ZERO), None);
        assert_eq!(shortest.process_data_time(), Some(Duration::from_nanos(80)));
        let longest = Watchdogs::new(Some(Duration::MAX), None);
        assert_eq!(longest, Watchdogs { divider: 0xFFFF, pdi: 0, process_data: 0xFFFF });
        assert_eq!(longest.process_data_time(), Some(Duration::from_nanos(65_535 * 65_537 * 40)));
    }

    proptest! {
        // feature(main-device): watchdogs: exact in registers, written, read back; a drive falls out of Op after its time and not before
        #[test]
        fn representable_watchdog_times_are_exact(divider: u16, process_data: u16, pdi: u16) {
            let said = Watchdogs { divider, pdi, process_data };
            let again = Watchdogs::new(said.process_data_time(), said.pdi_time());
            prop_assert_eq!(again.process_data_time(), said.process_data_time());
            prop_assert_eq!(again.pdi_time(), said.pdi_time());
        }

        #[test]
        fn watchdog_times_are_hardly_longer_than_requested(
            process_data in 1..170_000_000_000_u64,
            pdi in 1..170_000_000_000_u64,
        ) {
            let asked = [process_data, pdi].map(Duration::from_nanos);
            let set = Watchdogs::new(Some(asked[0]), Some(asked[1]));
            // One tick is at most the 65535th part of the longer one, rounded up to the clock;
            // nothing is below two.
            let tick = Duration::from_nanos(process_data.max(pdi) / 65_535) + CLOCK * 3;
            for (asked, set) in asked.into_iter().zip([set.process_data_time(), set.pdi_time()]) {
                let set = set.expect("it is on");
                prop_assert!(set >= asked && set - asked < tick, "{asked:?} became {set:?}");
            }
        }
    }
}
