//! The whole stack in virtual time: MainDevice, cycle and axes against simulated drives, the same
//! every time.
//!
//! A cycle that runs past its next release, under each policy: skipped, caught up with, or the end.
//! In virtual time.

use std::sync::mpsc;
use std::time::Duration;

use ethercat::cia402::State;
use ethercat::main_device::BringUpPhase;
use ethercat_linux::link::{DirectLink, FaultRates, Faults, Faulty};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, Ended, FrameOrder};
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use record::CycleRecord;
use rt::clock::{Clock, VirtualClock};
use rt::pacer::OverrunPolicy;
use simulator::Segment;
use support::{PERIOD, Sway, cycle, segment};

use crate::support;

const DRIVES: usize = 6;

const ROUND_TRIP: Duration = Duration::from_micros(60);

fn configuration(order: FrameOrder, cycles: u64) -> CycleConfiguration {
    CycleConfiguration { order, cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) }
}

type See = dyn FnMut(&[AxisReport]) + Send;

/// Sees what the axes report; the motion is [`Sway`]'s.
struct Watched {
    sway: Sway,
    see: Box<See>,
}

impl Controller for Watched {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        (self.see)(io.axes());
        self.sway.update(info, io);
    }
}

// feature(cycle): both frame orders
#[test]
fn six_axes_are_enabled_follow_and_return_to_init() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let clock = VirtualClock::default();
        clock.advance(Duration::from_secs(1000));
        let link = DirectLink::new(segment(DRIVES), clock.clone(), ROUND_TRIP);
        let (mut farthest, mut fastest) = (0.0_f64, 0.0_f64);
        let (sender, seen) = mpsc::channel();
        let mut last: Option<Vec<f64>> = None;
        let see = move |reports: &[AxisReport]| {
            let positions: Vec<f64> = reports.iter().map(|report| report.feedback.position.0).collect();
            if reports.iter().all(|report| report.state == Some(State::OperationEnabled)) {
                for (axis, position) in positions.iter().enumerate() {
                    farthest = farthest.max((position - axis as f64).abs());
                    let before = last.as_ref().map_or(*position, |last| last[axis]);
                    fastest = fastest.max((position - before).abs());
                }
                let _ = sender.send((farthest, fastest));
            }
            last = Some(positions);
        };
        let controller = Watched { sway: Sway::new(DRIVES), see: Box::new(see) };
        let (cycle, mut observer) = cycle(link, clock, DRIVES, controller, configuration(order, 2_000));
        let ended = cycle.run(&StopHandle::new());

        assert_eq!(ended.failure, None);
        assert_eq!(ended.overruns.count, 0);
        assert_eq!(ended.status.phase, BringUpPhase::Down);
        let (farthest, fastest) = seen.try_iter().last().expect("Operation enabled was reached");
        // Half a radian at 1 Hz: 3.14 rad/s at most, a little more while the amplitude grows.
        assert!((0.45..0.55).contains(&farthest), "{order:?}: {farthest} rad");
        assert!((2e-3..5e-3).contains(&fastest), "{order:?}: {fastest} rad in a cycle");
        let records: Vec<CycleRecord> = std::iter::from_fn(|| observer.next_record()).collect();
        assert!(records.len() > 2_000 && observer.dropped_records() == 0);
        assert!(records.windows(2).all(|pair| pair[1].cycle == pair[0].cycle + 1));
        let bad = records.iter().filter(|record| record.lost_frames > 0 || record.overrun).count();
        assert_eq!(bad, 0, "{order:?}");
        let working = records.iter().rposition(|record| !record.working_counter_ok);
        assert!(working.is_none_or(|last| !(200..=2_000).contains(&last)), "{order:?}: cycle {working:?}");
        let before = &ended.before_stop;
        assert_eq!(before.phase, BringUpPhase::Op);
        assert!(before.sub_devices.iter().all(|it| it.exchanges), "{order:?}: {:?}", before.sub_devices);
        assert!(before.axes.iter().all(|axis| axis.state == Some(State::OperationEnabled)), "{order:?}");
        let events = std::iter::from_fn(|| observer.next_event());
        let lost = events.filter(|event| matches!(event.what, Happening::SubDeviceLost { .. }));
        assert_eq!(lost.count(), 0, "{order:?}");
    }
}

