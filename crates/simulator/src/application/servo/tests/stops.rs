//! Option codes of the stops, the error history, and the digital outputs.
//!
//! Limits of the drive itself, for unchecked targets.

use super::*;

/// A drive that turns at five revolutions a second in CSV; ramps of 50 and 100 revolutions a second
/// squared.
fn turning(index: u16, code: i16) -> Bench {
    let mut bench = Bench::new(&description());
    let rate = |revolutions: f64| ((revolutions * COUNTS) as u32).to_le_bytes();
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    bench.write(object::PROFILE_DECELERATION, 0, &rate(50.0));
    bench.write(object::QUICK_STOP_DECELERATION, 0, &rate(100.0));
    bench.write(index, 0, &code.to_le_bytes());
    bench.enable();
    bench.outputs.velocity = (5.0 * COUNTS) as i32;
    bench.cycles(300);
    bench
}

/// Manner in which the axis slows down.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slows {
    Coasts,
    /// With 50 revolutions a second squared.
    Slowly,
    /// With 100.
    Quickly,
    /// With the motor's torque.
    Hard,
}

/// Manner of the stop that begins now, and the state at its end.
fn stop(bench: &mut Bench) -> (Slows, Option<State>) {
    let turned = |inputs: Inputs| f64::from(inputs.velocity) / COUNTS > 0.05;
    let cycles = (0..1_000).take_while(|_| turned(bench.cycle())).count();
    let manner = match cycles {
        400.. => Slows::Coasts,
        85..115 => Slows::Slowly,
        42..60 => Slows::Quickly,
        0..12 => Slows::Hard,
        _ => panic!("{cycles} cycles"),
    };
    (manner, bench.cycles(10).state())
}

// feature(simulator): option codes of quick stop, halt, shutdown, disable operation and fault reaction
#[test]
fn every_quick_stop_option_code_stops_in_its_manner_and_state() {
    use Slows::*;
    let manners = [Coasts, Slowly, Quickly, Hard, Hard, Slowly, Quickly, Hard, Hard];
    for (code, manner) in (0..).zip(manners) {
        let mut bench = turning(object::QUICK_STOP_OPTION_CODE, code);
        bench.outputs.controlword = Controlword::QUICK_STOP.0;
        let end = if code < 5 { State::SwitchOnDisabled } else { State::QuickStopActive };
        assert_eq!(stop(&mut bench), (manner, Some(end)), "code {code}");
    }
}

// feature(simulator): a drive without quick stop stays enabled and continues
#[test]
fn a_drive_without_quick_stop_continues_under_0x0002() {
    let mut bench = Bench::new(&ServoDescription { quick_stop: false, ..description() });
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    bench.enable();
    bench.outputs.velocity = (5.0 * COUNTS) as i32;
    bench.cycles(300);
    bench.outputs.controlword = Controlword::QUICK_STOP.0;
    let asked = bench.cycles(300);
    assert_eq!(asked.state(), Some(State::OperationEnabled));
    assert!(f64::from(asked.velocity) > 4.9 * COUNTS, "{asked:?}");
    bench.outputs.controlword = Controlword::DISABLE_OPERATION.0;
    assert_eq!(bench.cycles(5).state(), Some(State::SwitchedOn));
    bench.outputs.controlword = Controlword::QUICK_STOP.0;
    assert_eq!(bench.cycles(5).state(), Some(State::SwitchOnDisabled));
}

// feature(simulator): option codes of quick stop, halt, shutdown, disable operation and fault reaction
#[test]
fn every_halt_option_code_stops_and_stays_enabled() {
    use Slows::*;
    for (code, manner) in (1..).zip([Slowly, Quickly, Hard, Hard]) {
        let mut bench = turning(object::HALT_OPTION_CODE, code);
        bench.outputs.controlword = Controlword::ENABLE_OPERATION.with_halt().0;
        assert_eq!(stop(&mut bench), (manner, Some(State::OperationEnabled)), "code {code}");
    }
}

