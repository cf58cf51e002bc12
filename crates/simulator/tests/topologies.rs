//! Trees, and the common time in them: delays equal the cable delays, clocks agree, SYNC0 on the
//! grid.

use crate::rig;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::main_device::{BringUpPhase, Configuration, SubDeviceConfiguration, Sync0};
use ethercat::register::{EscFeatures, dc};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths, Sync0Event};
use onbeat_simulator::segment::Attachment;
use onbeat_simulator::{EscDescription, Oscillator, Segment, SubDevice};

use rig::devices::{STAMP, stamped_mapping};
use rig::wire::{Faults, Wire};
use rig::{Rig, described};

/// Delay from port to port of one ESC.
const FORWARDING: u32 = 300;

const SHIFT: Duration = Duration::from_micros(250);

/// Cycles after which system times have settled.
const SETTLED: usize = 2_000;

/// Instant of every SYNC0, and the system time at which it was due.
type Pulses = Arc<Mutex<Vec<(Instant, u64)>>>;

/// 8 bytes each way, and a record of every SYNC0.
struct Pulsed(Pulses);

impl Application for Pulsed {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: STAMP, inputs: STAMP }
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}

    fn sync0(&mut self, event: Sync0Event, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        self.0.lock().expect("one thread").push((event.now, event.system_time));
    }
}

/// A SubDevice with a crystal that is off by a 64th of `drift_ppm`, or without a clock.
fn pulsed(drift_ppm: Option<f64>, number: u64) -> (SubDevice, Pulses) {
    let pulses = Pulses::default();
    let features = drift_ppm.map_or(EscFeatures { bits: 0 }, |_| EscDescription::FEATURES);
    // Arbitrary local times, some of them about to wrap at 32 bits.
    let initial_time = (1 << 32) * (number + 1) - 400_000_000 * number;
    // Little: a control loop learns the rate of its crystal over more writes than these tests take.
    let oscillator =
        Oscillator { initial_time, drift_ppm: drift_ppm.unwrap_or(0.0) / 64.0, ..Oscillator::default() };
    let esc =
        EscDescription { features, oscillator, forwarding_delay: FORWARDING, ..EscDescription::default() };
    let image = with_coe(Identity::default(), "pulsed", stamped_mapping(1, 1)).image().emit();
    (SubDevice::new(esc, image, Box::new(Pulsed(pulses.clone()))), pulses)
}

/// A tree of SubDevices with these drifts. SubDevices with a clock have a SYNC0.
fn tree(drifts: &[Option<f64>], attachments: &[Attachment]) -> (Rig, Vec<Pulses>) {
    let (devices, pulses) = (0..).zip(drifts).map(|(number, &drift)| pulsed(drift, number)).unzip();
    let sync0 = Some(Sync0 { cycle: Duration::from_millis(1), shift: SHIFT });
    let configuration = drifts.iter().map(|drift| SubDeviceConfiguration {
        sync0: sync0.filter(|_| drift.is_some()),
        ..SubDeviceConfiguration::default()
    });
    let segment = Segment::with_topology(devices, attachments).expect("a tree");
    (Rig::on(described(configuration.collect()), segment), pulses)
}

/// A tree in Op.
fn run_up(drifts: &[Option<f64>], attachments: &[Attachment]) -> (Rig, Vec<Pulses>) {
    let (mut rig, pulses) = tree(drifts, attachments);
    rig.run_up();
    (rig, pulses)
}

