//! Digital inputs that stop axes or permit them to be enabled, down to simulated drives, in virtual
//! time.
use crate::support;

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{Request, State};
use ethercat::sii::Identity;
use ethercat_linux::link::DirectLink;
use ethercat_linux::link::Link;
use ipc::client::Client;
use ipc::words::why_stopped;
use motion::supervision::StopReason;
use motion::{AxisPhase, Radians};
use onbeat_control::bus::{PartNames, sentence};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::interlock::check;
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::application::digital::{DigitalInputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_inputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{IpcFolder, PERIOD, cycle_of, ipc_of, rules, supervised};
use types::signal::Flow;
use types::{Interlock, InterlockKind, Signal, Value, ValueType};

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
    /// A client forces the signal of the input to this level.
    Force(bool),
    /// It releases the signal.
    Release,
}

/// Both axes on one cycle.
type Seen = [AxisReport; 2];

/// Plays both axes at a steady speed for so many cycles; what each cycle showed, and what the
/// interlock allowed.
fn run(interlock: Interlock, cycles: u64, acts: &[(u64, Act)]) -> (Vec<Seen>, Vec<bool>) {
    let Ran { seen, allowed, .. } = run_seen("plain", interlock, cycles, acts);
    (seen, allowed)
}

/// Course of a run.
struct Ran {
    seen: Vec<Seen>,
    allowed: Vec<bool>,
    /// Reason for the stop of the first axis, as other processes see it in each cycle.
    why: Vec<Option<String>>,
    /// Sentences of the events of stopped axes.
    stops: Vec<String>,
    /// Rows for a recording.
    rows: usize,
}

fn run_seen(name: &str, interlock: Interlock, cycles: u64, acts: &[(u64, Act)]) -> Ran {
    run_all(name, &[interlock], cycles, acts)
}

fn run_all(name: &str, interlocks: &[Interlock], cycles: u64, acts: &[(u64, Act)]) -> Ran {
    let signal = Signal {
        name: "door closed".to_owned(),
        sub_device: 2,
        bit_offset: CHANNEL - 1,
        value_type: ValueType::Bool,
        unit: String::new(),
        scaling: None,
        range: None,
        flow: Flow::Input,
    };
    let folder = IpcFolder::new(&format!("interlock-{name}"));
    let (ipc, _server, client) = ipc_of(&folder, rules(2), std::slice::from_ref(&signal), interlocks);
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let wires = Wires::new();
    // Events of cycle 0 are before all cycles.
    let low = acts.iter().any(|(at, act)| *at == 0 && matches!(act, Act::Low));
    let is_inverted = interlocks.iter().any(|it| it.inverted && it.channel == CHANNEL);
    wires.set_levels(if is_inverted || low { 0 } else { 1 << (CHANNEL - 1) });
    let (cut, cuts) = channel();
    let direct = DirectLink::new(segment(&wires), clock.clone(), Duration::from_micros(60));
    let (see, seen) = channel();
    let (tell, why) = channel();
    let steady = Steady { acts: acts.to_vec(), wires, cut, see, cycles: 0, reset_for: 0, client, tell };
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (mut cycle, mut observer) =
        cycle_of(Cuttable { direct, cuts }, clock, &supervised(2), steady, configuration);
    cycle.set_signals(vec![signal]).unwrap();
    let mut samples = cycle.sample(vec![0]);
    let names = PartNames {
        sub_devices: vec!["x".to_owned(), "y".to_owned(), "inputs-1".to_owned()],
        axes: vec!["x".to_owned(), "y".to_owned()],
        interlocks: interlocks.to_vec(),
        period: PERIOD,
        ..PartNames::default()
    };
    let cycle = cycle.with_interlocks(interlocks).unwrap().with_ipc(ipc);
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    let (mut allowed, mut stops) = (Vec::new(), Vec::new());
    for event in std::iter::from_fn(|| observer.next_event()) {
        match event.what {
            Happening::Interlock { interlock: 0, allows, .. } => allowed.push(allows),
            Happening::AxisStopped { axis: 0, .. } => stops.push(sentence(&event, &[], &names).unwrap().1),
            _ => {}
        }
    }
    let rows = (0..10_000).filter(|&cycle| samples.go_to(cycle)).count();
    Ran { seen: seen.try_iter().collect(), allowed, why: why.try_iter().collect(), stops, rows }
}