// feature(simulator): option codes of quick stop, halt, shutdown, disable operation and fault reaction
#[test]
fn shutdown_and_disable_operation_coast_or_slow_down_first() {
    let rows = [
        (object::SHUTDOWN_OPTION_CODE, Controlword::SHUTDOWN, State::ReadyToSwitchOn),
        (object::DISABLE_OPERATION_OPTION_CODE, Controlword::DISABLE_OPERATION, State::SwitchedOn),
    ];
    for (index, command, end) in rows {
        for (code, manner) in [(0, Slows::Coasts), (1, Slows::Slowly)] {
            let mut bench = turning(index, code);
            bench.outputs.controlword = command.0;
            let next = if code == 0 { end } else { State::OperationEnabled };
            assert_eq!(bench.cycle().state(), Some(next), "0x{index:04X} {code}");
            assert_eq!(stop(&mut bench), (manner, Some(end)), "0x{index:04X} {code}");
        }
    }
}

// feature(simulator): option codes of quick stop, halt, shutdown, disable operation and fault reaction
#[test]
fn every_fault_reaction_option_code_stops_in_its_manner() {
    use Slows::*;
    for (code, manner) in (0..).zip([Coasts, Slowly, Quickly, Hard, Hard]) {
        let mut bench = turning(object::FAULT_REACTION_OPTION_CODE, code);
        bench.write(SIMULATION, 2, &0x4210_u16.to_le_bytes());
        assert_eq!(stop(&mut bench), (manner, Some(State::Fault)), "code {code}");
    }
}

// feature(simulator): error history 0x1003, newest first, cleared by writing 0
#[test]
fn errors_are_kept_newest_first_until_they_are_cleared() {
    let mut bench = Bench::new(&description());
    let history = |bench: &Bench| -> Vec<i64> {
        (0..=8).filter_map(|sub_index| bench.drive.dictionary().value(0x1003, sub_index)).collect()
    };
    bench.cycles(10);
    assert_eq!(history(&bench), [0; 9]);
    for code in 0x4201..=0x420A_u16 {
        bench.write(SIMULATION, 2, &code.to_le_bytes());
        bench.cycles(5);
        for controlword in [Controlword::FAULT_RESET.0, 0] {
            bench.outputs.controlword = controlword;
            bench.cycles(5);
        }
    }
    assert_eq!(history(&bench), [8, 0x420A, 0x4209, 0x4208, 0x4207, 0x4206, 0x4205, 0x4204, 0x4203]);
    let refused = bench.drive.dictionary_mut().download(0x1003, 0, &[1], AlState::Op);
    assert_eq!(refused.map_err(|code| code.0), Err(0x0609_0030));
    bench.write(0x1003, 0, &[0]);
    bench.cycle();
    assert_eq!(history(&bench), [0; 9]);
    bench.write(SIMULATION, 2, &0x4210_u16.to_le_bytes());
    bench.cycles(5);
    assert_eq!(history(&bench)[..3], [1, 0x4210, 0]);
}

// feature(simulator): a fault that a drive in Fault gets is shown, and reset with the first one
#[test]
fn a_second_fault_in_fault_is_reset_like_the_first() {
    for pause in [0, 5, 50] {
        let mut bench = Bench::new(&description());
        bench.enable();
        bench.write(SIMULATION, 2, &0x4210_u16.to_le_bytes());
        bench.cycles(1 + pause);
        bench.write(SIMULATION, 2, &0x7500_u16.to_le_bytes());
        assert_eq!(bench.cycles(5_000).state(), Some(State::Fault));
        assert_eq!(bench.object(object::ERROR_CODE), 0x7500, "the last error counts, after {pause}");
        assert_eq!(bench.drive.dictionary().value(0x1003, 0), Some(2), "both are kept");
        bench.outputs.controlword = 0;
        bench.cycles(5);
        bench.outputs.controlword = Controlword::FAULT_RESET.0;
        assert_eq!(bench.cycles(5).state(), Some(State::SwitchOnDisabled), "after {pause}");
        assert_eq!(bench.object(object::ERROR_CODE), 0);
    }
}

