//! Torque limit that the drives take (0x6072 in the process data) during jogs and in set-up mode.

use ethercat::cia402::object::MAXIMUM_TORQUE;
use types::Signal;
use types::ValueType;
use types::signal::Flow;

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
