//! Subjects of `cargo xtask bench wire`: the floors of a packet socket and of AF_XDP, Onbeat's links, and Onbeat.
//!
//! `wire [xdp-]floor|[xdp-]riders|[xdp-]link|[xdp-]onbeat INTERFACE SUB_DEVICES BYTES_EACH` gets ready, prints `ready FRAME_BYTES`, and then
//! answers each line on standard input, a number of cycles, with one line: the CPU time those cycles took
//! together and each cycle's duration, all in nanoseconds.

mod floor;
mod onbeat;
mod raw_xdp;
mod rounds;

use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use floor::{Floor, OnbeatLink, RawSocket, Wire};
use onbeat_ethercat::time::Instant;
use onbeat_ethercat_linux::link::{Link, OpenError, PacketLink, XdpLink};
use raw_xdp::RawXdp;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [subject, interface, sub_devices, bytes] => measure(subject, interface, sub_devices, bytes),
        _ => Err(
            "usage: wire [xdp-]floor|[xdp-]riders|[xdp-]link|[xdp-]onbeat INTERFACE SUB_DEVICES BYTES_EACH"
                .into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves rounds of this subject.
fn measure(subject: &str, interface: &str, sub_devices: &str, bytes: &str) -> Result<(), String> {
    let load = (number(sub_devices)?, number(bytes)?);
    match subject {
        "floor" | "riders" => round_trips(RawSocket::open(interface)?, load, subject == "riders"),
        "xdp-floor" | "xdp-riders" => round_trips(RawXdp::open(interface)?, load, subject == "xdp-riders"),
        "link" => round_trips(OnbeatLink::of(packet(interface)?), load, true),
        "xdp-link" => round_trips(OnbeatLink::of(xdp(interface)?), load, true),
        "onbeat" => cycles(packet(interface)?, load),
        "xdp-onbeat" => cycles(xdp(interface)?, load),
        other => Err(format!("`{other}` is no subject")),
    }
}

fn packet(interface: &str) -> Result<PacketLink, String> {
    PacketLink::open(interface, CARRIER).map_err(|error: OpenError| error.to_string())
}

fn xdp(interface: &str) -> Result<XdpLink, String> {
    XdpLink::open(interface, CARRIER, false).map_err(|error: OpenError| error.to_string())
}

/// Serves rounds of Onbeat's cycle.
fn cycles(link: impl Link, (sub_devices, bytes): (usize, usize)) -> Result<(), String> {
    let mut onbeat = onbeat::Onbeat::open(link, sub_devices, bytes)?;
    serve(onbeat.frame_length(), |start| onbeat.exchange(Instant::from_nanos(start)))
}

/// Serves rounds of one prebuilt frame.
fn round_trips(wire: impl Wire, (sub_devices, bytes): (usize, usize), riders: bool) -> Result<(), String> {
    let mut floor = Floor::new(wire, sub_devices, bytes, riders)?;
    serve(floor.frame_length(), |_| floor.exchange())
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|error| format!("`{word}` is no number: {error}"))
}

/// Time a carrier may take.
const CARRIER: Duration = Duration::from_secs(5);

/// Serves rounds of a cycle that blocks: its future never waits, so one poll ends it.
fn serve(frame_length: usize, mut cycle: impl FnMut(u64) -> Result<(), String>) -> Result<(), String> {
    let conversation = pin!(rounds::serve_async(frame_length, async |start| cycle(start)));
    match conversation.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err("a blocking cycle cannot be pending".into()),
    }
}
