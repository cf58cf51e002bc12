//! A controller process in virtual time.
//!
//! A controller process that is gone while a drive of its axes homes.

use std::sync::mpsc::Sender;
use std::time::Duration;

use ethercat::cia402::object::{
    HOMING_ACCELERATION, HOMING_METHOD, HOMING_SPEEDS, MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY,
};
use ethercat::pdo::PdoEntry;
use ethercat::time::Instant;
use ipc::controller::{Answer, AxisAnswer, ControllerCounters, Received, Request as Question, Wrong};
use motion::Seconds;
use motion::homing::Homing;
use motion::supervision::OnStale;
use onbeat_control::external::Remote;
use rt::clock::{Clock, VirtualClock};

use super::{DRIVES, *};

pub(crate) const BACK_AFTER: u64 = 300;

/// Answer that comes so long after the request.
pub(crate) type Coming = (Duration, Result<Answer, Wrong>);

/// A process in virtual time: its answers to a request, and `None` if it is gone.
pub(crate) trait Process: FnMut(&Question) -> Option<Vec<Coming>> + Send {}

impl<F: FnMut(&Question) -> Option<Vec<Coming>> + Send> Process for F {}

pub(crate) struct Fake<P> {
    pub(crate) clock: VirtualClock,
    pub(crate) process: P,
    pub(crate) coming: Vec<(Instant, Result<Answer, Wrong>)>,
    pub(crate) is_attached: bool,
    pub(crate) holder: u64,
    /// Requests after which another process is there from one look to the next.
    pub(crate) follows_after: u64,
    pub(crate) asked: u64,
    /// Polls without a process since it was gone.
    pub(crate) away: u64,
    pub(crate) counters: Sender<ControllerCounters>,
}

impl<P: Process> Remote for Fake<P> {
    fn blank_request(&self) -> Question {
        Question {
            axes: vec![ipc::state::Axis::default(); DRIVES],
            command: ipc::controller::ExternalCommand { axes: vec![None; DRIVES], ..Default::default() },
            ..Question::default()
        }
    }

    fn blank_answer(&self) -> Answer {
        Answer { axes: vec![AxisAnswer::default(); DRIVES], ..Answer::default() }
    }

    fn newest(&mut self, answer: &mut Answer) -> Received {
        if !self.is_attached {
            self.away += 1;
            self.is_attached = self.away > BACK_AFTER;
            self.holder += u64::from(self.is_attached);
            return Received::Nothing;
        }
        let now = self.clock.now();
        let Some(place) = self.coming.iter().position(|(at, _)| *at <= now) else {
            return Received::Nothing;
        };
        match self.coming.remove(place).1 {
            Ok(found) => {
                answer.clone_from(&found);
                Received::Answer
            }
            Err(why) => Received::Wrong(why),
        }
    }

    fn holder(&self) -> Option<u64> {
        let follows = self.asked >= self.follows_after;
        self.is_attached.then_some(self.holder + u64::from(follows))
    }

    fn ask(&mut self, request: &Question) {
        self.asked += 1;
        let answers = (self.process)(request);
        (self.is_attached, self.away) = (answers.is_some(), 0);
        let now = self.clock.now();
        let answers = answers.into_iter().flatten();
        self.coming.extend(answers.map(|(after, answer)| (now + after, answer)));
    }

    fn wait(&mut self, deadline: Instant) {
        let next = self.coming.iter().map(|(at, _)| *at).min().unwrap_or(deadline);
        self.clock.sleep_until(next.min(deadline));
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn count(&self, counters: &ControllerCounters) {
        let _ = self.counters.send(counters.clone());
    }
}

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
