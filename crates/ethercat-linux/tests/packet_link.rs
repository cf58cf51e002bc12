//! Frames over a cable of the kernel's own: a veth pair between two network namespaces.

mod support;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment};
use ethercat::time::Instant as BusInstant;
use onbeat_ethercat_linux::link::Link;
use onbeat_ethercat_linux::link::{OpenError, PacketLink};
use onbeat_ethercat_linux::serve::Server;
use testkit::{Side, Testbed};

const TIMEOUT: Duration = Duration::from_secs(5);
const ETHERCAT: u16 = 0x88A4;

/// A testbed, or why the test is skipped.
fn testbed() -> Option<Testbed> {
    Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()
}

fn open(testbed: &Testbed, side: Side) -> PacketLink {
    testbed.inside(side, || PacketLink::open(side.interface(), TIMEOUT)).expect("opens")
}

/// A frame of `length` bytes with a number in bytes 14 to 17.
fn frame(ethertype: u16, length: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend([0x10, 0, 0, 0, 0, 1]);
    frame.extend(ethertype.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(length, 0xA5);
    frame
}

#[test]
fn frames_cross_the_cable_in_order_without_echo() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    for number in 0..200 {
        let sent = frame(ETHERCAT, 60 + number as usize * 7, number);
        near.transmit(&sent).unwrap();
        assert_eq!(far.receive(&mut buffer, TIMEOUT).unwrap(), Some(sent.len()));
        assert_eq!(buffer[..sent.len()], sent);
    }
    assert_eq!(near.receive(&mut buffer, Duration::ZERO).unwrap(), None);
}

#[test]
fn a_frame_taken_in_place_is_left_alone_meanwhile() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    support::frames_in_place_are_left_alone(&mut near, &mut far, |length, number| {
        frame(ETHERCAT, length, number)
    });
}

#[test]
fn flood_keeps_the_oldest_frames_in_order() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let mut first = 0;
    for flood in [500, 3, 500, 1] {
        for number in first..first + flood {
            near.transmit(&frame(ETHERCAT, 60, number)).unwrap();
        }
        let mut taken = 0;
        while far.receive(&mut buffer, Duration::ZERO).unwrap().is_some() {
            let number = u32::from_be_bytes([buffer[14], buffer[15], buffer[16], buffer[17]]);
            assert_eq!(number, first + taken, "after {taken} of {flood}");
            taken += 1;
        }
        assert!(taken == flood || flood == 500 && taken >= 64, "{taken} of {flood}");
        first += flood;
    }
}

#[test]
fn a_frame_longer_than_the_buffer_is_cut() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    let (long, short) = (frame(ETHERCAT, MAXIMUM_FRAME_LENGTH, 1), frame(ETHERCAT, 60, 2));
    near.transmit(&long).unwrap();
    near.transmit(&short).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(far.receive(&mut buffer[..99], TIMEOUT).unwrap(), Some(99));
    assert_eq!((&buffer[..99], buffer[99]), (&long[..99], 0));
    assert_eq!(far.receive(&mut buffer, TIMEOUT).unwrap(), Some(60));
    assert_eq!(buffer[..60], short);
}

#[test]
fn interface_down_ends_the_wait_and_recovers() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    ip_link(&testbed, Side::Near, &["set", "near", "down"]);
    let error = near.receive(&mut buffer, TIMEOUT).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
    // Once: from then on it waits as before.
    assert_eq!(near.receive(&mut buffer, Duration::from_millis(5)).unwrap(), None);
    ip_link(&testbed, Side::Near, &["set", "near", "up"]);
    let begin = Instant::now();
    loop {
        // Until the carrier is back the cable drops frames.
        let _ = far.transmit(&frame(ETHERCAT, 60, 7));
        match near.receive(&mut buffer, Duration::from_millis(20)).unwrap() {
            Some(length) => break assert_eq!((length, buffer[17]), (60, 7)),
            None => assert!(begin.elapsed() < TIMEOUT, "nothing comes any more"),
        }
    }
    ip_link(&testbed, Side::Near, &["delete", "near"]);
    assert_eq!(near.receive(&mut buffer, TIMEOUT).unwrap_err().raw_os_error(), Some(libc::ENETDOWN));
}

#[test]
fn frames_that_are_not_ethercat_are_not_seen() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    near.transmit(&frame(0x88B5, 60, 1)).unwrap();
    let wanted = frame(ETHERCAT, 60, 2);
    near.transmit(&wanted).unwrap();
    assert_eq!(far.receive(&mut buffer, TIMEOUT).unwrap(), Some(60));
    assert_eq!(buffer[..60], wanted);
}

#[test]
fn receive_waits_for_exactly_its_timeout() {
    let Some(testbed) = testbed() else { return };
    support::waits_as_long_as_it_is_told(&mut open(&testbed, Side::Near), TIMEOUT);
}

