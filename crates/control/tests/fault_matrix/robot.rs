//! The robot of a cell, and one run of it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::AxisMode;
use ethercat::cia402::object::{
    HOMING_ACCELERATION, HOMING_METHOD, HOMING_SPEEDS, INTERPOLATION_DATA_RECORD, MODES_OF_OPERATION,
    MODES_OF_OPERATION_DISPLAY, PROFILE_ACCELERATION, PROFILE_DECELERATION, PROFILE_VELOCITY, TORQUE_SLOPE,
};
use ethercat::main_device::{
    Configuration, Event, ExpectedIdentity, MainDevice, Replies, StartupSdo, SubDeviceConfiguration, Sync0,
};
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use motion::PositionSense;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::homing::Homing;
use motion::supervision::{AfterOutage, DriveProfile, Outage, Written};
use motion::{AxisScale, NewtonMetres, Radians, Seconds};
use onbeat_control::axis::{AxisConfiguration, BrakeFeedback, DigitalOutput, FeedbackInput};
use onbeat_control::controller::AxisReport;
use onbeat_control::cycle::{Cycle, CycleConfiguration};
use onbeat_control::observer::{CycleEvent, Happening};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, VirtualClock};
use simulator::application::ShaftBrake;
use simulator::application::digital::{Contact, DigitalInputs, DigitalOutputs, Wires};
use simulator::application::servo::{Encoder, ServoDescription, ServoDrive, ServoRecord, default_mapping};
use simulator::application::sii::{SiiDescription, digital_inputs, digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use types::state::BrakeInput;

use super::cell::{Cell, Fault, Phase};
use super::exchange::{Counting, Exchange, Newest, Shown};
use super::judge::{self, Outcome, Run};
use super::motion::Sway;
use super::wire::{Back, Progress, Wire};
use crate::support::{PERIOD, supervised};

/// So many that differences of positions show accelerations.
const COUNTS: u32 = 1 << 24;
pub(crate) const COUNTS_PER_RADIAN: f64 = COUNTS as f64 / std::f64::consts::TAU;
/// N m, of the drives and of the axes.
pub(crate) const RATED_TORQUE: f64 = 2.4;

/// Drive that most faults befall.
pub(crate) const SECOND: usize = 1;

/// Places of the terminals of the brake of the second axis, where it has feedback.
const OUTPUTS: usize = 3;
const INPUTS: usize = 4;

/// Times of the brake of the second axis.
const BRAKE: BrakeTimes = BrakeTimes { release: Seconds(0.03), engage: Seconds(0.05) };

/// Angle of the shafts at the start, in rad.
const START: f64 = 3.0;

/// Limits of position of axes in cyclic modes about their start, in rad: a sway goes up to 1.
const REACH: f64 = 1.2;

/// The same, farther apart than one turn.
const WIDE: f64 = 4.0;

/// Reports of the axes in a cycle.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) now: Instant,
    /// Its place on the grid.
    pub(crate) cycle: u64,
    pub(crate) stopping: bool,
    pub(crate) axes: [AxisReport; 3],
    /// The frame that the cycle before has sent.
    pub(crate) exchange: Option<Exchange>,
}

/// One run of the cell, with its checks. It listens, brings the bus up, and runs, as the program
/// does.
pub(crate) fn run(cell: Cell) -> Outcome {
    play(cell).map_or_else(|outcome| outcome, |run| Outcome::of(cell, &run))
}

/// The bus once the cause of the fault has gone: when all were in Op for good, after it; `None` if
/// they were not.
pub(crate) fn afterwards(cell: Cell) -> Option<Back> {
    let run = play(Cell { heals: true, ..cell }).ok()?;
    judge::check_the_way_back(cell, &run);
    run.ended.link.back()
}

/// A run, or the outcome of a bus that did not come up.
fn play(cell: Cell) -> Result<Run, Outcome> {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (progress, newest) = (Progress::default(), Newest::default());
    let (segment, records, shown) = segment(cell);
    let devices = (segment, records.clone(), shown);
    let mut wire = Wire::new(cell, devices, clock.clone(), progress.clone(), newest.clone());
    let mut main_device =
        MainDevice::new(Configuration { replies: replies(cell), ..configuration(cell) }).unwrap();
    let stop = StopHandle::new();
    let begin = clock.now();
    let mut pump =
        Pump { main_device: &mut main_device, link: &mut wire, clock: &clock, stop: stop.flag() };
    let mut reported = false;
    let up = pump.listen().and_then(|()| {
        pump.bring_up(Duration::from_secs(30), |event| {
            reported |= matches!(event, Event::OtherMainDevice { .. });
        })
    });
    if let Err(error) = up {
        return Err(Outcome::not_up(cell, &error, &wire, reported, clock.now().since(begin)));
    }
    let (see, seen): (Sender<Report>, Receiver<Report>) = channel();
    let controller = Sway::new(cell, (progress, stop.clone()), newest, see);
    // Long enough for the fault and its effects.
    let configuration = CycleConfiguration {
        cycles: Some(match (cell.heals, cell.fault) {
            (true, Fault::SecondMaster) => 6_000,
            // Its causes go away within 0.3 s.
            _ if !cell.is_in_op() && cell.phase != Phase::Shutdown => 1_500,
            (false, fault) if fault.loses_the_reference() => 3_000,
            (false, _) => 2_500,
            (true, _) => 4_000,
        }),
        // While another MainDevice has all SubDevices the bus is lost to this one: on the way back
        // that is waited for.
        loss: Some(Duration::from_secs(match (cell.heals, cell.fault) {
            (true, Fault::SecondMaster) => 3,
            _ => 1,
        })),
        ..CycleConfiguration::every(PERIOD)
    };
    let (cycle, mut observer) =
        Cycle::new(main_device, wire, clock.clone(), &axes(cell), Box::new(controller), configuration)
            .unwrap();
    let ended = cycle.run(&stop);
    let took = clock.now().since(begin);
    let other = |event: CycleEvent| matches!(event.what, Happening::Bus(Event::OtherMainDevice { .. }));
    reported |= std::iter::from_fn(|| observer.next_event()).any(other);
    Ok(Run { ended, records, reports: seen.try_iter().collect(), reported, took })
}

