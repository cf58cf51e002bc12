//! SubDevices in the cycle's own thread: a host that stalls moves neither their time nor an axis.
//! In virtual time, of which the host has one and the bus another.
use crate::support;

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use ethercat::cia402::State;
use ethercat::time::Instant;
use ethercat_linux::link::{DirectEnd, DirectLink, FaultRates, Faults, Faulty, Link, Redundant};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder, HostStalls};
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use record::CycleRecord;
use rt::clock::{Clock, VirtualClock};
use rt::pacer::OverrunPolicy;
use support::{PERIOD, Sway, cycle_in_bus_time, segment, supervised};

const DRIVES: usize = 3;

const ROUND_TRIP: Duration = Duration::from_micros(20);

/// Stalls of the host in one run, each after a hundred cycles.
const STALLS: [Duration; 5] = [
    Duration::from_micros(1_500),
    Duration::from_millis(30),
    Duration::from_millis(105),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// Stalls the host on the way.
struct Stalling {
    sway: Sway,
    host: VirtualClock,
    enabled: usize,
    tell: mpsc::Sender<(CycleInfo, bool)>,
}

impl Controller for Stalling {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        let well = io
            .axes()
            .iter()
            .all(|it| it.state == Some(State::OperationEnabled) && it.stop.is_none() && it.feedback.fresh);
        if well && !info.stopping {
            self.enabled += 1;
            let stall = STALLS.get(self.enabled / 100).filter(|_| self.enabled % 100 == 50);
            stall.into_iter().for_each(|stall| self.host.advance(*stall));
        }
        if self.enabled > 0 && !info.stopping {
            let _ = self.tell.send((info, well));
        }
    }
}

fn stalled<L: Link>(link: L, bus: VirtualClock, order: FrameOrder, overrun: OverrunPolicy) {
    let host = VirtualClock::at(Instant::from_nanos(77_000_000_000));
    let (tell, told) = mpsc::channel();
    let controller = Stalling { sway: Sway::new(DRIVES), host: host.clone(), enabled: 0, tell };
    let configuration =
        CycleConfiguration { order, overrun, cycles: Some(2_000), ..CycleConfiguration::every(PERIOD) };
    let clocks = (host.clone(), bus);
    let (cycle, mut observer) =
        cycle_in_bus_time(link, clocks, &supervised(DRIVES), controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!((ended.failure, ended.lost), (None, None));
    let reception = ended.before_stop.reception;
    assert_eq!((reception.lost, reception.late), (0, 0), "{reception:?}");
    let told: Vec<_> = told.try_iter().collect();
    assert!(told.len() > 1_500 && told.iter().all(|(_, well)| *well), "{}", told.len());
    for pair in told.windows(2) {
        let [(before, _), (after, _)] = [pair[0], pair[1]];
        assert_eq!((after.cycle, after.periods), (before.cycle + 1, 1));
        assert_eq!(after.bus_time.since(before.bus_time), PERIOD);
        assert_eq!(after.release.since(before.release).as_nanos() % PERIOD.as_nanos(), 0);
    }
    let longest = *STALLS.last().unwrap();
    let stalls = ended.host_stalls.unwrap();
    assert!(stalls.longest >= longest - PERIOD && stalls.longest <= longest + PERIOD, "{stalls:?}");
    let HostStalls { count, beyond_watchdog, .. } = stalls;
    assert!((4..=5).contains(&count) && beyond_watchdog == 3, "{stalls:?}");
    let events = std::iter::from_fn(|| observer.next_event());
    let stops = |it: &Happening| matches!(it, Happening::AxisStopped { .. } | Happening::Stalled { .. });
    assert_eq!(events.filter(|it| stops(&it.what)).count(), 0);
}

fn bus() -> VirtualClock {
    VirtualClock::at(Instant::from_nanos(5_000_000_000))
}

// feature(simulator): bus time: stalls and load of the computer stop no axis and lose no frame of a bus in the process
#[test]
fn a_host_that_stalls_is_no_outage_of_a_bus_in_the_process() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        for overrun in [OverrunPolicy::Skip, OverrunPolicy::CatchUp, OverrunPolicy::Stop] {
            let bus = bus();
            stalled(DirectLink::new(segment(DRIVES), bus.clone(), ROUND_TRIP), bus, order, overrun);
        }
    }
}

/// Link to SubDevices that take the host one and a half periods a frame.
struct SlowSubDevices<L> {
    link: L,
    host: VirtualClock,
    spent: Duration,
}

impl<L: Link> Link for SlowSubDevices<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let took = PERIOD * 3 / 2;
        self.host.advance(took);
        self.spent += took;
        self.link.transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.link.receive(buffer, timeout)
    }

    fn take_simulation_time(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }
}

