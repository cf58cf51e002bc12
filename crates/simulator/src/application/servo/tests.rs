//! The drive as a MainDevice sees it: process data every millisecond, SDOs, and its emergencies.

use core::f64::consts::TAU;
use std::collections::VecDeque;

use ethercat::al::AlState;
use ethercat::cia402::{Controlword, State, Statusword, object};
use ethercat::pdo::PdoEntry;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::coe::{Emergency, SdoPayload, SdoRequest};
use proptest::prelude::*;

use super::*;
use crate::application::{
    Application, ProcessDataLengths, Replies, StateChange, Sync0Configuration, Sync0Event,
};

mod axes;
mod homing;
mod modes;
mod scales;
mod stops;

const MILLISECOND: Duration = Duration::from_millis(1);
const COUNTS: f64 = (1 << 20) as f64;

/// A drive, its process data and the time.
struct Bench {
    drive: ServoDrive,
    now: Instant,
    state: AlState,
    outputs: Outputs,
    emergencies: Vec<Emergency>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Outputs {
    controlword: u16,
    position: i32,
    velocity: i32,
    torque: i16,
}

#[derive(Clone, Copy, Debug)]
struct Inputs {
    statusword: Statusword,
    position: i32,
    velocity: i32,
    torque: i16,
}

impl Inputs {
    fn state(&self) -> Option<State> {
        self.statusword.state()
    }
}

impl Outputs {
    fn emit(&self) -> Vec<u8> {
        let mut bytes = self.controlword.to_le_bytes().to_vec();
        bytes.extend(self.position.to_le_bytes());
        bytes.extend(self.velocity.to_le_bytes());
        bytes.extend(self.torque.to_le_bytes());
        bytes
    }
}

fn inputs(bytes: &[u8]) -> Inputs {
    let long = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let short = |at: usize| i16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
    Inputs {
        statusword: Statusword(short(0) as u16),
        position: long(2),
        velocity: long(6),
        torque: short(10),
    }
}

fn description() -> ServoDescription {
    ServoDescription::new(DeviceDescription::new(Identity::default(), "drive"))
}

impl Bench {
    /// A bench in Op, with all outputs zero.
    fn new(description: &ServoDescription) -> Self {
        let drive = ServoDrive::new(description).expect("a drive that can be built");
        let (now, state) = (Instant::from_nanos(1_000_000_000), AlState::Init);
        let mut bench = Self { drive, now, state, outputs: Outputs::default(), emergencies: Vec::new() };
        for to in [AlState::PreOp, AlState::SafeOp, AlState::Op] {
            bench.enter(to, None);
        }
        bench
    }

    fn enter(&mut self, to: AlState, sync0: Option<Sync0Configuration>) {
        let lengths = self.drive.process_data_lengths();
        let change = StateChange { from: self.state, to, lengths, sync0 };
        self.drive.enter(&change).expect("the drive refuses no state");
        self.state = to;
    }

    /// Runs one cycle of a millisecond, with four steps of the drive.
    fn cycle(&mut self) -> Inputs {
        let mut bytes = [0; 12];
        let outputs = self.outputs.emit();
        for _ in 0..4 {
            self.now = self.now + MILLISECOND / 4;
            let outputs = (self.state == AlState::Op).then_some(outputs.as_slice());
            self.drive.step(self.now, outputs, &mut bytes);
        }
        let mut queue = VecDeque::new();
        self.drive.poll_coe(&mut Replies::new(&mut queue, 122));
        self.emergencies.extend(queue.iter().filter_map(|message| Emergency::parse(message).ok()));
        inputs(&bytes)
    }

    fn cycles(&mut self, count: u32) -> Inputs {
        let mut last = self.cycle();
        for _ in 1..count {
            last = self.cycle();
        }
        last
    }

    /// Walks the state machine up, holding the actual position.
    fn enable(&mut self) -> Inputs {
        self.outputs.position = self.cycle().position;
        for controlword in [Controlword::SHUTDOWN, Controlword::SWITCH_ON, Controlword::ENABLE_OPERATION] {
            self.outputs.controlword = controlword.0;
            self.cycles(5);
        }
        let inputs = self.cycle();
        assert_eq!(inputs.state(), Some(State::OperationEnabled), "{:?}", self.emergencies);
        inputs
    }