#[test]
fn unusable_interface_is_named_with_a_remedy() {
    let Some(testbed) = testbed() else { return };
    let near = Side::Near.interface();
    let set = |side: Side, to: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["link", "set", side.interface()]).args(to);
        assert!(testbed.run_in(side, command).status().unwrap().success());
    };
    let set_down = |side| set(side, &["down"]);
    set(Side::Near, &["mtu", "1499"]);
    let error = testbed.inside(Side::Near, || PacketLink::open(near, TIMEOUT)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "interface near: its MTU is 1499 bytes, expected at least 1500, as of the longest EtherCAT frame; set it with \
         `sudo ip link set near mtu 1500`"
    );
    set(Side::Near, &["mtu", "1500"]);
    set_down(Side::Far);
    // The kernel takes the carrier away a moment after `ip` returns.
    let begin = Instant::now();
    let alone = loop {
        match testbed.inside(Side::Near, || PacketLink::open(near, Duration::ZERO)) {
            Err(error) => break error,
            Ok(_) => assert!(begin.elapsed() < TIMEOUT, "an interface without carrier opens"),
        }
    };
    assert!(matches!(alone, OpenError::NoCarrier { .. }), "{alone}");
    set_down(Side::Near);
    let error = testbed.inside(Side::Near, || PacketLink::open(near, TIMEOUT)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "interface near: it is down; bring it up with `sudo ip link set near up`"
    );
}

/// Increments the byte behind the number, and drops every frame with number 3.
struct Raise {
    advances: mpsc::Sender<BusInstant>,
}

impl Segment for Raise {
    fn process_frame(&mut self, _: BusInstant, frame: &mut [u8]) -> bool {
        frame[18] += 1;
        frame[17] != 3
    }

    fn advance(&mut self, now: BusInstant) {
        // The test stops listening before the server stops.
        let _ = self.advances.send(now);
    }
}

/// Runs `ip link` with these words on a side's own interface.
fn ip_link(testbed: &Testbed, side: Side, words: &[&str]) {
    let mut command = Command::new("ip");
    command.arg("link").args(words);
    assert!(testbed.run_in(side, command).status().expect("ip").success());
}

// feature(program): `simulate` survives an interface that goes down and ends with one that is removed
#[test]
fn serve_survives_interface_down_and_ends_on_removal() {
    let Some(testbed) = testbed() else { return };
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
    let stop = AtomicBool::new(false);
    let (advances, told) = mpsc::channel();
    let served = thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&mut Raise { advances }, &stop));
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        for number in [10, 11] {
            ip_link(&testbed, Side::Far, &["set", "far", "down"]);
            // Long enough for several checks by the server.
            let begin = told.recv_timeout(TIMEOUT).unwrap();
            while told.recv_timeout(TIMEOUT).unwrap().since(begin) < Duration::from_millis(20) {}
            ip_link(&testbed, Side::Far, &["set", "far", "up"]);
            let mut near = open(&testbed, Side::Near);
            let begin = Instant::now();
            loop {
                near.transmit(&frame(ETHERCAT, 100, number)).unwrap();
                if near.receive(&mut buffer, Duration::from_millis(20)).unwrap() == Some(100) {
                    break;
                }
                assert!(begin.elapsed() < TIMEOUT && !serving.is_finished(), "it does not answer any more");
            }
        }
        ip_link(&testbed, Side::Far, &["delete", "far"]);
        let begin = Instant::now();
        while !serving.is_finished() && begin.elapsed() < TIMEOUT {
            while told.try_recv().is_ok() {}
            thread::sleep(Duration::from_millis(1));
        }
        let ended = serving.is_finished();
        stop.store(true, Ordering::Relaxed);
        assert!(ended, "it goes on without an interface");
        serving.join().unwrap()
    });
    assert_eq!(
        served.unwrap_err().to_string(),
        "interface far: it was removed while SubDevices answered on it; create it again and start again"
    );
}

#[test]
fn served_segment_answers_and_gets_the_time() {
    let Some(testbed) = testbed() else { return };
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
    let mut near = open(&testbed, Side::Near);
    let stop = AtomicBool::new(false);
    let (advances, told) = mpsc::channel();
    let served = thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&mut Raise { advances }, &stop));
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        for number in 0..10 {
            near.transmit(&frame(ETHERCAT, 100, number)).unwrap();
            if number == 3 {
                continue;
            }
            let received = near.receive(&mut buffer, TIMEOUT).unwrap();
            assert_eq!((received, buffer[17], buffer[18]), (Some(100), number as u8, 0xA6));
        }
        // Gets the time although no frame comes any more.
        let begin = told.recv_timeout(TIMEOUT).unwrap();
        while told.recv_timeout(TIMEOUT).unwrap().since(begin) < Duration::from_millis(5) {}
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap()
    });
    let served = served.unwrap();
    assert_eq!((served.received, served.returned, served.refused), (10, 9, 0));
}

/// A segment that needs so long for each step.
struct Slow(Duration);

impl Segment for Slow {
    fn process_frame(&mut self, _: BusInstant, _: &mut [u8]) -> bool {
        true
    }

    fn advance(&mut self, _: BusInstant) {
        thread::sleep(self.0);
    }
}

/// True if the segment was reported as too slow until `stop` is set, or the time is up.
fn is_reported(testbed: &Testbed, step: Duration, longest: Duration) -> bool {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    REPORTED.store(false, Ordering::Relaxed);
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).expect("it serves");
    server.on_overload(|| REPORTED.store(true, Ordering::Relaxed));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| server.run(&mut Slow(step), &stop).expect("it serves"));
        let end = Instant::now() + longest;
        while !REPORTED.load(Ordering::Relaxed) && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
    REPORTED.load(Ordering::Relaxed)
}

// feature(simulator): `simulate` says when the computer is too slow for so many SubDevices
#[test]
fn a_segment_that_does_not_keep_up_is_reported() {
    let Some(testbed) = testbed() else { return };
    assert!(is_reported(&testbed, Duration::from_millis(2), Duration::from_secs(60)));
    assert!(!is_reported(&testbed, Duration::ZERO, Duration::from_secs(2)));
}
