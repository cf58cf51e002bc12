//! Jogs from another process down to simulated drives, checked by the data that the drives took and
//! by the true positions. Drives live in the time of the bus. The time of the host is virtual, and
//! commands have their stamps from it: a busy computer makes no command stale.
use crate::support;

mod torque;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, Request};
use ethercat::pdo::PdoEntry;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use ipc::client::Client;
use ipc::command::{AxisTarget, Command, Writer};
use ipc::state::{Refusal, State, StopReason};
use motion::homing::Homing;
use motion::supervision::{JogLimits, Limits, Settings};
use motion::{NewtonMetres, Radians, RadiansPerSecond};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{
    AxisCommand, Controller, ControllerOutput, CycleInfo, ExternalCommand, Io,
};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{Circumstances, Finding};
use rt::clock::{Clock, VirtualClock};
use simulator::application::digital::{DigitalInputs, Wires};
use simulator::application::sii::digital_inputs;
use simulator::{EscDescription, Segment, SubDevice};
use support::{IpcFolder, PERIOD, Servant, cycle_in_bus_time, ipc_of, rules, supervised};
use types::{Interlock, InterlockKind};

/// Limit of a jog, rad/s.
const JOG: f64 = 0.25;

/// Longest time for which a jog holds.
const TIME_TO_LIVE: Duration = Duration::from_millis(100);

const LIMIT: f64 = 0.3;

/// Means of a client, called between two cycles.
struct Visit<'a> {
    writer: &'a mut Writer,
    host: &'a VirtualClock,
    wires: &'a Wires,
    commands: &'a mut [AxisCommand],
    /// A request brings all axes to rest.
    rests: &'a mut bool,
    /// No frame passes.
    lost: &'a AtomicBool,
    /// Cycles since all drives were enabled.
    cycle: u64,
}

impl Visit<'_> {
    fn send(&mut self, axes: Vec<Option<AxisTarget>>, time_to_live: Duration) {
        let time_to_live_ns = time_to_live.as_nanos() as u64;
        let command = Command { time_to_live_ns, axes, ..Command::default() };
        self.writer.send_at(&command, self.host.now().as_nanos()).unwrap();
    }

    /// Jogs the first axis.
    fn jog(&mut self, velocity: f64) {
        self.send(vec![jog(velocity), None], TIME_TO_LIVE);
    }

    fn permit(&self, permits: bool) {
        self.wires.set_levels(u64::from(permits));
    }

    fn reset(&mut self) {
        self.commands.iter_mut().for_each(|it| it.request = Request::FaultReset);
    }
}

fn jog(velocity: f64) -> Option<AxisTarget> {
    Some(AxisTarget::Jog(RadiansPerSecond(velocity)))
}

struct Visited<F> {
    servant: Servant,
    client: Client,
    writer: Option<Writer>,
    host: VirtualClock,
    wires: Wires,
    cycles: u64,
    rests: bool,
    lost: Arc<AtomicBool>,
    visitor: F,
    tell: Sender<State>,
}

impl<F: FnMut(&mut Visit<'_>) + Send> Controller for Visited<F> {
    fn command(&mut self, command: &ExternalCommand) {
        assert!(!command.axes.iter().flatten().any(|it| matches!(it, AxisTarget::Jog(_))));
        self.servant.command(command);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.servant.update(info, io);
        let Ok(state) = self.client.state().read() else { return };
        let enabled = state.axes.iter().all(|axis| axis.drive_state == 5);
        self.cycles += u64::from(enabled || self.cycles > 0);
        if self.cycles > 0 && !info.stopping {
            let Self { client, writer, host, wires, visitor, cycles, rests, lost, .. } = self;
            let writer = writer.get_or_insert_with(|| client.command().unwrap());
            let commands = io.split().1;
            visitor(&mut Visit { writer, host, wires, commands, rests, lost, cycle: *cycles });
            let _ = self.tell.send(state);
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { rests: self.rests, ..self.servant.output() }
    }
}

/// Results of one cycle for both axes.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// True angle, rad.
    angle: f64,
    /// Velocity that the drive took: in csp the difference of its targets.
    taken: f64,
    /// Torque limit of the drive, thousandths of its rated torque.
    maximum_torque: u16,
}

