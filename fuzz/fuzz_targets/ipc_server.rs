//! Any bytes at the server: a parsed message re-emits to the same bytes, nothing ends the server's
//! thread, and the next client is accepted as always.
//!
//! The input is a series of messages: a length, then as many bytes. If a line ends in them, the
//! same bytes go to the bus as lines: the output consists of replies, and the next client is
//! served.
#![no_main]

#[allow(dead_code)] // This target never waits for the reply to a single request.
#[path = "../shared/ipc_peer.rs"]
mod ipc_peer;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock};

use ipc::bus::{Backend, Outcome, Reply, Server as BusServer, Service, Ticket};
use ipc::channel::{Kind, Port};
use ipc::client::Client;
use ipc::server::{Endpoints, Server};
use ipc::service::protocol::Request;
use ipc_peer::{builder, connect, receive, send};
use libfuzzer_sys::fuzz_target;
use rustix::net::{RecvFlags, SendFlags};
use types::signal::Flow;
use types::{Signal, ValueType};

/// Parts that stay over all inputs.
struct Ipc {
    server: Server,
    /// Attached for as long.
    attached: Client,
    /// Connection that opens the bus connections.
    visitor: OwnedFd,
    /// Room for a reply: on the stack AddressSanitizer would mark it again for each input.
    reply: Vec<u8>,
    /// Inputs so far.
    inputs: u64,
    _ends: (Endpoints, Port, BusServer),
}

static IPC: OnceLock<Mutex<Ipc>> = OnceLock::new();

/// Inputs of which one is followed by a new client.
const NEW_CLIENT: u64 = 16;

/// Every request is done at once.
#[derive(Default)]
struct Done(VecDeque<Ticket>);

impl Backend for Done {
    fn submit(&mut self, ticket: Ticket, _: &Service, _: Option<&str>) -> bool {
        self.0.push_back(ticket);
        true
    }

    fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        self.0.pop_front().map(|ticket| (ticket, Outcome::Done(true)))
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::parse(bytes) {
        assert_eq!(request.emit(), bytes);
    }
    let mut guard = IPC.get_or_init(|| Mutex::new(open())).lock().unwrap();
    let ipc = &mut *guard;
    // The bus reads whole lines only, and drops all that has no end of a line.
    let has_lines = bytes.contains(&b'\n');
    if has_lines {
        // Its answer is taken below: the server opens the bus while the messages are prepared.
        send(&ipc.visitor, Request::Bus);
    }
    let line = connect(ipc.server.path());
    let mut rest = bytes;
    let mut refused = false;
    while let [length, behind @ ..] = rest {
        let (message, after) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = after;
        // An empty message is the end; the server closes the connection after a refused request, or
        // when it has no space.
        if message.is_empty() || rustix::net::send(&line, message, SendFlags::NOSIGNAL).is_err() {
            break;
        }
        // Without space for descriptors the kernel closes received ones. The fuzzer's timer
        // interrupts the call.
        match rustix::io::retry_on_intr(|| rustix::net::recv(&line, &mut ipc.reply, RecvFlags::empty())) {
            Ok((length @ 8.., _)) => {
                let reply = &ipc.reply[..length];
                assert_eq!(&reply[..4], b"onbd", "{length} bytes");
                // Version, Malformed, Failed; after an impossible force the connection stays open.
                refused = matches!(reply[6], 1 | 2 | 7);
                assert!(refused || Request::parse(message).is_ok(), "{message:?} was taken for a request");
            }
            // It was hanging up when this was said.
            Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) if refused => break,
            other => panic!("no answer to {message:?}: {other:?}"),
        }
    }
    drop(line);
    if has_lines {
        ask(open_bus(&ipc.visitor), bytes);
    }
    ipc.inputs += 1;
    if ipc.inputs % NEW_CLIENT == 1 {
        ipc.attached = Client::open(ipc.server.path()).unwrap();
        assert_eq!(ipc.attached.name(), "fuzz");
        let mut next = ipc.attached.bus().unwrap();
        assert_eq!(next.call(Service::Describe).unwrap(), Outcome::Done(true));
    }
});

/// The connection to the bus that was requested.
fn open_bus(visitor: &OwnedFd) -> OwnedFd {
    loop {
        if let Some(bus) = receive(visitor).pop() {
            return bus;
        }
        // The messages before have filled the queue of the bus.
        send(visitor, Request::Bus);
    }
}

fn ask(bus: OwnedFd, bytes: &[u8]) {
    let mut stream = UnixStream::from(bus);
    // It hangs up where a line is no request.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    for line in BufReader::with_capacity(1024, stream).lines().map_while(Result::ok) {
        serde_json::from_str::<Reply>(&line).unwrap();
    }
}

fn open() -> Ipc {
    let mut ipc = builder("fuzz", 0, Vec::new());
    // One input, which can be forced.
    let signal = Signal {
        name: "door".into(),
        sub_device: 0,
        bit_offset: 0,
        value_type: ValueType::Signed(16),
        unit: String::new(),
        scaling: None,
        range: None,
        flow: Flow::Input,
    };
    ipc.forces(&[signal]);
    let mut port = ipc.port("p", Kind::Stream { size: 64 }).unwrap();
    port.bind();
    let guests = ipc.bus().unwrap();
    let (ends, server) = ipc.open().unwrap();
    let bus = BusServer::start(guests, Box::new(Done::default())).unwrap();
    let attached = Client::open(server.path()).unwrap();
    let visitor = connect(server.path());
    Ipc { server, attached, visitor, reply: vec![0; 2048], inputs: 0, _ends: (ends, port, bus) }
}
