//! The action that a SubDevice's bring-up waits for. It owns no memory: the cycle may report it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::al::AlState;

use super::MainDevice;
use super::sub_device::SubDevice;
use super::worker::Worker;

/// Action that is waited for, and the register it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The action.
    pub what: AwaitedAction,
    /// The register.
    pub register: u16,
}

/// Action that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AwaitedAction {
    /// Its station address is written.
    StationAddress,
    /// A register is read or written.
    Answer,
    /// Its SII is read.
    Eeprom,
    /// SYNC0 is started.
    Sync0,
    /// Its clock is set.
    Clock,
    /// It changes to this state.
    State(AlState),
    /// An object is written, or read and compared: index and sub-index.
    Sdo(u16, u8),
    /// Its PDO mapping is read by SDO.
    Mapping,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            AwaitedAction::StationAddress => f.write_str("its station address"),
            AwaitedAction::Answer => f.write_str("an answer"),
            AwaitedAction::Eeprom => f.write_str("its EEPROM"),
            AwaitedAction::Sync0 => f.write_str("the start of SYNC0"),
            AwaitedAction::Clock => f.write_str("its clock"),
            AwaitedAction::State(state) => write!(f, "state {state}"),
            AwaitedAction::Sdo(index, sub_index) => write!(f, "SDO {index:#06x}:{sub_index:02x}"),
            AwaitedAction::Mapping => f.write_str("its PDO mapping by SDO"),
        }?;
        write!(f, ", register {:#06x}", self.register)
    }
}

impl MainDevice {
    /// Steps the bring-up waits for, each a clause that names the SubDevice and the register or
    /// action; empty while nothing is under way.
    #[must_use]
    pub fn awaited(&self) -> Vec<String> {
        let named = |(sub_device, worker): (&SubDevice, &Worker)| {
            let awaited = worker.awaited()?;
            Some(format!("SubDevice {} \"{}\": {awaited}", sub_device.position, sub_device.name))
        };
        let all =
            self.broadcasts.awaited().map(|register| format!("all SubDevices: register {register:#06x}"));
        all.into_iter().chain(self.sub_devices.iter().zip(self.workers.iter()).filter_map(named)).collect()
    }
}
