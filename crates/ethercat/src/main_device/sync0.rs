//! SYNC0 and SYNC1: registers, start time, and a check that the start was in time.

use core::time::Duration;

use types::time::nanoseconds;

use crate::register::dc;
use crate::wire::{read_u32, read_u64};

use super::configuration::{SubDeviceConfiguration, Sync0, Sync1};
use super::error::SyncMiss;

/// The pulses start at least this long after they are armed: well after the write has arrived.
const LEAD: Duration = Duration::from_millis(20);

/// The same in cycles, where these are slow.
const LEAD_CYCLES: u32 = 10;

/// SubDevices served in one frame at the least; the check of the start is their longest datagram. A
/// large bus has time for one such frame a cycle, and each SubDevice waits for all others between
/// its start time and its activation.
const SERVED_IN_A_FRAME: u32 = 8;

/// Bound of the lead where starts were missed.
const LONGEST_LEAD: Duration = Duration::from_secs(1);

/// Time between the write of a start and the start, on a bus of so many SubDevices; doubled after
/// each missed start, as a busy machine takes longer from one write to the next.
pub(super) fn lead(period: Duration, sub_devices: u16, misses: u32) -> Duration {
    let turns = u32::from(sub_devices).div_ceil(SERVED_IN_A_FRAME);
    let usual = usual_lead(period).max(period * turns);
    usual.saturating_mul(1 << misses.min(16)).min(LONGEST_LEAD.max(usual))
}

fn usual_lead(period: Duration) -> Duration {
    LEAD.max(period * LEAD_CYCLES)
}

/// Bytes from the system time to the start time: both are read at once.
pub(super) const STATE_LENGTH: usize = (dc::START_TIME - dc::SYSTEM_TIME) as usize + 8;

/// SYNC0 of a SubDevice, and SYNC1 if it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sync {
    sync0: Sync0,
    sync1: Option<Sync1>,
}

impl Sync {
    pub(super) fn of(configuration: &SubDeviceConfiguration) -> Option<Self> {
        configuration.sync0.map(|sync0| Self { sync0, sync1: configuration.sync1 })
    }

    /// Value of the activation register.
    pub(super) fn activation(&self) -> u8 {
        if self.sync1.is_some() { dc::ACTIVATE_SYNC1 } else { dc::ACTIVATE_SYNC0 }
    }

    /// SYNC0 and SYNC1 cycle time, as register values; SYNC1's counts from the SYNC0 pulse that it
    /// depends on, the first one after the previous SYNC1.
    pub(super) fn cycle_times(&self) -> [u32; 2] {
        let register = |time: Duration| u32::try_from(time.as_nanos()).unwrap_or(u32::MAX);
        let Self { sync0, sync1 } = self;
        let behind = |sync1: &Sync1| register(sync1.cycle.saturating_sub(sync0.cycle) + sync1.delay);
        [register(sync0.cycle), sync1.as_ref().map_or(0, behind)]
    }

    /// The first point, after the lead, of a grid that all SubDevices share: the multiples of the
    /// cycle in the time of the reference clock, plus the shift. With SYNC1, it is the SYNC0 pulse
    /// whose SYNC1 follows a multiple of the SYNC1 cycle.
    pub(super) fn start(&self, reference_time: u64, lead: Duration) -> u64 {
        let earliest = reference_time.wrapping_add(nanoseconds(lead));
        let own = nanoseconds(self.sync0.cycle).max(1);
        let cycle = self.sync1.map_or(own, |it| nanoseconds(it.cycle).max(1));
        let point = earliest.wrapping_add(cycle - earliest % cycle);
        let behind = if self.sync1.is_some() { own } else { 0 };
        point.wrapping_add(behind).wrapping_add(nanoseconds(self.sync0.shift))
    }

    /// SYNC0 and SYNC1 against a frame that passed at this time of the reference clock.
    pub(super) fn phases(&self, passage: u64) -> [Option<SyncPhase>; 2] {
        let Self { sync0, sync1 } = self;
        let sync1 = sync1.map(|it| SyncPhase::of(it.cycle, sync0.shift + it.delay, passage));
        [Some(SyncPhase::of(sync0.cycle, sync0.shift, passage)), sync1]
    }

