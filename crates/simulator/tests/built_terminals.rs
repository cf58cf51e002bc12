//! Terminals as they are built, on a bus: identity, SyncManagers and PDOs of their SIIs, and their
//! values.
use crate::rig;

use std::time::Duration;

use ethercat::main_device::{LatchEdge, LatchInput, SubDeviceConfiguration, Sync0};
use ethercat::pdo::PdoField;
use ethercat::sii::Image;
use onbeat_simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use onbeat_simulator::application::{
    AnalogueInputs, AnalogueOutputs, Application, Encoders, Level, SerialLines, Signal, TimeStampedInputs,
    terminal,
};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, SubDevice, TerminalModel};
use rig::real;
use rig::{PERIOD, Rig, described, to_op};

const TERMINALS: [TerminalModel; 7] = [
    TerminalModel::El2004,
    TerminalModel::El1008,
    TerminalModel::El1252,
    TerminalModel::El4034,
    TerminalModel::El3104,
    TerminalModel::El5101,
    TerminalModel::El6022,
];

/// Outputs wired to both digital inputs, analogue outputs to inputs, an encoder at 1000 counts a
/// second, two joined lines.
fn bench() -> Rig {
    let (wires, levels) = (Wires::new(), [(); 4].map(|()| Level::default()));
    let measured = levels.each_ref().map(|level| Signal::Level { level: level.clone(), scale: 2.0 });
    let counts = Signal::Ramp { from: 0.0, to: 4_294_967_296.0, frequency: 1000.0 / 4_294_967_296.0 };
    let devices = TERMINALS.map(|terminal| {
        let image = terminal::image(terminal, 0);
        let device = DeviceDescription::from_sii(&image);
        let application: Box<dyn Application> = match terminal {
            TerminalModel::El2004 => Box::new(DigitalOutputs::new(4, wires.clone()).unwrap()),
            TerminalModel::El1008 => Box::new(DigitalInputs::new(8, wires.clone()).unwrap()),
            TerminalModel::El1252 => Box::new(TimeStampedInputs::new(wires.clone())),
            TerminalModel::El4034 => Box::new(AnalogueOutputs::new(&device, &levels).unwrap()),
            TerminalModel::El3104 => Box::new(AnalogueInputs::el3104(&device, &measured).unwrap()),
            TerminalModel::El5101 => Box::new(Encoders::el5101(&device, counts.clone()).unwrap()),
            TerminalModel::El3702 | TerminalModel::El4732 => panic!("they need SYNC1: see oversampling.rs"),
            TerminalModel::El6022 => Box::new(SerialLines::new(&device)),
        };
        SubDevice::new(EscDescription::of(None, Some(&image)), image.emit(), application)
    });
    let mut rig = Rig::new(to_op(), devices.into());
    rig.run_up();
    rig
}

fn position(terminal: TerminalModel) -> usize {
    TERMINALS.iter().position(|it| *it == terminal).unwrap()
}

fn input(rig: &Rig, terminal: TerminalModel, index: u16, sub_index: u8) -> u64 {
    let field = terminal::mapping(terminal).input(index, sub_index).unwrap();
    field.read(rig.main_device.inputs(position(terminal)))
}

fn set(rig: &mut Rig, terminal: TerminalModel, index: u16, sub_index: u8, value: u64) {
    let field: PdoField = terminal::mapping(terminal).output(index, sub_index).unwrap();
    field.write(rig.main_device.outputs_mut(position(terminal)), value);
}

fn cycles(rig: &mut Rig, number: usize) {
    for _ in 0..number {
        assert!(rig.cycle().all_fresh);
    }
}

// feature(signals): simulated terminals as they are built: EL1008, EL1252, EL2004, EL3104, EL4034, EL5101, EL6022
#[test]
fn they_are_found_as_they_are_built_and_get_to_op() {
    let rig = bench();
    let bytes = [(1, 0), (0, 1), (0, 35), (8, 0), (0, 16), (6, 10), (48, 48)];
    for ((found, terminal), (outputs, inputs)) in
        rig.main_device.sub_devices().iter().zip(TERMINALS).zip(bytes)
    {
        let sii = found.sii.as_ref().unwrap();
        assert_eq!(
            (sii.header.identity(), sii.name()),
            (terminal::identity(terminal), terminal::name(terminal))
        );
        assert_eq!(found.mapping, terminal::mapping(terminal));
        assert_eq!(rig.main_device.inputs(position(terminal)).len(), inputs, "{terminal:?}");
        let bits: usize = found.mapping.output_bits();
        assert_eq!(bits.div_ceil(8), outputs, "{terminal:?}");
    }
    let small = rig.main_device.sub_devices()[position(TerminalModel::El1252)].information;
    assert_eq!((small.controller_type, small.fmmu_count), (0x12, 3), "an ET1200");
}