// feature(simulator): bus time: the time of simulated SubDevices is neither an overrun nor a host stall
#[test]
fn slow_simulated_sub_devices_are_no_overrun_and_no_stall() {
    let (bus, host) = (bus(), VirtualClock::at(Instant::from_nanos(77_000_000_000)));
    let link = DirectLink::new(segment(DRIVES), bus.clone(), ROUND_TRIP);
    let link = SlowSubDevices { link, host: host.clone(), spent: Duration::ZERO };
    let configuration = CycleConfiguration { cycles: Some(200), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) =
        cycle_in_bus_time(link, (host, bus), &supervised(DRIVES), Sway::new(DRIVES), configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!((ended.failure, ended.host_stalls), (None, Some(HostStalls::default())));
    let records: Vec<_> = std::iter::from_fn(|| observer.next_record()).collect();
    let late = |it: &&CycleRecord| it.end_ns > it.release_ns + PERIOD.as_nanos() as u64;
    assert!(records.len() >= 200 && records.iter().filter(late).count() > 100);
    assert_eq!(records.iter().find(|it| it.overrun), None);
}

/// Each cycle takes the host twenty periods from the second signal on.
struct Slow {
    sway: Sway,
    host: VirtualClock,
    enabled: usize,
    stop: StopHandle,
    tell: mpsc::Sender<Instant>,
}

impl Controller for Slow {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        // It moves on: supervision stops the axes.
        self.sway.update(CycleInfo { stopping: false, ..info }, io);
        self.enabled += 1;
        if self.enabled == 1_000 {
            self.stop.hurry();
            let _ = self.tell.send(self.host.now());
        }
        if self.enabled >= 1_000 {
            self.host.advance(PERIOD * 20);
        }
    }
}

#[test]
fn a_hurried_stop_in_bus_time_ends_in_the_hosts_time_too() {
    let (bus, host) = (bus(), VirtualClock::at(Instant::from_nanos(77_000_000_000)));
    let link = DirectLink::new(segment(DRIVES), bus.clone(), ROUND_TRIP);
    let ((tell, told), stop) = (mpsc::channel(), StopHandle::new());
    let controller =
        Slow { sway: Sway::new(DRIVES), host: host.clone(), enabled: 0, stop: stop.clone(), tell };
    let clocks = (host.clone(), bus);
    let configuration = CycleConfiguration::every(PERIOD);
    let (cycle, _observer) =
        cycle_in_bus_time(link, clocks, &supervised(DRIVES), controller, configuration);
    let ended = cycle.run(&stop);
    let took = host.now().since(told.recv().unwrap());
    assert!(took <= Duration::from_millis(2_050), "{took:?}, {:?}", ended.status.phase);
}

#[test]
fn a_host_that_stalls_is_no_outage_of_a_ring_in_the_process() {
    let bus = bus();
    let [first, second] = DirectEnd::ring(segment(DRIVES), bus.clone(), ROUND_TRIP);
    let ring = Redundant::with_clock(first, second, bus.clone()).with_wait(PERIOD / 2);
    stalled(ring, bus, FrameOrder::ReplyOfLastCycle, OverrunPolicy::Skip);
}

/// Replies that are there within three quarters of a period of bus time are in time, and others are
/// not, whatever the host does.
#[test]
fn delays_of_frames_are_in_bus_time() {
    for (delay, lost) in [(700, false), (800, true)] {
        let (bus, host) = (bus(), VirtualClock::at(Instant::from_nanos(1)));
        let delay_by = Duration::from_micros(delay) - ROUND_TRIP;
        let rates = FaultRates { delay: 1.0, delay_by, ..FaultRates::default() };
        let (mut control, changes) = ethercat_linux::link::FaultControl::pair();
        let link = DirectLink::new(segment(DRIVES), bus.clone(), ROUND_TRIP);
        let link = Faulty::with_clock(link, Faults::default(), bus.clone()).changed_by(changes);
        let (tell, told) = mpsc::channel();
        let controller = Stalling { sway: Sway::new(DRIVES), host: host.clone(), enabled: 0, tell };
        let configuration = CycleConfiguration {
            order: FrameOrder::WaitForReply,
            cycles: Some(500),
            ..CycleConfiguration::every(PERIOD)
        };
        let clocks = (host, bus.clone());
        let (cycle, _observer) =
            cycle_in_bus_time(link, clocks, &supervised(DRIVES), controller, configuration);
        control.set_rates(Faults { replies: rates, ..Faults::default() });
        let before = bus.now();
        let ended = cycle.run(&StopHandle::new());
        assert!(bus.now().since(before) > PERIOD * 10);
        assert_eq!(ended.before_stop.reception.late > 0 || ended.cycles_in_op == 0, lost, "{delay} us");
        assert_eq!(told.try_iter().count() > 100, !lost, "{delay} us");
    }
}
