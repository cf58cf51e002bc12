//! Power, safe torque off and main power that return: no axis moves without a new start request, in
//! virtual time. The tests evaluate what the simulated drives took.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use motion::supervision::{AfterOutage, StopReason};
use motion::{AxisPhase, Radians, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::axis::start::AxisStart;
use onbeat_control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::Segment;
use simulator::application::servo::ServoDrive;
use support::scripted::play;
use support::{PERIOD, cycle_of, segment, supervised};

/// Loss that the drive sees, and its return, by the cycle of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// The drive restarts.
    Power,
    SafeTorqueOff,
    /// The drive reports an under-voltage fault; it is reset before main power is back.
    MainPower,
}

/// Start request of the controller after the return.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asks {
    Nothing,
    /// Fault reset, as `control enable` sends it.
    Reset,
    /// Disabled for a cycle, and enabled again.
    Rises,
}

const LOST: u64 = 500;
/// Longer than a drive may take to charge its DC link.
const BACK: u64 = 4_500;
/// Longer after the return than a drive and its SubDevice take to reach Op.
const ASKED: u64 = 6_500;
const CYCLES: u64 = 8_000;

struct Bench {
    segment: Segment,
    cycle: Arc<AtomicU64>,
    what: What,
    lost: bool,
}

impl Bench {
    fn act(&mut self) {
        let cycle = self.cycle.load(Ordering::Relaxed);
        let lost = (LOST..BACK).contains(&cycle);
        if std::mem::replace(&mut self.lost, lost) == lost {
            return;
        }
        let drive = |segment: &mut Segment, change: &dyn Fn(&mut ServoDrive)| {
            change(segment.sub_device_mut(0).unwrap().servo_mut().unwrap());
        };
        match self.what {
            What::Power if lost => assert!(self.segment.power_off(0)),
            What::Power => assert!(self.segment.power_on(0)),
            What::SafeTorqueOff => drive(&mut self.segment, &|it| it.set_safe_torque_off(0, lost)),
            What::MainPower => drive(&mut self.segment, &|it| it.set_main_power(!lost)),
        }
    }
}

