//! A brake on a terminal's digital output, seen at the terminal, in virtual time.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::object::MAXIMUM_TORQUE;
use ethercat::cia402::{Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::DirectLink;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::supervision::StopReason;
use motion::{AxisPhase, Seconds};
use onbeat_control::axis::{AxisConfiguration, AxisError, DigitalOutput, check};
use onbeat_control::controller::{AxisCommand, AxisReport, Io};
use rt::clock::VirtualClock;
use simulator::application::digital::{DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::scripted::{Scene, play};
use support::{PERIOD, main_device, supervised};

/// The brake hangs on the third of four outputs.
const CHANNEL: usize = 3;

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// A terminal with four digital outputs on `wires`, and a drive that gives at most `torque`, per
/// mille.
fn segment(wires: &Wires, torque: i64) -> Segment {
    let outputs = DigitalOutputs::new(4, wires.clone()).unwrap();
    let sii = digital_outputs(IDENTITY, "Outputs", 4).image().emit();
    let terminal = SubDevice::new(EscDescription::default(), sii, Box::new(outputs));
    let description = ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"));
    let mut drive = ServoDrive::new(&description).unwrap();
    let maximum = drive.dictionary().find(MAXIMUM_TORQUE, 0).unwrap();
    drive.dictionary_mut().set(maximum, torque);
    let sii = with_coe(IDENTITY, "Servo", default_mapping()).image().emit();
    let drive = SubDevice::new(EscDescription::default(), sii, Box::new(drive));
    Segment::new(vec![terminal, drive])
}

fn axis(times: BrakeTimes) -> AxisConfiguration {
    let output = Some(DigitalOutput { sub_device: 0, channel: CHANNEL });
    let mut axis = supervised(1).remove(0);
    axis.sub_device = 1;
    axis.brake = Some(BrakeConfiguration { times, output, ..BrakeConfiguration::default() });
    axis
}

/// One cycle, as axis and terminal showed it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    state: Option<State>,
    phase: AxisPhase,
    position: f64,
    /// All outputs of the terminal.
    outputs: u64,
    stopping: bool,
}

impl Seen {
    fn enabled(&self) -> bool {
        self.state == Some(State::OperationEnabled)
    }

    fn power(&self) -> bool {
        self.outputs == 1 << (CHANNEL - 1)
    }
}

/// View of an axis that `script` moves for so many cycles, on a drive that gives at most `torque`.
fn run(
    times: BrakeTimes,
    torque: i64,
    cycles: u64,
    mut script: impl FnMut(u64, &mut AxisCommand) + Send + 'static,
) -> Vec<Seen> {
    let wires = Wires::new();
    let segment = segment(&wires, torque);
    let look = move |scene: &Scene<'_>| {
        Some(Seen {
            state: scene.report.state,
            phase: scene.report.feedback.phase,
            position: scene.report.feedback.position.0,
            outputs: wires.levels(),
            stopping: scene.stopping,
        })
    };
    let script = move |cycle: u64, _: &AxisReport, command: &mut AxisCommand| script(cycle, command);
    let seen = play(segment, &[axis(times)], cycles, script, look);
    assert!(
        seen.iter().all(|it| it.outputs == 0 || it.power()),
        "another output than the brake's was written"
    );
    seen
}

fn first(seen: &[Seen], from: usize, is: impl Fn(&Seen) -> bool) -> usize {
    from + seen[from..]
        .iter()
        .position(is)
        .unwrap_or_else(|| panic!("never, from cycle {from} on: {seen:?}"))
}

/// Cycles between a frame that leaves and its effect in a report.
const UNDER_WAY: usize = 3;

// feature(axes): a brake on a digital output, from the robot file to the terminal
#[test]
fn brake_output_is_on_while_the_axis_is_enabled() {
    let times = BrakeTimes { release: Seconds(0.08), engage: Seconds(0.05) };
    let seen = run(times, 3000, 1_000, |cycle, command| {
        command.setpoint.position.0 += if cycle < 400 { 1e-3 } else { 0.0 };
        if cycle >= 600 {
            command.request = Request::Disable;
        }
    });
    let enabled = first(&seen, 0, Seen::enabled);
    let on = first(&seen, 0, Seen::power);
    assert!((enabled..enabled + UNDER_WAY).contains(&on), "power on cycle {on}, enabled on {enabled}");
    // It holds this position until the brake is open.
    let stood = seen[enabled].position;
    let moved = first(&seen, enabled, |it| (it.position - stood).abs() > 1e-4);
    assert!((on + 78..on + 90).contains(&moved), "power on cycle {on}, the axis moved on {moved}");
    assert!(seen[on..moved - UNDER_WAY].iter().all(|it| matches!(it.phase, AxisPhase::HoldingAt(_))));
    assert!(seen[enabled + 500].position > stood + 0.25, "{:?}", seen[enabled + 500]);

    let off = first(&seen, on, |it| !it.power());
    let asked = enabled + 600;
    assert!((asked - 1..asked + UNDER_WAY).contains(&off), "asked on cycle {asked}, power off on {off}");
    let left = first(&seen, off, |it| !it.enabled());
    assert!((off + 50..off + 60).contains(&left), "power off on cycle {off}, no torque on {left}");
    assert!(seen[off..].iter().all(|it| it.outputs == 0), "it stays off");
}

