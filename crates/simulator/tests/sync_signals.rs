//! SYNC0 and SYNC1 of several SubDevices, and their latch inputs, as a MainDevice sets them up.
use crate::rig;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::main_device::{
    BringUpPhase, Event, LatchEdge, LatchMode, SubDeviceConfiguration, Sync0, Sync1, SyncMiss,
};
use ethercat::register::dc;
use ethercat::time::Instant;
use ethercat::wire::frame;
use onbeat_simulator::application::sii::coupler;
use onbeat_simulator::application::{Application, ProcessDataLengths, Sync0Event};
use onbeat_simulator::{EscDescription, EscKind, Oscillator, Segment, SubDevice};
use rig::{DRIVE, PERIOD, Rig, described, drives};

/// Pulses, each with its instant and system time: of SYNC0, of SYNC1.
type Pulses = Arc<Mutex<[Vec<(Instant, u64)>; 2]>>;

/// Application that notes the pulses.
struct Recorder(Pulses);

impl Application for Recorder {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}

    fn sync0(&mut self, event: Sync0Event, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        self.0.lock().unwrap()[0].push((event.now, event.system_time));
    }

    fn sync1(&mut self, event: Sync0Event, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        self.0.lock().unwrap()[1].push((event.now, event.system_time));
    }
}

fn recorder(drift_ppm: f64, pulses: &Pulses) -> SubDevice {
    recorder_behind(EscKind::Et1100, drift_ppm, pulses)
}

fn recorder_behind(kind: EscKind, drift_ppm: f64, pulses: &Pulses) -> SubDevice {
    let image = coupler(DRIVE, "recorder").image().emit();
    // A little of it: a control loop learns the rate of its crystal over more writes than these
    // tests take.
    let oscillator = Oscillator {
        drift_ppm: drift_ppm / 64.0,
        initial_time: (drift_ppm.abs() * 1e9) as u64,
        ..Oscillator::default()
    };
    let esc = EscDescription { oscillator, ..EscDescription::of_kind(kind) };
    SubDevice::new(esc, image, Box::new(Recorder(Arc::clone(pulses))))
}

const SYNC0: Sync0 = Sync0 { cycle: PERIOD, shift: Duration::from_micros(250) };

fn with_sync1(cycles: u32) -> SubDeviceConfiguration {
    let sync1 = (cycles > 0)
        .then(|| Sync1 { cycle: PERIOD * cycles, delay: Duration::from_micros(100 * u64::from(cycles)) });
    SubDeviceConfiguration { sync0: Some(SYNC0), sync1, ..Default::default() }
}

/// An application gives up where no pulse comes for 200 ms.
#[test]
fn bring_up_to_op_waits_for_first_sync1_seconds_ahead() {
    let sync1 = Some(Sync1 { cycle: Duration::from_secs(4), delay: Duration::ZERO });
    let mut rig =
        Rig::new(described(vec![SubDeviceConfiguration { sync1, ..with_sync1(0) }; 2]), drives(2));
    rig.pump_to(BringUpPhase::PreOp);
    rig.cycle_to(BringUpPhase::Op, 8000);
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
}

// feature(main-device): SYNC1 after SYNC0 with a delay and a separate period, at the same time in all SubDevices
#[test]
fn sync1_rises_at_multiples_of_its_cycle_everywhere() {
    let cycles = [1, 3, 3, 0];
    let pulses: Vec<Pulses> = cycles.iter().map(|_| Pulses::default()).collect();
    let devices = pulses.iter().zip([0.0, 60.0, -60.0, 20.0]).map(|(pulses, ppm)| recorder(ppm, pulses));
    let mut rig = Rig::new(described(cycles.map(with_sync1).to_vec()), devices.collect());
    rig.run_up();
    run(&mut rig, 1000);
    pulses.iter().for_each(|it| *it.lock().unwrap() = Default::default());
    run(&mut rig, 100);
    let pulses: Vec<_> = pulses.iter().map(|it| it.lock().unwrap().clone()).collect();
    for (cycles, [sync0, sync1]) in cycles.into_iter().zip(&pulses) {
        assert!((99..=101).contains(&sync0.len()), "{}", sync0.len());
        assert!(sync0.iter().all(|(_, time)| time % 1_000_000 == 250_000));
        let expected = 100_usize.checked_div(cycles as usize).unwrap_or(0);
        assert!(sync1.len().abs_diff(expected) <= 1, "{} of {expected}", sync1.len());
        let (cycle, delay) = (1_000_000 * u64::from(cycles), 100_000 * u64::from(cycles));
        assert!(sync1.iter().all(|(_, time)| time % cycle == 250_000 + delay), "{sync1:?}");
    }
    // The two clocks that are farthest apart.
    let ([sync0, sync1], [other0, other1]) = (&pulses[1], &pulses[2]);
    for ((now, time), (other, other_time)) in sync0.iter().zip(other0).chain(sync1.iter().zip(other1)) {
        let apart = now.as_nanos().abs_diff(other.as_nanos());
        assert!(time == other_time && apart < 100, "{time}, {other_time}: {apart} ns apart");
    }
}

