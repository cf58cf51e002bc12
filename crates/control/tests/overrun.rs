//! A cycle that runs past its next release, under each policy: skipped, caught up with, or the end.
//! In virtual time.
use crate::support;

use std::sync::mpsc;
use std::time::Duration;

use ethercat::cia402::State;
use ethercat::main_device::BringUpPhase;
use ethercat_linux::link::DirectLink;
use onbeat_control::controller::{Controller, CycleInfo};
use onbeat_control::cycle::{CycleConfiguration, Ended, FrameOrder};
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;
use record::CycleRecord;
use rt::clock::VirtualClock;
use rt::pacer::OverrunPolicy;
use simulator::Segment;
use support::{PERIOD, Sway, cycle, segment};

const DRIVES: usize = 2;

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
    let link = DirectLink::new(segment(DRIVES), clock.clone(), Duration::from_micros(60));
    let (tell, told) = mpsc::channel();
    let controller = Stumbling { sway: Sway::new(DRIVES), enabled: 0, clock: clock.clone(), tell };
    let configuration =
        CycleConfiguration { order, cycles: Some(1_000), overrun, ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle(link, clock, DRIVES, controller, configuration);
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
    let link = DirectLink::new(segment(DRIVES), clock.clone(), Duration::from_micros(60));
    let controller = Early(Sway::new(DRIVES), clock.clone(), 0);
    let configuration = CycleConfiguration {
        cycles: Some(100),
        overrun: OverrunPolicy::Stop,
        ..CycleConfiguration::every(PERIOD)
    };
    let (cycle, _observer) = cycle(link, clock, DRIVES, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!((ended.failure, ended.stopped_by_overrun), (None, None));
    assert_eq!((ended.overruns.count, ended.overruns.first), (1, Some(2)));
}
