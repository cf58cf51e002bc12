//! Homing, brakes and latched stops, down to simulated drives, in virtual time.
use crate::support;

use ethercat::cia402::{CyclicMode, Request, State};
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::homing::Homing;
use motion::supervision::{FollowingErrorLimit, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisCommand, AxisReport};
use support::scripted::{Scene, play};
use support::{segment, supervised};

/// Report and command of one axis on a cycle.
#[derive(Clone, Copy, Debug)]
struct Seen {
    report: AxisReport,
    request: Request,
    target: f64,
}

/// One drive's axis, supervised and as `change` makes it, moved by `script` for so many cycles.
fn run(
    change: impl FnOnce(&mut AxisConfiguration),
    cycles: u64,
    script: impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send + 'static,
) -> Vec<Seen> {
    let mut axes = supervised(1);
    change(&mut axes[0]);
    play(segment(1), &axes, cycles, script, look)
}

fn look(scene: &Scene<'_>) -> Option<Seen> {
    let Scene { cycles, stopping, report, command } = *scene;
    let seen = Seen { report: *report, request: command.request, target: command.setpoint.position.0 };
    (cycles > 0 && !stopping).then_some(seen)
}

fn positions(seen: &[Seen]) -> Vec<f64> {
    seen.iter().map(|seen| seen.report.feedback.position.0).collect()
}

// feature(axes): homing on the spot and by absolute encoder; brakes
#[test]
fn absolute_encoder_gives_position_and_targets() {
    let homing = Homing::Absolute { offset: Radians(1.5) };
    let seen = run(
        |axis| axis.homing = homing,
        500,
        |cycle, _, command| {
            command.setpoint.position.0 += if cycle < 200 { 1e-3 } else { 0.0 };
        },
    );
    let last = seen.last().unwrap();
    assert!(seen.iter().all(|seen| seen.report.homed));
    assert!((positions(&seen)[0] - 1.5).abs() < 1e-3, "{seen:?}");
    assert!((last.report.feedback.position.0 - last.target).abs() < 1e-3, "{last:?}");
    assert!((1.65..1.75).contains(&last.target), "{last:?}");
}

// feature(axes): homing on the spot and by absolute encoder; brakes
#[test]
fn enabled_axis_at_standstill_is_homed_without_a_jerk() {
    let homing = Homing::CurrentPosition { position: Radians(-2.0) };
    let seen = run(
        |axis| axis.homing = homing,
        800,
        |cycle, _, command| {
            command.setpoint.position.0 += if cycle < 100 { 2e-3 } else { 0.0 };
            // A request to home is ignored while it moves.
            command.home = cycle == 50 || cycle == 400;
            command.setpoint.position.0 += if cycle > 600 { 1e-3 } else { 0.0 };
        },
    );
    let positions = positions(&seen);
    assert!(seen[..399].iter().all(|seen| !seen.report.homed));
    assert!((positions[390] - 0.2).abs() < 0.01, "{}", positions[390]);
    assert!(seen[405].report.homed);
    let homed = &seen[405..600];
    assert!(homed.iter().all(|seen| (seen.report.feedback.position.0 + 2.0).abs() < 1e-3), "{homed:?}");
    assert!(homed.iter().all(|seen| seen.report.feedback.velocity.0.abs() < 0.01), "it moved");
    assert!(seen.iter().all(|seen| seen.report.stop.is_none()));
    let last = seen.last().unwrap();
    assert!((-1.95..-1.75).contains(&last.report.feedback.position.0), "{last:?}");
}

// feature(axes): no controller moves position limits by homing: it homes by hand only what is not homed
#[test]
fn a_controller_that_homes_again_and_again_stays_within_limits() {
    let by_hand = Homing::CurrentPosition { position: Radians::ZERO };
    for (homing, again, farthest) in [
        (Homing::Never, false, 0.5),
        (Homing::Never, true, 0.5),
        (by_hand, false, 0.5),
        (by_hand, true, 1.0),
    ] {
        let cell = format!("{homing:?}, at its operator's request {again}");
        let seen = run(
            |axis| {
                axis.homing = homing;
                let limits = &mut axis.supervision.as_mut().unwrap().limits;
                limits.position = Some((Radians(-0.5), Radians(0.5)));
            },
            2_000,
            move |cycle, report, command| {
                let position = report.feedback.position.0;
                command.setpoint.position.0 +=
                    if (100..900).contains(&(cycle % 1_000)) { 1e-3 } else { 0.0 };
                if report.stop.is_some() || cycle % 1_000 == 999 {
                    (command.request, command.setpoint.position.0) = (Request::FaultReset, position);
                }
                command.home = cycle % 1_000 == 50 || cycle % 1_000 == 950;
                command.home_again = again && command.home;
            },
        );
        let place = |it: &Seen| it.report.counts.map_or(0.0, |(counts, per)| f64::from(counts) / per);
        let most = seen.iter().map(place).fold(0.0, f64::max);
        assert!((most - farthest).abs() < 0.02, "{cell}: {most} rad");
        assert_eq!(seen.last().unwrap().report.homed, homing != Homing::Never, "{cell}");
    }
}

