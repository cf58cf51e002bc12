//! Drives that count from another origin after a restart, or in Op, in virtual time. No reset and
//! no controller moves their axes: the tests evaluate the true positions of the simulated shafts.
use crate::support;

use std::f64::consts::{PI, TAU};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use motion::PositionSense;
use motion::supervision::{AfterOutage, Limits, Outage, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Cause;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{Circumstances, Finding};
use rt::clock::VirtualClock;
use simulator::application::servo::{PlantParameters, ServoDescription, ServoDrive, ServoRecord};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, supervised};

/// Event of the first drive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Its power is off for 50 ms; meanwhile its count changes by so many turns.
    Restart { count: f64 },
    /// Its power is off, and its shaft is turned by one turn, which its encoder does not see.
    Turned,
    /// In Op, its count changes by so many turns.
    Recount { turns: f64 },
    /// It reports a fault of its position sensor.
    SensorFault,
    /// The same, but its error code comes 50 ms later, and the controller has reset the fault by
    /// then.
    LateSensorFault,
    /// Its cable is out for 50 ms; the drive keeps its power.
    Cable,
}

/// Cycle of the event, while the axis moves.
const AT: u64 = 1_450;
/// Cycle from which a controller resets all axes again and again, and homes them.
const RESETS: u64 = 3_000;
const CYCLES: u64 = 6_000;
const LIMIT: f64 = 1.2;

/// The segment in which that happens, by the number of the cycle.
struct Bench {
    segment: Segment,
    cycle: Arc<AtomicU64>,
    what: What,
    step: u8,
}

impl Bench {
    fn act(&mut self) {
        let cycle = self.cycle.load(Ordering::Relaxed);
        let due = if self.step == 0 { AT } else { AT + 50 };
        if cycle < due || self.step > 1 {
            return;
        }
        self.step += 1;
        let first = self.step == 1;
        let drive = |it: &mut Segment, change: &dyn Fn(&mut ServoDrive)| {
            change(it.sub_device_mut(0).unwrap().servo_mut().unwrap());
        };
        match self.what {
            What::Restart { .. } | What::Turned if first => assert!(self.segment.power_off(0)),
            What::Restart { count } => {
                drive(&mut self.segment, &|it| it.shift_count(0, count));
                assert!(self.segment.power_on(0));
            }
            What::Turned => {
                drive(&mut self.segment, &|it| {
                    it.displace(0, 1.0);
                    it.shift_count(0, -1.0);
                });
                assert!(self.segment.power_on(0));
            }
            What::Recount { turns } if first => drive(&mut self.segment, &|it| it.shift_count(0, turns)),
            What::SensorFault if first => drive(&mut self.segment, &|it| it.raise_fault(0, 0x7305)),
            What::LateSensorFault if first => drive(&mut self.segment, &|it| it.raise_fault(0, 0xFF00)),
            What::LateSensorFault => drive(&mut self.segment, &|it| it.report_error(0, 0x7305)),
            What::Cable if first => assert!(self.segment.disconnect(1, 0)),
            What::Cable => assert!(self.segment.connect(1, 0)),
            What::Recount { .. } | What::SensorFault => {}
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

/// Moves both axes to and fro, and later resets and homes whatever is stopped.
struct Stubborn {
    cycle: Arc<AtomicU64>,
    enabled: u64,
    /// It resets a fault in the next cycle.
    is_prompt: bool,
    origins: [Option<(f64, f64)>; 2],
    see: Sender<[AxisReport; 2]>,
}

impl Controller for Stubborn {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let all = reports.iter().all(|it| it.state == Some(State::OperationEnabled));
        self.enabled += u64::from(all || self.enabled > 0);
        self.cycle.store(self.enabled, Ordering::Relaxed);
        for (number, (report, command)) in reports.iter().zip(commands).enumerate() {
            let resets = self.enabled >= RESETS && self.enabled % 200 < 10;
            let resets = resets || self.is_prompt && report.state.is_some_and(State::is_faulted);
            command.request = if resets { Request::FaultReset } else { Request::Enable };
            let asks = self.enabled >= RESETS && self.enabled % 500 == 0;
            command.home = asks && number == 0 && report.stop.is_some_and(StopReason::is_unreferenced);
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                self.origins[number] = Some((position.0, 0.0));
            }
            let Some((origin, elapsed)) = &mut self.origins[number] else { continue };
            if info.stopping {
                continue;
            }
            *elapsed += PERIOD.as_secs_f64();
            // Towards the middle of the limits, then about it.
            let share = (*elapsed / 1.0).min(1.0);
            let eased = share * share * (3.0 - 2.0 * share);
            let swing = 0.9 * (1.0 - (PI * *elapsed).cos()) / 2.0;
            command.setpoint.position.0 = *origin * (1.0 - eased) + eased * swing;
        }
        if self.enabled > 0 && !info.stopping {
            let _ = self.see.send([reports[0], reports[1]]);
        }
    }
}

/// Its outcome.
struct Seen {
    reports: Vec<[AxisReport; 2]>,
    records: Vec<ServoRecord>,
    findings: Vec<Finding>,
}

impl Seen {
    fn stops(&self, axis: usize) -> Vec<StopReason> {
        let mut stops: Vec<_> = self.reports.iter().filter_map(|it| it[axis].stop).collect();
        stops.dedup();
        stops
    }

