//! Fence around the sockets of DDS: no datagram comes from another computer, and none goes to one.
//!
//! Programs of one computer reach each other over the loopback interface, whichever of its
//! addresses they use; multicast on a network interface reaches them as a copy that the kernel
//! loops back. Everything else has been on a cable.

use std::io;
use std::num::NonZeroU32;

use socket2::{SockFilter, Socket};

/// Closes all participants that this process creates from now on.
pub(crate) fn close() {
    rustdds::set_socket_hook(fence);
}

/// Index of the loopback interface in every network namespace of Linux.
const LOOPBACK: NonZeroU32 = NonZeroU32::MIN;

/// Fences in a socket that is not bound yet.
fn fence(socket: &Socket, sends_unicast: bool) -> io::Result<()> {
    let failed = |error: io::Error| {
        io::Error::other(format!(
            "a socket cannot be closed to other computers: {error}; expected Linux 5.7 or later, or open it \
             with --all-interfaces"
        ))
    };
    socket.attach_filter(&FROM_THIS_COMPUTER).map_err(failed)?;
    // A datagram with this time to live is looped back, and not sent.
    socket.set_multicast_ttl_v4(0).map_err(failed)?;
    // What is sent over the loopback interface stays here, whatever its address. Listeners are not
    // bound to it: for a datagram to the address of a network interface the kernel looks for
    // sockets of that interface.
    if sends_unicast {
        socket.bind_device_by_index_v4(Some(LOOPBACK)).map_err(failed)?;
    }
    Ok(())
}

/// Classic BPF (linux/filter.h): takes what comes over the loopback interface, or is a copy looped
/// back.
const FROM_THIS_COMPUTER: [SockFilter; 6] = [
    SockFilter::new(LOAD, 0, 0, ANCILLARY + INTERFACE),
    SockFilter::new(JUMP_IF_EQUAL, 2, 0, LOOPBACK.get()),
    SockFilter::new(LOAD, 0, 0, ANCILLARY + PACKET_TYPE),
    SockFilter::new(JUMP_IF_EQUAL, 0, 1, LOOPED_BACK),
    SockFilter::new(RETURN, 0, 0, u32::MAX),
    SockFilter::new(RETURN, 0, 0, 0),
];

/// `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP | BPF_JEQ | BPF_K`, `BPF_RET | BPF_K`.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// `SKF_AD_OFF`, and what lies there: `SKF_AD_IFINDEX`, `SKF_AD_PKTTYPE`.
const ANCILLARY: u32 = -0x1000_i32 as u32;
const INTERFACE: u32 = 8;
const PACKET_TYPE: u32 = 4;

/// `PACKET_LOOPBACK` (linux/if_packet.h).
const LOOPED_BACK: u32 = 5;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::time::Duration;

    use socket2::{Domain, Type};

    use super::*;

    fn socket(sends_unicast: bool) -> UdpSocket {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        fence(&socket, sends_unicast).unwrap();
        socket.bind(&SocketAddr::from(([0; 4], 0)).into()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.into()
    }

    #[test]
    fn programs_of_one_computer_reach_each_other() {
        let receiver = socket(false);
        let to = (Ipv4Addr::LOCALHOST, receiver.local_addr().unwrap().port());
        socket(true).send_to(b"near", to).unwrap();
        assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 4);
    }
}
