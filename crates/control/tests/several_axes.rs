//! Several axes on one SubDevice, down to a simulated drive, in virtual time.
use crate::support;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::cia402::{Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::DirectLink;
use motion::homing::Homing;
use motion::supervision::StopReason;
use motion::{AxisPhase, Radians};
use onbeat_control::axis::{AxisConfiguration, AxisError, check};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping_of};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, main_device, supervised};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

fn drive(axes: u8) -> SubDevice {
    let mapping = default_mapping_of(axes);
    let sii = with_coe(IDENTITY, "Servo", mapping.clone()).image().emit();
    let usual = ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"));
    let drive = ServoDrive::new(&ServoDescription { axes, mapping, ..usual }).unwrap();
    SubDevice::new(EscDescription::default(), sii, Box::new(drive))
}

/// A drive with two axes, and behind it one with one.
fn segment() -> Segment {
    Segment::new(vec![drive(2), drive(1)])
}

/// Their axes: both of the first drive, then that of the second.
fn axes() -> Vec<AxisConfiguration> {
    let mut axes = supervised(3);
    for (axis, (sub_device, drive_axis)) in axes.iter_mut().zip([(0, 0), (0, 1), (1, 0)]) {
        (axis.sub_device, axis.drive_axis) = (sub_device, drive_axis);
    }
    axes
}

/// Radians that each axis moves in a cycle.
const STEPS: [f64; 3] = [1e-3, -2e-3, 3e-3];

/// Act at a cycle.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// An axis of the first drive, from 0, has a fault with this error code.
    Fault(usize, u16),
    /// The first drive reports this error code without a fault.
    Error(u16),
    /// The first drive loses its power for a moment.
    PowerCycle,
    /// The controller resets its axis of this place.
    Reset(usize),
    /// It says that this one is at home.
    Home(usize),
}

struct Wired {
    segment: Segment,
    acts: Receiver<Act>,
}

impl ethercat::link::Segment for Wired {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        for act in self.acts.try_iter() {
            match act {
                Act::Fault(axis, code) => {
                    self.segment.sub_device_mut(0).unwrap().servo_mut().unwrap().raise_fault(axis, code);
                }
                Act::Error(code) => {
                    self.segment.sub_device_mut(0).unwrap().servo_mut().unwrap().report_error(0, code);
                }
                Act::PowerCycle => assert!(self.segment.power_cycle(0)),
                Act::Reset(_) | Act::Home(_) => {}
            }
        }
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// All axes on one cycle.
type Seen = [AxisReport; 3];

/// Moves all axes, each at its own speed, and asks for nothing but that.
struct Steady {
    acts: Vec<(u64, Act)>,
    wire: Sender<Act>,
    see: Sender<Seen>,
    cycles: u64,
    reset_for: [u32; 3],
}

impl Controller for Steady {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let all = reports.iter().all(|report| report.state == Some(State::OperationEnabled));
        self.cycles += u64::from(all || self.cycles > 0);
        for &(_, act) in self.acts.iter().filter(|(at, _)| *at == self.cycles) {
            match act {
                Act::Reset(axis) => self.reset_for[axis] = 3,
                Act::Home(axis) => commands[axis].home = true,
                act => self.wire.send(act).unwrap(),
            }
        }
        for (axis, (report, command)) in reports.iter().zip(commands).enumerate() {
            let resets = self.reset_for[axis] > 0;
            command.request = if resets { Request::FaultReset } else { Request::Enable };
            self.reset_for[axis] = self.reset_for[axis].saturating_sub(1);
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint.position = position;
            }
            // They stand at first, to be homed.
            if !info.stopping && self.cycles > 100 {
                command.setpoint.position += Radians(STEPS[axis]);
            }
        }
        if self.cycles > 0 && !info.stopping {
            let _ = self.see.send([0, 1, 2].map(|axis| reports[axis]));
        }
    }
}

/// Plays the axes for so many cycles; each cycle's reports, and what happened.
fn run(axes: &[AxisConfiguration], cycles: u64, acts: &[(u64, Act)]) -> (Vec<Seen>, Vec<Happening>) {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (wire, heard) = channel();
    let wired = Wired { segment: segment(), acts: heard };
    let link = DirectLink::new(wired, clock.clone(), Duration::from_micros(60));
    let (see, seen) = channel();
    let steady = Steady { acts: acts.to_vec(), wire, see, cycles: 0, reset_for: [0; 3] };
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, axes, steady, configuration);
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    let told = std::iter::from_fn(|| observer.next_event()).map(|event| event.what);
    let told = told.collect();
    (seen.try_iter().collect(), told)
}

/// True if the axis moves as it is asked.
fn moves(reports: &Seen, axis: usize) -> bool {
    let wanted = STEPS[axis] / PERIOD.as_secs_f64();
    let report = &reports[axis];
    report.state == Some(State::OperationEnabled)
        && (report.feedback.velocity.0 - wanted).abs() < 0.2 * wanted.abs()
}

// feature(axes): several axes on one SubDevice, each with separate objects, supervision and error code
#[test]
fn both_axes_of_one_sub_device_go_their_own_ways() {
    let (seen, _) = run(&axes(), 1_000, &[]);
    for (axis, step) in STEPS.into_iter().enumerate() {
        let [first, last] = [150, seen.len() - 1].map(|cycle| seen[cycle][axis].feedback.position.0);
        let way = step * (seen.len() - 151) as f64;
        assert!((last - first - way).abs() < 0.02, "axis {axis}: {first} to {last}");
        assert!(seen[200..].iter().all(|seen| moves(seen, axis)), "axis {axis}");
    }
}

