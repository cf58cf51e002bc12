//! Limits of the drive itself, for unchecked targets.

use super::*;

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
