//! Limits on the set-points that a drive is sent and takes.

use std::collections::BTreeSet;
use std::time::Duration;

use ethercat::cia402::{CyclicMode, State};
use ethercat::time::Instant;
use motion::supervision::{AfterOutage, StopReason};
use onbeat_control::cycle::FrameOrder;
use simulator::application::servo::Taken;

use super::bench::{Case, Fault, Outcome, Sent, UNTIL_RESET, play};
use crate::support::PERIOD;

pub(crate) const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;
/// The limits of [`crate::support::supervised`].
const VELOCITY: f64 = 10.0;
pub(crate) const STEP: f64 = 0.05;
const DECELERATION: f64 = 50.0;
/// So high that a swing's speed is braked at the full deceleration.
pub(crate) const JERK: f64 = 2_000.0;
/// Thousandths of the rated torque a cycle: from 5 N m in a quarter of a second.
const TORQUE_FALL: f64 = 5.0 / 2.4 * 1000.0 / 250.0;

/// The targets that the drive took while it followed them, a line for each one that differs in time
/// by a cycle or more.
fn followed(outcome: &Outcome) -> Vec<Taken> {
    outcome
        .taken
        .iter()
        .filter(|taken| taken.follows() && taken.controlword.enables_operation())
        .copied()
        .collect()
}

pub(crate) fn check(case: Case) {
    let outcome = play(case);
    let followed = followed(&outcome);
    assert!(followed.len() > 100, "it never moved: {case:?}");
    match case.mode {
        CyclicMode::Position => check_positions(case, &outcome, &followed),
        CyclicMode::Velocity => check_velocities(case, &outcome, &followed),
        CyclicMode::Torque => check_torques(case, &outcome, &followed),
    }
    check_unheard(case, &outcome);
    check_ways_back(case, &outcome);
    check_stop(case, &outcome);
}

/// Cycles of the outage: the last report before them, and the first after them or the end of all.
fn silences(outcome: &Outcome) -> Vec<(Instant, Instant)> {
    let fresh = outcome.reports.iter().filter(|(_, report)| report.feedback.fresh);
    let mut heard: Vec<Instant> = fresh.map(|(now, _)| *now).collect();
    heard.extend(outcome.reports.last().map(|(now, _)| *now + PERIOD));
    let apart = heard.windows(2).filter(|it| it[1].since(it[0]) > PERIOD * 3 / 2 && it[1] > outcome.begin);
    apart.map(|it| (it[0], it[1])).collect()
}

/// Set-points that left on the wire in the outage, from the cycle of the last trusted input on. A
/// drive that has left Op by its end takes no outputs, but is read again.
pub(crate) fn sent_unheard(outcome: &Outcome) -> &[Sent] {
    let Some((from, to)) = silences(outcome).first().copied() else { return &[] };
    let index = |at: Instant| outcome.sent.partition_point(|it| it.now < at);
    &outcome.sent[index(from)..index(to.min(outcome.end + PERIOD))]
}

/// The targets of the last cycle with trusted input, of two more, and of no third; what the drive
/// took is one of them.
pub(crate) fn check_unheard(case: Case, outcome: &Outcome) {
    let Some((moving, blind)) = sent_unheard(outcome).split_at_checked(3) else { return };
    // In the last of them there is an input again, and only the velocity is not known yet.
    let blind = &blind[..blind.len() - usize::from(!case.tells_velocity && !blind.is_empty())];
    let last = moving[2];
    let mut before = last;
    for sent in blind {
        assert_eq!(sent.position, last.position, "a third cycle without input: {sent:?} {case:?}");
        let most = |before: f64, by: f64| (before.abs() - by).max(0.0) + 1.0;
        let velocity = most(before.velocity.into(), DECELERATION * 1e-3 * COUNTS_PER_RADIAN);
        let torque = most(before.torque.into(), TORQUE_FALL);
        let (faster, stronger) =
            (f64::from(sent.velocity).abs() > velocity, f64::from(sent.torque).abs() > torque);
        let turns = i64::from(sent.velocity) * i64::from(before.velocity) < 0
            || i32::from(sent.torque) * i32::from(before.torque) < 0;
        assert!(!(faster || stronger || turns), "{before:?} {sent:?} {case:?}");
        before = *sent;
    }
    let Some((from, to)) = blind.first().zip(blind.last()) else { return };
    let during = outcome.taken.iter().filter(|it| it.follows() && from.now < it.now && it.now <= to.now);
    let targets: BTreeSet<i32> = during.map(|it| it.target_position).collect();
    // It receives set-points lost on the way out once the way is free again.
    let most = if case.fault == Fault::Back { 1 } else { 2 };
    let moves = case.mode == CyclicMode::Position && targets.len() > most;
    assert!(!moves, "it took too many targets: {targets:?} {case:?}");
}

