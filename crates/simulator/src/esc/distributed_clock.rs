//! Distributed clocks: receive times, system time, the loop that steers the clock, SYNC0
//! (ETG.1000.4, 6.12; ESC data sheet, section I, 9 and section II, 2.22).
//!
//! Simplifications: the clock counts single nanoseconds rather than tens. The filter of the ESC's control
//! loop is not published; this one is a proportional-integral controller over elapsed time with the
//! published limits, whose bandwidth follows the speed counter start and which needs no fixed write period.
//! The filter depth of the system time difference (0x0934) averages the shown difference only, that of the
//! speed counter (0x0935) is stored and not used. SYNC1, latch inputs and SYNC acknowledge mode are
//! missing.

use ethercat::register::dc;
use ethercat::time::Instant;

use super::Passage;
use super::clock::LocalClock;
use super::memory::Memory;

/// Oscillator of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oscillator {
    /// Local time at power-on, in ns.
    pub initial_time: u64,
    /// Rate error, in parts per million, above 0 if it runs fast; that of a real one is within about 100.
    pub drift_ppm: f64,
}

impl Default for Oscillator {
    fn default() -> Self {
        Self { initial_time: 0, drift_ppm: 0.0 }
    }
}

/// DC unit of one SubDevice.
#[derive(Clone, Debug)]
pub(crate) struct DistributedClock {
    clock: LocalClock,
    drift: f64,
    counts_64_bits: bool,
    /// Steering by the integral part of the loop, in seconds per second.
    integral: f64,
    mean_difference: f64,
    last_write: Option<Instant>,
    sync0: Option<Sync0>,
}

#[derive(Clone, Copy, Debug)]
struct Sync0 {
    /// System time of the next event, and its instant; `None` after the last one.
    next: Option<(u64, Instant)>,
    cycle: u32,
}

impl DistributedClock {
    /// State after power-on at `now`.
    pub(crate) fn new(oscillator: Oscillator, counts_64_bits: bool, now: Instant) -> Self {
        let drift = oscillator.drift_ppm * 1e-6;
        Self {
            clock: LocalClock::new(now, oscillator.initial_time, drift),
            drift,
            counts_64_bits,
            integral: 0.0,
            mean_difference: 0.0,
            last_write: None,
            sync0: None,
        }
    }

    /// Jumps by `by` ns of the oscillator's counter, as in a device that loses count.
    pub(crate) fn jump(&mut self, memory: &Memory, now: Instant, by: i64) {
        self.clock.jump(by);
        self.schedule(memory, now);
    }

    /// Stores the register values after power-on.
    pub(crate) fn reset_registers(memory: &mut Memory) {
        memory.store(dc::SPEED_COUNTER_START, &dc::SPEED_COUNTER_START_DEFAULT.to_le_bytes());
        memory.store(dc::FILTER_DEPTHS, &FILTER_DEPTHS_DEFAULT.to_le_bytes());
    }

    /// Local time plus offset, at `now`.
    pub(crate) fn system_time(&self, memory: &Memory, now: Instant) -> u64 {
        self.visible(self.full_time(memory, now))
    }

    /// System time including the bits that a 32-bit clock does not show.
    fn full_time(&self, memory: &Memory, now: Instant) -> u64 {
        self.clock.read(now).wrapping_add(memory.quad_word(dc::SYSTEM_TIME_OFFSET))
    }

    /// Latches the local times at which the frame passed the open ports, and the processing unit behind
    /// port 0.
    pub(crate) fn latch(&self, memory: &mut Memory, passage: &Passage) {
        let processed = self.visible(self.clock.read(passage.now));
        memory.store(dc::RECEIVE_TIME_PROCESSING_UNIT, &processed.to_le_bytes());
        for (port, arrival) in passage.ports.into_iter().enumerate() {
            let Some(arrival) = arrival else { continue };
            let local = self.clock.read(arrival);
            memory.store(dc::RECEIVE_TIME + 4 * port as u16, &(local as u32).to_le_bytes());
        }
    }

