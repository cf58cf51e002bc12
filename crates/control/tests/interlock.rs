//! Digital inputs that stop axes or permit them to be enabled, down to simulated drives, in virtual time.
use crate::support;

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{Request, State};
use ethercat::sii::Identity;
use motion::supervision::StopReason;
use motion::{AxisPhase, Radians};
use onbeat_control::clock::VirtualClock;
use onbeat_control::controller::{AxisReport, Controller, CycleInfo};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::interlock::check;
use onbeat_control::link::DirectLink;
use onbeat_control::link::Link;
use onbeat_control::observer::Happening;
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;
use simulator::application::digital::{DigitalInputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_inputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, supervised};
use types::{Interlock, InterlockKind};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// The interlock's input, from 1.
const CHANNEL: usize = 2;

/// Two drives, and behind them a terminal with four digital inputs.
fn segment(wires: &Wires) -> Segment {
    let drive = || {
        let description = ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"));
        let sii = with_coe(IDENTITY, "Servo", default_mapping()).image().emit();
        SubDevice::new(EscDescription::default(), sii, Box::new(ServoDrive::new(&description).unwrap()))
    };
    let inputs = DigitalInputs::new(4, wires.clone()).unwrap();
    let sii = digital_inputs(IDENTITY, "Inputs", 4).image().emit();
    let terminal = SubDevice::new(EscDescription::default(), sii, Box::new(inputs));
    Segment::new(vec![drive(), drive(), terminal])
}

fn interlock(kind: InterlockKind) -> Interlock {
    Interlock {
        name: "door".to_owned(),
        sub_device: 2,
        channel: CHANNEL,
        inverted: false,
        kind,
        axes: vec![0],
    }
}

/// Act at a cycle.
#[derive(Clone, Copy, Debug)]
enum Act {
    High,
    Low,
    Reset,
    /// The cable to the terminal is out.
    Cut,
}

/// Both axes on one cycle.
type Seen = [AxisReport; 2];

/// Plays both axes at a steady speed for so many cycles; what each cycle showed, and what the interlock told.
fn run(interlock: Interlock, cycles: u64, acts: &[(u64, Act)]) -> (Vec<Seen>, Vec<bool>) {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let wires = Wires::new();
    wires.set_levels(if interlock.inverted { 0 } else { 1 << (CHANNEL - 1) });
    let (cut, cuts) = channel();
    let direct = DirectLink::new(segment(&wires), clock.clone(), Duration::from_micros(60));
    let (see, seen) = channel();
    let steady = Steady { acts: acts.to_vec(), wires, cut, see, cycles: 0, reset_for: 0 };
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) =
        cycle_of(Cuttable { direct, cuts }, clock, &supervised(2), steady, configuration);
    let cycle = cycle.with_interlocks(&[interlock]).unwrap();
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    let told = std::iter::from_fn(|| observer.next_event()).filter_map(|event| match event.what {
        Happening::Interlock { interlock: 0, allows } => Some(allows),
        _ => None,
    });
    let told = told.collect();
    (seen.try_iter().collect(), told)
}

struct Cuttable {
    direct: DirectLink<Segment, VirtualClock>,
    cuts: std::sync::mpsc::Receiver<()>,
}

impl Link for Cuttable {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.cuts.try_recv().is_ok() {
            assert!(self.direct.segment().disconnect(1, 1));
        }
        self.direct.transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.direct.receive(buffer, timeout)
    }
}

/// Moves both axes at 2 rad/s and asks for nothing but that, whatever happens.
struct Steady {
    acts: Vec<(u64, Act)>,
    wires: Wires,
    cut: Sender<()>,
    see: Sender<Seen>,
    cycles: u64,
    reset_for: u32,
}

impl Controller for Steady {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        // Cycles count from when the second axis, which no interlock holds, is enabled.
        self.cycles += u64::from(reports[1].state == Some(State::OperationEnabled) || self.cycles > 0);
        for (_, act) in self.acts.iter().filter(|(at, _)| *at == self.cycles) {
            let bit = CHANNEL as u8 - 1;
            match act {
                Act::High => self.wires.set(bit, true),
                Act::Low => self.wires.set(bit, false),
                Act::Reset => self.reset_for = 3,
                Act::Cut => self.cut.send(()).unwrap(),
            }
        }
        for (report, command) in reports.iter().zip(commands) {
            command.request = if self.reset_for > 0 { Request::FaultReset } else { Request::Enable };
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint.position = position;
            }
            if !info.stopping {
                command.setpoint.position += Radians(2e-3);
            }
        }
        self.reset_for = self.reset_for.saturating_sub(1);
        if self.cycles > 0 && !info.stopping {
            let _ = self.see.send([reports[0], reports[1]]);
        }
    }
}