// feature(cycle): a bad cable costs cycles and nothing else
#[test]
fn a_bad_cable_costs_cycles_and_nothing_else() {
    let faults = |replies: FaultRates| Faults {
        requests: FaultRates { loss: 0.005, ..FaultRates::default() },
        replies: FaultRates { loss: 0.005, delay_by: Duration::from_millis(5), ..replies },
        seed: 4,
    };
    let replies = FaultRates { delay: 0.01, duplicate: 0.02, reorder: 0.02, ..FaultRates::default() };
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let clock = VirtualClock::default();
        clock.advance(Duration::from_secs(1000));
        let direct = DirectLink::new(segment(DRIVES), clock.clone(), ROUND_TRIP);
        let link = Faulty::with_clock(direct, faults(replies), clock.clone());
        let (cycle, mut observer) =
            cycle(link, clock.clone(), DRIVES, Sway::new(DRIVES), configuration(order, 7_000));
        let began = clock.now();
        let ended = cycle.run(&StopHandle::new());
        assert_eq!(ended.failure, None, "{order:?} after {:?}", clock.now().since(began));
        assert_eq!(ended.status.phase, BringUpPhase::Down, "{order:?}");
        let (requests, replies) = (ended.link.requests(), ended.link.replies());
        let counted = ended.main_device.reception();
        assert!(requests.lost > 10 && replies.lost > 10 && replies.delayed > 20 && replies.duplicated > 50);
        assert!(counted.lost >= requests.lost + replies.lost, "{counted:?} {requests:?} {replies:?}");
        assert!(counted.duplicate > 0 && counted.late > 0, "{counted:?}");
        assert_eq!(
            counted.foreign + counted.other_main_device + counted.truncated + counted.mismatched,
            0,
            "{counted:?}"
        );
        let records: Vec<CycleRecord> = std::iter::from_fn(|| observer.next_record()).collect();
        let lost = records.iter().filter(|record| record.lost_frames > 0).count();
        assert!(lost > 100 && lost < records.len() / 8, "{lost} of {}", records.len());
    }
}

const LATE_DRIVES: usize = 2;

/// Takes three and a half periods on the hundredth enabled cycle.
struct Stumbling {
    sway: Sway,
    enabled: u64,
    clock: VirtualClock,
    tell: mpsc::Sender<(u64, Vec<f64>, bool)>,
}

impl Controller for Stumbling {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        if io.axes().iter().all(|report| report.state == Some(State::OperationEnabled)) && !info.stopping {
            self.enabled += 1;
            if self.enabled == 100 {
                self.clock.advance(PERIOD * 7 / 2);
            }
        }
        let positions = io.axes().iter().map(|report| report.feedback.position.0).collect();
        let fresh = io.axes().iter().all(|report| report.feedback.fresh);
        let _ = self.tell.send((info.cycle, positions, fresh));
    }
}

struct Ran {
    ended: Ended<DirectLink<Segment, VirtualClock>>,
    records: Vec<CycleRecord>,
    cycles: Vec<(u64, Vec<f64>, bool)>,
}

fn run(overrun: OverrunPolicy, order: FrameOrder) -> Ran {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(segment(LATE_DRIVES), clock.clone(), Duration::from_micros(60));
    let (tell, told) = mpsc::channel();
    let controller = Stumbling { sway: Sway::new(LATE_DRIVES), enabled: 0, clock: clock.clone(), tell };
    let configuration =
        CycleConfiguration { order, cycles: Some(1_000), overrun, ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle(link, clock, LATE_DRIVES, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let records = std::iter::from_fn(|| observer.next_record()).collect();
    Ran { ended, records, cycles: told.try_iter().collect() }
}

/// The one cycle with the first overrun.
fn stumbled(ran: &Ran) -> u64 {
    ran.ended.overruns.first.expect("one cycle overran")
}

// feature(hold): overrun policies skip, catch-up, stop
#[test]
fn skipped_releases_leave_a_gap() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let ran = run(OverrunPolicy::Skip, order);
        let first = stumbled(&ran);
        assert_eq!((ran.ended.overruns.count, ran.ended.overruns.skipped), (1, 3), "{order:?}");
        let after = ran.records.iter().find(|record| record.cycle > first).unwrap();
        assert_eq!((after.cycle, after.skipped), (first + 4, 3));
        assert_eq!(ran.ended.stopped_by_overrun, None);
        assert!(ran.records.len() > 1_000);
    }
}

