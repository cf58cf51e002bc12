//! Failures before and during a cycle: said in a sentence, recorded, and ended in order.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use ethercat::cia402::State;
use ethercat::main_device::BringUpPhase;
use ethercat_linux::bring_up::{BringUpError, Pump};
use ethercat_linux::link::{DirectLink, SimulatedLink};
use onbeat_control::axis::AxisError;
use onbeat_control::cycle::{Cycle, CycleConfiguration, FrameOrder};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, MonotonicClock, VirtualClock};
use rt::pacer::OverrunPolicy;
use support::{PERIOD, Sway, axes, cycle, main_device, segment};
use types::CycleClock;

const TIMEOUT: Duration = Duration::from_secs(10);
const ORDERLY: CycleConfiguration = CycleConfiguration {
    period: PERIOD,
    order: FrameOrder::ReplyOfLastCycle,
    cycles: None,
    overrun: OverrunPolicy::Skip,
    clock: CycleClock::Own,
    loss: None,
};

fn bring_up(drives: usize, stop: bool) -> (Result<(), BringUpError>, Duration) {
    let clock = VirtualClock::default();
    let mut link = DirectLink::new(segment(drives), clock.clone(), Duration::from_micros(50));
    let mut main_device = main_device(PERIOD);
    let stop = AtomicBool::new(stop);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    let result = pump.bring_up(TIMEOUT, |_| ());
    (result, Duration::from_nanos(clock.now().as_nanos()))
}

#[test]
fn empty_bus_is_reported_soon() {
    let (result, took) = bring_up(0, false);
    let error = result.unwrap_err();
    assert!(matches!(error, BringUpError::Bus(_)), "{error:?}");
    assert!(error.to_string().starts_with("no SubDevice answers"), "{error}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_bring_up_ends_when_it_is_asked_to() {
    let (result, took) = bring_up(3, true);
    assert!(matches!(result, Err(BringUpError::Stopped)), "{result:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// Neither a dead application nor one that is not waited for long enough costs a minute without a
/// name.
// feature(main-device): SubDevices and registers waited for are named when a bring-up takes too long
#[test]
fn blocking_sub_devices_are_named_at_the_timeout() {
    let clock = VirtualClock::default();
    let mut devices = segment(7);
    for position in [1, 2, 3, 4, 6] {
        devices.sub_device_mut(position).unwrap().set_application_runs(false);
    }
    let mut link = DirectLink::new(devices, clock.clone(), Duration::from_micros(50));
    let mut main_device = main_device(PERIOD);
    let stop = AtomicBool::new(false);
    let timeout = Duration::from_secs(1);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    let sentence = pump.bring_up(timeout, |_| ()).unwrap_err().to_string();
    assert_eq!(
        sentence,
        "the bus did not come up within 1s: it stopped at Configuration, waiting for SubDevice 1 \"Servo\": state \
         PreOp, register 0x0130; SubDevice 2 \"Servo\": state PreOp, register 0x0130; SubDevice 3 \"Servo\": state \
         PreOp, register 0x0130; SubDevice 4 \"Servo\": state PreOp, register 0x0130; and 1 more; check cables and \
         power"
    );
}

#[test]
fn more_drives_hardly_take_longer() {
    let [few, many] = [6, 48].map(|drives| {
        let (result, took) = bring_up(drives, false);
        result.unwrap();
        took
    });
    assert!(many < few * 4, "6 drives {few:?}, 48 drives {many:?}");
}

#[test]
fn an_axis_without_a_drive_is_named() {
    let clock = VirtualClock::default();
    let mut link = DirectLink::new(segment(2), clock.clone(), Duration::from_micros(50));
    let mut main_device = main_device(PERIOD);
    let stop = AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(TIMEOUT, |_| ())
        .unwrap();
    let error =
        Cycle::new(main_device, link, clock, &axes(3), Box::new(Sway::new(3)), ORDERLY).unwrap_err();
    let expected = AxisError::NoSubDevice { axis: "axis-2".into(), position: 2, found: 2 };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "axis \"axis-2\": SubDevice 2 is its drive, but the bus has 2 SubDevices"
    );
}

// feature(cycle): an orderly stop
#[test]
fn stop_request_stops_axes_and_takes_the_bus_to_init() {
    let link = SimulatedLink::new(segment(6));
    let control = link.control();
    let (cycle, observer) = cycle(link, MonotonicClock, 6, Sway::new(6), ORDERLY);
    let stop = StopHandle::new();
    let running = thread::spawn({
        let stop = stop.clone();
        move || cycle.run(&stop)
    });
    let moving = |axis: &onbeat_control::controller::AxisReport| {
        axis.state == Some(State::OperationEnabled) && axis.feedback.velocity.0.abs() > 0.5
    };
    let begin = Instant::now();
    while !observer.status().axes.iter().all(moving) {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", observer.status());
        thread::sleep(Duration::from_millis(5));
    }
    stop.stop();
    let ended = running.join().unwrap();
    assert_eq!((ended.failure, ended.status.phase), (None, BringUpPhase::Down));
    for axis in &ended.status.axes {
        assert_eq!(axis.state, Some(State::SwitchOnDisabled));
        assert!(axis.feedback.velocity.0.abs() < 0.01, "{axis:?}");
    }
    let states = control.run(|segment| segment.sub_devices().iter().map(|it| it.al_status().state).max());
    assert_eq!(states, Some(Some(1)), "every SubDevice is in Init");
}

#[test]
fn a_pulled_cable_is_recorded_and_a_stop_still_ends_the_cycle() {
    let link = SimulatedLink::new(segment(3));
    let control = link.control();
    let (cycle, mut observer) = cycle(link, MonotonicClock, 3, Sway::new(3), ORDERLY);
    let stop = StopHandle::new();
    let running = thread::spawn({
        let stop = stop.clone();
        move || cycle.run(&stop)
    });
    let begin = Instant::now();
    while observer.status().phase != BringUpPhase::Op {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", observer.status());
        thread::sleep(Duration::from_millis(5));
    }
    while observer.next_record().is_some() {}
    assert!(control.run(|segment| segment.disconnect(1, 1)).unwrap());
    let mut bad = 0;
    while bad < 20 {
        assert!(begin.elapsed() < TIMEOUT, "{bad} cycles with a wrong working counter");
        bad += std::iter::from_fn(|| observer.next_record()).filter(|it| !it.working_counter_ok).count();
        thread::sleep(Duration::from_millis(5));
    }
    stop.stop();
    let ended = running.join().unwrap();
    assert!(begin.elapsed() < 2 * TIMEOUT, "{:?}", begin.elapsed());
    assert_eq!(ended.status.phase, BringUpPhase::Down);
}