/// On a long line a frame reaches the last SubDevice so late that pulses are due meanwhile: one for
/// each frame that distributes the bus time.
// feature(simulator): SYNC0 comes before the frame that reaches its SubDevice later, on lines of any length
#[test]
fn sync0_that_comes_while_a_frame_is_on_its_way_is_not_lost() {
    for (each, shift) in [(1, 250), (1, 50), (10, 0)] {
        let pulses = [Pulses::default(), Pulses::default()];
        let devices = pulses.iter().zip([0.0, 30.0]).map(|(pulses, ppm)| recorder(ppm, pulses));
        let segment = Segment::with_cable_delay(devices.collect(), Duration::from_micros(400));
        let sync0 = Some(Sync0 { cycle: PERIOD / each, shift: Duration::from_micros(shift) });
        let configuration = SubDeviceConfiguration { sync0, ..Default::default() };
        let mut rig = Rig::on(described(vec![configuration; 2]), segment);
        rig.run_up();
        let missed = rig.events.iter().filter(|it| matches!(it, Event::SyncMissed { .. })).count();
        assert_eq!(missed, 0, "{:?}", rig.events);
        run(&mut rig, 500);
        pulses.iter().for_each(|it| *it.lock().unwrap() = Default::default());
        run(&mut rig, 100);
        let [first, last] = pulses.map(|it| it.lock().unwrap()[0].clone());
        let expected = 100 * each as usize;
        assert!(first.len().abs_diff(expected) <= 1 && last.len().abs_diff(expected) <= 1, "{expected}");
        let grid = u64::from(1_000_000 / each);
        // A pulse due while a frame is on its way may be late by the travel time.
        let most = if each == 1 { 100 } else { 400_000 };
        assert!(first.iter().chain(&last).all(|(_, time)| time % grid == 1_000 * shift));
        for ((now, time), (other, other_time)) in first.iter().zip(&last) {
            let apart = now.as_nanos().abs_diff(other.as_nanos());
            assert!(time == other_time && apart < most, "{time}, {other_time}: {apart} ns apart");
        }
    }
}

fn run(rig: &mut Rig, cycles: u32) {
    for _ in 0..cycles {
        rig.cycle();
    }
}

/// A bus on which the second SubDevice's clock jumps by `by` between its start time and its
/// activation, `times` times; and back.
fn late_start(times: usize, by: Duration) -> Rig {
    let by = by.as_nanos() as i64;
    let pulses = Pulses::default();
    let devices = vec![recorder(0.0, &pulses), recorder(30.0, &pulses)];
    let mut rig = Rig::new(described(vec![with_sync1(0), with_sync1(2)]), devices);
    rig.pump_to(BringUpPhase::PreOp);
    let (mut jumped, mut told) = (0, 0);
    let start_of = |rig: &Rig| {
        let mut bytes = [0; 0x17];
        rig.segment.sub_devices()[1].peek(dc::ACTIVATION, &mut bytes);
        (bytes[0], u64::from_le_bytes(bytes[0xF..].try_into().unwrap()))
    };
    for _ in 0..2000 {
        rig.cycle();
        if rig.main_device.phase() == BringUpPhase::Op || rig.failure().is_some() {
            break;
        }
        let (activation, start) = start_of(&rig);
        let ahead = start.saturating_sub(rig.segment.sub_devices()[1].system_time(rig.now));
        if activation == 0 && ahead > 10_000_000 && jumped == told && jumped < times {
            rig.segment.jump_clock(1, by);
            jumped += 1;
        }
        let missed = rig.events.iter().filter(|it| matches!(it, Event::SyncMissed { .. })).count();
        if missed > told {
            rig.segment.jump_clock(1, -by);
            told = missed;
        }
    }
    rig
}

