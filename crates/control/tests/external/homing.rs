//! A controller process that is gone while a drive of its axes homes.

use ethercat::cia402::object::{
    HOMING_ACCELERATION, HOMING_METHOD, HOMING_SPEEDS, MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY,
};
use ethercat::pdo::PdoEntry;
use motion::Seconds;
use motion::homing::Homing;
use motion::supervision::OnStale;

use super::*;

/// Homing speed, in rad/s: the index pulse is seconds away.
const SPEED: f64 = 0.5;

/// Requests to the process before it says "home", and before it is gone.
const HOME: u64 = 200;
const GONE: u64 = 700;

/// Drives that look for their index pulse, and their axes.
fn bus(on_stale: OnStale) -> (Segment, Vec<AxisConfiguration>) {
    let drive = |_| {
        let mode = |index: u16| PdoEntry::from_mapping_value(u32::from(index) << 16 | 8);
        let (mut drive, _) = support::sub_device(CyclicMode::Position, |it| {
            it.initial_position = 3.0;
            it.mapping.outputs[0].entries.push(mode(MODES_OF_OPERATION));
            it.mapping.inputs[0].entries.push(mode(MODES_OF_OPERATION_DISPLAY));
        });
        let counts = |radians: f64| (radians / std::f64::consts::TAU * f64::from(1 << 20)) as i64;
        let servo = drive.servo_mut().unwrap();
        for (index, sub_index, value) in [
            (HOMING_METHOD, 0, 34),
            (HOMING_SPEEDS, 1, counts(SPEED)),
            (HOMING_SPEEDS, 2, counts(SPEED)),
            (HOMING_ACCELERATION, 0, counts(20.0)),
        ] {
            let entry = servo.dictionary().find(index, sub_index).unwrap();
            servo.dictionary_mut().set(entry, value);
        }
        drive
    };
    let mut axes = supervised(DRIVES);
    for axis in &mut axes {
        axis.homing = Homing::Drive { position: Radians(0.0), timeout: Seconds(60.0) };
        axis.supervision.as_mut().unwrap().on_stale = on_stale;
    }
    (Segment::new((0..DRIVES).map(drive).collect()), axes)
}

// feature(ipc): a controller process that is gone ends the homing of its axes where `on_stale` takes their torque
#[test]
fn a_process_that_is_gone_ends_a_homing_that_runs() {
    let all = [(OnStale::QuickStop, true), (OnStale::Disable, true), (OnStale::Hold, false)];
    for ((on_stale, ends), order) in all.into_iter().flat_map(|it| ORDERS.map(|order| (it, order))) {
        let (segment, axes) = bus(on_stale);
        let (mut turner, mut asked) = (Turner::new(0.0), 0);
        let played =
            play_on((segment, &axes), order, 1_500, (true, u64::MAX), move |request: &Question| {
                asked += 1;
                let mut answer = turner.answer(request);
                answer.axes[0].home = asked == HOME;
                (asked < GONE).then(|| vec![(AT_ONCE, Ok(answer))])
            });
        never_beyond_the_deadline(&played);
        let lost = played.seen.iter().position(|it| it.lost).unwrap();
        let report = |at: usize| played.seen[at].reports[0];
        let before = report(lost - 1);
        let speed = before.feedback.velocity.0.abs();
        assert!(before.homing && speed > 0.9 * SPEED, "{on_stale:?} {order:?}: {before:?}");
        let after: Vec<_> = (lost + 50..lost + 300).map(report).collect();
        assert!(after.iter().all(|it| it.homing != ends && !it.homed), "{on_stale:?} {order:?}");
        if ends {
            let fastest = after.iter().map(|it| it.feedback.velocity.0.abs()).fold(0.0, f64::max);
            assert!(fastest < 0.01, "{on_stale:?} {order:?}: {fastest} rad/s");
            let (stop, state) = (after[200].stop, after[200].state);
            assert_eq!(stop, Some(StopReason::Stale), "{on_stale:?} {order:?}");
            assert_eq!(state, Some(State::SwitchOnDisabled), "{on_stale:?} {order:?}");
        }
    }
}
