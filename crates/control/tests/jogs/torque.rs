//! Torque limit that the drives take (0x6072 in the process data) during jogs and in set-up mode.
//!
//! A key that is held after its jog was ended: the axis waits for a new press.
//!
//! An axis in cst that has to be homed first.

use ethercat::cia402::object::MAXIMUM_TORQUE;
use types::signal::Flow;
use types::{Signal, ValueType};

use super::*;

/// Limit of the axes and of their jogs in thousandths of 2.4 N m.
const USUAL: u16 = 2083;

const LOW: u16 = 208;

fn bench(mode: CyclicMode) -> Bench {
    let limit = PdoEntry {
        index: MAXIMUM_TORQUE,
        sub_index: 0,
        bit_length: 16,
        data_type: 0,
        name: "max torque".to_owned(),
    };
    Bench { torque: 0.5, outputs: vec![limit], ..Bench::new(mode) }
}

/// Way in which a jog ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    Expiry,
    Stop,
    Outage,
    QuickStop,
}

/// Moves the first axis with its controller, jogs it, and moves it again.
fn jogged(mode: CyclicMode, end: End) -> Ran {
    bench(mode).run(&format!("torque-{mode:?}-{end:?}"), 1_600, move |visit| {
        let target = |to: f64| match mode {
            CyclicMode::Position => Some(AxisTarget::Position(Radians(to))),
            _ => Some(AxisTarget::Velocity(RadiansPerSecond(to))),
        };
        let ends = visit.cycle >= 800;
        *visit.rests = matches!(end, End::Stop) && (800..900).contains(&visit.cycle);
        let lost = matches!(end, End::Outage) && (800..860).contains(&visit.cycle);
        visit.lost.store(lost, Ordering::Relaxed);
        if matches!(end, End::QuickStop) && (800..820).contains(&visit.cycle) {
            visit.commands[0].request = Request::QuickStop;
        }
        match visit.cycle {
            0..150 => visit.send(vec![target(0.2), None], TIME_TO_LIVE),
            400..800 => visit.jog(-0.1),
            // Its key is held.
            800..1_000 if !matches!(end, End::Expiry | End::Release) => visit.jog(-0.1),
            800..820 if ends && matches!(end, End::Release) => visit.jog(0.0),
            1_100..1_400 => visit.send(vec![target(0.25), None], TIME_TO_LIVE),
            _ => {}
        }
    })
}

/// Limits of the drive, each as long as it lasted.
fn limits(steps: &[Step]) -> Vec<u16> {
    let mut limits: Vec<_> = steps.iter().map(|it| it.maximum_torque).collect();
    limits.dedup();
    limits
}

// feature(axes): a jog and set-up mode lower the torque limit of the drive, where 0x6072 is in its process data
#[test]
fn the_drive_has_the_torque_limit_of_a_jog_only_during_it() {
    for mode in MODES {
        let all = [End::Expiry, End::Release, End::Stop, End::Outage, End::QuickStop];
        let ends = if mode == CyclicMode::Position { &all[..] } else { &all[..1] };
        for &end in ends {
            let ran = jogged(mode, end);
            let steps = &ran.steps[0];
            assert_eq!(limits(steps), [USUAL, LOW, USUAL], "{mode:?} {end:?}");
            assert_eq!(limits(&ran.steps[1]), [USUAL], "{mode:?} {end:?}: no jog moves it");
            let begin = steps.iter().position(|it| it.maximum_torque == LOW).unwrap();
            let end_of_low = steps.iter().rposition(|it| it.maximum_torque == LOW).unwrap();
            let moves = |from: usize, to: usize| steps[from..to].iter().any(|it| it.taken.abs() > 0.05);
            assert!(moves(0, 350) && moves(1_050, steps.len()), "{mode:?} {end:?}: its controller");
            assert!(moves(begin, end_of_low + 1), "{mode:?} {end:?}: the jog");
            // From the first step of a jog to its last one, the limit is low.
            let before = steps[350..begin].iter().all(|it| it.taken == 0.0);
            assert!(before, "{mode:?} {end:?}: it moved before its limit was low");
            if matches!(end, End::Release | End::Expiry | End::Stop) {
                let after = steps[end_of_low + 1..1_050].iter().all(|it| it.taken.abs() < 1e-3);
                assert!(after, "{mode:?} {end:?}: it moved after its limit was low");
            }
        }
    }
}

#[test]
fn set_up_mode_lowers_the_torque_limit_at_standstill() {
    for mode in MODES {
        let bench = Bench { interlock: Some(InterlockKind::Automatic), ..bench(mode) };
        let ran = bench.run(&format!("torque-set-up-{mode:?}"), 2_000, move |visit| {
            visit.permit(!(200..1_200).contains(&visit.cycle));
            let target = match mode {
                CyclicMode::Position => AxisTarget::Position(Radians(0.28)),
                _ => AxisTarget::Velocity(RadiansPerSecond(1.0)),
            };
            match visit.cycle {
                0..250 => visit.send(vec![Some(target), None], TIME_TO_LIVE),
                700..900 => visit.jog(-0.2),
                _ => {}
            }
        });
        let steps = &ran.steps[0];
        assert_eq!(limits(steps), [USUAL, LOW, USUAL], "{mode:?}");
        let low: Vec<_> = (0..steps.len()).filter(|&it| steps[it].maximum_torque == LOW).collect();
        assert!((200..500).contains(&low[0]), "{mode:?}: from {}", low[0]);
        assert!((1_150..1_250).contains(low.last().unwrap()), "{mode:?}: to {low:?}");
        let fast = |it: &&usize| steps[**it].taken.abs() > JOG + ROUNDED;
        assert_eq!(low.iter().find(fast), None, "{mode:?}: a fast axis brakes with its full torque");
        assert!(low.iter().any(|&it| steps[it].taken.abs() > 0.15), "{mode:?}: it was jogged");
    }
}

