//! Before the first frame: detection of another MainDevice on this wire. In virtual time.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::time::Instant;
use ethercat::wire::ethernet::SOURCE_OFFSET;
use onbeat_ethercat_linux::bring_up::{BringUpError, Pump};
use onbeat_ethercat_linux::link::Link;
use proptest::prelude::*;
use rt::clock::{Clock, VirtualClock};

/// A wire on which a frame comes at each of these instants, and none may be sent.
struct Busy {
    clock: VirtualClock,
    due: Box<dyn Iterator<Item = u64>>,
    next: Option<u64>,
    frame: Vec<u8>,
}

impl Link for Busy {
    fn transmit(&mut self, _: &[u8]) -> io::Result<()> {
        panic!("who listens is silent");
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        let due = self.next.map(Instant::from_nanos);
        let Some(due) = due.filter(|&due| due <= end) else {
            self.clock.sleep_until(end);
            return Ok(None);
        };
        self.clock.sleep_until(due);
        self.next = self.due.next();
        buffer[..self.frame.len()].copy_from_slice(&self.frame);
        Ok(Some(self.frame.len()))
    }
}

/// A MainDevice's first frame, with this first byte of its source address.
fn frame(source: u8) -> Vec<u8> {
    let mut main_device = MainDevice::new(Configuration::default()).unwrap();
    let mut frame = vec![0; MAXIMUM_FRAME_LENGTH];
    let length = main_device.poll_transmit(Instant::EPOCH, &mut frame).unwrap();
    frame.truncate(length);
    frame[SOURCE_OFFSET] = source;
    frame
}

/// Frames received where `frame` comes at these instants, in us; and the time it took.
fn listen(
    frame: &[u8],
    instants: impl Iterator<Item = u64> + 'static,
    stop: bool,
) -> (Result<(), BringUpError>, Duration) {
    let clock = VirtualClock::default();
    let mut due: Box<dyn Iterator<Item = u64>> = Box::new(instants.map(|instant| instant * 1000));
    let next = due.next();
    let mut link = Busy { clock: clock.clone(), due, next, frame: frame.to_vec() };
    let mut main_device = MainDevice::new(Configuration::default()).unwrap();
    let stop = AtomicBool::new(stop);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    let heard = pump.listen();
    (heard, Duration::from_nanos(clock.now().as_nanos()))
}

const PROCESSED: u8 = 0x02;

#[test]
fn a_quiet_wire_costs_fifty_milliseconds() {
    let (heard, took) = listen(&frame(PROCESSED), std::iter::empty(), false);
    heard.unwrap();
    assert_eq!(took, Duration::from_millis(50));
}

#[test]
fn cycle_is_detected_with_its_address_and_rate() {
    let (heard, took) = listen(&frame(PROCESSED), (0..).map(|cycle| 300 + cycle * 1000), false);
    assert_eq!(
        heard.unwrap_err().to_string(),
        "another MainDevice is on this wire: 51 replies in 50ms, 1020 a second, that are not ours, from \
         02:10:10:10:10:10; end it, or take the SubDevices from it"
    );
    assert!(took < Duration::from_millis(60), "{took:?}");
}

#[test]
fn frames_that_no_subdevice_has_processed_are_nobodys_replies() {
    let (heard, _) = listen(&frame(0x10), (0..).map(|cycle| cycle * 1000), false);
    heard.unwrap();
    let mut other_protocol = frame(PROCESSED);
    other_protocol[12] = 0x08;
    let (heard, _) = listen(&other_protocol, (0..).map(|cycle| cycle * 1000), false);
    heard.unwrap();
}

#[test]
fn listening_can_be_stopped() {
    let (heard, took) = listen(&frame(PROCESSED), std::iter::empty(), true);
    assert!(matches!(heard, Err(BringUpError::Stopped)), "{heard:?}");
    assert_eq!(took, Duration::ZERO);
}

proptest! {
    /// Every cycle that shows itself while the wire should be quiet is noticed, slow ones too.
    // feature(program): another MainDevice is detected before the first frame; `--take-over`; reported in Op
    #[test]
    fn every_cycle_is_detected(period in 50_u64..240_000, first in 0_u64..50_000) {
        let (heard, took) = listen(&frame(PROCESSED), (0..).map(move |cycle| first + cycle * period), false);
        let heard = matches!(heard, Err(BringUpError::OtherMainDevice { .. }));
        prop_assert!(heard, "took {took:?}");
        prop_assert!(took < Duration::from_millis(350), "took {took:?}");
    }

    /// Frames that a killed process left on the wire are no MainDevice, however many they are.
    // feature(program): another MainDevice is detected before the first frame; `--take-over`; reported in Op
    #[test]
    fn frames_of_a_dead_process_do_not_count(count in 1_u64..300, over in 0_u64..49_000, first in 0_u64..40_000) {
        let left = (0..count).map(move |number| first + number * over / count);
        let (heard, took) = listen(&frame(PROCESSED), left, false);
        prop_assert!(heard.is_ok(), "{heard:?}");
        prop_assert!(took <= Duration::from_millis(40 + 49 + 250), "took {took:?}");
    }
}
