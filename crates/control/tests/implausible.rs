//! Positions that an axis cannot have reached, behind right working counters, in virtual time: a
//! broken encoder, bytes that were changed on the way. No target follows them.
use crate::support;

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::time::Instant;
use ethercat::wire::{Command, Frame};
use motion::homing::Homing;
use motion::supervision::StopReason;
use motion::{Radians, RadiansPerSecond};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisCommand, AxisReport};
use simulator::Segment;
use support::scripted::play;
use support::{segment_in, supervised};

/// Position of the drive on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Shown {
    /// As it is.
    Truth,
    /// Any number.
    Random,
    /// Fifty radians on, and so are the targets that it takes: it counts from elsewhere.
    Elsewhere,
    /// Any number in two replies of three.
    TwoOfThree,
    /// Where it is in the cycle in which that began, then a radian farther in each.
    Runaway,
}

const ALL: [Shown; 5] = [Shown::Truth, Shown::Random, Shown::Elsewhere, Shown::TwoOfThree, Shown::Runaway];

/// A reply as the drive meant it, and the target it was sent with the request.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    shown: Shown,
    position: i32,
    target: i32,
}

/// The segment of one drive, with another position on the wire.
struct Lying {
    segment: Segment,
    shown: Arc<AtomicU8>,
    /// Its statusword on the wire; 0: as it is.
    word: Arc<AtomicU16>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    random: fastrand::Rng,
    replies: i32,
}

impl ethercat::link::Segment for Lying {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let places: Vec<_> = Frame::parse(frame).unwrap().places().collect();
        let data = places.iter().find(|it| it.header.command == Command::Lrw).map(|it| it.data());
        let number = |frame: &[u8], at: usize| i32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
        let sent = data.as_ref().map(|data| number(frame, data.start + 2));
        let shown = ALL[usize::from(self.shown.load(Ordering::Relaxed))];
        let away = if shown == Shown::Elsewhere { counts(50.0) } else { 0 };
        if let (Some(data), Some(target)) = (&data, sent) {
            let target = target.wrapping_sub(away);
            frame[data.start + 2..data.start + 6].copy_from_slice(&target.to_le_bytes());
        }
        let comes_back = self.segment.process_frame(now, frame);
        let (Some(target), Some(data)) = (sent, data) else { return comes_back };
        let at = data.end - 10;
        let position = number(frame, at).wrapping_add(away);
        self.exchanges.lock().unwrap().push(Exchange { shown, position, target });
        self.replies = if shown == Shown::Truth { 0 } else { self.replies + 1 };
        let told = match shown {
            Shown::Random => self.random.i32(..),
            Shown::TwoOfThree if self.replies % 3 != 0 => self.random.i32(..),
            Shown::Truth | Shown::TwoOfThree | Shown::Elsewhere => position,
            Shown::Runaway => position.wrapping_add(self.replies.wrapping_mul(counts(1.0))),
        };
        frame[at..at + 4].copy_from_slice(&told.to_le_bytes());
        let word = self.word.load(Ordering::Relaxed);
        if word != 0 {
            frame[at - 2..at].copy_from_slice(&word.to_le_bytes());
        }
        comes_back
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

fn counts(radians: f64) -> i32 {
    (radians / TAU * f64::from(1 << 20)) as i32
}

/// Cycles from which, and up to which, another position is shown.
const FROM: u64 = 300;
const TO: u64 = 700;

/// One axis in its lying segment: reports by cycle, and what the wire carried.
struct Run {
    reports: Vec<(u64, AxisReport)>,
    exchanges: Vec<Exchange>,
}

fn run(
    axis: AxisConfiguration,
    shown: Shown,
    script: impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send + 'static,
) -> Run {
    run_with(axis, shown, |_| 0, script)
}

/// The same with the statusword of each cycle; 0: as it is.
fn run_with(
    axis: AxisConfiguration,
    shown: Shown,
    words: fn(u64) -> u16,
    mut script: impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send + 'static,
) -> Run {
    let (switch, exchanges) = (Arc::new(AtomicU8::new(0)), Arc::default());
    let word = Arc::new(AtomicU16::new(0));
    let segment = Lying {
        segment: segment_in(1, axis.mode.cyclic()),
        shown: Arc::clone(&switch),
        word: Arc::clone(&word),
        exchanges: Arc::clone(&exchanges),
        random: fastrand::Rng::with_seed(7),
        replies: 0,
    };
    let script = move |cycle, report: &AxisReport, command: &mut AxisCommand| {
        let now = if (FROM..TO).contains(&cycle) { shown } else { Shown::Truth };
        switch.store(now as u8, Ordering::Relaxed);
        word.store(words(cycle), Ordering::Relaxed);
        script(cycle, report, command);
    };
    let reports = play(segment, &[axis], 2_000, script, |scene| {
        (scene.cycles > 0 && !scene.stopping).then_some((scene.cycles, *scene.report))
    });
    let exchanges = exchanges.lock().unwrap().clone();
    Run { reports, exchanges }
}

impl Run {
    /// Greatest distance of a target from the drive while another position was shown, in rad.
    fn farthest(&self) -> f64 {
        let lies = self.exchanges.iter().filter(|it| it.shown != Shown::Truth);
        let away = lies.map(|it| it.target.wrapping_sub(it.position).unsigned_abs());
        f64::from(away.max().unwrap()) * TAU / f64::from(1 << 20)
    }