fn misses(rig: &Rig) -> Vec<(u16, SyncMiss)> {
    let miss = |event: &Event| match event {
        Event::SyncMissed { position, miss } => Some((*position, *miss)),
        _ => None,
    };
    rig.events.iter().filter_map(miss).collect()
}

// feature(main-device): a start time of SYNC0 that passed before its activation is reported and set again
#[test]
fn missed_start_time_is_reported_and_set_again() {
    let jump = Duration::from_millis(50);
    let rig = late_start(2, jump);
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
    let misses = misses(&rig);
    assert_eq!(misses.len(), 2, "{misses:?}");
    for (position, miss) in misses {
        let SyncMiss::Late(by) = miss else { panic!("{miss:?}") };
        assert!(position == 1 && by > Duration::from_millis(2) && by < jump, "{by:?}");
    }
    let mut next = [0; 8];
    rig.segment.sub_devices()[1].peek(dc::ACTIVATION, &mut next);
    assert_eq!(next[0], dc::ACTIVATE_SYNC1);
    let in_time = late_start(0, jump);
    assert_eq!((in_time.main_device.phase(), self::misses(&in_time)), (BringUpPhase::Op, vec![]));
}

/// A machine that does much else takes longer from the one write to the other.
// feature(main-device): a start of SYNC0 that was missed is set twice as far ahead
#[test]
fn starts_that_are_late_by_less_than_a_second_are_soon_in_time() {
    let rig = late_start(usize::MAX, Duration::from_millis(300));
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
    assert_eq!(misses(&rig).len(), 4);
}

#[test]
fn a_start_that_is_always_late_is_given_up_with_its_reason() {
    let rig = late_start(usize::MAX, Duration::from_secs(3));
    assert_eq!(misses(&rig).len(), 7);
    let failure = rig.failure().unwrap().to_string();
    let expected = "SYNC0 did not start in 8 tries: its start time had passed when it was activated, ";
    assert!(failure.contains(expected), "{failure}");
}

/// The application may keep the SYNC unit (0x0980 bit 0): the activation is not taken.
#[test]
fn an_activation_that_is_not_taken_is_given_up_with_its_reason() {
    let pulses = Pulses::default();
    let mut rig = Rig::new(described(vec![with_sync1(0)]), vec![recorder(0.0, &pulses)]);
    rig.tamper = Some(Box::new(|bytes| {
        for place in frame::places(bytes).collect::<Vec<_>>() {
            if place.header.ado() == dc::SYSTEM_TIME && place.data().len() > 0x71 {
                bytes[place.data().start + 0x71] = 0x01;
            }
        }
    }));
    rig.pump_to(BringUpPhase::PreOp);
    for _ in 0..200 {
        rig.cycle();
    }
    let failure = rig.failure().unwrap().to_string();
    assert!(
        failure.contains("SYNC0 did not start in 8 tries: its ESC does not take the activation"),
        "{failure}"
    );
    assert!(misses(&rig).iter().all(|(_, miss)| *miss == SyncMiss::NotTaken));
}

