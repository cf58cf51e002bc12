//! One axis that swings, and the outage that comes over it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::{Command, Frame, read_u16, read_u32};
use ethercat_linux::link::{DirectLink, Link};
use motion::supervision::{AfterOutage, Outage};
use motion::{AxisPhase, Radians, RadiansPerSecond, RadiansPerSecondCubed, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, VirtualClock};
use simulator::application::servo::{
    PlantParameters, ServoDescription, ServoDrive, ServoRecord, Taken, default_mapping,
};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};

use super::judge::{COUNTS_PER_RADIAN, JERK, STEP};
use crate::support::{PERIOD, cycle_of, supervised};

/// Direction in which frames are lost, or a host stall without lost frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Out,
    Back,
    Both,
    Stall,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) mode: CyclicMode,
    pub(crate) fault: Fault,
    /// Cycles.
    pub(crate) outage: u64,
    pub(crate) order: FrameOrder,
    pub(crate) after: AfterOutage,
    /// The key `outage_time`; `None` is its default.
    pub(crate) time: Option<Seconds>,
    /// It drives so much that it cannot stand where its set-point does: it overshoots by more than
    /// a step.
    pub(crate) heavy: bool,
    /// It maps 0x606C, velocity actual value.
    pub(crate) tells_velocity: bool,
}

impl Case {
    pub(crate) fn new(mode: CyclicMode, fault: Fault, outage: u64) -> Self {
        let (order, after) = (FrameOrder::ReplyOfLastCycle, AfterOutage::Stay);
        Self { mode, fault, outage, order, after, time: None, heavy: false, tells_velocity: true }
    }
}

/// Targets that left on the wire, lost there or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) now: Instant,
    pub(crate) position: i32,
    pub(crate) velocity: i32,
    pub(crate) torque: i16,
}

/// Records of a case that was played.
pub(crate) struct Outcome {
    pub(crate) taken: Vec<Taken>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) reports: Vec<(Instant, AxisReport)>,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

/// Cycles in Op before the outage: the axis moves at speed.
pub(crate) const BEFORE: u64 = 900;
/// Cycles after it.
pub(crate) const AFTER: u64 = 1_500;
/// Cycles after it until the axis is reset.
pub(crate) const UNTIL_RESET: u64 = 900;

pub(crate) fn play(case: Case) -> Outcome {
    let Begun { clock, record, link, axes, controller, seen, sent } = begin(case, None);
    let cycles = BEFORE + AFTER + if case.fault == Fault::Stall { 0 } else { case.outage } + 200;
    let configuration = CycleConfiguration {
        cycles: Some(cycles),
        order: case.order,
        loss: None,
        ..CycleConfiguration::every(PERIOD)
    };
    let (cycle, _observer) = cycle_of(link, clock, &axes, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let mut reports = Vec::new();
    let mut window = None;
    for (now, report, seen_window) in seen.try_iter() {
        window = window.or(seen_window);
        reports.push((now, report));
    }
    let (begin, end) = window.unwrap();
    Outcome { taken: record.taken(), sent: sent.try_iter().collect(), reports, begin, end }
}

/// One axis before its cycle, with all that watches it.
pub(crate) struct Begun {
    pub(crate) clock: VirtualClock,
    pub(crate) record: ServoRecord,
    pub(crate) link: Lossy,
    pub(crate) axes: Vec<AxisConfiguration>,
    pub(crate) controller: MovingController,
    pub(crate) seen: Receiver<Seen>,
    pub(crate) sent: Receiver<Sent>,
}

pub(crate) fn begin(case: Case, stops: Option<(StopHandle, u32)>) -> Begun {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (segment, record) = segment(case);
    let direct = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let (tell, window) = channel();
    let (send, sent) = channel();
    let link =
        Lossy { direct, clock: clock.clone(), fault: case.fault, lost: None, window, stops, sent: send };
    let mut axes = supervised(1);
    prepare(&mut axes[0], case);
    let (see, seen) = channel();
    let controller = MovingController {
        case,
        clock: clock.clone(),
        tell,
        see,
        cycles: 0,
        origin: None,
        elapsed: 0.0,
        window: None,
    };
    Begun { clock, record, link, axes, controller, seen, sent }
}

fn prepare(axis: &mut AxisConfiguration, case: Case) {
    axis.mode = case.mode.into();
    let settings = axis.supervision.as_mut().unwrap();
    settings.mode = case.mode.into();
    if case.mode == CyclicMode::Torque {
        settings.limits.velocity = RadiansPerSecond(1_000.0);
    }
    settings.limits.jerk = RadiansPerSecondCubed(JERK);
    settings.outage = Outage { time: case.time, after: case.after };
    axis.maximum_step = Radians(STEP + 2.0 / COUNTS_PER_RADIAN);
}

pub(crate) fn segment(case: Case) -> (Segment, ServoRecord) {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let mut mapping = default_mapping();
    if !case.tells_velocity {
        mapping.inputs.iter_mut().for_each(|pdo| pdo.entries.retain(|entry| entry.index != 0x606C));
    }
    let sii = with_coe(identity, "Servo", mapping.clone()).image().emit();
    let usual = ServoDescription::new(DeviceDescription::new(identity, "Servo"));
    // At most 36 rad/s^2, of which a swing takes 25.
    let inertia = if case.heavy { 0.2 } else { usual.plant.inertia };
    let plant = PlantParameters { inertia, ..usual.plant };
    let description = ServoDescription { mode: case.mode, plant, mapping, ..usual };
    let mut drive = ServoDrive::new(&description).unwrap();
    let record = drive.record();
    (Segment::new(vec![SubDevice::new(EscDescription::default(), sii, Box::new(drive))]), record)
}

/// Loses frames within a window of time.
pub(crate) struct Lossy {
    direct: DirectLink<Segment, VirtualClock>,
    clock: VirtualClock,
    fault: Fault,
    lost: Option<(Instant, Instant)>,
    window: Receiver<(Instant, Instant)>,
    /// Asks for a stop after so many frames of the outage.
    stops: Option<(StopHandle, u32)>,
    sent: Sender<Sent>,
}

impl Lossy {
    fn note(&self, frame: &[u8]) {
        let Ok(frame) = Frame::parse(frame) else { return };
        for datagram in frame.datagrams() {
            if !matches!(datagram.header.command, Command::Lrw | Command::Lwr) {
                continue;
            }
            // As the simulator's default mapping has it; a controlword comes first.
            let (position, velocity) = (read_u32(datagram.data, 2), read_u32(datagram.data, 6));
            let (position, velocity) = (position.unwrap() as i32, velocity.unwrap() as i32);
            let torque = read_u16(datagram.data, 10).unwrap() as i16;
            let _ = self.sent.send(Sent { now: self.clock.now(), position, velocity, torque });
        }
    }

    fn is_out(&mut self) -> bool {
        self.lost = self.lost.or_else(|| self.window.try_iter().next());
        let now = self.clock.now();
        self.lost.is_some_and(|(begin, end)| begin <= now && now < end)
    }
}

impl Link for Lossy {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.note(frame);
        if self.is_out() {
            if let Some((stop, frames)) = &mut self.stops {
                *frames = frames.saturating_sub(1);
                if *frames == 0 {
                    stop.stop();
                }
            }
        }
        let lost = matches!(self.fault, Fault::Out | Fault::Both) && self.is_out();
        if lost { Ok(()) } else { self.direct.transmit(frame) }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let received = self.direct.receive(buffer, timeout)?;
        let lost = matches!(self.fault, Fault::Back | Fault::Both) && self.is_out();
        Ok(received.filter(|_| !lost))
    }
}

