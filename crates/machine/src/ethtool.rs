//! Settings of a network interface's driver: interrupt coalescing, offloads, energy saving, queues.
//!
//! They are read and changed with the ethtool ioctl (linux/ethtool.h), without the program of that
//! name. Settings that a driver does not support are `None`.

mod setting;

use std::io;

use crate::sys::EthtoolSocket;

pub use setting::{Setting, Value, read_settings, set_settings};

/// Settings of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ethtool {
    /// Interrupt coalescing.
    pub coalescing: Option<Coalescing>,
    /// Offloads that join or split frames.
    pub offloads: Vec<Offload>,
    /// True if Energy-Efficient Ethernet is on.
    pub energy_efficient: Option<bool>,
    /// Queues in use.
    pub queues: Option<Queues>,
    /// True if pause frames are sent or obeyed.
    pub pause: Option<bool>,
}

/// Interrupt coalescing of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest delay after a received frame, us.
    pub receive_us: u32,
    /// Longest delay after a sent frame, us.
    pub transmit_us: u32,
    /// True if the card chooses the delay after a received frame.
    pub adaptive_receive: bool,
    /// True if the card chooses the delay after a sent frame.
    pub adaptive_transmit: bool,
}

/// Queues of a card that frames are received by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Queues that only receive.
    pub receive: u32,
    /// Queues that receive and send.
    pub combined: u32,
}

impl Queues {
    /// Number of all.
    #[must_use]
    pub fn count(self) -> u32 {
        self.receive.saturating_add(self.combined)
    }
}

/// Offload that joins or splits frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Name in the `ethtool` program: `gro`, `lro`, `tso`, `gso`.
    pub name: &'static str,
    /// True if it is on.
    pub on: bool,
}

impl Ethtool {
    /// Reads the settings of `interface`, in the current network namespace. Needs no privilege.
    ///
    /// # Errors
    /// ENODEV if there is no such interface.
    pub fn read(interface: &str) -> io::Result<Self> {
        let socket = EthtoolSocket::open()?;
        let ask = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => Err(error),
            _ => Ok(None),
        };
        // The link state comes first: every interface has one, so that a failure means a missing
        // interface.
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
            // Words: cmd, max rx tx other combined, rx tx other combined.
            queues: block::<9>(&socket, interface, GET_CHANNELS)
                .map(|it| Queues { receive: it[5], combined: it[8] }),
            // Words: cmd, autoneg, rx, tx.
            pause: block::<4>(&socket, interface, GET_PAUSE).map(|it| it[2] != 0 || it[3] != 0),
        })
    }
}

/// Clock of a card that stamps frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampingClock {
    /// Number N of its clock, `/dev/ptpN`; `None` if it is not readable.
    pub number: Option<u32>,
    /// True if it can stamp every received frame, not only frames of a time protocol.
    pub stamps_all: bool,
}

impl StampingClock {
    /// Clock by which the card of `interface`, in the current network namespace, stamps frames that
    /// come; `None` if it has none. Needs no privilege.
    ///
    /// # Errors
    /// ENODEV if there is no such interface.
    pub fn read(interface: &str) -> io::Result<Option<Self>> {
        let socket = EthtoolSocket::open()?;
        // Words: cmd, so_timestamping, phc_index, tx_types, three reserved, rx_filters, three
        // reserved.
        let mut words = [0; 11];
        words[0] = GET_TS_INFO;
        match socket.ask(interface, &mut words) {
            Ok(()) => Ok(Self::of(&words)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn of(words: &[u32; 11]) -> Option<Self> {
        let is_there = words[1] & RX_HARDWARE != 0 && words[1] & RAW_HARDWARE != 0;
        let number = u32::try_from(words[2] as i32).ok();
        is_there.then_some(Self { number, stamps_all: words[7] & 1 << FILTER_ALL != 0 })
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
const GET_TS_INFO: u32 = 0x41;
const GET_EEE: u32 = 0x44;
const FLAG_LRO: u32 = 1 << 15;
// SOF_TIMESTAMPING and HWTSTAMP_FILTER of linux/net_tstamp.h.
const RX_HARDWARE: u32 = 1 << 2;
const RAW_HARDWARE: u32 = 1 << 6;
const FILTER_ALL: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_and_says_what_it_joins() {
        let loopback = Ethtool::read("lo").unwrap();
        assert!(loopback.offloads.iter().any(|it| it.name == "gro"), "{loopback:?}");
    }

    #[test]
    fn a_clock_is_that_of_a_card_that_stamps_what_comes() {
        assert_eq!(StampingClock::read("lo").unwrap(), None, "it stamps by software");
        assert_eq!(StampingClock::read("no-such-nic").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        let words = |flags, clock, filters| [GET_TS_INFO, flags, clock, 3, 0, 0, 0, filters, 0, 0, 0];
        // An I210: all six kinds of stamps, ptp0, filters none and all; one of software stamps
        // alone.
        let clock = StampingClock { number: Some(0), stamps_all: true };
        assert_eq!(StampingClock::of(&words(0x5F, 0, 0x3)), Some(clock));
        assert_eq!(StampingClock::of(&words(0x1A, u32::MAX, 0x1)), None);
        let hidden = StampingClock { number: None, stamps_all: false };
        assert_eq!(StampingClock::of(&words(0x5F, u32::MAX, 0x4001)), Some(hidden));
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        for name in ["no-such-nic", "", "a-name-longer-than-the-kernel-allows"] {
            assert_eq!(Ethtool::read(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }
}
