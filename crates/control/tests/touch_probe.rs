//! A touch probe of a drive, armed by a controller through signals, down to a simulated drive, in
//! virtual time.
use crate::support;

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::object::{TOUCH_PROBE_FUNCTION, TOUCH_PROBE_POSITION, TOUCH_PROBE_STATUS, of_axis};
use ethercat::cia402::{ProbeTrigger, Request, TouchProbe};
use ethercat::pdo::PdoEntry;
use ethercat::sii::Identity;
use ethercat_linux::link::DirectLink;
use motion::homing::Homing;
use motion::{AxisPhase, Radians};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::signal::{Input, Output, SignalError, Signals};
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping_of};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, supervised};
use types::signal::{Flow, OutputBehaviour};
use types::{Signal, ValueType};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// Angles of the shaft between which the input of the probe is high.
const TOUCH: (f64, f64) = (0.5, 0.75);

/// Initial position of the axis, at an angle of 0.
const HOME: f64 = -2.0;

/// A drive with two axes, the second of which maps its touch probe; and the signals of the probe:
/// function, status, position at the rising edge.
fn drive() -> (SubDevice, Vec<Signal>) {
    let mut mapping = default_mapping_of(2);
    let entry = |index, bit_length| PdoEntry {
        index: of_axis(index, 1),
        sub_index: 0,
        bit_length,
        data_type: 0,
        name: String::new(),
    };
    mapping.outputs[1].entries.push(entry(TOUCH_PROBE_FUNCTION, 16));
    mapping.inputs[1].entries.extend([entry(TOUCH_PROBE_STATUS, 16), entry(TOUCH_PROBE_POSITION, 32)]);
    let signal = |name: &str, field: ethercat::pdo::PdoField, value_type, flow| Signal {
        name: name.to_owned(),
        sub_device: 0,
        bit_offset: field.bit_offset,
        value_type,
        unit: String::new(),
        scaling: None,
        range: None,
        flow,
    };
    let place = |index| mapping.input(of_axis(index, 1), 0).unwrap();
    let function = mapping.output(of_axis(TOUCH_PROBE_FUNCTION, 1), 0).unwrap();
    let word = ValueType::Unsigned(16);
    let signals = vec![
        signal("function", function, word, Flow::Output(OutputBehaviour::default())),
        signal("status", place(TOUCH_PROBE_STATUS), word, Flow::Input),
        signal("rising", place(TOUCH_PROBE_POSITION), ValueType::Signed(32), Flow::Input),
    ];
    let sii = with_coe(IDENTITY, "Servo", mapping.clone()).image().emit();
    let description = ServoDescription {
        axes: 2,
        mapping,
        touch_probes: [Some(TOUCH), None],
        ..ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"))
    };
    let drive = ServoDrive::new(&description).unwrap();
    (SubDevice::new(EscDescription::default(), sii, Box::new(drive)), signals)
}

/// Homes the second axis at its position, arms its probe and moves it to and fro over the touch;
/// sends each fresh edge, and the position of the axis then.
struct Probing {
    probe: TouchProbe,
    signals: Option<(Output<u16>, Input<u16>, Input<i32>)>,
    cycles: u64,
    armed: u32,
    found: Sender<(Radians, Radians)>,
}

impl Controller for Probing {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.signals =
            Some((signals.output("function")?, signals.input("status")?, signals.input("rising")?));
        Ok(())
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (function, status, rising) = self.signals.unwrap();
        let report = io.axes()[1];
        self.cycles += u64::from(report.was_enabled);
        // Armed twice: before the first way there, and before the second.
        if (self.cycles >= 200 && self.armed == 0) || (self.cycles >= 1_400 && self.armed == 1) {
            self.armed += 1;
            self.probe.arm(ProbeTrigger::RISING);
        }
        if io.is_fresh(status) {
            let [first, _] = io.get(status).to_le_bytes();
            let wanted = self.probe.step(first, [io.get(rising), 0]);
            io.set(function, wanted.into());
        }
        if let [Some(counts), _] = self.probe.fresh() {
            self.found.send((report.position_at(counts).unwrap(), report.feedback.position)).unwrap();
        }
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(&mut *commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint.position = position;
            }
        }
        commands[1].home = self.cycles == 100;
        let there = matches!(self.cycles, 300..800 | 1_500..2_000);
        let back = matches!(self.cycles, 900..1_400);
        if !info.stopping && (there || back) {
            commands[1].setpoint.position += Radians(if there { 2e-3 } else { -2e-3 });
        }
    }
}

// feature(axes): a controller arms a touch probe through signals and gets the position in the axis's unit, each edge once
#[test]
fn controller_gets_each_probe_edge_once_in_axis_units() {
    let (drive, signals) = drive();
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(Segment::new(vec![drive]), clock.clone(), Duration::from_micros(60));
    let mut axes = supervised(2);
    (axes[1].sub_device, axes[1].drive_axis) = (0, 1);
    axes[1].homing = Homing::CurrentPosition { position: Radians(HOME) };
    let (found, edges) = channel();
    let probing = Probing { probe: TouchProbe::default(), signals: None, cycles: 0, armed: 0, found };
    let configuration = CycleConfiguration { cycles: Some(2_500), ..CycleConfiguration::every(PERIOD) };
    let (mut cycle, _observer) = cycle_of(link, clock, &axes, probing, configuration);
    cycle.set_signals(signals).unwrap();
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    let edges: Vec<_> = edges.try_iter().collect();
    assert_eq!(edges.len(), 2, "{edges:?}");
    for (edge, axis) in edges {
        // The drive's own clock finds it; the axis has gone on since.
        assert!((edge.0 - (HOME + TOUCH.0)).abs() < 1e-4, "{edge:?}");
        assert!((axis - edge).0 > 1e-3, "{axis:?}");
    }
}

#[test]
fn a_position_beyond_the_wrap_of_32_bits_is_next_to_the_axis() {
    let mut report = AxisReport::default();
    assert_eq!(report.position_at(5), None);
    report.feedback.position = Radians(1.0);
    report.counts = Some((i32::MAX, -100.0));
    assert_eq!(report.position_at(i32::MIN + 1), Some(Radians(0.98)));
    assert_eq!(report.position_at(i32::MAX - 3), Some(Radians(1.03)));
}
