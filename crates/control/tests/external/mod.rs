//! A controller in a separate process, in virtual time: answers that come in time, late, never,
//! twice, torn, or are wild.
mod fake;
mod hostile;
use crate::support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, State};
use ethercat::main_device::BringUpPhase;
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use fake::{BACK_AFTER, Coming, Fake, Process};
use ipc::command::AxisTarget;
use ipc::controller::{Answer, AxisAnswer, ControllerCounters, DriveRequest, Request as Question, Wrong};
use ipc::units::{Radians, RadiansPerSecond};
use motion::supervision::StopReason;
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisCommand, AxisReport, Controller, ControllerOutput, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, Ended, FrameOrder};
use onbeat_control::external::{External, ExternalAxis, Settings};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, VirtualClock};
use simulator::Segment;
use support::{IpcFolder, PERIOD, cycle_of, ipc, rules, segment, supervised};

const DRIVES: usize = 2;

/// Behind the replies of either order of frames.
const DEADLINE: Duration = Duration::from_micros(600);

const MAX_LATE: u32 = 3;

/// A cycle as it was left.
#[derive(Clone, Debug)]
struct Seen {
    cycle: u64,
    stopping: bool,
    deadline: Instant,
    /// When the controller was done.
    done: Instant,
    reports: Vec<AxisReport>,
    commands: Vec<AxisCommand>,
    lost: bool,
    /// Set-point of the first axis in the cycle before.
    sent: f64,
}

/// Looks at what the controller does.
struct Watched<C> {
    controller: C,
    clock: VirtualClock,
    seen: Sender<Seen>,
    state: ipc::state::Reader,
    done: Instant,
}

impl<C: Controller> Controller for Watched<C> {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.controller.update(info, io);
        self.done = self.clock.now();
        let _ = self.seen.send(Seen {
            cycle: info.cycle,
            stopping: info.stopping,
            deadline: info.release + DEADLINE,
            done: self.done,
            reports: io.axes().to_vec(),
            commands: io.commands().to_vec(),
            lost: self.controller.output().lost,
            sent: self.state.read().map_or(0.0, |state| state.axes[0].target_position),
        });
    }

    fn output(&self) -> ControllerOutput {
        self.controller.output()
    }
}

/// A run that has ended.
struct Played {
    seen: Vec<Seen>,
    counters: ControllerCounters,
    ended: Ended<DirectLink<Segment, VirtualClock>>,
}

fn play(order: FrameOrder, cycles: u64, process: impl Process + 'static) -> Played {
    play_from(order, cycles, true, u64::MAX, process)
}

/// With a process from the beginning or from later on, and another one after so many requests.
fn play_from(
    order: FrameOrder,
    cycles: u64,
    is_attached: bool,
    follows_after: u64,
    process: impl Process + 'static,
) -> Played {
    let bus = (segment(DRIVES), &supervised(DRIVES)[..]);
    play_on(bus, order, cycles, (is_attached, follows_after), process)
}

/// The same on another bus, with its axes.
fn play_on(
    (segment, axes): (Segment, &[AxisConfiguration]),
    order: FrameOrder,
    cycles: u64,
    (is_attached, follows_after): (bool, u64),
    process: impl Process + 'static,
) -> Played {
    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = IpcFolder::new(&format!("external-{run}"));
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let (ipc, _server, client) = ipc(&folder, rules(DRIVES));
    let (seen, told) = channel();
    let (counters, counted): (_, Receiver<ControllerCounters>) = channel();
    let fake = Fake {
        clock: clock.clone(),
        process,
        coming: Vec::new(),
        is_attached,
        holder: 1,
        follows_after,
        asked: 0,
        away: 0,
        counters,
    };
    let axis = ExternalAxis { mode: CyclicMode::Position.into(), position: None };
    let settings = Settings { deadline: DEADLINE, max_late: MAX_LATE, axes: vec![Some(axis); DRIVES] };
    let controller = Watched {
        controller: External::new(fake, settings),
        clock: clock.clone(),
        seen,
        state: client.state(),
        done: Instant::EPOCH,
    };
    let configuration =
        CycleConfiguration { order, cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _observer) = cycle_of(link, clock, axes, controller, configuration);
    let ended = cycle.with_ipc(ipc).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    Played { seen: told.try_iter().collect(), counters: counted.try_iter().last().unwrap(), ended }
}

