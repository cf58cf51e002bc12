//! Frames by AF_XDP over a cable of the kernel's own: a veth pair between two network namespaces.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment};
use ethercat::time::Instant as BusInstant;
use onbeat_ethercat_linux::link::{InterfaceLink, Link, LinkKind, OpenError, PacketLink, XdpLink};
use onbeat_ethercat_linux::serve::Server;
use onbeat_ethercat_linux::{Bus, Configuration, Error};
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_setaffinity, set_capabilities};
use simulator::application::Wires;
use support::{segment, servo, station};
use testkit::{CountingAllocator, Side, Testbed, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A testbed on a kernel with AF_XDP, or why the test is skipped.
fn testbed() -> Option<Testbed> {
    let testbed = Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()?;
    match testbed.inside(Side::Near, || XdpLink::open(Side::Near.interface(), TIMEOUT, false)) {
        Err(error @ (OpenError::XdpUnsupported { .. } | OpenError::XdpNotPermitted { .. })) => {
            testkit::skip!("{error}");
            None
        }
        opened => {
            opened.unwrap();
            Some(testbed)
        }
    }
}

fn open(testbed: &Testbed, side: Side) -> XdpLink {
    testbed.inside(side, || XdpLink::open(side.interface(), TIMEOUT, false)).unwrap()
}

fn packet(testbed: &Testbed, side: Side) -> PacketLink {
    testbed.inside(side, || PacketLink::open(side.interface(), TIMEOUT)).unwrap()
}

/// Runs `ip` with these words in a side's namespace.
fn ip(testbed: &Testbed, side: Side, words: &str) -> String {
    let mut command = Command::new("ip");
    command.args(words.split(' '));
    let output = testbed.run_in(side, command).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An EtherCAT frame of `length` bytes with a number in bytes 14 to 17.
fn frame(length: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend([0x10, 0, 0, 0, 0, 1, 0x88, 0xA4]);
    frame.extend(number.to_be_bytes());
    frame.resize(length, 0xA5);
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

/// Sends one frame and takes it at the other end.
fn cross(from: &mut impl Link, to: &mut impl Link, frame: &[u8]) {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    from.transmit(frame).unwrap();
    let received = to.receive(&mut buffer, TIMEOUT).unwrap();
    assert_eq!(received, Some(frame.len()), "frame {}", number(frame));
    assert_eq!(buffer[..frame.len()], *frame);
}

// feature(bus): AF_XDP: in the driver or behind it
#[test]
fn frames_cross_the_cable_whole_and_in_order_both_ways() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), packet(&testbed, Side::Far));
    for number in 0..1000 {
        let sent = frame(60 + number as usize % 200 * 7, number);
        cross(&mut near, &mut far, &sent);
        cross(&mut far, &mut near, &sent);
    }
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    assert_eq!(near.receive(&mut buffer, Duration::ZERO).unwrap(), None);
    assert_eq!(near.dropped().unwrap(), 0);
    let mode = near.mode();
    assert!(mode.native && !mode.polled && mode.queues == 1, "{mode}");
}

#[test]
fn a_frame_taken_in_place_is_left_alone_meanwhile() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), open(&testbed, Side::Far));
    support::frames_in_place_are_left_alone(&mut near, &mut far, frame);
}

#[test]
fn a_link_that_polls_needs_no_wait() {
    let Some(testbed) = testbed() else { return };
    let near = testbed.inside(Side::Near, || XdpLink::open(Side::Near.interface(), TIMEOUT, true));
    if let Err(error @ OpenError::XdpNoPolling { .. }) = near {
        return testkit::skip!("{error}");
    }
    let (mut near, mut far) = (near.unwrap(), open(&testbed, Side::Far));
    assert!(near.mode().polled);
    for number in 0..200 {
        cross(&mut near, &mut far, &frame(60, number));
        cross(&mut far, &mut near, &frame(60, number));
    }
    let begin = Instant::now();
    assert_eq!(near.receive(&mut [0; 60], Duration::from_millis(5)).unwrap(), None);
    assert!(begin.elapsed() >= Duration::from_millis(5));
    ip(&testbed, Side::Near, "link set near down");
    let error = near.receive(&mut [0; 60], Duration::from_millis(5)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
}

#[test]
fn receive_waits_for_exactly_its_timeout() {
    let Some(testbed) = testbed() else { return };
    support::waits_as_long_as_it_is_told(&mut open(&testbed, Side::Near), TIMEOUT);
}

#[test]
fn long_frames_are_cut_or_refused() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), packet(&testbed, Side::Far));
    let long = frame(MAXIMUM_FRAME_LENGTH, 1);
    far.transmit(&long).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(near.receive(&mut buffer[..99], TIMEOUT).unwrap(), Some(99));
    assert_eq!((&buffer[..99], buffer[99]), (&long[..99], 0));
    assert_eq!(near.transmit(&[0; 4096]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    cross(&mut near, &mut far, &long);
}

// feature(bus): AF_XDP: drops and counts the newest frames of a flood
#[test]
fn flood_keeps_the_oldest_frames_and_counts_the_rest() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), packet(&testbed, Side::Far));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let (mut first, mut missed) = (0, 0);
    for flood in [500, 3, 500, 1] {
        for number in first..first + flood {
            far.transmit(&frame(60, number)).unwrap();
        }
        let mut taken = 0;
        while near.receive(&mut buffer, Duration::from_millis(50)).unwrap().is_some() {
            assert_eq!(number(&buffer), first + taken, "after {taken} of {flood}");
            taken += 1;
        }
        assert!(taken == flood || flood == 500 && taken >= 64, "{taken} of {flood}");
        (first, missed) = (first + flood, missed + u64::from(flood - taken));
    }
    assert!(missed > 0 && near.dropped().unwrap() == missed, "{missed}, {:?}", near.dropped());
}