/// The bus, which loses all frames where it is to.
struct LosingSegment {
    segment: Segment,
    lost: Arc<AtomicBool>,
}

impl ethercat::link::Segment for LosingSegment {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        !self.lost.load(Ordering::Relaxed) && self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

struct Ran {
    states: Vec<State>,
    /// Steps of both drives, since they were enabled.
    steps: [Vec<Step>; 2],
    findings: Vec<Finding>,
}

impl Ran {
    fn fastest(&self, axis: usize) -> f64 {
        self.steps[axis].iter().map(|it| it.taken.abs()).fold(0.0, f64::max)
    }

    /// Distance between the first and the last angle.
    fn moved(&self, axis: usize) -> f64 {
        self.steps[axis].last().unwrap().angle - self.steps[axis][0].angle
    }

    fn farthest(&self, axis: usize) -> f64 {
        self.steps[axis].iter().map(|it| it.angle.abs()).fold(0.0, f64::max)
    }

    fn stops(&self, axis: usize) -> Vec<StopReason> {
        let mut codes: Vec<_> = self.states.iter().map(|it| it.axes[axis].stop).collect();
        codes.dedup();
        codes.into_iter().filter_map(StopReason::from_code).collect()
    }

    /// Each refusal with its axis, once.
    fn refusals(&self) -> Vec<(Refusal, u16)> {
        let refused = |it: &State| (it.command.last_refusal, it.command.last_refused_axis);
        let mut found: Vec<_> = self.states.iter().map(refused).collect();
        found.dedup();
        let known = |(code, axis): (u8, u16)| Some((Refusal::from_code(code)?, axis));
        found.into_iter().filter_map(known).collect()
    }

    /// Cycles from a cycle to the last one in which the drive of an axis took a velocity.
    fn run_out(&self, axis: usize, from: u64) -> usize {
        let moves = |it: &Step| it.taken.abs() > 1e-4;
        self.steps[axis].iter().rposition(moves).map_or(0, |last| (last + 1).saturating_sub(from as usize))
    }
}

/// Settings of a run.
struct Bench {
    mode: CyclicMode,
    interlock: Option<InterlockKind>,
    needs_homing: bool,
    chain: bool,
    place: f64,
    /// Torque of a jog, N m.
    torque: f64,
    /// Objects that the drives map as outputs in addition.
    outputs: Vec<PdoEntry>,
    signals: Vec<types::Signal>,
}

impl Bench {
    fn new(mode: CyclicMode) -> Self {
        Self {
            mode,
            interlock: None,
            needs_homing: false,
            chain: false,
            place: 0.0,
            torque: 5.0,
            outputs: Vec::new(),
            signals: Vec::new(),
        }
    }

    fn axes(&self) -> Vec<AxisConfiguration> {
        let mut axes = supervised(2);
        for axis in &mut axes {
            let settings = axis.supervision.as_mut().unwrap();
            let limits = Limits {
                position: Some((Radians(-LIMIT), Radians(LIMIT))),
                velocity: RadiansPerSecond(2.5),
                ..settings.limits
            };
            *settings = Settings { mode: self.mode.into(), limits, ..*settings };
            axis.mode = self.mode.into();
            axis.jog =
                Some(JogLimits { velocity: RadiansPerSecond(JOG), torque: NewtonMetres(self.torque) });
            axis.position_sense.tolerance = Radians(0.02);
        }
        if self.needs_homing {
            axes[0].needs_homing = true;
            axes[0].homing = Homing::CurrentPosition { position: Radians(0.1) };
        }
        axes
    }