fn delay_written(rig: &Rig, position: usize) -> u32 {
    let mut bytes = [0; 4];
    rig.segment.sub_devices()[position].peek(dc::SYSTEM_TIME_DELAY, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn assert_delays(rig: &Rig, expected: &[Option<u32>]) {
    assert_delays_within(2, rig, expected);
}

fn assert_delays_within(tolerance: u32, rig: &Rig, expected: &[Option<u32>]) {
    for (position, expected) in expected.iter().enumerate() {
        let Some(expected) = *expected else { continue };
        let found = delay_written(rig, position);
        let fits = found.abs_diff(expected) <= tolerance;
        assert!(fits, "SubDevice {position}: {found} ns, expected {expected} ns");
    }
}

/// Checks that after two seconds of cycles all clocks show the same time, that SYNC0 rises
/// everywhere at the same instant, on the grid, and that the MainDevice shows it.
fn assert_one_time(rig: &mut Rig, pulses: &[Pulses], reference: usize) {
    for _ in 0..SETTLED {
        rig.cycle();
    }
    let reference_time = rig.segment.sub_devices()[reference].system_time(rig.now);
    let clocks: Vec<_> =
        (0..pulses.len()).filter(|&it| rig.main_device.sub_devices()[it].clock.is_some()).collect();
    for &position in &clocks {
        let shown = rig.segment.sub_devices()[position].system_time(rig.now);
        let difference = shown.wrapping_sub(reference_time) as i64;
        assert!(difference.abs() < 100, "SubDevice {position} is off by {difference} ns");
    }
    let report = rig.main_device.clock();
    assert_eq!(report.reference, Some(reference as u16));
    assert!(report.largest_difference < Duration::from_nanos(100), "{report:?}");

    let last = |position: usize| *pulses[position].lock().expect("one thread").last().expect("it rises");
    let (rose, _) = last(reference);
    for &position in &clocks {
        let pulses = pulses[position].lock().expect("one thread");
        assert!(pulses.iter().all(|(_, due)| due % 1_000_000 == 250_000), "SubDevice {position}");
        assert!(pulses.windows(2).all(|pair| pair[1].1 - pair[0].1 == 1_000_000), "SubDevice {position}");
        let (here, _) = *pulses.last().expect("it rises");
        let apart = here.since(rose).max(rose.since(here));
        assert!(apart < Duration::from_nanos(100), "SYNC0 of SubDevice {position} is {apart:?} off");
    }
}

fn attachment(parent: usize, port: usize, delay: u64) -> Attachment {
    Attachment::new(parent, port).with_delay(Duration::from_nanos(delay))
}

// feature(main-device): propagation delays over lines and branches, offsets, clocks kept together
#[test]
fn a_line_of_drifting_clocks() {
    let drifts = [30.0, -50.0, 50.0, 0.0, 17.5].map(Some);
    let cables: Vec<_> =
        [20, 500, 100, 1000].into_iter().zip(0..).map(|(delay, it)| attachment(it, 1, delay)).collect();
    let (mut rig, pulses) = run_up(&drifts, &cables);
    assert_delays(&rig, &[0, 320, 1120, 1520, 2820].map(Some));
    assert_one_time(&mut rig, &pulses, 0);
}

/// Attachments in this tree, in the order frames pass it: port 3, then 1, then 2.
///
/// ```text
/// 0 -3- 1 -1- 2
///   -1- 3 -3- 4
///         -2- 5
/// ```
fn branches() -> [Attachment; 5] {
    [
        attachment(0, 3, 80),
        attachment(1, 1, 120),
        attachment(0, 1, 40),
        attachment(3, 3, 500),
        attachment(3, 2, 60),
    ]
}

// feature(main-device): propagation delays over lines and branches, offsets, clocks kept together
#[test]
fn a_tree_with_branches_in_branches() {
    let (mut rig, pulses) = run_up(&[-20.0, 50.0, -50.0, 10.0, 50.0, -50.0].map(Some), &branches());
    let found: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.upstream).collect();
    let places: Vec<_> = found.iter().flatten().map(|it| (it.position, it.port)).collect();
    assert_eq!(places, [(0, 3), (1, 1), (0, 1), (3, 3), (3, 2)]);
    // There and back through 1 and 2 takes 1600 ns; through 4 it takes 1600 ns, too.
    assert_delays(&rig, &[0, 380, 800, 1600 + 340, 1940 + 800, 1940 + 1600 + 360].map(Some));
    assert_one_time(&mut rig, &pulses, 0);
}

#[test]
fn a_subdevice_without_a_clock_in_between() {
    let drifts = [Some(25.0), Some(-50.0), None, Some(50.0)];
    let cables = [attachment(0, 1, 100), attachment(1, 1, 200), attachment(2, 1, 300)];
    let (mut rig, pulses) = run_up(&drifts, &cables);
    assert_delays(&rig, &[Some(0), Some(400), None, Some(400 + 500 + 600)]);
    assert_one_time(&mut rig, &pulses, 0);
}

/// No clock latched the frame at the junction: half the round trip is the best estimate.
#[test]
fn branches_at_clockless_junction_count_as_half_the_round_trip() {
    let drifts = [Some(0.0), None, Some(50.0), Some(-50.0)];
    let cables = [attachment(0, 1, 100), attachment(1, 3, 200), attachment(1, 1, 300)];
    let (rig, _) = run_up(&drifts, &cables);
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    assert_delays(&rig, &[Some(0), None, Some(1500), Some(1500)]);
}

#[test]
fn the_reference_is_the_first_with_a_clock() {
    let drifts = [None, Some(50.0), Some(-50.0), Some(20.0)];
    let cables = [attachment(0, 3, 150), attachment(0, 1, 100), attachment(2, 1, 70)];
    // 0 (no clock) -3- 1, -1- 2 -1- 3: the reference is a leaf, the others are on another branch.
    let (rig, _) = run_up(&drifts, &cables);
    assert_eq!(rig.main_device.clock().reference, Some(1));
    assert_eq!(delay_written(&rig, 1), 0);

    let line = [attachment(0, 1, 150), attachment(1, 1, 100), attachment(2, 1, 70)];
    let (mut rig, pulses) = run_up(&drifts, &line);
    assert_delays(&rig, &[None, Some(0), Some(400), Some(770)]);
    assert_one_time(&mut rig, &pulses, 1);
}

// feature(main-device): SYNC0 in all SubDevices at the same time
#[test]
fn sync0_starts_everywhere_after_a_lost_activation_write() {
    for seed in 0..20 {
        let drifts = [Some(0.0); 6];
        let (mut rig, pulses) = tree(&drifts, &branches());
        rig.pump_to(BringUpPhase::PreOp);
        rig.wire = Wire::new(seed);
        rig.wire.faults = Faults { lost: 0.3, ..Faults::default() };
        rig.cycle_to(BringUpPhase::ToSafeOp, 10);
        for _ in 0..10_000 {
            if rig.main_device.phase() != BringUpPhase::ToSafeOp {
                break;
            }
            rig.cycle();
        }
        rig.wire.faults = Faults::default();
        rig.cycle_to(BringUpPhase::Op, 1000);
        for _ in 0..100 {
            rig.cycle();
        }
        for (position, pulses) in pulses.iter().enumerate() {
            let rose = pulses.lock().expect("one thread").len();
            assert!(rose > 50, "seed {seed}: SYNC0 of SubDevice {position} rose {rose} times");
        }
    }
}

#[test]
fn a_line_of_a_hundred_and_fifty_clocks() {
    let drifts: Vec<_> = (0..150).map(|number| Some(f64::from(number % 11) * 10.0 - 50.0)).collect();
    let cables: Vec<_> = (0..149).map(|parent| attachment(parent, 1, 50 + parent as u64 % 100)).collect();
    let (mut rig, pulses) = run_up(&drifts, &cables);
    let mut delay = 0;
    let delays = cables.iter().map(|cable| {
        delay += FORWARDING + cable.delay.as_nanos() as u32;
        Some(delay)
    });
    let expected: Vec<_> = std::iter::once(Some(0)).chain(delays).collect();
    // There and back takes 120 us, which crystals 100 ppm apart measure 12 ns differently.
    assert_delays_within(12, &rig, &expected);
    assert_one_time(&mut rig, &pulses, 0);
}

/// 2026-11-22 in ns since 2000-01-01, and a time about to wrap.
// feature(main-device): DC system time in ns since 2000-01-01
#[test]
fn system_time_counts_from_the_given_epoch() {
    for system_time_at_epoch in [848_620_800_000_000_000, u64::MAX - 3_000_000_000] {
        let (devices, pulses): (Vec<_>, Vec<_>) =
            (0..3).map(|number| pulsed(Some(number as f64 * 20.0), number)).unzip();
        let sync0 = Some(Sync0 { cycle: Duration::from_millis(1), shift: SHIFT });
        let configuration = vec![SubDeviceConfiguration { sync0, ..Default::default() }; 3];
        let configuration = Configuration { system_time_at_epoch, ..described(configuration) };
        let mut rig = Rig::new(configuration, devices);
        rig.run_up();
        if system_time_at_epoch < 1 << 63 {
            assert_one_time(&mut rig, &pulses, 0);
        }
        let expected = rig.now.as_nanos().wrapping_add(system_time_at_epoch);
        for device in rig.segment.sub_devices() {
            let off = device.system_time(rig.now).wrapping_sub(expected) as i64;
            assert!(off.abs() < 1_000_000, "off by {off} ns");
        }
    }
}
