//! Supervision of SYNC0 and process data in a SubDevice (ETG.1020, 13): the settings it refuses,
//! and the conditions that end Op.
//!
//! Static drift compensation: clocks in use agree before the first SYNC0, and clocks that do not
//! are reported.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use bus::{Bus, sii};
use ethercat::al::AlState::{Op, PreOp, SafeOp};
use ethercat::link::Segment as _;
use ethercat::main_device::{BringUpPhase, Configuration, Event, SubDeviceConfiguration, Sync0};
use ethercat::register::{self, dc};
use ethercat::time::Instant;
use ethercat::wire::{Address, Command};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{
    Application, ProcessDataLengths, ServoDescription, ServoDrive, Synchronisation, SynchronisationState,
};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, Oscillator, SubDevice};
use rig::{DRIVE, PERIOD, Rig, described};

use crate::{bus, rig};

const CYCLE: u32 = 1_000_000;

/// Counter limit of real devices.
const LIMIT: u16 = 4;

const USUAL: Synchronisation = Synchronisation {
    kinds: [1, 1],
    cycle_time: 0,
    minimum_cycle: 125_000,
    calc_and_copy: 20_000,
    error_limit: LIMIT,
};

type Shown = Arc<Mutex<Option<SynchronisationState>>>;

/// Four bytes each way, behind SYNC0.
struct Follower {
    expected: Synchronisation,
    shown: Shown,
}

impl Application for Follower {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 4, inputs: 4 }
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        Some(self.expected)
    }

    fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        *self.shown.lock().unwrap() = shown.copied();
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}
}

struct Bench {
    bus: Bus,
    shown: Shown,
}

impl Bench {
    /// In PreOp, with process data and SYNC0 as said.
    fn new(expected: Synchronisation, activation: u8, cycle: u32) -> Self {
        let shown = Shown::default();
        let follower = Follower { expected, shown: Arc::clone(&shown) };
        let device = SubDevice::new(EscDescription::default(), sii(0, 0), Box::new(follower));
        let mut bus = Bus::line(vec![device]);
        assert_eq!(bus.request(0, PreOp), (2, 0));
        bus.map_process_data(0, 0, 4);
        bus.write(0, dc::SYNC0_CYCLE_TIME, &cycle.to_le_bytes());
        let time = u64::from_le_bytes(bus.read(0, dc::SYSTEM_TIME, 8).data.try_into().unwrap());
        bus.write(0, dc::START_TIME, &(time + 2_000_000).to_le_bytes());
        bus.write(0, dc::ACTIVATION, &[activation]);
        Self { bus, shown }
    }

    /// In Op.
    fn in_op() -> Self {
        let mut bench = Self::new(USUAL, dc::ACTIVATE_SYNC0, CYCLE);
        assert_eq!(bench.bus.request(0, SafeOp), (4, 0));
        bench.cycles(true, 5);
        bench.bus.write(0, register::AL_CONTROL, &[Op.number(), 0]);
        bench.cycles(true, 10);
        assert_eq!(bench.bus.al_status(0), (8, 0));
        bench
    }

    /// Cycles of a millisecond, each with a frame or without.
    fn cycles(&mut self, frame: bool, number: usize) {
        for _ in 0..number {
            if frame {
                self.bus.send(Command::Lrw, Address::Logical(0), &[0; 4]);
            }
            self.bus.now = self.bus.now + Duration::from_millis(1);
            self.bus.segment.advance(self.bus.now);
        }
    }

    fn shown(&self) -> SynchronisationState {
        self.shown.lock().unwrap().unwrap()
    }
}

// feature(simulator): supervision of SYNC0 and process data: AL status codes 0x1A, 0x2C, 0x2D, 0x30, 0x35, 0x36
#[test]
fn safeop_is_refused_with_sync_settings_that_do_not_fit() {
    let by_sync0 = Synchronisation { kinds: [2, 2], ..USUAL };
    let told = |cycle_time| Synchronisation { cycle_time, ..USUAL };
    for (expected, activation, cycle, code) in [
        (USUAL, 0x00, 0, 0),
        (USUAL, 0x03, CYCLE, 0),
        (by_sync0, 0x03, CYCLE, 0),
        (told(250_000), 0x03, CYCLE, 0),
        (USUAL, 0x03, 0, 0),
        // Requested and missing; no pulse; SYNC1 alone.
        (by_sync0, 0x00, CYCLE, 0x30),
        (USUAL, 0x01, CYCLE, 0x30),
        (USUAL, 0x05, CYCLE, 0x30),
        (Synchronisation { kinds: [1, 3], ..USUAL }, 0x03, CYCLE, 0x30),
        (told(300_000), 0x03, CYCLE, 0x35),
        (USUAL, 0x03, 3_000, 0x36),
    ] {
        let mut bench = Bench::new(expected, activation, cycle);
        let status = if code == 0 { 4 } else { 0x12 };
        assert_eq!(bench.bus.request(0, SafeOp), (status, code), "{expected:?}, {activation:#x}, {cycle}");
    }
}

