use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::session::{Guest, pair};
use super::*;
use crate::client::Client;
use crate::description::Description;
use crate::server::{Builder, Endpoints, Server as InterfaceServer};

/// Answers at once, in the order of the requests, with the position; keeps answers for position 9
/// until another request comes.
#[derive(Default)]
struct Echo {
    done: VecDeque<(Ticket, Outcome)>,
    kept: VecDeque<Ticket>,
}

impl Backend for Echo {
    fn submit(&mut self, ticket: Ticket, service: &Service, reads_only: Option<&str>) -> bool {
        match service {
            Service::Upload { position: 9, .. } if self.kept.len() == 16 => return false,
            Service::Upload { position: 9, .. } => self.kept.push_back(ticket),
            Service::Upload { position, .. } => {
                self.done.push_back((ticket, Outcome::Data(Bytes(position.to_le_bytes().into()))));
                let kept = self.kept.drain(..);
                self.done.extend(kept.map(|ticket| (ticket, Outcome::Data(Bytes::default()))));
            }
            Service::Download { .. } if reads_only.is_some() => {
                self.done.push_back((ticket, Outcome::error(reads_only.unwrap_or_default())));
            }
            Service::Download { data, .. } => self.done.push_back((ticket, Outcome::Data(data.clone()))),
            _ => self.done.push_back((ticket, Outcome::Done(true))),
        }
        true
    }

    fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        self.done.pop_front()
    }
}

fn started() -> (Admission, Server) {
    let (admission, guests) = Admission::new().unwrap();
    (admission, Server::start(guests, Box::new(Echo::default())).unwrap())
}

fn connect(admission: &Admission, user: u32, reads_only: bool) -> UnixStream {
    let (socket, theirs) = pair().unwrap();
    let reads_only = reads_only.then(|| "it may only look".to_owned());
    while !admission.admit(Guest {
        socket: socket.try_clone().unwrap(),
        user,
        reads_only: reads_only.clone(),
    }) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let theirs = UnixStream::from(theirs);
    theirs.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    theirs
}

fn client(admission: &Admission) -> BusClient {
    BusClient::new(connect(admission, 0, false).into())
}

fn upload(position: u16) -> Service {
    Service::Upload { position, index: 0x1018, sub_index: 1, complete_access: false }
}

/// A whole interface in a separate folder.
fn ipc(test: &str) -> (Endpoints, InterfaceServer, Server, Client) {
    let folder = std::env::temp_dir().join(format!("onbeat-bus-{test}-{}", std::process::id()));
    let mut builder = Builder::new("robot", &Description::default());
    builder.folder(&folder);
    let guests = builder.bus().unwrap();
    let (ends, interface) = builder.open().unwrap();
    let server = Server::start(guests, Box::new(Echo::default())).unwrap();
    let attached = Client::open(interface.path()).unwrap();
    (ends, interface, server, attached)
}

// feature(running-bus): several clients at once, and killed ones
#[test]
fn replies_come_by_number_and_in_their_own_order() {
    let (_ends, interface, server, attached) = ipc("order");
    let mut client = attached.bus().unwrap();
    let slow = client.send(upload(9)).unwrap();
    assert_eq!(client.call(upload(0x0102)).unwrap(), Outcome::Data(Bytes(vec![2, 1])));
    assert_eq!(client.receive().unwrap().id, slow);
    let value = Bytes((0..LONGEST_OBJECT).map(|byte| byte as u8).collect());
    let whole = Service::Download {
        position: 0,
        index: 0x2000,
        sub_index: 0,
        complete_access: false,
        data: value.clone(),
        force: false,
    };
    assert_eq!(client.call(whole).unwrap(), Outcome::Data(value), "the longest object");
    drop(server);
    assert!(matches!(client.call(upload(1)), Err(BusError::Ended)));
    drop(interface);
}

