//! Changes of a driver's settings, each a word of a block that the ethtool ioctl reads and sets.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::{FLAG_LRO, GET_CHANNELS, GET_COALESCE, GET_EEE, GET_FLAGS, GET_GRO, GET_PAUSE};
use crate::sys::ethtool::EthtoolSocket;

/// Setting of a driver that can be changed, named as by the program `ethtool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "they are ethtool(8)'s")]
pub enum Setting {
    AdaptiveRx,
    AdaptiveTx,
    RxUsecs,
    TxUsecs,
    Gro,
    Lro,
    Eee,
    PauseAutoneg,
    PauseRx,
    PauseTx,
    RxQueues,
    CombinedQueues,
}

/// Setting with a value; of a switch 1 is on.
pub type Value = (Setting, u32);

impl Setting {
    /// Words of the program `ethtool`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdaptiveRx => "adaptive-rx",
            Self::AdaptiveTx => "adaptive-tx",
            Self::RxUsecs => "rx-usecs",
            Self::TxUsecs => "tx-usecs",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::Eee => "eee",
            Self::PauseAutoneg => "pause autoneg",
            Self::PauseRx => "pause rx",
            Self::PauseTx => "pause tx",
            Self::RxQueues => "rx queues",
            Self::CombinedQueues => "combined queues",
        }
    }

    /// Place in the blocks of linux/ethtool.h.
    fn place(self) -> SettingPlace {
        let word = |get, set, word| SettingPlace { get, set, word, mask: u32::MAX };
        match self {
            Self::RxUsecs => word(GET_COALESCE, SET_COALESCE, 1),
            Self::TxUsecs => word(GET_COALESCE, SET_COALESCE, 5),
            Self::AdaptiveRx => word(GET_COALESCE, SET_COALESCE, 10),
            Self::AdaptiveTx => word(GET_COALESCE, SET_COALESCE, 11),
            Self::Gro => word(GET_GRO, SET_GRO, 1),
            Self::Lro => SettingPlace { get: GET_FLAGS, set: SET_FLAGS, word: 1, mask: FLAG_LRO },
            Self::Eee => word(GET_EEE, SET_EEE, 5),
            Self::PauseAutoneg => word(GET_PAUSE, SET_PAUSE, 1),
            Self::PauseRx => word(GET_PAUSE, SET_PAUSE, 2),
            Self::PauseTx => word(GET_PAUSE, SET_PAUSE, 3),
            Self::RxQueues => word(GET_CHANNELS, SET_CHANNELS, 5),
            Self::CombinedQueues => word(GET_CHANNELS, SET_CHANNELS, 8),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Place of a setting: commands that read and set the block with it, the word, and its bits there.
#[derive(Clone, Copy)]
struct SettingPlace {
    get: u32,
    set: u32,
    word: usize,
    mask: u32,
}

impl SettingPlace {
    /// Value in a block; of a single bit 1.
    fn read(self, block: &Block) -> u32 {
        let value = block[self.word] & self.mask;
        if self.mask == u32::MAX { value } else { u32::from(value != 0) }
    }

    fn write(self, block: &mut Block, value: u32) {
        let bits = if self.mask == u32::MAX || value == 0 { value } else { self.mask };
        block[self.word] = block[self.word] & !self.mask | bits;
    }
}

/// As long as the longest of the blocks, `struct ethtool_coalesce`.
type Block = [u32; 23];

/// Reads settings of `interface`, in the current network namespace.
///
/// # Errors
/// ENODEV if there is no such interface, EOPNOTSUPP for a setting that its driver does not have.
pub fn read_settings(interface: &str, settings: &[Setting]) -> io::Result<Vec<Value>> {
    let socket = EthtoolSocket::open()?;
    let read = |setting: &Setting| {
        let place = setting.place();
        block(&socket, interface, place.get).map(|block| (*setting, place.read(&block)))
    };
    settings.iter().map(read).collect()
}

/// Changes several settings of one block at once, for example coalescing.
///
/// # Errors
/// The errors of [`read_settings`], EPERM without CAP_NET_ADMIN, EINVAL for a value that the driver
/// does not take, or for settings of different blocks.
pub fn set_settings(interface: &str, values: &[Value]) -> io::Result<()> {
    let Some(SettingPlace { get, set, .. }) = values.first().map(|(setting, _)| setting.place()) else {
        return Ok(());
    };
    if values.iter().any(|(setting, _)| setting.place().set != set) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let socket = EthtoolSocket::open()?;
    let mut block = block(&socket, interface, get)?;
    for (setting, value) in values {
        setting.place().write(&mut block, *value);
    }
    block[0] = set;
    socket.ask(interface, &mut block)
}

fn block(socket: &EthtoolSocket, interface: &str, command: u32) -> io::Result<Block> {
    let mut block = Block::default();
    block[0] = command;
    socket.ask(interface, &mut block).map(|()| block)
}

// Commands of linux/ethtool.h.
const SET_COALESCE: u32 = 0x0f;
const SET_PAUSE: u32 = 0x13;
const SET_FLAGS: u32 = 0x26;
const SET_GRO: u32 = 0x2c;
const SET_CHANNELS: u32 = 0x3d;
const SET_EEE: u32 = 0x45;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_set_among_others_and_a_word_as_a_whole() {
        let mut block = Block::default();
        block[1] = 0x8101;
        let lro = Setting::Lro.place();
        assert_eq!(lro.read(&block), 1);
        lro.write(&mut block, 0);
        assert_eq!((block[1], lro.read(&block)), (0x0101, 0));
        lro.write(&mut block, 1);
        assert_eq!(block[1], 0x8101);
        Setting::RxUsecs.place().write(&mut block, 3);
        assert_eq!(Setting::RxUsecs.place().read(&block), 3);
    }

    #[test]
    fn mixed_blocks_and_missing_interfaces_are_refused() {
        let code =
            |values: &[Value], interface: &str| set_settings(interface, values).unwrap_err().raw_os_error();
        assert_eq!(code(&[(Setting::Gro, 0), (Setting::Lro, 0)], "lo"), Some(libc::EINVAL));
        assert_eq!(code(&[(Setting::Gro, 0)], "no-such-nic"), Some(libc::ENODEV));
        assert_eq!(
            read_settings("no-such-nic", &[Setting::Gro]).unwrap_err().raw_os_error(),
            Some(libc::ENODEV)
        );
        set_settings("lo", &[]).unwrap();
    }
}
