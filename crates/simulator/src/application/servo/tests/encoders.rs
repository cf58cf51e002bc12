//! Encoders over a time without power: the true angle of the shaft, and what the drive counts.

use super::*;

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