// feature(simulator): digital outputs 0x60FE with their mask; bit 0 sets the brake
#[test]
fn mask_enables_outputs_and_brake_holds_shaft() {
    let mut bench = Bench::new(&description());
    bench.write(object::MODES_OF_OPERATION, 0, &[10]);
    bench.enable();
    bench.outputs.torque = 500;
    bench.write(object::DIGITAL_OUTPUTS, 1, &0x0003_0001_u32.to_le_bytes());
    let free = bench.cycles(50);
    assert!(free.velocity > 0 && bench.drive.axes()[0].digital_outputs() == 0, "no mask: {free:?}");
    bench.write(object::DIGITAL_OUTPUTS, 2, &0x0001_0001_u32.to_le_bytes());
    let held = bench.cycles(50);
    assert_eq!((held.velocity, bench.drive.axes()[0].digital_outputs()), (0, 0x0001_0001));
    bench.write(object::DIGITAL_OUTPUTS, 1, &0_u32.to_le_bytes());
    assert!(bench.cycles(50).velocity > 0);
}

/// Half a turn either way.
const LIMIT: i32 = (COUNTS / 2.0) as i32;

/// An enabled drive in a mode, with position limits, the highest speed of 2 turns/s and a quick
/// stop of 20 turns/s^2.
fn limited(mode: CyclicMode) -> Bench {
    let mut bench = Bench::new(&ServoDescription { mode, ..description() });
    bench.write(object::SOFTWARE_POSITION_LIMIT, 1, &(-LIMIT).to_le_bytes());
    bench.write(object::SOFTWARE_POSITION_LIMIT, 2, &LIMIT.to_le_bytes());
    bench.write(object::MAXIMUM_PROFILE_VELOCITY, 0, &(2 * COUNTS as u32).to_le_bytes());
    bench.write(object::QUICK_STOP_DECELERATION, 0, &(20 * COUNTS as u32).to_le_bytes());
    bench.enable();
    bench
}

/// Farthest true position in turns, and highest true speed in turns/s, in two seconds to either
/// side.
fn farthest(bench: &mut Bench, target: impl Fn(i32) -> Outputs) -> (f64, f64) {
    let (mut farthest, mut fastest) = (0.0_f64, 0.0_f64);
    for side in [1, -1] {
        for _ in 0..2000 {
            let controlword = bench.outputs.controlword;
            bench.outputs = Outputs { controlword, ..target(side) };
            let inputs = bench.cycle();
            assert_eq!(inputs.state(), Some(State::OperationEnabled), "{:?}", bench.emergencies);
            let plant = bench.drive.axes()[0].plant();
            farthest = farthest.max(plant.position().abs() / TAU);
            fastest = fastest.max(plant.velocity().abs() / TAU);
        }
    }
    (farthest, fastest)
}

// feature(simulator): the drive keeps to its own limits of position, speed and torque (0x607D, 0x607F, 0x6072)
#[test]
fn no_raw_target_leads_beyond_the_drives_own_limits() {
    let far = |side: i32| Outputs { position: side * 50 * COUNTS as i32, ..Outputs::default() };
    let fast = |side: i32| Outputs { velocity: side * 50 * COUNTS as i32, ..Outputs::default() };
    let hard = |side: i32| Outputs { torque: side as i16 * 100, ..Outputs::default() };
    let (place, speed) = farthest(&mut limited(CyclicMode::Position), far);
    assert!((0.49..0.51).contains(&place) && speed < 3.0, "csp: {place} turns, {speed} turns/s");
    let (place, speed) = farthest(&mut limited(CyclicMode::Velocity), fast);
    assert!((0.49..0.52).contains(&place) && speed < 2.2, "csv: {place} turns, {speed} turns/s");
    let (place, _) = farthest(&mut limited(CyclicMode::Torque), hard);
    assert!((0.45..0.55).contains(&place), "cst: {place} turns");
}

#[test]
fn a_shaft_beyond_the_limit_is_held_and_may_move_inwards() {
    let mut bench = limited(CyclicMode::Position);
    bench.outputs.controlword = 0;
    bench.cycles(20);
    bench.drive.displace(0, 1.0);
    bench.cycles(20);
    let start = bench.enable().position;
    bench.outputs.position = start + COUNTS as i32 / 50;
    let held = bench.cycles(200).position;
    assert!((held - start).abs() < 100, "{start} to {held}");
    bench.outputs.position = start - COUNTS as i32 / 50;
    let moved = bench.cycles(200).position;
    assert!((moved - bench.outputs.position).abs() < 1000, "{moved}");
}