// feature(bus): AF_XDP: takes EtherCAT frames only; all others go to the kernel as before
#[test]
fn frames_that_are_not_ethercat_go_to_the_kernel_as_before() {
    let Some(testbed) = testbed() else { return };
    ip(&testbed, Side::Near, "address add 10.97.0.1/24 dev near");
    ip(&testbed, Side::Far, "address add 10.97.0.2/24 dev far");
    let (mut near, mut far) = (open(&testbed, Side::Near), packet(&testbed, Side::Far));
    let bind = |side, address| testbed.inside(side, || UdpSocket::bind((address, 4000))).unwrap();
    let (here, there) = (bind(Side::Near, "10.97.0.1"), bind(Side::Far, "10.97.0.2"));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    for number in 0..20_u8 {
        there.set_read_timeout(Some(TIMEOUT)).unwrap();
        here.set_read_timeout(Some(TIMEOUT)).unwrap();
        // With ARP before the first.
        there.send_to(&[number], "10.97.0.1:4000").unwrap();
        far.transmit(&frame(60, u32::from(number))).unwrap();
        assert_eq!((here.recv(&mut buffer).unwrap(), buffer[0]), (1, number));
        here.send_to(&[number], "10.97.0.2:4000").unwrap();
        assert_eq!((there.recv(&mut buffer).unwrap(), buffer[0]), (1, number));
        assert_eq!(near.receive(&mut buffer, TIMEOUT).unwrap(), Some(60));
        assert_eq!(buffer[17], number);
    }
    assert_eq!(near.receive(&mut buffer, Duration::ZERO).unwrap(), None);
}

// feature(bus): AF_XDP: reports an interface that goes down or away as a packet socket does
#[test]
fn interface_down_is_reported_and_sends_nothing_old() {
    let Some(testbed) = testbed() else { return };
    let (mut near, mut far) = (open(&testbed, Side::Near), packet(&testbed, Side::Far));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let code = |result: std::io::Result<_>| result.map(|_: Option<usize>| ()).unwrap_err().raw_os_error();
    let short = Duration::from_millis(5);
    ip(&testbed, Side::Near, "link set near down");
    assert_eq!(code(near.receive(&mut buffer, TIMEOUT)), Some(libc::ENETDOWN));
    // Once: from then on it waits as before.
    let begin = Instant::now();
    assert_eq!(near.receive(&mut buffer, short).unwrap(), None);
    assert!(begin.elapsed() >= short);
    // More than there are places.
    for number in 0..400 {
        let sent = near.transmit(&frame(60, 1000 + number)).map(|()| None);
        assert_eq!(code(sent), Some(libc::ENETDOWN));
    }
    ip(&testbed, Side::Near, "link set near up");
    let begin = Instant::now();
    let length = loop {
        // Until the carrier is back the cable drops frames.
        let _ = near.transmit(&frame(60, 7));
        if let Ok(Some(length)) = far.receive(&mut buffer, Duration::from_millis(20)) {
            break length;
        }
        assert!(begin.elapsed() < TIMEOUT, "nothing leaves any more");
    };
    assert_eq!((length, number(&buffer)), (60, 7));
    while let Some(length) = far.receive(&mut buffer, short).unwrap() {
        assert_eq!((length, number(&buffer)), (60, 7), "an old frame leaves");
    }
    for number in 0..500 {
        cross(&mut near, &mut far, &frame(60, number));
        cross(&mut far, &mut near, &frame(60, number));
    }
    ip(&testbed, Side::Near, "link delete near");
    assert_eq!(code(near.receive(&mut buffer, TIMEOUT)), Some(libc::ENETDOWN));
    let begin = Instant::now();
    assert_eq!(near.receive(&mut buffer, short).unwrap(), None);
    assert!(begin.elapsed() >= short);
    assert_eq!(code(near.transmit(&frame(60, 8)).map(|()| None)), Some(libc::ENXIO));
}