fn enabled(report: &AxisReport) -> bool {
    report.state == Some(State::OperationEnabled)
}

fn moves(report: &AxisReport) -> bool {
    enabled(report) && report.feedback.velocity.0 > 1.5
}

// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn a_stop_signal_brings_its_axis_to_rest_then_takes_its_torque_until_somebody_resets_it() {
    let acts = [(300, Act::Low), (700, Act::High), (900, Act::Reset)];
    let (seen, told) = run(interlock(InterlockKind::Stop), 1_400, &acts);
    assert!(moves(&seen[299][0]), "{:?}", seen[299][0]);
    // 2 rad/s at 50 rad/s^2 take 40 cycles: it keeps its torque for that.
    let disabled = 300 + seen[300..].iter().position(|it| !enabled(&it[0])).unwrap();
    assert!((335..420).contains(&disabled), "{disabled}");
    let at_the_end = seen[disabled - 3][0].feedback.velocity.0;
    assert!(at_the_end < 0.2, "its torque was taken at {at_the_end} rad/s");
    let held = &seen[disabled + 5..900];
    assert!(held.iter().all(|it| !enabled(&it[0]) && it[0].stop == Some(StopReason::Interlock)));
    assert!(moves(&seen[1_200][0]) && seen[1_200][0].stop.is_none(), "{:?}", seen[1_200][0]);
    assert!(
        seen[100..1_300].iter().all(|it| moves(&it[1]) || it[1].feedback.velocity.0 > 1.0),
        "the other axis"
    );
    assert_eq!(told, [false, true]);
}

// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn a_reset_while_the_stop_signal_is_on_changes_nothing() {
    let acts = [(300, Act::Low), (500, Act::Reset), (800, Act::High)];
    let (seen, _) = run(interlock(InterlockKind::Stop), 1_200, &acts);
    // It was asked for while the signal was on; the signal's end alone enables nothing.
    assert!(seen[450..].iter().all(|it| !enabled(&it[0])), "enabled without a reset after the signal");
}

// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn without_the_permission_nothing_is_enabled_and_with_it_again_it_is() {
    let acts = [(1, Act::Low), (400, Act::High), (800, Act::Low), (1_100, Act::High)];
    let (seen, told) = run(interlock(InterlockKind::Enable), 1_500, &acts);
    assert!(
        seen[100..400].iter().all(|it| !enabled(&it[0]) && it[0].stop == Some(StopReason::NotPermitted))
    );
    assert!(moves(&seen[700][0]), "{:?}", seen[700][0]);
    assert!(seen[950..1_100].iter().all(|it| !enabled(&it[0])));
    // Asked for all the time, and not enabled; then enabled; then no more.
    let waited = |cycle: usize| (seen[cycle][0].waits, seen[cycle][0].was_enabled);
    assert!(waited(300).0 >= 200, "{:?}", waited(300));
    assert_eq!(waited(700), (0, true));
    assert!(waited(1_050).0 >= 50 && waited(1_050).1, "{:?}", waited(1_050));
    assert_eq!((seen[700][1].waits, seen[700][1].was_enabled), (0, true));
    assert!(moves(&seen[1_400][0]), "{:?}", seen[1_400][0]);
    assert_eq!(told.last(), Some(&true));
}

// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn an_input_that_is_lost_stops() {
    let (seen, told) = run(interlock(InterlockKind::Stop), 900, &[(300, Act::Cut)]);
    assert!(moves(&seen[299][0]));
    assert!(seen[500..].iter().all(|it| !enabled(&it[0]) && it[0].stop == Some(StopReason::Interlock)));
    assert!(seen[500..800].iter().all(|it| moves(&it[1])), "the other axis goes on");
    assert_eq!(told, [false]);
}

#[test]
fn an_inverted_input_allows_while_it_is_low() {
    let inverted = Interlock { inverted: true, ..interlock(InterlockKind::Stop) };
    let (seen, told) = run(inverted, 700, &[(300, Act::High)]);
    assert!(moves(&seen[299][0]));
    assert!(seen[500..].iter().all(|it| !enabled(&it[0])));
    assert_eq!(told, [false]);
}