/// A newer cycle sends events that an older reader does not know.
#[test]
fn an_event_of_a_newer_version_does_not_end_the_stream() {
    let newer = r#"{"id":3,"event":{"cycle":7,"at_ns":7000,"severity":"fatal","event":"port_errors_rise","position":3}}"#;
    let known =
        serde_json::to_string(&Reply { id: 3, outcome: Outcome::Event(event(7, Happening::Unknown)) });
    let known: serde_json::Value = serde_json::from_str(&known.unwrap()).unwrap();
    let newer: serde_json::Value = serde_json::from_str(newer).unwrap();
    assert_eq!(known["event"]["cycle"], newer["event"]["cycle"], "the form of a line");
    let reply: Reply = serde_json::from_value(newer).unwrap();
    assert_eq!(reply.outcome, Outcome::Event(event(7, Happening::Unknown)));
}

fn event(cycle: u64, what: Happening) -> Event {
    Event {
        cycle,
        at_ns: cycle * 1000,
        severity: Severity::Warning,
        sentence: String::new(),
        between: None,
        what,
    }
}

/// One of each event; the compiler reports a missing new one in [`next_event`].
fn events() -> Vec<Happening> {
    std::iter::successors(Some(Happening::Phase { phase: "Op".into() }), next_event).collect()
}

fn next_event(event: &Happening) -> Option<Happening> {
    use Happening::*;
    let (text, position, axis) = (String::from("why"), 1, 2);
    Some(match event {
        Phase { .. } => BusFailed { text },
        BusFailed { .. } => {
            StateChanged { position, state: text.clone(), al_status_code: 0x1B, al_status_text: text }
        }
        StateChanged { .. } => Unreachable { position },
        Unreachable { .. } => Absent { position },
        Absent { .. } => Joined { position },
        Joined { .. } => Reconfiguring { position },
        Reconfiguring { .. } => Recovered { position, anew: true },
        Recovered { .. } => NotRecovered { position, text, again_in_ns: None },
        NotRecovered { .. } => Stranger {
            place: 3,
            expected: Some(3),
            known: Some(position),
            vendor_id: 1,
            product_code: 2,
            revision: 3,
            serial: 4,
        },
        Stranger { .. } => SyncMissed { position, text },
        SyncMissed { .. } => ClockUnsettled { position, difference_ns: -4000 },
        ClockUnsettled { .. } => SubDeviceLost { position },
        SubDeviceLost { .. } => SubDeviceBack { position, after: 4 },
        SubDeviceBack { .. } => {
            Emergency { position, error_code: 0x2310, error_register: 1, data: Bytes(vec![1; 5]) }
        }
        Emergency { .. } => DriveFault { axis, position, error_code: 0x2310 },
        DriveFault { .. } => {
            AxisStopped { axis, reason: text, stopped_with: Some(1), interlock: Some(2), stalled: 3 }
        }
        AxisStopped { .. } => {
            SetpointIgnored { axis, mode: "csv".into(), given: text.clone(), takes: text }
        }
        SetpointIgnored { .. } => QuickStopIgnored { axis, step: text },
        QuickStopIgnored { .. } => Overshoot { axis, by: 0.5 },
        Overshoot { .. } => AxisFreed { axis },
        AxisFreed { .. } => Interlock { interlock: 0, allows: true, level: "is high".into() },
        Interlock { .. } => SignalForced {
            signal: text,
            value: types::Value::Real(2.0),
            for_ns: 1_000,
            user: 1000,
            process: 77,
        },
        SignalForced { .. } => SignalReleased {
            signal: text,
            value: Some(types::Value::Bool(false)),
            reason: "why".into(),
            after: 4,
            user: Some(0),
            process: Some(77),
        },
        SignalReleased { .. } => PositionGiven {
            axis,
            accepted: true,
            before: Some(0.5),
            position: 0.25,
            user: 1000,
            process: 77,
            refused: Some("why".into()),
        },
        PositionGiven { .. } => {
            Requested { request: text, user: Some(1000), process: Some(77), refused: None }
        }
        Requested { .. } => ClockLock { state: text, phase_error_ns: -5 },
        ClockLock { .. } => LinkFailed { code: 5 },
        LinkFailed { .. } => LinkWorks { after: 4 },
        LinkWorks { .. } => RingOpen,
        RingOpen => RingClosed { after: 4 },
        RingClosed { .. } => OtherMainDevice { source: text, frames: 1 },
        OtherMainDevice { .. } => Stalled { cycles: 9 },
        Stalled { .. } => Repeated {
            of: Box::new(Stalled { cycles: 9 }),
            others: vec![1],
            count: 4,
            longest: 9,
            within_ns: 1_000,
            lasts: false,
        },
        Repeated { .. } => Unknown,
        Unknown => return None,
    })
}

