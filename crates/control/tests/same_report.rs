//! The same controller in the cycle's thread and in a separate process sees the same reports, in
//! virtual time.
use crate::support;

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::{AxisMode, CyclicMode, Request};
use ethercat::main_device::{
    Configuration, ExpectedIdentity, MainDevice, Presence, ProcessDataSource, SubDeviceConfiguration,
};
use ethercat::pdo::PdoMapping;
use ethercat_linux::link::DirectLink;
use ipc::description::{AxisDescription, ControllerDescription, Description};
use motion::{AxisPhase, RadiansPerSecond};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, IgnoredSetpoint, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::external::{External, ExternalAxis, Settings};
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::Segment;
use simulator::application::servo::default_mapping;
use support::controller::Direct;
use support::{PERIOD, cycle_with, sub_device, supervised};

/// Axis with a controller that gives a set-point of another mode.
const IGNORED: usize = 0;

/// Axis with a drive that does not map its torque.
const WITHOUT_TORQUE: usize = 1;

/// Axis with a drive that is not on the bus.
const ABSENT: usize = 2;

const AXES: usize = 3;

const TORQUE_ACTUAL_VALUE: u16 = 0x6077;

/// Wants all axes enabled where they are, and gives one of them a velocity.
struct Wants {
    seen: Sender<(u64, Vec<AxisReport>)>,
}

impl Controller for Wants {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.seen.send((info.cycle, reports.to_vec())).unwrap();
        for (report, command) in reports.iter().zip(&mut *commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint.position = position;
            }
        }
        commands[IGNORED].setpoint.velocity = RadiansPerSecond(1.0);
    }
}

fn mapping(axis: usize) -> PdoMapping {
    let mut mapping = default_mapping();
    if axis == WITHOUT_TORQUE {
        mapping.inputs[0].entries.retain(|it| it.index != TORQUE_ACTUAL_VALUE);
    }
    mapping
}

fn bus() -> (MainDevice, Segment) {
    let drive = |axis| sub_device(CyclicMode::Position, |it| it.mapping = mapping(axis)).0;
    let mut segment = Segment::new((0..AXES).map(drive).collect());
    assert!(segment.power_off(ABSENT));
    let expected = |axis| SubDeviceConfiguration {
        identity: Some(ExpectedIdentity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: None }),
        process_data: ProcessDataSource::Explicit(mapping(axis)),
        presence: if axis == ABSENT { Presence::Optional } else { Presence::Required },
        ..SubDeviceConfiguration::default()
    };
    let main_device = MainDevice::new(Configuration {
        sub_devices: Some((0..AXES).map(expected).collect()),
        target: AlState::Op,
        period: PERIOD,
        ..Configuration::default()
    });
    (main_device.unwrap(), segment)
}

/// Reports of every cycle, as the controller sees them.
fn seen(outside: bool) -> Vec<(u64, Vec<AxisReport>)> {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (main_device, segment) = bus();
    let (seen, told) = channel();
    let controller: Box<dyn Controller> = if outside {
        let axis = |axis| AxisDescription::new(format!("axis-{axis}"), CyclicMode::Position, 10.0, 10.0);
        let description = Description {
            axes: (0..AXES).map(axis).collect(),
            controllers: vec![ControllerDescription {
                name: "process".to_owned(),
                kind: Some(types::ControllerKind::External),
                axes: (0..AXES).collect(),
            }],
            ..Description::default()
        };
        let axis = ExternalAxis { mode: AxisMode::CyclicPosition, position: None };
        let settings =
            Settings { deadline: Duration::from_micros(700), max_late: 3, axes: vec![Some(axis); AXES] };
        Box::new(External::new(Direct::new(&description, Wants { seen }, clock.clone()), settings))
    } else {
        Box::new(Wants { seen })
    };
    let configuration = CycleConfiguration { cycles: Some(1_000), ..CycleConfiguration::every(PERIOD) };
    let link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let axes = supervised(AXES);
    let (cycle, _observer) = cycle_with(main_device, link, clock, &axes, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    told.try_iter().collect()
}

// feature(ipc): a controller in a separate process gets the same report of each axis as a controller in the cycle
#[test]
fn a_report_is_the_same_in_a_separate_process() {
    let (inside, outside) = (seen(false), seen(true));
    // In the first cycle the process is not asked yet.
    let first = outside[0].0;
    let inside = inside.iter().filter(|(cycle, _)| *cycle >= first);
    for ((cycle, inside), (same, outside)) in inside.clone().zip(&outside) {
        assert_eq!(cycle, same);
        for (axis, (inside, outside)) in inside.iter().zip(outside).enumerate() {
            assert_eq!(inside, outside, "axis {axis} in cycle {cycle}");
        }
    }
    assert_eq!(inside.count(), outside.len());
    let ever = |axis: usize, found: fn(&AxisReport) -> bool| outside.iter().any(|(_, it)| found(&it[axis]));
    let ignored = |it: &AxisReport| {
        let velocity = IgnoredSetpoint { mode: AxisMode::CyclicPosition, given: CyclicMode::Velocity };
        it.ignored == Some(velocity)
    };
    assert!(ever(IGNORED, ignored) && ever(IGNORED, |it| it.measures_torque && !it.absent));
    assert!(outside.iter().skip(2).all(|(_, it)| !it[WITHOUT_TORQUE].measures_torque));
    assert!(ever(ABSENT, |it| it.absent && it.missed > 100 && it.stop.is_some()));
}