#[test]
fn an_input_that_is_not_there_is_named() {
    let clock = VirtualClock::default();
    let mut link = DirectLink::new(segment(&Wires::new()), clock.clone(), Duration::from_micros(60));
    let mut main_device = support::main_device(PERIOD);
    let stop = StopHandle::new();
    onbeat_control::bring_up::Pump {
        main_device: &mut main_device,
        link: &mut link,
        clock: &clock,
        stop: stop.flag(),
    }
    .bring_up(Duration::from_secs(10), |_| ())
    .unwrap();
    let wrong = Interlock { channel: 5, ..interlock(InterlockKind::Stop) };
    let error = check(&[wrong], &main_device).unwrap_err();
    assert_eq!(
        error.to_string(),
        "interlock \"door\": digital input 5 of SubDevice 2, but that has 4 digital inputs; correct its sub_device or \
         channel"
    );
}

/// A drive that looks for its home moves by itself: it is halted before its torque is taken.
// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn a_stop_signal_while_the_drive_homes_halts_it_first() {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let wires = Wires::new();
    wires.set_levels(1 << (CHANNEL - 1));
    let mut mapping = default_mapping();
    let mode = |index: u16| ethercat::pdo::PdoEntry::from_mapping_value(u32::from(index) << 16 | 8);
    mapping.outputs[0].entries.push(mode(ethercat::cia402::object::MODES_OF_OPERATION));
    mapping.inputs[0].entries.push(mode(ethercat::cia402::object::MODES_OF_OPERATION_DISPLAY));
    let description = ServoDescription {
        mapping: mapping.clone(),
        limit_switches: Some((-3000.0, 3000.0)),
        ..ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"))
    };
    let mut drive = ServoDrive::new(&description).unwrap();
    let counts = |radians: f64| (radians / std::f64::consts::TAU * f64::from(1 << 20)) as i64;
    for (index, sub_index, value) in [
        (ethercat::cia402::object::HOMING_METHOD, 0, 17),
        (ethercat::cia402::object::HOMING_SPEEDS, 1, counts(4.0)),
        (ethercat::cia402::object::HOMING_SPEEDS, 2, counts(4.0)),
        (ethercat::cia402::object::HOMING_ACCELERATION, 0, counts(100.0)),
    ] {
        let entry = drive.dictionary().find(index, sub_index).unwrap();
        drive.dictionary_mut().set(entry, value);
    }
    let record = drive.record();
    let sii = with_coe(IDENTITY, "Servo", mapping).image().emit();
    let inputs = DigitalInputs::new(4, wires.clone()).unwrap();
    let terminal = digital_inputs(IDENTITY, "Inputs", 4).image().emit();
    let segment = Segment::new(vec![
        SubDevice::new(EscDescription::default(), sii, Box::new(drive)),
        SubDevice::new(EscDescription::default(), terminal, Box::new(inputs)),
    ]);
    let direct = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let homes = Homes { wires, cycles: 0 };
    let configuration = CycleConfiguration { cycles: Some(1_500), ..CycleConfiguration::every(PERIOD) };
    let mut axes = supervised(1);
    let position = Radians(0.0);
    axes[0].homing = motion::homing::Homing::Drive { position, timeout: motion::Seconds(20.0) };
    let (cycle, _observer) = cycle_of(direct, clock, &axes, homes, configuration);
    let door = Interlock { sub_device: 1, ..interlock(InterlockKind::Stop) };
    assert_eq!(cycle.with_interlocks(&[door]).unwrap().run(&StopHandle::new()).failure, None);
    let taken = record.taken();
    let fastest = taken.iter().map(|it| it.velocity.abs()).fold(0.0, f64::max);
    assert!(fastest > counts(3.5) as f64, "it was looking for its home: {fastest}");
    let moving = taken.iter().position(|it| it.velocity.abs() > counts(3.5) as f64).unwrap();
    let let_go = taken[moving..].iter().find(|it| it.state != State::OperationEnabled).unwrap();
    assert!(let_go.velocity.abs() < counts(0.2) as f64, "let go at {} counts/s", let_go.velocity);
    assert!(taken.last().unwrap().state != State::OperationEnabled);
}

/// Enables, homes, and opens the door.
struct Homes {
    wires: Wires,
    cycles: u64,
}

impl Controller for Homes {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.cycles += u64::from(enabled(&reports[0]) || self.cycles > 0);
        commands[0].request = Request::Enable;
        if let AxisPhase::HoldingAt(position) = reports[0].feedback.phase {
            commands[0].setpoint.position = position;
        }
        commands[0].home = self.cycles == 100;
        if self.cycles == 500 {
            self.wires.set(CHANNEL as u8 - 1, false);
        }
    }
}
