//! Encoding of a state in words. `docs/ipc.md` has the table for other languages.

use super::{
    Axis, Base, Bus, CommandState, Control, Freshness, Signal, SignalCounters, Spread, State, Timing,
    TrajectoryStatus,
};
use crate::region::{Kind, magic};

/// Region of states.
pub(crate) const REGION: Kind = Kind { name: "onbeat-state", magic: magic(*b"ST"), version: 3, slots: 8 };

/// Rows behind the fixed words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) axes: usize,
    pub(crate) signals: usize,
}

/// Words of a state with these rows.
pub(crate) const fn length(rows: Rows) -> usize {
    FIXED + rows.axes * AXIS + rows.signals * SIGNAL
}

/// Encodes a state into words of these rows; axes and signals without a row are left out, missing ones are zeros.
pub(crate) fn encode(state: &State, rows: Rows, words: &mut [u64]) {
    let State { cycle, release_ns, bus, timing, command, control, base, axes, signals, signal_counters } =
        state;
    let [wakeup, jitter, execution] =
        [&timing.wakeup_latency, &timing.period_jitter, &timing.execution].map(spread_words);
    let fixed: [&[u64]; 9] = [
        &[*cycle, *release_ns],
        &[
            u64::from(bus.stage)
                | u64::from(bus.all_fresh) << 8
                | u64::from(bus.working_counter_errors) << 16,
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
        &[
            u64::from(control.active)
                | u64::from(control.enabled) << 16
                | (control.trajectory_status as u64) << 24,
            control.trajectory,
            control.trajectory_elapsed_ns,
        ],
    ];
    let base = base.pose.iter().chain(&base.twist).map(|number| number.to_bits());
    let SignalCounters { clamped, refused } = *signal_counters;
    let last = [rows.axes as u64, rows.signals as u64, clamped, refused];
    let fixed = fixed.into_iter().flatten().copied().chain(base).chain(last);
    let (head, rest) = words.split_at_mut(FIXED.min(words.len()));
    for (word, value) in head.iter_mut().zip(fixed) {
        *word = value;
    }
    let (axis_rows, signal_rows) = rest.split_at_mut((rows.axes * AXIS).min(rest.len()));
    put(axis_rows, axes, axis_words);
    put(signal_rows, signals, signal_words);
}

/// Row by row: word by word the compiler emits three times as many instructions, in every cycle.
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
pub(crate) fn decode(words: &[u64], state: &mut State) {
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
        stage: fixed[2] as u8,
        all_fresh: fixed[2] >> 8 & 1 != 0,
        working_counter_errors: (fixed[2] >> 16) as u16,
        frames_sent: fixed[3],
        frames_accepted: fixed[4],
        frames_lost: fixed[5],
        frames_rejected: fixed[6],
        broken_cycles: fixed[7],
        clock_difference_ns: fixed[8],
        link_errors: fixed[9],
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
    };
    state.control = Control {
        active: fixed[31] as u16,
        enabled: fixed[31] >> 16 & 1 != 0,
        trajectory_status: trajectory_status((fixed[31] >> 24) as u8),
        trajectory: fixed[32],
        trajectory_elapsed_ns: fixed[33],
    };
    state.base =
        Base { pose: [number(34), number(35), number(36)], twist: [number(37), number(38), number(39)] };
    state.signal_counters = SignalCounters { clamped: fixed[42], refused: fixed[43] };
    let rest = words.get(FIXED..).unwrap_or_default();
    // Numbers of rows that the region has no room for are those of another program.
    let axes = usize::try_from(fixed[40]).unwrap_or(usize::MAX).min(rest.len() / AXIS);
    let (axis_rows, rest) = rest.split_at(axes * AXIS);
    let signals = usize::try_from(fixed[41]).unwrap_or(usize::MAX).min(rest.len() / SIGNAL);
    state.axes.clear();
    state.axes.extend(axis_rows.chunks_exact(AXIS).map(axis));
    state.signals.clear();
    state.signals.extend(rest.chunks_exact(SIGNAL).take(signals).map(signal));
}

pub(crate) fn signal_words(signal: &Signal) -> [u64; SIGNAL] {
    [signal.word, u64::from(signal.fresh) | u64::from(signal.forced) << 1]
}

pub(crate) fn signal(words: &[u64]) -> Signal {
    Signal { word: words[0], fresh: words[1] & 1 != 0, forced: words[1] & 2 != 0 }
}

fn spread_words(spread: &Spread) -> [u64; 4] {
    [spread.last_ns, spread.minimum_ns, spread.maximum_ns, spread.mean_ns]
}

pub(crate) fn axis_words(axis: &Axis) -> [u64; AXIS] {
    [
        u64::from(axis.drive_state)
            | u64::from(axis.phase) << 8
            | u64::from(axis.fresh) << 16
            | u64::from(axis.homed) << 24
            | u64::from(axis.stop) << 32,
        axis.position.to_bits(),
        axis.velocity.to_bits(),
        axis.effort.to_bits(),
        axis.target_position.to_bits(),
        axis.target_velocity.to_bits(),
        axis.target_effort.to_bits(),
    ]
}

