//! Datagram channels, tested from both ends.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use onbeat_ipc::channel::{Channel, Full, Kind, Port, PortCounters, Wake};
use onbeat_ipc::client::Client;
use onbeat_ipc::server::{Endpoints, Server};
use support::{Folder, eventually};
use testkit::strace::{self, Trace};

struct Open {
    port: Port,
    ipc: Client,
    server: Server,
    _ends: Endpoints,
    _folder: Folder,
}

fn open(kind: Kind) -> Open {
    open_waking(kind, Wake::Look, Duration::from_millis(1))
}

fn open_waking(kind: Kind, wake: Wake, look: Duration) -> Open {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    builder.look(look);
    let mut port = builder.port_waking("port", kind, wake).unwrap();
    port.bind();
    let (ends, server) = builder.open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    Open { port, ipc, server, _ends: ends, _folder: folder }
}

const MESSAGES: Kind = Kind::Message { size: 8, depth: 4 };

// feature(ipc): datagram channels: messages whole and in order, byte streams
#[test]
fn messages_pass_both_ways_each_whole_and_in_order() {
    let mut open = open(MESSAGES);
    let Open { port, ipc, server, .. } = &mut open;
    let mut channel = ipc.port("port").unwrap();
    let mut buffer = [0; 8];
    for number in 0..200_u8 {
        let message = vec![number; usize::from(number % 8) + 1];
        assert_eq!(channel.write(&message).unwrap(), message.len());
        let length = eventually("a message from the client", || port.receive(&mut buffer));
        assert_eq!(buffer[..length], message);
        port.send(&message).unwrap();
        let length = channel.read(&mut buffer).unwrap();
        assert_eq!(buffer[..length], message);
    }
    assert_eq!(port.receive(&mut buffer), None);
    assert_eq!(channel.recv_timeout(&mut buffer, Duration::from_millis(1)).unwrap(), None);
    // The server counts after it has moved data.
    let passed =
        |it: PortCounters| [it.sent, it.delivered, it.written, it.received, it.refused, it.dropped];
    eventually("all is counted", || {
        (passed(server.counters().remove(0)) == [200, 200, 200, 200, 0, 0]).then_some(())
    });
    channel.set_nonblocking(true).unwrap();
    assert_eq!(channel.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
}

// feature(ipc): datagram channels: messages whole and in order, byte streams
#[test]
fn a_stream_passes_every_byte_both_ways() {
    let mut open = open(Kind::Stream { size: 100 });
    let Open { port, ipc, .. } = &mut open;
    let channel = ipc.port("port").unwrap();
    let bytes: Vec<u8> =
        (0..100_000_u32).map(|number| (number.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| (&channel).write_all(&bytes).unwrap());
        let back = scope.spawn(|| {
            let mut back = vec![0; bytes.len()];
            (&channel).read_exact(&mut back).unwrap();
            back
        });
        // The real-time side sends back what it receives.
        let mut buffer = [0; 33];
        let mut passed = 0;
        while passed < bytes.len() {
            if let Some(length) = port.receive(&mut buffer) {
                eventually("room in the ring", || port.send(&buffer[..length]).ok());
                passed += length;
            }
        }
        assert_eq!(back.join().unwrap(), bytes);
    });
}

/// No look within the time of a test.
const NEVER: Duration = Duration::from_secs(3_600);

const WAKING: [Wake; 3] = [
    Wake::Event,
    Wake::Helper { every: Duration::from_micros(50) },
    Wake::Helper { every: Duration::ZERO },
];

