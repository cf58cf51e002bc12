//! Drives that brake or are halted by themselves, with a brake on a digital output, in virtual
//! time.
use crate::support;

use ethercat::cia402::object::HALT_OPTION_CODE;
use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::sii::Identity;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::supervision::{FollowingErrorLimit, StopReason};
use motion::{NewtonMetres, Radians, Seconds};
use onbeat_control::axis::{AxisConfiguration, DigitalOutput};
use onbeat_control::controller::{AxisCommand, AxisReport};
use simulator::application::digital::{DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::scripted::{Scene, play};
use support::supervised;

/// The wire of the brake's coil.
const BRAKE: usize = 3;
const RELEASE: f64 = 0.1;
const ENGAGE: f64 = 0.2;

/// One cycle: what the axis reports, and whether its brake has power.
#[derive(Clone, Copy, Debug)]
struct Seen {
    report: AxisReport,
    power: bool,
}

/// A drive, and a terminal with eight digital outputs behind it.
fn segment(mode: CyclicMode, wires: Wires) -> Segment {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let sii = with_coe(identity, "Servo", default_mapping()).image().emit();
    let description =
        ServoDescription { mode, ..ServoDescription::new(DeviceDescription::new(identity, "Servo")) };
    let drive = Box::new(ServoDrive::new(&description).unwrap());
    let terminal = Box::new(DigitalOutputs::new(8, wires).unwrap());
    let outputs =
        digital_outputs(Identity { product_code: 0x07D4, ..identity }, "Outputs", 8).image().emit();
    Segment::new(vec![
        SubDevice::new(EscDescription::default(), sii, drive),
        SubDevice::new(EscDescription::default(), outputs, terminal),
    ])
}

/// One axis with a brake, as `change` makes it, moved by `script`; what was seen from the first
/// cycle on.
fn run(
    mode: CyclicMode,
    change: impl FnOnce(&mut AxisConfiguration),
    cycles: u64,
    script: impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send + 'static,
) -> Vec<Seen> {
    let wires = Wires::new();
    let segment = segment(mode, wires.clone());
    let mut axes = supervised(1);
    axes[0].mode = mode.into();
    let times = BrakeTimes { release: Seconds(RELEASE), engage: Seconds(ENGAGE) };
    let output = Some(DigitalOutput { sub_device: 1, channel: BRAKE + 1 });
    axes[0].brake = Some(BrakeConfiguration { times, output, ..BrakeConfiguration::default() });
    change(&mut axes[0]);
    let look = move |scene: &Scene<'_>| {
        let power = wires.levels() & 1 << BRAKE != 0;
        (!scene.stopping).then_some(Seen { report: *scene.report, power })
    };
    play(segment, &axes, cycles, script, look)
}

#[test]
fn a_drive_that_brakes_by_itself_is_not_braked_against() {
    let limit = FollowingErrorLimit { distance: Radians(1e-5), timeout: Seconds(0.05) };
    let seen = run(
        CyclicMode::Position,
        |axis| axis.supervision.as_mut().unwrap().following_error = Some(limit),
        1_500,
        |cycle, _, command| command.setpoint.position.0 += if cycle > 300 { 5e-3 } else { 0.0 },
    );
    let braking = seen.iter().filter(|seen| seen.report.state == Some(State::QuickStopActive));
    let (mut cycles, mut fastest) = (0, 0.0_f64);
    for seen in braking {
        assert!(seen.power, "the drive still brakes: {seen:?}");
        (cycles, fastest) = (cycles + 1, fastest.max(seen.report.feedback.velocity.0.abs()));
    }
    assert!(cycles > 2 && fastest > 1.0, "{cycles} cycles from {fastest} rad/s");
    let last = seen.last().unwrap();
    assert!(last.report.state == Some(State::SwitchOnDisabled) && !last.power, "{last:?}");
}

/// The last state of a drive that is halted because a torque was not finite, and then gets this
/// request.
fn halted_and_asked(request: Request) -> Vec<State> {
    let seen = run(
        CyclicMode::Torque,
        |axis| axis.brake = None,
        1_000,
        move |cycle, _, command| {
            command.setpoint.torque = NewtonMetres(if cycle > 100 { f64::NAN } else { 0.0 });
            if cycle > 200 {
                command.request = request;
            }
        },
    );
    assert_eq!(seen.last().unwrap().report.stop, Some(StopReason::NotFinite));
    seen.iter().filter_map(|seen| seen.report.state).collect()
}

#[test]
fn halted_drive_keeps_its_torque_until_disabled() {
    assert_eq!(halted_and_asked(Request::Enable).last(), Some(&State::OperationEnabled));
    let disabled = halted_and_asked(Request::Disable);
    assert_eq!(disabled.last(), Some(&State::SwitchOnDisabled));
    assert!(!disabled.contains(&State::QuickStopActive));
    let stopped = halted_and_asked(Request::QuickStop);
    assert!(stopped.contains(&State::QuickStopActive) || stopped.last() == Some(&State::SwitchOnDisabled));
}

// feature(axes): a halt that does not brake (0x605D other than 1 or 2) is replaced by the drive's quick stop
#[test]
fn drive_without_halt_braking_gets_a_quick_stop() {
    for by_controller in [false, true] {
        let (mut device, record) = support::sub_device(CyclicMode::Torque, |_| ());
        let servo = device.servo_mut().unwrap();
        let halt = servo.dictionary().find(HALT_OPTION_CODE, 0).unwrap();
        servo.dictionary_mut().set(halt, 0);
        let mut axis = supervised(1).remove(0);
        (axis.mode, axis.halts) = (CyclicMode::Torque.into(), false);
        let settings = axis.supervision.as_mut().unwrap();
        settings.mode = CyclicMode::Torque.into();
        settings.limits.position = None;
        let script = move |cycle, _: &AxisReport, command: &mut AxisCommand| {
            command.setpoint.torque = NewtonMetres(match cycle {
                ..300 => 0.03,
                _ if by_controller => 0.0,
                _ => f64::NAN,
            });
            if by_controller && cycle >= 300 {
                command.request = Request::Halt;
            }
        };
        let look = |scene: &Scene<'_>| (scene.cycles == 300).then_some(());
        play(Segment::new(vec![device]), &[axis], 1_500, script, look);
        let taken = record.taken();
        let fast = |velocity: f64| velocity.abs() > 0.2 * f64::from(1 << 20) / std::f64::consts::TAU;
        let braked: Vec<_> = taken.iter().filter(|it| it.state == State::QuickStopActive).collect();
        assert!(braked.first().is_some_and(|it| fast(it.velocity)), "by controller: {by_controller}");
        assert!(!fast(braked.last().unwrap().velocity), "{:?}", braked.last());
        assert!(taken.iter().all(|it| !it.controlword.halt()), "by controller: {by_controller}");
    }
}
