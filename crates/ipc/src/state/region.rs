//! Region of states: a state in words, and both ends. `docs/ipc.md` has the table of words for
//! other languages.

mod axis;

use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::{
    Axis, Base, Bus, Clock, CommandState, Control, Freshness, Interlock, ProcessState, Signal,
    SignalCounters, Spread, State, Timing, TrajectoryStatus,
};
use crate::cell::{self, Found};
use crate::region::{self, Kind, Region, RegionError, Written, magic};
use crate::sys::mapping::Use;
use axis::DETAILS;

pub use axis::{AXIS, decode_axes};
pub(crate) use axis::{axis, axis_words};

/// The cycle's end.
#[derive(Debug)]
pub struct Writer {
    cell: cell::Writer<Region>,
    scratch: Box<[u64]>,
    rows: Rows,
}

impl Writer {
    /// Makes the region, and the descriptor its readers map it by.
    pub(crate) fn make(rows: Rows) -> io::Result<(Self, OwnedFd)> {
        let length = rows.words();
        let (region, file) = Region::make(REGION, length, Written::ByMaker)?;
        Ok((Self { cell: region::writer(region)?, scratch: vec![0; length].into(), rows }, file))
    }

    /// A state with as many axes, signals and interlocks as the description has.
    #[must_use]
    pub fn blank(&self) -> State {
        self.rows.blank()
    }

    /// Axes, signals and interlocks of the description.
    #[must_use]
    pub const fn rows(&self) -> Rows {
        self.rows
    }

    /// Publishes a state to all readers, in place of the former one. Axes and signals beyond the
    /// description are left out; missing ones are zeros.
    ///
    /// Never waits, never notices a reader, makes no system call and allocates nothing.
    #[inline]
    pub fn publish(&mut self, state: &State) {
        encode(state, self.rows, &mut self.scratch);
        self.cell.publish(&self.scratch);
    }

    /// The same with a state that [`encode`] has put into words for [`Writer::rows`].
    #[inline]
    pub fn publish_words(&mut self, words: &[u64]) {
        self.cell.publish(words);
    }
}

/// A reader's end, for any number of threads and processes.
#[derive(Clone, Debug)]
pub struct Reader {
    cell: cell::Reader<Arc<Region>>,
}

impl Reader {
    pub(crate) fn open(file: BorrowedFd<'_>) -> Result<Self, RegionError> {
        let region = Region::open(REGION, file, Use::Load)?;
        let shape = region.shape();
        let least = Rows::default().words();
        if shape.words() < least {
            return Err(RegionError::Other(region::Other {
                region: REGION.name,
                what: "publication's words, at least",
                expected: least as u64,
                found: shape.words() as u64,
            }));
        }
        Ok(Self { cell: region::reader(Arc::new(region), shape)? })
    }

    /// Reads the newest state, all of one cycle. After the cycle's end or death it is the last one
    /// published.
    ///
    /// # Errors
    /// No whole state could be read.
    pub fn read(&self) -> Result<State, ReadError> {
        let mut state = State::default();
        self.read_into(&mut state).map(|()| state)
    }

    /// Reads as [`Reader::read`] does, into an existing state, which is unchanged on an error.
    ///
    /// # Errors
    /// No whole state could be read.
    pub fn read_into(&self, state: &mut State) -> Result<(), ReadError> {
        self.copied(|cell, copy| match cell.read(copy, ATTEMPTS) {
            Found::Nothing => Err(ReadError::Nothing),
            Found::Torn(_) => Err(ReadError::Torn),
            Found::Whole(_) => {
                decode(copy, state);
                Ok(())
            }
        })
    }

    /// Reads the oldest available state published after number `after` into an existing state, and
    /// returns its number; `None` if there is no newer one, or none was consistent in many
    /// attempts. The numbers between were overwritten before they were read: a reader that polls
    /// again within [`Reader::kept`] cycles gets every cycle.
    pub fn read_next(&self, after: u64, state: &mut State) -> Option<u64> {
        self.copied(|cell, copy| {
            for _ in 0..ATTEMPTS {
                let newest = cell.newest();
                let number = after.checked_add(1)?.max(newest.saturating_sub(self.kept() - 1));
                if number > newest {
                    return None;
                }
                if cell.read_number(number, copy) {
                    decode(copy, state);
                    return Some(number);
                }
                std::hint::spin_loop();
            }
            None
        })
    }

