//! Analogue outputs and inputs, encoders, a force-torque sensor: their SIIs, and their values on a
//! bus.
use crate::rig;

use ethercat::pdo::{PdoField, PdoMapping};
use ethercat::sii::Identity;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{
    AnalogueInputs, AnalogueOutputs, Application, Encoders, ForceTorqueSensor, Level, ServoDescription,
    ServoDrive, Signal, analogue, analogue_output, encoder, force_torque,
};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, SubDevice};
use rig::{Rig, to_op};

const VALVES: usize = 0;
const PROBES: usize = 1;
const ENCODERS: usize = 2;
const FORCES: usize = 3;

fn mappings() -> [PdoMapping; 5] {
    [
        analogue_output::mapping(2),
        analogue::mapping(2),
        encoder::mapping(2),
        force_torque::mapping(),
        default_mapping(),
    ]
}

/// Two valves, two probes on them, an encoder on the drive's shaft and a separate encoder, a
/// sensor, and the drive.
fn bench() -> Rig {
    let device = || DeviceDescription::new(Identity::default(), "device");
    let (wires, shaft) = ([Level::default(), Level::default()], Level::default());
    let follows = |level: &Level, scale| Signal::Level { level: level.clone(), scale };
    let counted = [
        follows(&shaft, 100.0),
        Signal::Ramp { from: 0.0, to: 4_294_967_296.0, frequency: 5000.0 / 4_294_967_296.0 },
    ];
    let measured = [1.5, -2.0, 30.0, 0.25, 0.0, -0.125].map(Signal::Constant);
    let drive =
        ServoDrive::new(&ServoDescription { initial_position: 3.0, ..ServoDescription::new(device()) });
    let applications: [Box<dyn Application>; 5] = [
        Box::new(AnalogueOutputs::new(&device(), &wires).unwrap()),
        Box::new(
            AnalogueInputs::new(&device(), &[follows(&wires[0], 1.0), follows(&wires[1], -2.0)]).unwrap(),
        ),
        Box::new(Encoders::new(&device(), &counted).unwrap()),
        Box::new(ForceTorqueSensor::new(&device(), measured).unwrap()),
        Box::new(drive.unwrap().with_shaft(shaft)),
    ];
    let devices = mappings().into_iter().zip(applications).map(|(mapping, application)| {
        let sii = with_coe(Identity::default(), "device", mapping).image().emit();
        SubDevice::new(EscDescription::default(), sii, application)
    });
    Rig::new(to_op(), devices.collect())
}

/// Bits of an input, sign-extended from 32 bits.
fn input(rig: &Rig, position: usize, index: u16, sub_index: u8) -> i64 {
    let field = mappings()[position].input(index, sub_index).unwrap();
    let raw = field.read(rig.main_device.inputs(position));
    if field.bit_length == 32 { i64::from(raw as u32 as i32) } else { raw as i64 }
}

fn set(rig: &mut Rig, position: usize, index: u16, sub_index: u8, value: u64) {
    let field: PdoField = mappings()[position].output(index, sub_index).unwrap();
    field.write(rig.main_device.outputs_mut(position), value);
}

fn cycles(rig: &mut Rig, number: usize) {
    for _ in 0..number {
        assert!(rig.cycle().all_fresh);
    }
}

// feature(signals): types from the SII, where it says signed, float or double
#[test]
fn the_sii_gives_the_mapping_with_its_names_and_types() {
    let mut rig = bench();
    rig.run_up();
    for (found, expected) in rig.main_device.sub_devices().iter().zip(mappings()) {
        assert_eq!(found.mapping, expected);
    }
    let entry = &mappings()[FORCES].inputs[0].entries[2];
    assert_eq!(
        (entry.index, entry.sub_index, entry.data_type, entry.name.as_str()),
        (0x6000, 3, 0x04, "Fz")
    );
    let encoder = &mappings()[ENCODERS];
    assert_eq!(encoder.inputs.iter().map(|pdo| pdo.index).collect::<Vec<_>>(), [0x1A00, 0x1A04]);
    assert_eq!(encoder.input(0x6010, 0x11), Some(PdoField { bit_offset: 96, bit_length: 32 }));
    assert_eq!(encoder.output(0x7010, 0x11), Some(PdoField { bit_offset: 64, bit_length: 32 }));
}

// feature(signals): simulated terminals: analogue outputs and inputs, encoders on shafts, a force-torque sensor
#[test]
fn an_analogue_output_is_measured_where_its_wire_ends() {
    let mut rig = bench();
    rig.run_up();
    set(&mut rig, VALVES, 0x7000, 1, 12_345);
    set(&mut rig, VALVES, 0x7010, 1, -100_i16 as u16 as u64);
    cycles(&mut rig, 4);
    assert_eq!(input(&rig, PROBES, 0x6000, 0x11), 12_345);
    assert_eq!(input(&rig, PROBES, 0x6010, 0x11), 200);
}

// feature(signals): simulated terminals: analogue outputs and inputs, encoders on shafts, a force-torque sensor
#[test]
fn an_encoder_counts_with_its_shaft_or_by_itself_and_is_set() {
    let mut rig = bench();
    rig.run_up();
    cycles(&mut rig, 4);
    // The shaft is at 3 rad: the counter began there.
    assert_eq!(input(&rig, ENCODERS, 0x6000, 0x11), 0);
    let before = input(&rig, ENCODERS, 0x6010, 0x11);
    cycles(&mut rig, 100);
    let counted = input(&rig, ENCODERS, 0x6010, 0x11) - before;
    assert!((495..=505).contains(&counted), "{counted} counts in 100 ms at 5000 a second");
    set(&mut rig, ENCODERS, 0x7000, 0x11, 77);
    set(&mut rig, ENCODERS, 0x7000, 0x03, 1);
    cycles(&mut rig, 4);
    assert_eq!(input(&rig, ENCODERS, 0x6000, 0x11), 77);
    assert_eq!((input(&rig, ENCODERS, 0x6000, 0x03), input(&rig, ENCODERS, 0x6010, 0x03)), (1, 0));
}

// feature(signals): simulated terminals: analogue outputs and inputs, encoders on shafts, a force-torque sensor
#[test]
fn a_force_torque_sensor_measures_six_values_and_takes_a_bias() {
    let mut rig = bench();
    rig.run_up();
    let measured = |rig: &Rig| [1, 2, 3, 4, 5, 6].map(|sub| input(rig, FORCES, 0x6000, sub));
    cycles(&mut rig, 4);
    let counts = [1_500_000, -2_000_000, 30_000_000, 250_000, 0, -125_000];
    assert_eq!(measured(&rig), counts);
    let samples = input(&rig, FORCES, 0x6020, 0);
    set(&mut rig, FORCES, 0x7010, 1, 1);
    cycles(&mut rig, 4);
    assert_eq!(measured(&rig), [0; 6]);
    assert!(input(&rig, FORCES, 0x6020, 0) > samples && input(&rig, FORCES, 0x6010, 0) == 0);
    set(&mut rig, FORCES, 0x7010, 1, 1 << 2);
    cycles(&mut rig, 4);
    assert_eq!(measured(&rig), counts);
}
