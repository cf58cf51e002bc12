//! ethercrab's process-data loop under measurement.

use std::time::Duration;

use crate::bus::{self, Error};
use crate::rounds;

/// Bytes around the data of a frame's first datagram: Ethernet, EtherCAT and datagram header, counter.
const OVERHEAD: usize = 14 + 2 + 12;
/// A whole FPRD datagram of an AL status, of which ethercrab adds one per SubDevice to every frame.
const STATE_CHECK: usize = 12 + 2;

/// Reaches Op, then answers rounds.
///
/// # Errors
/// The error of ethercrab, or a working counter that is not the expected one.
pub fn measure(interface: &str, sub_devices: &str, bytes_each: &str) -> Result<(), Error> {
    let (sub_devices, bytes_each): (usize, usize) = (sub_devices.parse()?, bytes_each.parse()?);
    let frame_length = OVERHEAD + 2 * sub_devices * bytes_each + STATE_CHECK * sub_devices;
    bus::run(interface, async move |main_device| {
        let group = bus::scan(main_device, sub_devices).await?;
        let group = group.into_safe_op(main_device).await?;
        let group = group.request_into_op(main_device).await?;
        while !group.tx_rx(main_device).await?.all_op() {
            async_io::Timer::after(Duration::from_millis(1)).await;
        }
        let expected = 3 * sub_devices as u16;
        rounds::serve_async(frame_length, async |_| {
            let found = group.tx_rx(main_device).await.map_err(|error| error.to_string())?.working_counter;
            if found == expected {
                Ok(())
            } else {
                Err(format!("working counter {found}, expected {expected}"))
            }
        })
        .await
        .map_err(Error::from)
    })
}