// feature(bus): AF_XDP: leaves no program behind, however the process ends
#[test]
fn program_is_removed_with_a_killed_process() {
    let Some(testbed) = testbed() else { return };
    let attached = || ip(&testbed, Side::Near, "link show near").contains("xdp");
    assert!(!attached(), "that of the testbed's own link is left");
    let mut this = Command::new(std::env::current_exe().unwrap());
    this.args(["--exact", "a_link_that_is_held", "--ignored", "--nocapture"]);
    let mut child = testbed.run_in(Side::Near, this).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held now")), "it does not open");
    assert!(attached());
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    while attached() {
        assert!(begin.elapsed() < TIMEOUT, "the program stays");
        thread::sleep(Duration::from_millis(5));
    }
    open(&testbed, Side::Near);
}

#[test]
#[ignore = "a part of the test above, which starts it to kill it"]
fn a_link_that_is_held() {
    let _link = XdpLink::open("near", TIMEOUT, false).unwrap();
    println!("held now");
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_second_program_is_refused_in_words() {
    let Some(testbed) = testbed() else { return };
    let own = || {
        testbed.inside(Side::Near, || {
            InterfaceLink::open_as_owner("near", LinkKind::Xdp, TIMEOUT, "onbeat run")
        })
    };
    let first = own().unwrap();
    assert!(matches!(own().unwrap_err(), OpenError::Held { .. }));
    let error = testbed.inside(Side::Near, || XdpLink::open("near", TIMEOUT, false)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "interface near: another program has an XDP program or AF_XDP socket there, expected none; \
         `ip link show near` and `bpftool net` show it: end its program, or use a packet socket \
         (--link packet)"
    );
    // A new process holds its parent's descriptors until it executes another program.
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            drop(first);
        });
        open(&testbed, Side::Near);
    });
    own().unwrap();
}

#[test]
fn missing_capabilities_make_auto_use_a_packet_socket() {
    let Some(testbed) = testbed() else { return };
    let open = |kind| {
        testbed.inside(Side::Near, || {
            // Of this thread alone.
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::NET_RAW;
            set_capabilities(None, sets).unwrap();
            InterfaceLink::open_as_owner("near", kind, TIMEOUT, "onbeat run")
        })
    };
    let error = open(LinkKind::Xdp).unwrap_err();
    assert!(matches!(error, OpenError::XdpNotPermitted { .. }), "{error}");
    let error = error.to_string();
    assert!(error.starts_with("interface near: AF_XDP needs the capabilities CAP_BPF, "), "{error}");
    let link = open(LinkKind::Auto).unwrap();
    assert!(matches!(link, InterfaceLink::PacketFor(..)), "{link}");
    assert!(link.to_string().starts_with("packet socket, as AF_XDP is not to be had: interface near: "));
}

#[test]
fn driver_without_xdp_makes_auto_use_a_packet_socket() {
    let Some(testbed) = testbed() else { return };
    // veth runs no program with frames larger than a page.
    ip(&testbed, Side::Far, "link set far mtu 9000");
    let own = |kind| {
        testbed
            .inside(Side::Near, || InterfaceLink::open_as_owner("near", kind, TIMEOUT, "onbeat run"))
            .unwrap()
    };
    let mut far = packet(&testbed, Side::Far);
    let mut near = own(LinkKind::Xdp);
    assert_eq!(near.to_string(), "AF_XDP, behind the driver, copied, 1 queue");
    cross(&mut near, &mut far, &frame(1000, 1));
    cross(&mut far, &mut near, &frame(1000, 2));
    drop(near);
    let near = own(LinkKind::Auto);
    assert!(matches!(near, InterfaceLink::PacketFor(_, OpenError::XdpNotInDriver { .. })), "{near}");
    drop(near);
    ip(&testbed, Side::Far, "link set far mtu 1500");
    assert_eq!(own(LinkKind::Auto).to_string(), "AF_XDP, in the driver, copied, 1 queue");
    assert_eq!(own(LinkKind::Packet).to_string(), "packet socket");
}