/// Turns every axis at this speed from where it holds.
struct Turner {
    speed: f64,
    positions: Vec<f64>,
}

impl Turner {
    fn new(speed: f64) -> Self {
        Self { speed, positions: vec![0.0; DRIVES] }
    }

    fn answer(&mut self, request: &Question) -> Answer {
        let elapsed = request.period_ns as f64 * 1e-9 * request.periods as f64;
        let axes = request.axes.iter().zip(&mut self.positions).map(|(axis, position)| {
            match axis.phase {
                2 if !request.stopping => *position += self.speed * elapsed,
                2 => {}
                _ => *position = axis.target_position,
            }
            let target = Some(AxisTarget::Position(Radians(*position)));
            AxisAnswer { request: Some(DriveRequest::Enable), target, ..AxisAnswer::default() }
        });
        Answer { cycle: request.cycle, axes: axes.collect(), ..Answer::default() }
    }
}

const AT_ONCE: Duration = Duration::from_micros(20);

const ORDERS: [FrameOrder; 2] = [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply];

/// Cycles in which the first axis follows.
fn following(seen: &[Seen]) -> impl Iterator<Item = &Seen> {
    seen.iter().filter(|it| matches!(it.reports[0].feedback.phase, motion::AxisPhase::Following))
}

fn never_beyond_the_deadline(played: &Played) {
    for it in &played.seen {
        assert!(it.done <= it.deadline, "{it:?}");
    }
    assert_eq!(played.counters.worst_overstay_ns, 0);
    assert_eq!(played.ended.overruns.count, 0);
    assert_eq!(played.ended.before_stop.phase, BringUpPhase::Op);
}

/// Set-points sent to the first axis never leave its limits, 10 rad/s.
fn within_the_limits(played: &Played) {
    for pair in played.seen.windows(2) {
        let following = matches!(pair[1].reports[0].feedback.phase, motion::AxisPhase::Following);
        let moved = (pair[1].sent - pair[0].sent).abs();
        assert!(!following || moved <= 10.0 * PERIOD.as_secs_f64() + 1e-5, "{moved} {:?}", pair[1]);
    }
}

// feature(ipc): a controller in a separate process: an answer in time is used in its cycle, a late one in the next and counted, in both orders of frames
#[test]
fn an_answer_in_time_is_taken_in_its_own_cycle_in_both_orders() {
    for order in ORDERS {
        let mut turner = Turner::new(2.0);
        let (tell, told) = channel();
        let played = play(order, 400, move |request: &Question| {
            let answer = turner.answer(request);
            let _ = tell.send((request.cycle, answer.axes[0].target));
            Some(vec![(AT_ONCE, Ok(answer))])
        });
        never_beyond_the_deadline(&played);
        let answers: std::collections::BTreeMap<_, _> = told.try_iter().collect();
        let mut moved = 0;
        for it in following(&played.seen).filter(|it| !it.stopping) {
            let wanted = AxisTarget::Position(Radians(it.commands[0].setpoint.position.0));
            assert_eq!(answers[&it.cycle], Some(wanted), "{it:?}");
            moved += 1;
        }
        assert!(moved > 200, "{moved}");
        let counters = played.counters;
        assert_eq!((counters.late, counters.wrong, counters.stops), (0, 0, 0), "{counters:?}");
        assert_eq!(counters.response_ns.maximum, 20_000);
        assert!(played.seen.iter().all(|it| !it.lost));
        assert_eq!(played.ended.before_stop.axes[0].state, Some(State::OperationEnabled));
    }
}