pub(crate) fn axis(words: &[u64]) -> Axis {
    let number = |index: usize| f64::from_bits(words[index]);
    Axis {
        drive_state: words[0] as u8,
        phase: (words[0] >> 8) as u8,
        fresh: words[0] >> 16 & 1 != 0,
        homed: words[0] >> 24 & 1 != 0,
        stop: (words[0] >> 32) as u8,
        position: number(1),
        velocity: number(2),
        effort: number(3),
        target_position: number(4),
        target_velocity: number(5),
        target_effort: number(6),
    }
}

pub(crate) fn freshness(code: u8) -> Freshness {
    match code {
        1 => Freshness::Fresh,
        2 => Freshness::Stale,
        _ => Freshness::Never,
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
const FIXED: usize = 44;

/// Words of an axis.
pub(crate) const AXIS: usize = 7;

/// Words of a signal.
pub(crate) const SIGNAL: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Rows = Rows { axes: 2, signals: 2 };

    /// State with a different value in every field.
    fn every_field() -> State {
        let spread = |n| Spread { last_ns: n, minimum_ns: n + 1, maximum_ns: n + 2, mean_ns: n + 3 };
        let axis = |n: u8| Axis {
            drive_state: n,
            phase: n + 1,
            fresh: n % 2 == 0,
            homed: n % 2 == 1,
            stop: n + 2,
            position: f64::from(n) + 0.1,
            velocity: f64::from(n) + 0.2,
            effort: f64::from(n) + 0.3,
            target_position: f64::from(n) + 0.4,
            target_velocity: f64::from(n) + 0.5,
            target_effort: f64::from(n) + 0.6,
        };
        State {
            cycle: 1,
            release_ns: 2,
            bus: Bus {
                stage: 3,
                all_fresh: true,
                working_counter_errors: 4,
                frames_sent: 5,
                frames_accepted: 6,
                frames_lost: 7,
                frames_rejected: 8,
                broken_cycles: 9,
                clock_difference_ns: 10,
                link_errors: 11,
            },
            timing: Timing {
                cycles: 12,
                wakeup_latency: spread(13),
                period_jitter: spread(17),
                execution: spread(21),
                overruns: 25,
                skipped: 26,
                last_overrun: 27,
            },
            command: CommandState {
                sequence: 28,
                stamp_ns: 29,
                freshness: Freshness::Stale,
                accepted: 30,
                refused: 31,
                last_refusal: 32,
                last_refused_axis: u16::MAX,
                last_refused_signal: 0x1234,
            },
            control: Control {
                active: 33,
                enabled: true,
                trajectory: 34,
                trajectory_status: TrajectoryStatus::Canceled,
                trajectory_elapsed_ns: 35,
            },
            base: Base { pose: [36.5, 37.5, 38.5], twist: [39.5, 40.5, 41.5] },
            axes: vec![axis(42), axis(53)],
            signals: vec![
                Signal { word: 64, fresh: true, forced: false },
                Signal { word: u64::MAX, fresh: false, forced: true },
            ],
            signal_counters: SignalCounters { clamped: 65, refused: 66 },
        }
    }

    #[test]
    fn every_field_comes_back() {
        let state = every_field();
        let mut words = vec![u64::MAX; length(TWO)];
        encode(&state, TWO, &mut words);
        let mut back = State::default();
        decode(&words, &mut back);
        assert_eq!(back, state);
        // Numbers of rows that cannot be are cut.
        words[41] = 1 << 40;
        words[40] = u64::MAX;
        decode(&words, &mut back);
        assert_eq!((back.axes.len(), back.signals.len()), (2, 2));
        decode(&words[..3], &mut back);
        assert_eq!((back.cycle, back.axes.len()), (1, 0));
    }

    #[test]
    fn enumerations_come_back() {
        for freshness in [Freshness::Never, Freshness::Fresh, Freshness::Stale] {
            for trajectory_status in [
                TrajectoryStatus::None,
                TrajectoryStatus::Executing,
                TrajectoryStatus::Succeeded,
                TrajectoryStatus::Aborted,
                TrajectoryStatus::Canceled,
            ] {
                let mut state = every_field();
                state.command.freshness = freshness;
                state.control.trajectory_status = trajectory_status;
                let mut words = vec![0; length(TWO)];
                encode(&state, TWO, &mut words);
                let mut back = State::default();
                decode(&words, &mut back);
                assert_eq!(back, state);
            }
        }
    }

    #[test]
    fn another_number_of_axes_than_the_region_has_is_cut_or_filled_with_zeros() {
        let three = Rows { axes: 3, signals: 3 };
        let mut words = vec![u64::MAX; length(three)];
        encode(&every_field(), three, &mut words);
        let mut back = State::default();
        decode(&words, &mut back);
        assert_eq!(back.axes[..2], every_field().axes);
        assert_eq!(back.axes[2], Axis::default());
        assert_eq!(back.signals[..2], every_field().signals);
        assert_eq!(back.signals[2], Signal::default());
        let one = Rows { axes: 1, signals: 1 };
        let mut words = vec![u64::MAX; length(one)];
        encode(&every_field(), one, &mut words);
        decode(&words, &mut back);
        assert_eq!(back.axes, every_field().axes[..1]);
        assert_eq!(back.signals, every_field().signals[..1]);
    }
}
