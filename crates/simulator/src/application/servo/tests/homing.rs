//! Homing: every method, its interruptions, and the positions afterwards.

use super::*;

const HOMING: u8 = 6;
const CSP: u8 = 8;

const START: u16 = Controlword::ENABLE_OPERATION.0 | Controlword::HOMING_OPERATION_START;

const COMPLETED: u16 = Statusword::TARGET_REACHED | Statusword::HOMING_ATTAINED;

/// Bits 10, 12 and 13.
fn bits(inputs: Inputs) -> u16 {
    inputs.statusword.0 & (COMPLETED | Statusword::HOMING_ERROR)
}

/// An enabled drive in homing mode, its shaft at 3 rad between limit switches, with this method.
fn homing(method: i8, limit_switches: Option<(f64, f64)>) -> Bench {
    let description = ServoDescription { initial_position: 3.0, limit_switches, ..description() };
    let mut bench = Bench::new(&description);
    bench.write(object::HOMING_METHOD, 0, &[method as u8]);
    bench.write(object::HOME_OFFSET, 0, &500_i32.to_le_bytes());
    bench.enable();
    bench.write(object::MODES_OF_OPERATION, 0, &[HOMING]);
    let inputs = bench.cycles(5);
    assert_eq!(
        (bench.object(object::MODES_OF_OPERATION_DISPLAY), bits(inputs)),
        (6, Statusword::TARGET_REACHED)
    );
    bench
}

/// Runs cycles until these bits show; ten seconds at most.
fn until(bench: &mut Bench, wanted: u16) -> Inputs {
    for _ in 0..10_000 {
        let inputs = bench.cycle();
        if bits(inputs) == wanted {
            return inputs;
        }
    }
    panic!("bits {wanted:#06x} never show: {:?}", bench.cycle());
}

// feature(simulator): servo drive homes by every method of the standard: 1 to 14, 17 to 30, 33, 34, 35, 37
#[test]
fn every_method_finds_its_home_and_positions_count_from_there() {
    let homes = [(17, -1.0), (18, 5.0), (33, 0.0), (34, TAU), (35, 3.0), (37, 3.0)];
    for (method, home) in homes {
        // Method 34 must not meet a switch in its path.
        let switches = if method == 34 { (-1.0, 50.0) } else { (-1.0, 5.0) };
        let mut bench = homing(method, Some(switches));
        bench.outputs.controlword = START;
        until(&mut bench, COMPLETED);
        let inputs = bench.cycles(100);
        assert_eq!((inputs.state(), bits(inputs)), (Some(State::OperationEnabled), COMPLETED));
        let position =
            |bench: &Bench| (bench.drive.axes()[0].plant().position() - home) * COUNTS / TAU + 500.0;
        // An edge is seen within a control period at 1 rad/s, and counts are whole.
        let off = (f64::from(inputs.position) - position(&bench)).abs();
        assert!(off <= 1.25e-4 * COUNTS / TAU + 2.0, "method {method}: {off} counts off");
        assert!(inputs.velocity.abs() < 1_000, "method {method}: {inputs:?}");

        // Back to CSP at the same position: nothing moves until the target does.
        bench.outputs = Outputs { controlword: 0x0F, position: inputs.position, ..Outputs::default() };
        bench.write(object::MODES_OF_OPERATION, 0, &[CSP]);
        for _ in 0..100 {
            let held = bench.cycle();
            assert!((held.position - inputs.position).abs() < 20, "method {method}: {held:?}");
        }
        assert_eq!(bench.object(object::MODES_OF_OPERATION_DISPLAY), 8);
        for _ in 0..1_000 {
            bench.outputs.position += 100;
            bench.cycle();
        }
        let (moved, asked) = (bench.cycles(50).position, inputs.position + 100_000);
        assert!((moved - asked).abs() < 50, "method {method}: {moved}, asked {asked}");
        assert!((f64::from(moved) - position(&bench)).abs() < off + 2.0, "method {method}");
    }
}

/// Home of a method 1 to 14 or 17 to 30 on an axis with these switches, as the pictures of the
/// standard show it.
fn home(method: i8, limits: (f64, f64), switch: (f64, f64)) -> f64 {
    let index = method < 15;
    let right_of = |edge: f64| if index { (edge / TAU).ceil() * TAU } else { edge };
    let left_of = |edge: f64| if index { (edge / TAU).floor() * TAU } else { edge };
    match if index { method } else { method - 16 } {
        1 => right_of(limits.0),
        2 => left_of(limits.1),
        3 | 7 | 14 => left_of(switch.0),
        4 | 8 | 13 => right_of(switch.0),
        5 | 10 | 11 => right_of(switch.1),
        _ => left_of(switch.1),
    }
}

