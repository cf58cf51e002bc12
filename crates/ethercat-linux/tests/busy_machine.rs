//! Bring-up to PreOp by a thread that stalls now and then, as on a busy machine. In virtual time.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{BringUpPhase, Configuration, MainDevice};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_ethercat_linux::bring_up::{BRING_UP_TIMEOUT, Pump};
use onbeat_ethercat_linux::cyclic;
use onbeat_ethercat_linux::link::Link;
use rt::clock::{Clock, VirtualClock};
use simulator::application::{NoApplication, sii};
use simulator::{EscDescription, Segment, SubDevice};

/// A segment that answers at once; the thread stalls before every `every`th frame is taken.
struct Stalling {
    clock: VirtualClock,
    segment: Segment,
    replies: VecDeque<Vec<u8>>,
    taken: usize,
    every: usize,
    stall: Duration,
}

impl Link for Stalling {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut frame = frame.to_vec();
        if self.segment.process_frame(self.clock.now(), &mut frame) {
            self.replies.push_back(frame);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let Some(frame) = self.replies.pop_front() else {
            self.clock.sleep_until(self.clock.now() + timeout);
            self.segment.advance(self.clock.now());
            return Ok(None);
        };
        self.taken += 1;
        if self.taken % self.every == 0 {
            self.clock.sleep_until(self.clock.now() + self.stall);
        }
        buffer[..frame.len()].copy_from_slice(&frame);
        Ok(Some(frame.len()))
    }
}

fn coupler() -> SubDevice {
    let sii = sii::coupler(Identity { vendor_id: 2, product_code: 3, revision: 1, serial: 0 }, "coupler");
    SubDevice::new(EscDescription::default(), sii.image().emit(), Box::new(NoApplication))
}

/// Brings up a bus with more datagrams than one frame holds, with such stalls; returns the number
/// of frames lost.
fn bring_up(every: usize, stall: Duration) -> u64 {
    let clock = VirtualClock::default();
    clock.sleep_until(clock.now() + Duration::from_secs(1));
    let segment = Segment::new((0..120).map(|_| coupler()).collect());
    let mut link =
        Stalling { clock: clock.clone(), segment, replies: VecDeque::new(), taken: 0, every, stall };
    let mut main_device = MainDevice::new(Configuration::scan()).unwrap();
    let stop = AtomicBool::new(false);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    pump.bring_up(BRING_UP_TIMEOUT, |_| ()).unwrap();
    main_device.reception().lost
}

/// Replies that came meanwhile lie in the link: they are taken before their frames are given up.
// feature(main-device): replies that waited for a thread that did not run are not lost
#[test]
fn replies_survive_a_stalled_thread() {
    for every in [1, 2, 3, 7] {
        assert_eq!(bring_up(every, Duration::from_millis(400)), 0, "every {every}");
    }
}

#[test]
fn stalls_beyond_the_time_out_do_not_fail_bring_up() {
    for every in [5, 20, 50] {
        bring_up(every, BRING_UP_TIMEOUT * 2);
    }
}

/// A segment with replies that take so long.
struct Slow {
    clock: VirtualClock,
    segment: Segment,
    replies: VecDeque<(Instant, Vec<u8>)>,
    delay: Duration,
}

impl Link for Slow {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut frame = frame.to_vec();
        if self.segment.process_frame(self.clock.now(), &mut frame) {
            self.replies.push_back((self.clock.now() + self.delay, frame));
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        if self.replies.front().is_none_or(|(due, _)| *due > end) {
            self.clock.sleep_until(end);
            self.segment.advance(self.clock.now());
            return Ok(None);
        }
        let Some((due, frame)) = self.replies.pop_front() else { return Ok(None) };
        self.clock.sleep_until(due);
        buffer[..frame.len()].copy_from_slice(&frame);
        Ok(Some(frame.len()))
    }
}