fn identity(number: u32) -> Identity {
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402 + number, revision: 1, serial: 0 }
}

fn segment(cell: Cell) -> (Segment, Vec<ServoRecord>, [Shown; 3]) {
    let mut records = Vec::new();
    let mut all_shown = <[Shown; 3]>::default();
    let mut order = [0, 1, 2];
    if cell.fault == Fault::Swapped {
        order.swap(1, 2);
    }
    let time = |time: Seconds| Duration::from_secs_f64(time.0);
    let brake = ShaftBrake::new(time(BRAKE.release), time(BRAKE.engage));
    let sticks = cell.fault.sticks().is_some();
    let drives = order.map(|number: usize| {
        let description = ServoDescription {
            mapping: mapping(),
            encoder_counts: COUNTS,
            initial_position: START,
            rated_torque: RATED_TORQUE,
            mode: cell.phase.modes()[number].cyclic(),
            quick_stop: !cell.fault.has_no_quick_stop() || number == 0,
            ..ServoDescription::new(DeviceDescription::new(identity(number as u32), "Servo"))
        };
        let mut drive = ServoDrive::new(&description).unwrap();
        drive.set_encoder(0, encoder(cell, number));
        if sticks && number == SECOND {
            drive.set_brake(0, brake.clone(), cell.fault.drive_powers_brake());
        }
        let counts = |radians: f64| (radians * COUNTS_PER_RADIAN) as i64;
        for (index, sub_index, value) in [
            (HOMING_METHOD, 0, 33),
            (HOMING_SPEEDS, 1, counts(4.0)),
            (HOMING_SPEEDS, 2, counts(4.0)),
            (HOMING_ACCELERATION, 0, counts(100.0)),
        ] {
            let entry = drive.dictionary().find(index, sub_index).unwrap();
            drive.dictionary_mut().set(entry, value);
        }
        records.push(drive.record());
        let sii = with_coe(identity(number as u32), "Servo", mapping()).image().emit();
        let (drive, shown) = Counting::new(drive);
        all_shown[number] = shown;
        SubDevice::new(EscDescription::default(), sii, Box::new(drive))
    });
    let mut sub_devices = Vec::from(drives);
    if sticks {
        sub_devices.extend(terminals(cell, brake));
    }
    (Segment::new(sub_devices), records, all_shown)
}

/// Terminals with an output that powers the coil of a brake, unless the drive does, and an input
/// that is on while it is closed.
fn terminals(cell: Cell, brake: ShaftBrake) -> [SubDevice; 2] {
    let terminal = |sii: SiiDescription, application| {
        SubDevice::new(EscDescription::default(), sii.image().emit(), application)
    };
    let mut outputs = DigitalOutputs::new(1, Wires::new()).unwrap();
    if !cell.fault.drive_powers_brake() {
        outputs = outputs.with_coil(0, brake.clone());
    }
    let contact = Contact { input: 0, brake, shows: BrakeInput::Closed, inverted: false };
    let inputs = DigitalInputs::new(1, Wires::new()).unwrap().with_contact(contact);
    [
        terminal(digital_outputs(identity(OUTPUTS as u32), "Outputs", 1), Box::new(outputs)),
        terminal(digital_inputs(identity(INPUTS as u32), "Inputs", 1), Box::new(inputs)),
    ]
}

/// Encoder of a drive: of the second one as the fault has it.
fn encoder(cell: Cell, number: usize) -> Encoder {
    match cell.fault {
        _ if number != SECOND => Encoder::Unlimited,
        Fault::TurnedUnseen => Encoder::Incremental,
        Fault::TurnedByRange => Encoder::Absolute { turns: 1.0 },
        _ => Encoder::Unlimited,
    }
}

