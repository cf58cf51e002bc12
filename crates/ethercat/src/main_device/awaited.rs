//! The action that a SubDevice's bring-up waits for.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::MainDevice;
use super::sub_device::SubDevice;
use super::worker::Worker;

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
