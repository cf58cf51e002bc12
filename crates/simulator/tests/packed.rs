//! Process data of a few bits in shared bytes of a datagram: the same values by name, and no
//! SubDevice disturbs a neighbour's bits.
use crate::rig;

use std::sync::{Arc, Mutex};

use ethercat::main_device::{Configuration, Event};
use ethercat::register::{self, fmmu};
use ethercat::wire::{Command, frame::places};
use onbeat_simulator::application::Application;
use onbeat_simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use onbeat_simulator::application::sii::{digital_inputs, digital_outputs};
use onbeat_simulator::application::terminal;
use onbeat_simulator::{EscDescription, SubDevice, TerminalModel};

use rig::{DRIVE, Rig, drive, to_op};

/// Channels at each place: outputs and inputs of a few bits, one of a whole byte, and a drive.
const CHANNELS: [(bool, u8); 8] =
    [(true, 4), (false, 4), (true, 4), (false, 0), (false, 2), (false, 8), (false, 2), (true, 2)];

/// Place of the drive.
const A_DRIVE: usize = 3;

/// The terminals on a dedicated bus, the wires of each, and the bytes of its LRW.
struct Bench {
    rig: Rig,
    wires: Vec<Wires>,
    bytes: Arc<Mutex<usize>>,
}

fn terminal(number: u8, (is_output, channels): (bool, u8), wires: &Wires) -> SubDevice {
    let identity = ethercat::sii::Identity { product_code: number.into(), ..DRIVE };
    let image = match (is_output, channels) {
        (true, 4) => terminal::image(TerminalModel::El2004, 0),
        (false, 8) => terminal::image(TerminalModel::El1008, 0),
        (true, _) => digital_outputs(identity, "outputs", channels).image(),
        (false, _) => digital_inputs(identity, "inputs", channels).image(),
    };
    let application: Box<dyn Application> = match is_output {
        true => Box::new(DigitalOutputs::new(channels, wires.clone()).unwrap()),
        false => Box::new(DigitalInputs::new(channels, wires.clone()).unwrap()),
    };
    SubDevice::new(EscDescription::of(None, Some(&image)), image.emit(), application)
}

fn bench(packed: bool, recovery: bool) -> Bench {
    let wires: Vec<_> = CHANNELS.iter().map(|_| Wires::new()).collect();
    let devices = (0..).zip(CHANNELS).zip(&wires).map(|((number, channels), wires)| match number {
        3 => drive(3),
        _ => terminal(number, channels, wires),
    });
    let mut rig = Rig::new(Configuration { packed, recovery, ..to_op() }, devices.collect());
    let bytes = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&bytes);
    rig.tamper = Some(Box::new(move |frame| {
        for place in places(frame).filter(|it| it.header.command == Command::Lrw) {
            *noted.lock().unwrap() = place.data().len();
        }
    }));
    rig.run_up();
    Bench { rig, wires, bytes }
}

impl Bench {
    /// Sets all channels to bits of `number`, runs until they are there, and returns all inputs.
    fn exchange(&mut self, number: u64) -> Vec<Vec<u8>> {
        let level = |place: usize| number >> (5 * place);
        for (place, (is_output, channels)) in CHANNELS.into_iter().enumerate().filter(|it| it.0 != A_DRIVE)
        {
            match is_output {
                // Bits beyond its channels, too: no channel uses them.
                true => self.rig.main_device.outputs_mut(place)[0] = level(place) as u8,
                false => self.wires[place].set_levels(level(place) & mask(channels)),
            }
        }
        (0..3).for_each(|_| assert!(self.rig.cycle().all_fresh));
        for (place, (is_output, channels)) in CHANNELS.into_iter().enumerate().filter(|it| it.0 != A_DRIVE)
        {
            let expected = level(place) & mask(channels);
            let found = match is_output {
                true => self.wires[place].levels(),
                false => self.rig.main_device.inputs(place)[0].into(),
            };
            assert_eq!(found, expected, "{place} of {number:#x}");
        }
        let terminals = (0..CHANNELS.len()).filter(|&place| place != A_DRIVE);
        terminals.map(|place| self.rig.main_device.inputs(place).to_vec()).collect()
    }

    fn exchanged(&self) -> Vec<bool> {
        (0..CHANNELS.len()).map(|it| self.rig.main_device.exchanged(it)).collect()
    }
}

/// Bits of this many channels.
fn mask(channels: u8) -> u64 {
    (1 << channels) - 1
}

/// Numbers without a pattern.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x0123_4567_89AB_CDEF_u64), |it| {
        Some(it.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
}