// feature(ipc): a controller in a separate process: an answer in time is used in its cycle, a late one in the next and counted, in both orders of frames
#[test]
fn late_answer_is_counted_and_taken_in_the_next_cycle() {
    for order in ORDERS {
        let mut turner = Turner::new(8.0);
        let mut late = Vec::new();
        let (tell, told) = channel();
        let played = play(order, 500, move |request: &Question| {
            let answer = turner.answer(request);
            // Two in a row now and then: one fewer than stops the axes.
            let is_late = request.cycle > 200 && matches!(request.cycle % 10, 0 | 1) && !request.stopping;
            if is_late {
                late.push(request.cycle);
                let _ = tell.send(request.cycle);
            }
            Some(vec![(if is_late { Duration::from_micros(800) } else { AT_ONCE }, Ok(answer))])
        });
        never_beyond_the_deadline(&played);
        within_the_limits(&played);
        let late: Vec<u64> = told.try_iter().collect();
        let counters = &played.counters;
        assert!(late.len() > 40, "{late:?}");
        assert_eq!((counters.late, counters.most_late_in_a_row), (late.len() as u64, 2), "{counters:?}");
        assert_eq!(counters.last_late, *late.last().unwrap());
        assert_eq!(counters.taken_late, counters.late, "{counters:?}");
        assert_eq!((counters.wrong, counters.stops), (0, 0), "{counters:?}");
        // At 8 of 10 rad/s a set-point that stays constant for a cycle would be a jump, which
        // supervision stops.
        assert!(played.seen.iter().all(|it| it.reports[0].stop.is_none()));
        for it in &played.seen {
            // Waited for to the deadline, and not a moment longer.
            assert!(!late.contains(&it.cycle) || it.done == it.deadline, "{it:?}");
        }
    }
}

/// Loss of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Gone,
    Hangs,
    NotFinite,
    OtherCycle,
    Again,
    UnknownCode,
    Torn,
    WrongKind,
}

const ENDS: [End; 8] = [
    End::Gone,
    End::Hangs,
    End::NotFinite,
    End::OtherCycle,
    End::Again,
    End::UnknownCode,
    End::Torn,
    End::WrongKind,
];

impl End {
    fn answer(self, mut answer: Answer) -> Option<Vec<Coming>> {
        match self {
            Self::Gone => return None,
            Self::Hangs => return Some(Vec::new()),
            Self::NotFinite => answer.axes[1].target = Some(AxisTarget::Position(Radians(f64::NAN))),
            Self::OtherCycle => answer.cycle += 1,
            Self::Again => answer.cycle = 1,
            Self::WrongKind => answer.axes[0].target = Some(AxisTarget::Velocity(RadiansPerSecond(0.0))),
            Self::UnknownCode => return Some(vec![(AT_ONCE, Err(Wrong::Code))]),
            Self::Torn => return Some(vec![(AT_ONCE, Err(Wrong::Torn))]),
        }
        Some(vec![(AT_ONCE, Ok(answer))])
    }

    fn why(self) -> Option<Wrong> {
        Some(match self {
            Self::Gone | Self::Hangs => return None,
            Self::NotFinite => Wrong::NotFinite,
            Self::OtherCycle | Self::Again => Wrong::Cycle,
            Self::UnknownCode => Wrong::Code,
            Self::Torn => Wrong::Torn,
            Self::WrongKind => Wrong::Axis,
        })
    }
}

// feature(ipc): a controller process that is lost before its drives are enabled enables none
#[test]
fn a_process_that_is_lost_enables_no_drive() {
    for order in ORDERS {
        for end in [End::Gone, End::Hangs] {
            let mut turner = Turner::new(0.0);
            let mut answered = false;
            let played = play(order, 300, move |request: &Question| {
                let first = !std::mem::replace(&mut answered, true);
                let answer = turner.answer(request);
                if first { Some(vec![(AT_ONCE, Ok(answer))]) } else { end.answer(answer) }
            });
            assert!(played.seen.iter().any(|it| it.lost), "{end:?}");
            let enabled = |it: &Seen| it.reports[0].state == Some(State::OperationEnabled);
            assert!(!played.seen.iter().any(enabled), "{order:?}, {end:?}: enabled without a process");
        }
    }
}