// feature(axes): a brake on a digital output, from the robot file to the terminal
#[test]
fn a_drive_that_faults_closes_the_brake_at_once() {
    let times = BrakeTimes { release: Seconds(0.02), engage: Seconds(0.05) };
    // Two per cent of its torque turn the motor, but do not get it to 10 rad/s within a cycle.
    let seen = run(times, 20, 1_500, |cycle, command| {
        command.setpoint.position.0 += if cycle < 100 { 0.0 } else { 9e-3 };
    });
    let on = first(&seen, 0, Seen::power);
    let fault = |it: &Seen| matches!(it.state, Some(State::FaultReactionActive | State::Fault));
    let faulted = first(&seen, on, fault);
    let off = first(&seen, on, |it| !it.power());
    assert!(
        (faulted..faulted + UNDER_WAY).contains(&off),
        "faulted on cycle {faulted}, power off on {off}"
    );
    assert!(seen[off..].iter().all(|it| it.outputs == 0), "it stays off");
    assert!(seen.last().is_some_and(|it| it.state == Some(State::Fault)));
}

/// Longer than the cycle waits for a drive that has no brake.
// feature(axes): a brake on a digital output, from the robot file to the terminal
#[test]
fn a_run_that_ends_waits_for_a_slow_brake() {
    let times = BrakeTimes { release: Seconds(0.02), engage: Seconds(2.5) };
    let seen = run(times, 3000, 300, |_, command| command.setpoint.position.0 += 1e-3);
    let stopping = first(&seen, 0, |it| it.stopping);
    let off = first(&seen, stopping, |it| !it.power());
    let left = first(&seen, off, |it| !it.enabled());
    assert!((off + 2_500..off + 2_510).contains(&left), "power off on cycle {off}, no torque on {left}");
}

#[test]
fn a_brake_on_an_output_that_is_not_there_is_refused() {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let mut link = DirectLink::new(segment(&Wires::new(), 3000), clock.clone(), Duration::from_micros(60));
    let mut main_device = main_device(PERIOD);
    let stop = AtomicBool::new(false);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    pump.bring_up(Duration::from_secs(20), |_| ()).unwrap();
    let brake = |sub_device, channel| {
        let mut axis = axis(BrakeTimes::default());
        axis.brake.as_mut().unwrap().output = Some(DigitalOutput { sub_device, channel });
        axis
    };
    for channel in 1..=4 {
        check(&[brake(0, channel)], &main_device).unwrap();
    }
    // The drive's twelve bytes of outputs are no digital ones.
    for (sub_device, channel, there) in [(0, 0, 4), (0, 5, 4), (1, 1, 0), (2, 1, 0)] {
        let error = check(&[brake(sub_device, channel)], &main_device).unwrap_err();
        assert!(matches!(error, AxisError::NoBrakeOutput { found, .. } if found == there), "{error}");
    }
}

/// A link with a drive that loses its power on request.
struct PowerLoss {
    direct: DirectLink<Segment, VirtualClock>,
    cuts: std::sync::mpsc::Receiver<()>,
}

