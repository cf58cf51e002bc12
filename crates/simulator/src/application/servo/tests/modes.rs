//! Profile and interpolated modes: their handshakes, their profiles, and changes between modes
//! while enabled.

use super::*;

const NEW: u16 = Controlword::ENABLE_OPERATION.0 | Controlword::NEW_SET_POINT;
const AT_ONCE: u16 = NEW | Controlword::CHANGE_SET_IMMEDIATELY;

/// An enabled drive in this mode: one revolution a second, ten a second squared.
fn enabled(mode: i8) -> Bench {
    let mut bench = Bench::new(&description());
    let (speed, rate) = ((COUNTS as u32).to_le_bytes(), (10 * COUNTS as u32).to_le_bytes());
    bench.write(object::PROFILE_VELOCITY, 0, &speed);
    bench.write(object::PROFILE_ACCELERATION, 0, &rate);
    bench.write(object::PROFILE_DECELERATION, 0, &rate);
    bench.enable();
    bench.write(object::MODES_OF_OPERATION, 0, &[mode as u8]);
    bench.cycles(5);
    assert_eq!(bench.object(object::MODES_OF_OPERATION_DISPLAY), i64::from(mode));
    bench
}

fn reached(inputs: Inputs) -> bool {
    inputs.statusword.target_reached()
}

fn acknowledged(inputs: Inputs) -> bool {
    inputs.statusword.set_point_acknowledged()
}

impl Bench {
    /// Hands over a set-point and takes bit 4 back.
    fn set_point(&mut self, controlword: u16, position: i32) -> Inputs {
        self.outputs.position = position;
        self.outputs.controlword = controlword;
        let inputs = self.cycle();
        self.outputs.controlword = 0x0F;
        inputs
    }

    /// Cycles until the target is reached; ten seconds at most.
    fn until_reached(&mut self) -> (u32, Inputs) {
        for cycle in 0..10_000 {
            let inputs = self.cycle();
            if reached(inputs) {
                return (cycle, inputs);
            }
        }
        panic!("never reached: {:?}", self.cycle());
    }
}

fn near(inputs: Inputs, position: i32) -> bool {
    (inputs.position - position).abs() <= (COUNTS / 1000.0) as i32
}

// feature(simulator): servo drive in profile position, velocity, torque, and interpolated position
#[test]
fn profile_position_acknowledges_set_point_and_follows_ramps() {
    let mut bench = enabled(1);
    let start = bench.cycle();
    assert!(!acknowledged(start) && !reached(start));
    let target = start.position - COUNTS as i32;
    let inputs = bench.set_point(NEW, target);
    assert!(acknowledged(inputs) && !reached(inputs), "{inputs:?}");
    assert!(!acknowledged(bench.cycle()), "bit 4 is low, another one can be taken");
    let (cycles, inputs) = bench.until_reached();
    assert!(near(inputs, target), "{inputs:?}");
    // A tenth of a second each for the ramps, half a revolution less each, the rest at full speed;
    // less the window.
    assert!((1_050..1_110).contains(&cycles), "{cycles} ms");
    let later = bench.cycles(100);
    assert!((later.position - target).abs() < 30 && reached(later), "{later:?}");
}

#[test]
fn a_second_set_point_waits_and_a_third_finds_no_room() {
    let mut bench = enabled(1);
    let start = bench.cycle().position;
    let at = |tenths: i32| start + tenths * (COUNTS as i32) / 10;
    bench.set_point(NEW, at(3));
    bench.cycle();
    assert!(acknowledged(bench.set_point(NEW, at(-2))));
    assert!(acknowledged(bench.cycles(10)), "no room while one waits");
    bench.set_point(NEW, at(9));
    let mut farthest = start;
    let mut room = None;
    for cycle in 0..2_000 {
        let inputs = bench.cycle();
        farthest = farthest.max(inputs.position);
        if !acknowledged(inputs) && room.is_none() {
            assert!(near(inputs, at(3)), "once the first is reached: {inputs:?}");
            room = Some(cycle);
        }
    }
    assert!(room.is_some());
    assert!((farthest - at(3)).abs() < 100, "the third was not taken, the first was: {farthest}");
    let end = bench.cycle();
    assert!(reached(end) && near(end, at(-2)), "{end:?}");
}

