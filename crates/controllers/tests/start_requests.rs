//! Start requests through the manager, on simulated drives: what a request was not made for is not
//! acknowledged by it.
use crate::rig;

use control::controller::AxisReport;
use ethercat::cia402::{CyclicMode, State};
use ipc::message::control::{Action, Refusal};
use motion::supervision::StopReason;
use rig::headstrong::Headstrong;
use rig::loss::Loss;
use rig::{Flow, Rig};

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

// feature(axes): a reset acknowledges the stops that were there, not those that come
#[test]
fn a_reset_does_not_acknowledge_what_comes_later() {
    let rig = Rig::new(2, CyclicMode::Position);
    let log = rig.run(vec![Headstrong::member(true, 2)], move |world| {
        match world.cycles {
            // A fault raised twice: the simulated drive keeps the second one.
            100 => world.losses.set(0, Loss::Fault(0x2310)),
            110 => world.losses.set(0, Loss::Fault(0x2311)),
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