// feature(ipc): datagram channels: the far end woken by an event or a helper thread, at choice
#[test]
fn a_port_that_wakes_needs_no_look() {
    for wake in WAKING {
        let mut open = open_waking(MESSAGES, wake, NEVER);
        let Open { port, ipc, server, .. } = &mut open;
        // Data sent before the first open is there at once, too.
        port.send(b"before").unwrap();
        let mut channel = ipc.port("port").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(channel.read(&mut buffer).unwrap(), 6, "{wake:?}");
        for number in 0..500_u32 {
            let message = number.to_le_bytes();
            port.send(&message).unwrap();
            let length = channel.recv_timeout(&mut buffer, Duration::from_secs(30)).unwrap();
            assert_eq!(&buffer[..length.unwrap_or(0)], message, "{wake:?}");
            channel.write_all(&message).unwrap();
            assert!(port.wait(Duration::from_secs(30)), "{wake:?}");
            assert_eq!(port.receive(&mut buffer), Some(4));
            assert_eq!(buffer[..4], message, "{wake:?}");
        }
        assert!(!port.wait(Duration::from_millis(1)), "nothing is there");
        let woken = server.counters()[0].woken;
        assert_eq!(woken > 0, wake == Wake::Event, "{wake:?}: {woken}");
        assert!(woken <= 500, "{woken}: nobody had it open at first");
    }
}

#[test]
fn a_client_that_reads_again_gets_what_waited_without_a_look() {
    for wake in WAKING {
        let mut open = open_waking(MESSAGES, wake, NEVER);
        let Open { port, ipc, .. } = &mut open;
        let channel = ipc.port("port").unwrap();
        let mut sent = 0_u32;
        let mut refused = 0;
        eventually("the socket and the ring are full", || {
            let before = sent;
            while port.send(&sent.to_le_bytes()).is_ok() {
                sent += 1;
            }
            refused = if sent == before { refused + 1 } else { 0 };
            (refused > 100).then_some(())
        });
        let mut buffer = [0; 8];
        for number in 0..sent {
            let length = channel.recv_timeout(&mut buffer, Duration::from_secs(30)).unwrap();
            assert_eq!(&buffer[..length.unwrap_or(0)], number.to_le_bytes(), "{wake:?}");
        }
    }
}

/// Messages between the two marks.
const MARKED: u64 = 200;

// feature(ipc): datagram channels: the far end woken by an event or a helper thread, at choice
#[test]
fn a_send_makes_no_system_call_or_wakes_by_one_at_choice() {
    let trace = match Trace::of_test("ports_under_strace", |strace| strace) {
        Ok(trace) => trace,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let tids: Vec<i32> =
        trace.stdout.lines().filter_map(|line| line.split("tid ").nth(1)?.parse().ok()).collect();
    let [look, helper, event] = tids[..] else { panic!("three threads, found {}", trace.stdout) };
    let own = |tid| {
        let mut calls = trace.calls_of(tid);
        // The thread's own pauses.
        let jobs = calls.remove("clock_nanosleep").unwrap_or(0);
        assert!(jobs >= MARKED, "{jobs} pauses, {calls:?}");
        (jobs, calls)
    };
    for tid in [look, helper] {
        assert!(own(tid).1.is_empty(), "{:?}", own(tid));
    }
    let (jobs, calls) = own(event);
    // A mark may cut off a pause.
    assert!(calls.keys().eq(["write"]) && calls["write"] <= jobs + 2, "{jobs} jobs, {calls:?}");
}

#[test]
#[ignore = "a part of the test above, which starts it under strace"]
fn ports_under_strace() {
    let helper = Wake::Helper { every: Duration::from_millis(1) };
    let stop = AtomicBool::new(false);
    let jobs: [AtomicU64; 3] = Default::default();
    std::thread::scope(|scope| {
        let (stop, jobs) = (&stop, &jobs);
        for (wake, jobs) in [Wake::Look, helper, Wake::Event].into_iter().zip(jobs) {
            let Open { mut port, ipc, server, _ends, _folder } =
                open_waking(MESSAGES, wake, Duration::from_millis(1));
            let channel = ipc.port("port").unwrap();
            let (tell, told) = std::sync::mpsc::channel();
            scope.spawn(move || {
                tell.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(2));
                    // Full: strace makes the readers slow.
                    let _ = port.send(b"message");
                    let _ = port.receive(&mut [0; 8]);
                    jobs.fetch_add(1, Ordering::Relaxed);
                }
            });
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let _ = channel.recv_timeout(&mut [0; 8], Duration::from_millis(10)).unwrap();
                }
                drop((server, ipc, _ends, _folder));
            });
            println!("tid {}", told.recv().unwrap());
        }
        let done = || jobs.each_ref().map(|jobs| jobs.load(Ordering::Relaxed));
        let all_beyond =
            |from: [u64; 3], more| done().iter().zip(from).all(|(&jobs, from)| jobs >= from + more);
        eventually("the threads run", || all_beyond([0; 3], 4).then_some(()));
        strace::mark();
        let from = done();
        // The mark waits for every port: they began one after another, and are slowed unequally.
        // One more message, because the mark may cut off a pause.
        eventually("the messages are sent", || all_beyond(from, MARKED + 1).then_some(()));
        strace::mark();
        stop.store(true, Ordering::Relaxed);
    });
}