// feature(signals): simulated terminals as they are built: EL1008, EL1252, EL2004, EL3104, EL4034, EL5101, EL6022
#[test]
fn wires_levels_and_counts_come_in_where_they_are_mapped() {
    let mut rig = bench();
    set(&mut rig, TerminalModel::El2004, 0x7020, 1, 1);
    set(&mut rig, TerminalModel::El4034, 0x7010, 1, 1000);
    set(&mut rig, TerminalModel::El4034, 0x7030, 1, 20_000);
    cycles(&mut rig, 4);
    assert_eq!([0x6010, 0x6020].map(|index| input(&rig, TerminalModel::El1008, index, 1)), [0, 1]);
    let analogue = |index, sub| input(&rig, TerminalModel::El3104, index, sub);
    assert_eq!((analogue(0x6010, 0x11), analogue(0x6010, 0x02), analogue(0x6010, 0x07)), (2000, 0, 0));
    // Twice 20 000 digits are too many: overrange, and an error.
    assert_eq!((analogue(0x6030, 0x11), analogue(0x6030, 0x02), analogue(0x6030, 0x07)), (0x7FFF, 1, 1));
    let before = input(&rig, TerminalModel::El5101, 0x6010, 0x11);
    cycles(&mut rig, 100);
    let counted = input(&rig, TerminalModel::El5101, 0x6010, 0x11) - before;
    assert!((98..=102).contains(&counted), "{counted} counts in 100 ms at 1000 a second");
}

// feature(signals): simulated terminals as they are built: EL1008, EL1252, EL2004, EL3104, EL4034, EL5101, EL6022
#[test]
fn el1252_stamps_edges_of_its_inputs() {
    let mut rig = bench();
    let here = position(TerminalModel::El1252);
    cycles(&mut rig, 20);
    let times =
        |rig: &Rig| [0xB0, 0xB8, 0xC0, 0xC8].map(|sub| input(rig, TerminalModel::El1252, 0x1D09, sub));
    let before = times(&rig);
    let edge = |rig: &mut Rig, high| {
        set(rig, TerminalModel::El2004, 0x7000, 1, high);
        let from = rig.segment.sub_devices()[here].system_time(rig.now);
        cycles(rig, 5);
        from..from + 3_000_000
    };
    let rose = edge(&mut rig, 1);
    let stamps = times(&rig);
    assert!(rose.contains(&stamps[0]) && stamps[1..] == before[1..], "{rose:?}: {stamps:?}");
    assert_eq!(input(&rig, TerminalModel::El1252, 0x6000, 1), 1);
    let fell = edge(&mut rig, 0);
    let later = times(&rig);
    assert!(later[0] == stamps[0] && fell.contains(&later[1]), "{fell:?}: {later:?}");
}

/// Digital outputs are plain logic: their edges occur with frames, also between the steps of the
/// simulation.
// feature(signals): simulated terminals as they are built: EL1008, EL1252, EL2004, EL3104, EL4034, EL5101, EL6022
#[test]
fn el1252_stamps_outputs_when_their_frame_arrives() {
    let mut rig = bench();
    rig.period = Duration::from_micros(1_130);
    let mut rose: Vec<u64> = (0..40)
        .map(|cycle| {
            set(&mut rig, TerminalModel::El2004, 0x7000, 1, cycle % 2);
            cycles(&mut rig, 1);
            input(&rig, TerminalModel::El1252, 0x1D09, 0xB0)
        })
        .collect();
    rose.dedup();
    let gaps: Vec<u64> = rose.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 15 && gaps.iter().all(|gap| gap.abs_diff(2_260_000) < 1_000), "{gaps:?}");
}