// feature(main-device): process data of a few bits packed into shared bytes (`packed` in `[bus]`), the same by name; a lost SubDevice leaves its neighbours' bits alone
/// Every channel has the same value with shared bytes and without, for any neighbour values; the
/// datagram is shorter.
#[test]
fn values_are_the_same_packed_and_not() {
    let [mut packed, mut aligned] = [true, false].map(|packed| bench(packed, true));
    for number in numbers().take(200) {
        assert_eq!(packed.exchange(number), aligned.exchange(number));
    }
    let drive = 12 + 12;
    assert_eq!(*aligned.bytes.lock().unwrap(), drive + 3 + 4);
    assert_eq!(*packed.bytes.lock().unwrap(), drive + 2 + 2);
    assert_eq!(packed.rig.main_device.working_counters().count(), 1);
    let working_counters = |it: &Bench| it.rig.main_device.working_counters().collect::<Vec<_>>();
    assert_eq!(working_counters(&packed), working_counters(&aligned));
}

/// The FMMU of each has its start and stop bit, as its ESC shows it.
#[test]
fn fmmus_start_and_stop_within_a_byte() {
    let bench = bench(true, true);
    let own = |place: usize| {
        let mut registers = [0; fmmu::LENGTH as usize];
        bench.rig.segment.sub_devices()[place].peek(register::FMMU, &mut registers);
        let it = fmmu::Fmmu::parse(&registers).unwrap();
        (it.logical_address, it.logical_start_bit, it.logical_end_bit, it.length)
    };
    let (outputs, inputs) = (own(0).0, own(1).0);
    assert_eq!([own(0), own(2)], [(outputs, 0, 3, 1), (outputs, 4, 7, 1)]);
    assert_eq!(own(7), (outputs + 1, 0, 1, 1));
    assert_eq!([own(1), own(4), own(6)], [(inputs, 0, 3, 1), (inputs, 4, 5, 1), (inputs, 6, 7, 1)]);
    assert_eq!((own(5).1, own(5).2), (0, 7), "a whole byte of its own");
}

/// A permanently lost SubDevice costs the others one cycle, and none of their bits.
#[test]
fn lost_sub_device_leaves_neighbouring_bits_unchanged() {
    for lost in (0..CHANNELS.len()).filter(|&place| place != A_DRIVE) {
        let mut bench = bench(true, false);
        bench.exchange(u64::MAX);
        assert!(bench.rig.segment.power_cycle(lost));
        bench.rig.cycle();
        let others: Vec<_> = (0..CHANNELS.len()).map(|place| place != lost).collect();
        for number in numbers().take(100) {
            for place in (0..CHANNELS.len()).filter(|&place| place != lost && place != A_DRIVE) {
                let (is_output, channels) = CHANNELS[place];
                let level = number >> (5 * place) & mask(channels);
                match is_output {
                    true => bench.rig.main_device.outputs_mut(place)[0] = level as u8,
                    false => bench.wires[place].set_levels(level),
                }
            }
            for _ in 0..3 {
                bench.rig.cycle();
                assert_eq!(bench.exchanged(), others, "{lost}");
            }
            for place in (0..CHANNELS.len()).filter(|&place| place != lost && place != A_DRIVE) {
                let (is_output, channels) = CHANNELS[place];
                let found = match is_output {
                    true => bench.wires[place].levels(),
                    false => bench.rig.main_device.inputs(place)[0].into(),
                };
                assert_eq!(found, number >> (5 * place) & mask(channels), "{place} without {lost}");
            }
        }
        let kept = mask(CHANNELS[lost].1);
        let inputs = bench.rig.main_device.inputs(lost);
        assert!(inputs.iter().all(|&it| u64::from(it) == kept), "its inputs stay as they were");
    }
}

/// A SubDevice that returns has its bits again, in the byte it shares.
#[test]
fn one_that_comes_back_has_its_bits_again() {
    for lost in [2, 4] {
        let mut bench = bench(true, true);
        bench.exchange(u64::MAX);
        assert!(bench.rig.segment.power_cycle(lost));
        for _ in 0..1500 {
            bench.rig.cycle();
        }
        let is_back =
            |it: &Event| matches!(it, Event::Recovered { position, .. } if usize::from(*position) == lost);
        assert!(bench.rig.events.iter().any(is_back), "{:?}", bench.rig.events);
        for number in numbers().take(20) {
            bench.exchange(number);
        }
        assert_eq!(bench.rig.main_device.working_counters().count(), 1, "one datagram again");
    }
}
