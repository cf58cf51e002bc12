//! Gear ratio and feed constant, and touch probes.

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