/// One cycle: its instant, what the axis reported, and the outage once it has begun.
pub(crate) type Seen = (Instant, AxisReport, Option<(Instant, Instant)>);

/// Swings the axis 1 rad about its start position, at 0.5 Hz; a velocity or a torque likewise.
/// Restarts wherever it is shown to hold.
pub(crate) struct MovingController {
    case: Case,
    clock: VirtualClock,
    tell: Sender<(Instant, Instant)>,
    see: Sender<Seen>,
    cycles: u64,
    origin: Option<f64>,
    elapsed: f64,
    window: Option<(Instant, Instant)>,
}

impl MovingController {
    fn begin_outage(&mut self) {
        // In the middle of a period: neither frames nor releases are on its edges.
        let begin = self.clock.now() + PERIOD / 2;
        let end = begin + PERIOD * self.case.outage as u32;
        self.window = Some((begin, end));
        self.tell.send((begin, end)).unwrap();
        if self.case.fault == Fault::Stall {
            self.clock.advance(PERIOD * self.case.outage as u32);
        }
    }
}

impl Controller for MovingController {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (reports[0], &mut commands[0]);
        let entered = self.clock.now();
        self.cycles += u64::from(report.state == Some(State::OperationEnabled) || self.cycles > 0);
        if self.cycles == BEFORE {
            self.begin_outage();
        }
        let now = self.clock.now();
        let reset = self.window.is_some_and(|(_, end)| {
            let since = now.since(end);
            now > end && since > PERIOD * UNTIL_RESET as u32 && since < PERIOD * (UNTIL_RESET as u32 + 3)
        });
        command.request = if reset { Request::FaultReset } else { Request::Enable };
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            (self.origin, self.elapsed) = (Some(position.0), 0.0);
        }
        let (sin, cos) = (std::f64::consts::PI * self.elapsed).sin_cos();
        if let Some(origin) = self.origin.filter(|_| !info.stopping) {
            self.elapsed += info.period.as_secs_f64() * info.periods as f64;
            // Eased in for a quarter of a second.
            let ease = (self.elapsed / 0.25).min(1.0);
            command.setpoint.position = Radians(origin + ease * sin);
            command.setpoint.velocity = RadiansPerSecond(ease * 3.0 * cos);
            command.setpoint.torque.0 = 0.05 * cos;
        } else if info.stopping {
            command.setpoint.velocity = RadiansPerSecond::ZERO;
            command.setpoint.torque.0 = 0.0;
        }
        let _ = self.see.send((entered, report, self.window));
    }
}
