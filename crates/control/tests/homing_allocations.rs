//! A counting allocator sees a drive home, and a brake on an output, with feedback, before and
//! after it.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use ethercat::cia402::object::{MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY};
use ethercat::cia402::{Request, State};
use ethercat::pdo::PdoEntry;
use ethercat::sii::Identity;
use ethercat_linux::link::SimulatedLink;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::homing::Homing;
use motion::{AxisPhase, Radians, Seconds};
use onbeat_control::axis::{AxisConfiguration, BrakeFeedback, DigitalOutput, FeedbackInput};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use rt::clock::MonotonicClock;
use simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_inputs, digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, supervised};
use testkit::{CountingAllocator, allocations};

static HOMED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// Cycles after which a machine too busy to bring the bus to Op is given up.
const TOO_MANY: u64 = 60_000;

/// A terminal with outputs, a drive that takes its position as home (method 37, as delivered), and
/// a terminal with inputs that follow the outputs.
fn segment() -> Segment {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let wires = Wires::new();
    let outputs = DigitalOutputs::new(2, wires.clone()).unwrap();
    let sii = digital_outputs(identity, "Outputs", 2).image().emit();
    let terminal = SubDevice::new(EscDescription::default(), sii, Box::new(outputs));
    let inputs = DigitalInputs::new(2, wires).unwrap();
    let sii = digital_inputs(identity, "Inputs", 2).image().emit();
    let feedback = SubDevice::new(EscDescription::default(), sii, Box::new(inputs));
    let mut mapping = default_mapping();
    let mode = |index: u16| PdoEntry::from_mapping_value(u32::from(index) << 16 | 8);
    mapping.outputs[0].entries.push(mode(MODES_OF_OPERATION));
    mapping.inputs[0].entries.push(mode(MODES_OF_OPERATION_DISPLAY));
    let device = DeviceDescription::new(identity, "Servo");
    let description = ServoDescription { mapping: mapping.clone(), ..ServoDescription::new(device) };
    let drive = ServoDrive::new(&description).unwrap();
    let sii = with_coe(identity, "Servo", mapping).image().emit();
    Segment::new(vec![terminal, SubDevice::new(EscDescription::default(), sii, Box::new(drive)), feedback])
}

/// Homes its axis again and again, and is watched from the first time it is enabled on.
struct Homing37 {
    was_homing: bool,
    leaks: bool,
    stop: StopHandle,
}

impl Controller for Homing37 {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (&reports[0], &mut commands[0]);
        command.request = Request::Enable;
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            command.setpoint.position = position;
        }
        command.home = !info.stopping && !report.homing && report.feedback.phase == AxisPhase::Following;
        if report.state == Some(State::OperationEnabled) {
            allocations::watch(!info.stopping);
        }
        if self.was_homing && !report.homing && report.homed {
            if self.leaks {
                std::hint::black_box(Box::new(info));
            }
            // Relaxed: counts and a flag, and nothing else is passed through them.
            let homed = HOMED.fetch_add(1, Ordering::Relaxed) + 1;
            if homed >= 5 {
                self.stop.stop();
            }
        }
        self.was_homing = report.homing;
    }
}

/// Allocator calls while the axis was homed so often.
fn run(leaks: bool) -> (u64, u64) {
    HOMED.store(0, Ordering::Relaxed);
    let before = allocations::calls();
    let times = BrakeTimes { release: Seconds(0.02), engage: Seconds(0.02) };
    let axis = AxisConfiguration {
        sub_device: 1,
        homing: Homing::Drive { position: Radians(0.5), timeout: Seconds(30.0) },
        brake: Some(BrakeConfiguration {
            times,
            output: Some(DigitalOutput { sub_device: 0, channel: 2 }),
            feedback: BrakeFeedback {
                released: Some(FeedbackInput { sub_device: 2, channel: 2, inverted: false }),
                closed: None,
            },
        }),
        ..supervised(1).remove(0)
    };
    let configuration = CycleConfiguration { cycles: Some(TOO_MANY), ..CycleConfiguration::every(PERIOD) };
    let stop = StopHandle::new();
    let controller = Homing37 { was_homing: false, leaks, stop: stop.clone() };
    let link = SimulatedLink::new(segment());
    let (cycle, _observer) = cycle_of(link, MonotonicClock, &[axis], controller, configuration);
    assert_eq!(cycle.run(&stop).failure, None);
    (allocations::calls() - before, HOMED.load(Ordering::Relaxed))
}

/// One test, so that nothing else runs at the same time.
// feature(axes): homing by the drive (CiA 402 mode 6), without a step afterwards; errors, time-outs, called off
#[test]
fn homing_and_a_brake_on_an_output_neither_allocate_nor_free() {
    let (calls, homed) = run(false);
    assert!(homed >= 5, "homed {homed} times only");
    assert_eq!(calls, 0, "allocator calls while it was homed {homed} times");
    // The count counts: a box made and dropped on purpose, each time.
    let (calls, homed) = run(true);
    assert!(homed >= 5 && calls == 2 * homed, "{calls} calls, homed {homed} times");
}
