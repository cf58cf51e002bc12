//! Gear ratio and feed constant, and touch probes.
//!
//! Encoders over a time without power: the true angle of the shaft, and what the drive counts.

use super::*;

impl Bench {
    fn write_long(&mut self, index: u16, sub_index: u8, value: u32) {
        self.write(index, sub_index, &value.to_le_bytes());
    }
}

// feature(simulator): gear ratio and feed constant scale the positions of the servo drive
#[test]
fn gear_and_feed_apply_once_power_stage_is_off() {
    let mut bench = Bench::new(&ServoDescription { initial_position: 3.0, ..description() });
    let before = bench.enable();
    // Ten motor turns for one shaft turn, 36 000 units for two shaft turns: 1 800 units a motor
    // turn.
    bench.write_long(object::GEAR_RATIO, 1, 10);
    bench.write_long(object::FEED_CONSTANT, 1, 36_000);
    bench.write_long(object::FEED_CONSTANT, 2, 2);
    assert_eq!(bench.cycles(10).position, before.position, "not while it is driven");
    bench.outputs.controlword = 0;
    let scaled = bench.cycles(10);
    assert_eq!(scaled.position, (3.0 / TAU * 1_800.0) as i32);
    assert!((bench.object(0x6063) - i64::from(before.position)).abs() < 5);
    bench.enable();
    for _ in 0..1_000 {
        bench.outputs.position += 2;
        bench.cycle();
    }
    let moved = bench.cycles(1);
    assert!((moved.velocity - 2_000).abs() < 150, "{moved:?}");
    let turned = (bench.drive.axes()[0].plant().position() - 3.0) / TAU * 1_800.0;
    assert!((turned - 2_000.0).abs() < 5.0, "{turned}");
    let refused = bench.drive.dictionary_mut().download(object::GEAR_RATIO, 1, &[0; 4], AlState::Op);
    assert_eq!(refused.map_err(|code| code.0), Err(0x0609_0030), "no revolutions");
}

#[test]
fn scale_change_keeps_home_position() {
    let mut bench = Bench::new(&ServoDescription { initial_position: 3.0, ..description() });
    bench.enable();
    bench.write(object::MODES_OF_OPERATION, 0, &[6]);
    bench.outputs.controlword = 0x1F;
    bench.cycles(20);
    assert!(bench.cycle().position.abs() < 5);
    bench.outputs.controlword = 0;
    bench.cycles(20);
    bench.write_long(object::GEAR_RATIO, 2, 7);
    assert!(bench.cycles(10).position.abs() < 50);
    bench.write_long(object::FEED_CONSTANT, 1, 360);
    assert!(bench.cycles(10).position.abs() <= 1);
}

// feature(simulator): touch probes 0x60B8 to 0x60BD at two inputs and the index pulse
#[test]
fn touch_probes_store_the_positions_of_their_edges() {
    let description =
        ServoDescription { touch_probes: [Some((1.0, 2.0)), None], initial_position: 0.5, ..description() };
    let mut bench = Bench::new(&description);
    // Probe 1: both edges of its input; probe 2: the index pulse.
    bench.write(object::TOUCH_PROBE_FUNCTION, 0, &0x1531_u16.to_le_bytes());
    bench.write(object::MODES_OF_OPERATION, 0, &[9]);
    bench.enable();
    bench.outputs.velocity = COUNTS as i32 / 2;
    let mut seen = vec![bench.object(object::TOUCH_PROBE_STATUS)];
    let mut pressed = false;
    for _ in 0..2_500 {
        bench.cycle();
        pressed |= bench.object(object::DIGITAL_INPUTS) == 1 << 16;
        let status = bench.object(object::TOUCH_PROBE_STATUS);
        if seen.last() != Some(&status) {
            seen.push(status);
        }
    }
    assert_eq!(seen, [0x0101, 0x0103, 0x0107, 0x0307]);
    assert!(pressed);
    let at = |angle: f64| (angle / TAU * COUNTS).floor() as i64;
    let stored = [0, 1, 2, 3].map(|edge| bench.object(object::TOUCH_PROBE_POSITION + edge));
    assert_eq!(stored, [at(1.0), at(2.0), at(TAU), 0], "of the first time, though it has turned on");
}