impl ethercat_linux::link::Link for PowerLoss {
    fn transmit(&mut self, frame: &[u8]) -> std::io::Result<()> {
        if self.cuts.try_recv().is_ok() {
            assert!(self.direct.segment().power_off(1));
        }
        self.direct.transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> std::io::Result<Option<usize>> {
        self.direct.receive(buffer, timeout)
    }
}

/// Holds the axis; takes the power of its drive after some cycles, and notes the terminal's
/// outputs.
struct Holds {
    cycles: u64,
    tell: std::sync::mpsc::Sender<()>,
    wires: Wires,
    levels: std::sync::mpsc::Sender<u64>,
}

impl onbeat_control::controller::Controller for Holds {
    fn update(&mut self, _: onbeat_control::controller::CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.cycles += u64::from(reports[0].state == Some(State::OperationEnabled) || self.cycles > 0);
        commands[0].request = Request::Enable;
        if let AxisPhase::HoldingAt(position) = reports[0].feedback.phase {
            commands[0].setpoint.position = position;
        }
        if self.cycles == 300 {
            self.tell.send(()).unwrap();
        }
        if self.cycles >= 300 {
            let _ = self.levels.send(self.wires.levels());
        }
    }
}

// feature(axes): a drive that is lost closes its brake
#[test]
fn a_drive_that_is_lost_closes_the_brake() {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let wires = Wires::new();
    let direct = DirectLink::new(segment(&wires, 3000), clock.clone(), Duration::from_micros(60));
    let (cut, cuts) = std::sync::mpsc::channel();
    let (levels, seen) = std::sync::mpsc::channel();
    let mut axis = axis(BrakeTimes { release: Seconds(0.05), engage: Seconds(0.05) });
    axis.supervision.as_mut().unwrap().outage = motion::supervision::Outage::default();
    let configuration = onbeat_control::cycle::CycleConfiguration {
        cycles: Some(1_500),
        ..onbeat_control::cycle::CycleConfiguration::every(PERIOD)
    };
    let holds = Holds { cycles: 0, tell: cut, wires, levels };
    let (cycle, _observer) =
        support::cycle_of(PowerLoss { direct, cuts }, clock, &[axis], holds, configuration);
    assert_eq!(cycle.run(&onbeat_control::stop::StopHandle::new()).failure, None);
    let levels: Vec<u64> = seen.try_iter().collect();
    assert_eq!(levels[0], 1 << (CHANNEL - 1), "open before");
    let closed = levels.iter().position(|&level| level == 0).expect("it closes");
    // The outage time, and the time of a quick stop that cannot be observed.
    assert!(closed < 20 + 400 + 10, "closed after {closed} cycles");
}

/// The terminal and the drive; on request the terminal leaves Op, and refuses it.
struct OutOfOp {
    segment: Segment,
    refuses: Arc<AtomicBool>,
    did: bool,
}

impl ethercat::link::Segment for OutOfOp {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let refuses = self.refuses.load(Ordering::Relaxed);
        if refuses != std::mem::replace(&mut self.did, refuses) {
            let terminal = self.segment.sub_device_mut(0).unwrap();
            terminal.refuse_state(refuses.then_some((AlState::Op, AlStatusCode(0x1B))));
            if refuses {
                terminal.expire_watchdog();
            }
        }
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// Reports of the axis, and whether the terminal refused Op then; `refuses` decides by the polls so
/// far and the cycles since the axis was enabled.
fn out_of_op(
    cycles: u64,
    mut refuses: impl FnMut(usize, u64) -> bool + Send + 'static,
) -> Vec<(bool, AxisReport)> {
    let told = Arc::new(AtomicBool::new(false));
    told.store(refuses(0, 0), Ordering::Relaxed);
    let wire = OutOfOp { segment: segment(&Wires::new(), 3000), refuses: Arc::clone(&told), did: false };
    let times = BrakeTimes { release: Seconds(0.02), engage: Seconds(0.02) };
    let script = |_: u64, _: &AxisReport, command: &mut AxisCommand| command.setpoint.position.0 += 1e-3;
    let mut looks = 0;
    play(wire, &[axis(times)], cycles, script, move |scene| {
        looks += 1;
        let refused = told.swap(refuses(looks, scene.cycles), Ordering::Relaxed);
        (!scene.stopping).then_some((refused, *scene.report))
    })
}

// feature(axes): an axis whose brake's SubDevice leaves Op is brought to rest, as the brake is shut then
#[test]
fn lost_brake_terminal_stops_its_axis() {
    let seen = out_of_op(2_000, |_, cycles| (300..1_000).contains(&cycles));
    let fell = seen.iter().position(|it| it.0).unwrap();
    assert_eq!(seen[fell - 1].1.stop, None);
    let stopped = seen.iter().position(|it| it.1.stop == Some(StopReason::Brake)).unwrap();
    assert!((fell..fell + 20).contains(&stopped), "left Op on cycle {fell}, stopped on {stopped}");
    let positions: Vec<f64> = seen.iter().map(|it| it.1.feedback.position.0).collect();
    // From 1 rad/s within its limits.
    let rested = stopped + 300;
    let after = &positions[rested..];
    assert!(after.iter().all(|it| (it - after[0]).abs() < 1e-3), "{after:?}");
    let last = seen.last().unwrap().1;
    assert_eq!((last.stop, last.missed), (Some(StopReason::Brake), 0), "until somebody resets it");
}

// feature(axes): no axis is enabled before the whole bus is in Op
#[test]
fn drive_in_op_waits_for_other_sub_devices() {
    let seen = out_of_op(300, |looks, _| looks < 400);
    assert!(seen.iter().filter(|it| it.0).count() >= 399, "it refused");
    let enabled = seen.iter().position(|it| it.1.state == Some(State::OperationEnabled)).unwrap();
    assert!(seen[..enabled].iter().filter(|it| it.0).count() >= 399, "enabled on cycle {enabled}");
    let powered = |it: &&(bool, AxisReport)| it.0 && it.1.state != Some(State::SwitchOnDisabled);
    assert!(seen.iter().skip(100).find(powered).is_none());
}