#[test]
fn every_event_is_documented_and_round_trips() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bus.md")).unwrap();
    for event in events() {
        let line = serde_json::to_value(&event).unwrap();
        let name = line["event"].as_str().unwrap();
        assert!(event == Happening::Unknown || page.contains(&format!("`{name}`")), "{name}");
        assert_eq!(serde_json::from_value::<Happening>(line).unwrap(), event);
    }
}

#[test]
fn every_message_comes_back_from_its_line() {
    let fault = event(7, Happening::DriveFault { axis: 5, position: 3, error_code: 0x2310 });
    let ends = [(None, 0), (Some(3), 1)].map(|(position, port)| CableEnd { position, port: Some(port) });
    let lost = Event { between: Some(ends), ..event(8, Happening::SubDeviceLost { position: 3 }) };
    let line = serde_json::to_string(&lost).unwrap();
    assert!(line.contains(r#""between":[{"position":null,"port":0},{"position":3,"port":1}]"#), "{line}");
    let error = Outcome::Error { text: "no".into(), abort_code: Some(0x0602_0000) };
    let status = BusStatus { sub_devices: vec![SubDeviceStatus::default()], ..BusStatus::default() };
    for outcome in [
        Outcome::Done(true),
        Outcome::Data(Bytes(vec![0, 255])),
        Outcome::Status(Box::new(status)),
        Outcome::Event(fault),
        Outcome::Event(lost),
        Outcome::Missed(4),
        error,
    ] {
        let reply = Reply { id: u64::MAX, outcome };
        let line = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply, "{line}");
    }
    for service in [
        upload(3),
        Service::Status { errors: true, receive_times: false },
        Service::ClearErrors,
        Service::Describe,
        Service::Events { follow: true },
    ] {
        let request = Request { id: 5, service };
        let line = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request, "{line}");
    }
}

// feature(running-bus): garbage, floods, half requests, slow readers
#[test]
fn garbage_ends_its_connection_with_a_sentence_and_no_other() {
    let (admission, server) = started();
    let mut good = client(&admission);
    let too_long = vec![b'x'; LONGEST_LINE + 20_000];
    let wrong_bytes = br#"{"id":1,"service":"download","position":0,"index":1,"sub_index":0,"data":"0"}"#;
    let deep = [b"[".repeat(50_000), b"\n".to_vec()].concat();
    for garbage in
        [&b"what\n"[..], b"\xff\xfe\n", &too_long, b"{}\n", &[&wrong_bytes[..], b"\n"].concat(), &deep]
    {
        let mut stream = connect(&admission, 0, false);
        // It may be hung up on before all of it is sent.
        let _ = stream.write_all(garbage);
        let mut told = String::new();
        let _ = stream.read_to_string(&mut told);
        let reply: Reply = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
        assert!(matches!(reply, Reply { id: 0, outcome: Outcome::Error { .. } }), "{reply:?}");
        assert_eq!(good.call(upload(1)).unwrap(), Outcome::Data(Bytes(vec![1, 0])));
    }
    assert_eq!(server.counters().malformed, 6);
}

