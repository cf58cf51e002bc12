//! Distributed clocks: receive times, system time, the loop that steers the clock, SYNC0 and SYNC1,
//! latch inputs (ETG.1000.4, 6.12; ESC data sheet, section I, 9 and section II, 2.22).
//!
//! Simplifications: the clock counts single nanoseconds rather than tens. The ESC's control loop is
//! not published; this one is a proportional-integral controller with the published limits, with a
//! bandwidth that follows the speed counter start. The deviation of its clock's period is averaged
//! over writes, as many as the filter depth of the speed counter says (0x0935): 4096 by default, at
//! any write period, but never faster than the loop is stable. The filter depth of the system time
//! difference (0x0934) averages the shown difference only. SYNC acknowledge mode is missing, and
//! SYNC1 without SYNC0. If pulses are closer together than the travel time of a frame to their
//! SubDevice, a frame that steers the clock can delay the pulses due during its travel, by at most
//! that travel time.

use ethercat::register::dc;
use ethercat::register::dl::PORTS;
use ethercat::time::Instant;

use super::Passage;
use super::clock::LocalClock;
use super::memory::Memory;

/// Oscillator of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oscillator {
    /// Local time at power-on, in ns.
    pub initial_time: u64,
    /// Rate error, in parts per million, above 0 if it runs fast; a real clock is within about 100.
    pub drift_ppm: f64,
    /// Greatest deviation of one time, in ns either way: of a pulse of SYNC0 or SYNC1, of a time
    /// that a frame or an edge latches, and of the system time that a frame reads or brings. Evenly
    /// spread.
    pub jitter: u32,
    /// Where these deviations begin: the same in each run.
    pub seed: u64,
}

impl Default for Oscillator {
    fn default() -> Self {
        Self { initial_time: 0, drift_ppm: 0.0, jitter: 0, seed: 0 }
    }
}

/// DC unit of one SubDevice.
#[derive(Clone, Debug)]
pub(crate) struct DistributedClock {
    clock: LocalClock,
    drift: f64,
    jitter: Jitter,
    counts_64_bits: bool,
    /// Steering by the integral part of the loop, in seconds per second: the deviation of the
    /// clock's period as far as it has been learnt.
    integral: f64,
    mean_difference: f64,
    last_write: Option<Instant>,
    /// SYNC0 and SYNC1, while they are activated.
    pulses: [Option<Pulses>; 2],
    /// Levels of the latch inputs.
    pins: [bool; dc::LATCH_INPUTS],
    /// Ports that latch no receive time.
    stale_ports: [bool; PORTS],
}

/// Deviations of single times, the same in each run that begins with the same state (SplitMix64).
#[derive(Clone, Copy, Debug)]
struct Jitter {
    /// The greatest, ns.
    most: u64,
    state: u64,
}

impl Jitter {
    fn next(&mut self) -> i64 {
        if self.most == 0 {
            return 0;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let spread = (mixed ^ mixed >> 31) % (2 * self.most + 1);
        spread as i64 - self.most as i64
    }
}

/// Signal of the cyclic unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncSignal {
    Sync0,
    Sync1,
}

/// Pulses of a signal.
#[derive(Clone, Copy, Debug)]
struct Pulses {
    /// System time of the next one, and its instant; `None` after the last one.
    next: Option<(u64, Instant)>,
    cycle: u64,
    /// Deviation of the next one, ns.
    off: i64,
}

impl DistributedClock {
    /// State after power-on at `now`.
    pub(crate) fn new(oscillator: Oscillator, counts_64_bits: bool, now: Instant) -> Self {
        let drift = oscillator.drift_ppm * 1e-6;
        Self {
            clock: LocalClock::new(now, oscillator.initial_time, drift),
            drift,
            jitter: Jitter { most: oscillator.jitter.into(), state: oscillator.seed },
            counts_64_bits,
            integral: 0.0,
            mean_difference: 0.0,
            last_write: None,
            pulses: [None; 2],
            pins: [false; dc::LATCH_INPUTS],
            stale_ports: [false; PORTS],
        }
    }