// feature(main-device): latch inputs: single and continuous edges, their times read in a service frame while process data continues
// feature(simulator): latch inputs, set by a fault on demand
#[test]
fn latch_times_are_read_during_process_data() {
    let latches = Some([LatchMode::SINGLE, LatchMode::default()]);
    let with_latches = SubDeviceConfiguration { latches, ..Default::default() };
    let mut rig = Rig::new(described(vec![SubDeviceConfiguration::default(), with_latches]), drives(2));
    rig.run_up();
    run(&mut rig, 1500);
    let read = |rig: &mut Rig| {
        assert!(rig.main_device.read_latches(1));
        for _ in 0..5 {
            assert!(rig.cycle().all_fresh, "process data goes on");
        }
        assert!(!rig.main_device.reads_latches(1));
        rig.main_device.sub_devices()[1].latches.unwrap().inputs
    };
    let none = LatchEdge::default();
    assert!(read(&mut rig).iter().all(|it| (it.high, it.rising, it.falling) == (false, none, none)));
    // Both inputs high, low and high again, at different times.
    let mut times = Vec::new();
    for high in [true, false, true] {
        (0..2).for_each(|input| assert!(rig.segment.set_latch(1, input, high)));
        times.push(rig.segment.sub_devices()[1].system_time(rig.now));
        rig.cycle();
    }
    let [single, newest] = read(&mut rig);
    let edge = |time| LatchEdge { time, is_new: true };
    assert_eq!((single.high, single.rising, single.falling), (true, edge(times[0]), edge(times[1])));
    assert_eq!((newest.high, newest.rising, newest.falling), (true, edge(times[2]), edge(times[1])));
    // Once read, they are released.
    let [again, _] = read(&mut rig);
    assert_eq!(again.rising, LatchEdge { time: times[0], is_new: false });
    rig.segment.set_latch(1, 0, false);
    rig.segment.set_latch(1, 0, true);
    let later = rig.segment.sub_devices()[1].system_time(rig.now);
    let [single, _] = read(&mut rig);
    assert_eq!((single.rising, single.falling), (edge(later), edge(later)));
    // The time of the bus: the other SubDevice's clock has the same.
    let apart = rig.segment.sub_devices()[0].system_time(rig.now).abs_diff(later + 5_000_000);
    assert!(apart < 500, "{apart} ns");
    assert!(!rig.main_device.read_latches(2), "there is none");
}

#[test]
fn latch_inputs_without_a_clock_are_refused() {
    let mut esc = EscDescription::default();
    esc.features.bits = 0;
    let image = coupler(DRIVE, "plain").image().emit();
    let plain = SubDevice::new(esc, image, Box::new(Recorder(Pulses::default())));
    let latches = Some([LatchMode::SINGLE; 2]);
    let mut rig =
        Rig::new(described(vec![SubDeviceConfiguration { latches, ..Default::default() }]), vec![plain]);
    rig.pump_to(BringUpPhase::PreOp);
    let failure = rig.failure().unwrap().to_string();
    assert!(
        failure.contains("latch inputs are configured, but its ESC has no distributed clock"),
        "{failure}"
    );
}

/// Start of the host's clock, ns since 2000. The bus time wraps at 32 bits about 2.5 s after the
/// start of the tests below.
const EPOCH_BEFORE_A_WRAP: u64 = (186_264_514 << 32) + (1 << 32) - 3_500_000_000;

/// A reference clock of 32 bits, then one of 64 and one of 32, all with SYNC0 and latch inputs.
fn behind_32_bits(pulses: &[Pulses; 3]) -> Rig {
    let kinds = [EscKind::Esc20, EscKind::Et1100, EscKind::IpCore];
    let devices = kinds.into_iter().zip([20.0, -60.0, 60.0]).zip(pulses);
    let devices = devices.map(|((kind, ppm), pulses)| recorder_behind(kind, ppm, pulses));
    let each = SubDeviceConfiguration { latches: Some([LatchMode::default(); 2]), ..with_sync1(0) };
    let configuration = ethercat::main_device::Configuration {
        system_time_at_epoch: EPOCH_BEFORE_A_WRAP,
        ..described(vec![each; 3])
    };
    let mut rig = Rig::new(configuration, devices.collect());
    rig.run_up();
    rig
}

/// Time of the bus, as its clock of 64 bits has it.
fn full_time(rig: &Rig) -> u64 {
    rig.segment.sub_devices()[1].system_time(rig.now)
}

