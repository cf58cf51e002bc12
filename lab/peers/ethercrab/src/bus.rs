//! Starting ethercrab: its frame task and its user share one thread.

use std::time::Duration;

use ethercrab::std::{ethercat_now, tx_rx_task};
use ethercrab::{MainDevice, MainDeviceConfig, PduStorage, SubDeviceGroup, Timeouts};
use futures_lite::future;

/// Most SubDevices on the cable; a power of two, as ethercrab asks.
pub const MAX_SUB_DEVICES: usize = 1024;
/// Most bytes of process data.
pub const MAX_PROCESS_DATA: usize = 32_768;

/// All SubDevices, in PreOp.
pub type Group = SubDeviceGroup<MAX_SUB_DEVICES, MAX_PROCESS_DATA>;

/// Reason that it did not work, in one sentence.
pub type Error = Box<dyn std::error::Error>;

static STORAGE: PduStorage<16, { PduStorage::element_size(1486) }> = PduStorage::new();

/// Runs `work` with a MainDevice on `interface`.
///
/// # Errors
/// The error of ethercrab or `work`.
pub fn run<W>(interface: &str, work: W) -> Result<(), Error>
where
    W: AsyncFnOnce(&'static MainDevice<'static>) -> Result<(), Error>,
{
    let (transmit, receive, pdu_loop) = STORAGE.try_split().map_err(|()| "the storage is split already")?;
    let timeouts = Timeouts {
        // A reply that comes after its request was given up ends the frame task, and a busy machine's scheduler can take long:
        // 10 ms for the EEPROM unless told.
        pdu: Duration::from_secs(1),
        eeprom: Duration::from_secs(1),
        state_transition: Duration::from_secs(5),
        mailbox_response: Duration::from_secs(1),
        ..Timeouts::default()
    };
    // The clocks of a simulator agree soon: fewer rounds of static drift compensation than the default.
    let configuration = MainDeviceConfig { dc_static_sync_iterations: 200, ..MainDeviceConfig::default() };
    let main_device = Box::leak(Box::new(MainDevice::new(pdu_loop, timeouts, configuration)));
    let frames = tx_rx_task(interface, transmit, receive)?;
    let frames = async {
        let ended = frames.await.map(drop);
        Err(format!("the frame task ended: {ended:?}").into())
    };
    async_io::block_on(future::or(work(main_device), frames))
}

/// Finds `expected` SubDevices, waiting for the other end to start.
///
/// # Errors
/// Number there are instead, or the error of ethercrab.
pub async fn scan(main_device: &MainDevice<'_>, expected: usize) -> Result<Group, Error> {
    let mut found = main_device.init_single_group(ethercat_now).await;
    for _ in 0..100 {
        if found.as_ref().is_ok_and(|group: &Group| group.len() == expected) {
            break;
        }
        async_io::Timer::after(Duration::from_millis(100)).await;
        found = main_device.init_single_group(ethercat_now).await;
    }
    let group = found?;
    let found = group.len();
    if found == expected {
        Ok(group)
    } else {
        Err(format!("{found} SubDevices, expected {expected}").into())
    }
}
