//! Requests to a running cycle: enable, disable, switch, stop, home, reset.
use crate::rig;

use control::controller::{AxisTarget, Freshness};
use ethercat::cia402::{AxisMode, CyclicMode, ModeOfOperation, State};
use ipc::message::control::{Action, Refusal};
use ipc::state::{Clamped, Limit, NO_CONTROLLER};
use motion::homing::Homing;
use motion::supervision::StopReason;
use motion::{AxisPhase, NewtonMetres, Radians, RadiansPerSecond};
use onbeat_controllers::{
    AxisSettings, Hold, JointEffort, JointPosition, JointVelocity, Member, MemberKind,
};
use rig::bench::Bench;
use rig::{Flow, Rig, VELOCITY, settings};

fn positions(axes: &[usize]) -> Member {
    let settings: Vec<_> = axes.iter().map(|axis| settings(*axis)).collect();
    Member::new(MemberKind::Plain(Box::new(JointPosition::new(&settings).unwrap())), axes)
}

fn hold(axes: usize) -> Member {
    Member::new(MemberKind::Plain(Box::new(Hold)), &(0..axes).collect::<Vec<_>>())
}

// feature(axes): enable, disable, reset, switch, home, stop
#[test]
fn drives_are_enabled_and_disabled_on_request() {
    let mut ids = [0; 3];
    let rig = Rig { enable: false, ..Rig::new(2, CyclicMode::Position) };
    let log = rig.run(vec![positions(&[0, 1])], move |world| {
        let states = world.reports.iter().map(|report| report.state).collect::<Vec<_>>();
        match world.cycles {
            1..500 => {
                assert!(states.iter().all(|state| *state != Some(State::OperationEnabled)), "{states:?}")
            }
            500 => ids[0] = world.request(Action::Enable),
            1000 => {
                assert_eq!(world.reply(ids[0]), Some(Ok(())));
                assert_eq!(states, [Some(State::OperationEnabled); 2]);
                world.target(0, AxisTarget::Position(Radians(2.0)));
            }
            // Moving at full speed.
            1500 => ids[1] = world.request(Action::Disable),
            2500 => {
                assert_eq!(world.reply(ids[1]), Some(Ok(())));
                assert_eq!(states, [Some(State::SwitchOnDisabled); 2]);
                assert!(!world.output.control.enabled);
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    });
    let fell =
        log.cycles.iter().position(|seen| seen.reports[0].state == Some(State::OperationEnabled)).unwrap();
    let off = fell
        + log.cycles[fell..]
            .iter()
            .position(|it| it.reports[0].state != Some(State::OperationEnabled))
            .unwrap();
    assert!(log.cycles[off].reports[0].feedback.velocity.0.abs() < 0.05, "disabled only at rest");
    assert!(log.hardest(0) <= rig::ACCELERATION * 1.01 && log.fastest(0) > 0.9 * VELOCITY);
}

// feature(axes): `joint_position`, `joint_velocity`, `joint_effort`
#[test]
fn positions_are_reached_and_bent_on_the_way_within_the_limits() {
    let log = Rig::new(2, CyclicMode::Position).run(vec![positions(&[0, 1])], |world| {
        match world.cycles {
            10 => world.target(0, AxisTarget::Position(Radians(2.5))),
            400 => world.target(0, AxisTarget::Position(Radians(-1.0))),
            // Beyond the limit of 3 rad.
            1000 => world.target(1, AxisTarget::Position(Radians(99.0))),
            _ => {}
        }
        if world.cycles > 3000 && world.rests() { Flow::Over } else { Flow::On }
    });
    let last = log.cycles.last().unwrap();
    assert!((last.reports[0].feedback.position.0 + 1.0).abs() < 5e-3);
    assert!((last.reports[1].feedback.position.0 - 3.0).abs() < 5e-3);
    for axis in 0..2 {
        assert!(log.fastest(axis) <= VELOCITY * 1.000_1, "{}", log.fastest(axis));
        assert!(log.hardest(axis) <= rig::ACCELERATION * 1.01, "{}", log.hardest(axis));
    }
    assert!(log.cycles.iter().all(|seen| seen.reports.iter().all(|report| report.stop.is_none())));
    assert_eq!(log.cycles[990].output.clamped, None);
    assert_eq!(log.cycles[1100].output.clamped, Some(Clamped { limit: Limit::Position, axis: Some(1) }));
}

// feature(axes): `joint_velocity` of CSP axes: by positions, to rest at a position limit
#[test]
fn position_axis_follows_velocities_and_stops_at_its_limits() {
    let axes = [0, 1].map(|axis| (settings(axis), CyclicMode::Position));
    let velocities = Member::new(MemberKind::Plain(Box::new(JointVelocity::new(&axes).unwrap())), &[0, 1]);
    let turn = |world: &mut rig::World, axis, velocity| {
        world.target(axis, AxisTarget::Velocity(RadiansPerSecond(velocity)));
    };
    let log = Rig::new(2, CyclicMode::Position).run(vec![velocities], move |world| {
        match world.cycles {
            10 => {
                turn(world, 0, 2.0);
                turn(world, 1, 1.0);
            }
            // Slower on the way, faster again, then without a command.
            500 => turn(world, 1, 0.3),
            700 => turn(world, 1, 99.0),
            900 => world.command.axes[1] = None,
            // The first axis has been at its limit for long, and returns.
            3000 => turn(world, 0, -4.0),
            // Soon in the way of the other limit, slower just before it.
            4300 => turn(world, 0, -1.0),
            _ => {}
        }
        if world.cycles > 8000 && world.rests() { Flow::Over } else { Flow::On }
    });
    let at = |cycle: usize, axis: usize| log.cycles[cycle].reports[axis].feedback;
    assert!((at(400, 0).velocity.0 - 2.0).abs() < 0.05 && (at(400, 1).velocity.0 - 1.0).abs() < 0.05);
    assert!((at(650, 1).velocity.0 - 0.3).abs() < 0.05 && at(890, 1).velocity.0 > 2.0);
    assert!((at(2900, 0).position.0 - 3.0).abs() < 5e-3 && at(2900, 1).velocity.0.abs() < 1e-3);
    let limited = Some(Clamped { limit: Limit::Position, axis: Some(0) });
    assert_eq!((log.cycles[400].output.clamped, log.cycles[2900].output.clamped), (None, limited));
    assert!((log.cycles.last().unwrap().reports[0].feedback.position.0 + 3.0).abs() < 5e-3);
    for axis in 0..2 {
        let set = log.cycles.iter().map(|seen| seen.setpoints[axis].position.0);
        assert!(set.clone().all(|it| (-3.0..=3.0).contains(&it)));
        assert!(log.fastest(axis) <= VELOCITY * 1.000_1, "{}", log.fastest(axis));
        assert!(log.hardest(axis) <= rig::ACCELERATION * 1.01, "{}", log.hardest(axis));
    }
    assert!(log.cycles.iter().all(|seen| seen.reports.iter().all(|report| report.stop.is_none())));
}

/// The limit is farther away than can be planned for: two hours.
#[test]
fn slow_axis_turns_and_stops_at_its_far_limit() {
    let far = AxisSettings { position_limits: Some((Radians(-0.2), Radians(1e4))), ..settings(0) };
    let slow = JointVelocity::new(&[(far, CyclicMode::Position)]).unwrap();
    let member = Member::new(MemberKind::Plain(Box::new(slow)), &[0]);
    let mut bench = Bench::new(&[CyclicMode::Position], vec![member]);
    let mut turn = |velocity: f64, cycles| {
        bench.command.freshness = Freshness::Fresh;
        bench.command.axes[0] = Some(AxisTarget::Velocity(RadiansPerSecond(velocity)));
        bench.run(cycles);
        bench.positions.last().unwrap()[0]
    };
    let there = turn(0.1, 2000);
    assert!((there - 0.2).abs() < 0.02, "{there}");
    assert!((turn(-4.0, 1000) + 0.2).abs() < 1e-9);
}

// feature(axes): `joint_position`, `joint_velocity`, `joint_effort`
#[test]
fn velocities_and_torques_are_obeyed_within_their_limits() {
    let velocity = JointVelocity::new(&[(settings(0), CyclicMode::Velocity)]).unwrap();
    let effort = JointEffort::new(&[(settings(1), NewtonMetres(0.5))]);
    let rig =
        Rig { modes: vec![CyclicMode::Velocity, CyclicMode::Torque], ..Rig::new(0, CyclicMode::Torque) };
    let members = vec![
        Member::new(MemberKind::Plain(Box::new(velocity)), &[0]),
        Member::new(MemberKind::Plain(Box::new(effort)), &[1]),
    ];
    let log = rig.run(members, |world| {
        match world.cycles {
            10 => world.target(0, AxisTarget::Velocity(RadiansPerSecond(-2.0))),
            1000 => world.target(0, AxisTarget::Velocity(RadiansPerSecond(99.0))),
            1500 => world.command.axes[0] = None,
            2000 => {
                world.request(Action::SwitchController(1));
            }
            // Little more than friction.
            2100 => world.target(1, AxisTarget::Effort(NewtonMetres(0.03))),
            2150 => world.command.freshness = Freshness::Stale,
            _ => {}
        }
        if world.cycles > 2300 { Flow::Over } else { Flow::On }
    });
    assert!((log.cycles[990].reports[0].feedback.velocity.0 + 2.0).abs() < 0.05);
    assert!((log.cycles[1450].setpoints[0].velocity.0 - VELOCITY).abs() < 1e-6, "held to the limit");
    let clamped = |limit, axis| Some(Clamped { limit, axis: Some(axis) });
    assert_eq!(
        [990, 1450, 1990].map(|it| log.cycles[it].output.clamped),
        [None, clamped(Limit::Velocity, 0), None]
    );
    assert_eq!(log.cycles[1990].setpoints[0].velocity.0, 0.0, "asked nothing, it rests");
    assert!(log.hardest_velocity(0) <= rig::ACCELERATION * 1.01);
    assert_eq!(log.replies[0].1, Ok(()));
    assert_eq!(log.cycles[2120].setpoints[1].torque, NewtonMetres(0.03));
    assert!(log.cycles[2150].reports[1].feedback.velocity.0 > 0.01);
    assert_eq!(log.cycles[2200].setpoints[1].torque, NewtonMetres(0.0));
}

// feature(axes): enable, disable, reset, switch, home, stop
#[test]
fn controller_switches_only_at_standstill_and_starts_at_axes() {
    let mut ids = [0; 4];
    let log = Rig::new(2, CyclicMode::Position).run(
        vec![positions(&[0, 1]), hold(2), positions(&[1])],
        move |world| {
            match world.cycles {
                10 => world.target(0, AxisTarget::Position(Radians(2.0))),
                300 => ids[0] = world.request(Action::SwitchController(1)),
                2000 => {
                    assert_eq!(world.reply(ids[0]), Some(Err(Refusal::Moving)));
                    ids[1] = world.request(Action::SwitchController(2));
                    ids[2] = world.request(Action::SwitchController(9));
                    ids[3] = world.request(Action::SwitchController(2));
                }
                2100 => {
                    let replies = [1, 2, 3].map(|index| world.reply(ids[index]));
                    assert_eq!(replies, [Some(Ok(())), Some(Err(Refusal::NoSuchController)), Some(Ok(()))]);
                    assert_eq!(world.output.control.active, 2);
                    world.target(0, AxisTarget::Position(Radians(0.0)));
                    world.target(1, AxisTarget::Position(Radians(1.0)));
                }
                _ => {}
            }
            if world.cycles > 3500 { Flow::Over } else { Flow::On }
        },
    );
    let last = log.cycles.last().unwrap();
    assert!((last.reports[0].feedback.position.0 - 2.0).abs() < 5e-3, "no more the active one's, and held");
    assert!((last.reports[1].feedback.position.0 - 1.0).abs() < 5e-3);
    assert!(log.hardest(0) <= rig::ACCELERATION * 1.01 && log.hardest(1) <= rig::ACCELERATION * 1.01);
}

// feature(axes): enable, disable, reset, switch, home, stop
#[test]
fn command_held_through_a_stop_moves_nothing_until_changed() {
    let mut id = 0;
    let log = Rig::new(1, CyclicMode::Position).run(vec![positions(&[0])], move |world| {
        match world.cycles {
            10 => world.target(0, AxisTarget::Position(Radians(2.5))),
            300 => id = world.request(Action::Stop),
            2000 => {
                assert_eq!(world.reply(id), Some(Ok(())));
                assert!(world.rests() && world.reports[0].feedback.position.0 < 2.0, "it stays stopped");
                world.target(0, AxisTarget::Position(Radians(0.0)));
            }
            _ => {}
        }
        if world.cycles > 4000 { Flow::Over } else { Flow::On }
    });
    assert!(log.cycles.last().unwrap().reports[0].feedback.position.0.abs() < 5e-3, "a new command counts");
    assert!(log.hardest(0) <= rig::ACCELERATION * 1.01);
}

// feature(axes): deactivate: at rest with no controller, whatever is commanded, until one is switched to
#[test]
fn without_a_controller_the_axes_are_held_whatever_is_commanded() {
    let mut ids = [0; 3];
    let velocities = JointVelocity::new(&[(settings(1), CyclicMode::Velocity)]).unwrap();
    let members =
        vec![positions(&[0]), Member::new(MemberKind::Plain(Box::new(velocities)), &[1]), hold(2)];
    let rig = Rig {
        modes: vec![CyclicMode::Position, CyclicMode::Velocity],
        ..Rig::new(0, CyclicMode::Position)
    };
    let log = rig.run(members, move |world| {
        match world.cycles {
            10 => world.target(0, AxisTarget::Position(Radians(2.5))),
            300 => ids[0] = world.request(Action::Deactivate),
            1000 => {
                assert_eq!(world.reply(ids[0]), Some(Ok(())));
                assert_eq!(world.output.control.active, NO_CONTROLLER);
                world.target(0, AxisTarget::Position(Radians(-1.0)));
                world.target(1, AxisTarget::Velocity(RadiansPerSecond(1.0)));
            }
            // A stop works without a controller, too.
            1500 => ids[2] = world.request(Action::Stop),
            2000 => {
                assert_eq!(world.reply(ids[2]), Some(Ok(())));
                ids[1] = world.request(Action::SwitchController(1));
            }
            2010 => {
                assert_eq!(world.reply(ids[1]), Some(Ok(())));
                assert_eq!(world.output.control.active, 1);
                world.target(1, AxisTarget::Velocity(RadiansPerSecond(0.5)));
            }
            _ => {}
        }
        if world.cycles > 2500 { Flow::Over } else { Flow::On }
    });
    let at = |cycle: usize, axis: usize| log.cycles[cycle].reports[axis];
    assert!(at(299, 0).feedback.velocity.0 > 0.1, "it was on its way");
    assert!((at(990, 0).feedback.position.0 - at(1990, 0).feedback.position.0).abs() < 1e-4, "held");
    assert_eq!(log.cycles[1990].setpoints[1].velocity.0, 0.0, "held");
    assert!((0..2).all(|axis| at(1990, axis).state == Some(State::OperationEnabled)), "not powerless");
    assert!((log.cycles[2490].setpoints[1].velocity.0 - 0.5).abs() < 1e-6, "it is heard again");
    assert!(log.hardest(0) <= rig::ACCELERATION * 1.01);
}

#[test]
fn axis_stopped_by_supervision_holds_until_fault_reset() {
    let mut ids = [0; 2];
    let rig = Rig { following_error: Some(1e-5), ..Rig::new(2, CyclicMode::Position) };
    let log = rig.run(vec![positions(&[0, 1])], move |world| {
        match world.cycles {
            // No feedback follows to a hundredth of a milliradian.
            10 => world.target(0, AxisTarget::Position(Radians(1.0))),
            1000 => {
                assert_eq!(world.reports[0].stop, Some(StopReason::FollowingError));
                world.command.axes[0] = None;
                ids[0] = world.request(Action::ResetFaults);
            }
            2500 => assert_eq!(world.reply(ids[0]), Some(Ok(())), "{:?}", world.reports[0]),
            _ => {}
        }
        if world.cycles > 3000 { Flow::Over } else { Flow::On }
    });
    let last = log.cycles.last().unwrap();
    assert_eq!(last.reports[0].stop, None);
    assert_eq!(last.reports[0].state, Some(State::OperationEnabled));
    assert_eq!(last.reports[0].feedback.phase, AxisPhase::Following);
    assert!(last.reports[0].feedback.position.0 < 0.5, "it holds where it stands");
}

#[test]
fn axis_is_homed_at_standstill_at_its_position() {
    let mut ids = [0; 4];
    let homing = Homing::CurrentPosition { position: Radians(1.5) };
    let rig = Rig { homing, ..Rig::new(2, CyclicMode::Position) };
    let log = rig.run(vec![positions(&[0, 1])], move |world| {
        match world.cycles {
            10 => world.target(0, AxisTarget::Position(Radians(0.7))),
            200 => ids[0] = world.request(Action::Home(0)),
            1500 => {
                assert_eq!(world.reply(ids[0]), Some(Err(Refusal::Moving)));
                assert!(!world.reports[0].homed);
                world.command.axes[0] = None;
                ids[1] = world.request(Action::Home(0));
                ids[2] = world.request(Action::Home(2));
            }
            1600 => {
                assert_eq!(
                    [1, 2].map(|it| world.reply(ids[it])),
                    [Some(Ok(())), Some(Err(Refusal::NoSuchAxis))]
                );
                assert!(world.reports[0].homed && !world.reports[1].homed);
                let position = world.reports[0].feedback.position.0;
                assert!((position - 1.5).abs() < 5e-3, "{position}");
                world.target(0, AxisTarget::Position(Radians(1.0)));
            }
            _ => {}
        }
        if world.cycles > 3000 { Flow::Over } else { Flow::On }
    });
    assert!((log.cycles.last().unwrap().reports[0].feedback.position.0 - 1.0).abs() < 5e-3);
    let velocities = log.cycles.iter().map(|seen| seen.reports[0].feedback.velocity.0.abs());
    assert!(velocities.fold(0.0, f64::max) < VELOCITY * 1.1, "the jump moves nothing");
}

// feature(axes): homing by hand is answered *done* only once the position was taken
#[test]
fn homing_by_hand_is_done_once_the_position_was_taken() {
    // The frame of each cycle around the request is lost once.
    for lost in 1_996..2_003 {
        let homing = Homing::CurrentPosition { position: Radians(1.0) };
        let rig = Rig { homing, ..Rig::new(1, CyclicMode::Position) };
        let log = rig.run(vec![positions(&[0])], move |world| {
            world.losses.lose_frames(world.cycles == lost);
            match world.cycles {
                100 => _ = world.request(Action::Home(0)),
                // To another mark.
                500 => world.target(0, AxisTarget::Position(Radians(2.0))),
                2_000 => {
                    assert_eq!(world.reply(1), Some(Ok(())));
                    assert!(world.reports[0].homed && world.reports[0].feedback.position.0 > 1.99);
                    _ = world.request(Action::Home(0));
                    world.command.axes[0] = None;
                }
                2_200 => return Flow::Over,
                _ => {}
            }
            Flow::On
        });
        let reply = log.replies.iter().find(|reply| reply.0 == 2).unwrap().1;
        let position = log.cycles.last().unwrap().reports[0].feedback.position.0;
        assert_eq!(reply, Ok(()), "{lost}");
        assert!((position - 1.0).abs() < 0.01, "{lost}: {position}");
    }
}

#[test]
fn absolute_encoders_are_not_homed_and_nonsense_is_answered() {
    let mut id = 0;
    let homing = Homing::Absolute { offset: Radians(0.25) };
    let log =
        Rig { homing, ..Rig::new(1, CyclicMode::Position) }.run(vec![positions(&[0])], move |world| {
            match world.cycles {
                100 => {
                    assert!(
                        world.reports[0].homed
                            && (world.reports[0].feedback.position.0 - 0.25).abs() < 1e-3
                    );
                    id = world.request(Action::Home(0));
                    world.raw_request(&[1, 2, 3]);
                    world.raw_request(&[9; 20]);
                }
                150 => {
                    assert_eq!(world.reply(id), Some(Err(Refusal::NotPossible)));
                    assert_eq!(world.reply(0), Some(Err(Refusal::Malformed)));
                    assert_eq!(world.reply(0x0909_0909_0909_0909), Some(Err(Refusal::Malformed)));
                    return Flow::Over;
                }
                _ => {}
            }
            Flow::On
        });
    assert_eq!(log.replies.len(), 3);
}

#[test]
fn one_thing_is_done_at_a_time_and_a_stop_comes_first() {
    let mut ids = [0; 4];
    Rig::new(1, CyclicMode::Position).run(vec![positions(&[0])], move |world| {
        match world.cycles {
            10 => world.target(0, AxisTarget::Position(Radians(2.5))),
            300 => {
                ids[0] = world.request(Action::Stop);
                ids[1] = world.request(Action::Enable);
                ids[2] = world.request(Action::Disable);
            }
            1500 => {
                let replies = [0, 1, 2].map(|index| world.reply(ids[index]));
                assert_eq!(replies, [Some(Err(Refusal::Replaced)), Some(Err(Refusal::Busy)), Some(Ok(()))]);
                return Flow::Over;
            }
            _ => {}
        }
        Flow::On
    });
}

// feature(axes): `mode` of a controller: its axes are brought to that mode of operation when it is switched to, profile modes among them, enabled and at rest
#[test]
fn switched_controller_changes_mode_of_its_axes_without_a_jump() {
    use AxisMode::{
        CyclicPosition, CyclicTorque, CyclicVelocity, ProfilePosition, ProfileTorque, ProfileVelocity,
    };
    let velocities = |mode| {
        let axes = [0, 1].map(|axis| (settings(axis), CyclicMode::Velocity));
        let controller = JointVelocity::new(&axes).unwrap();
        Member::new(MemberKind::Plain(Box::new(controller)), &[0, 1]).in_mode(mode)
    };
    let efforts = |mode| {
        let axes = [0, 1].map(|axis| (settings(axis), NewtonMetres(1.0)));
        Member::new(MemberKind::Plain(Box::new(JointEffort::new(&axes))), &[0, 1]).in_mode(mode)
    };
    let profile = [0, 1].map(|axis| AxisSettings { profile: true, ..settings(axis) });
    let profile = MemberKind::Plain(Box::new(JointPosition::new(&profile).unwrap()));
    let members = vec![
        positions(&[0, 1]),
        velocities(CyclicVelocity),
        Member::new(profile, &[0]).in_mode(ProfilePosition),
        velocities(ProfileVelocity),
        efforts(ProfileTorque),
        efforts(CyclicTorque),
    ];
    let modes =
        [CyclicPosition, CyclicVelocity, ProfilePosition, ProfileVelocity, ProfileTorque, CyclicTorque];
    let ways: Vec<u32> = vec![1, 2, 3, 4, 5, 0, 2, 1, 3, 2, 4, 0, 3, 5, 1, 4, 2, 0, 5, 3, 1, 0];
    let last = ways.len() as u64 * EACH;
    let (mut id, mut asked) = (0, ways[0]);
    let log = Rig { timeout: 60_000, ..Rig::new(2, CyclicMode::Position) }.run(members, move |world| {
        let step = world.cycles % EACH;
        if world.cycles <= last && step == 100 {
            asked = ways[(world.cycles / EACH) as usize];
            id = world.request(Action::SwitchController(asked));
        }
        if world.cycles <= last && step == 400 {
            assert_eq!(world.reply(id), Some(Ok(())), "to {:?}", modes[asked as usize]);
            let mode = modes[asked as usize];
            // The second axis is not moved by all, and then in its own mode.
            let others = if mode == ProfilePosition { CyclicPosition } else { mode };
            let found = [0, 1].map(|axis| world.reports[axis].mode);
            assert_eq!(found, [mode, others].map(|mode| Some(ModeOfOperation::from(mode))));
            let here = world.reports[0].feedback.position.0;
            match mode.cyclic() {
                CyclicMode::Position => {
                    world.target(0, AxisTarget::Position(Radians(if here > 0.0 { -0.3 } else { 0.3 })));
                }
                CyclicMode::Velocity => {
                    let velocity = if here > 0.0 { -0.5 } else { 0.5 };
                    world.target(0, AxisTarget::Velocity(RadiansPerSecond(velocity)));
                }
                CyclicMode::Torque => {}
            }
        }
        if step == 700 {
            let moves = world.reports[0].feedback.velocity.0.abs() > 0.2;
            assert_eq!(moves, modes[asked as usize].cyclic() == CyclicMode::Velocity, "{asked}");
            if moves {
                world.command.axes[0] = None;
            }
        }
        if world.cycles > last { Flow::Over } else { Flow::On }
    });
    for axis in 0..2 {
        let places: Vec<f64> = log.cycles.iter().map(|it| it.reports[axis].feedback.position.0).collect();
        let fastest = places.windows(2).map(|it| (it[1] - it[0]).abs() / rig::CYCLE).fold(0.0, f64::max);
        assert!(fastest < VELOCITY * 1.1, "{fastest} rad/s");
    }
    assert!(log.cycles.iter().all(|seen| seen.reports.iter().all(|report| report.stop.is_none())));
    let enabled = Some(State::OperationEnabled);
    assert!(log.cycles.iter().all(|seen| seen.reports.iter().all(|report| report.state == enabled)));
}

/// Cycles for each mode.
const EACH: u64 = 1_000;