    /// Number of states, the newest among them, that are there to be read at any time.
    #[must_use]
    pub fn kept(&self) -> u64 {
        // The writer is at work in the slot of the oldest.
        self.cell.shape().slots() as u64 - 1
    }

    /// Has a publication copied to words of its length.
    fn copied<T>(&self, copy: impl FnOnce(&cell::Reader<Arc<Region>>, &mut [u64]) -> T) -> T {
        let length = self.cell.shape().words();
        // On the stack for a robot of up to 24 axes with 100 signals.
        let mut few = [0; 670];
        match few.get_mut(..length) {
            Some(few) => copy(&self.cell, few),
            None => copy(&self.cell, &mut vec![0; length]),
        }
    }

    /// Number of states published so far; if it no longer grows, the cycle has stopped.
    #[must_use]
    pub fn heartbeat(&self) -> u64 {
        self.cell.newest()
    }
}

/// Reason for a missing state or missing diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing was published yet.
    #[error("the cycle has published nothing yet: wait for its first cycle")]
    Nothing,
    /// No attempt gave a whole publication.
    #[error(
        "no whole publication in {ATTEMPTS} attempts: this process gets too little CPU time; try again"
    )]
    Torn,
}

types::debug_is_sentence!(ReadError);

/// Attempts of one read. The writer laps a reader only once in as many cycles as there are slots,
/// less one.
pub(super) const ATTEMPTS: u32 = 64;

/// Region of states.
pub(crate) const REGION: Kind = Kind { name: "onbeat-state", magic: magic(*b"ST"), version: 7, slots: 8 };

/// Rows of a state in words, behind its fixed words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Number of axes.
    pub axes: usize,
    /// Number of signals.
    pub signals: usize,
    /// Number of interlocks.
    pub interlocks: usize,
}

impl Rows {
    /// Number of words of a state with these rows.
    #[must_use]
    pub const fn words(self) -> usize {
        FIXED + self.axes * AXIS + self.signals * SIGNAL + self.interlocks
    }

    /// A state with these rows.
    #[must_use]
    pub fn blank(self) -> State {
        State {
            axes: vec![Axis::default(); self.axes],
            signals: vec![Signal::default(); self.signals],
            interlocks: vec![Interlock::default(); self.interlocks],
            ..State::default()
        }
    }

    /// Words of that state.
    #[must_use]
    pub fn blank_words(self) -> Vec<u64> {
        let mut words = vec![0; self.words()];
        encode(&self.blank(), self, &mut words);
        words
    }

    /// Place of the words of all axes.
    #[must_use]
    pub const fn of_axes(self) -> Range<usize> {
        FIXED..FIXED + self.axes * AXIS
    }

    /// Place of the words of an axis, without its [`super::AxisDetails`].
    #[must_use]
    pub const fn of_axis(self, axis: usize) -> Range<usize> {
        let begin = FIXED + axis * AXIS;
        begin..begin + AXIS - DETAILS
    }

    /// Place of the words of a signal.
    #[must_use]
    pub const fn of_signal(self, signal: usize) -> Range<usize> {
        let begin = self.of_axes().end + signal * SIGNAL;
        begin..begin + SIGNAL
    }
}

