//! Scans the six-axis robot, reads SDOs, reaches Op and exchanges process data, once and again; then drives fall out of Op.

use std::ops::Deref;
use std::time::{Duration, Instant};

use async_io::Timer;
use ethercrab::subdevice_group::Op;
use ethercrab::{DefaultLock, MainDevice, RegisterAddress, SubDeviceGroup, SubDeviceRef, SubDeviceState};
use futures_lite::StreamExt;

use crate::bus::{self, Error, MAX_PROCESS_DATA, MAX_SUB_DEVICES};
use crate::six_axis::{
    Axis, BEHIND, BYTES, CYCLES, CYCLES_AGAIN, CYCLIC_SYNCHRONOUS_POSITION, FALLEN, POWERLESS,
    PRODUCT_CODE, REVISION, SUB_DEVICES, Simulator, VENDOR_ID, expect,
};

type GroupInOp = SubDeviceGroup<MAX_SUB_DEVICES, MAX_PROCESS_DATA, DefaultLock, Op>;

/// All checks of the six-axis robot.
///
/// # Errors
/// The first thing that is not as expected.
pub async fn all(main_device: &'static MainDevice<'static>, simulator: &Simulator) -> Result<(), Error> {
    let group = in_op(main_device).await?;
    exchange(&group, main_device, CYCLES).await?;
    statuswords(&group, main_device).await?;
    to_init(group, main_device).await?;
    println!(
        "ethercrab: {SUB_DEVICES} drives, Op, {CYCLES} cycles, every working counter right, SDO reads agree, Init"
    );
    let group = in_op(main_device).await?;
    exchange(&group, main_device, CYCLES_AGAIN).await?;
    falls_out_of_op(&group, main_device, simulator).await?;
    loses_power(&group, main_device, simulator).await?;
    drop(group);
    // It has no call that addresses and configures one SubDevice anew: the bus comes up again as a whole.
    let group = in_op(main_device).await?;
    exchange(&group, main_device, CYCLES_AGAIN).await?;
    to_init(group, main_device).await?;
    println!(
        "ethercrab: with power again drive-{} is in Op by a new start of the whole bus: no call configures one SubDevice anew",
        POWERLESS + 1
    );
    Ok(())
}

/// From a scan to Op.
async fn in_op(main_device: &'static MainDevice<'static>) -> Result<GroupInOp, Error> {
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
    Ok(group)
}

async fn to_init(group: GroupInOp, main_device: &'static MainDevice<'static>) -> Result<(), Error> {
    let group = group.into_safe_op(main_device).await?.into_pre_op(main_device).await?;
    group.into_init(main_device).await?;
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
    sub_device.register_write(RegisterAddress::SyncManagerWatchdog, PROCESS_DATA_WATCHDOG).await?;
    Ok(())
}

async fn exchange(
    group: &GroupInOp,
    main_device: &'static MainDevice<'static>,
    cycles: usize,
) -> Result<(), Error> {
    let mut axes = axes();
    let mut period = Timer::interval(Duration::from_millis(1));
    for number in 0..cycles {
        let (found, _) = cycle(group, main_device, &mut axes).await?;
        expect(number, "working counter (the position is the cycle)", found, EXPECTED)?;
        period.next().await;
    }
    for (place, axis) in axes.iter().enumerate() {
        axis.check(place, cycles)?;
    }
    Ok(())
}

/// Exchanges process data: the working counter, and who is not in Op, by position.
async fn cycle(
    group: &GroupInOp,
    main_device: &'static MainDevice<'static>,
    axes: &mut [Axis],
) -> Result<(u16, Vec<(usize, SubDeviceState)>), Error> {
    for (axis, sub_device) in axes.iter_mut().zip(group.iter(main_device)) {
        let outputs = axis.outputs(&sub_device.inputs_raw());
        sub_device.outputs_raw_mut().copy_from_slice(&outputs);
    }
    let found = group.tx_rx(main_device).await?;
    let states = found.subdevice_states.iter().copied().enumerate();
    Ok((found.working_counter, states.filter(|(_, state)| *state != SubDeviceState::Op).collect()))
}

