//! Network load: echo requests (RFC 792) to 127.0.0.1, each as soon as the previous one was answered, or
//! after 10 ms, as `ping -f 127.0.0.1` sends them.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket};

use super::{Done, LoadError};

/// Sends requests until `stop` is set.
///
/// # Errors
/// The right to raw sockets is missing, or the loopback interface is down.
pub fn run(stop: &AtomicBool) -> Result<Done, LoadError> {
    let socket = open().map_err(sentence)?;
    // A number to distinguish our echoes from others'.
    let identifier = std::process::id() as u16;
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

/// Sends one request and waits for its answer; true if it came.
fn ping(socket: &OwnedFd, identifier: u16, number: u16) -> Result<bool, Errno> {
    let request = echo(ECHO_REQUEST, identifier, number);
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
        let answer = echo(ECHO_REPLY, identifier, number);
        if packet[..length].get(20..) == Some(&answer[..]) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Echo message with 56 bytes of data, as ping's.
fn echo(kind: u8, identifier: u16, number: u16) -> [u8; 64] {
    let mut message = [0_u8; 64];
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
            Err(error) => return eprintln!("skipped: {}", sentence(error)),
        };
        let identifier = 0x0BEA;
        if let Err(error) = ping(&socket, identifier, 0) {
            return eprintln!("skipped: {}", sentence(error));
        }
        let answered = (1..100).filter(|&number| ping(&socket, identifier, number) == Ok(true)).count();
        assert!(answered > 0, "the kernel drops a request whose check sum is wrong");
    }

    #[test]
    fn the_check_sum_makes_the_sum_of_all_words_all_ones() {
        let message = echo(ECHO_REQUEST, 0xFFFF, 0xFFFE);
        let sum: u32 =
            message.chunks_exact(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]]))).sum();
        assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
    }
}