    /// True if a start time can be so far ahead that 32 bits do not distinguish it from one that
    /// has passed.
    fn is_far(&self, lead: Duration) -> bool {
        let slowest = self.sync1.map_or(self.sync0.cycle, |it| it.cycle);
        let longest = lead + slowest * 2 + self.sync0.shift;
        longest.as_nanos() > 1 << 31
    }

    /// Reason that the pulses do not start, if so, from the registers from the system time on: the
    /// next SYNC0 has to lie ahead.
    pub(super) fn miss(&self, registers: &[u8], has_64_bits: bool, lead: Duration) -> Option<SyncMiss> {
        let offset = |register: u16| usize::from(register - dc::SYSTEM_TIME);
        let activation = registers.get(offset(dc::ACTIVATION)).copied().unwrap_or(0);
        if activation & self.activation() != self.activation() {
            return Some(SyncMiss::NotTaken);
        }
        let ahead = self.ahead(registers, has_64_bits, lead)?;
        (ahead < 0).then(|| SyncMiss::Late(Duration::from_nanos(ahead.unsigned_abs())))
    }

    /// Time to wait during bring-up, from the same registers: an application gives up without a
    /// pulse for some 200 ms, and with a slow SYNC1 the first one may be seconds ahead.
    pub(super) fn pause(
        &self,
        registers: &[u8],
        has_64_bits: bool,
        period: Duration,
        lead: Duration,
    ) -> Duration {
        let ahead = self.ahead(registers, has_64_bits, lead).and_then(|it| u64::try_from(it).ok());
        ahead.map_or(Duration::ZERO, Duration::from_nanos).saturating_sub(usual_lead(period) + period)
    }

    /// Nanoseconds to the next SYNC0; `None` if 32 bits do not show them.
    fn ahead(&self, registers: &[u8], has_64_bits: bool, lead: Duration) -> Option<i64> {
        let next = usize::from(dc::START_TIME - dc::SYSTEM_TIME);
        if has_64_bits {
            return Some(read_u64(registers, next)?.wrapping_sub(read_u64(registers, 0)?) as i64);
        }
        let (next, now) = (read_u32(registers, next)?, read_u32(registers, 0)?);
        (!self.is_far(lead)).then(|| i64::from(next.wrapping_sub(now) as i32))
    }
}

/// SYNC0 or SYNC1 of a SubDevice, and the passage of a frame against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPhase {
    /// Time between two pulses.
    pub cycle: Duration,
    /// Time from a multiple of the cycle, in the time of the reference clock, to a pulse.
    pub shift: Duration,
    /// Time from the last pulse to the frame's passage at the SubDevice.
    pub frame: Duration,
}