    /// True angles of the shaft of the first drive since it was powered again, in rad.
    fn angles(&self) -> Vec<f64> {
        self.records[0].taken().iter().map(|it| it.angle).collect()
    }

    /// Farthest that the shaft of the first drive turned in the last seconds of the run, in which
    /// the axis was reset again and again.
    fn moved(&self) -> f64 {
        let taken = self.records[0].taken();
        let last = taken.last().unwrap().now;
        let angles = taken.iter().filter(|it| last.since(it.now) < WATCHED).map(|it| it.angle);
        let angles: Vec<_> = angles.collect();
        let most = angles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most - angles.into_iter().fold(f64::INFINITY, f64::min)
    }
}

/// Part of the run in which an unreferenced axis must not move.
const WATCHED: Duration = Duration::from_millis(4_000);

fn run(what: What, range: Option<f64>, limit: f64) -> Seen {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let cycle = Arc::new(AtomicU64::new(0));
    let mut records = Vec::new();
    let drives = (0..2).map(|number| {
        let identity =
            Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402 + number, revision: 1, serial: 0 };
        let description = ServoDescription {
            // As heavy as the arm of a robot.
            plant: PlantParameters { inertia: 0.05, coulomb_friction: 1.0, ..PlantParameters::default() },
            ..ServoDescription::new(DeviceDescription::new(identity, "Servo"))
        };
        let sii = with_coe(identity, "Servo", description.mapping.clone()).image().emit();
        let mut drive = ServoDrive::new(&description).unwrap();
        records.push(drive.record());
        SubDevice::new(EscDescription::default(), sii, Box::new(drive))
    });
    let segment = Segment::new(drives.collect());
    let bench = Bench { segment, cycle: Arc::clone(&cycle), what, step: 0 };
    let link = DirectLink::new(bench, clock.clone(), Duration::from_micros(60));
    let mut axes: Vec<AxisConfiguration> = supervised(2);
    for axis in &mut axes {
        let settings = axis.supervision.as_mut().unwrap();
        settings.limits = Limits {
            position: Some((Radians(-limit), Radians(limit))),
            velocity: RadiansPerSecond(4.0),
            acceleration: RadiansPerSecondSquared(20.0),
            deceleration: RadiansPerSecondSquared(20.0),
            ..settings.limits
        };
        settings.outage = Outage { time: Some(Seconds(0.02)), after: AfterOutage::Resume };
        axis.position_sense = PositionSense { range: range.map(Radians), ..PositionSense::default() };
    }
    axes[0].stops = vec![1];
    let (see, seen) = channel();
    let is_prompt = what == What::LateSensorFault;
    let controller = Stubborn { cycle, enabled: 0, is_prompt, origins: [None; 2], see };
    let configuration = CycleConfiguration { cycles: Some(CYCLES), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _observer) = cycle_of(link, clock, &axes, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    let findings = ended.findings(Circumstances { period: PERIOD, hurried: false, resumes: true });
    Seen { reports: seen.try_iter().collect(), records, findings }
}

/// Encoders, by the distance over which they know the position without power.
const INCREMENTAL: Option<f64> = None;
const SINGLE_TURN: Option<f64> = Some(TAU);
const MULTI_TURN: Option<f64> = Some(4096.0 * TAU);

fn assert_unreferenced(seen: &Seen, reason: StopReason, cell: &str) {
    assert!(seen.stops(0).contains(&reason), "{cell}: {:?}", seen.stops(0));
    let last = seen.reports.last().unwrap();
    assert_eq!((last[0].stop, last[0].homed), (Some(reason), false), "{cell}");
    assert_eq!(last[1].stop, Some(StopReason::OtherAxis), "{cell}: it is named in stops");
    assert!(seen.moved() < 2e-3, "{cell}: {} rad", seen.moved());
    let limit = LIMIT + 0.45;
    let farthest = seen.angles().into_iter().map(f64::abs).fold(0.0, f64::max);
    assert!(farthest < limit || cell.contains("Turned"), "{cell}: {farthest} rad");
    let stopped =
        |axis, reason, with| Finding::AxisStopped { axis, reason, with, because: Cause::default() };
    assert_eq!(
        seen.findings,
        [stopped(0, reason, None), stopped(1, StopReason::OtherAxis, Some(0))],
        "{cell}"
    );
    assert!(seen.findings.iter().all(|it| it.exit_code() == 3), "{cell}");
}

fn assert_moves_on(seen: &Seen, cell: &str) {
    assert_eq!(seen.findings, [], "{cell}");
    let last = seen.reports.last().unwrap();
    assert_eq!((last[0].stop, last[1].stop), (None, None), "{cell}");
    assert!(seen.moved() > 0.5, "{cell}: {} rad", seen.moved());
    let farthest = seen.angles().into_iter().map(f64::abs).fold(0.0, f64::max);
    assert!(farthest < LIMIT, "{cell}: {farthest} rad");
}

// feature(axes): an unreferenced axis does not move: its true position stays
#[test]
fn a_restart_with_another_count_leaves_the_axis_unreferenced() {
    use StopReason::{UnreferencedChange, UnreferencedRestart};
    for count in [0.0, 0.5, 1.0, 3.0, -1.0] {
        for (range, reason) in [
            (INCREMENTAL, Some(UnreferencedRestart)),
            (SINGLE_TURN, (count == 0.5).then_some(UnreferencedChange)),
            (MULTI_TURN, (count != 0.0).then_some(UnreferencedChange)),
        ] {
            let cell = format!("{count} turns, range {range:?}");
            let seen = run(What::Restart { count }, range, LIMIT);
            match reason {
                Some(reason) => assert_unreferenced(&seen, reason, &cell),
                None => assert_moves_on(&seen, &cell),
            }
        }
    }
}

// feature(axes): an unreferenced axis does not move: its true position stays
#[test]
fn a_turn_that_the_encoder_did_not_see_leaves_it_unreferenced() {
    // Limits of 8 rad and an encoder of one turn: two places read alike.
    for (range, limit) in [(INCREMENTAL, LIMIT), (SINGLE_TURN, 4.0)] {
        let seen = run(What::Turned, range, limit);
        assert_unreferenced(&seen, StopReason::UnreferencedRestart, &format!("Turned, range {range:?}"));
    }
}

// feature(axes): an unreferenced axis does not move: its true position stays
#[test]
fn another_count_in_op_leaves_it_unreferenced() {
    for turns in [0.5, 1.0, 3.0, -1.0] {
        for range in [INCREMENTAL, SINGLE_TURN, MULTI_TURN] {
            let seen = run(What::Recount { turns }, range, LIMIT);
            assert_unreferenced(&seen, StopReason::UnreferencedCount, &format!("{turns} turns, {range:?}"));
        }
    }
}

#[test]
fn a_fault_of_the_position_sensor_leaves_it_unreferenced() {
    for what in [What::SensorFault, What::LateSensorFault] {
        let seen = run(what, MULTI_TURN, LIMIT);
        assert_unreferenced(&seen, StopReason::UnreferencedSensor, &format!("{what:?}"));
    }
}

#[test]
fn a_drive_that_kept_its_power_keeps_its_count() {
    for range in [INCREMENTAL, MULTI_TURN] {
        assert_moves_on(&run(What::Cable, range, LIMIT), &format!("{range:?}"));
    }
}