impl ethercat::link::Segment for Bench {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.act();
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// Reports of an axis that its controller moves all the time.
fn reports(what: What, asks: Asks, after: AfterOutage) -> Vec<AxisReport> {
    let cycle = Arc::new(AtomicU64::new(0));
    let bench = Bench { segment: segment(1), cycle: Arc::clone(&cycle), what, lost: false };
    let mut axes = supervised(1);
    let outage = &mut axes[0].supervision.as_mut().unwrap().outage;
    (outage.time, outage.after) = (Some(Seconds(0.05)), after);
    let script = move |now: u64, report: &AxisReport, command: &mut AxisCommand| {
        cycle.store(now, Ordering::Relaxed);
        // The fault of a lost main power is reset while it is missing.
        let resets = what == What::MainPower && (LOST + 100..LOST + 130).contains(&now);
        match asks {
            _ if resets => command.request = Request::FaultReset,
            Asks::Reset if (ASKED..ASKED + 20).contains(&now) => command.request = Request::FaultReset,
            Asks::Rises if now == ASKED => command.request = Request::Disable,
            _ => {}
        }
        if report.state == Some(State::OperationEnabled) {
            command.setpoint.position += Radians(1e-3);
        }
    };
    play(bench, &axes, CYCLES, script, |scene| {
        (scene.cycles > 0 && !scene.stopping).then_some(*scene.report)
    })
}

fn is_enabled(report: &AxisReport) -> bool {
    report.state == Some(State::OperationEnabled) && report.missed == 0
}

// feature(axes): power, STO and main power that return move nothing without a new start request
#[test]
fn what_returns_moves_no_axis_without_a_start_request() {
    for what in [What::Power, What::SafeTorqueOff, What::MainPower] {
        for asks in [Asks::Nothing, Asks::Reset, Asks::Rises] {
            for after in [AfterOutage::Resume, AfterOutage::Stay] {
                let cell = format!("{what:?}, {asks:?}, {after:?}");
                let seen = reports(what, asks, after);
                assert!(is_enabled(&seen[LOST as usize - 10]), "{cell}");
                let held = LOST as usize + 200..ASKED as usize;
                assert!(!seen[held].iter().any(is_enabled), "{cell}: enabled by itself");
                let waits = seen[ASKED as usize - 1];
                let stays = what == What::Power && after == AfterOutage::Stay;
                let reason = if stays { StopReason::Outage } else { StopReason::AwaitsStart };
                assert_eq!(waits.stop, Some(reason), "{cell}");
                let last = seen.last().unwrap();
                // An outage that stays has to be reset.
                let starts = asks == Asks::Reset || asks == Asks::Rises && !stays;
                assert_eq!(is_enabled(last), starts, "{cell}: {last:?}");
                assert!(!starts || last.feedback.velocity.0 > 0.5, "{cell}: {last:?}");
            }
        }
    }
}

// feature(axes): a start request that a drive does not carry out lapses
#[test]
fn a_start_request_that_is_not_carried_out_lapses() {
    let cycle = Arc::new(AtomicU64::new(0));
    let bench =
        Bench { segment: segment(1), cycle: Arc::clone(&cycle), what: What::SafeTorqueOff, lost: false };
    let script = move |now: u64, _: &AxisReport, command: &mut AxisCommand| {
        // A start request while STO is active; STO ends 12 s later.
        command.request = if now == LOST + 50 { Request::Disable } else { Request::Enable };
        cycle.store(if now < LOST + 12_000 { now.min(LOST) } else { BACK }, Ordering::Relaxed);
    };
    let seen = play(bench, &supervised(1), 15_000, script, |scene| {
        (scene.cycles > 0 && !scene.stopping).then_some(*scene.report)
    });
    let at = |cycle: u64| (seen[cycle as usize].stop, is_enabled(&seen[cycle as usize]));
    assert_eq!(at(LOST + 40), (Some(StopReason::AwaitsStart), false));
    assert_eq!(at(LOST + 5_000), (None, false), "the request is in progress");
    assert_eq!(at(LOST + 11_000), (Some(StopReason::AwaitsStart), false), "it has lapsed");
    assert_eq!(at(LOST + 14_000), (Some(StopReason::AwaitsStart), false), "STO is over");
}

/// Reports of an axis with its drive in fault before the run, with this behaviour at the start;
/// from its first cycle in Op on.
fn after_a_crash(code: u16, start: AxisStart, starts: bool) -> Vec<AxisReport> {
    let (mut drive, _record) = support::sub_device(CyclicMode::Position, |_| ());
    drive.servo_mut().unwrap().raise_fault(0, code);
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(Segment::new(vec![drive]), clock.clone(), Duration::from_micros(60));
    let axis = AxisConfiguration { start, ..supervised(1).remove(0) };
    let (see, seen) = channel();
    let configuration = CycleConfiguration { cycles: Some(3_000), ..CycleConfiguration::every(PERIOD) };
    let controller = Wishes { starts, cycles: 0, see };
    let (cycle, _observer) = cycle_of(link, clock, &[axis], controller, configuration);
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    seen.try_iter().collect()
}

/// Wants the axis enabled all the time; later, a start request may come.
struct Wishes {
    starts: bool,
    cycles: u64,
    see: Sender<AxisReport>,
}

impl Controller for Wishes {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.cycles += 1;
        let starts = self.starts && (2_000..2_010).contains(&self.cycles);
        commands[0].request = if starts { Request::FaultReset } else { Request::Enable };
        if let AxisPhase::HoldingAt(position) = reports[0].feedback.phase {
            commands[0].setpoint.position = position;
        }
        if !info.stopping {
            let _ = self.see.send(reports[0]);
        }
    }
}

// feature(axes): `reset_faults`: a fault that a crash has left is reset, and enables nothing on a wire
#[test]
fn a_fault_of_before_is_reset_and_enables_nothing() {
    let left = Some(0x7500);
    for (what, code, start, states) in [
        ("on a wire", 0x7500, AxisStart { reset: left, waits: true }, [State::SwitchOnDisabled; 2]),
        ("simulated", 0x7500, AxisStart { reset: left, waits: false }, [State::OperationEnabled; 2]),
        ("another fault", 0x2310, AxisStart { reset: left, waits: true }, [State::Fault; 2]),
        ("no reset", 0x7500, AxisStart::default(), [State::Fault; 2]),
        ("no fault", 0, AxisStart { reset: None, waits: true }, [State::SwitchOnDisabled; 2]),
    ] {
        for starts in [false, true] {
            let seen = after_a_crash(code, start, starts);
            let at = |cycle: usize| (seen[cycle].state, seen[cycle].stop);
            assert_eq!(at(1_900).0, Some(states[0]), "{what}: {:?}", at(1_900));
            let enabled_before = seen[..1_990].iter().any(is_enabled);
            assert_eq!(enabled_before, what == "simulated", "{what}: the wish of before enabled it");
            if start.waits && states[0] == State::SwitchOnDisabled {
                assert_eq!(at(1_900).1, Some(StopReason::AwaitsStart), "{what}");
            }
            let last = if starts { State::OperationEnabled } else { states[1] };
            assert_eq!(seen.last().unwrap().state, Some(last), "{what}, {starts}");
        }
    }
}