// feature(axes): homing on the spot and by absolute encoder; brakes
#[test]
fn brake_opens_before_motion_and_holds_before_torque_off() {
    let times = BrakeTimes { release: Seconds(0.1), engage: Seconds(0.2) };
    let seen = run(
        |axis| {
            axis.brake = Some(BrakeConfiguration { times, output: None, ..BrakeConfiguration::default() })
        },
        1_000,
        |cycle, _, command| {
            command.setpoint.position.0 += 1e-3;
            if cycle >= 500 {
                command.request = Request::Disable;
            }
        },
    );
    let positions = positions(&seen);
    assert!(positions[..95].iter().all(|position| position.abs() < 2e-3), "{:?}", &positions[..95]);
    assert!(positions[480] > 0.3, "{}", positions[480]);
    let asked = seen.iter().position(|seen| seen.request == Request::Disable).unwrap();
    let enabled =
        seen[asked..].iter().take_while(|seen| seen.report.state == Some(State::OperationEnabled));
    let held = enabled.count();
    assert!((198..210).contains(&held), "the torque went {held} ms after it was asked to");
}

// feature(axes): steps and following errors stop an axis until a reset
#[test]
fn step_stops_the_axis_until_a_reset() {
    let seen = run(
        |_| (),
        1_500,
        |cycle, report, command| {
            let target = &mut command.setpoint.position.0;
            match cycle {
                ..100 => *target += 2e-3,
                100 => *target += 1.0,
                // A controller that commands it like this is wrong.
                101..1_000 => *target = 5.0,
                1_000..1_010 => {
                    command.request = Request::FaultReset;
                    *target = report.feedback.position.0;
                }
                _ if report.feedback.phase == AxisPhase::Following => *target += 1e-3,
                _ => {}
            }
        },
    );
    let stopped = seen.iter().position(|seen| seen.report.stop == Some(StopReason::Step)).unwrap();
    assert!((100..105).contains(&stopped), "{stopped}");
    assert!(seen[stopped..998].iter().all(|seen| seen.report.stop == Some(StopReason::Step)));
    // 2 rad/s at 50 rad/s^2: 0.04 s and 0.04 rad.
    let positions = positions(&seen);
    assert!((0.2..0.3).contains(&positions[900]), "{}", positions[900]);
    let enabled = seen.iter().all(|seen| seen.report.state == Some(State::OperationEnabled));
    assert!(enabled, "the axis kept its torque");
    let last = seen.last().unwrap();
    assert!(
        last.report.stop.is_none() && last.report.feedback.position.0 > positions[900] + 0.3,
        "{last:?}"
    );
}

// feature(axes): steps and following errors stop an axis until a reset
#[test]
fn an_axis_that_lags_is_stopped_by_its_drive() {
    // No drive follows this closely.
    let limit = FollowingErrorLimit { distance: Radians(1e-5), timeout: Seconds(0.05) };
    let seen = run(
        |axis| axis.supervision.as_mut().unwrap().following_error = Some(limit),
        1_000,
        |cycle, _, command| command.setpoint.position.0 += if cycle > 100 { 5e-3 } else { 0.0 },
    );
    let stopped =
        seen.iter().position(|seen| seen.report.stop == Some(StopReason::FollowingError)).unwrap();
    assert!((145..175).contains(&stopped), "{stopped}");
    let states: Vec<State> = seen[stopped..].iter().filter_map(|seen| seen.report.state).collect();
    assert!(states.contains(&State::QuickStopActive), "{states:?}");
    assert_eq!(states.last(), Some(&State::SwitchOnDisabled));
}

#[test]
fn a_mode_other_than_the_axiss_own_is_not_supervised_by_mistake() {
    // Settings say position, the axis is in velocity: a velocity above the limit is what stops it.
    let mut axes = supervised(1);
    axes[0].mode = CyclicMode::Velocity.into();
    let script = |cycle: u64, _: &AxisReport, command: &mut AxisCommand| {
        command.setpoint.velocity = RadiansPerSecond(if cycle > 50 { 11.0 } else { 0.0 });
    };
    let seen = play(support::segment_in(1, CyclicMode::Velocity), &axes, 300, script, look);
    assert_eq!(seen.last().unwrap().report.stop, Some(StopReason::VelocityLimit));
    assert!(seen.iter().all(|seen| seen.report.feedback.velocity.0 < 1.0));
}

#[test]
fn a_target_whole_ranges_of_counts_away_is_not_sent() {
    // 32 bits at 20 bits a turn, and a way that the drive could take.
    let away = Radians(4_096.0 * std::f64::consts::TAU + 0.05);
    let script = move |cycle, _: &AxisReport, command: &mut AxisCommand| match cycle {
        100..300 => command.setpoint.position += Radians(1e-4),
        300 => command.setpoint.position += away,
        _ => {}
    };
    let positions = positions(&run(|axis| axis.supervision = None, 1_000, script));
    assert!(positions.len() > 400, "{} cycles", positions.len());
    let moved = positions[positions.len() - 1] - positions[50];
    assert!((moved - 0.02).abs() < 1e-3, "{moved} rad: the last target that it can take stays");
}