/// The process that answers gets the CPU only every few cycles.
// feature(main-device): cycles before the request for Op wait for late replies
#[test]
fn replies_of_several_cycles_delay_op() {
    let period = Duration::from_millis(1);
    let clock = VirtualClock::default();
    clock.sleep_until(clock.now() + Duration::from_secs(1));
    let segment = Segment::new((0..2).map(|_| support::servo().0).collect());
    let (replies, delay) = (VecDeque::new(), Duration::ZERO);
    let mut link = Slow { clock: clock.clone(), segment, replies, delay };
    let configuration = Configuration { target: AlState::Op, period, ..Configuration::default() };
    let mut main_device = MainDevice::new(configuration).unwrap();
    let stop = AtomicBool::new(false);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    pump.bring_up(BRING_UP_TIMEOUT, |_| ()).unwrap();
    link.delay = Duration::from_millis(7);
    let mut frame = [0; MAXIMUM_FRAME_LENGTH];
    for _ in 0..500 {
        let release = clock.now() + period;
        clock.sleep_until(release);
        let now = clock.now();
        cyclic::receive(&mut main_device, &mut link, &clock, now, &mut frame, release, |_| ()).unwrap();
        main_device.end_cycle(clock.now());
        if main_device.phase() >= BringUpPhase::ToOp {
            return;
        }
        main_device.begin_cycle(clock.now());
        cyclic::transmit(&mut main_device, &mut link, clock.now(), Result::unwrap);
    }
    panic!("{:?}: {:?}", main_device.phase(), main_device.awaited());
}

/// A clock that counts how often it is read.
struct Counting(VirtualClock, Cell<u32>);

impl Clock for Counting {
    fn now(&self) -> Instant {
        self.1.set(self.1.get() + 1);
        self.0.now()
    }

    fn sleep_until(&self, instant: Instant) {
        self.0.sleep_until(instant);
    }
}

/// Clock readings take much of a cycle, even if its reply has come.
// feature(cycle): the clock is not read for a reply that is there, and twice for one that is waited for
#[test]
fn the_clock_is_read_for_a_wait_only() {
    let (period, delay) = (Duration::from_millis(1), Duration::ZERO);
    let clock = VirtualClock::default();
    clock.sleep_until(clock.now() + Duration::from_secs(1));
    let segment = Segment::new((0..2).map(|_| support::servo().0).collect());
    let mut link = Slow { clock: clock.clone(), segment, replies: VecDeque::new(), delay };
    let configuration = Configuration { target: AlState::Op, period, ..Configuration::default() };
    let mut main_device = MainDevice::new(configuration).unwrap();
    let stop = AtomicBool::new(false);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    pump.bring_up(BRING_UP_TIMEOUT, |_| ()).unwrap();
    let counting = Counting(clock.clone(), Cell::new(0));
    let mut frame = [0; MAXIMUM_FRAME_LENGTH];
    let (mut in_op, mut waits) = (0, Vec::new());
    for _ in 0..2000 {
        clock.sleep_until(clock.now() + period);
        let now = clock.now();
        main_device.begin_cycle(now);
        cyclic::transmit(&mut main_device, &mut link, now, Result::unwrap);
        let (readings, waited) = (counting.1.get(), waits.len());
        let end = now + period / 2;
        cyclic::receive(&mut main_device, &mut link, &counting, now, &mut frame, end, |at| {
            waits.push(at.since(now));
        })
        .unwrap();
        assert!(main_device.end_cycle(now).all_fresh || in_op == 0);
        in_op += u32::from(main_device.phase() == BringUpPhase::Op);
        // By then there are only process data frames.
        let read = counting.1.get() - readings;
        match in_op {
            100..120 => assert_eq!((read, waits.len() - waited), (0, 0)),
            120 => link.delay = Duration::from_micros(300),
            121..140 => assert_eq!((read, &waits[waited..]), (2, &[Duration::from_micros(300)][..])),
            140.. => return,
            _ => {}
        }
    }
    panic!("{:?}: {:?}", main_device.phase(), main_device.awaited());
}