    /// Sets whether a port latches its receive time. If not, the register keeps the time that it
    /// holds.
    pub(crate) fn set_latches(&mut self, port: usize, latches: bool) {
        if let Some(stale) = self.stale_ports.get_mut(port) {
            *stale = !latches;
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

    /// System time as a frame or an edge samples it.
    fn taken_time(&mut self, memory: &Memory, now: Instant) -> u64 {
        let off = self.jitter.next();
        self.visible(self.full_time(memory, now).wrapping_add_signed(off))
    }

    /// System time including the bits that a 32-bit clock does not show.
    fn full_time(&self, memory: &Memory, now: Instant) -> u64 {
        self.clock.read(now).wrapping_add(memory.quad_word(dc::SYSTEM_TIME_OFFSET))
    }

    /// Latches the local times at which the frame passed the open ports, and the processing unit
    /// behind port 0.
    pub(crate) fn latch(&mut self, memory: &mut Memory, passage: &Passage) {
        let processed = self.clock.read(passage.now).wrapping_add_signed(self.jitter.next());
        let processed = self.visible(processed);
        memory.store(dc::RECEIVE_TIME_PROCESSING_UNIT, &processed.to_le_bytes());
        self.latch_ports(memory, passage);
    }

    /// The same for the ports alone.
    pub(crate) fn latch_ports(&mut self, memory: &mut Memory, passage: &Passage) {
        for (port, arrival) in passage.arrivals() {
            if self.stale_ports.get(usize::from(port)) == Some(&true) {
                continue;
            }
            let local = self.clock.read(arrival).wrapping_add_signed(self.jitter.next());
            memory.store(dc::RECEIVE_TIME + 4 * port, &(local as u32).to_le_bytes());
        }
    }

    /// Updates the registers that change by themselves before they are read.
    pub(crate) fn refresh(&mut self, memory: &mut Memory, now: Instant) {
        let time = self.taken_time(memory, now);
        memory.store(dc::SYSTEM_TIME, &time.to_le_bytes());
        for (register, pulses) in [dc::START_TIME, dc::NEXT_SYNC1].into_iter().zip(&self.pulses) {
            if let Some(Pulses { next: Some((next, due)), cycle, .. }) = *pulses {
                // Skip the pulses that were due while the frame was on its way.
                let late = self.full_time(memory, now).saturating_sub(next);
                let passed = if due <= now { late.checked_div(cycle).map_or(0, |it| it + 1) } else { 0 };
                let next = next.wrapping_add(passed.wrapping_mul(cycle));
                memory.store(register, &self.visible(next).to_le_bytes());
            }
        }
    }

    /// Compares a received system time with the local copy and steers the clock (0x0910; ESC data
    /// sheet, section I, 9.1.3.2).
    pub(crate) fn system_time_written(&mut self, memory: &mut Memory, now: Instant, received: &[u8]) {
        let delay = u64::from(memory.double_word(dc::SYSTEM_TIME_DELAY));
        let here = self.taken_time(memory, now).wrapping_sub(delay);
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
        let depth = filter(memory, dc::FILTER_DEPTHS);
        self.mean_difference += (difference - self.mean_difference) / depth;
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

    /// Clears the difference, after a write of offset or delay: earlier differences mean nothing
    /// any more.
    pub(crate) fn reset_difference(&mut self, memory: &mut Memory, now: Instant) {
        self.mean_difference = 0.0;
        self.last_write = None;
        memory.store(dc::SYSTEM_TIME_DIFFERENCE, &[0; 4]);
        self.schedule(memory, now);
    }

    /// Applies a write of the activation register.
    pub(crate) fn activation_written(&mut self, memory: &mut Memory, now: Instant) {
        let activation = memory.byte(dc::ACTIVATION);
        let wanted = [dc::ACTIVATE_SYNC0, dc::ACTIVATE_SYNC1].map(|bits| activation & bits == bits);
        if self.pulses[0].is_none() && wanted[0] {
            self.start(memory, now);
        }
        for (pulses, is_wanted) in self.pulses.iter_mut().zip(wanted) {
            pulses.take_if(|_| !is_wanted);
        }
        let shown = self.pulses.iter().zip([1, 2]).map(|(pulses, bit)| bit * u8::from(pulses.is_some()));
        memory.set_byte(ACTIVATION_STATUS, shown.sum());
    }

    /// Starts the cyclic unit: SYNC0 at the start time, SYNC1 one SYNC1 cycle time after it, and
    /// then after each SYNC0 that follows a SYNC1 (ESC data sheet, section I, 9.2.3.5).
    fn start(&mut self, memory: &Memory, now: Instant) {
        let time = self.full_time(memory, now);
        let start = memory.quad_word(dc::START_TIME);
        // A start time in the past comes again when the counter has wrapped.
        let first = if self.counts_64_bits {
            (start > time).then_some(start)
        } else {
            Some(time.wrapping_add(u64::from((start as u32).wrapping_sub(time as u32))))
        };
        let cycle = u64::from(memory.double_word(dc::SYNC0_CYCLE_TIME));
        let behind = u64::from(memory.double_word(dc::SYNC1_CYCLE_TIME));
        let each = behind.checked_div(cycle).map_or(0, |whole| (whole + 1) * cycle);
        let mut at = |time: Option<u64>, cycle| {
            Some(Pulses { next: time.map(|time| (time, now)), cycle, off: self.jitter.next() })
        };
        self.pulses = [at(first, cycle), at(first.map(|first| first.wrapping_add(behind)), each)];
        (0..self.pulses.len()).for_each(|signal| self.schedule_one(memory, now, signal, LATEST_PULSE));
    }

    /// Cycle time of SYNC0 in ns, if it is active.
    pub(crate) fn sync0_cycle(&self) -> Option<u32> {
        self.pulses[0].map(|pulses| u32::try_from(pulses.cycle).unwrap_or(u32::MAX))
    }

    /// The next pulse and its instant; of two at one instant SYNC0.
    pub(crate) fn sync_due(&self) -> Option<(SyncSignal, Instant)> {
        let due = |signal: SyncSignal| Some((signal, self.pulses[signal as usize]?.next?.1));
        match (due(SyncSignal::Sync0), due(SyncSignal::Sync1)) {
            (Some(sync0), Some(sync1)) if sync1.1 < sync0.1 => Some(sync1),
            (sync0, sync1) => sync0.or(sync1),
        }
    }

    /// Takes the next pulse of a signal, which is due: returns its system time, and schedules the
    /// following one.
    pub(crate) fn take_sync(&mut self, memory: &Memory, signal: SyncSignal) -> Option<u64> {
        let pulses = self.pulses[signal as usize].as_mut()?;
        let (system_time, due) = pulses.next?;
        // No application follows pulses closer than this; the ones in between are left out.
        let cycles = if pulses.cycle == 0 { 0 } else { SHORTEST_CYCLE.div_ceil(pulses.cycle) };
        pulses.next = (cycles > 0).then(|| (system_time.wrapping_add(pulses.cycle * cycles), due));
        pulses.off = self.jitter.next();
        // A frame on its way here may have read or steered the clock at a later time already: no
        // pulse is lost by that.
        self.schedule_one(memory, due, signal as usize, LONGEST_WAY);
        Some(self.visible(system_time))
    }

    /// Skips the pulses before `now`, keeping their grid.
    pub(crate) fn skip_sync(&mut self, memory: &Memory, now: Instant) {
        let time = self.full_time(memory, now);
        for pulses in self.pulses.iter_mut().flatten() {
            if let Pulses { next: Some((next, due)), cycle: cycle @ 1.., .. } = pulses {
                if *due < now {
                    *next =
                        next.wrapping_add(time.wrapping_sub(*next).div_ceil(*cycle).wrapping_mul(*cycle));
                }
            }
        }
        (0..self.pulses.len()).for_each(|signal| self.schedule_one(memory, now, signal, LATEST_PULSE));
    }

    /// Computes the instants of the next pulses again. Pulses due by `now`, when a delayed frame
    /// arrives, remain to be taken.
    fn schedule(&mut self, memory: &Memory, now: Instant) {
        for signal in 0..self.pulses.len() {
            let due = self.pulses[signal].and_then(|pulses| pulses.next).map(|(_, due)| due);
            if due.is_some_and(|due| due > now) {
                self.schedule_one(memory, now, signal, LATEST_PULSE);
            }
        }
    }

    fn schedule_one(&mut self, memory: &Memory, now: Instant, signal: usize, latest: u64) {
        let Some(Pulses { next: Some((system_time, _)), off, .. }) = self.pulses[signal] else { return };
        let next = self.scheduled(memory, now, (system_time, off), latest);
        if let Some(pulses) = &mut self.pulses[signal] {
            pulses.next = next;
        }
    }

    /// Instant of a pulse. A pulse in the past by at most `latest` ns occurs at once; a pulse that
    /// the system time has jumped over occurs when the counter has wrapped.
    fn scheduled(
        &self,
        memory: &Memory,
        now: Instant,
        (system_time, off): (u64, i64),
        latest: u64,
    ) -> Option<(u64, Instant)> {
        let time = self.full_time(memory, now);
        let late = time.wrapping_sub(system_time);
        let to_come = late as i64 <= 0;
        if to_come {
            let ahead = late.wrapping_neg().saturating_add_signed(off);
            let local = self.clock.read(now).wrapping_add(ahead);
            Some((system_time, self.clock.instant_of(local, now)))
        } else if late <= latest {
            Some((system_time, now))
        } else if self.counts_64_bits {
            None
        } else {
            let ahead = u64::from((system_time as u32).wrapping_sub(time as u32));
            let local = self.clock.read(now).wrapping_add(ahead);
            Some((time.wrapping_add(ahead), self.clock.instant_of(local, now)))
        }
    }

    /// Takes over the levels of the latch inputs and the stale ports, from before a restart:
    /// without an edge.
    pub(crate) fn keep_pins(&mut self, memory: &mut Memory, before: &Self) {
        (self.pins, self.stale_ports) = (before.pins, before.stale_ports);
        for (place, &high) in (0..).zip(&self.pins) {
            memory.set_byte(dc::LATCH_STATUS + place, u8::from(high) << 2);
        }
    }

    /// Sets the level of a latch input: an edge latches the system time, a single one only if none
    /// is held (ESC data sheet, section I, 9.2.4).
    pub(crate) fn set_pin(&mut self, memory: &mut Memory, now: Instant, input: usize, high: bool) {
        if input >= self.pins.len() || std::mem::replace(&mut self.pins[input], high) == high {
            return;
        }
        let (edge, place) = (usize::from(!high), input as u16);
        let single = memory.byte(dc::LATCH_CONTROL + place) >> edge & 1;
        let held = memory.byte(dc::LATCH_STATUS + place) & 0x03;
        if held >> edge & 1 == 0 {
            let register = dc::LATCH_TIMES + (2 * place + edge as u16) * 8;
            let time = self.taken_time(memory, now);
            memory.store(register, &time.to_le_bytes());
        }
        memory.set_byte(dc::LATCH_STATUS + place, held | single << edge | u8::from(high) << 2);
    }

    /// Releases the edges with times that were read, at inputs that belong to the fieldbus.
    pub(crate) fn latch_times_read(memory: &mut Memory, was_read: impl Fn(u16) -> bool) {
        for (place, edge) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let is_ours = memory.byte(dc::CYCLIC_UNIT_CONTROL) >> (4 + place) & 1 == 0;
            if is_ours && was_read(dc::LATCH_TIMES + (2 * place + edge) * 8) {
                let status = memory.byte(dc::LATCH_STATUS + place);
                memory.set_byte(dc::LATCH_STATUS + place, status & !(1 << edge));
            }
        }
    }

    /// True while an edge is held that the fieldbus may read (0x0210 bit 0).
    pub(crate) fn holds_edge(memory: &Memory) -> bool {
        let control = memory.byte(dc::CYCLIC_UNIT_CONTROL);
        let held = |place: u16| memory.byte(dc::LATCH_STATUS + place) & 0x03 != 0;
        (0..2).any(|place| control >> (4 + place) & 1 == 0 && held(place))
    }

    fn steer(&mut self, memory: &mut Memory, now: Instant, difference: f64) {
        let start = f64::from(memory.word(dc::SPEED_COUNTER_START)).max(SPEED_COUNTER_MARGIN + 1.0);
        let limit = deviation(start, start - SPEED_COUNTER_MARGIN);
        let interval = self.last_write.map_or(0.0, |last| now.since(last).as_nanos() as f64);
        self.last_write = Some(now);
        // Time constant of the loop: a fixed number of ns, but never near the interval between two
        // writes.
        let bandwidth = start / f64::from(dc::SPEED_COUNTER_START_DEFAULT);
        let time_constant = bandwidth.max(0.1) * TIME_CONSTANT.max(interval * 8.0);
        let proportional = -difference / time_constant;
        if (self.integral + proportional).abs() < limit {
            let depth = filter(memory, dc::FILTER_DEPTHS + 1);
            self.integral += proportional * (interval / time_constant).min(1.0 / depth);
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

/// Activation status: bits 0 and 1 are set while the first SYNC0 or SYNC1 is pending or cyclic
/// operation runs.
const ACTIVATION_STATUS: u16 = 0x0984;

/// Latest pulse that is still made up for, in ns; steering moves the clock by far less.
const LATEST_PULSE: u64 = 100_000;

/// The same if it was due while a frame was on its way, in ns: longer than the travel through
/// 65,535 SubDevices. Earlier pulses were skipped by a time jump.
const LONGEST_WAY: u64 = 100_000_000;

/// Shortest cycle of SYNC0 and SYNC1, in ns of system time.
const SHORTEST_CYCLE: u64 = 10_000;

/// Values that the filter at this register averages over: two to the power of its depth.
fn filter(memory: &Memory, register: u16) -> f64 {
    f64::from(1_u32 << (memory.byte(register) & 0x0F))
}

/// Rate error, in seconds per second, that a speed counter difference causes (ESC data sheet,
/// section II, 2.22.3: the clock adds a ns each `start - difference + 2` and drops one each `start
/// + difference + 2` ticks of 10 ns).
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
mod tests;
