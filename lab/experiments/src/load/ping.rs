//! Network load: echo requests (RFC 792) to 127.0.0.1, each as soon as the previous one was
//! answered, or after 10 ms, as `ping -f 127.0.0.1` sends them; or with 100 000 of them sent ahead
//! and 10 bytes of data, as the humanoid paper's `ping -l 100000 -s 10 -f localhost`.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket};

use super::{Done, LoadError, Weight};

/// Sends requests until `stop` is set.
///
/// # Errors
/// The right to raw sockets is missing, or the loopback interface is down.
pub fn run(weight: Weight, stop: &AtomicBool) -> Result<Done, LoadError> {
    let socket = open().map_err(sentence)?;
    // A number to distinguish our echoes from others'.
    let identifier = std::process::id() as u16;
    if weight == Weight::Paper {
        return flood(&socket, identifier, stop).map_err(sentence);
    }
    let (mut number, mut count) = (0_u16, 0);
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        count += u64::from(ping(&socket, identifier, number).map_err(sentence)?);
        number = number.wrapping_add(1);
    }
    Ok(Done { count, what: "echoes" })
}

fn open() -> Result<OwnedFd, Errno> {
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
    Ok(socket)
}

/// Sends the requests that go ahead without waiting, then one for each answer, or every 10 ms.
fn flood(socket: &OwnedFd, identifier: u16, stop: &AtomicBool) -> Result<Done, Errno> {
    let mut sent = 0_u64;
    let mut packet = [0; 128];
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        let request = echo::<PAPER_MESSAGE>(ECHO_REQUEST, identifier, sent as u16);
        match sendto(socket, &request, SendFlags::empty(), &LOOPBACK) {
            Ok(_) => sent += 1,
            // The socket's buffer is full: the flood is at its limit.
            Err(Errno::NOBUFS | Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if sent > AHEAD {
            // A raw socket receives our own requests, too.
            loop {
                match recv(socket, &mut packet, RecvFlags::empty()) {
                    Ok((_, length)) if packet[..length.min(packet.len())].get(20) == Some(&ECHO_REPLY) => {
                        break;
                    }
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(Done { count: sent, what: "echo requests" })
}

/// Sends one request and waits for its answer; true if it came.
fn ping(socket: &OwnedFd, identifier: u16, number: u16) -> Result<bool, Errno> {
    let request = echo::<MESSAGE>(ECHO_REQUEST, identifier, number);
    match sendto(socket, &request, SendFlags::empty(), &LOOPBACK) {
        // The socket's buffer is full: the flood is at its limit.
        Err(Errno::NOBUFS | Errno::AGAIN) => return Ok(false),
        sent => sent?,
    };
    let begin = Instant::now();
    let mut packet = [0; 128];
    while begin.elapsed() < TIMEOUT {
        let length = match recv(socket, &mut packet, RecvFlags::empty()) {
            Ok((_, length)) => length.min(packet.len()),
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        // After the IP header without options; a raw socket receives our own requests, too.
        let answer = echo::<MESSAGE>(ECHO_REPLY, identifier, number);
        if packet[..length].get(20..) == Some(&answer[..]) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Echo message of so many bytes, the header's 8 among them.
fn echo<const SIZE: usize>(kind: u8, identifier: u16, number: u16) -> [u8; SIZE] {
    let mut message = [0_u8; SIZE];
    message[0] = kind;
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&number.to_be_bytes());
    let sum: u32 = message.chunks_exact(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]]))).sum();
    // RFC 1071: carries are added at the end; at most one here.
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

fn sentence(error: Errno) -> LoadError {
    let remedy = match error {
        Errno::PERM | Errno::ACCESS => "needs CAP_NET_RAW: run as root",
        Errno::NETUNREACH | Errno::NETDOWN => "the loopback interface is down: ip link set lo up",
        _ => "echo requests on the loopback interface",
    };
    LoadError(format!("ping 127.0.0.1: {error} ({remedy})"))
}

/// With 56 bytes of data, as ping's own.
const MESSAGE: usize = 64;

/// With 10 bytes of data.
const PAPER_MESSAGE: usize = 18;

/// Requests that the paper's flood sends before it waits for answers.
const AHEAD: u64 = 100_000;

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const TIMEOUT: Duration = Duration::from_millis(10);
const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_answers() {
        let socket = match open() {
            Ok(socket) => socket,
            Err(error) => return testkit::skip!("{}", sentence(error)),
        };
        let identifier = 0x0BEA;
        if let Err(error) = ping(&socket, identifier, 0) {
            return testkit::skip!("{}", sentence(error));
        }
        let answered = (1..100).filter(|&number| ping(&socket, identifier, number) == Ok(true)).count();
        assert!(answered > 0, "the kernel drops a request whose check sum is wrong");
    }

    #[test]
    fn the_check_sum_makes_the_sum_of_all_words_all_ones() {
        let one = |message: &[u8]| {
            let words = message.chunks_exact(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
            let sum: u32 = words.sum();
            assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
        };
        one(&echo::<MESSAGE>(ECHO_REQUEST, 0xFFFF, 0xFFFE));
        one(&echo::<PAPER_MESSAGE>(ECHO_REQUEST, 0xFFFF, 0xFFFE));
    }
}