/// True angle of the shaft and count of a drive, in turns.
fn place(bench: &mut Bench) -> (f64, f64) {
    let count = f64::from(bench.cycle().position) / COUNTS;
    (bench.drive.axes()[0].plant().position() / TAU, count)
}

/// A restart of the drive; the shaft is turned meanwhile.
fn restart(bench: &mut Bench, turns: f64) -> (f64, f64) {
    bench.now = bench.now + 500 * MILLISECOND;
    if turns != 0.0 {
        bench.drive.displace(0, turns);
    }
    bench.drive.power_on();
    bench.state = AlState::Init;
    for to in [AlState::PreOp, AlState::SafeOp, AlState::Op] {
        bench.enter(to, None);
    }
    place(bench)
}

fn bench(encoder: Encoder, turns: f64) -> Bench {
    let initial_position = turns * TAU;
    let mut bench = Bench::new(&ServoDescription { initial_position, ..description() });
    bench.drive.set_encoder(0, encoder);
    bench.cycles(10);
    bench
}

fn assert_near(found: (f64, f64), wanted: (f64, f64), what: &str) {
    let is_near = (found.0 - wanted.0).abs() < 1e-5 && (found.1 - wanted.1).abs() < 1e-5;
    assert!(is_near, "{what}: {found:?}, not {wanted:?}");
}

// feature(simulator): incremental, single-turn and multi-turn encoders: the true shaft position is kept apart from the count
#[test]
fn encoders_see_what_their_range_allows_after_a_restart() {
    let absolute = |turns| Encoder::Absolute { turns };
    for (encoder, turned, counted) in [
        (Encoder::Unlimited, 1.0, 1.3),
        (Encoder::Incremental, 1.0, 0.3),
        (Encoder::Incremental, 0.25, 0.3),
        (Encoder::Incremental, 0.0, 0.3),
        (absolute(1.0), 0.1, 0.4),
        (absolute(1.0), 0.4, -0.3),
        (absolute(1.0), 1.0, 0.3),
        (absolute(1.0), -3.0, 0.3),
        (absolute(16.0), 1.0, 1.3),
        (absolute(16.0), 16.0, 0.3),
    ] {
        let mut bench = bench(encoder, 0.3);
        assert_near(place(&mut bench), (0.3, 0.3), "before");
        let seen = restart(&mut bench, turned);
        assert_near(seen, (0.3 + turned, counted), &format!("{encoder:?}, {turned} turns"));
        // With power, every encoder sees every turn.
        bench.drive.displace(0, 2.5);
        let seen = place(&mut bench);
        assert_near(
            seen,
            (2.8 + turned, counted + 2.5),
            &format!("{encoder:?}, {turned} turns, with power"),
        );
    }
}

#[test]
fn a_range_is_left_with_power_and_lost_without() {
    let mut bench = bench(Encoder::Absolute { turns: 1.0 }, 0.0);
    bench.drive.displace(0, 5.25);
    assert_near(place(&mut bench), (5.25, 5.25), "with power");
    assert_near(restart(&mut bench, 0.0), (5.25, 0.25), "after the restart");
    // A count that is off stays off: the battery of the encoder was lost.
    bench.drive.shift_count(0, 3.0);
    assert_near(place(&mut bench), (5.25, 3.25), "off");
    assert_near(restart(&mut bench, 1.0), (6.25, 3.25), "off, after another restart");
}

#[test]
fn an_incremental_encoder_does_not_see_a_motor_that_coasts() {
    let seen = [Encoder::Unlimited, Encoder::Incremental].map(|encoder| {
        let mut bench = bench(encoder, 0.0);
        bench.write(object::MODES_OF_OPERATION, 0, &[9]);
        bench.enable();
        bench.outputs.velocity = (5.0 * COUNTS) as i32;
        bench.cycles(300);
        let before = place(&mut bench).1;
        bench.outputs = Outputs::default();
        let (angle, count) = restart(&mut bench, 0.0);
        (angle - before, count - before)
    });
    let [(turned, counted), (true_turns, missed)] = seen;
    assert!(turned > 0.5 && (turned - counted).abs() < 0.02, "{turned} turns, {counted} counted");
    assert!(
        (true_turns - turned).abs() < 1e-9 && missed.abs() < 0.02,
        "{true_turns} turns, {missed} counted"
    );
}
