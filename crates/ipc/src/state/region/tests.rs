//! States to words and back.

use super::*;
use crate::state::{AxisDetails, AxisMode, CyclicMode, ProcessState};

const TWO: Rows = Rows { axes: 2, signals: 2, interlocks: 2 };

/// State with a different value in every field.
fn every_field() -> State {
    let spread = |n| Spread { last_ns: n, minimum_ns: n + 1, maximum_ns: n + 2, mean_ns: n + 3 };
    let axis = |n: u8| Axis {
        drive_state: n,
        phase: n + 1,
        fresh: n % 2 == 0,
        homed: n % 2 == 1,
        ended: n % 3 == 0,
        memory_error: n % 100 + 28,
        stop: n + 2,
        quick_stop: n % 7 + 1,
        stopped_with: Some(u16::from(n) + 3),
        mode: -(n as i8),
        position: f64::from(n) + 0.1,
        velocity: f64::from(n) + 0.2,
        effort: f64::from(n) + 0.3,
        target_position: f64::from(n) + 0.4,
        target_velocity: f64::from(n) + 0.5,
        target_effort: f64::from(n) + 0.6,
        interlock: Some(u16::from(n) + 4),
        brake_input: Some(u16::from(n) + 7),
        brake_level: n % 6,
        error_code: u16::from(n) + 5,
        stalled: u32::from(n) + 6,
        details: AxisDetails {
            statusword: 0xFFFF - u16::from(n),
            is_mode_known: n % 2 == 0,
            measures_torque: n % 2 == 1,
            is_absent: n % 3 == 0,
            is_homing: n % 4 < 2,
            was_enabled: n % 5 < 3,
            homed_by_hand: u32::MAX - u32::from(n),
            missed: u32::from(n) + 8,
            waits: u32::MAX - u32::from(n) - 9,
            held: u32::from(n) + 10,
            counts: (n % 2 == 0).then_some((i32::MIN + i32::from(n), -0.5)),
            holds_at: f64::from(n) + 0.7,
            overshoot: (n % 2 == 1).then_some(f64::from(n) + 0.8),
            moved: (n % 2 == 0).then_some([f64::from(n) + 0.9, f64::from(n) + 1.1]),
            interlock_level: n % 6,
            interlock_permits: n % 7 < 4,
            ignored: AxisMode::ALL.get(usize::from(n) % 10).map(|&mode| (mode, CyclicMode::Torque)),
        },
    };
    State {
        cycle: 1,
        release_ns: 2,
        bus: Bus {
            phase: 3,
            all_fresh: true,
            working_counter_errors: 4,
            absent: 75,
            frames_sent: 5,
            frames_accepted: 6,
            frames_lost: 7,
            frames_rejected: 8,
            broken_cycles: 9,
            clock_difference_ns: 10,
            link_errors: 11,
        },
        clock: Clock {
            lock: 69,
            fresh: true,
            difference_ns: -70,
            frame_phase_ns: 71,
            phase_error_ns: -72,
            drift_ppb: -73,
            losses: 74,
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
            clamped: 67,
            last_clamp: 68,
            last_clamped_axis: 0x4321,
        },
        control: Control {
            active: 33,
            enabled: true,
            process: ProcessState::Answering,
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
        interlocks: vec![Interlock { level: 76, permits: true }, Interlock { level: 77, permits: false }],
    }
}

#[test]
fn every_ignored_set_point_comes_back() {
    for mode in AxisMode::ALL {
        for given in CyclicMode::ALL {
            let details = AxisDetails { ignored: Some((mode, given)), ..AxisDetails::default() };
            let axis = Axis { details, ..Axis::default() };
            assert_eq!(super::axis(&axis_words(&axis)), axis);
        }
    }
    let mut words = axis_words(&Axis::default());
    words[8] |= 0xFF << 28;
    assert_eq!(axis(&words).details.ignored, None, "codes of no mode");
}

#[test]
fn every_field_comes_back() {
    let state = every_field();
    let mut words = vec![u64::MAX; TWO.words()];
    encode(&state, TWO, &mut words);
    let mut back = State::default();
    decode(&words, &mut back);
    assert_eq!(back, state);
    // Impossible numbers of rows are cut.
    words[52] = u64::MAX;
    words[41] = 1 << 40;
    words[40] = u64::MAX;
    decode(&words, &mut back);
    // Words behind the signals are taken for signals then.
    assert_eq!((back.axes.len(), back.signals.len(), back.interlocks.len()), (2, 3, 0));
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
            let mut words = vec![0; TWO.words()];
            encode(&state, TWO, &mut words);
            let mut back = State::default();
            decode(&words, &mut back);
            assert_eq!(back, state);
        }
    }
}

#[test]
fn every_process_state_comes_back() {
    use ProcessState::{Absent, Answering, Attached, Failing, InCycle};
    for process in [InCycle, Absent, Attached, Answering, Failing] {
        let mut state = every_field();
        (state.control.process, state.control.enabled) = (process, false);
        let mut words = vec![0; TWO.words()];
        encode(&state, TWO, &mut words);
        let mut back = State::default();
        decode(&words, &mut back);
        assert_eq!(back, state);
    }
}

#[test]
fn wrong_number_of_axes_is_cut_or_zero_filled() {
    let three = Rows { axes: 3, signals: 3, interlocks: 0 };
    let mut words = vec![u64::MAX; three.words()];
    encode(&every_field(), three, &mut words);
    let mut back = State::default();
    decode(&words, &mut back);
    assert_eq!(back.axes[..2], every_field().axes);
    assert_eq!(back.axes[2], Axis::default());
    assert_eq!(back.signals[..2], every_field().signals);
    assert_eq!(back.signals[2], Signal::default());
    let one = Rows { axes: 1, signals: 1, interlocks: 0 };
    let mut words = vec![u64::MAX; one.words()];
    encode(&every_field(), one, &mut words);
    decode(&words, &mut back);
    assert_eq!(back.axes, every_field().axes[..1]);
    assert_eq!(back.signals, every_field().signals[..1]);
}

#[test]
fn states_are_read_in_order_and_overwritten_ones_skipped() {
    let (mut writer, file) = Writer::make(TWO).unwrap();
    let reader = Reader::open(std::os::fd::AsFd::as_fd(&file)).unwrap();
    let mut state = State::default();
    assert_eq!(reader.read_next(0, &mut state), None);
    let mut published = 0;
    let mut last = 0;
    for (burst, passed_over) in [(1, 0), (3, 0), (reader.kept(), 0), (20, 20 - reader.kept()), (2, 0)] {
        for _ in 0..burst {
            published += 1;
            writer.publish(&State { cycle: published * 10, ..every_field() });
        }
        let mut expected = last + 1 + passed_over;
        while let Some(number) = reader.read_next(last, &mut state) {
            assert_eq!((number, state.cycle), (expected, number * 10), "after {last}");
            (last, expected) = (number, number + 1);
        }
        assert_eq!(last, published);
    }
    assert_eq!(reader.read_next(u64::MAX, &mut state), None);
    assert_eq!(State { cycle: 1, ..state }, every_field());
}