#[test]
fn at_once_replaces_relative_adds_and_end_velocity_passes() {
    let mut bench = enabled(1);
    let start = bench.cycle().position;
    let revolutions = |count: f64| (count * COUNTS) as i32;
    bench.set_point(NEW, start + revolutions(5.0));
    let moving = bench.cycles(300);
    assert!(moving.velocity > revolutions(0.9), "{moving:?}");
    bench.set_point(AT_ONCE, start);
    let (_, inputs) = bench.until_reached();
    assert!(near(inputs, start), "{inputs:?}");
    for count in 1..=2 {
        bench.set_point(NEW | Controlword::RELATIVE, revolutions(0.25));
        let (_, inputs) = bench.until_reached();
        assert!(near(inputs, start + count * revolutions(0.25)), "{count}: {inputs:?}");
    }
    // Two on the way, without a stop between them.
    for target in [0.75, 1.0] {
        bench.set_point(NEW | Controlword::CHANGE_ON_SET_POINT, start + revolutions(target));
        bench.outputs.controlword |= Controlword::CHANGE_ON_SET_POINT;
        // Until another set-point fits.
        bench.cycles(50);
    }
    let mut slowest = i32::MAX;
    for _ in 0..1_000 {
        let inputs = bench.cycle();
        if (start + revolutions(0.65)..start + revolutions(0.85)).contains(&inputs.position) {
            slowest = slowest.min(inputs.velocity);
        }
    }
    assert!((revolutions(0.95)..revolutions(1.05)).contains(&slowest), "{slowest}");
    assert!(near(bench.until_reached().1, start + revolutions(1.0)));
}

#[test]
fn halted_move_resumes_and_disabled_move_does_not() {
    let mut bench = enabled(1);
    let start = bench.cycle().position;
    let target = start + COUNTS as i32;
    bench.set_point(NEW, target);
    bench.cycles(300);
    bench.outputs.controlword = 0x0F | Controlword::HALT_BIT;
    let halted = bench.cycles(200);
    assert!(reached(halted) && halted.velocity.abs() < 1_000 && !near(halted, target), "{halted:?}");
    bench.outputs.controlword = 0x0F;
    assert!(!reached(bench.cycles(2)));
    assert!(near(bench.until_reached().1, target));
    bench.set_point(NEW, start);
    bench.cycles(300);
    bench.outputs.controlword = 0x07;
    bench.cycles(2_000);
    let coasted = bench.enable();
    let later = bench.cycles(300);
    assert!((later.position - coasted.position).abs() < 50 && !reached(later), "{later:?}");
}

// feature(simulator): servo drive in profile position, velocity, torque, and interpolated position
#[test]
fn profile_velocity_ramps_and_reports_target_and_standstill() {
    let mut bench = enabled(3);
    let standing = bench.cycles(5);
    assert!(reached(standing) && standing.statusword.0 & Statusword::SPEED_IS_ZERO != 0);
    bench.outputs.velocity = COUNTS as i32;
    let half = bench.cycles(50);
    assert!((f64::from(half.velocity) / COUNTS - 0.5).abs() < 0.05, "ten a second squared: {half:?}");
    assert!(!reached(half) && half.statusword.0 & Statusword::SPEED_IS_ZERO == 0);
    let full = bench.cycles(100);
    assert!((f64::from(full.velocity) / COUNTS - 1.0).abs() < 0.01 && reached(full), "{full:?}");
    bench.write(object::MAXIMUM_PROFILE_VELOCITY, 0, &(COUNTS as u32 / 4).to_le_bytes());
    let bounded = bench.cycles(200);
    assert!((f64::from(bounded.velocity) / COUNTS - 0.25).abs() < 0.01, "{bounded:?}");
    bench.outputs.controlword = 0x0F | Controlword::HALT_BIT;
    let halted = bench.cycles(100);
    assert!(reached(halted) && halted.statusword.0 & Statusword::SPEED_IS_ZERO != 0, "{halted:?}");
}