// feature(hold): overrun policies skip, catch-up, stop
#[test]
fn caught_up_cycles_run_late_in_small_steps() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let ran = run(OverrunPolicy::CatchUp, order);
        let first = stumbled(&ran);
        assert_eq!((ran.ended.overruns.skipped, ran.ended.overruns.caught_up), (0, 3), "{order:?}");
        assert!(
            ran.records.windows(2).all(|pair| pair[1].cycle == pair[0].cycle + 1),
            "every cycle is run"
        );
        let late = ran.records.iter().filter(|record| (first + 1..=first + 3).contains(&record.cycle));
        assert!(late.clone().all(|record| record.wakeup_latency() > 0));
        let lost: u32 = late.map(|record| record.lost_frames).sum();
        assert_eq!(lost, 0, "{order:?}: a cycle behind another waits for the reply");
        // No cycle is missing, so no target jumps: at most 3.2 rad/s for 1 ms, and the drives
        // follow.
        let seen = ran.cycles.iter().filter(|(cycle, ..)| (first..first + 20).contains(cycle));
        let positions: Vec<f64> = seen.map(|(_, positions, _)| positions[0]).collect();
        assert_eq!(positions.len(), 20);
        assert!(positions.windows(2).all(|pair| (pair[1] - pair[0]).abs() < 0.02), "{positions:?}");
        assert_eq!(ran.ended.status.phase, BringUpPhase::Down);
    }
}

// feature(hold): overrun policies skip, catch-up, stop
#[test]
fn a_stop_latches_the_cycle_and_brings_the_axes_to_rest() {
    let ran = run(OverrunPolicy::Stop, FrameOrder::ReplyOfLastCycle);
    let first = stumbled(&ran);
    assert_eq!(ran.ended.stopped_by_overrun, Some(first));
    assert_eq!(ran.ended.status.phase, BringUpPhase::Down);
    let cycles = ran.records.iter().filter(|record| record.cycle > first).count();
    assert!((50..900).contains(&cycles), "a ramp, a rest, Init: {cycles} cycles");
    let last: Vec<&(u64, Vec<f64>, bool)> =
        ran.cycles.iter().filter(|(cycle, _, fresh)| *fresh && *cycle > first).collect();
    let (before, end) = (&last[last.len() - 5].1, &last[last.len() - 1].1);
    assert!(before.iter().zip(end).all(|(before, end)| (before - end).abs() < 1e-4), "{before:?} {end:?}");
}

#[test]
fn an_overrun_on_the_way_to_op_is_counted_only() {
    /// Stumbles before anything is enabled.
    struct Early(Sway, VirtualClock, u64);
    impl Controller for Early {
        fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
            self.0.update(info, io);
            self.2 += 1;
            if self.2 == 3 {
                self.1.advance(PERIOD * 2);
            }
        }
    }
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(segment(LATE_DRIVES), clock.clone(), Duration::from_micros(60));
    let controller = Early(Sway::new(LATE_DRIVES), clock.clone(), 0);
    let configuration = CycleConfiguration {
        cycles: Some(100),
        overrun: OverrunPolicy::Stop,
        ..CycleConfiguration::every(PERIOD)
    };
    let (cycle, _observer) = cycle(link, clock, LATE_DRIVES, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!((ended.failure, ended.stopped_by_overrun), (None, None));
    assert_eq!((ended.overruns.count, ended.overruns.first), (1, Some(2)));
}
