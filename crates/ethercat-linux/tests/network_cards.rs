//! Links on real drivers: two network cards of this machine with a cable between them, named in
//! `ONBEAT_TEST_CARDS` ("eth0 eth1"). `cargo xtask rt` emulates some.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use onbeat_ethercat_linux::link::{InterfaceLink, Link, LinkKind, OpenError, PacketLink};
use onbeat_ethercat_linux::serve::Server;
use onbeat_ethercat_linux::{Bus, Configuration};
use simulator::application::Wires;
use support::{segment, servo, station};

/// Emulated processors are slow.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Both ends of a cable, or why the test is skipped.
fn cards() -> Option<[String; 2]> {
    let Ok(names) = std::env::var("ONBEAT_TEST_CARDS") else {
        testkit::skip!("ONBEAT_TEST_CARDS names no network cards");
        return None;
    };
    let ends: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    Some(ends.try_into().expect("two network cards in ONBEAT_TEST_CARDS"))
}

/// `None` for polling on a kernel without it, such as many with PREEMPT_RT.
fn open(interface: &str, kind: LinkKind) -> Option<InterfaceLink> {
    match InterfaceLink::open_as_owner(interface, kind, TIMEOUT, "test") {
        Err(error @ OpenError::XdpNoPolling { .. }) => {
            println!("{kind:?}: {error}");
            None
        }
        opened => Some(opened.unwrap()),
    }
}

fn frame(length: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend([0x10, 0, 0, 0, 0, 1, 0x88, 0xA4]);
    frame.extend(number.to_be_bytes());
    frame.resize(length, 0xA5);
    frame
}

/// Sends until the frame is there: a card may take a while until it sends again.
fn cross(from: &mut impl Link, to: &mut impl Link, frame: &[u8]) {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let begin = Instant::now();
    loop {
        let _ = from.transmit(frame);
        let received = to.receive(&mut buffer, Duration::from_millis(200));
        if received.is_ok_and(|length| length == Some(frame.len())) && buffer[..frame.len()] == *frame {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT, "frame {:?} does not arrive", &frame[14..18]);
    }
}

fn ip_link_set(interface: &str, state: &str) {
    let set = Command::new("ip").args(["link", "set", interface, state]).status();
    assert!(set.expect("ip").success());
}

/// Stops a server also where the test panics.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const KINDS: [LinkKind; 4] = [LinkKind::Packet, LinkKind::Xdp, LinkKind::XdpPolled, LinkKind::Auto];

// feature(bus): links on true drivers: virtio_net, e1000e, igb
#[test]
fn frames_cross_between_cards_by_every_kind_of_link() {
    let Some([near, far]) = cards() else { return };
    for kind in KINDS {
        let (Some(mut near), mut far) = (open(&near, kind), PacketLink::open(&far, TIMEOUT).unwrap())
        else {
            continue;
        };
        println!("{kind:?}: {near}");
        for number in 0..200 {
            let sent = frame(60 + number as usize * 7, number);
            cross(&mut near, &mut far, &sent);
            cross(&mut far, &mut near, &sent);
        }
    }
}

// feature(bus): links on true drivers: virtio_net, e1000e, igb
#[test]
fn card_down_is_reported_and_recovers() {
    let Some([near_name, far]) = cards() else { return };
    for kind in KINDS {
        let (Some(mut near), mut far) = (open(&near_name, kind), PacketLink::open(&far, TIMEOUT).unwrap())
        else {
            continue;
        };
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        ip_link_set(&near_name, "down");
        let begin = Instant::now();
        let error = loop {
            match near.receive(&mut buffer, Duration::from_secs(1)) {
                Err(error) => break error,
                Ok(_) => assert!(begin.elapsed() < TIMEOUT, "{kind:?}: nobody is told"),
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN), "{kind:?}");
        for number in 0..200 {
            let error = near.transmit(&frame(60, 1000 + number)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN), "{kind:?}");
        }
        ip_link_set(&near_name, "up");
        cross(&mut near, &mut far, &frame(60, 1));
        cross(&mut far, &mut near, &frame(60, 2));
        while let Some(length) = far.receive(&mut buffer, Duration::from_millis(200)).unwrap() {
            assert!(buffer[..length] == frame(60, 1), "{kind:?}: an old frame leaves");
        }
    }
}

// feature(bus): links on true drivers: virtio_net, e1000e, igb
#[test]
fn a_bus_runs_between_cards_by_every_kind_of_link() {
    let Some([near, far]) = cards() else { return };
    for kind in KINDS {
        if open(&near, kind).is_none() {
            continue;
        }
        let mut server = Server::open(&far).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (buttons, lamps) = (Wires::new(), Wires::new());
            let mut devices = station(&buttons, &lamps);
            devices.push(servo().0);
            let mut segment = segment(devices);
            let stop = &stop;
            let _stop = StopAtEnd(stop);
            let serving = scope.spawn(move || server.run(&mut segment, stop));
            let mut bus = Bus::open_by(&near, kind).unwrap();
            bus.bring_up(&Configuration::scan()).unwrap();
            assert_eq!(bus.sub_devices().len(), 4, "{kind:?}");
            let mut cycles = 0;
            let run = bus.run(Duration::from_millis(20), |io| {
                cycles += 1;
                if cycles == 50 {
                    io.stop();
                }
            });
            assert_eq!(run.unwrap().cycles, 50, "{kind:?}");
            drop(bus);
            stop.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
    }
}