    /// Updates the registers that change by themselves before they are read.
    pub(crate) fn refresh(&self, memory: &mut Memory, now: Instant) {
        memory.store(dc::SYSTEM_TIME, &self.system_time(memory, now).to_le_bytes());
        if let Some(Sync0 { next: Some((next, _)), .. }) = self.sync0 {
            memory.store(dc::START_TIME, &next.to_le_bytes());
        }
    }

    /// Compares a received system time with the local copy and steers the clock (0x0910; ESC data sheet,
    /// section I, 9.1.3.2).
    pub(crate) fn system_time_written(&mut self, memory: &mut Memory, now: Instant, received: &[u8]) {
        let delay = u64::from(memory.double_word(dc::SYSTEM_TIME_DELAY));
        let here = self.system_time(memory, now).wrapping_sub(delay);
        let difference = match received {
            [a, b, c, d, e, f, g, h] if self.counts_64_bits => {
                here.wrapping_sub(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])) as i64
            }
            [a, b, c, d, ..] => {
                i64::from((here as u32).wrapping_sub(u32::from_le_bytes([*a, *b, *c, *d])) as i32)
            }
            _ => return,
        };
        let limit = i64::from(i32::MAX);
        let difference = difference.clamp(-limit, limit) as f64;
        let depth = i32::from(memory.byte(dc::FILTER_DEPTHS) & 0x0F);
        self.mean_difference += (difference - self.mean_difference) / 2_f64.powi(depth);
        let shown = dc::difference_register(self.mean_difference.round() as i32);
        memory.store(dc::SYSTEM_TIME_DIFFERENCE, &shown.to_le_bytes());
        self.steer(memory, now, difference);
    }

    /// Restarts the loop, after a write of the speed counter start.
    pub(crate) fn reset_filters(&mut self, memory: &mut Memory, now: Instant) {
        self.integral = 0.0;
        self.clock.set_rate(now, self.drift);
        memory.store(dc::SPEED_COUNTER_DIFFERENCE, &[0; 2]);
        self.reset_difference(memory, now);
    }

    /// Clears the difference, after a write of offset or delay: earlier differences mean nothing any more.
    pub(crate) fn reset_difference(&mut self, memory: &mut Memory, now: Instant) {
        self.mean_difference = 0.0;
        self.last_write = None;
        memory.store(dc::SYSTEM_TIME_DIFFERENCE, &[0; 4]);
        self.schedule(memory, now);
    }

    /// Applies a write of the activation register.
    pub(crate) fn activation_written(&mut self, memory: &mut Memory, now: Instant) {
        let active = memory.byte(dc::ACTIVATION) & dc::ACTIVATE_SYNC0 == dc::ACTIVATE_SYNC0;
        match (&self.sync0, active) {
            (None, true) => {
                let time = self.full_time(memory, now);
                let start = memory.quad_word(dc::START_TIME);
                // A start time in the past comes again when the counter has wrapped.
                let first = if self.counts_64_bits {
                    (start > time).then_some(start)
                } else {
                    Some(time.wrapping_add(u64::from((start as u32).wrapping_sub(time as u32))))
                };
                let cycle = memory.double_word(dc::SYNC0_CYCLE_TIME);
                self.sync0 = Some(Sync0 { next: first.map(|first| (first, now)), cycle });
                self.schedule(memory, now);
            }
            (Some(_), false) => self.sync0 = None,
            _ => {}
        }
        memory.set_byte(ACTIVATION_STATUS, u8::from(self.sync0.is_some()));
    }

    /// Cycle time of SYNC0 in ns, if it is active.
    pub(crate) fn sync0_cycle(&self) -> Option<u32> {
        self.sync0.map(|sync0| sync0.cycle)
    }

    /// Instant of the next SYNC0.
    pub(crate) fn sync0_due(&self) -> Option<Instant> {
        self.sync0?.next.map(|(_, due)| due)
    }

    /// Takes the next SYNC0, which is due: returns its system time, and schedules the following one.
    pub(crate) fn take_sync0(&mut self, memory: &Memory) -> Option<u64> {
        let sync0 = self.sync0.as_mut()?;
        let (system_time, due) = sync0.next?;
        let cycle = u64::from(sync0.cycle);
        // No application follows pulses closer than this; those between are left out.
        let cycles = if cycle == 0 { 0 } else { SHORTEST_SYNC0.div_ceil(cycle) };
        sync0.next = (cycles > 0).then(|| (system_time.wrapping_add(cycle * cycles), due));
        self.schedule(memory, due);
        Some(self.visible(system_time))
    }

    /// Skips the events before `now`, keeping their grid.
    pub(crate) fn skip_sync0(&mut self, memory: &Memory, now: Instant) {
        let time = self.full_time(memory, now);
        if let Some(Sync0 { next: Some((next, due)), cycle: cycle @ 1.. }) = &mut self.sync0 {
            if *due < now {
                let cycle = u64::from(*cycle);
                *next = next.wrapping_add(time.wrapping_sub(*next).div_ceil(cycle).wrapping_mul(cycle));
                self.schedule(memory, now);
            }
        }
    }

    /// Computes the instant of the next event. One that the clock was steered past comes at once; one that
    /// the system time has leapt over comes when the counter has wrapped.
    fn schedule(&mut self, memory: &Memory, now: Instant) {
        let time = self.full_time(memory, now);
        let Some(Sync0 { next: next @ Some(_), .. }) = &mut self.sync0 else { return };
        let Some((system_time, _)) = *next else { return };
        let late = time.wrapping_sub(system_time);
        let to_come = late as i64 <= 0;
        *next = if to_come {
            let local = self.clock.read(now).wrapping_add(late.wrapping_neg());
            Some((system_time, self.clock.instant_of(local, now)))
        } else if late <= LATEST_SYNC0 {
            Some((system_time, now))
        } else if self.counts_64_bits {
            None
        } else {
            let ahead = u64::from((system_time as u32).wrapping_sub(time as u32));
            let local = self.clock.read(now).wrapping_add(ahead);
            Some((time.wrapping_add(ahead), self.clock.instant_of(local, now)))
        };
    }

    fn steer(&mut self, memory: &mut Memory, now: Instant, difference: f64) {
        let start = f64::from(memory.word(dc::SPEED_COUNTER_START)).max(SPEED_COUNTER_MARGIN + 1.0);
        let limit = deviation(start, start - SPEED_COUNTER_MARGIN);
        let interval = self.last_write.map_or(0.0, |last| now.since(last).as_nanos() as f64);
        self.last_write = Some(now);
        // Time constant of the loop: a fixed number of ns, but never near the interval between two writes.
        let bandwidth = start / f64::from(dc::SPEED_COUNTER_START_DEFAULT);
        let time_constant = bandwidth.max(0.1) * TIME_CONSTANT.max(interval * 8.0);
        let proportional = -difference / time_constant;
        if (self.integral + proportional).abs() < limit {
            self.integral += proportional * interval / (4.0 * time_constant);
        }
        let rate = (self.integral + proportional).clamp(-limit, limit);
        self.clock.set_rate(now, self.drift + rate);
        let counter = (counter_of(start, rate).round() as i16).to_le_bytes();
        memory.store(dc::SPEED_COUNTER_DIFFERENCE, &counter);
        self.schedule(memory, now);
    }

    fn visible(&self, time: u64) -> u64 {
        if self.counts_64_bits { time } else { time & u64::from(u32::MAX) }
    }
}