// feature(simulator): servo drive homes by every method of the standard: 1 to 14, 17 to 30, 33, 34, 35, 37
#[test]
fn every_method_finds_the_home_of_its_picture_from_either_side() {
    let limits = (-40.0, 40.0);
    for method in (1..=14).chain(17..=30) {
        // Methods 3 to 6: at the positive, and at the negative end.
        let switch = match if method > 16 { method - 16 } else { method } {
            3 | 4 => (8.0, 60.0),
            5 | 6 => (-60.0, 8.0),
            _ => (-8.0, 8.0),
        };
        for start in [-30.0, 0.0, 30.0] {
            let description = ServoDescription {
                initial_position: start,
                limit_switches: Some(limits),
                home_switch: Some(switch),
                ..description()
            };
            let mut bench = Bench::new(&description);
            let speed = |radians: f64| ((radians / TAU * COUNTS) as u32).to_le_bytes();
            bench.write(object::HOMING_METHOD, 0, &[method as u8]);
            bench.write(object::HOMING_SPEEDS, 1, &speed(40.0));
            bench.write(object::HOMING_SPEEDS, 2, &speed(10.0));
            bench.enable();
            bench.write(object::MODES_OF_OPERATION, 0, &[HOMING]);
            bench.outputs.controlword = START;
            until(&mut bench, 0);
            until(&mut bench, COMPLETED);
            let inputs = bench.cycles(50);
            let wanted = home(method, limits, switch);
            let found =
                bench.drive.axes()[0].plant().position() - f64::from(inputs.position) / COUNTS * TAU;
            // A control period at 10 rad/s.
            assert!((found - wanted).abs() < 2e-3, "method {method} from {start}: {found}, not {wanted}");
        }
    }
}

#[test]
fn narrow_switch_passed_at_full_speed_is_found_at_its_edge() {
    let mut bench = Bench::new(&ServoDescription { home_switch: Some((20.0, 20.02)), ..description() });
    bench.write(object::HOMING_METHOD, 0, &[24]);
    bench.enable();
    bench.write(object::MODES_OF_OPERATION, 0, &[HOMING]);
    bench.outputs.controlword = START;
    until(&mut bench, 0);
    let inputs = until(&mut bench, COMPLETED);
    let found = bench.drive.axes()[0].plant().position() - f64::from(inputs.position) / COUNTS * TAU;
    assert!((found - 20.0).abs() < 2e-3, "{found}");
    assert_eq!(bench.object(object::DIGITAL_INPUTS), 0b100);
}

#[test]
fn missing_home_switch_is_homing_error_at_last_limit_switch() {
    for (method, pressed) in [(4, 0b10), (6, 0b01), (8, 0b01), (12, 0b10)] {
        let mut bench = homing(method, Some((-1.0, 5.0)));
        bench.outputs.controlword = START;
        until(&mut bench, Statusword::TARGET_REACHED | Statusword::HOMING_ERROR);
        assert_eq!(bench.object(object::DIGITAL_INPUTS), pressed, "method {method}");
    }
}

#[test]
fn limit_switch_in_the_way_is_homing_error_and_can_restart() {
    let mut bench = homing(34, Some((-1.0, 5.0)));
    bench.outputs.controlword = START;
    let inputs = until(&mut bench, Statusword::TARGET_REACHED | Statusword::HOMING_ERROR);
    assert_eq!(inputs.state(), Some(State::OperationEnabled));
    assert_eq!(bench.object(object::DIGITAL_INPUTS), 0b10);
    bench.outputs.controlword = 0x0F;
    let still = bench.cycles(10);
    assert!((still.position - inputs.position).abs() < 50, "it stays there");
    bench.write(object::HOMING_METHOD, 0, &[18]);
    bench.outputs.controlword = START;
    until(&mut bench, 0);
    until(&mut bench, COMPLETED);
}

#[test]
fn taking_the_start_bit_back_or_halting_stops_it_where_it_is() {
    for controlword in [0x0F, START | Controlword::HALT_BIT] {
        // Without a switch: it would search for ever.
        let mut bench = homing(17, None);
        bench.outputs.controlword = START;
        let moving = bench.cycles(500);
        assert!(bits(moving) == 0 && moving.velocity < -(COUNTS as i32) / 2, "{moving:?}");
        bench.outputs.controlword = controlword;
        let inputs = until(&mut bench, Statusword::TARGET_REACHED);
        let later = bench.cycles(100);
        assert!((later.position - inputs.position).abs() < 50 && later.velocity.abs() < 1_000);
    }
}

#[test]
fn an_earlier_homing_is_still_shown_until_the_next_start() {
    let mut bench = homing(37, None);
    bench.outputs.controlword = START;
    until(&mut bench, COMPLETED);
    bench.outputs.controlword = 0x0F;
    for mode in [CSP, HOMING] {
        bench.outputs.position = bench.cycle().position;
        bench.write(object::MODES_OF_OPERATION, 0, &[mode]);
        bench.cycles(10);
    }
    assert_eq!(bits(bench.cycle()), COMPLETED);
    bench.write(object::HOMING_METHOD, 0, &[33]);
    bench.outputs.controlword = START;
    assert_eq!(bits(bench.cycles(2)), 0, "not any more");
}