    fn write(&mut self, index: u16, sub_index: u8, bytes: &[u8]) {
        let payload = SdoPayload::fitting(bytes, 122);
        let request = SdoRequest::InitiateDownload { index, sub_index, complete_access: false, payload };
        let mut message = [0; 122];
        let length = request.emit(&mut message).expect("it fits");
        let mut queue = VecDeque::new();
        assert_eq!(self.drive.coe(&message[..length], &mut Replies::new(&mut queue, 122)), Ok(()));
        let abort = SdoRequest::parse(&queue[0]);
        assert!(abort.is_err(), "{abort:?}");
    }

    fn object(&self, index: u16) -> i64 {
        self.drive.dictionary().value(index, 0).expect("the object exists")
    }
}

#[test]
fn drive_reaches_operation_enabled_step_by_step_without_moving() {
    let description =
        ServoDescription { initial_position: 3.0, transition_time: 4 * MILLISECOND, ..description() };
    let mut bench = Bench::new(&description);
    assert_eq!(bench.cycle().state(), Some(State::NotReadyToSwitchOn));
    let start = bench.cycles(10);
    assert_eq!(start.state(), Some(State::SwitchOnDisabled));
    assert_eq!(start.position, (3.0 / TAU * COUNTS) as i32);
    bench.outputs = Outputs { controlword: 0x06, position: start.position, ..Outputs::default() };
    let mut seen = Vec::new();
    for cycle in 0..20 {
        let state = bench.cycle().state().expect("a state");
        if seen.last().is_none_or(|(_, last)| *last != state) {
            seen.push((cycle, state));
        }
        bench.outputs.controlword = match state {
            State::ReadyToSwitchOn => 0x07,
            State::SwitchedOn | State::OperationEnabled => 0x0F,
            _ => 0x06,
        };
    }
    let states: Vec<_> = seen.iter().map(|(_, state)| *state).collect();
    let climb = [State::ReadyToSwitchOn, State::SwitchedOn, State::OperationEnabled];
    assert!(states.ends_with(&climb), "{states:?}");
    let cycles: Vec<_> = seen.iter().map(|(cycle, _)| cycle).collect();
    assert!(seen.windows(2).skip(1).all(|pair| pair[1].0 - pair[0].0 >= 4), "{cycles:?}");
    let end = bench.cycles(100);
    assert!((end.position - start.position).abs() <= 1, "{end:?}");
    assert!(end.statusword.drive_follows_command());
}

// feature(simulator): servo drive in CSP, CSV, CST on a plant
#[test]
fn csp_follows_a_sine_within_bounds() {
    let mut bench = Bench::new(&description());
    let start = bench.enable().position;
    let mut worst = 0;
    let mut farthest = 0;
    let mut wanted = start;
    for cycle in 0..2000 {
        let time = f64::from(cycle) * 1e-3;
        // At most two rad/s, with a ramp from rest.
        let amplitude = COUNTS / TAU * (time / 0.5).min(1.0);
        let next = start + (amplitude * (TAU * 0.5 * time).sin()) as i32;
        bench.outputs.position = next;
        let inputs = bench.cycle();
        // The position at the end of this cycle equals the target at its start, less the lag.
        worst = worst.max((inputs.position - wanted).abs());
        farthest = farthest.max((inputs.position - start).abs());
        assert_eq!(inputs.state(), Some(State::OperationEnabled), "cycle {cycle}");
        wanted = next;
    }
    assert!(f64::from(farthest) > 0.95 * COUNTS / TAU, "it moved by {farthest} counts");
    // A millisecond of travel at top speed is 524 counts.
    assert!(worst < 700, "{worst} counts off, {} rad", f64::from(worst) / COUNTS * TAU);
}

// feature(simulator): servo drive in CSP, CSV, CST on a plant
#[test]
fn csv_reaches_its_velocity_under_load_and_cst_accelerates() {
    let mut bench = Bench::new(&description());
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    assert_eq!(bench.object(object::MODES_OF_OPERATION_DISPLAY), 8, "not before the next step");
    bench.enable();
    assert_eq!(bench.object(object::MODES_OF_OPERATION_DISPLAY), 9);
    bench.write(SIMULATION, 1, &500_i32.to_le_bytes());
    bench.outputs.velocity = COUNTS as i32;
    let inputs = bench.cycles(300);
    assert!((f64::from(inputs.velocity) / COUNTS - 1.0).abs() < 0.01, "{inputs:?}");
    // Load, Coulomb and viscous friction, in thousandths of 2.4 N m.
    let expected = (0.5 + 0.02 + 1e-3 * TAU) / 2.4 * 1000.0;
    assert!((f64::from(inputs.torque) - expected).abs() < 5.0, "{inputs:?}, {expected} expected");

    bench.write(SIMULATION, 1, &0_i32.to_le_bytes());
    bench.write(object::MODES_OF_OPERATION, 0, &[10]);
    bench.outputs.torque = -100;
    let before = bench.cycles(2).velocity;
    let after = bench.cycles(10);
    assert_eq!((after.torque, after.state()), (-100, Some(State::OperationEnabled)));
    assert!(after.velocity < before, "{before} then {after:?}");
}

// feature(simulator): a far target at enabling is a fault, without a move
#[test]
fn enabling_with_far_target_is_following_error_without_motion() {
    let mut bench = Bench::new(&ServoDescription { initial_position: 1.0, ..description() });
    let start = bench.cycles(5).position;
    for controlword in [0x06, 0x07, 0x0F] {
        bench.outputs.controlword = controlword;
        bench.cycles(5);
    }
    let inputs = bench.cycle();
    assert_eq!(inputs.state(), Some(State::Fault));
    assert!((inputs.position - start).abs() <= 1, "{start} then {inputs:?}");
    let expected = Emergency { error_code: FOLLOWING_ERROR, error_register: 0x21, data: [0; 5] };
    assert_eq!(bench.emergencies, [expected]);
    assert_eq!(bench.object(object::ERROR_CODE), i64::from(FOLLOWING_ERROR));
}

#[test]
fn a_jump_in_operation_faults_stops_and_can_be_reset() {
    let mut bench = Bench::new(&description());
    let start = bench.enable().position;
    bench.outputs.position = start + COUNTS as i32;
    let inputs = bench.cycles(3);
    assert!(matches!(inputs.state(), Some(State::FaultReactionActive | State::Fault)), "{inputs:?}");
    let inputs = bench.cycles(300);
    assert_eq!(inputs.state(), Some(State::Fault));
    assert_eq!(inputs.velocity, 0);
    bench.outputs.controlword = 0x80;
    assert_eq!(bench.cycles(2).state(), Some(State::SwitchOnDisabled));
    let codes: Vec<_> = bench.emergencies.iter().map(|emergency| emergency.error_code).collect();
    assert_eq!(codes, [FOLLOWING_ERROR, 0]);
    assert_eq!(bench.object(object::ERROR_CODE), 0);
    bench.outputs.controlword = 0;
    bench.enable();
}

#[test]
fn quick_stop_decelerates_at_its_rate_then_disables() {
    let mut bench = Bench::new(&description());
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    let deceleration = 1000.0 * COUNTS;
    bench.write(object::QUICK_STOP_DECELERATION, 0, &(deceleration as u32).to_le_bytes());
    bench.enable();
    bench.outputs.velocity = (20.0 * COUNTS) as i32;
    let before = bench.cycles(300);
    bench.outputs.controlword = Controlword::QUICK_STOP.0;
    bench.cycle();
    let mut cycles = 1;
    let mut last = before.velocity;
    loop {
        let inputs = bench.cycle();
        cycles += 1;
        assert!(inputs.velocity < last.max(20_000), "it only slows down: {last} then {inputs:?}");
        last = inputs.velocity;
        match inputs.state() {
            Some(State::QuickStopActive) => assert!(cycles < 30, "{inputs:?}"),
            state => {
                assert_eq!(state, Some(State::SwitchOnDisabled));
                break;
            }
        }
    }
    assert!((19..=25).contains(&cycles), "20 rev/s at 1000 rev/s^2 take 20 ms, not {cycles}");
    assert!(bench.emergencies.is_empty());
}

#[test]
fn quick_stop_option_6_holds_until_voltage_is_disabled() {
    let mut bench = Bench::new(&description());
    bench.write(object::QUICK_STOP_OPTION_CODE, 0, &6_i16.to_le_bytes());
    bench.enable();
    bench.outputs.controlword = Controlword::QUICK_STOP.0;
    let inputs = bench.cycles(50);
    assert_eq!(inputs.state(), Some(State::QuickStopActive));
    assert!(inputs.statusword.target_reached());
    bench.outputs.controlword = Controlword::DISABLE_VOLTAGE.0;
    assert_eq!(bench.cycles(2).state(), Some(State::SwitchOnDisabled));
}

#[test]
fn halt_stops_and_release_resumes() {
    let mut bench = Bench::new(&description());
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    bench.enable();
    bench.outputs.velocity = COUNTS as i32;
    bench.cycles(100);
    bench.outputs.controlword = Controlword::ENABLE_OPERATION.with_halt().0;
    let inputs = bench.cycles(200);
    assert_eq!(inputs.state(), Some(State::OperationEnabled));
    assert!(inputs.statusword.target_reached() && !inputs.statusword.drive_follows_command());
    assert!(f64::from(inputs.velocity).abs() < 0.01 * COUNTS, "{inputs:?}");
    bench.outputs.controlword = Controlword::ENABLE_OPERATION.0;
    let inputs = bench.cycles(200);
    assert!(inputs.statusword.drive_follows_command());
    assert!((f64::from(inputs.velocity) / COUNTS - 1.0).abs() < 0.01, "{inputs:?}");
}

#[test]
fn leaving_op_while_enabled_is_communication_fault_and_brakes() {
    let mut bench = Bench::new(&description());
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    bench.enable();
    bench.outputs.velocity = (5.0 * COUNTS) as i32;
    bench.cycles(200);
    bench.enter(AlState::SafeOp, None);
    let inputs = bench.cycles(300);
    assert_eq!((inputs.state(), inputs.velocity), (Some(State::Fault), 0));
    let expected = Emergency { error_code: COMMUNICATION_LOSS, error_register: 0x11, data: [0; 5] };
    assert_eq!(bench.emergencies, [expected]);
    // Disabled in order, the drive leaves Op without a fault.
    let mut bench = Bench::new(&description());
    bench.enable();
    bench.outputs.controlword = 0;
    bench.cycles(2);
    bench.enter(AlState::SafeOp, None);
    assert_eq!(bench.cycles(10).state(), Some(State::SwitchOnDisabled));
    assert!(bench.emergencies.is_empty());
}

#[test]
fn faults_and_power_can_be_simulated_over_the_bus() {
    let mut bench = Bench::new(&description());
    bench.enable();
    bench.write(SIMULATION, 3, &[0]);
    let inputs = bench.cycles(10);
    assert_eq!(inputs.state(), Some(State::Fault));
    assert!(!inputs.statusword.voltage_enabled());
    bench.write(SIMULATION, 3, &[1]);
    bench.outputs.controlword = 0x80;
    bench.cycles(5);
    bench.outputs.controlword = 0;
    bench.enable();
    bench.write(SIMULATION, 2, &0x4210_u16.to_le_bytes());
    bench.cycles(10);
    let seen: Vec<_> = bench.emergencies.iter().map(|it| (it.error_code, it.error_register)).collect();
    assert_eq!(seen, [(UNDER_VOLTAGE, 0x05), (0, 0), (0x4210, 0x09)]);
}

#[test]
fn with_sync0_set_points_count_and_inputs_stand_at_its_events() {
    let mut bench = Bench::new(&description());
    bench.enter(AlState::SafeOp, None);
    let sync0 = Some(Sync0Configuration { cycle_nanoseconds: 1_000_000 });
    bench.enter(AlState::Op, sync0);
    let start = bench.enable_with_sync0();
    let mut line = start;
    for _ in 0..200 {
        line += 100;
        bench.outputs.position = line;
        let at_event = bench.sync0_cycle();
        // Between events, inputs stand still.
        let mut bytes = [0x5A; 12];
        bench.drive.step(bench.now + MILLISECOND / 2, Some(&bench.outputs.emit()), &mut bytes);
        assert_eq!(bytes, [0x5A; 12]);
        assert!((at_event.position - line).abs() < 300, "{line} {at_event:?}");
    }
}

impl Bench {
    fn sync0_cycle(&mut self) -> Inputs {
        self.now = self.now + MILLISECOND;
        let mut bytes = [0; 12];
        let event = Sync0Event { now: self.now, system_time: self.now.as_nanos() };
        let outputs = self.outputs.emit();
        self.drive.sync0(event, Some(&outputs), &mut bytes);
        inputs(&bytes)
    }

