//! The robot of a cell, and one run of it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::object::{
    HOMING_ACCELERATION, HOMING_METHOD, HOMING_SPEEDS, INTERPOLATION_DATA_RECORD, MODES_OF_OPERATION,
    MODES_OF_OPERATION_DISPLAY, PROFILE_ACCELERATION, PROFILE_DECELERATION, PROFILE_VELOCITY, TORQUE_SLOPE,
};
use ethercat::cia402::{AxisMode, Request, State};
use ethercat::main_device::{
    Configuration, Event, ExpectedIdentity, MainDevice, Replies, StartupSdo, SubDeviceConfiguration, Sync0,
};
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use motion::homing::Homing;
use motion::supervision::{AfterOutage, DriveProfile, Outage};
use motion::{AxisPhase, NewtonMetres, RadiansPerSecond, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::bring_up::Pump;
use onbeat_control::clock::{Clock, VirtualClock};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo};
use onbeat_control::cycle::{Cycle, CycleConfiguration};
use onbeat_control::observer::{CycleEvent, Happening};
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;
use simulator::application::servo::{ServoDescription, ServoDrive, ServoRecord, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};

use super::cell::{Cell, Fault, Phase};
use super::exchange::{Counting, Exchange, Newest, Shown};
use super::judge::{self, Outcome, Run};
use super::wire::{Back, Progress, Wire};
use crate::support::{PERIOD, supervised};

pub(crate) const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;
/// N m, of the drives and of the axes.
pub(crate) const RATED_TORQUE: f64 = 2.4;

/// Reports of the axes in a cycle.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) now: Instant,
    pub(crate) stopping: bool,
    pub(crate) axes: [AxisReport; 3],
    /// The frame that the cycle before has sent.
    pub(crate) exchange: Option<Exchange>,
}

/// One run of the cell, judged. It listens, brings the bus up, and runs, as the program does.
pub(crate) fn run(cell: Cell) -> Outcome {
    play(cell).map_or_else(|outcome| outcome, |run| Outcome::of(cell, &run))
}