/// It ends in this cycle of the process; another one is there this many later.
const ENDS_AT: u64 = 400;
// feature(ipc): a dead, hanging or wrong controller process stops the axes as the file says while the bus stays in Op, and another one takes over; a wild one moves nothing beyond its limits
#[test]
fn failed_process_stops_the_axes_and_is_replaced() {
    for order in ORDERS {
        for end in ENDS {
            let (mut first, mut second) = (Turner::new(5.0), Turner::new(-5.0));
            let mut began = None;
            let (tell, told) = channel();
            let played = play(order, 1200, move |request: &Question| {
                let began = *began.get_or_insert(request.cycle);
                let cycle = request.cycle - began;
                let ended = (ENDS_AT..ENDS_AT + BACK_AFTER).contains(&cycle);
                if ended {
                    let _ = tell.send(request.cycle);
                    return end.answer(first.answer(request));
                }
                let turner = if cycle < ENDS_AT { &mut first } else { &mut second };
                Some(vec![(AT_ONCE, Ok(turner.answer(request)))])
            });
            let ended: Vec<u64> = told.try_iter().collect();
            let from = ended[0];
            let to = if end == End::Gone { from + BACK_AFTER - 1 } else { *ended.last().unwrap() };
            never_beyond_the_deadline(&played);
            within_the_limits(&played);
            let counters = &played.counters;
            assert_eq!(counters.stops, 1, "{end:?} {counters:?}");
            match end.why() {
                Some(why) => {
                    assert_eq!(counters.why_wrong, why as u64, "{end:?}");
                    assert_eq!((counters.wrong, counters.last_wrong), (ended.len() as u64, to), "{end:?}");
                }
                None => assert_eq!(counters.wrong, 0),
            }
            let at = |cycle: u64| played.seen.iter().find(|it| it.cycle == cycle).unwrap();
            // It moved before, and it is brought to rest: supervision has it, and the drive keeps
            // its torque.
            assert!(at(from - 1).reports[0].feedback.velocity.0 > 4.0, "{end:?}");
            let until = if end == End::Hangs { u64::from(MAX_LATE) } else { 1 };
            assert!(at(from + until).lost, "{end:?}");
            assert!(!at(from + until - 2).lost, "{end:?}");
            let resting = at(to);
            assert_eq!(resting.reports[0].stop, Some(StopReason::Stale), "{end:?}");
            assert!(resting.reports[0].feedback.velocity.0.abs() < 0.05, "{end:?} {resting:?}");
            assert_eq!(resting.reports[0].state, Some(State::OperationEnabled), "{end:?}");
            // The next one turns it the other way.
            let last = played.seen.iter().rfind(|it| !it.stopping).unwrap();
            assert!(last.reports[0].feedback.velocity.0 < -4.0, "{end:?} {last:?}");
            assert_eq!(last.reports[0].stop, None);
        }
    }
}

// feature(ipc): a dead, hanging or wrong controller process stops the axes as the file says while the bus stays in Op, and another one takes over; a wild one moves nothing beyond its limits
#[test]
fn immediate_successor_finds_the_axes_stopped() {
    for order in ORDERS {
        let mut turners = [Turner::new(5.0), Turner::new(-5.0)];
        let (tell, told) = channel();
        let mut asked = 0;
        let played = play_from(order, 900, true, ENDS_AT, move |request: &Question| {
            asked += 1;
            if asked == ENDS_AT + 1 {
                let _ = tell.send(request.clone());
            }
            let turner = &mut turners[usize::from(asked > ENDS_AT)];
            Some(vec![(AT_ONCE, Ok(turner.answer(request)))])
        });
        never_beyond_the_deadline(&played);
        within_the_limits(&played);
        let first: Question = told.try_iter().next().unwrap();
        assert_eq!(first.axes[0].phase, 1, "{first:?}");
        assert!(first.axes[0].velocity > 4.0, "it moved until then: {first:?}");
        assert_eq!((played.counters.stops, played.counters.wrong), (1, 0), "{:?}", played.counters);
        let last = played.seen.iter().rfind(|it| !it.stopping).unwrap();
        assert!(last.reports[0].feedback.velocity.0 < -4.0, "{last:?}");
    }
}

