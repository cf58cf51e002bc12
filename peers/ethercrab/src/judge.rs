//! Scans the six-axis robot, reads SDOs, reaches Op and exchanges process data.

use std::time::Duration;

use async_io::Timer;
use ethercrab::{MainDevice, SubDeviceRef};
use futures_lite::StreamExt;
use std::ops::Deref;

use crate::bus::{self, Error};
use crate::six_axis::{
    Axis, BYTES, CYCLES, CYCLIC_SYNCHRONOUS_POSITION, PRODUCT_CODE, REVISION, SUB_DEVICES, VENDOR_ID,
    expect,
};

/// The whole judgement.
///
/// # Errors
/// The first thing that is not as expected.
pub async fn judge(main_device: &'static MainDevice<'static>) -> Result<(), Error> {
    let group = bus::scan(main_device, SUB_DEVICES).await?;
    for (place, sub_device) in group.iter(main_device).enumerate() {
        identity(place, &sub_device).await?;
    }
    let group = group.into_safe_op(main_device).await?;
    for (place, sub_device) in group.iter(main_device).enumerate() {
        let io = sub_device.io_raw();
        expect(place, "bytes of inputs", io.inputs().len(), BYTES)?;
        expect(place, "bytes of outputs", io.outputs().len(), BYTES)?;
    }
    let group = group.request_into_op(main_device).await?;
    let mut cycles_to_op = 0;
    while !group.tx_rx(main_device).await?.all_op() {
        cycles_to_op += 1;
        expect(0, "Op within 5000 cycles", cycles_to_op < 5000, true)?;
        Timer::after(Duration::from_millis(1)).await;
    }
    let mut axes: [Axis; SUB_DEVICES] = std::array::from_fn(|_| Axis::default());
    let mut period = Timer::interval(Duration::from_millis(1));
    for cycle in 0..CYCLES {
        for (axis, sub_device) in axes.iter_mut().zip(group.iter(main_device)) {
            let outputs = axis.outputs(&sub_device.inputs_raw());
            sub_device.outputs_raw_mut().copy_from_slice(&outputs);
        }
        let found = group.tx_rx(main_device).await?;
        let expected = 3 * SUB_DEVICES as u16;
        expect(cycle, "working counter (the position is the cycle)", found.working_counter, expected)?;
        period.next().await;
    }
    for (place, (axis, sub_device)) in axes.iter().zip(group.iter(main_device)).enumerate() {
        axis.check(place)?;
        group.tx_rx(main_device).await?;
        let by_sdo: u16 = sub_device.sdo_read(0x6041, 0).await?;
        let in_image = u16::from_le_bytes([sub_device.inputs_raw()[0], sub_device.inputs_raw()[1]]);
        // Bit 10, target reached, may change between the two readings.
        expect(place, "statusword by SDO", by_sdo & !0x400, in_image & !0x400)?;
    }
    let group = group.into_safe_op(main_device).await?.into_pre_op(main_device).await?;
    group.into_init(main_device).await?;
    println!(
        "ethercrab: {SUB_DEVICES} drives, Op, {CYCLES} cycles, every working counter right, SDO reads agree"
    );
    Ok(())
}

async fn identity<S>(place: usize, sub_device: &SubDeviceRef<'_, S>) -> Result<(), Error>
where
    S: Deref<Target = ethercrab::SubDevice>,
{
    let in_sii = sub_device.identity();
    expect(place, "vendor in SII", in_sii.vendor_id, VENDOR_ID)?;
    expect(place, "product in SII", in_sii.product_id, PRODUCT_CODE)?;
    expect(place, "revision in SII", in_sii.revision, REVISION)?;
    for (sub_index, expected) in [(1, VENDOR_ID), (2, PRODUCT_CODE), (3, REVISION)] {
        let found: u32 = sub_device.sdo_read(0x1018, sub_index).await?;
        expect(place, &format!("SDO 0x1018:{sub_index}"), found, expected)?;
    }
    let count: u8 = sub_device.sdo_read(0x1018, 0).await?;
    expect(place, "SDO 0x1018:0", count, 4)?;
    sub_device.sdo_write(0x6060, 0, CYCLIC_SYNCHRONOUS_POSITION).await?;
    Ok(())
}