impl SyncPhase {
    fn of(cycle: Duration, shift: Duration, passage: u64) -> Self {
        let frame = passage.wrapping_sub(nanoseconds(shift)) % nanoseconds(cycle).max(1);
        Self { cycle, shift, frame: Duration::from_nanos(frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn sync(sync1: Option<Sync1>) -> Sync {
        Sync { sync0: Sync0 { cycle: MS, shift: Duration::from_micros(250) }, sync1 }
    }

    #[test]
    fn sync0_starts_on_the_grid_plus_shift_and_ahead() {
        let start = sync(None).start(123_456_789, lead(MS, 1, 0));
        assert_eq!(start % 1_000_000, 250_000);
        assert!(start > 123_456_789 + 20_000_000 && start <= 123_456_789 + 21_250_000);
        let slow = sync(None).start(123_456_789, lead(100 * MS, 1, 0));
        assert!(slow > 123_456_789 + 1_000_000_000 && slow % 1_000_000 == 250_000);
    }

    #[test]
    fn missed_start_doubles_the_lead_up_to_a_second() {
        let leads = [0, 1, 2, 5, 6, 7, 100].map(|misses| lead(MS, 1, misses).as_millis());
        assert_eq!(leads, [20, 40, 80, 640, 1000, 1000, 1000]);
        assert_eq!(lead(200 * MS, 1, 3), 2000 * MS);
    }

    #[test]
    fn lead_of_a_large_bus_serves_each_once() {
        let leads = [1, 160, 168, 1000, 4096].map(|sub_devices| lead(MS, sub_devices, 0).as_millis());
        assert_eq!(leads, [20, 20, 21, 125, 512]);
        assert_eq!(lead(MS / 4, 1000, 0), 125 * MS / 4);
    }

    /// SYNC1 of the data sheet: the first one its register's time behind the start.
    #[test]
    fn sync1_follows_multiples_of_its_cycle() {
        for cycles in 1..=5_u32 {
            let sync = sync(Some(Sync1 { cycle: cycles * MS, delay: Duration::from_micros(125) }));
            let [sync0, behind] = sync.cycle_times();
            assert_eq!((sync0, behind), (1_000_000, (cycles - 1) * 1_000_000 + 125_000));
            assert_eq!(sync.activation(), 0x07);
            for time in [0, 123_456_789, 77_000_001] {
                let start = sync.start(time, lead(MS, 1, 0));
                assert!(start > time + 20_000_000 && start % 1_000_000 == 250_000);
                assert_eq!(
                    (start + u64::from(behind)) % u64::from(cycles * 1_000_000),
                    375_000,
                    "{cycles}"
                );
            }
        }
        assert_eq!((sync(None).cycle_times(), sync(None).activation()), ([1_000_000, 0], 0x03));
    }

    /// SYNC0 comes at 250 us of each millisecond, SYNC1 with every third at 375 us.
    #[test]
    fn a_frame_passes_so_long_behind_the_last_pulse_of_each() {
        let sync = sync(Some(Sync1 { cycle: 3 * MS, delay: Duration::from_micros(125) }));
        let micros = Duration::from_micros;
        for (passage, behind_sync0, behind_sync1) in [
            (9_250_000, 0, 2_875),
            (9_375_000, 125, 0),
            (9_374_000, 124, 2_999),
            (10_249_000, 999, 874),
            (12_000_000, 750, 2_625),
        ] {
            let [sync0, sync1] = sync.phases(passage).map(Option::unwrap);
            assert_eq!(
                (sync0.frame, sync1.frame),
                (micros(behind_sync0), micros(behind_sync1)),
                "{passage}"
            );
            assert_eq!((sync0.cycle, sync0.shift), (MS, micros(250)));
            assert_eq!((sync1.cycle, sync1.shift), (3 * MS, micros(375)));
        }
        assert_eq!(Sync { sync1: None, ..sync }.phases(0)[1], None);
    }

    fn registers(time: u64, next: u64, activation: u8) -> [u8; STATE_LENGTH] {
        let mut registers = [0; STATE_LENGTH];
        registers[..8].copy_from_slice(&time.to_le_bytes());
        registers[0x71] = activation;
        registers[0x80..].copy_from_slice(&next.to_le_bytes());
        registers
    }

    #[test]
    fn late_start_and_refused_activation_are_detected() {
        let late = |ns| Some(SyncMiss::Late(Duration::from_nanos(ns)));
        for (time, next, activation, expected) in [
            (1_000, 2_000, 0x03, None),
            (2_000, 2_000, 0x03, None),
            (2_001, 2_000, 0x03, late(1)),
            (9_002_000, 2_000, 0x03, late(9_000_000)),
            (1_000, 2_000, 0x01, Some(SyncMiss::NotTaken)),
        ] {
            for has_64_bits in [true, false] {
                let found =
                    sync(None).miss(&registers(time, next, activation), has_64_bits, lead(MS, 1, 0));
                assert_eq!(found, expected, "{time} {next}");
            }
        }
        // Over the wrap of 32 bits, and where they are too few.
        let wrapped = registers(u64::from(u32::MAX) - 10, 20, 0x03);
        assert_eq!(sync(None).miss(&wrapped, false, lead(MS, 1, 0)), None);
        let far = registers(0, 3_000_000_000, 0x03);
        assert_eq!(sync(None).miss(&far, false, lead(300 * MS, 1, 0)), None);
        let with_sync1 = sync(Some(Sync1 { cycle: MS, delay: Duration::ZERO }));
        let found = with_sync1.miss(&registers(1, 2, 0x03), true, lead(MS, 1, 0));
        assert_eq!(found, Some(SyncMiss::NotTaken));
    }
}