    fn stops(&self) -> Vec<StopReason> {
        let mut stops: Vec<_> = self.reports.iter().filter_map(|(_, report)| report.stop).collect();
        stops.dedup();
        stops
    }

    fn at(&self, cycle: u64) -> &AxisReport {
        &self.reports.iter().find(|(it, _)| *it == cycle).unwrap().1
    }
}

/// Greatest distance from the drive of a target that does not follow the shown position: a slow
/// motion, and rounding.
const NEAR: f64 = 0.05;

fn moved(command: &mut AxisCommand, report: &AxisReport) {
    if report.stop.is_none() {
        command.setpoint.position.0 += 5e-4;
    }
}

// feature(axes): a position that an axis cannot have come to moves no target; the third in a row stops it
#[test]
fn implausible_positions_stop_a_following_axis() {
    for shown in [Shown::Random, Shown::Runaway] {
        let seen = run(supervised(1).remove(0), shown, |_, report, command| moved(command, report));
        assert_eq!(seen.stops(), [StopReason::Implausible], "{shown:?}");
        assert!(seen.farthest() < NEAR, "{shown:?}: {} rad", seen.farthest());
        let stopped = seen.reports.iter().find(|(_, report)| report.stop.is_some()).unwrap().0;
        assert!((FROM + 2..FROM + 8).contains(&stopped), "{shown:?}: {stopped}");
        // Its quick stop, then no torque, until a reset.
        let last = &seen.reports.last().unwrap().1;
        assert_eq!((last.state, last.missed), (Some(State::SwitchOnDisabled), 0), "{shown:?}");
        assert_eq!(last.stop, Some(StopReason::Implausible), "{shown:?}");
    }
}

#[test]
fn targets_of_an_axis_that_is_not_led_do_not_follow_them_either() {
    for request in [Request::Disable, Request::Halt, Request::QuickStop, Request::FaultReset] {
        for mode in [CyclicMode::Position, CyclicMode::Velocity] {
            for shown in [Shown::Random, Shown::Runaway] {
                let axis = AxisConfiguration { mode: mode.into(), ..supervised(1).remove(0) };
                let seen = run(axis, shown, move |cycle, _, command| {
                    if cycle >= 200 {
                        command.request = request;
                    }
                });
                assert!(seen.farthest() < NEAR, "{request:?} {mode:?} {shown:?}: {} rad", seen.farthest());
                assert_eq!(seen.stops(), [StopReason::Implausible], "{request:?} {mode:?} {shown:?}");
            }
        }
    }
}

#[test]
fn reset_releases_the_axis_once_positions_are_plausible() {
    for shown in [Shown::Random, Shown::Runaway] {
        let script = |cycle: u64, report: &AxisReport, command: &mut AxisCommand| {
            // While its position is unknown a reset ends nothing.
            let resets = cycle == 600 || (TO + 50..TO + 60).contains(&cycle);
            command.request = if resets { Request::FaultReset } else { Request::Enable };
            if cycle > 150 {
                moved(command, report);
            }
        };
        let axis = AxisConfiguration {
            homing: Homing::CurrentPosition { position: Radians(0.25) },
            ..supervised(1).remove(0)
        };
        let seen = run(axis, shown, move |cycle, report, command| {
            command.home = cycle == 100;
            script(cycle, report, command);
        });
        assert_eq!(seen.stops(), [StopReason::Implausible], "{shown:?}");
        assert!(seen.at(FROM - 1).homed);
        assert_eq!(seen.at(TO + 40).stop, Some(StopReason::Implausible), "{shown:?}");
        let last = &seen.reports.last().unwrap().1;
        assert_eq!((last.state, last.stop), (Some(State::OperationEnabled), None), "{shown:?}");
        assert!(last.homed, "{shown:?}: it is where it was");
        assert!(seen.farthest() < NEAR, "{shown:?}: {} rad", seen.farthest());
    }
}

/// A fault that begins and ends while positions are implausible.
#[test]
fn a_fault_at_implausible_positions_is_shown_until_it_ends() {
    let words = |cycle| match cycle {
        400..440 => 0x021F,
        440..500 => 0x0218,
        500..600 => 0x0250,
        _ => 0,
    };
    let seen = run_with(supervised(1).remove(0), Shown::Random, words, |_, _, _| ());
    for (cycle, state, word) in [
        (430, State::FaultReactionActive, 0x021F),
        (490, State::Fault, 0x0218),
        (590, State::SwitchOnDisabled, 0x0250),
    ] {
        let report = seen.at(cycle);
        assert_eq!((report.state, report.statusword.0), (Some(state), word), "{cycle}");
    }
}

/// A drive that jumps to another origin, and continues from there: its axis is where it says, and
/// not homed.
#[test]
fn lasting_jump_is_accepted_after_a_reset_as_not_homed() {
    for (homing, is_homed) in [
        (Homing::CurrentPosition { position: Radians(0.25) }, false),
        (Homing::Absolute { offset: Radians(0.5) }, true),
    ] {
        let axis = AxisConfiguration { homing, ..supervised(1).remove(0) };
        let seen = run(axis, Shown::Elsewhere, |cycle, _, command| {
            command.home = cycle == 100;
            command.request = match cycle {
                200..600 => Request::Disable,
                600..610 => Request::FaultReset,
                _ => Request::Enable,
            };
        });
        assert!(seen.at(FROM - 1).homed);
        assert_eq!(seen.at(590).stop, Some(StopReason::Implausible), "{homing:?}");
        let there = seen.at(680);
        assert_eq!((there.state, there.stop), (Some(State::OperationEnabled), None), "{homing:?}");
        assert_eq!(there.homed, is_homed, "{homing:?}");
        // From there back is as far.
        let then =
            seen.reports.iter().filter(|(cycle, _)| *cycle >= TO).find_map(|(_, report)| report.stop);
        assert_eq!(then, Some(StopReason::Implausible), "{homing:?}");
    }
}

/// As with replies that do not come.
#[test]
fn two_such_positions_in_a_row_are_passed_over() {
    let seen = run(supervised(1).remove(0), Shown::TwoOfThree, |_, report, command| moved(command, report));
    assert_eq!(seen.stops(), []);
    assert!(seen.farthest() < NEAR, "{} rad", seen.farthest());
    let (before, after) = (seen.at(FROM).feedback.position, seen.at(TO).feedback.position);
    assert!(
        ((after - before).0 - (TO - FROM) as f64 * 5e-4).abs() < 0.01,
        "it goes on: {before:?} {after:?}"
    );
}

/// Speed beyond which its positions are implausible: ten times its limit, or the configured speed.
#[test]
fn configured_speed_is_plausible() {
    let axis = supervised(1).remove(0);
    let faster = AxisConfiguration { feedback_velocity: Some(RadiansPerSecond(2_000.0)), ..axis.clone() };
    for (axis, stops) in [(axis, vec![StopReason::Implausible]), (faster, Vec::new())] {
        // Disabled, turned by hand: a radian in a cycle is 1000 rad/s.
        let seen = run(axis, Shown::Runaway, |cycle, _, command| {
            if cycle >= 200 {
                command.request = Request::Disable;
            }
        });
        let seen = seen.reports.into_iter().filter(|(cycle, _)| *cycle < TO);
        let mut found: Vec<_> = seen.filter_map(|(_, report)| report.stop).collect();
        found.dedup();
        assert_eq!(found, stops);
    }
}