/// Encodes a state into words of these rows, as all readers of a cycle get it; axes and signals
/// without a row are left out, missing ones are zeros. Allocates nothing.
#[inline]
pub fn encode(state: &State, rows: Rows, words: &mut [u64]) {
    let State {
        cycle,
        release_ns,
        bus,
        clock,
        timing,
        command,
        control,
        base,
        axes,
        signals,
        signal_counters,
        interlocks,
    } = state;
    let control = control_words(control);
    let [wakeup, jitter, execution] =
        [&timing.wakeup_latency, &timing.period_jitter, &timing.execution].map(spread_words);
    let fixed: [&[u64]; 9] = [
        &[*cycle, *release_ns],
        &[
            u64::from(bus.phase)
                | u64::from(bus.all_fresh) << 8
                | u64::from(bus.working_counter_errors) << 16
                | u64::from(bus.absent) << 32,
            bus.frames_sent,
            bus.frames_accepted,
            bus.frames_lost,
            bus.frames_rejected,
            bus.broken_cycles,
            bus.clock_difference_ns,
            bus.link_errors,
        ],
        &[timing.cycles],
        &wakeup,
        &jitter,
        &execution,
        &[timing.overruns, timing.skipped, timing.last_overrun],
        &[
            command.sequence,
            command.stamp_ns,
            command.freshness as u64
                | u64::from(command.last_refusal) << 8
                | u64::from(command.last_refused_axis) << 16
                | u64::from(command.last_refused_signal) << 32,
            command.accepted,
            command.refused,
        ],
        &control,
    ];
    let base = base.pose.iter().chain(&base.twist).map(|number| number.to_bits());
    let SignalCounters { clamped, refused } = *signal_counters;
    let last = [
        rows.axes as u64,
        rows.signals as u64,
        clamped,
        refused,
        command.clamped,
        u64::from(command.last_clamp) | u64::from(command.last_clamped_axis) << 16,
        u64::from(clock.lock) | u64::from(clock.fresh) << 8,
        clock.difference_ns as u64,
        clock.frame_phase_ns,
        clock.phase_error_ns as u64,
        clock.drift_ppb as u64,
        clock.losses,
        rows.interlocks as u64,
    ];
    let fixed = fixed.into_iter().flatten().copied().chain(base).chain(last);
    let (head, rest) = words.split_at_mut(FIXED.min(words.len()));
    for (word, value) in head.iter_mut().zip(fixed) {
        *word = value;
    }
    let (axis_rows, rest) = rest.split_at_mut((rows.axes * AXIS).min(rest.len()));
    let (signal_rows, interlock_rows) = rest.split_at_mut((rows.signals * SIGNAL).min(rest.len()));
    put(axis_rows, axes, axis_words);
    put(signal_rows, signals, signal_words);
    put(interlock_rows, interlocks, |it| [u64::from(it.level) | u64::from(it.permits) << 8]);
}

/// Row by row: word by word the compiler emits three times as many instructions, in every cycle.
#[inline]
pub(crate) fn put<T, const WORDS: usize>(
    rows: &mut [u64],
    items: &[T],
    encoded: impl Fn(&T) -> [u64; WORDS],
) {
    let (told, missing) = rows.split_at_mut((WORDS * items.len()).min(rows.len() / WORDS * WORDS));
    for (row, item) in told.chunks_exact_mut(WORDS).zip(items) {
        row.copy_from_slice(&encoded(item));
    }
    missing.fill(0);
}

