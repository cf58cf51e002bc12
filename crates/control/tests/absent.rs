//! A drive that the bus may be without, in virtual time: absent at the start, it joins in
//! operation, and its axis stays stopped until it is reset.
//!
//! A drive that loses its power while the cycle runs, in virtual time: its axis is no longer homed,
//! and continues only after a start request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::{Request, State};
use ethercat::main_device::{
    Configuration, Event, ExpectedIdentity, MainDevice, Presence, ProcessDataSource, SubDeviceConfiguration,
};
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::DirectLink;
use motion::homing::Homing;
use motion::supervision::{AfterOutage, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::{Cycle, CycleConfiguration, Ended};
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::Circumstances;
use rt::clock::VirtualClock;
use simulator::Segment;
use simulator::application::servo::default_mapping;
use support::scripted::play;
use support::{PERIOD, segment, supervised};

use crate::support;

/// Two drives of which the second has no power yet.
struct Late {
    segment: Segment,
    since: Option<Instant>,
    /// Time of its power.
    after: Duration,
}

impl ethercat::link::Segment for Late {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let since = *self.since.get_or_insert(now);
        if now.since(since) > self.after && !self.segment.is_powered(1) {
            assert!(self.segment.power_on(1));
        }
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// Wants both axes enabled, where they stand, and resets the second in one cycle.
struct Wants {
    reset_in: u64,
    cycle: u64,
    seen: Sender<[AxisReport; 2]>,
}

impl Controller for Wants {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(&mut *commands) {
            command.request = Request::Enable;
            command.setpoint.velocity = RadiansPerSecond::ZERO;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint.position = position;
            }
        }
        self.cycle += 1;
        if self.cycle == self.reset_in {
            commands[1].request = Request::FaultReset;
        }
        if !info.stopping {
            let _ = self.seen.send([reports[0], reports[1]]);
        }
    }
}

/// Reports of both axes in each cycle, the events, and the end.
fn played(
    after: Duration,
    reset_in: u64,
) -> (Vec<[AxisReport; 2]>, Vec<(u64, Happening)>, Ended<impl Sized>) {
    let mut bare = segment(2);
    assert!(bare.power_off(1));
    let late = Late { segment: bare, since: None, after };
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let mut link = DirectLink::new(late, clock.clone(), Duration::from_micros(60));
    let drive = |presence| SubDeviceConfiguration {
        identity: Some(ExpectedIdentity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: None }),
        process_data: ProcessDataSource::Explicit(default_mapping()),
        presence,
        ..SubDeviceConfiguration::default()
    };
    let mut main_device = MainDevice::new(Configuration {
        sub_devices: Some(vec![drive(Presence::Required), drive(Presence::Optional)]),
        target: AlState::Op,
        period: PERIOD,
        ..Configuration::default()
    })
    .unwrap();
    let stop = AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
    let stays = |axis: AxisConfiguration| {
        let mut supervision = axis.supervision.unwrap();
        supervision.outage.after = AfterOutage::Stay;
        AxisConfiguration { supervision: Some(supervision), ..axis }
    };
    let mut axes: Vec<_> = supervised(2).into_iter().map(stays).collect();
    // An axis that was never on the bus, or has just joined, stops no other axis.
    axes[1].stops = vec![0];
    let (seen, told) = channel();
    let controller = Box::new(Wants { reset_in, cycle: 0, seen });
    let configuration = CycleConfiguration { cycles: Some(4_000), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) =
        Cycle::new(main_device, link, clock, &axes, controller, configuration).unwrap();
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let events = std::iter::from_fn(|| observer.next_event()).map(|it| (it.cycle, it.what)).collect();
    (told.try_iter().collect(), events, ended)
}

// feature(axes): an axis whose drive is absent stays stopped; after the drive has joined, a reset enables it
#[test]
fn axis_of_a_joined_drive_stays_stopped_until_requested() {
    const RESET: u64 = 3_000;
    let (seen, events, ended) = played(Duration::from_secs(1), RESET);
    let joined = events.iter().find(|(_, it)| matches!(it, Happening::Bus(Event::Joined { position: 1 })));
    let joined = joined.unwrap_or_else(|| panic!("{events:?}")).0 as usize;
    assert!((1000..2500).contains(&joined), "{joined}");
    let enabled = |at: usize, axis: usize| seen[at][axis].state == Some(State::OperationEnabled);
    let first = (0..seen.len()).find(|&at| enabled(at, 0)).unwrap();
    // The axis on the bus is not affected.
    assert!(
        (first..seen.len())
            .all(|at| enabled(at, 0) && seen[at][0].missed == 0 && seen[at][0].stop.is_none())
    );
    let absent = &seen[700][1];
    assert_eq!((absent.absent, absent.stop, absent.state), (true, Some(StopReason::Outage), None));
    assert!((0..RESET as usize - 1).all(|at| !enabled(at, 1)), "nobody asked");
    let waits = &seen[RESET as usize - 10][1];
    assert_eq!((waits.absent, waits.missed, waits.stop), (false, 0, Some(StopReason::Outage)));
    assert!(enabled(seen.len() - 1, 1), "{:?}", seen.last());
    let circumstances = Circumstances { period: PERIOD, hurried: false, resumes: false };
    assert_eq!(ended.findings(circumstances), []);
}

#[test]
fn one_that_never_comes_is_no_failure() {
    let (seen, events, ended) = played(Duration::from_secs(1_000), 3_000);
    assert!(seen.iter().all(|it| it[1].state.is_none()) && seen.last().unwrap()[1].absent);
    let told = |wanted: fn(&Happening) -> bool| events.iter().filter(|(_, it)| wanted(it)).count();
    assert_eq!(told(|it| matches!(it, Happening::Bus(Event::Absent { position: 1 }))), 1, "{events:?}");
    assert_eq!(told(|it| matches!(it, Happening::SubDeviceLost { .. })), 0);
    let circumstances = Circumstances { period: PERIOD, hurried: false, resumes: false };
    assert_eq!(ended.findings(circumstances), []);
}

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

// feature(axes): an axis returns at standstill after its drive was without power, and is not homed without an absolute encoder
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