/// Steps within the limit of velocity in each cycle. After an outage, if the drive did not receive
/// it, one step to the held set-point, and one to the axis: together three largest ones.
fn check_positions(case: Case, outcome: &Outcome, followed: &[Taken]) {
    let apart = |from: &Taken, to: &Taken| {
        f64::from(to.target_position.wrapping_sub(from.target_position)).abs() / COUNTS_PER_RADIAN
    };
    let rounding = 4.0 / COUNTS_PER_RADIAN;
    let heard: Vec<Instant> = silences(outcome).iter().map(|(_, to)| *to).collect();
    let mut stood = followed[0];
    for pair in followed.windows(2) {
        let after = pair[1].now;
        if after.since(pair[0].now) > Duration::from_micros(250) {
            // It was disabled in between.
            let away = f64::from(pair[1].target_position.wrapping_sub(pair[1].position)).abs();
            assert!(
                away <= 3.0 * STEP * COUNTS_PER_RADIAN,
                "{away} counts from the shaft: {pair:?} {case:?}"
            );
            stood = pair[1];
            continue;
        }
        let begins = heard.iter().any(|&to| to <= after && after < to + PERIOD * 5 / 4);
        let reaches = after >= outcome.end && after < outcome.end + PERIOD * 2;
        let (step, so_far) = (apart(&pair[0], &pair[1]), apart(&stood, &pair[1]));
        if begins || reaches {
            assert!(step.max(so_far) <= 3.0 * STEP + rounding, "{step} {so_far}: {pair:?} {case:?}");
        } else {
            assert!(step <= VELOCITY * 1e-3 + rounding, "{step} rad: {pair:?} {case:?}");
            stood = pair[1];
        }
    }
}

fn check_velocities(case: Case, outcome: &Outcome, followed: &[Taken]) {
    let radians = |taken: &Taken| f64::from(taken.target_velocity) / COUNTS_PER_RADIAN;
    for pair in followed.windows(2) {
        let (before, after) = (radians(&pair[0]), radians(&pair[1]));
        assert!(after.abs() <= VELOCITY * 1.001, "{after} {case:?}");
        let in_outage = pair[1].now > outcome.begin + PERIOD * 4 && pair[1].now < outcome.end;
        assert!(
            !in_outage || after.abs() <= before.abs() + 1e-9,
            "faster during the outage {before} {after} {case:?}"
        );
        let slowed = before.abs() - after.abs();
        if in_outage {
            assert!(slowed <= DECELERATION * 1.1e-3, "{slowed} rad/s in a cycle {case:?}");
        }
    }
}

fn check_torques(case: Case, outcome: &Outcome, followed: &[Taken]) {
    for pair in followed.windows(2) {
        let in_outage = pair[1].now > outcome.begin + PERIOD * 4 && pair[1].now < outcome.end;
        let (before, after) = (pair[0].target_torque.abs(), pair[1].target_torque.abs());
        assert!(!in_outage || after <= before, "more torque during the outage {before} {after} {case:?}");
    }
}

