//! Error codes of a drive that names the code of a fault only at the end of its fault reaction, in
//! virtual time.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ethercat::cia402::object::{ERROR_CODE, QUICK_STOP_DECELERATION, STATUSWORD};
use ethercat::cia402::{CyclicMode, State, Statusword};
use ethercat::time::Instant;
use onbeat_control::controller::{AxisCommand, AxisReport};
use simulator::Segment;
use support::scripted::play;
use support::{segment_in, supervised};

const CODE: u16 = 0x2310;

/// A drive with a 0x603F that shows `old` until its fault reaction has ended.
struct Late {
    segment: Segment,
    old: u16,
    raises: Arc<AtomicBool>,
}

impl Late {
    fn show(&mut self) {
        let servo = self.segment.sub_device_mut(0).unwrap().servo_mut().unwrap();
        if self.raises.swap(false, Ordering::Relaxed) {
            servo.raise_fault(0, CODE);
        }
        let [word, code] = [STATUSWORD, ERROR_CODE].map(|it| servo.dictionary().find(it, 0).unwrap());
        let is_over = Statusword(servo.dictionary().get(word) as u16).state() == Some(State::Fault);
        let shown = if is_over { CODE } else { self.old };
        servo.dictionary_mut().set(code, shown.into());
    }
}

impl ethercat::link::Segment for Late {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.show();
        let comes_back = self.segment.process_frame(now, frame);
        self.show();
        comes_back
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// States of the drive and error codes that are reported, of an axis with this speed in rad/s.
fn run(old: u16, speed: f64) -> Vec<(Option<State>, u16)> {
    let raises = Arc::new(AtomicBool::new(false));
    let mut segment = segment_in(1, CyclicMode::Position);
    let dictionary = segment.sub_device_mut(0).unwrap().servo_mut().unwrap().dictionary_mut();
    let ramp = dictionary.find(QUICK_STOP_DECELERATION, 0).unwrap();
    // A turn per second squared.
    dictionary.set(ramp, 1 << 20);
    let segment = Late { segment, old, raises: Arc::clone(&raises) };
    let script = move |cycle, _: &AxisReport, command: &mut AxisCommand| {
        raises.fetch_or(cycle == 500, Ordering::Relaxed);
        command.setpoint.position.0 += speed * support::PERIOD.as_secs_f64();
    };
    play(segment, &supervised(1), 1_500, script, |scene| {
        let is_seen = scene.cycles > 0 && !scene.stopping;
        is_seen.then_some((scene.report.state, scene.report.error_code))
    })
}

// feature(axes): several axes on one SubDevice, each with separate objects, supervision and error code
#[test]
fn the_code_that_comes_after_the_fault_reaction_counts() {
    let mut longest = 0;
    for old in [0, 0x5555] {
        for speed in [0.0, 0.02, 0.05, 0.5, 2.0] {
            let seen = run(old, speed);
            let reaction = seen.iter().filter(|it| it.0 == Some(State::FaultReactionActive)).count();
            longest = longest.max(reaction);
            let expected = (Some(State::Fault), CODE);
            assert_eq!(seen.last(), Some(&expected), "{old:#06x} at {speed} rad/s, {reaction} cycles");
        }
    }
    assert!(longest > 20, "{longest} cycles");
}