// feature(running-bus): garbage, floods, half requests, slow readers
#[test]
fn flood_waits_in_its_socket_and_dead_client_leaves_nothing() {
    let (admission, server) = started();
    let mut good = client(&admission);
    let mut flood = connect(&admission, 0, false);
    flood.set_nonblocking(true).unwrap();
    let line = serde_json::to_vec(&Request { id: 1, service: upload(9) }).unwrap();
    let line = [&line[..], b"\n"].concat();
    // Its requests stay under way: further input waits, until its socket takes no more.
    let started = Instant::now();
    while flood.write_all(&line).is_ok() || server.counters().requests < MOST_UNDER_WAY as u64 {
        assert!(started.elapsed() < Duration::from_secs(20), "it takes everything");
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(server.counters().requests, MOST_UNDER_WAY as u64);
    drop(flood);
    let mut half = connect(&admission, 0, false);
    half.write_all(&line[..10]).unwrap();
    drop(half);
    assert_eq!(good.call(upload(1)).unwrap(), Outcome::Data(Bytes(vec![1, 0])));
    assert_eq!(server.counters().malformed, 0);
}

// feature(running-bus): garbage, floods, half requests, slow readers
#[test]
fn a_client_that_has_said_all_it_has_to_say_gets_its_replies() {
    let (admission, _server) = started();
    let mut stream = connect(&admission, 0, false);
    for id in 1..=20 {
        let line = serde_json::to_string(&Request { id, service: upload(id as u16) }).unwrap();
        writeln!(stream, "{line}").unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(BufReader::new(stream).lines().map(Result::unwrap).count(), 20);
}

// feature(running-bus): rights: a client with the right to read only reads, and blocks no other client
#[test]
fn read_only_clients_cannot_write_or_lock_others_out() {
    let (admission, server) = started();
    let readers: Vec<_> = (0..12).map(|_| connect(&admission, 1000, true)).collect();
    let line = serde_json::to_string(&Request { id: 1, service: upload(3) }).unwrap();
    let answers = readers.iter().map(|mut reader| {
        let _ = writeln!(reader, "{line}");
        let mut told = String::new();
        BufReader::new(reader).read_line(&mut told).unwrap();
        serde_json::from_str::<Reply>(&told).unwrap().id
    });
    assert_eq!(answers.filter(|&id| id == 1).count(), 8);
    assert_eq!(server.counters().refused, 4);
    let mut reader = BusClient::new(connect(&admission, 1001, true).into());
    let write = Service::Download {
        position: 0,
        index: 0x6060,
        sub_index: 0,
        complete_access: false,
        data: Bytes(vec![8]),
        force: true,
    };
    let refused = reader.call(write).unwrap_err().to_string();
    assert!(refused.contains("may only look"), "{refused}");
    assert_eq!(client(&admission).call(upload(1)).unwrap(), Outcome::Data(Bytes(vec![1, 0])));
}

// feature(running-bus): events with the numbers of their cycles; missed events are counted
#[test]
fn events_are_kept_and_followed_without_blocking() {
    let (admission, server) = started();
    let publisher = server.publisher();
    let event = |cycle| event(cycle, Happening::SubDeviceLost { position: 2 });
    publisher.publish(event(1));
    publisher.publish(event(2));
    let kept: Vec<_> = client(&admission).events(false).unwrap().map(Result::unwrap).collect();
    assert_eq!(kept, [event(1), event(2)]);
    // A client that never reads, while far more events are sent than are kept and its socket holds.
    let mut idle = client(&admission);
    idle.send(Service::Events { follow: true }).unwrap();
    let mut followed = client(&admission).events(true).unwrap();
    assert_eq!((followed.next(), followed.next()), (Some(Ok(event(1))), Some(Ok(event(2)))));
    let last = 20_000;
    (3..=last).for_each(|cycle| publisher.publish(event(cycle)));
    let (mut heard, mut missed) = (2, 0);
    while heard + missed < last {
        match followed.next().unwrap() {
            Ok(event) => {
                heard += 1;
                assert_eq!(event.cycle, heard + missed, "in order, and those missed are counted");
            }
            Err(number) => missed += number,
        }
    }
    let mut late = 0;
    while late < last {
        match idle.receive().unwrap().outcome {
            Outcome::Event(event) => {
                late += 1;
                assert_eq!(event.cycle, late);
            }
            Outcome::Missed(number) => late += number,
            other => panic!("{other:?}"),
        }
    }
}