    fn run(self, name: &str, cycles: u64, visitor: impl FnMut(&mut Visit<'_>) + Send + 'static) -> Ran {
        let host = VirtualClock::at(Instant::from_nanos(9_000_000_000));
        let bus = VirtualClock::at(Instant::from_nanos(5_000_000_000));
        let wires = Wires::new();
        // Automatic motion is permitted at the start, a jog is not.
        wires.set_levels(u64::from(self.interlock == Some(InterlockKind::Automatic)));
        let mut records = Vec::new();
        let place = self.place;
        let mut sub_devices: Vec<SubDevice> = (0..2)
            .map(|_| {
                let (drive, record) = support::sub_device(self.mode, |it| {
                    it.initial_position = place;
                    it.mapping.outputs[0].entries.extend(self.outputs.clone());
                });
                records.push(record);
                drive
            })
            .collect();
        let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0403, revision: 1, serial: 0 };
        let inputs = DigitalInputs::new(4, wires.clone()).unwrap();
        let sii = digital_inputs(identity, "Inputs", 4).image().emit();
        sub_devices.push(SubDevice::new(EscDescription::default(), sii, Box::new(inputs)));
        let lost = Arc::new(AtomicBool::new(false));
        let segment = LosingSegment { segment: Segment::new(sub_devices), lost: Arc::clone(&lost) };
        let link = DirectLink::new(segment, bus.clone(), Duration::from_micros(20));
        let interlocks: Vec<Interlock> = self
            .interlock
            .into_iter()
            .map(|kind| Interlock {
                name: "switch".to_owned(),
                sub_device: 2,
                channel: 1,
                inverted: false,
                kind,
                axes: vec![0, 1],
            })
            .collect();
        let folder = IpcFolder::new(&format!("jog-{name}"));
        let (ipc, _server, client) = ipc_of(&folder, rules(2), &self.signals, &interlocks);
        let (tell, told) = channel();
        let servant = Servant::new(2, 1.0);
        let controller = Visited {
            servant,
            client,
            writer: None,
            host: host.clone(),
            wires,
            cycles: 0,
            rests: false,
            lost,
            visitor,
            tell,
        };
        let configuration =
            CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
        let clocks = (host.clone(), bus);
        let (mut cycle, _observer) =
            cycle_in_bus_time(link, clocks, &self.axes(), controller, configuration);
        cycle.set_signals(self.signals).unwrap();
        let cycle = cycle.with_interlocks(&interlocks).unwrap().with_ipc(ipc);
        let chains = if self.chain { vec![vec![0, 1]] } else { Vec::new() };
        let ended = cycle.with_chains(chains).run(&StopHandle::new());
        assert_eq!(ended.failure, None);
        let circumstances = Circumstances { period: PERIOD, hurried: false, resumes: true };
        let findings = ended.findings(circumstances);
        let steps = std::array::from_fn(|drive| steps(self.mode, &records[drive]));
        Ran { states: told.try_iter().collect(), steps, findings }
    }
}

/// Steps of a drive in Op and enabled, one for each cycle.
fn steps(mode: CyclicMode, record: &simulator::application::servo::ServoRecord) -> Vec<Step> {
    let counts = f64::from(1 << 20) / std::f64::consts::TAU;
    let taken: Vec<_> = record.taken().into_iter().filter(|it| it.follows()).collect();
    let per_cycle = taken.chunk_by(|a, b| a.now.as_nanos() / 1_000_000 == b.now.as_nanos() / 1_000_000);
    let last: Vec<_> = per_cycle.filter_map(<[_]>::last).collect();
    last.windows(2)
        .map(|pair| {
            let target = |it: usize| f64::from(pair[it].target_position) / counts;
            let taken = match mode {
                CyclicMode::Position => (target(1) - target(0)) / PERIOD.as_secs_f64(),
                _ => f64::from(pair[1].target_velocity) / counts,
            };
            Step { angle: pair[1].angle, taken, maximum_torque: pair[1].maximum_torque }
        })
        .collect()
}

const MODES: [CyclicMode; 2] = [CyclicMode::Position, CyclicMode::Velocity];

/// Difference of two targets that are rounded to counts, over a period.
const ROUNDED: f64 = 0.02;

/// Cycles for the time-to-live, the way to rest, and the way to the drive.
const ENDS: usize = 100 + 30;

// feature(axes): a jog moves one axis slowly, while its sender lives and its enabling switch is pressed
#[test]
fn jog_of_a_dead_client_stops_in_time() {
    for mode in MODES {
        let ran = Bench::new(mode).run(&format!("dies-{mode:?}"), 1_300, |visit| {
            if visit.cycle < 600 {
                visit.jog(0.2);
            }
        });
        assert!(ran.moved(0) > 0.05, "{mode:?}: {}", ran.moved(0));
        assert!(ran.run_out(0, 600) <= ENDS, "{mode:?}: {} cycles", ran.run_out(0, 600));
        assert!(ran.fastest(0) <= 0.2 + ROUNDED && ran.fastest(1) == 0.0, "{mode:?}");
        assert!(ran.stops(0).contains(&StopReason::Jog), "{mode:?}: {:?}", ran.stops(0));
        assert_eq!(ran.findings, [Finding::CommandLost], "{mode:?}: it ended in motion");
    }
}

#[test]
fn a_wild_jog_is_as_slow_as_a_jog_and_stays_within_limits() {
    for mode in MODES {
        let ran = Bench::new(mode).run(&format!("wild-{mode:?}"), 2_600, |visit| {
            let wild = [1e300, f64::NAN, 1e300, f64::INFINITY];
            if visit.cycle == 701 {
                // The computer is busy for longer than a jog holds.
                std::thread::sleep(TIME_TO_LIVE * 2);
            }
            visit.jog(wild[(visit.cycle % 4) as usize]);
        });
        assert!((LIMIT - 0.05..LIMIT + 2e-3).contains(&ran.farthest(0)), "{mode:?}: {}", ran.farthest(0));
        assert!(ran.fastest(0) <= JOG + ROUNDED, "{mode:?}: {}", ran.fastest(0));
        assert_eq!(ran.refusals(), [(Refusal::NotFinite, 0)], "{mode:?}");
        let last = ran.states.last().unwrap();
        assert!(last.command.clamped > 0 && last.command.last_clamped_axis == 0, "{mode:?}");
    }
}

#[test]
fn two_jogs_at_once_are_refused_and_one_axis_moves() {
    for mode in MODES {
        let ran = Bench::new(mode).run(&format!("two-{mode:?}"), 1_500, |visit| match visit.cycle {
            0..100 => visit.send(vec![jog(0.2), jog(0.2)], TIME_TO_LIVE),
            100..200 => visit.send(vec![jog(0.2), None], Duration::from_millis(301)),
            200..300 => {
                visit.send(vec![jog(0.2), Some(AxisTarget::Velocity(RadiansPerSecond(0.1)))], TIME_TO_LIVE)
            }
            // The first one still holds when the other one comes.
            300..700 if visit.cycle % 2 == 0 => visit.jog(0.2),
            300..700 => visit.send(vec![None, jog(0.2)], TIME_TO_LIVE),
            _ => {}
        });
        let expected = [Refusal::JogAlone, Refusal::JogTime, Refusal::JogAlone, Refusal::JogMoving];
        let found: Vec<_> = ran.refusals().into_iter().map(|(why, _)| why).collect();
        assert_eq!(found[..4], expected, "{mode:?}: {found:?}");
        assert!(ran.moved(0) > 0.02, "{mode:?}: {}", ran.moved(0));
        // The other one would have to wait until it is at standstill.
        let moves = |axis: usize, at: usize| ran.steps[axis].get(at).is_some_and(|it| it.taken != 0.0);
        let both = (2..1_500).find(|&at| moves(0, at) && (at - 2..at + 3).any(|at| moves(1, at)));
        assert_eq!(both, None, "{mode:?}");
    }
}

#[test]
fn a_request_to_stop_ends_a_jog_that_is_still_sent() {
    for mode in MODES {
        let ran = Bench::new(mode).run(&format!("rests-{mode:?}"), 1_100, |visit| {
            *visit.rests = visit.cycle == 600;
            visit.jog(0.2);
        });
        assert!(ran.moved(0) > 0.05, "{mode:?}: {}", ran.moved(0));
        assert!(ran.run_out(0, 600) < 40, "{mode:?}: {} cycles", ran.run_out(0, 600));
    }
}

#[test]
fn a_jog_needs_its_enabling_switch() {
    for mode in MODES {
        let bench = Bench { interlock: Some(InterlockKind::Jog), ..Bench::new(mode) };
        let ran = bench.run(&format!("switch-{mode:?}"), 1_500, |visit| {
            visit.permit((400..800).contains(&visit.cycle));
            visit.jog(0.2);
        });
        assert!(ran.moved(0) > 0.02, "{mode:?}: {}", ran.moved(0));
        let before = &ran.steps[0][..390];
        assert!(before.iter().all(|it| it.taken == 0.0), "{mode:?}: not pressed");
        assert!(ran.run_out(0, 800) < 40, "{mode:?}: {} cycles", ran.run_out(0, 800));
        assert_eq!(ran.refusals(), [(Refusal::JogNotPermitted, 0)], "{mode:?}");
        assert_eq!(ran.findings, [], "{mode:?}");
    }
}

#[test]
fn in_set_up_mode_only_a_jog_moves_and_its_end_moves_nothing() {
    for mode in MODES {
        let bench = Bench { interlock: Some(InterlockKind::Automatic), ..Bench::new(mode) };
        let ran = bench.run(&format!("set-up-{mode:?}"), 2_400, move |visit| {
            let automatic = !(300..1_200).contains(&visit.cycle);
            visit.permit(automatic);
            match visit.cycle {
                700..1_000 => visit.jog(-9.0),
                _ => {
                    let speed = if visit.cycle < 300 { 0.2 } else { -1.0 };
                    let target = match mode {
                        CyclicMode::Position => AxisTarget::Position(Radians(speed)),
                        _ => AxisTarget::Velocity(RadiansPerSecond(speed)),
                    };
                    visit.send(vec![Some(target), None], TIME_TO_LIVE);
                }
            }
            if (2_000..2_010).contains(&visit.cycle) {
                visit.reset();
            }
        });
        let expected = [StopReason::SetUp, StopReason::Jog, StopReason::SetUp, StopReason::AfterSetUp];
        let stops: Vec<_> = ran.stops(0).into_iter().filter(|it| *it != StopReason::Stale).collect();
        assert_eq!(stops[..4], expected, "{mode:?}");
        assert!(ran.refusals().contains(&(Refusal::SetUp, 0)), "{mode:?}: {:?}", ran.refusals());
        let taken = |from: usize, to: usize| {
            ran.steps[0][from..to].iter().map(|it| it.taken.abs()).fold(0.0, f64::max)
        };
        assert!(taken(50, 290) > 0.15, "{mode:?}: automatic motion");
        assert_eq!(taken(360, 690), 0.0, "{mode:?}: refused in set-up mode");
        assert!((0.2..JOG + ROUNDED).contains(&taken(800, 990)), "{mode:?}: {}", taken(800, 990));
        assert_eq!(taken(1_150, 1_990), 0.0, "{mode:?}: nothing moves by itself afterwards");
        assert!(taken(2_020, 2_350) > 0.5, "{mode:?}: after a reset it is automatic again");
    }
}

// feature(axes): an axis that has to be homed first is jogged and homed, and no controller moves it before
#[test]
fn an_axis_that_is_not_homed_holds_its_chain_and_is_jogged() {
    for mode in MODES {
        let bench = Bench { needs_homing: true, chain: true, ..Bench::new(mode) };
        let ran = bench.run(&format!("homing-{mode:?}"), 2_400, move |visit| {
            let target = |to: f64| match mode {
                CyclicMode::Position => Some(AxisTarget::Position(Radians(to))),
                _ => Some(AxisTarget::Velocity(RadiansPerSecond(to))),
            };
            match visit.cycle {
                // Two axes of one command, and one that is ready but in the chain.
                0..200 => visit.send(vec![target(0.2), target(0.2)], TIME_TO_LIVE),
                200..400 => visit.send(vec![None, target(0.2)], TIME_TO_LIVE),
                400..700 => visit.jog(0.2),
                900 => visit.commands[0].home = true,
                1_000..2_000 => visit.send(vec![target(0.2), target(0.2)], TIME_TO_LIVE),
                _ => {}
            }
        });
        assert_eq!(ran.refusals(), [(Refusal::NotHomed, 0)], "{mode:?}");
        let moves = |axis: usize, from: usize, to: usize| {
            ran.steps[axis][from..to].iter().any(|it| it.taken.abs() > 1e-3)
        };
        assert!(!moves(0, 0, 390) && !moves(1, 0, 990), "{mode:?}: before it is homed");
        assert!(moves(0, 400, 700), "{mode:?}: jogged");
        assert!(moves(0, 1_010, 1_900) && moves(1, 1_010, 1_900), "{mode:?}: homed");
        let chained = ran.states.iter().find(|it| it.axes[1].stop == StopReason::Chain as u8).unwrap();
        assert_eq!(chained.axes[1].stopped_with, Some(0), "{mode:?}");
        assert_eq!(chained.axes[0].stop, StopReason::NotHomed as u8, "{mode:?}");
    }
}

#[test]
fn a_run_that_ends_with_an_axis_not_homed_says_so() {
    let bench = Bench { needs_homing: true, ..Bench::new(CyclicMode::Position) };
    let ran = bench.run("not-homed", 300, |_| {});
    let found =
        matches!(ran.findings[..], [Finding::AxisStopped { axis: 0, reason: StopReason::NotHomed, .. }]);
    assert!(found && ran.findings[0].exit_code() == 3, "{:?}", ran.findings);
}

// feature(axes): an axis outside its limits goes inwards at jog speed, from far outside by a jog only
#[test]
fn an_axis_outside_its_limits_goes_inwards_slowly() {
    for (mode, far) in MODES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        // The braking distance is 0.0625 rad.
        let place = if far { LIMIT + 0.4 } else { LIMIT + 0.06 };
        let bench = Bench { place, ..Bench::new(mode) };
        let ran = bench.run(&format!("outside-{far}-{mode:?}"), 2_000, move |visit| {
            let target = match mode {
                CyclicMode::Position => AxisTarget::Position(Radians(0.1)),
                _ => AxisTarget::Velocity(RadiansPerSecond(-1.0)),
            };
            match visit.cycle {
                0..700 => visit.send(vec![Some(target), None], TIME_TO_LIVE),
                700..1_000 if far => visit.jog(9.0),
                1_000..1_500 if far => visit.jog(-9.0),
                _ => {}
            }
        });
        let angle = |at: usize| ran.steps[0][at].angle;
        let outside = ran.steps[0].iter().filter(|it| it.angle > LIMIT + 2e-3);
        let fastest = outside.map(|it| it.taken.abs()).fold(0.0, f64::max);
        assert!(fastest <= JOG + ROUNDED, "{mode:?} far {far}: {fastest} rad/s");
        assert!(ran.farthest(0) <= place + 2e-3, "{mode:?} far {far}: {}", ran.farthest(0));
        match far {
            false => assert!(angle(690) < LIMIT - 0.05, "{mode:?}: {}", angle(690)),
            true => {
                assert!((angle(690) - place).abs() < 2e-3, "{mode:?}: {}", angle(690));
                assert!((angle(990) - place).abs() < 2e-3, "{mode:?}: outwards: {}", angle(990));
                assert!(angle(1_490) < place - 0.05, "{mode:?}: inwards: {}", angle(1_490));
                assert!(ran.refusals().contains(&(Refusal::OutsideLimits, 0)), "{mode:?}");
            }
        }
    }
}