// feature(axes): several axes on one SubDevice, each with separate objects, supervision and error code
#[test]
fn fault_of_one_axis_leaves_the_other_moving() {
    let acts = [(300, Act::Fault(1, 0x2310)), (600, Act::Reset(1))];
    let (seen, told) = run(&axes(), 1_500, &acts);
    for axis in [0, 2] {
        assert!(
            seen[200..].iter().all(|seen| moves(seen, axis) && seen[axis].error_code == 0),
            "axis {axis}"
        );
    }
    let faulted = &seen[590][1];
    assert_eq!((faulted.state, faulted.error_code), (Some(State::Fault), 0x2310));
    assert!(moves(seen.last().unwrap(), 1), "{:?}", seen.last());
    assert_eq!(faults(&told), [(1, 0, 0x2310)]);
}

/// Reported faults: axis, SubDevice and error code.
fn faults(told: &[Happening]) -> Vec<(usize, usize, u16)> {
    let fault = |it: &Happening| match *it {
        Happening::DriveFault { axis, position, code } => Some((axis, position, code)),
        _ => None,
    };
    let mut faults: Vec<_> = told.iter().filter_map(fault).collect();
    faults.sort_unstable();
    faults
}

// feature(axes): several axes on one SubDevice, each with separate objects, supervision and error code
#[test]
fn two_faults_at_once_or_one_by_one_have_their_own_error_codes() {
    for second in [300, 500] {
        let acts = [(300, Act::Fault(0, 0x4210)), (second, Act::Fault(1, 0x2310))];
        let (seen, told) = run(&axes(), 900, &acts);
        let last = seen.last().unwrap();
        assert_eq!([0, 1, 2].map(|axis| last[axis].error_code), [0x4210, 0x2310, 0], "{second}");
        assert_eq!([0, 1].map(|axis| last[axis].state), [Some(State::Fault); 2]);
        assert_eq!(faults(&told), [(0, 0, 0x4210), (1, 0, 0x2310)]);
    }
}

#[test]
fn a_late_sensor_fault_of_an_unknown_axis_counts_for_both() {
    let mut axes = axes();
    for axis in &mut axes {
        let settings = axis.supervision.as_mut().unwrap();
        settings.limits.position = Some((Radians(-100.0), Radians(100.0)));
    }
    let known = [(300, Act::Fault(0, 0x7305))];
    let late = [(300, Act::Fault(0, 0xFF00)), (400, Act::Reset(0)), (600, Act::Error(0x7305))];
    for (acts, expected) in [(&known[..], [true, false, false]), (&late[..], [true, true, false])] {
        let (seen, _) = run(&axes, 900, acts);
        let last = seen.last().unwrap();
        let found = last.map(|it| it.stop == Some(StopReason::UnreferencedSensor));
        let stops = last.map(|it| it.stop);
        // A fault comes before it.
        let is_faulted = last[0].state == Some(State::Fault);
        assert_eq!([found[0] || is_faulted, found[1], found[2]], expected, "{stops:?}");
    }
}

// feature(axes): a SubDevice that is lost stops all its axes, and no others; without power all forget their homes
#[test]
fn a_sub_device_that_is_lost_takes_both_its_axes_and_no_other() {
    let mut axes = axes();
    for axis in &mut axes {
        axis.homing = Homing::CurrentPosition { position: Radians(1.0) };
    }
    // The returned power moves nothing: axes 0 and 1 need a start request.
    let homes = [0, 1, 2].map(|axis| (50, Act::Home(axis)));
    let others = [(300, Act::PowerCycle), (2_000, Act::Reset(0)), (2_000, Act::Reset(1))];
    let acts = [&homes[..], &others].concat();
    let (seen, _) = run(&axes, 3_000, &acts);
    assert!(seen[90].iter().all(|report| report.homed));
    for axis in [0, 1] {
        let lost = seen.iter().position(|seen| seen[axis].missed > 10).unwrap();
        assert!((300..330).contains(&lost), "axis {axis}: {lost}");
        let last = &seen.last().unwrap()[axis];
        assert_eq!((last.homed, last.missed), (false, 0), "axis {axis}");
        assert_eq!(seen[1_900][axis].stop, Some(StopReason::AwaitsStart), "axis {axis}");
        assert!(moves(seen.last().unwrap(), axis), "axis {axis}: {last:?}");
    }
    // Axes behind a SubDevice without power may miss a cycle, no more.
    assert!(seen[200..].iter().all(|seen| seen[2].missed <= 2 && seen[2].homed && moves(seen, 2)));
}

// feature(axes): an axis that its drive does not have, or another has, is refused with the object that is missing
#[test]
fn an_axis_that_is_not_there_or_taken_is_refused() {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let mut link = DirectLink::new(segment(), clock.clone(), Duration::from_micros(60));
    let (mut main_device, stop) = (main_device(PERIOD), AtomicBool::new(false));
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
    let refused = |drive_axis| {
        let mut axes = axes();
        axes[1].drive_axis = drive_axis;
        check(&axes, &main_device).unwrap_err()
    };
    assert_eq!(check(&axes(), &main_device), Ok(()));
    assert!(matches!(refused(2), AxisError::NotMapped { index: 0x707A, .. }), "{:?}", refused(2));
    assert_eq!(
        refused(2).to_string(),
        "axis \"axis-1\": target position (0x707a) is not among the outputs of SubDevice \"Servo\"; map it there, or \
         correct drive_axis"
    );
    assert_eq!(
        refused(0).to_string(),
        "axis \"axis-1\": axis 1 of SubDevice 0 is that of axis \"axis-0\"; give it another drive_axis"
    );
}
