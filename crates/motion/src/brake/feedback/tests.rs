//! A brake with feedback that agrees with its command, contradicts it, or is lost.

use types::state::InputLevel::{self, High, Lost, Low, Unknown};

use super::*;
use crate::brake::{Brake, BrakeSeen, Braked};

const CYCLE: Seconds = Seconds(1e-3);

/// Cycles within which a contradiction after a command is a fault.
const SOON: usize = 150;

/// A brake, and the levels of its inputs; `None` for a missing input.
struct Bench {
    brake: Brake,
    released: Option<InputLevel>,
    closed: Option<InputLevel>,
    seen: BrakeSeen,
}

impl Bench {
    /// Closed, at a drive that is enabled.
    fn new() -> Self {
        let times = BrakeTimes { release: Seconds(0.1), engage: Seconds(0.05) };
        let seen = BrakeSeen { torque: true, powered: true, is_reached: true, ..BrakeSeen::default() };
        Self { brake: Brake::new(times), released: Some(Low), closed: Some(High), seen }
    }

    /// Open, and moved.
    fn open() -> Self {
        let mut bench = Self::new();
        bench.seen.wanted = true;
        bench.cycles(90);
        bench.show(High, Low);
        assert!(bench.cycles(20).free);
        bench
    }

    fn show(&mut self, released: InputLevel, closed: InputLevel) {
        (self.released, self.closed) = (Some(released), Some(closed));
    }

    fn cycle(&mut self) -> Braked {
        let reading = |level: InputLevel| InputReading { level, inverted: false };
        let reading =
            BrakeReading { released: self.released.map(reading), closed: self.closed.map(reading) };
        self.brake.step(CYCLE, &BrakeSeen { reading, ..self.seen })
    }

    fn cycles(&mut self, count: usize) -> Braked {
        (0..count).map(|_| self.cycle()).last().unwrap()
    }

    /// Reason and input of the fault within [`SOON`] cycles.
    fn fault(&mut self) -> Option<(StopReason, BrakeInput, InputLevel)> {
        self.cycles(SOON);
        self.brake.fault().map(|it| (it.reason, it.cause.input, it.cause.level))
    }
}

#[test]
fn a_brake_that_agrees_opens_and_closes() {
    let mut bench = Bench::open();
    assert!(bench.cycles(1_000).free);
    bench.seen.wanted = false;
    assert!(bench.cycles(30).keep_torque);
    bench.show(Low, High);
    assert!(!bench.cycles(21).keep_torque);
    bench.cycles(1_000);
    assert_eq!(bench.brake.fault(), None);
}

#[test]
fn a_brake_that_stays_closed_never_frees_its_axis() {
    let stuck = [
        (Some(Low), None, BrakeInput::Released, Low),
        (None, Some(High), BrakeInput::Closed, High),
        (Some(Low), Some(High), BrakeInput::Released, Low),
        // The inputs disagree with each other.
        (Some(Low), Some(Low), BrakeInput::Released, Low),
        (Some(High), Some(High), BrakeInput::Closed, High),
        (Some(Lost), Some(Low), BrakeInput::Released, Lost),
    ];
    for (released, closed, input, level) in stuck {
        let mut bench = Bench::new();
        (bench.released, bench.closed) = (released, closed);
        bench.seen.wanted = true;
        assert!((0..500).all(|_| !bench.cycle().free), "{released:?} {closed:?}");
        let fault = bench.fault();
        assert_eq!(fault, Some((StopReason::BrakeNotOpen, input, level)), "{released:?} {closed:?}");
    }
}

#[test]
fn the_drive_keeps_its_torque_at_a_brake_that_stays_open() {
    let stuck = [
        (Some(High), None, BrakeInput::Released, High),
        (None, Some(Low), BrakeInput::Closed, Low),
        (Some(High), Some(Low), BrakeInput::Closed, Low),
        (Some(Low), Some(Low), BrakeInput::Closed, Low),
        (Some(High), Some(High), BrakeInput::Released, High),
        (Some(Low), Some(Lost), BrakeInput::Closed, Lost),
    ];
    for (released, closed, input, level) in stuck {
        let mut bench = Bench::open();
        (bench.released, bench.closed) = (released, closed);
        bench.seen.wanted = false;
        let kept = (0..2_000).all(|_| bench.cycle().keep_torque);
        assert!(kept, "{released:?} {closed:?}");
        let fault = bench.fault();
        assert_eq!(fault, Some((StopReason::BrakeNotClosed, input, level)));
        assert!(bench.brake.holds_by_torque());
        bench.brake.acknowledge();
        assert!(bench.brake.fault().is_some(), "it persists");
        // One reading is no agreement: the contact bounces.
        bench.show(Low, High);
        assert!(bench.cycle().keep_torque);
        assert!(!bench.cycles(30).keep_torque, "it has closed");
        assert!(bench.brake.fault().is_some(), "until it is acknowledged");
        bench.brake.acknowledge();
        assert_eq!(bench.fault(), None);
    }
}