// feature(ipc): a dead, hanging or wrong controller process stops the axes as the file says while the bus stays in Op, and another one takes over; a wild one moves nothing beyond its limits
#[test]
fn bus_reaches_op_without_a_process() {
    for order in ORDERS {
        let played = play_from(order, 100, false, u64::MAX, |_: &Question| None);
        never_beyond_the_deadline(&played);
        let axis = played.ended.before_stop.axes[0];
        assert_eq!((axis.state, axis.stop), (Some(State::SwitchOnDisabled), None));
        assert_eq!((played.counters.late, played.counters.stops), (0, 0));
    }
}

// feature(ipc): a controller process that has disabled its axes, or never enabled one, may go: the run ends well
#[test]
fn process_may_leave_after_disabling_its_axes() {
    for order in ORDERS {
        let requests = [
            (DriveRequest::Enable, DriveRequest::Disable, false),
            (DriveRequest::Disable, DriveRequest::Disable, false),
            (DriveRequest::Enable, DriveRequest::Enable, true),
        ];
        for (first, last, missed) in requests {
            let mut turner = Turner::new(0.0);
            let mut asked = 0;
            let played = play(order, 500, move |request: &Question| {
                asked += 1;
                let mut answer = turner.answer(request);
                let request = Some(if asked < 250 { first } else { last });
                answer.axes.iter_mut().for_each(|axis| axis.request = request);
                (asked < 400).then(|| vec![(AT_ONCE, Ok(answer))])
            });
            never_beyond_the_deadline(&played);
            assert!(played.seen.iter().any(|it| it.lost), "it went");
            assert_eq!(played.ended.controller_lost, missed, "{first:?} {last:?}");
            assert_eq!(played.counters.stops, u64::from(missed), "{first:?} {last:?}");
            let stop = played.ended.before_stop.axes[0].stop;
            assert_eq!(stop.is_some(), missed, "{first:?} {last:?} {stop:?}");
        }
    }
}

/// Anything finite, any request, any time.
// feature(ipc): a dead, hanging or wrong controller process stops the axes as the file says while the bus stays in Op, and another one takes over; a wild one moves nothing beyond its limits
#[test]
fn wild_process_breaks_no_limit_and_delays_no_cycle() {
    for (seed, order) in [(1, ORDERS[0]), (2, ORDERS[1]), (3, ORDERS[0])] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut turner = Turner::new(9.0);
        let played = play(order, 6_000, move |request: &Question| {
            let mut coming = Vec::new();
            for _ in 0..random.u8(..4) {
                let mut answer = turner.answer(request);
                if random.u8(..4) == 0 {
                    answer.cycle = request.cycle.wrapping_add(random.u64(..4)).wrapping_sub(2);
                }
                for axis in &mut answer.axes {
                    let Some(AxisTarget::Position(position)) = &mut axis.target else { continue };
                    match random.u8(..8) {
                        0 => position.0 = (random.f64() - 0.5) * 10_f64.powi(random.i32(-3..12)),
                        1 => position.0 += random.f64() - 0.5,
                        _ => {}
                    }
                    let reset = random.u8(..3) == 0;
                    axis.request =
                        Some(if reset { DriveRequest::FaultReset } else { DriveRequest::Enable });
                    axis.home = random.u8(..50) == 0;
                }
                coming.push((Duration::from_micros(random.u64(..1500)), Ok(answer)));
            }
            Some(coming)
        });
        never_beyond_the_deadline(&played);
        within_the_limits(&played);
        let counters = played.counters;
        assert!(counters.late > 100 && counters.wrong > 100 && counters.answered > 100, "{counters:?}");
    }
}