/// Time constant of the loop in ns at the default speed counter start.
const TIME_CONSTANT: f64 = 16e6;

/// Least distance of the speed counter difference from its start.
const SPEED_COUNTER_MARGIN: f64 = 127.0;

/// Default filter depths: 4 for the difference, 12 for the speed counter.
const FILTER_DEPTHS_DEFAULT: u16 = 0x0C04;

/// Activation status: bit 0 is set while the first SYNC0 is pending or cyclic operation runs.
const ACTIVATION_STATUS: u16 = 0x0984;

/// Latest SYNC0 that is still made up for, in ns; steering moves the clock by far less.
const LATEST_SYNC0: u64 = 100_000;

/// Shortest SYNC0 cycle, in ns of system time.
const SHORTEST_SYNC0: u64 = 10_000;

/// Rate error, in seconds per second, that a speed counter difference causes (ESC data sheet, section II,
/// 2.22.3: the clock adds a ns each `start - difference + 2` and drops one each `start + difference + 2`
/// ticks of 10 ns).
fn deviation(start: f64, difference: f64) -> f64 {
    difference / (5.0 * (start + difference + 2.0) * (start - difference + 2.0))
}

/// Speed counter difference that causes the rate error `rate`: the inverse of [`deviation`].
fn counter_of(start: f64, rate: f64) -> f64 {
    if rate.abs() < 1e-12 {
        return 0.0;
    }
    let start = start + 2.0;
    ((1.0 + 100.0 * rate * rate * start * start).sqrt() - 1.0) / (10.0 * rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(drift_ppm: f64, initial_time: u64, bits_64: bool) -> (DistributedClock, Memory) {
        let mut memory = Memory::new();
        DistributedClock::reset_registers(&mut memory);
        let oscillator = Oscillator { initial_time, drift_ppm };
        (DistributedClock::new(oscillator, bits_64, Instant::EPOCH), memory)
    }

    fn difference(memory: &Memory) -> i32 {
        dc::difference_nanoseconds(memory.double_word(dc::SYSTEM_TIME_DIFFERENCE))
    }

    #[test]
    fn the_speed_counter_formula_and_its_inverse_agree() {
        for counter in [-3969.0, -100.0, 1.0, 500.0, 3969.0] {
            let back = counter_of(4096.0, deviation(4096.0, counter));
            assert!((back - counter).abs() < 0.01, "{counter}: {back}");
        }
        assert!((deviation(4096.0, 3969.0) - 763e-6).abs() < 1e-6);
    }

    /// Distributes the true time to a clock every `interval` ns and returns the worst error in ns over the
    /// last tenth.
    fn worst_error(drift_ppm: f64, interval: u64, writes: u64, bits_64: bool) -> u64 {
        let (mut clock, mut memory) = unit(drift_ppm, 123_456_789, bits_64);
        memory.store(dc::SYSTEM_TIME_OFFSET, &0_u64.wrapping_sub(123_456_789).to_le_bytes());
        memory.store(dc::SYSTEM_TIME_DELAY, &700_u32.to_le_bytes());
        let mut worst = 0;
        for write in 1..=writes {
            let now = Instant::from_nanos(write * interval);
            let reference = now.as_nanos() - 700;
            if write > writes * 9 / 10 {
                worst = worst.max(clock.system_time(&memory, now).abs_diff(reference + 700));
            }
            let bytes = reference.to_le_bytes();
            clock.system_time_written(&mut memory, now, &bytes[..if bits_64 { 8 } else { 4 }]);
        }
        assert!(difference(&memory).unsigned_abs() <= 20, "{}", difference(&memory));
        worst
    }

    #[test]
    fn it_converges_from_a_hundred_ppm_at_one_kilohertz() {
        for drift in [-100.0, -33.0, 0.0, 1.0, 100.0] {
            let worst = worst_error(drift, 1_000_000, 1_000, true);
            assert!(worst <= 20, "{drift} ppm: {worst} ns after one second");
            // 32 bits wrap within the 4.3 s.
            let worst = worst_error(drift, 1_000_000, 4_200, false);
            assert!(worst <= 20, "{drift} ppm, 32 bits: {worst} ns");
        }
    }

    #[test]
    fn it_converges_in_a_static_drift_phase_of_15_000_frames_and_in_slow_cycles() {
        for drift in [-100.0, 100.0] {
            let worst = worst_error(drift, 25_000, 15_000, true);
            assert!(worst <= 20, "{drift} ppm: {worst} ns after 15 000 frames");
            let worst = worst_error(drift, 250_000, 4_000, true);
            assert!(worst <= 20, "{drift} ppm at 4 kHz: {worst} ns");
            let worst = worst_error(drift, 10_000_000, 1_000, true);
            assert!(worst <= 20, "{drift} ppm at 100 Hz: {worst} ns");
        }
    }

    #[test]
    fn the_difference_shows_its_sign_and_a_reset_clears_it() {
        let (mut clock, mut memory) = unit(0.0, 1_000_000, true);
        clock.system_time_written(&mut memory, Instant::EPOCH, &0_u64.to_le_bytes());
        assert!(difference(&memory) > 0, "the local clock is ahead");
        assert!(memory.word(dc::SPEED_COUNTER_DIFFERENCE) as i16 <= 0);
        clock.reset_filters(&mut memory, Instant::EPOCH);
        assert_eq!(difference(&memory), 0);
        clock.system_time_written(&mut memory, Instant::EPOCH, &5_000_000_u64.to_le_bytes());
        assert!(difference(&memory) < 0);
    }

    fn activate(clock: &mut DistributedClock, memory: &mut Memory, now: Instant, start: u64, cycle: u32) {
        memory.store(dc::START_TIME, &start.to_le_bytes());
        memory.store(dc::SYNC0_CYCLE_TIME, &cycle.to_le_bytes());
        memory.set_byte(dc::ACTIVATION, dc::ACTIVATE_SYNC0);
        clock.activation_written(memory, now);
    }

    #[test]
    fn sync0_starts_at_its_start_time_and_keeps_its_grid() {
        let (mut clock, mut memory) = unit(100.0, 0, true);
        activate(&mut clock, &mut memory, Instant::EPOCH, 2_000_000, 1_000_000);
        for event in 0..5 {
            let due = clock.sync0_due().unwrap();
            let system_time = clock.take_sync0(&memory).unwrap();
            assert_eq!(system_time, 2_000_000 + event * 1_000_000);
            assert_eq!(clock.system_time(&memory, due), system_time);
        }
        memory.set_byte(dc::ACTIVATION, 0);
        clock.activation_written(&mut memory, Instant::EPOCH);
        assert_eq!(clock.sync0_due(), None);
    }

    #[test]
    fn a_start_time_in_the_past_waits_for_the_wrap() {
        let now = Instant::from_nanos(10_000_000);
        let (mut clock, mut memory) = unit(0.0, 0, true);
        activate(&mut clock, &mut memory, now, 9_000_000, 1_000_000);
        assert_eq!(clock.sync0_due(), None);
        let (mut clock, mut memory) = unit(0.0, 0, false);
        activate(&mut clock, &mut memory, now, 9_000_000, 1_000_000);
        assert_eq!(clock.sync0_due(), Some(Instant::from_nanos((1 << 32) + 9_000_000)));
    }

    #[test]
    fn a_32_bit_clock_that_has_wrapped_keeps_its_grid() {
        let (mut clock, mut memory) = unit(0.0, 5_000_000_000, false);
        let start = 5_001_000_000_u64 & u64::from(u32::MAX);
        activate(&mut clock, &mut memory, Instant::EPOCH, start, 1_000_000);
        assert_eq!(clock.sync0_due(), Some(Instant::from_nanos(1_000_000)));
        assert_eq!(clock.take_sync0(&memory), Some(start));
        assert_eq!(clock.sync0_due(), Some(Instant::from_nanos(2_000_000)));
    }

    #[test]
    fn a_leap_of_the_system_time_over_the_next_event_ends_them() {
        let (mut clock, mut memory) = unit(0.0, 0, true);
        activate(&mut clock, &mut memory, Instant::EPOCH, 1_000_000, 1_000_000);
        memory.store(dc::SYSTEM_TIME_OFFSET, &u64::MAX.wrapping_div(4).to_le_bytes());
        clock.reset_difference(&mut memory, Instant::EPOCH);
        assert_eq!(clock.sync0_due(), None);
        assert_eq!(clock.take_sync0(&memory), None);
    }

    #[test]
    fn a_cycle_time_of_zero_is_one_event() {
        let (mut clock, mut memory) = unit(0.0, 0, true);
        activate(&mut clock, &mut memory, Instant::EPOCH, 1_000, 0);
        assert_eq!(clock.take_sync0(&memory), Some(1_000));
        assert_eq!(clock.take_sync0(&memory), None);
    }
}
