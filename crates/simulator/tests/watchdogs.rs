//! Watchdogs as configured: written, read back, and their effect on a drive without outputs.

use crate::rig;

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, ConfigurationError, Event, SubDeviceConfiguration,
    SubDeviceError, Watchdog,
};
use ethercat::register;
use ethercat::sii::Image;
use ethercat::wire::frame::Datagram;
use ethercat::wire::{Command, Frame};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::sub_device::STEP;

use rig::devices::echo;
use rig::{DRIVE, PERIOD, Rig, described, drive, drives, to_op};

fn watched(process_data_watchdog: Watchdog) -> SubDeviceConfiguration {
    SubDeviceConfiguration { process_data_watchdog, ..SubDeviceConfiguration::default() }
}

fn word(rig: &Rig, position: usize, register: u16) -> u16 {
    let mut bytes = [0; 2];
    rig.segment.sub_devices()[position].peek(register, &mut bytes);
    u16::from_le_bytes(bytes)
}

/// Time from the last cycle that reached a drive until it leaves Op, if it does within `timeout`.
fn falls_after(rig: &mut Rig, timeout: Duration) -> Option<Duration> {
    let last = rig.now;
    rig.cycle();
    while rig.now.since(last) < timeout {
        let next = rig.now + STEP;
        rig.pass_to(next, false);
        let it = &rig.segment.sub_devices()[0];
        if it.al_status() != AlStatus::in_state(AlState::Op) {
            assert_eq!(it.al_status_code(), AlStatusCode::SYNC_MANAGER_WATCHDOG);
            return Some(rig.now.since(last));
        }
    }
    None
}

// feature(main-device): watchdogs: exact in registers, written, read back; a drive falls out of Op after its time and not before
#[test]
fn drive_leaves_op_after_its_watchdog_time_and_not_before() {
    for milliseconds in [5, 30, 250] {
        let time = Duration::from_millis(milliseconds);
        let mut rig = Rig::new(described(vec![watched(Watchdog::After(time))]), drives(1));
        rig.run_up();
        assert_eq!(rig.main_device.sub_devices()[0].output_watchdog(), Some(time));
        let fell = falls_after(&mut rig, time * 2).expect("it falls");
        assert!(fell >= time && fell < time + PERIOD, "{fell:?} instead of {time:?}");
    }
}

#[test]
fn watchdog_defaults_to_100_ms_and_can_be_disabled() {
    let mut rig = Rig::new(to_op(), drives(1));
    rig.run_up();
    let tenth = Duration::from_millis(100);
    assert_eq!(rig.main_device.sub_devices()[0].output_watchdog(), Some(tenth));
    assert!(!rig.main_device.sub_devices()[0].has_unwatched_outputs());
    let fell = falls_after(&mut rig, tenth * 2).expect("it falls");
    assert!(fell >= tenth && fell < tenth + PERIOD, "{fell:?}");

    let mut rig = Rig::new(described(vec![watched(Watchdog::Off)]), drives(1));
    rig.run_up();
    assert_eq!(rig.main_device.sub_devices()[0].output_watchdog(), None);
    assert!(rig.main_device.sub_devices()[0].has_unwatched_outputs());
    assert_eq!(word(&rig, 0, register::WATCHDOG_TIME_PROCESS_DATA), 0);
    assert_eq!(falls_after(&mut rig, Duration::from_secs(3)), None);
}

/// A drive without a watchdog in its SII, like the AKD.
fn unwatched_by_its_sii() -> SubDevice {
    let mut image = with_coe(DRIVE, "drive", default_mapping()).image().emit();
    let at = image.windows(2).position(|it| it == [register::SyncManager::CONTROL_OUTPUTS, 0]);
    image[at.expect("a SyncManager of outputs")] = 0x24;
    let parsed = Image::parse(&image).expect("it parses");
    assert_eq!(parsed.sync_managers()[2].control, 0x24);
    let description = ServoDescription::new(DeviceDescription::from_sii(&parsed));
    SubDevice::from_sii(&image, Box::new(ServoDrive::new(&description).expect("the default mapping fits")))
}

// feature(main-device): outputs feed their watchdog though their SII does not say so
#[test]
fn outputs_feed_their_watchdog_though_their_sii_does_not_say_so() {
    let mut rig = Rig::new(to_op(), vec![unwatched_by_its_sii()]);
    rig.run_up();
    let tenth = Duration::from_millis(100);
    assert_eq!(rig.main_device.sub_devices()[0].output_watchdog(), Some(tenth));
    assert!(falls_after(&mut rig, tenth * 2).is_some());

    let mut rig = Rig::new(described(vec![watched(Watchdog::Off)]), vec![unwatched_by_its_sii()]);
    rig.run_up();
    assert_eq!(falls_after(&mut rig, Duration::from_secs(1)), None);
}

