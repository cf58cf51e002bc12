//! Analogue outputs and inputs, encoders, a force-torque sensor: their SIIs, and their values on a
//! bus.
//!
//! Input terminals without a mailbox: their process data stand in SyncManager 0, where others have
//! mail.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ethercat::al::AlState;
use ethercat::main_device::BringUpPhase;
use ethercat::pdo::{PdoField, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::{digital_inputs, with_coe};
use onbeat_simulator::application::{
    AnalogueInputs, AnalogueOutputs, Application, Encoders, ForceTorqueSensor, Level, ProcessDataLengths,
    ServoDescription, ServoDrive, Signal, analogue, analogue_output, encoder, force_torque,
};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, SubDevice};
use rig::{PERIOD, Rig, to_op};

use crate::rig;

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

/// Eight inputs with constant levels, whose steps are counted.
struct Levels {
    rests: bool,
    steps: Arc<AtomicU64>,
}

impl Application for Levels {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 0, inputs: 1 }
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        inputs.fill(0x5A);
    }

    fn rests(&self) -> bool {
        self.rests
    }
}

/// All replies and registers that a MainDevice sees of such a terminal, and the steps of a second
/// without frames.
fn life(rests: bool) -> (Vec<Vec<u8>>, u64) {
    let (seen, steps) = (Rc::new(RefCell::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let sii = digital_inputs(Identity::default(), "inputs", 8).image().emit();
    let levels = Levels { rests, steps: Arc::clone(&steps) };
    let mut rig = Rig::new(to_op(), vec![SubDevice::from_sii(&sii, Box::new(levels))]);
    let replies = Rc::clone(&seen);
    rig.tamper = Some(Box::new(move |bytes| replies.borrow_mut().push(bytes.to_vec())));
    let note = |rig: &mut Rig| {
        let mut registers = vec![0; 0x1800];
        rig.segment.sub_device_mut(0).unwrap().peek(0, &mut registers);
        seen.borrow_mut().push(registers);
    };
    rig.run_up();
    for cycles in [1, 2, 50] {
        (0..cycles).for_each(|_| assert!(rig.cycle().all_fresh));
        note(&mut rig);
    }
    let before = steps.load(Ordering::Relaxed);
    rig.pass_to(rig.now + 1000 * PERIOD, false);
    let made = steps.load(Ordering::Relaxed) - before;
    note(&mut rig);
    (0..5).for_each(|_| _ = rig.cycle());
    rig.main_device.request_state(AlState::Init);
    rig.pump_to(BringUpPhase::Down);
    note(&mut rig);
    rig.tamper = None;
    drop(rig);
    (Rc::try_unwrap(seen).unwrap().into_inner(), made)
}

#[test]
fn inputs_without_a_mailbox_rest_while_no_frame_comes() {
    let (resting, made) = life(true);
    let (stepped, all) = life(false);
    assert!(made < 10 && all > 1000, "{made} steps of {all}");
    assert!(resting == stepped, "a reply or a register shows that steps were left out");
}