// feature(ipc): a full ring refuses and counts
#[test]
fn messages_without_a_client_wait_and_excess_is_refused() {
    let mut open = open(MESSAGES);
    let Open { port, ipc, server, .. } = &mut open;
    assert_eq!(port.send(&[0; 9]), Err(Full { length: 9 }), "too long");
    assert_eq!(port.send(&[]), Err(Full { length: 0 }), "empty");
    for number in 0..10_u8 {
        let sent = port.send(&[number; 3]);
        assert_eq!(sent, if number < 4 { Ok(()) } else { Err(Full { length: 3 }) });
    }
    let counters = server.counters().remove(0);
    assert_eq!((counters.sent, counters.refused, counters.delivered), (4, 8, 0));
    let mut channel = ipc.port("port").unwrap();
    let mut buffer = [0; 8];
    for number in 0..4 {
        assert_eq!(channel.read(&mut buffer).unwrap(), 3);
        assert_eq!(buffer[0], number);
    }
    assert_eq!(channel.recv_timeout(&mut buffer, Duration::from_millis(5)).unwrap(), None);
}

#[test]
fn of_a_stream_bytes_are_counted() {
    let mut open = open(Kind::Stream { size: 100 });
    let Open { port, ipc, server, .. } = &mut open;
    port.send(&[1; 60]).unwrap();
    assert_eq!(port.send(&[2; 60]), Err(Full { length: 60 }));
    let channel = ipc.port("port").unwrap();
    // A client writes more than fits, and is gone.
    (&channel).write_all(&[3; 350]).unwrap();
    eventually("the ring is full", || (server.counters()[0].written == 100).then_some(()));
    drop(channel);
    let _next = ipc.port("port").unwrap();
    let counters = server.counters().remove(0);
    assert_eq!((counters.sent, counters.refused, counters.delivered), (60, 60, 60));
    assert_eq!((counters.written, counters.dropped), (100, 250));
    let mut buffer = [0; 64];
    assert_eq!((port.receive(&mut buffer), port.receive(&mut buffer)), (Some(64), Some(36)));
    assert_eq!(server.counters()[0].received, 100);
}