#[test]
fn a_message_passes_from_one_serial_line_to_the_other() {
    let mut rig = bench();
    for (byte, letter) in (0..).zip(*b"onbeat") {
        set(&mut rig, TerminalModel::El6022, 0x7000, 0x11 + byte, letter.into());
    }
    set(&mut rig, TerminalModel::El6022, 0x7001, 1, 6 << 8 | 1);
    let (mut received, mut accepted) = (Vec::new(), 0);
    for _ in 0..40 {
        cycles(&mut rig, 1);
        let status = input(&rig, TerminalModel::El6022, 0x6011, 1);
        if status & 2 != accepted {
            let length = (status >> 8) as u8;
            received
                .extend((0..length).map(|it| input(&rig, TerminalModel::El6022, 0x6010, 0x11 + it) as u8));
            accepted = status & 2;
            set(&mut rig, TerminalModel::El6022, 0x7011, 1, accepted);
        }
    }
    assert_eq!(received, b"onbeat");
    assert_eq!(input(&rig, TerminalModel::El6022, 0x6001, 1) & 1, 1, "taken");
}

// feature(simulator): supervision of SYNC0 and process data: AL status codes 0x1A, 0x2C, 0x2D, 0x30, 0x35, 0x36
#[test]
fn a_terminal_without_outputs_follows_sync0_too() {
    let image = terminal::image(TerminalModel::El3104, 0);
    let signals = [1.0, 2.0, 3.0, 4.0].map(Signal::Constant);
    let application = AnalogueInputs::el3104(&DeviceDescription::from_sii(&image), &signals).unwrap();
    let device =
        SubDevice::new(EscDescription::of(None, Some(&image)), image.emit(), Box::new(application));
    let sync0 = Sync0 { cycle: PERIOD, shift: Duration::from_micros(500) };
    let configuration = SubDeviceConfiguration { sync0: Some(sync0), ..SubDeviceConfiguration::default() };
    let mut rig = Rig::new(described(vec![configuration]), vec![device]);
    rig.run_up();
    cycles(&mut rig, 200);
    let field = terminal::mapping(TerminalModel::El3104).input(0x6030, 0x11).unwrap();
    assert_eq!(field.read(rig.main_device.inputs(0)), 4);
}

#[test]
fn an_el2004_is_built_as_a_real_one() {
    let Some(real) = real("el2004") else { return };
    let ours = terminal::image(TerminalModel::El2004, 0);
    let (found, expected) = (ours.header.identity(), real.header.identity());
    assert_eq!((found.vendor_id, found.product_code), (expected.vendor_id, expected.product_code));
    assert_eq!(ours.sync_managers(), real.sync_managers());
    assert_eq!(ours.fmmus(), real.fmmus());
    assert_eq!(ours.header.bytes()[..8], real.header.bytes()[..8], "words 0 to 3");
    assert_eq!(ours.general().unwrap().physical_ports, real.general().unwrap().physical_ports);
    let entries = |image: &Image| -> Vec<_> {
        let entries = image.outputs().into_iter().flat_map(|pdo| pdo.entries);
        entries.map(|it| (it.index, it.sub_index, it.bit_length)).collect()
    };
    assert_eq!(entries(&ours), entries(&real));
}

/// A level set from outside stays, in the process data too, until the wire changes: one edge, and
/// none back.
#[test]
fn a_latch_input_of_an_el1252_is_set_from_outside() {
    let mut rig = bench();
    let place = position(TerminalModel::El1252);
    let read = |rig: &mut Rig| {
        assert!(rig.main_device.read_latches(place));
        cycles(rig, 5);
        rig.main_device.sub_devices()[place].latches.unwrap().inputs[1]
    };
    assert_eq!(read(&mut rig), LatchInput::default());
    assert!(rig.segment.set_latch(place, 1, true));
    cycles(&mut rig, 5);
    let set = read(&mut rig);
    assert!(set.high && set.rising.is_new && set.falling == LatchEdge::default(), "{set:?}");
    assert_eq!(input(&rig, TerminalModel::El1252, 0x6000, 2), 1);
    set_wire(&mut rig, true);
    assert_eq!(read(&mut rig).falling, LatchEdge::default(), "the wire is high, too");
    set_wire(&mut rig, false);
    let fallen = read(&mut rig);
    assert!(!fallen.high && fallen.falling.is_new, "{fallen:?}");
    assert_eq!(input(&rig, TerminalModel::El1252, 0x6000, 2), 0);
}

/// Sets the wire to the second input of both input terminals.
fn set_wire(rig: &mut Rig, high: bool) {
    set(rig, TerminalModel::El2004, 0x7010, 1, high.into());
    cycles(rig, 3);
}