// feature(simulator): servo drive in profile position, velocity, torque, and interpolated position
#[test]
fn profile_torque_rises_along_its_slope() {
    let mut bench = enabled(4);
    bench.write(object::TORQUE_SLOPE, 0, &1_000_u32.to_le_bytes());
    bench.outputs.torque = 100;
    let half = bench.cycles(50);
    assert!((half.torque - 50).abs() <= 2 && !reached(half), "{half:?}");
    let full = bench.cycles(60);
    assert!(full.torque == 100 && reached(full) && full.velocity > 0, "{full:?}");
    bench.outputs.torque = -100;
    assert!((bench.cycles(100).torque).abs() <= 2);
}

// feature(simulator): servo drive in profile position, velocity, torque, and interpolated position
#[test]
fn interpolated_position_follows_its_record_while_it_is_enabled() {
    let mut bench = enabled(7);
    let start = bench.cycle().position;
    let set = |bench: &mut Bench, position: i32| {
        bench.write(object::INTERPOLATION_DATA_RECORD, 1, &position.to_le_bytes());
    };
    let active = |inputs: Inputs| inputs.statusword.0 & Statusword::INTERPOLATION_ACTIVE != 0;
    set(&mut bench, start + 100);
    assert!(!active(bench.cycles(10)) && (bench.cycle().position - start).abs() < 10);
    bench.outputs.controlword |= Controlword::ENABLE_INTERPOLATION;
    assert!(active(bench.cycles(2)));
    for step in 1..=500 {
        set(&mut bench, start + 100 + 500 * step);
        bench.cycle();
    }
    let end = bench.cycles(20);
    assert!((end.position - start - 250_100).abs() < 50 && reached(end), "{end:?}");
    bench.outputs.controlword = 0x0F;
    bench.cycle();
    set(&mut bench, start);
    assert!((bench.cycles(50).position - end.position).abs() < 50, "not any more");
    bench.outputs.controlword |= Controlword::ENABLE_INTERPOLATION;
    bench.cycles(2);
    assert_eq!(bench.emergencies[0].error_code, FOLLOWING_ERROR, "too far away to be followed");
}

// feature(simulator): modes change while the drive is enabled, from each to each
#[test]
fn modes_change_while_enabled_without_motion() {
    let modes = [1, 3, 4, 6, 7, 8, 9, 10];
    for from in modes {
        for to in modes {
            let mut bench = enabled(8);
            let start = bench.cycle().position;
            bench.outputs.position = start;
            for mode in [from, to] {
                bench.write(object::MODES_OF_OPERATION, 0, &[mode as u8]);
                bench.cycles(20);
                assert_eq!(bench.object(object::MODES_OF_OPERATION_DISPLAY), i64::from(mode));
            }
            let inputs = bench.cycle();
            assert_eq!(inputs.state(), Some(State::OperationEnabled), "{from} to {to}");
            assert!((inputs.position - start).abs() < 10, "{from} to {to}: {inputs:?}");
        }
    }
}

#[test]
fn a_change_on_the_way_begins_with_the_speed_of_the_mode_before() {
    let mut bench = enabled(3);
    bench.outputs.velocity = COUNTS as i32;
    let before = bench.cycles(200);
    bench.write(object::MODES_OF_OPERATION, 0, &[1]);
    let mut last = before.velocity;
    for _ in 0..90 {
        let inputs = bench.cycle();
        let fall = last - inputs.velocity;
        // Ten revolutions a second squared are a hundredth a millisecond.
        assert!((-5_000..16_000).contains(&fall), "{last} then {inputs:?}");
        last = inputs.velocity;
    }
    assert!(bench.cycles(50).velocity.abs() < 1_000);
}