#[test]
fn client_that_does_not_read_loses_no_sent_message() {
    let mut open = open(MESSAGES);
    let Open { port, ipc, server, .. } = &mut open;
    let mut channel = ipc.port("port").unwrap();
    let mut sent = 0_u32;
    eventually("the socket and the ring are full", || {
        while port.send(&sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        let counters = server.counters().remove(0);
        (counters.refused > 100).then_some(())
    });
    let mut buffer = [0; 8];
    for number in 0..sent {
        assert_eq!(channel.read(&mut buffer).unwrap(), 4);
        assert_eq!(buffer[..4], number.to_le_bytes());
    }
}

#[test]
fn busy_real_time_side_makes_the_client_wait() {
    let mut open = open(MESSAGES);
    let Open { port, ipc, .. } = &mut open;
    let channel = ipc.port("port").unwrap();
    channel.set_nonblocking(true).unwrap();
    let mut written = 0_u32;
    let fill = |written: &mut u32| loop {
        match (&channel).write_all(&written.to_le_bytes()) {
            Ok(()) => *written += 1,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    };
    fill(&mut written);
    let late = eventually("the ring is full too", || {
        fill(&mut written);
        channel
            .send_timeout(&written.to_le_bytes(), Duration::from_millis(20))
            .inspect(|_| written += 1)
            .err()
    });
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    // The client is gone, and all it wrote still arrives.
    drop(channel);
    let mut buffer = [0; 8];
    for number in 0..written {
        let length = eventually("the next message", || port.receive(&mut buffer));
        assert_eq!(buffer[..length], number.to_le_bytes());
    }
    eventually("the port is closed", || (!port.is_open()).then_some(()));
}

#[test]
fn full_port_can_be_opened_again() {
    let mut open = open(MESSAGES);
    let Open { port, ipc, server, .. } = &mut open;
    let channel = ipc.port("port").unwrap();
    for number in 0..20_u8 {
        (&channel).write_all(&[number]).unwrap();
    }
    drop(channel);
    let channel: Channel = ipc.port("port").unwrap();
    let counters = server.counters().remove(0);
    assert_eq!((counters.written, counters.dropped, counters.opened), (4, 16, 2));
    let mut buffer = [0; 8];
    for number in 0..4 {
        assert_eq!(port.receive(&mut buffer), Some(1));
        assert_eq!(buffer[0], number);
    }
    (&channel).write_all(b"next").unwrap();
    assert_eq!(eventually("the next one's", || port.receive(&mut buffer)), 4);
}

#[test]
fn messages_that_no_port_takes_are_refused_where_they_are_sent() {
    let mut open = open(MESSAGES);
    let Open { ipc, server, port, .. } = &mut open;
    let mut channel = ipc.port("port").unwrap();
    for wrong in [&[0; 9][..], &[]] {
        assert_eq!(channel.write(wrong).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    // Bypasses our own client code: a message that is too long is dropped and counted, and the next
    // one passes.
    rustix::net::send(&channel, &[0; 9], rustix::net::SendFlags::NOSIGNAL).unwrap();
    channel.write_all(b"good").unwrap();
    let mut buffer = [0; 8];
    assert_eq!(eventually("the good one", || port.receive(&mut buffer)), 4);
    assert_eq!(server.counters()[0].dropped, 1);
    // A buffer too small for a message is reported.
    port.send(&[1; 8]).unwrap();
    assert_eq!(channel.read(&mut [0; 3]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_end_of_the_cycle_is_the_end_of_the_file() {
    let Open { ipc, server, _ends, _folder, .. } = open(MESSAGES);
    let mut channel = ipc.port("port").unwrap();
    drop(server);
    assert_eq!(channel.read(&mut [0; 8]).unwrap(), 0);
    let ended = channel.recv_timeout(&mut [0; 8], Duration::from_secs(1));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(channel.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_cycle_that_ends_with_words_unread_has_ended_and_not_failed() {
    let Open { ipc, server, _ends, _folder, .. } = open(MESSAGES);
    let mut channel = ipc.port("port").unwrap();
    // The ring holds four; the rest is in the socket when its other end closes.
    for number in 0..20_u8 {
        channel.write_all(&[number]).unwrap();
    }
    eventually("the ring is full", || (server.counters()[0].written == 4).then_some(()));
    drop(server);
    assert_eq!(channel.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn ports_that_cannot_be_are_refused_when_they_are_created() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    builder.port("a", MESSAGES).unwrap();
    for (name, kind) in [
        ("a", MESSAGES),
        ("", MESSAGES),
        ("b", Kind::Message { size: 0, depth: 1 }),
        ("b", Kind::Message { size: 1, depth: 0 }),
        ("b", Kind::Message { size: 65_537, depth: 1 }),
        ("b", Kind::Message { size: 65_536, depth: 4096 }),
        ("b", Kind::Stream { size: 0 }),
    ] {
        let error = builder.port(name, kind).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
}