/// Set-points begin at the actual position and velocity, or as near to the place as a step leads,
/// and stop within the limits.
fn check_ways_back(case: Case, outcome: &Outcome) {
    for (from, to) in silences(outcome) {
        // Empty if no reply is received again, or its drive brakes by itself.
        let way = way_back(outcome, to);
        match (case.mode, way.first()) {
            (CyclicMode::Torque, _) | (_, None) => {}
            (CyclicMode::Position, Some(first)) => {
                let before = outcome.sent.iter().rev().find(|it| it.now < to).unwrap();
                let away = |it: &Sent| f64::from(it.position.wrapping_sub(before.position));
                let (position, velocity) = shown(case, outcome, to);
                let (step, moved) = (STEP * COUNTS_PER_RADIAN, velocity * 1e-3);
                let nearest = (position + moved - f64::from(before.position)).clamp(-step, step);
                assert!(
                    (away(first) - nearest).abs() <= 2.0 + unsure(case) * 1e-3,
                    "{first:?}, {nearest} from {before:?} {case:?}"
                );
                let points: Vec<f64> = way.iter().map(away).collect();
                let slower = DECELERATION * 1e-6 * COUNTS_PER_RADIAN + 2.0 + unsure(case) * 1e-3;
                let next = points.get(1).map_or(moved, |next| next - points[0]);
                assert!((next - moved).abs() <= slower, "{next} counts a cycle, not {moved} {case:?}");
                check_differences(&points, &[VELOCITY, DECELERATION, JERK], case);
            }
            (CyclicMode::Velocity, Some(first)) => {
                // It is not sped up beyond what it was sent last.
                let unheard = outcome.sent.iter().filter(|it| from <= it.now && it.now < to);
                let own = if case.fault == Fault::Stall { 1 } else { 3 };
                let fastest = unheard.take(own).last().unwrap();
                let fastest = f64::from(fastest.velocity.abs());
                let velocity = shown(case, outcome, to).1.clamp(-fastest, fastest);
                assert!(
                    (f64::from(first.velocity) - velocity).abs() <= unsure(case),
                    "{first:?} {velocity} {case:?}"
                );
                let points: Vec<f64> = way.iter().map(|it| f64::from(it.velocity)).collect();
                check_differences(&points, &[DECELERATION, JERK], case);
            }
        }
    }
}

/// Position and velocity that the axis showed then, in counts; if its drive reports no velocity,
/// the true one.
fn shown(case: Case, outcome: &Outcome, at: Instant) -> (f64, f64) {
    let feedback = outcome.reports.iter().find(|(now, _)| *now == at).unwrap().1.feedback;
    let velocity = match case.tells_velocity {
        true => feedback.velocity.0 * COUNTS_PER_RADIAN,
        false => outcome.taken.iter().rfind(|it| it.now < at).unwrap().velocity,
    };
    (feedback.position.0 * COUNTS_PER_RADIAN, velocity)
}

/// Tolerance of a velocity against [`shown`], in counts per second: rounding, or one made from the
/// last two positions. A drive that still moves to the held set-point, or to one that it receives
/// again, changes its velocity in between.
fn unsure(case: Case) -> f64 {
    let steady = case.mode == CyclicMode::Velocity || case.outage >= 100;
    match (case.tells_velocity, case.fault) {
        (true, _) => 2.0,
        (false, Fault::Back | Fault::Stall) if steady => 0.2 * COUNTS_PER_RADIAN,
        _ => f64::INFINITY,
    }
}