// feature(simulator): supervision of SYNC0 and process data: AL status codes 0x1A, 0x2C, 0x2D, 0x30, 0x35, 0x36
#[test]
fn late_frames_beyond_the_limit_end_op() {
    let mut bench = Bench::in_op();
    assert_eq!(bench.shown(), SynchronisationState { cycle: CYCLE, ..SynchronisationState::default() });
    // One late frame is tolerated, two in a row count.
    bench.cycles(false, 1);
    bench.cycles(true, 3);
    assert_eq!((bench.bus.al_status(0), bench.shown().events_missed), ((8, 0), 0));
    bench.cycles(false, 2);
    bench.cycles(true, 1);
    let missed = bench.shown().events_missed;
    assert!((1..=LIMIT).contains(&missed), "{missed}");
    bench.cycles(true, 3);
    assert_eq!((bench.bus.al_status(0), bench.shown().events_missed), ((8, 0), 0));
    bench.cycles(false, 5);
    assert_eq!(bench.bus.al_status(0), (0x14, 0x1A));
    assert!(bench.shown().error);
    // With frames again it gets back to Op.
    bench.cycles(true, 3);
    bench.bus.write(0, register::AL_CONTROL, &[Op.number() | 0x10, 0]);
    bench.cycles(true, 10);
    assert_eq!((bench.bus.al_status(0), bench.shown().error), ((8, 0), false));
    // Two sets of outputs in a cycle are reported.
    bench.bus.send(Command::Lrw, Address::Logical(0), &[0; 4]);
    bench.cycles(true, 2);
    assert_eq!(bench.shown().cycle_too_short, 1);
}

#[test]
fn without_a_limit_late_frames_are_only_counted() {
    let without = Synchronisation { error_limit: 0, ..USUAL };
    let mut bench = Bench::new(without, dc::ACTIVATE_SYNC0, CYCLE);
    bench.bus.request(0, SafeOp);
    bench.cycles(true, 5);
    bench.bus.write(0, register::AL_CONTROL, &[Op.number(), 0]);
    bench.cycles(true, 10);
    bench.cycles(false, 50);
    assert_eq!(bench.bus.al_status(0), (8, 0));
    assert!(bench.shown().events_missed > 100 && !bench.shown().error);
}

// feature(simulator): supervision of SYNC0 and process data: AL status codes 0x1A, 0x2C, 0x2D, 0x30, 0x35, 0x36
#[test]
fn sync0_that_stops_ends_op_and_keeps_it_from_coming_back() {
    let mut bench = Bench::in_op();
    bench.bus.write(0, dc::ACTIVATION, &[0]);
    bench.cycles(true, 2);
    assert_eq!(bench.bus.al_status(0), (8, 0));
    bench.cycles(true, 3);
    assert_eq!(bench.bus.al_status(0), (0x14, 0x2C));
    bench.bus.write(0, register::AL_CONTROL, &[Op.number() | 0x10, 0]);
    bench.cycles(true, 150);
    assert_eq!(bench.bus.al_status(0), (4, 0), "it waits for SYNC0");
    bench.cycles(true, 100);
    assert_eq!(bench.bus.al_status(0), (0x14, 0x2D));
    // PreOp ends the supervision.
    assert_eq!(bench.bus.request(0, PreOp), (2, 0));
    assert!(bench.shown.lock().unwrap().is_none());
}

#[test]
fn a_clock_that_jumps_past_its_sync0_ends_op() {
    let mut bench = Bench::in_op();
    assert!(bench.bus.segment.jump_clock(0, 5_000_000));
    bench.cycles(true, 5);
    assert_eq!(bench.bus.al_status(0), (0x14, 0x2C));
}

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

// feature(main-device): static drift compensation is bounded: a clock that does not agree in time is reported with its difference, and the bus continues
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