/// The bus once the cause of the fault has gone: when all were in Op for good, after it; `None` if they were not.
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
    let mut wire = Wire::new(cell, segment, shown, clock.clone(), progress.clone(), newest.clone());
    let mut main_device =
        MainDevice::new(Configuration { replies: replies(cell), ..configuration(cell.phase) }).unwrap();
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
    let homes = cell.phase == Phase::Homing;
    let modes = cell.phase.modes();
    let controller = Sway { homes, modes, progress, newest, see, cycles: 0, times: [None; 3] };
    // Long enough for the fault and what follows from it.
    let configuration = CycleConfiguration {
        cycles: Some(match (cell.heals, cell.fault) {
            (false, _) => 2_500,
            (true, Fault::SecondMaster) => 6_000,
            (true, _) => 4_000,
        }),
        // While another MainDevice has all SubDevices the bus is lost to this one: on the way back that is waited for.
        loss: Some(Duration::from_secs(match (cell.heals, cell.fault) {
            (true, Fault::SecondMaster) => 3,
            _ => 1,
        })),
        ..CycleConfiguration::every(PERIOD)
    };
    let (cycle, mut observer) = Cycle::new(
        main_device,
        wire,
        clock.clone(),
        &axes(cell.phase),
        Box::new(controller),
        configuration,
    )
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
    let drives = order.map(|number: usize| {
        let description = ServoDescription {
            mapping: mapping(),
            initial_position: 3.0,
            rated_torque: RATED_TORQUE,
            mode: cell.phase.modes()[number].cyclic(),
            quick_stop: cell.fault != Fault::NoQuickStop || number == 0,
            ..ServoDescription::new(DeviceDescription::new(identity(number as u32), "Servo"))
        };
        let mut drive = ServoDrive::new(&description).unwrap();
        let counts = |radians: f64| (radians / std::f64::consts::TAU * f64::from(1 << 20)) as i64;
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
    (Segment::new(drives.into()), records, all_shown)
}

fn mapping() -> PdoMapping {
    let mut mapping = default_mapping();
    let mode = |index: u16| PdoEntry::from_mapping_value(u32::from(index) << 16 | 8);
    let set_point = u32::from(INTERPOLATION_DATA_RECORD) << 16 | 1 << 8 | 32;
    mapping.outputs[0].entries.extend([mode(MODES_OF_OPERATION), PdoEntry::from_mapping_value(set_point)]);
    mapping.inputs[0].entries.push(mode(MODES_OF_OPERATION_DISPLAY));
    mapping
}

pub(crate) fn configuration(phase: Phase) -> Configuration {
    let axes = axes(phase);
    let sub_device = |number: u32| {
        let Identity { vendor_id, product_code, revision, .. } = identity(number);
        SubDeviceConfiguration {
            name: format!("drive-{number}"),
            identity: Some(ExpectedIdentity { vendor_id, product_code, revision: Some(revision) }),
            startup: startup(&axes[number as usize]),
            sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::from_micros(100) }),
            ..SubDeviceConfiguration::default()
        }
    };
    Configuration {
        sub_devices: Some((0..3).map(sub_device).collect()),
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

/// Objects that are written on the way up; of a drive that makes its own way, speed and ramps by the limits of its axis.
fn startup(axis: &AxisConfiguration) -> Vec<StartupSdo> {
    let sdo = |index, value: u32| StartupSdo {
        index,
        sub_index: 0,
        complete_access: false,
        data: value.to_le_bytes().to_vec(),
    };
    let mut startup = vec![sdo(0x6065, 1 << 16)];
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

fn axes(phase: Phase) -> Vec<AxisConfiguration> {
    let mut axes = supervised(3);
    for (axis, mode) in axes.iter_mut().zip(phase.modes()) {
        axis.mode = mode;
        let settings = axis.supervision.as_mut().unwrap();
        settings.mode = mode;
        settings.outage = Outage { time: None, after: AfterOutage::Stay };
        axis.maximum_step = settings.limits.step;
    }
    if phase == Phase::Profile {
        return axes;
    }
    axes[0].homing = Homing::Drive { position: motion::Radians(-0.5), timeout: Seconds(10.0) };
    axes
}

/// Sways all axes about where they stood; the first one stands and homes instead where `homes` says so. One in profile position goes to and fro
/// between two destinations, one in profile torque is turned on.
struct Sway {
    homes: bool,
    modes: [AxisMode; 3],
    progress: Progress,
    newest: Newest,
    see: Sender<Report>,
    cycles: u64,
    times: [Option<(f64, f64)>; 3],
}

impl Controller for Sway {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let enabled = reports.iter().all(|report| report.state == Some(State::OperationEnabled));
        self.cycles += u64::from(enabled || self.cycles > 0);
        if self.cycles > 500 {
            self.progress.note(Progress::MOVING);
        }
        if info.stopping {
            self.progress.note(Progress::STOPPING);
        }
        for (number, (report, command)) in reports.iter().zip(commands).enumerate() {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                self.times[number] = Some((position.0, 0.0));
            }
            let Some((origin, elapsed)) = &mut self.times[number] else { continue };
            let still = info.stopping || (self.homes && number == 0);
            let makes_its_way = self.modes[number] == AxisMode::ProfilePosition;
            if still {
                command.setpoint.velocity = RadiansPerSecond::ZERO;
                command.setpoint.torque = NewtonMetres::ZERO;
                if makes_its_way {
                    command.request = Request::Halt;
                }
                if !info.stopping {
                    command.setpoint.position.0 = *origin;
                }
            } else {
                *elapsed += info.period.as_secs_f64() * info.periods as f64;
                let ease = (*elapsed / 0.25).min(1.0);
                let (sin, cos) = (std::f64::consts::PI * *elapsed).sin_cos();
                command.setpoint.position.0 = *origin + ease * sin;
                command.setpoint.velocity.0 = ease * 3.0 * cos;
                command.setpoint.torque.0 = ease * 0.025;
                if makes_its_way {
                    let begins = *elapsed < 0.01;
                    command.setpoint.position.0 = *origin + if begins { 0.0 } else { sin.signum() };
                }
            }
            command.home = self.homes && number == 0 && self.cycles == 600;
        }
        if reports[0].homing {
            self.progress.note(Progress::HOMING);
        }
        let axes = [reports[0], reports[1], reports[2]];
        let report =
            Report { now: info.release, stopping: info.stopping, axes, exchange: self.newest.get() };
        let _ = self.see.send(report);
    }
}
