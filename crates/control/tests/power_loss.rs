//! A drive that loses its power while the cycle runs, in virtual time: its axis is no longer homed,
//! and continues only after a start request.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ethercat::cia402::{Request, State};
use ethercat::time::Instant;
use motion::Radians;
use motion::homing::Homing;
use motion::supervision::{AfterOutage, StopReason};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::AxisReport;
use simulator::Segment;
use support::scripted::play;
use support::{segment, supervised};

/// Cycles of the start request.
const RESETS: std::ops::Range<u64> = 2_500..2_520;

/// The segment of one drive, with a short loss of power on request.
struct Cut {
    segment: Segment,
    now: Arc<AtomicBool>,
}

impl ethercat::link::Segment for Cut {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        if self.now.swap(false, Ordering::Relaxed) {
            assert!(self.segment.power_cycle(0));
        }
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// Reports of an axis that is homed in its cycle 100 and loses its power in cycle 300.
fn reports(homing: Homing, after: AfterOutage, resets: bool) -> Vec<AxisReport> {
    let now = Arc::new(AtomicBool::new(false));
    let cut = Cut { segment: segment(1), now: Arc::clone(&now) };
    let axis = supervised(1).remove(0);
    let mut supervision = axis.supervision.unwrap();
    supervision.outage.after = after;
    let axis = AxisConfiguration { homing, supervision: Some(supervision), ..axis };
    let script = move |cycle: u64, _: &AxisReport, command: &mut _| {
        let command: &mut onbeat_control::controller::AxisCommand = command;
        command.home = cycle == 100;
        if resets && RESETS.contains(&cycle) {
            command.request = Request::FaultReset;
        }
        now.fetch_or(cycle == 300, Ordering::Relaxed);
    };
    play(cut, &[axis], 3_000, script, |scene| {
        (scene.cycles > 0 && !scene.stopping).then_some(*scene.report)
    })
}

// feature(axes): an axis whose drive was without power is brought back at rest, and has to be homed again unless its encoder is absolute
#[test]
fn its_home_is_forgotten_unless_its_encoder_is_absolute() {
    let by_hand = Homing::CurrentPosition { position: Radians(1.0) };
    for (homing, is_homed) in [(by_hand, false), (Homing::Absolute { offset: Radians(0.5) }, true)] {
        let seen = reports(homing, AfterOutage::Resume, true);
        assert!(seen[250].homed, "{homing:?}");
        let last = seen.last().unwrap();
        assert_eq!((last.homed, last.missed), (is_homed, 0), "{homing:?}");
        assert_eq!(last.state, Some(State::OperationEnabled), "after the start request");
        let waits = &seen[RESETS.start as usize - 10];
        assert_eq!(
            (waits.state, waits.stop),
            (Some(State::SwitchOnDisabled), Some(StopReason::AwaitsStart))
        );
        let lost = seen.iter().position(|it| it.missed > 10).unwrap();
        assert!((300..330).contains(&lost), "{lost}");
        let back = seen[lost..].iter().position(|it| it.missed == 0).unwrap();
        assert!(back < 500, "{back} cycles");
    }
}

#[test]
fn axis_stays_at_standstill_until_a_reset() {
    let seen = reports(Homing::Never, AfterOutage::Stay, false);
    let last = seen.last().unwrap();
    assert_eq!((last.missed, last.stop), (0, Some(StopReason::Outage)));
    assert_eq!(last.state, Some(State::SwitchOnDisabled));
}
