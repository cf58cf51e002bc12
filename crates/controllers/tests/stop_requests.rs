//! Requests that stop a controller that ignores `stopping`.
use crate::rig;

use ethercat::cia402::{CyclicMode, State};
use ipc::message::control::Action;
use onbeat_controllers::{Hold, Member, MemberKind};
use rig::headstrong::{Headstrong, SPEED};
use rig::{CYCLE, Flow, Log, Rig};

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
