//! Oversampling terminals on a bus: samples taken at the times of SYNC0, handed over with SYNC1, as
//! many as the configuration says.
use crate::rig;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{
    BringUpPhase, Input, Output, Oversampling, SubDeviceConfiguration, Sync0, Sync1,
};
use ethercat::sii::{Category, Image, SiiPdo};
use ethercat::time::Instant;
use onbeat_simulator::application::{
    Application, Level, OversamplingInputs, OversamplingOutputs, Signal, terminal,
};
use onbeat_simulator::{EscDescription, SubDevice, TerminalModel};
use rig::{PERIOD, Rig, described, drive};

/// Twelve digits a sample of 100 us.
const RAMP: Signal = Signal::Ramp { from: -30_000.0, to: 30_000.0, frequency: 2.0 };

fn configuration(samples: u8) -> SubDeviceConfiguration {
    SubDeviceConfiguration {
        sync0: Some(Sync0 { cycle: PERIOD / u32::from(samples), shift: Duration::ZERO }),
        sync1: Some(Sync1 { cycle: PERIOD, delay: Duration::ZERO }),
        oversampling: Some(Oversampling { samples, pdos: Vec::new() }),
        ..SubDeviceConfiguration::default()
    }
}

fn device(image: &Image, application: impl Application + 'static) -> SubDevice {
    SubDevice::new(EscDescription::of(None, Some(image)), image.emit(), Box::new(application))
}

fn el3702(signals: [Signal; 2]) -> SubDevice {
    device(&terminal::image(TerminalModel::El3702, 0), OversamplingInputs::new(signals).unwrap())
}

/// Runs up, and some cycles until all have settled.
fn run(configurations: Vec<SubDeviceConfiguration>, devices: Vec<SubDevice>) -> Rig {
    let mut rig = Rig::new(described(configurations), devices);
    rig.run_up();
    for _ in 0..200 {
        rig.cycle();
    }
    rig
}

/// The simulated time at which this SubDevice's clock shows `low` in its low bits.
fn instant(rig: &Rig, device: usize, low: u32) -> Instant {
    let shown = rig.segment.sub_devices()[device].system_time(rig.now);
    let before = (shown as u32).wrapping_sub(low) as i32;
    Instant::from_nanos(rig.now.as_nanos().wrapping_add_signed(-i64::from(before)))
}

/// Each sample is the measured quantity at the time of its SYNC0: the block that is there began two
/// cycles before the next SYNC1.
// feature(simulator): oversampling terminals EL3702 and EL4732: samples at the times of SYNC0, blocks with SYNC1, 1 to 100 in a cycle
#[test]
fn samples_are_taken_at_sync0_times() {
    for samples in [1_u8, 2, 10, 40, 100] {
        let shift = Duration::from_micros(130);
        let mut it = configuration(samples);
        it.sync0.iter_mut().for_each(|sync0| sync0.shift = shift.min(sync0.cycle / 2));
        let mut rig = run(vec![it], vec![el3702([RAMP, Signal::Constant(-5.0)])]);
        let next: Input<u32> = rig.main_device.sub_devices()[0].input(0x1D09, 0x98).unwrap();
        let (counter, other): (Input<u16>, Input<u16>) = {
            let device = &rig.main_device.sub_devices()[0];
            (device.input(0x6800, 1).unwrap(), device.input(0x6800, 2).unwrap())
        };
        let value = |rig: &Rig, channel: u8, number: u8| {
            let device = &rig.main_device.sub_devices()[0];
            let it: Input<i16> = device.input(0x6000 + 0x10 * u16::from(number), channel).unwrap();
            rig.main_device.get(it)
        };
        let mut before = rig.main_device.get(counter);
        for _ in 0..50 {
            assert!(rig.cycle().all_fresh);
            let (blocks, first) = (rig.main_device.get(counter), rig.main_device.get(next));
            assert_eq!((blocks, rig.main_device.get(other)), (before.wrapping_add(1), blocks));
            before = blocks;
            let cycle = PERIOD.as_nanos() as u32;
            for number in 0..samples {
                let behind = cycle / u32::from(samples) * u32::from(number);
                let time = first.wrapping_sub(2 * cycle).wrapping_add(behind);
                let expected = RAMP.at(instant(&rig, 0, time)).round();
                let found = f64::from(value(&rig, 1, number));
                assert!(
                    (found - expected).abs() <= 1.0,
                    "sample {number} of {samples}: {found}, {expected}"
                );
                assert_eq!(value(&rig, 2, number), -5);
            }
        }
    }
}