async fn statuswords(group: &GroupInOp, main_device: &'static MainDevice<'static>) -> Result<(), Error> {
    for (place, sub_device) in group.iter(main_device).enumerate() {
        group.tx_rx(main_device).await?;
        let by_sdo: u16 = sub_device.sdo_read(0x6041, 0).await?;
        let in_image = u16::from_le_bytes([sub_device.inputs_raw()[0], sub_device.inputs_raw()[1]]);
        // Bit 10, target reached, may change between the two readings.
        expect(place, "statusword by SDO", by_sdo & !0x400, in_image & !0x400)?;
    }
    Ok(())
}

async fn falls_out_of_op(
    group: &GroupInOp,
    main_device: &'static MainDevice<'static>,
    simulator: &Simulator,
) -> Result<(), Error> {
    let fault = simulator.begin(&format!("watchdog expire drive-{}", FALLEN + 1))?;
    let out = [(FALLEN, SubDeviceState::SafeOp)];
    let working_counter = await_states(group, main_device, &out).await?;
    fault.has_taken_place()?;
    let sub_device = group.subdevice(main_device, FALLEN)?;
    let Err(code) = sub_device.status().await else {
        return Err(format!("position {FALLEN}, status: expected an error, found none").into());
    };
    // Its own transitions are those of whole groups, so the register is written.
    sub_device.register_write(RegisterAddress::AlControl, SAFE_OP | ACKNOWLEDGE).await?;
    let mut axes = axes();
    for _ in 0..1000 {
        cycle(group, main_device, &mut axes).await?;
        if sub_device.status().await.is_ok() {
            break;
        }
    }
    sub_device.register_write(RegisterAddress::AlControl, OP).await?;
    await_states(group, main_device, &[]).await?;
    println!(
        "ethercrab: Op again; drive-{} falls out of it: SafeOp, {code}, working counter {working_counter} of {EXPECTED}; \
         acknowledged, and all in Op",
        FALLEN + 1
    );
    Ok(())
}

async fn loses_power(
    group: &GroupInOp,
    main_device: &'static MainDevice<'static>,
    simulator: &Simulator,
) -> Result<(), Error> {
    let fault = simulator.begin(&format!("power off drive-{}", POWERLESS + 1))?;
    let silent = BEHIND.map(|position| (position, SubDeviceState::None));
    let working_counter = await_states(group, main_device, &silent).await?;
    fault.has_taken_place()?;
    println!(
        "ethercrab: drive-{} loses power: positions {BEHIND:?} silent, working counter {working_counter} of {EXPECTED}",
        POWERLESS + 1
    );
    simulator.begin(&format!("power on drive-{}", POWERLESS + 1))?.has_taken_place()
}

/// Exchanges process data until these, and no others, are not in Op: the working counter then.
async fn await_states(
    group: &GroupInOp,
    main_device: &'static MainDevice<'static>,
    wanted: &[(usize, SubDeviceState)],
) -> Result<u16, Error> {
    let (begin, mut axes) = (Instant::now(), axes());
    loop {
        let (working_counter, out_of_op) = cycle(group, main_device, &mut axes).await?;
        if out_of_op == wanted && (working_counter == EXPECTED) == wanted.is_empty() {
            return Ok(working_counter);
        }
        if begin.elapsed() > LONGEST_WAIT {
            return Err(format!(
                "not in Op: expected {wanted:?} within {} s, found {out_of_op:?}, working counter {working_counter}",
                LONGEST_WAIT.as_secs()
            )
            .into());
        }
        Timer::after(Duration::from_millis(1)).await;
    }
}

fn axes() -> [Axis; SUB_DEVICES] {
    std::array::from_fn(|_| Axis::default())
}

/// Working counter of the LRW to all drives: each reads and writes.
const EXPECTED: u16 = 3 * SUB_DEVICES as u16;
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Process data watchdog, 100 us: 2 s. By itself it is 100 ms, for which a busy machine may stand still.
const PROCESS_DATA_WATCHDOG: u16 = 20_000;
/// AL control (0x0120): states, and the acknowledgement of an error.
const SAFE_OP: u16 = 0x04;
const OP: u16 = 0x08;
const ACKNOWLEDGE: u16 = 0x10;