/// Targets sent from `from` on that the drive took, as long as the outage keeps the axis stopped.
fn way_back(outcome: &Outcome, from: Instant) -> Vec<Sent> {
    // A report shows what became of the cycle before.
    let later = outcome.reports.iter().filter(|(now, _)| *now > from);
    let stopped = later.take_while(|(_, report)| report.stop == Some(StopReason::Outage));
    let end = stopped.last().map_or(from, |(now, _)| *now);
    let mut way = Vec::new();
    for sent in outcome.sent.iter().filter(|it| from <= it.now && it.now < end) {
        let taken = outcome.taken.iter().find(|it| it.now >= sent.now + PERIOD / 2);
        let Some(taken) = taken.filter(|it| it.follows() && it.controlword.enables_operation()) else {
            break;
        };
        assert_eq!((taken.target_position, taken.target_velocity), (sent.position, sent.velocity));
        way.push(*sent);
    }
    way
}

/// Differences of each order over one and more cycles, within its limit and what rounding to counts
/// makes of it.
fn check_differences(points: &[f64], limits: &[f64], case: Case) {
    const SIGNS: [&[f64]; 3] = [&[-1.0, 1.0], &[1.0, -2.0, 1.0], &[-1.0, 3.0, -3.0, 1.0]];
    for (order, (limit, signs)) in limits.iter().zip(SIGNS).enumerate() {
        let rounding = signs.iter().map(|it| it.abs() / 2.0).sum::<f64>();
        for stride in [1, 8, 16] {
            let time = stride as f64 * PERIOD.as_secs_f64();
            let most = limit * time.powi(order as i32 + 1) * COUNTS_PER_RADIAN * 1.001 + rounding;
            for (cycle, window) in points.windows((signs.len() - 1) * stride + 1).enumerate() {
                let terms = signs.iter().zip(window.iter().step_by(stride));
                let found = terms.map(|(sign, point)| sign * point).sum::<f64>().abs();
                let what = format!("difference {} over {stride} in cycle {cycle}", order + 1);
                assert!(found <= most, "{what}: {found} counts, at most {most} {case:?}");
            }
        }
    }
}

/// The reason is shown, and the axis stays where it is until it is reset, or resumes.
fn check_stop(case: Case, outcome: &Outcome) {
    let at = |from: Instant, to: Instant| {
        outcome.reports.iter().filter(move |(now, _)| *now >= from && *now < to).map(|(_, report)| report)
    };
    let reset = outcome.end + PERIOD * UNTIL_RESET as u32;
    let stopped = at(outcome.begin, reset).any(|report| report.stop == Some(StopReason::Outage));
    // Where both ways are out, the last reply before the outage is lost as well, if it is taken a
    // cycle later.
    let both = case.fault == Fault::Both && case.order == FrameOrder::ReplyOfLastCycle;
    let missed = case.outage + u64::from(both);
    // An axis in torque mode that is slow enough to count as standstill resumes in the cycle in
    // which its outage ends.
    let at_once = case.mode == CyclicMode::Torque && case.after == AfterOutage::Resume;
    assert!(stopped == (missed > 2) || (at_once && !stopped), "{case:?}");
    if missed <= 2 {
        return;
    }
    if case.after == AfterOutage::Stay {
        // Some time to stop; then nothing moves until a reset.
        let rests = outcome.end + Duration::from_millis(600);
        let speeds = at(rests, reset).map(|report| report.feedback.velocity.0.abs());
        let fastest = speeds.fold(0.0, f64::max);
        let allowed = match case.mode {
            CyclicMode::Torque => 2.0,
            // A heavy load swings about where it is held for longer.
            _ if case.heavy => 0.1,
            _ => 0.02,
        };
        assert!(fastest < allowed, "it moved at {fastest} rad/s before somebody asked {case:?}");
    }
    // A drive that was without outputs for longer than its watchdog waits has left Op.
    let watched = matches!(case.fault, Fault::Back) || case.outage < 90;
    if watched {
        let later = reset + Duration::from_millis(250);
        let moves = at(later, later + Duration::from_secs(1)).any(|report| {
            report.stop.is_none()
                && report.state == Some(State::OperationEnabled)
                && report.feedback.velocity.0.abs() > 0.05
        });
        assert!(moves, "it never moved again {case:?}");
    }
}