/// An array of samples is one handle of the MainDevice.
#[test]
fn samples_are_read_and_written_as_arrays() {
    let levels = [(); 2].map(|()| Level::with_course());
    let outputs =
        device(&terminal::image(TerminalModel::El4732, 0), OversamplingOutputs::new(levels.clone()));
    let measured = levels.map(|level| Signal::Level { level, scale: 1.0 });
    // Sampled in the middle of what is driven.
    let mut inputs = configuration(8);
    inputs.sync0.iter_mut().for_each(|sync0| sync0.shift = sync0.cycle / 2);
    let mut rig = run(vec![configuration(8), inputs], vec![outputs, el3702(measured)]);
    let out: Output<[i16; 8]> = rig.main_device.sub_devices()[0].output(0x7000, 2).unwrap();
    let back: Input<[i16; 8]> = rig.main_device.sub_devices()[1].input(0x6000, 2).unwrap();
    let wave = [100, -200, 300, -400, 500, -600, 700, -800];
    rig.main_device.set(out, wave);
    for _ in 0..5 {
        assert!(rig.cycle().all_fresh);
    }
    assert_eq!(rig.main_device.get(back), wave);
    let other: Input<[i16; 8]> = rig.main_device.sub_devices()[1].input(0x6000, 1).unwrap();
    assert_eq!(rig.main_device.get(other), [0; 8]);
}

/// Where an SII marks no samples the configuration names them.
// feature(protocol): oversampling: PDOs of several samples in one exchange, as the SII marks them or the configuration names them
#[test]
fn pdos_that_hold_samples_are_marked_or_named() {
    let mut image = terminal::image(TerminalModel::El3702, 0);
    assert_eq!(image.samples(), [0x1A00, 0x1A80]);
    for category in &mut image.categories {
        if let Category::TxPdos(pdos) = category {
            pdos.iter_mut().for_each(|pdo| pdo.flags &= !SiiPdo::FLAG_SAMPLE);
        }
    }
    let plain = || device(&image, OversamplingInputs::new([RAMP, RAMP]).unwrap());
    let named = |pdos: &[u16]| SubDeviceConfiguration {
        oversampling: Some(Oversampling { samples: 4, pdos: pdos.to_vec() }),
        ..configuration(4)
    };
    let mut rig = Rig::new(described(vec![named(&[0x1A00, 0x1A80])]), vec![plain()]);
    rig.run_up();
    assert_eq!(rig.main_device.inputs(0).len(), 2 * (2 + 4 * 2) + 4);
    for (configuration, device, expected) in [
        (
            named(&[]),
            plain(),
            "oversampling is configured, but its SII marks no PDO as a sample; name the PDOs that \
             hold a sample, of 0x1b00, 0x1a00, 0x1b01, 0x1a80, 0x1b10",
        ),
        (
            named(&[0x1A00, 0x1A05]),
            plain(),
            "PDO 0x1a05 is to hold samples, expected one that its SII assigns: 0x1b00, 0x1a00, 0x1b01, 0x1a80, 0x1b10",
        ),
        (
            named(&[]),
            drive(0),
            "oversampling is configured, and its PDOs come from its SII, expected pdos in the \
             robot file, as it has CoE; give its pdos, with all samples",
        ),
    ] {
        let mut rig = Rig::new(described(vec![configuration]), vec![device]);
        rig.pump_to(BringUpPhase::PreOp);
        let failure = rig.failure().unwrap().to_string();
        assert!(failure.contains(expected), "{failure}");
    }
}

/// Without SYNC1 no blocks are handed over; samples faster than the terminal's converter, and
/// blocks longer than its memory, are refused.
#[test]
fn what_the_terminal_cannot_sample_is_refused() {
    let refused = |configuration: SubDeviceConfiguration| {
        let mut rig = Rig::new(described(vec![configuration]), vec![el3702([RAMP, RAMP])]);
        rig.pump_to(BringUpPhase::PreOp);
        for _ in 0..500 {
            rig.cycle();
        }
        assert_eq!(rig.segment.sub_devices()[0].al_status().state, AlState::Init.number());
        rig.failure().unwrap().to_string()
    };
    let without = refused(SubDeviceConfiguration { sync1: None, ..configuration(10) });
    assert!(without.contains("0x0030"), "{without}");
    let sync0 = Some(Sync0 { cycle: Duration::from_micros(5), shift: Duration::ZERO });
    let fast = refused(SubDeviceConfiguration { sync0, ..configuration(100) });
    assert!(fast.contains("0x0036"), "{fast}");
    let long = refused(configuration(125));
    assert!(long.contains("0x001e"), "{long}");
}