#[test]
fn torque_that_has_to_go_stays_until_the_fault_is_known() {
    let mut bench = Bench::open();
    bench.seen = BrakeSeen { wanted: false, gives_way: true, ..bench.seen };
    bench.show(High, Low);
    let kept = (0..200).take_while(|_| bench.cycle().keep_torque).count();
    assert!((60..90).contains(&kept), "{kept}");
    assert_eq!(bench.brake.fault().map(|it| it.reason), Some(StopReason::BrakeNotClosed));
}

#[test]
fn a_change_without_a_command_is_a_fault() {
    let mut bench = Bench::open();
    bench.show(Low, Low);
    bench.cycles(15);
    assert_eq!(bench.brake.fault(), None, "a contact that bounces");
    bench.show(High, Low);
    bench.cycles(15);
    bench.show(Low, High);
    assert_eq!(bench.fault(), Some((StopReason::BrakeNotOpen, BrakeInput::Released, Low)));

    // Also at a drive without torque.
    let mut bench = Bench::new();
    bench.seen = BrakeSeen { torque: false, powered: false, ..bench.seen };
    bench.cycles(200);
    bench.show(High, Low);
    assert_eq!(bench.fault(), Some((StopReason::BrakeNotClosed, BrakeInput::Closed, Low)));
}

#[test]
fn a_drive_that_loses_its_torque_has_a_brake_that_closes() {
    let mut bench = Bench::open();
    bench.seen.torque = false;
    let braked = bench.cycle();
    assert!(!braked.power && !braked.keep_torque && !braked.free);
    bench.cycles(40);
    assert_eq!(bench.brake.fault(), None, "it has its time");
    assert_eq!(bench.fault().map(|it| it.0), Some(StopReason::BrakeNotClosed));
}

#[test]
fn an_outage_of_all_is_no_fault_of_the_brake() {
    let mut bench = Bench::open();
    bench.seen.is_reached = false;
    bench.show(Lost, Lost);
    assert_eq!(bench.fault(), None);
    bench.seen.is_reached = true;
    assert_eq!(bench.fault(), Some((StopReason::BrakeNotOpen, BrakeInput::Released, Lost)));
    let mut bench = Bench::new();
    bench.show(Unknown, Unknown);
    assert_eq!(bench.fault(), None, "an input that has not been read yet");
}

/// A drive that powers its brake opens it while it is enabled, and closes it afterwards.
#[test]
fn a_brake_of_the_drive_closes_once_it_is_disabled() {
    let mut bench = Bench::new();
    bench.brake = bench.brake.by_drive();
    bench.show(High, Low);
    bench.seen.wanted = true;
    assert!(bench.cycles(200).free);
    bench.seen.wanted = false;
    assert!(bench.cycles(40).keep_torque);
    assert!(!bench.cycles(20).keep_torque, "it cannot close before");
    assert_eq!(bench.fault(), None);
    bench.seen = BrakeSeen { torque: false, powered: false, ..bench.seen };
    assert_eq!(bench.fault().map(|it| it.0), Some(StopReason::BrakeNotClosed));
}

#[test]
fn feedback_is_pending_until_it_shows_a_closed_brake_or_a_fault() {
    for (closes, by_drive) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut bench = Bench::open();
        if by_drive {
            bench.brake = bench.brake.by_drive();
        }
        bench.seen = BrakeSeen { torque: false, powered: false, wanted: false, ..bench.seen };
        assert!(bench.brake.is_pending());
        bench.cycles(45);
        assert!(bench.brake.is_pending(), "it still has time");
        if closes {
            bench.show(Low, High);
        }
        let left = (0..SOON).position(|_| {
            bench.cycle();
            !bench.brake.is_pending()
        });
        let left = (45 + left.unwrap()) as f64 * CYCLE.0;
        assert!(left <= bench.brake.time_to_show(CYCLE).0, "{left}");
        assert_eq!(bench.brake.fault().is_none(), closes);
    }
}

#[test]
fn a_brake_has_shown_nothing_until_it_is_closed_or_at_fault() {
    let off = BrakeSeen { is_reached: true, ..BrakeSeen::default() };
    let mut bench = Bench { seen: off, ..Bench::new() };
    bench.show(Unknown, Unknown);
    bench.cycles(SOON);
    assert!(!bench.brake.has_shown() && !bench.brake.is_pending());
    bench.show(High, Low);
    bench.cycle();
    assert!(!bench.brake.has_shown());
    bench.show(Low, High);
    bench.cycle();
    assert!(bench.brake.has_shown());
    let mut open = Bench { seen: off, ..Bench::new() };
    open.show(High, Low);
    open.cycles(60);
    assert!(!open.brake.has_shown());
    open.cycles(20);
    assert!(open.brake.has_shown() && open.brake.fault().is_some());
}

#[test]
fn an_inverted_input_is_on_while_it_is_low() {
    let reading =
        |level| BrakeReading { released: Some(InputReading { level, inverted: true }), closed: None };
    assert_eq!(reading(Low).not_open(), None);
    assert!(reading(Low).not_closed().is_some());
    assert_eq!(reading(High).not_closed(), None);
    assert!(reading(Lost).not_open().is_some() && reading(Lost).not_closed().is_some());
}