fn mapping() -> PdoMapping {
    let mut mapping = default_mapping();
    let mode = |index: u16| PdoEntry::from_mapping_value(u32::from(index) << 16 | 8);
    let set_point = u32::from(INTERPOLATION_DATA_RECORD) << 16 | 1 << 8 | 32;
    mapping.outputs[0].entries.extend([mode(MODES_OF_OPERATION), PdoEntry::from_mapping_value(set_point)]);
    mapping.inputs[0].entries.push(mode(MODES_OF_OPERATION_DISPLAY));
    mapping
}

pub(crate) fn configuration(cell: Cell) -> Configuration {
    let axes = axes(cell);
    let known = |name: String, number: u32| {
        let Identity { vendor_id, product_code, revision, .. } = identity(number);
        SubDeviceConfiguration {
            name,
            identity: Some(ExpectedIdentity { vendor_id, product_code, revision: Some(revision) }),
            ..SubDeviceConfiguration::default()
        }
    };
    let drive = |number: u32| SubDeviceConfiguration {
        startup: startup(&axes[number as usize]),
        sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::from_micros(100) }),
        ..known(format!("drive-{number}"), number)
    };
    let terminals = [("outputs", OUTPUTS), ("inputs", INPUTS)];
    let terminal = |(name, place): (&str, usize)| known(name.to_owned(), place as u32);
    let terminals = terminals.into_iter().filter(|_| cell.fault.sticks().is_some()).map(terminal);
    Configuration {
        sub_devices: Some((0..3).map(drive).chain(terminals).collect()),
        target: AlState::Op,
        period: PERIOD,
        ..Configuration::default()
    }
}

/// Replies that count.
fn replies(cell: Cell) -> Replies {
    match cell.fault {
        Fault::UnmarkedPower => Replies::UnchangedSource,
        _ => Replies::default(),
    }
}

/// Objects that are written during the bring-up; for a drive that generates its own profile, speed
/// and ramps by the limits of its axis.
fn startup(axis: &AxisConfiguration) -> Vec<StartupSdo> {
    let sdo = |index, value: u32| StartupSdo {
        index,
        sub_index: 0,
        complete_access: false,
        data: value.to_le_bytes().to_vec(),
    };
    let mut startup = vec![sdo(0x6065, COUNTS / 16)];
    if axis.mode.is_profile() {
        let profile = DriveProfile::within(&axis.supervision.unwrap().limits, &axis.scale);
        startup.extend([
            sdo(PROFILE_VELOCITY, profile.velocity),
            sdo(PROFILE_ACCELERATION, profile.acceleration),
            sdo(PROFILE_DECELERATION, profile.acceleration),
            sdo(TORQUE_SLOPE, profile.torque_slope),
        ]);
    }
    startup
}

/// The axes of a cell, with limits of position in the cyclic modes, except for one that homes.
pub(crate) fn axes(cell: Cell) -> Vec<AxisConfiguration> {
    let mut axes = supervised(3);
    for (number, (axis, mode)) in axes.iter_mut().zip(cell.phase.modes()).enumerate() {
        axis.mode = mode;
        axis.scale = AxisScale::new(COUNTS.into(), 1.0, NewtonMetres(RATED_TORQUE)).unwrap();
        let settings = axis.supervision.as_mut().unwrap();
        settings.mode = mode;
        settings.outage = Outage { time: None, after: AfterOutage::Stay };
        let limits = &mut settings.limits;
        limits.written = Written::ALL;
        limits.step = Radians(2.0 * limits.velocity.0 * PERIOD.as_secs_f64());
        let homes = cell.phase == Phase::Homing && number == 0;
        let reach = if cell.fault == Fault::TurnedByRange { WIDE } else { REACH };
        let turns_on = mode == AxisMode::ProfileTorque;
        limits.position = (!homes && !turns_on).then_some((Radians(START - reach), Radians(START + reach)));
        axis.maximum_step = limits.step;
        // An encoder of one turn, or of many.
        let turns = if cell.fault == Fault::TurnedByRange { 1.0 } else { 4096.0 };
        let range = (cell.fault != Fault::TurnedUnseen).then_some(Radians(turns * std::f64::consts::TAU));
        axis.position_sense = PositionSense { range, ..PositionSense::default() };
        if number == SECOND {
            axis.holds_load = cell.fault.has_load();
            let sticks = cell.fault.sticks();
            let closed = |_| FeedbackInput { sub_device: INPUTS, channel: 1, inverted: false };
            axis.brake = cell.fault.has_brake().then(|| BrakeConfiguration {
                times: BRAKE,
                output: sticks
                    .filter(|_| !cell.fault.drive_powers_brake())
                    .map(|_| DigitalOutput { sub_device: OUTPUTS, channel: 1 }),
                feedback: BrakeFeedback { released: None, closed: sticks.map(closed) },
            });
        }
    }
    if cell.phase != Phase::Profile {
        axes[0].homing = Homing::Drive { position: Radians(-0.5), timeout: Seconds(10.0) };
    }
    axes
}