/// Decodes a state from words, without allocating if `state` has had as many axes before.
pub fn decode(words: &[u64], state: &mut State) {
    // A region of this layout has all fixed words; with fewer, the rest is 0.
    let mut fixed = [0; FIXED];
    for (copy, &word) in fixed.iter_mut().zip(words) {
        *copy = word;
    }
    let number = |index: usize| f64::from_bits(fixed[index]);
    let spread = |at: usize| Spread {
        last_ns: fixed[at],
        minimum_ns: fixed[at + 1],
        maximum_ns: fixed[at + 2],
        mean_ns: fixed[at + 3],
    };
    state.cycle = fixed[0];
    state.release_ns = fixed[1];
    state.bus = Bus {
        phase: fixed[2] as u8,
        all_fresh: fixed[2] >> 8 & 1 != 0,
        working_counter_errors: (fixed[2] >> 16) as u16,
        absent: (fixed[2] >> 32) as u16,
        frames_sent: fixed[3],
        frames_accepted: fixed[4],
        frames_lost: fixed[5],
        frames_rejected: fixed[6],
        broken_cycles: fixed[7],
        clock_difference_ns: fixed[8],
        link_errors: fixed[9],
    };
    state.clock = Clock {
        lock: fixed[46] as u8,
        fresh: fixed[46] >> 8 & 1 != 0,
        difference_ns: fixed[47] as i64,
        frame_phase_ns: fixed[48],
        phase_error_ns: fixed[49] as i64,
        drift_ppb: fixed[50] as i64,
        losses: fixed[51],
    };
    state.timing = Timing {
        cycles: fixed[10],
        wakeup_latency: spread(11),
        period_jitter: spread(15),
        execution: spread(19),
        overruns: fixed[23],
        skipped: fixed[24],
        last_overrun: fixed[25],
    };
    state.command = CommandState {
        sequence: fixed[26],
        stamp_ns: fixed[27],
        freshness: freshness(fixed[28] as u8),
        last_refusal: (fixed[28] >> 8) as u8,
        last_refused_axis: (fixed[28] >> 16) as u16,
        last_refused_signal: (fixed[28] >> 32) as u16,
        accepted: fixed[29],
        refused: fixed[30],
        clamped: fixed[44],
        last_clamp: fixed[45] as u8,
        last_clamped_axis: (fixed[45] >> 16) as u16,
    };
    state.control = control_of(&fixed[31..]);
    state.base =
        Base { pose: [number(34), number(35), number(36)], twist: [number(37), number(38), number(39)] };
    state.signal_counters = SignalCounters { clamped: fixed[42], refused: fixed[43] };
    let rest = words.get(FIXED..).unwrap_or_default();
    // Numbers of rows beyond the size of the region come from another program.
    let axes = usize::try_from(fixed[40]).unwrap_or(usize::MAX).min(rest.len() / AXIS);
    let (axis_rows, rest) = rest.split_at(axes * AXIS);
    let signals = usize::try_from(fixed[41]).unwrap_or(usize::MAX).min(rest.len() / SIGNAL);
    let (signal_rows, rest) = rest.split_at(signals * SIGNAL);
    let interlocks = usize::try_from(fixed[52]).unwrap_or(usize::MAX).min(rest.len());
    state.axes.clear();
    state.axes.extend(decode_axes(axis_rows));
    state.signals.clear();
    state.signals.extend(signal_rows.chunks_exact(SIGNAL).map(signal));
    let interlock = |&word: &u64| Interlock { level: word as u8, permits: word >> 8 & 1 != 0 };
    state.interlocks.clear();
    state.interlocks.extend(rest[..interlocks].iter().map(interlock));
}

#[inline]
pub(crate) fn signal_words(signal: &Signal) -> [u64; SIGNAL] {
    [signal.word, u64::from(signal.fresh) | u64::from(signal.forced) << 1]
}

pub(crate) fn signal(words: &[u64]) -> Signal {
    Signal { word: words[0], fresh: words[1] & 1 != 0, forced: words[1] & 2 != 0 }
}

#[inline]
fn spread_words(spread: &Spread) -> [u64; 4] {
    [spread.last_ns, spread.minimum_ns, spread.maximum_ns, spread.mean_ns]
}

pub(crate) fn freshness(code: u8) -> Freshness {
    match code {
        1 => Freshness::Fresh,
        2 => Freshness::Stale,
        _ => Freshness::Never,
    }
}

fn control_words(control: &Control) -> [u64; 3] {
    let Control { active, enabled, process, trajectory, trajectory_status, trajectory_elapsed_ns } =
        *control;
    let first = u64::from(active)
        | u64::from(enabled) << 16
        | (process as u64) << 17
        | (trajectory_status as u64) << 24;
    [first, trajectory, trajectory_elapsed_ns]
}

fn control_of(words: &[u64]) -> Control {
    Control {
        active: words[0] as u16,
        enabled: words[0] >> 16 & 1 != 0,
        process: process_state(words[0] >> 17 & 0b111),
        trajectory_status: trajectory_status((words[0] >> 24) as u8),
        trajectory: words[1],
        trajectory_elapsed_ns: words[2],
    }
}

fn process_state(code: u64) -> ProcessState {
    match code {
        1 => ProcessState::Absent,
        2 => ProcessState::Attached,
        3 => ProcessState::Answering,
        4 => ProcessState::Failing,
        _ => ProcessState::InCycle,
    }
}

fn trajectory_status(code: u8) -> TrajectoryStatus {
    match code {
        1 => TrajectoryStatus::Executing,
        2 => TrajectoryStatus::Succeeded,
        3 => TrajectoryStatus::Aborted,
        4 => TrajectoryStatus::Canceled,
        _ => TrajectoryStatus::None,
    }
}

/// Words before the axes.
const FIXED: usize = 53;

/// Words of a signal.
pub(crate) const SIGNAL: usize = 2;

#[cfg(test)]
mod tests;