#[test]
fn both_watchdogs_share_a_divider_and_are_exact() {
    let (process_data, pdi) = (Duration::from_nanos(7_000_040 * 3), Duration::from_nanos(7_000_040));
    let mut configuration = watched(Watchdog::After(process_data));
    configuration.pdi_watchdog = Some(Watchdog::After(pdi));
    let mut rig = Rig::new(described(vec![configuration]), drives(1));
    rig.run_up();
    let found = rig.main_device.sub_devices()[0].watchdogs.expect("it was read");
    assert_eq!((found.process_data_time(), found.pdi_time()), (Some(process_data), Some(pdi)));
    assert_eq!(word(&rig, 0, register::WATCHDOG_DIVIDER), found.divider);
    assert_eq!(word(&rig, 0, register::WATCHDOG_TIME_PDI), found.pdi);
    assert_eq!(word(&rig, 0, register::WATCHDOG_TIME_PROCESS_DATA), found.process_data);
}

#[test]
fn sub_device_without_outputs_gets_no_watchdog() {
    let mut rig = Rig::new(to_op(), vec![rig::devices::parameters(), drive(1)]);
    rig.run_up();
    assert!(!rig.main_device.sub_devices()[0].has_unwatched_outputs());
}

/// A bus of one SubDevice. Its ESC keeps its 100 ms, whatever is written: the reply to a read of
/// its watchdogs is changed.
fn stubborn(target: AlState) -> Rig {
    let configuration = watched(Watchdog::After(Duration::from_millis(20)));
    let configuration =
        Configuration { sub_devices: Some(vec![configuration]), target, ..Configuration::default() };
    let mut rig = Rig::new(configuration, vec![echo(8)]);
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    for _ in 0..100_000 {
        while let Some(length) = rig.main_device.poll_transmit(rig.now, &mut buffer) {
            rig.now = rig.now + Duration::from_micros(20);
            let frame = &mut buffer[..length];
            assert!(rig.segment.process_frame(rig.now, frame));
            keep_the_watchdog(frame);
            rig.main_device.handle_frame(rig.now, frame);
        }
        rig.events.extend(std::iter::from_fn(|| rig.main_device.poll_event()));
        if rig.failure().is_some() || rig.main_device.phase() >= BringUpPhase::PreOp {
            return rig;
        }
        rig.now = rig.now + Duration::from_micros(100);
        rig.segment.advance(rig.now);
    }
    panic!("{:?}", rig.events)
}

fn keep_the_watchdog(frame: &mut [u8]) {
    let parsed = Frame::parse(frame).expect("a frame");
    let reads_watchdogs = |it: &Datagram<'_>| {
        // The upper half is the register.
        it.header.command == Command::Fprd && (it.header.address >> 16) as u16 == register::WATCHDOG_DIVIDER
    };
    let Some(found) = parsed.datagrams().find(reads_watchdogs) else { return };
    let place = found.data.as_ptr().addr() - frame.as_ptr().addr();
    let place = place + usize::from(register::WATCHDOG_TIME_PROCESS_DATA - register::WATCHDOG_DIVIDER);
    frame[place..place + 2].copy_from_slice(&register::WATCHDOG_TIME_DEFAULT.to_le_bytes());
}

// feature(main-device): watchdogs: exact in registers, written, read back; a drive falls out of Op after its time and not before
#[test]
fn esc_refusing_its_watchdog_is_named_and_stays_out_of_op() {
    let rig = stubborn(AlState::Op);
    let sentence = rig.failure().map(ToString::to_string).unwrap_or_default();
    for part in ["SubDevice 0", "process data watchdog is 100ms, expected 20ms", "process_data_watchdog"] {
        assert!(sentence.contains(part), "{sentence}");
    }
}

#[test]
fn tools_see_refused_watchdog_and_op_is_refused_later() {
    let mut rig = stubborn(AlState::PreOp);
    assert!(rig.failure().is_none(), "{:?}", rig.events);
    assert_eq!(rig.main_device.sub_devices()[0].output_watchdog(), Some(Duration::from_millis(100)));
    rig.main_device.request_state(AlState::Op);
    for _ in 0..100 {
        rig.cycle();
    }
    let failed = |it: &Event| {
        matches!(it, Event::Failed(BusError::SubDevice { error: SubDeviceError::Watchdog { .. }, .. }))
    };
    assert!(rig.events.iter().any(failed), "{:?}", rig.events);
}

#[test]
fn impossible_watchdog_is_refused_beforehand() {
    for found in [Duration::ZERO, Duration::from_secs(121)] {
        let configuration = described(vec![watched(Watchdog::After(found))]);
        let refused = ethercat::main_device::MainDevice::new(configuration).expect_err("out of range");
        assert!(matches!(refused, ConfigurationError::Watchdog { position: 0, .. }), "{refused}");
    }
}