#[test]
fn a_jog_never_raises_the_torque_limit_of_the_robot_file() {
    for (usual, expected) in [(900, vec![900, LOW, 900]), (100, vec![100])] {
        let limit = Signal {
            name: "limit".to_owned(),
            sub_device: 0,
            bit_offset: 96,
            value_type: ValueType::Unsigned(16),
            flow: Flow::Fixed(usual),
            unit: String::new(),
            scaling: None,
            range: None,
        };
        let bench = Bench { signals: vec![limit], ..bench(CyclicMode::Position) };
        let ran = bench.run(&format!("torque-file-{usual}"), 1_200, |visit| {
            if (400..700).contains(&visit.cycle) {
                visit.jog(0.1);
            }
        });
        assert_eq!(limits(&ran.steps[0]), expected);
        let mut shown: Vec<_> = ran.states.iter().map(|it| it.signals[0].word as u16).collect();
        shown.dedup();
        assert_eq!(shown, expected, "the state shows what the drive gets");
        assert!(ran.moved(0) > 0.01, "{}", ran.moved(0));
    }
}

/// Cause that ends the jog in the cycles from 600 on, its key still held.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// A request brings all axes to rest.
    Stop,
    /// Its commands are refused: they have another target.
    Refusal,
    /// The controller asks for a halt.
    Halt,
    /// The enabling switch is released.
    Switch,
}

// feature(axes): a jog that a stop or a refusal has ended does not continue while its key is held
#[test]
fn a_jog_that_was_ended_waits_for_a_new_press() {
    use Cause::{Halt, Refusal, Stop, Switch};
    for (mode, cause) in MODES.into_iter().flat_map(|it| [Stop, Refusal, Halt, Switch].map(|of| (it, of))) {
        let interlock = (cause == Switch).then_some(InterlockKind::Jog);
        let bench = Bench { interlock, ..Bench::new(mode) };
        let ran = bench.run(&format!("held-{mode:?}-{cause:?}"), 1_900, move |visit| {
            let ends = (600..850).contains(&visit.cycle);
            *visit.rests = cause == Stop && ends;
            visit.permit(!(cause == Switch && ends));
            if cause == Halt && ends {
                visit.commands[0].request = Request::Halt;
            }
            let other = Some(AxisTarget::Velocity(RadiansPerSecond(0.1)));
            match visit.cycle {
                600..850 if cause == Refusal => visit.send(vec![jog(0.1), other], TIME_TO_LIVE),
                300..1_100 => visit.jog(0.1),
                // The key was released.
                1_500..1_700 => visit.jog(0.1),
                _ => {}
            }
        });
        let moves = |from: usize, to: usize| {
            ran.states[from..to].iter().any(|it| it.axes[0].velocity.abs() > ROUNDED)
        };
        assert!(moves(350, 590), "{mode:?} {cause:?}: it was jogged");
        // A refusal counts once the last good command has expired.
        let from = 600 + ENDS + 10;
        assert!(!moves(from, 1_490), "{mode:?} {cause:?}: it went on with the same key");
        assert!(moves(1_520, 1_690), "{mode:?} {cause:?}: pressed again");
    }
}

// feature(axes): an axis in cst that has to be homed first is enabled, and no controller moves it before
#[test]
fn an_axis_in_cst_is_enabled_and_held_until_it_is_homed() {
    let bench = Bench { needs_homing: true, ..Bench::new(CyclicMode::Torque) };
    let ran = bench.run("not-homed-torque", 1_200, |visit| {
        let effort = Some(AxisTarget::Effort(NewtonMetres(0.05)));
        match visit.cycle {
            0..300 => visit.send(vec![effort, None], TIME_TO_LIVE),
            // A torque of the controller itself, whatever commands say.
            300..500 => visit.commands[0].setpoint.torque = NewtonMetres(0.05),
            600 => visit.commands[0].home = true,
            700..800 => visit.send(vec![effort, None], TIME_TO_LIVE),
            _ => {}
        }
    });
    assert!(ran.states.len() > 1_000, "it was never enabled");
    let stop = |cycle: usize| ran.states[cycle].axes[0].stop;
    assert_eq!([stop(100), stop(590)], [StopReason::NotHomed as u8; 2]);
    assert!(ran.states[..590].iter().all(|it| it.axes[0].drive_state == 5), "it stays enabled");
    assert_eq!(ran.refusals(), [(Refusal::NotHomed, 0)]);
    let begin = ran.states[0].axes[0].position;
    let away = |range: std::ops::Range<usize>| {
        let all = ran.states[range].iter().map(|it| (it.axes[0].position - begin).abs());
        all.fold(0.0, f64::max)
    };
    assert!(away(0..590) < 1e-4, "it moved by {} rad before it was homed", away(0..590));
    let homed = ran.states[690].axes[0].position;
    let moved = ran.states[690..].iter().map(|it| (it.axes[0].position - homed).abs());
    assert!(ran.states[690].axes[0].homed && moved.fold(0.0, f64::max) > 1e-2, "its controller has it");
}

#[test]
fn an_axis_in_torque_mode_refuses_a_jog_for_its_mode() {
    let ran = Bench::new(CyclicMode::Torque).run("torque-mode", 300, |visit| visit.jog(0.2));
    assert_eq!(ran.refusals().first(), Some(&(Refusal::JogMode, 0)));
    assert_eq!(ran.moved(0), 0.0);
}