    fn enable_with_sync0(&mut self) -> i32 {
        let position = self.sync0_cycle().position;
        self.outputs.position = position;
        for controlword in [0x06, 0x07, 0x0F] {
            self.outputs.controlword = controlword;
            for _ in 0..5 {
                self.sync0_cycle();
            }
        }
        assert_eq!(self.sync0_cycle().state(), Some(State::OperationEnabled));
        position
    }
}

#[test]
fn custom_mapping_is_used() {
    let mut description = description();
    let entry = |value| PdoEntry::from_mapping_value(value);
    description.mapping.outputs[0].entries =
        vec![entry(0x6040_0010), entry(0x6060_0008), entry(0x0000_0008), entry(0x3000_0310)];
    description.mapping.inputs[0].entries =
        vec![entry(0x6061_0008), entry(0x603F_0010), entry(0x60FD_0020)];
    let mut drive = ServoDrive::new(&description).expect("a mapping that fits");
    assert_eq!(drive.process_data_lengths(), ProcessDataLengths { outputs: 6, inputs: 7 });
    let lengths = drive.process_data_lengths();
    for (from, to) in [(AlState::PreOp, AlState::SafeOp), (AlState::SafeOp, AlState::Op)] {
        drive.enter(&StateChange { from, to, lengths, sync0: None }).expect("accepted");
    }
    let mut bytes = [0; 7];
    // Velocity mode is not supported: the display stays.
    drive.step(Instant::EPOCH, Some(&[0, 0, 2, 0, 0, 0]), &mut bytes);
    assert_eq!(bytes[0], 8);
    drive.step(Instant::EPOCH, Some(&[0, 0, 9, 0, 0xCD, 0xAB]), &mut bytes);
    assert_eq!(bytes[0], 9);
    assert_eq!(drive.dictionary().value(0x3000, 3), Some(0xABCD));
    description.mapping.inputs[0].entries[0].bit_length = 16;
    let error = ServoDrive::new(&description).expect_err("0x6061 has 8 bits");
    assert_eq!(error.to_string(), "PDO 0x1A00 maps object 0x6061:00 with 16 bits, it has 8");
}

#[test]
fn unsupported_modes_are_refused_by_sdo() {
    let mut drive = ServoDrive::new(&description()).expect("a drive");
    let dictionary = drive.dictionary_mut();
    for mode in [0, 2, 5, 11, 0xFF] {
        let result = dictionary.download(object::MODES_OF_OPERATION, 0, &[mode], AlState::Op);
        assert_eq!(result.map_err(|code| code.0), Err(0x0609_0030), "mode {mode}");
    }
    assert_eq!(dictionary.value(object::SUPPORTED_DRIVE_MODES, 0), Some(0b11_1110_1101));
}

#[test]
fn a_description_that_cannot_be_is_refused() {
    let plant = PlantParameters { inertia: 0.0, ..PlantParameters::default() };
    let error = ServoDrive::new(&ServoDescription { plant, ..description() }).expect_err("no inertia");
    assert_eq!(error.to_string(), "inertia is 0, expected above 0");
    assert!(ServoDrive::new(&ServoDescription { rated_torque: f64::NAN, ..description() }).is_err());
    assert!(ServoDrive::new(&ServoDescription { encoder_counts: 0, ..description() }).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// For any command and any jump of time, numbers stay finite and the shaft within the motor's
    /// limits.
    #[test]
    fn no_command_and_no_jump_in_time_makes_the_plant_unstable(
        cycles in proptest::collection::vec(
            (any::<u16>(), any::<i32>(), any::<i32>(), any::<i16>(), 0_u64..3_000_000_000, 0_u8..12),
            1..60,
        ),
        seed in 0_u64..u64::MAX / 2,
    ) {
        let mut description = description();
        description.mapping.outputs[0].entries.push(PdoEntry::from_mapping_value(0x6060_0008));
        let mut bench = Bench::new(&description);
        bench.now = Instant::from_nanos(seed);
        let top = description.plant.torque_limit / description.plant.viscous_friction;
        for (controlword, position, velocity, torque, gap, mode) in cycles {
            // Half of the controlwords lead upwards, or little would happen.
            let controlword = if controlword & 0x100 == 0 { 0x0F } else { controlword };
            let mut bytes = Outputs { controlword, position, velocity, torque }.emit();
            bytes.push(mode);
            bench.now = Instant::from_nanos(if gap % 7 == 0 {
                bench.now.as_nanos().saturating_sub(gap)
            } else {
                bench.now.as_nanos() + gap / 100
            });
            bench.drive.step(bench.now, Some(&bytes), &mut [0; 12]);
            prop_assert!(bench.drive.axes()[0].plant().position().is_finite());
            prop_assert!(bench.drive.axes()[0].plant().velocity().abs() <= top);
        }
    }
}
