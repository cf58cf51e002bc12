//! Static drift compensation: clocks in use agree before the first SYNC0, and clocks that do not
//! are reported.

use crate::rig;

use std::time::Duration;

use ethercat::main_device::{BringUpPhase, Configuration, Event, SubDeviceConfiguration, Sync0};
use ethercat::register::dc;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, Oscillator, SubDevice};

use rig::{DRIVE, PERIOD, Rig, described};

/// Drives with these rate errors.
fn drives(drifts: &[f64]) -> Vec<SubDevice> {
    let drive = |(number, &drift_ppm): (usize, &f64)| {
        let description = ServoDescription::new(DeviceDescription::new(DRIVE, "a drive"));
        let oscillator =
            Oscillator { drift_ppm, initial_time: number as u64 * 1_000_000_007, ..Oscillator::default() };
        let sii = with_coe(DRIVE, "a drive", default_mapping()).image().emit();
        let drive = ServoDrive::new(&description).expect("the default mapping fits");
        SubDevice::new(EscDescription { oscillator, ..EscDescription::default() }, sii, Box::new(drive))
    };
    drifts.iter().enumerate().map(drive).collect()
}

/// Drives by these rate errors, with SYNC0 or without.
fn configuration(count: usize, with_sync0: bool) -> Configuration {
    let sync0 = with_sync0.then_some(Sync0 { cycle: PERIOD, shift: Duration::ZERO });
    described(vec![SubDeviceConfiguration { sync0, ..SubDeviceConfiguration::default() }; count])
}

/// Largest distance between the system times of two SubDevices, now.
fn spread(rig: &Rig) -> u64 {
    let times: Vec<_> = rig.segment.sub_devices().iter().map(|it| it.system_time(rig.now)).collect();
    times.iter().max().unwrap() - times.iter().min().unwrap()
}

fn sync0_is_running(rig: &Rig) -> bool {
    rig.segment.sub_devices().iter().any(|it| {
        let mut active = [0];
        it.peek(dc::ACTIVATION, &mut active);
        active[0] & 1 != 0
    })
}

// feature(main-device): static drift compensation: clocks 200 ppm apart agree before the first SYNC0
#[test]
fn clocks_200_ppm_apart_agree_before_the_first_sync0() {
    let drifts = [100.0, -100.0, 100.0, -100.0, 0.0, 60.0];
    let mut rig = Rig::new(configuration(drifts.len(), true), drives(&drifts));
    let begin = rig.now;
    rig.pump_to(BringUpPhase::PreOp);
    let (took, sent, in_pre_op) = (rig.now.since(begin), rig.main_device.reception().sent, spread(&rig));
    for _ in 0..200 {
        if sync0_is_running(&rig) {
            break;
        }
        rig.cycle();
    }
    assert!(sync0_is_running(&rig), "{:?}", rig.events);
    let at_sync0 = spread(&rig);
    println!(
        "in PreOp after {took:?} and {sent} frames: {in_pre_op} ns apart; at the first SYNC0 {at_sync0} ns"
    );
    // Each within 1.024 us of the reference clock.
    assert!(in_pre_op < 2_048 && at_sync0 < 2_048, "{in_pre_op} ns, {at_sync0} ns");
    assert!(!rig.events.iter().any(|it| matches!(it, Event::ClockUnsettled { .. })), "{:?}", rig.events);

    // A SubDevice that does not use its clock waits for nothing, and keeps drifting.
    let mut unused = Rig::new(configuration(drifts.len(), false), drives(&drifts));
    unused.pump_to(BringUpPhase::PreOp);
    let fewer = unused.main_device.reception().sent;
    unused.pump(took);
    let apart = spread(&unused);
    println!("without SYNC0, {fewer} frames to PreOp: {apart} ns apart {took:?} later");
    assert!(apart > 10_000 && fewer < sent / 4, "{apart} ns, {fewer} of {sent} frames");
}

// feature(main-device): static drift compensation is bounded: a clock that does not agree in time is told with its difference, and the bus goes on
#[test]
fn clock_that_cannot_follow_is_reported_and_the_bus_continues() {
    // Its control loop steers against 763 ppm at most.
    let mut rig = Rig::new(configuration(3, true), drives(&[0.0, 20.0, 2_000.0]));
    let begin = rig.now;
    rig.pump_to(BringUpPhase::PreOp);
    let took = rig.now.since(begin);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    let told: Vec<_> = rig
        .events
        .iter()
        .filter_map(|it| match *it {
            Event::ClockUnsettled { position, difference } => Some((position, difference)),
            _ => None,
        })
        .collect();
    let [(2, difference)] = told[..] else { panic!("{told:?}") };
    assert!(difference > 1_024, "it runs fast: {difference} ns");
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// Crystals as they are usual agree soon: a bus of many has few frames more, of which each passes a
/// thousand.
#[test]
fn a_thousand_with_usual_crystals_take_few_frames_more() {
    let usual: Vec<f64> = (0..1000).map(|number| f64::from(number % 5) * 10.0 - 20.0).collect();
    let [with, without] = [true, false].map(|with_sync0| {
        let mut rig = Rig::new(configuration(usual.len(), with_sync0), drives(&usual));
        rig.pump_to(BringUpPhase::PreOp);
        assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
        (rig.main_device.reception().sent, spread(&rig))
    });
    println!(
        "{} frames, {} ns apart; without SYNC0 {} frames, {} ns",
        with.0, with.1, without.0, without.1
    );
    assert!(with.0 < without.0 + without.0 / 4, "{with:?} {without:?}");
}