// feature(measure): `sample` of a cycle may come before its interlocks and its IPC
#[test]
fn interlocks_and_ipc_may_follow_the_request_for_samples() {
    let ran = run_seen("sampled", interlock(InterlockKind::Stop), 100, &[]);
    assert!(ran.rows >= 100, "{} rows", ran.rows);
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
    client: Client,
    tell: Sender<Option<String>>,
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
                &Act::Force(high) => {
                    self.client.force(0, Value::Bool(high), Duration::from_secs(60)).unwrap();
                }
                Act::Release => self.client.release(Some(0)).unwrap(),
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
            let state = self.client.state().read().unwrap_or_default();
            let why = state.axes.first().and_then(|x| why_stopped(x, &state, self.client.description()));
            let _ = self.tell.send(why);
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
fn stop_signal_stops_and_disables_until_a_reset() {
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
fn of_two_interlocks_of_an_axis_the_stricter_counts() {
    let hatch = Interlock {
        name: "hatch".to_owned(),
        channel: 1,
        inverted: true,
        ..interlock(InterlockKind::Enable)
    };
    for (kind, stop) in
        [(InterlockKind::Stop, StopReason::Interlock), (InterlockKind::Enable, StopReason::NotPermitted)]
    {
        let door = interlock(kind);
        for both in [[door.clone(), hatch.clone()], [hatch.clone(), door]] {
            let seen = run_all("two", &both, 700, &[(300, Act::Low)]).seen;
            assert!(moves(&seen[290][0]), "{kind:?}: both permit");
            let last = &seen.last().unwrap()[0];
            assert_eq!((last.stop, enabled(last)), (Some(stop), false), "{kind:?}");
        }
    }
}

#[test]
fn a_reset_while_the_stop_signal_is_on_changes_nothing() {
    let acts = [(300, Act::Low), (500, Act::Reset), (800, Act::High)];
    let (seen, _) = run(interlock(InterlockKind::Stop), 1_200, &acts);
    // It was requested while the signal was on; the signal's end alone enables nothing.
    assert!(seen[450..].iter().all(|it| !enabled(&it[0])), "enabled without a reset after the signal");
}

// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn a_permission_that_returns_enables_nothing() {
    let acts = [
        (1, Act::Low),
        (400, Act::High),
        (600, Act::Reset),
        (800, Act::Low),
        // A start request while the permission is missing does not count.
        (900, Act::Reset),
        (1_100, Act::High),
        (1_400, Act::Reset),
    ];
    let (seen, told) = run(interlock(InterlockKind::Enable), 1_800, &acts);
    let stops = |cycles: std::ops::Range<usize>, reason| {
        seen[cycles].iter().all(|it| !enabled(&it[0]) && it[0].stop == Some(reason))
    };
    assert!(stops(100..400, StopReason::NotPermitted));
    assert!(stops(420..600, StopReason::AwaitsStart));
    let named = |it: &[AxisReport; 2]| it[0].interlock.is_some_and(|it| it.interlock == 0 && it.permits);
    assert!(seen[420..600].iter().all(named), "the interlock that took the permission: {:?}", seen[500][0]);
    assert_eq!(seen[750][0].interlock, None);
    assert!(moves(&seen[750][0]), "{:?}", seen[750][0]);
    assert!(stops(950..1_100, StopReason::NotPermitted));
    assert!(stops(1_120..1_400, StopReason::AwaitsStart));
    // Requested all the time, and not enabled; then enabled; then no more.
    let waited = |cycle: usize| (seen[cycle][0].waits, seen[cycle][0].was_enabled);
    assert!(waited(300).0 >= 200, "{:?}", waited(300));
    assert_eq!(waited(750), (0, true));
    assert!(waited(1_050).0 >= 50 && waited(1_050).1, "{:?}", waited(1_050));
    assert_eq!((seen[750][1].waits, seen[750][1].was_enabled), (0, true));
    assert!(moves(&seen[1_700][0]), "{:?}", seen[1_700][0]);
    assert!(seen[100..1_700].iter().all(|it| it[1].stop.is_none()), "the other axis");
    assert_eq!(told, [false, true, false, true]);
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

/// Section H of the rules for axes: permission of the input AND permission of the force.
// feature(axes): a forced signal may withdraw the permission of an interlock, never grant one
#[test]
fn a_force_withdraws_a_permission_until_a_reset_and_grants_none() {
    for kind in [InterlockKind::Stop, InterlockKind::Enable] {
        for inverted in [false, true] {
            let door = Interlock { inverted, ..interlock(kind) };
            let permits = !inverted;
            let (open, close) = if permits { (Act::Low, Act::High) } else { (Act::High, Act::Low) };
            let name = format!("{kind:?}-{inverted}");

            // Withdrawn: stopped, and still stopped after the force, until a reset.
            let acts = [(300, Act::Force(!permits)), (600, Act::Release), (900, Act::Reset)];
            let ran = run_seen(&name, door.clone(), 1_300, &acts);
            let seen = &ran.seen;
            assert!(moves(&seen[299][0]), "{name}: {:?}", seen[299][0]);
            let stopped = |it: &Seen| !enabled(&it[0]) && it[0].stop == Some(StopReason::Interlock);
            assert!(seen[450..900].iter().all(stopped), "{name}");
            assert!(moves(&seen[1_200][0]), "{name}: {:?}", seen[1_200][0]);
            assert!(seen[100..1_200].iter().all(|it| it[1].stop.is_none()), "{name}: the other axis");
            let level = if inverted { "high" } else { "low" };
            let why = format!("interlock \"door\" (inputs-1, channel 2) is forced to {level}");
            assert_eq!(ran.why[500].as_deref(), Some(&*why));
            assert_eq!(ran.stops[0], format!("axis \"x\" is held: {why}"));

            // Not granted: the input forbids, whatever is forced.
            let acts = [(300, open), (310, Act::Force(permits)), (600, Act::Reset), (900, close)];
            let seen = run_seen(&name, door.clone(), 1_000, &acts).seen;
            assert!(seen[450..900].iter().all(|it| !enabled(&it[0]) && it[0].stop.is_some()), "{name}");

            // A lost input forbids, whatever is forced.
            let acts = [(290, Act::Force(permits)), (300, Act::Cut), (600, Act::Reset)];
            let ran = run_seen(&name, door, 1_000, &acts);
            assert!(moves(&ran.seen[299][0]), "{name}: a force that agrees changes nothing");
            let stopped = |it: &Seen| !enabled(&it[0]) && it[0].stop.is_some();
            assert!(ran.seen[450..950].iter().all(stopped), "{name}");
            let why = "interlock \"door\" (inputs-1, channel 2) is lost (no process data of its SubDevice)";
            assert_eq!(ran.why[500].as_deref(), Some(why));
        }
    }
}

// feature(axes): stops and refusals name the interlock, its input and the level, at the start, too
#[test]
fn an_interlock_is_named_from_the_start_until_the_reset() {
    let acts = [(0, Act::Low), (400, Act::High), (800, Act::Reset)];
    let ran = run_seen("named", interlock(InterlockKind::Stop), 1_100, &acts);
    assert!(ran.seen[..800].iter().all(|it| !enabled(&it[0])));
    let low = "interlock \"door\" (inputs-1, channel 2) is low";
    assert_eq!(ran.why[300].as_deref(), Some(low));
    assert_eq!(ran.stops, [format!("axis \"x\" is held: {low}")]);
    let again = "interlock \"door\" (inputs-1, channel 2) is high again";
    assert_eq!(ran.why[700].as_deref(), Some(again));
    assert_eq!(ran.why[1_050], None);
    assert!(moves(&ran.seen[1_050][0]));
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
    ethercat_linux::bring_up::Pump {
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

/// A drive that homes moves without set-points: it is halted before its torque is taken.
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