/// Pulses of the newest hundred cycles lie on the grid in the time of 64 bits, and at the same time
/// everywhere.
fn on_the_grid(pulses: &[Pulses; 3]) {
    let pulses = pulses.each_ref().map(|it| it.lock().unwrap()[0].clone());
    let newest = |own: &[(Instant, u64)]| own[own.len() - 100..].to_vec();
    let [reference, wide, other] = pulses.each_ref().map(|own| newest(own));
    assert!(wide.iter().all(|(_, time)| time % 1_000_000 == 250_000), "{:?}", wide[0]);
    assert!(wide.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1_000_000));
    for ((now, _), (others, _)) in wide.iter().zip(&reference).chain(wide.iter().zip(&other)) {
        let apart = now.as_nanos().abs_diff(others.as_nanos());
        assert!(apart < 100, "{apart} ns apart");
    }
}

// feature(main-device): a reference clock of 32 bits: its time is extended to 64 over its wraps, for SYNC0, latches and the lock of the cycle
/// The reference clock counts 32 bits and wraps: SYNC0 stays on the grid of the full time in all
/// SubDevices, also in the ones behind it.
#[test]
fn sync0_keeps_grid_over_wraps_of_32_bit_reference_clock() {
    let pulses: [Pulses; 3] = Default::default();
    let mut rig = behind_32_bits(&pulses);
    assert_eq!(misses(&rig), []);
    let wraps = |rig: &Rig| full_time(rig) >> 32;
    let first = wraps(&rig);
    for _ in 0..3 {
        run(&mut rig, 2000);
        on_the_grid(&pulses);
        let reference = rig.main_device.clock().reference_time;
        let now = full_time(&rig);
        assert!(now.wrapping_sub(reference) < 2_000_000, "{reference}, {now} in truth");
        let largest = rig.main_device.clock().largest_difference;
        assert!(largest < Duration::from_nanos(100), "{largest:?}");
    }
    assert!(wraps(&rig) > first, "{first}");
}

/// Latch times of a 32-bit clock are bus times, over the wrap.
#[test]
fn latch_times_of_a_32_bit_clock_continue_over_its_wrap() {
    let mut rig = behind_32_bits(&Default::default());
    run(&mut rig, 1000);
    let first = full_time(&rig) >> 32;
    let mut before = [0; 3];
    for number in 0..12 {
        for (position, before) in before.iter_mut().enumerate() {
            let edge = full_time(&rig);
            rig.segment.set_latch(position, 0, number % 2 == 0);
            // Read a while later: behind the wrap, sometimes.
            run(&mut rig, 170);
            assert!(rig.main_device.read_latches(position));
            run(&mut rig, 5);
            let [input, _] = rig.main_device.sub_devices()[position].latches.unwrap().inputs;
            let newest = if number % 2 == 0 { input.rising } else { input.falling };
            assert!(newest.time.abs_diff(edge) < 1_000, "{position}: {newest:?}, {edge}");
            assert!(newest.is_new && newest.time > *before, "{position}: {newest:?}");
            *before = newest.time;
        }
    }
    assert!(full_time(&rig) >> 32 > first);
    // An edge that was read keeps its time, however long ago it was.
    run(&mut rig, 5000);
    assert!(rig.main_device.read_latches(2));
    run(&mut rig, 5);
    let [input, _] = rig.main_device.sub_devices()[2].latches.unwrap().inputs;
    assert_eq!(input.falling, LatchEdge { time: before[2], is_new: false });
}

/// A SubDevice that lost its power after the wrap of the reference clock gets the full time again.
#[test]
fn clock_of_64_bits_reset_after_wrap_has_full_time() {
    let pulses: [Pulses; 3] = Default::default();
    let mut rig = behind_32_bits(&pulses);
    run(&mut rig, 4000);
    let full = full_time(&rig);
    rig.events.clear();
    assert!(rig.segment.power_cycle(1));
    run(&mut rig, 1500);
    assert!(
        rig.events.iter().any(|it| matches!(it, Event::Recovered { position: 1, .. })),
        "{:?}",
        rig.events
    );
    let expected = full + 1_500_000_000;
    assert!(full_time(&rig).abs_diff(expected) < 1_000_000, "{} instead of {expected}", full_time(&rig));
    on_the_grid(&pulses);
}