// feature(bus): AF_XDP: covers all queues of an interface
#[test]
fn frames_of_every_queue_are_taken() {
    let Some(testbed) = testbed() else { return };
    ip(&testbed, Side::Near, "link delete near");
    let queues = |name| format!("{name} numrxqueues 4 numtxqueues 4");
    let far = testbed.namespace(Side::Far);
    let cable = format!("link add {} type veth peer {} netns {far}", queues("near"), queues("far"));
    ip(&testbed, Side::Near, &cable.replace("peer far", "peer name far"));
    ip(&testbed, Side::Near, "link set near up");
    ip(&testbed, Side::Far, "link set far up");
    let (mut near, mut far) = (open(&testbed, Side::Near), packet(&testbed, Side::Far));
    assert_eq!(near.mode().queues, 4);
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    for number in 0..32 {
        // A packet socket sends by the queue of the CPU it is on.
        let mut cpu = CpuSet::new();
        cpu.set(number as usize % thread::available_parallelism().unwrap().get());
        sched_setaffinity(None, &cpu).unwrap();
        far.transmit(&frame(60, number)).unwrap();
        assert_eq!(near.receive(&mut buffer, Duration::from_secs(1)).unwrap(), Some(60), "frame {number}");
        near.transmit(&frame(60, number)).unwrap();
        assert_eq!(far.receive(&mut buffer, TIMEOUT).unwrap(), Some(60));
    }
}

#[test]
fn more_queues_than_are_served_are_refused_in_words() {
    let Some(testbed) = testbed() else { return };
    ip(&testbed, Side::Near, "link add many numrxqueues 65 numtxqueues 65 type veth peer name other");
    ip(&testbed, Side::Near, "link set many up");
    let error = testbed.inside(Side::Near, || XdpLink::open("many", TIMEOUT, false)).unwrap_err();
    let expected = "interface many: it has more than 64 queues, expected at most 64, one socket \
        for each; `sudo ethtool -L many combined 1` leaves one";
    assert_eq!(error.to_string(), expected);
}

/// Sends every frame back.
struct Mirror;

impl Segment for Mirror {
    fn process_frame(&mut self, _: BusInstant, _: &mut [u8]) -> bool {
        true
    }

    fn advance(&mut self, _: BusInstant) {}
}

// feature(bus): AF_XDP: allocates no memory after it is open
#[test]
fn no_frame_allocates() {
    let Some(testbed) = testbed() else { return };
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
    let mut near = open(&testbed, Side::Near);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&mut Mirror, &stop));
        let (frame, mut buffer) = (frame(60, 1), [0; MAXIMUM_FRAME_LENGTH]);
        let before = allocations::own_calls();
        allocations::watch(true);
        for _ in 0..500 {
            near.transmit(&frame).unwrap();
            assert_eq!(near.receive(&mut buffer, TIMEOUT).unwrap(), Some(60));
        }
        drop(std::hint::black_box(Box::new(1)));
        allocations::watch(false);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(allocations::own_calls() - before, 2, "the counter counts the box alone");
        serving.join().unwrap().unwrap();
    });
}

// feature(bus): AF_XDP: a bus in Op, waiting for frames and polling
#[test]
fn a_bus_comes_up_and_runs_by_af_xdp() {
    let Some(testbed) = testbed() else { return };
    for kind in [LinkKind::Xdp, LinkKind::XdpPolled] {
        let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (buttons, lamps) = (Wires::new(), Wires::new());
            let mut devices = station(&buttons, &lamps);
            devices.push(servo().0);
            let mut segment = segment(devices);
            let stop = &stop;
            let serving = scope.spawn(move || server.run(&mut segment, stop));
            let opened = testbed.inside(Side::Near, || Bus::open_by("near", kind));
            if let Err(Error::Open(error @ OpenError::XdpNoPolling { .. })) = &opened {
                stop.store(true, Ordering::Relaxed);
                return testkit::skip!("{error}");
            }
            let mut bus = opened.unwrap();
            bus.bring_up(&Configuration::scan()).unwrap();
            assert_eq!(bus.sub_devices().len(), 4);
            let button = bus.subdevice(1).input::<[bool; 4]>(0x6000, 1).unwrap();
            let lamp = bus.subdevice(2).output::<[bool; 4]>(0x7000, 1).unwrap();
            let mut cycles = 0;
            let run = bus.run(Duration::from_millis(2), |io| {
                cycles += 1;
                io.set(lamp, io.get(button));
                if cycles == 200 {
                    io.stop();
                }
            });
            assert_eq!(run.unwrap().cycles, 200);
            drop(bus);
            stop.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
    }
}
