//! What the driver of a network interface says: interrupt coalescing, offloads, energy saving, queues.
//!
//! The source is the ethtool ioctl (linux/ethtool.h). What a driver does not support is `None`.

use std::io;

use crate::sys::ethtool::EthtoolSocket;

/// What the driver says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ethtool {
    /// How long interrupts are held back.
    pub coalescing: Option<Coalescing>,
    /// Frames joined or cut on their way.
    pub offloads: Vec<Offload>,
    /// Energy-Efficient Ethernet switched on.
    pub energy_efficient: Option<bool>,
    /// Queues in use that receive.
    pub receive_queues: Option<u32>,
    /// Pause frames are sent or obeyed.
    pub pause: Option<bool>,
}

/// How long a card holds back its interrupts to save some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest wait after a frame was received, us.
    pub receive_us: u32,
    /// Longest wait after a frame was sent, us.
    pub transmit_us: u32,
    /// The card chooses the wait after a frame was received.
    pub adaptive_receive: bool,
    /// The card chooses the wait after a frame was sent.
    pub adaptive_transmit: bool,
}

/// One way of joining or cutting frames, and whether it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// As the `ethtool` program calls it: `gro`, `lro`, `tso`, `gso`.
    pub name: &'static str,
    /// Whether it is on.
    pub on: bool,
}

impl Ethtool {
    /// Asks the driver of `interface`, in the network namespace we are in. Needs no privilege.
    ///
    /// # Errors
    /// ENODEV if there is no such interface.
    pub fn read(interface: &str) -> io::Result<Self> {
        let socket = EthtoolSocket::open()?;
        let ask = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => Err(error),
            _ => Ok(None),
        };
        // The link state is asked first: every interface has one, so that this tells whether it exists.
        let mut link = [GET_LINK, 0];
        socket.ask(interface, &mut link).map(|()| None::<()>).or_else(ask)?;
        let flags = value(&socket, interface, GET_FLAGS);
        let offload = |name, on: Option<bool>| on.map(|on| Offload { name, on });
        let on = |command| value(&socket, interface, command).map(|value| value != 0);
        let offloads = [
            offload("gro", on(GET_GRO)),
            offload("lro", flags.map(|flags| flags & FLAG_LRO != 0)),
            offload("tso", on(GET_TSO)),
            offload("gso", on(GET_GSO)),
        ];
        Ok(Self {
            coalescing: coalescing(&socket, interface),
            offloads: offloads.into_iter().flatten().collect(),
            energy_efficient: block::<10>(&socket, interface, GET_EEE).map(|eee| eee[5] != 0),
            // cmd, max rx tx other combined, rx tx other combined.
            receive_queues: block::<9>(&socket, interface, GET_CHANNELS)
                .map(|it| it[5].saturating_add(it[8])),
            // cmd, autoneg, rx, tx.
            pause: block::<4>(&socket, interface, GET_PAUSE).map(|it| it[2] != 0 || it[3] != 0),
        })
    }
}

/// `struct ethtool_coalesce`: rx_coalesce_usecs is word 1, tx 5, adaptive rx and tx 10 and 11.
fn coalescing(socket: &EthtoolSocket, interface: &str) -> Option<Coalescing> {
    let words = block::<23>(socket, interface, GET_COALESCE)?;
    Some(Coalescing {
        receive_us: words[1],
        transmit_us: words[5],
        adaptive_receive: words[10] != 0,
        adaptive_transmit: words[11] != 0,
    })
}

/// `struct ethtool_value`.
fn value(socket: &EthtoolSocket, interface: &str, command: u32) -> Option<u32> {
    block::<2>(socket, interface, command).map(|words| words[1])
}

fn block<const N: usize>(socket: &EthtoolSocket, interface: &str, command: u32) -> Option<[u32; N]> {
    let mut words = [0; N];
    words[0] = command;
    socket.ask(interface, &mut words).ok()?;
    Some(words)
}

// Commands and flags of linux/ethtool.h.
const GET_LINK: u32 = 0x0a;
const GET_COALESCE: u32 = 0x0e;
const GET_PAUSE: u32 = 0x12;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;
const GET_CHANNELS: u32 = 0x3c;
const GET_EEE: u32 = 0x44;
const FLAG_LRO: u32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_and_says_what_it_joins() {
        let loopback = Ethtool::read("lo").unwrap();
        assert!(loopback.offloads.iter().any(|it| it.name == "gro"), "{loopback:?}");
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        for name in ["no-such-nic", "", "a-name-longer-than-the-kernel-allows"] {
            assert_eq!(Ethtool::read(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }
}
