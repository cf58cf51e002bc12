//! Start requests through the manager, on simulated drives: a request acknowledges only the
//! conditions it was made for.
//!
//! Requests that stop a controller that ignores `stopping`.

use control::controller::{AxisReport, AxisTarget};
use ethercat::cia402::{CyclicMode, State};
use ipc::message::control::{Action, Refusal};
use motion::Radians;
use motion::supervision::StopReason;
use onbeat_controllers::{Hold, JointPosition, Member, MemberKind};
use rig::loss::Loss;
use rig::way::{Headstrong, SPEED};
use rig::{CYCLE, Flow, Log, Rig, settings};

use crate::rig;

fn is_enabled(report: &AxisReport) -> bool {
    report.state == Some(State::OperationEnabled)
}

// feature(axes): main power that returns during `control enable` moves no axis
#[test]
fn power_that_returns_during_enable_moves_nothing() {
    let mut ids = [0; 2];
    let rig = Rig { enable: false, ..Rig::new(1, CyclicMode::Position) };
    let log = rig.run(vec![Headstrong::member(true, 1)], move |world| {
        match world.cycles {
            10 => world.losses.set(0, Loss::MainPower),
            100 => ids[0] = world.request(Action::Enable),
            // While the request is in progress.
            5_100 => {
                assert_eq!(world.reply(ids[0]), None);
                world.losses.set(0, Loss::Nothing);
            }
            8_000 => {
                assert_eq!(world.reply(ids[0]), Some(Err(Refusal::Held)));
                assert_eq!(world.reports[0].stop, Some(StopReason::AwaitsStart));
                ids[1] = world.request(Action::Enable);
            }
            9_000 => {
                assert_eq!(world.reply(ids[1]), Some(Ok(())));
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    });
    assert!(!log.cycles[..8_000].iter().any(|it| is_enabled(&it.reports[0])), "enabled by itself");
    let last = log.cycles.last().unwrap().reports[0];
    assert!(is_enabled(&last) && last.feedback.velocity.0 > 0.05, "{last:?}");
}

// feature(axes): STO that goes and returns during `control enable` needs another start request
#[test]
fn a_loss_during_enable_is_not_acknowledged() {
    let mut ids = [0; 2];
    let rig = Rig { enable: false, ..Rig::new(2, CyclicMode::Position) };
    let log = rig.run(vec![Headstrong::member(true, 2)], move |world| {
        match world.cycles {
            10 => world.losses.set(0, Loss::MainPower),
            100 => ids[0] = world.request(Action::Enable),
            // The first drive charges its DC link. The second is enabled, and loses its torque.
            400 => {
                assert!(is_enabled(&world.reports[1]));
                world.losses.set(1, Loss::SafeTorqueOff);
            }
            1_000 => world.losses.set(1, Loss::Nothing),
            2_000 => world.losses.set(0, Loss::Nothing),
            4_000 => {
                assert_eq!(world.reply(ids[0]), Some(Err(Refusal::Held)));
                assert!(is_enabled(&world.reports[0]));
                ids[1] = world.request(Action::Enable);
            }
            5_000 => {
                assert_eq!(world.reply(ids[1]), Some(Ok(())));
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    });
    assert!(!log.cycles[500..4_000].iter().any(|it| is_enabled(&it.reports[1])), "enabled by itself");
    assert!(is_enabled(&log.cycles.last().unwrap().reports[1]));
}

// feature(axes): a reset acknowledges the stops that were there when it began, and no later ones
#[test]
fn a_reset_does_not_acknowledge_what_comes_later() {
    let rig = Rig::new(2, CyclicMode::Position);
    let log = rig.run(vec![Headstrong::member(true, 2)], move |world| {
        match world.cycles {
            100 => world.losses.set(0, Loss::Fault(0x2310)),
            // Another fault while the first one is being reset.
            204 => world.losses.set(0, Loss::Fault(0x2311)),
            200 => _ = world.request(Action::ResetFaults),
            1_000 => world.losses.set(1, Loss::SafeTorqueOff),
            2_000 => world.losses.set(1, Loss::Nothing),
            4_000 => {
                assert_eq!(world.reply(1), Some(Err(Refusal::Fault)));
                assert_eq!(world.reports[1].stop, Some(StopReason::AwaitsStart));
                world.request(Action::ResetFaults);
            }
            4_500 => return Flow::Over,
            _ => {}
        }
        Flow::On
    });
    assert!(is_enabled(&log.cycles[900].reports[1]));
    assert!(!log.cycles[1_100..4_000].iter().any(|it| is_enabled(&it.reports[1])), "enabled by itself");
    assert!(is_enabled(&log.cycles.last().unwrap().reports[1]), "the second request starts it");
}

// feature(axes): a command from before a reset, or from before a start request, moves nothing
#[test]
fn a_command_from_before_a_reset_or_a_start_moves_nothing() {
    for (loss, request) in
        [(Loss::Fault(0x2310), Action::ResetFaults), (Loss::SafeTorqueOff, Action::Enable)]
    {
        let positions = JointPosition::new(&[settings(0)]).unwrap();
        let positions = Member::new(MemberKind::Plain(Box::new(positions)), &[0]);
        let log = Rig::new(1, CyclicMode::Position).run(vec![positions], move |world| {
            match world.cycles {
                10 => world.target(0, AxisTarget::Position(Radians(2.0))),
                100 => world.losses.set(0, loss),
                1_000 => world.losses.set(0, Loss::Nothing),
                1_500 => _ = world.request(request),
                // The command is still the same, and fresh.
                3_000 => {
                    assert_eq!(world.reply(1), Some(Ok(())), "{request:?}");
                    assert!(is_enabled(&world.reports[0]));
                    world.target(0, AxisTarget::Position(Radians(1.5)));
                }
                5_000 => return Flow::Over,
                _ => {}
            }
            Flow::On
        });
        let at = |cycle: usize| log.cycles[cycle].reports[0].feedback.position.0;
        assert!((at(2_990) - at(1_490)).abs() < 1e-2, "{request:?}: {} {}", at(1_490), at(2_990));
        assert!((at(4_990) - 1.5).abs() < 1e-2, "{request:?}: {}", at(4_990));
    }
}

const ASKED: u64 = 500;

const AT_REST: u64 = 3_000;

const AGAIN: u64 = 8_000;

/// Positions of the axis, from cycle to cycle, of a controller that gets the request `what`, and
/// then `then` later; the replies are all right.
fn run(mode: CyclicMode, obeys: bool, what: Action, then: Action) -> Log {
    let members = vec![Headstrong::member(obeys, 1), Member::new(MemberKind::Plain(Box::new(Hold)), &[0])];
    Rig::new(1, mode).run(members, move |world| {
        match world.cycles {
            ASKED => _ = world.request(what),
            AT_REST => assert_eq!(world.reply(1), Some(Ok(())), "{what:?}, {obeys}: {:?}", world.reports),
            AGAIN => _ = world.request(then),
            10_000 => {
                assert_eq!(world.reply(2), Some(Ok(())), "{then:?}");
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    })
}

fn way(log: &Log, from: u64, to: u64) -> f64 {
    let at = |cycle: u64| log.cycles[cycle as usize - 1].reports[0].feedback.position.0;
    (at(to) - at(from)).abs()
}

// feature(axes): `control stop` stops a controller that ignores it, and the axes stay stopped
#[test]
fn a_stop_holds_a_controller_that_does_not_stop() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        for obeys in [false, true] {
            for then in [Action::Enable, Action::ResetFaults, Action::SwitchController(0)] {
                let log = run(mode, obeys, Action::Stop, then);
                let cell = format!("{mode:?}, {obeys}, {then:?}");
                assert!(way(&log, 100, ASKED) > 0.3 * SPEED, "{cell}: it moves before");
                assert!(way(&log, AT_REST, AGAIN) < 1e-3, "{cell}: {}", way(&log, AT_REST, AGAIN));
                assert!(way(&log, AGAIN + 100, 10_000) > 1.5 * SPEED, "{cell}: it moves again");
                let fastest = if mode == CyclicMode::Position { log.fastest(0) } else { 0.0 };
                assert!(fastest < 1.01 * SPEED, "{cell}: {fastest}");
            }
        }
    }
}

// feature(axes): `control deactivate` and `disable` stop a controller that ignores them
#[test]
fn a_controller_that_ignores_them_is_deactivated_or_disabled() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        for what in [Action::Deactivate, Action::Disable] {
            let then = if what == Action::Disable { Action::Enable } else { Action::SwitchController(1) };
            let log = run(mode, false, what, then);
            assert!(way(&log, AT_REST, AGAIN) < 1e-3, "{what:?}");
            let enabled = |at: usize| log.cycles[at].reports[0].state == Some(State::OperationEnabled);
            let off = (ASKED as usize..AGAIN as usize).find(|&at| !enabled(at));
            assert_eq!(off.is_some(), what == Action::Disable);
            if let Some(off) = off {
                let speed = way(&log, off as u64 - 1, off as u64) / CYCLE;
                assert!(speed < 0.1 * SPEED, "disabled at {speed} rad/s");
            }
        }
    }
}
