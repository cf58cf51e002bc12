//! Real terminals that many buses have: identity, ESC configuration, SyncManagers and PDOs, from
//! their SII images and public descriptions.
//!
//! Simplifications: only the PDOs assigned by default; an EL5101 starts with its assignment of 32
//! bits. Names are the English ones, without order numbers of cables.

use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, PdoMapping};
use ethercat::register::SyncManager;
use ethercat::sii::{
    Builder, CoeDetails, DistributedClock, FmmuUse, Identity, Image, Mailbox, MailboxProtocols,
    SiiSyncManager, SyncManagerUse,
};
use types::TerminalModel;

use super::sii::{ASSIGN_ACTIVATE_SYNC0, digital_pdo};
use super::{analogue, analogue_output, encoder, oversampling, serial, time_stamp};

/// Vendor of all of them.
const BECKHOFF: u32 = 0x0000_0002;

/// E-bus at ports 0 and 1.
const TWO_EBUS_PORTS: u16 = 0x0033;

/// PDI control and ESC configuration of a terminal without a microcontroller: digital I/O, device
/// emulation.
const DIGITAL_IO: u16 = 0x0104;

/// The same of one with a microcontroller: SPI, SYNC0 by the MainDevice.
const SPI: u16 = 0x0C05;

/// Outputs of digital I/O: registers that their SyncManager covers.
const DIGITAL_OUTPUTS: u16 = 0x0F00;

/// Buffered outputs of digital I/O with watchdog: no events for a microcontroller.
const CONTROL_DIGITAL_OUTPUTS: u8 = 0x44;

/// DC activation of an oversampling terminal: cyclic operation, SYNC0 and SYNC1 (0x0980; as its
/// public configurations have it).
const ASSIGN_ACTIVATE_SYNC1: u16 = 0x0730;

const MAILBOX: u16 = 0x1000;
const MAILBOX_SIZE: u16 = 128;
const OUTPUTS: u16 = MAILBOX + 2 * MAILBOX_SIZE;

/// Flags of a SyncManager in the SII: enabled, length fixed by the hardware, virtual (not one of
/// the ESC's).
const ENABLE: u8 = 1 << 0;
const FIXED_LENGTH: u8 = 1 << 3;
const VIRTUAL: u8 = 1 << 2;

/// Order number.
#[must_use]
pub fn name(model: TerminalModel) -> String {
    model.name().to_uppercase()
}

/// Identity: the product code holds the number of the model.
#[must_use]
pub const fn identity(model: TerminalModel) -> Identity {
    let (product_code, revision) = match model {
        TerminalModel::El1008 => (0x03F0_3052, 0x0012_0000),
        TerminalModel::El1252 => (0x04E4_3052, 0x0012_0000),
        TerminalModel::El2004 => (0x07D4_3052, 0x0012_0000),
        TerminalModel::El3104 => (0x0C20_3052, 0x0014_0000),
        TerminalModel::El3702 => (0x0E76_3052, 0x0003_0000),
        TerminalModel::El4034 => (0x0FC2_3052, 0x0012_0000),
        TerminalModel::El4732 => (0x127C_3052, 0x0002_0000),
        TerminalModel::El5101 => (0x13ED_3052, 0x0400_0000),
        TerminalModel::El6022 => (0x1786_3052, 0x0014_0000),
    };
    Identity { vendor_id: BECKHOFF, product_code, revision, serial: 0 }
}

/// PDOs, each at its SyncManager.
#[must_use]
pub fn mapping(model: TerminalModel) -> PdoMapping {
    let inputs = |inputs| PdoMapping { outputs: Vec::new(), inputs };
    match model {
        TerminalModel::El1008 => {
            inputs((0..8).map(|it| digital_pdo(MAPPING_INPUTS, 0x6000, it, "Input")).collect())
        }
        TerminalModel::El1252 => time_stamp::mapping(),
        TerminalModel::El2004 => PdoMapping {
            outputs: (0..4).map(|it| digital_pdo(MAPPING_OUTPUTS, 0x7000, it, "Output")).collect(),
            inputs: Vec::new(),
        },
        TerminalModel::El3104 => analogue::el3104_mapping(),
        TerminalModel::El3702 => oversampling::el3702_mapping(),
        TerminalModel::El4034 => analogue_output::mapping(4),
        TerminalModel::El4732 => oversampling::el4732_mapping(),
        TerminalModel::El5101 => encoder::el5101_mapping(),
        TerminalModel::El6022 => serial::mapping(),
    }
}

/// Image, with checksum.
#[must_use]
pub fn image(model: TerminalModel, alias: u16) -> Image {
    let builder = Builder::new(identity(model), &name(model)).alias(alias).physical_ports(TWO_EBUS_PORTS);
    let builder = match model {
        TerminalModel::El1008 => builder
            .pdi(DIGITAL_IO, 0, 0, 0)
            .fmmu(FmmuUse::Inputs)
            .sync_manager(sync_manager(MAILBOX, 1, 0x00, ENABLE, SyncManagerUse::Inputs)),
        TerminalModel::El1252 => builder
            .pdi(DIGITAL_IO, 0, 0, 0)
            .fmmu(FmmuUse::Inputs)
            .fmmu(FmmuUse::Inputs)
            .sync_manager(sync_manager(MAILBOX, 1, 0x00, ENABLE, SyncManagerUse::Inputs))
            .sync_manager(sync_manager(time_stamp::STAMPS, 0, 0x00, VIRTUAL, SyncManagerUse::Inputs))
            .distributed_clock("Latch", DistributedClock::default()),
        TerminalModel::El2004 => {
            builder.pdi(DIGITAL_IO, 0, 0, 0x000F).fmmu(FmmuUse::Outputs).sync_manager(sync_manager(
                DIGITAL_OUTPUTS,
                0,
                CONTROL_DIGITAL_OUTPUTS,
                ENABLE | FIXED_LENGTH,
                SyncManagerUse::Outputs,
            ))
        }
        TerminalModel::El3104 => with_mailbox(builder, 0, 16, 0x1180),
        TerminalModel::El3702 => with_samples(builder, SyncManager::CONTROL_INPUTS, SyncManagerUse::Inputs),
        TerminalModel::El4034 => with_mailbox(builder, 8, 0, 0x1180),
        TerminalModel::El4732 => {
            with_samples(builder, SyncManager::CONTROL_OUTPUTS, SyncManagerUse::Outputs)
        }
        TerminalModel::El5101 => with_mailbox(builder, 6, 10, 0x1180),
        TerminalModel::El6022 => with_mailbox(builder, 48, 48, 0x1220),
    };
    let mapping = mapping(model);
    let builder = mapping.inputs.iter().fold(builder, Builder::input);
    let builder = mapping.outputs.iter().fold(builder, Builder::output);
    let samples: &[u16] = match model {
        TerminalModel::El3702 => &oversampling::INPUT_SAMPLES,
        TerminalModel::El4732 => &oversampling::OUTPUT_SAMPLES,
        _ => &[],
    };
    samples.iter().fold(builder, |builder, pdo| builder.sample(*pdo)).build()
}

/// A terminal with a block of samples for each of two channels, and the time of the next ones in
/// the ESC's registers; without a mailbox.
fn with_samples(builder: Builder, control: u8, usage: SyncManagerUse) -> Builder {
    let fmmu = if usage == SyncManagerUse::Outputs { FmmuUse::Outputs } else { FmmuUse::Inputs };
    let blocks = oversampling::BLOCKS.map(|address| sync_manager(address, 4, control, ENABLE, usage));
    let mode = DistributedClock {
        assign_activate: ASSIGN_ACTIVATE_SYNC1,
        sync0_cycle_factor: 1,
        sync1_cycle_factor: 1,
        ..DistributedClock::default()
    };
    blocks
        .into_iter()
        .fold(builder.pdi(SPI, 0, 0, 0), |builder, block| builder.fmmu(fmmu).sync_manager(block))
        .fmmu(FmmuUse::Inputs)
        .sync_manager(sync_manager(oversampling::NEXT_BLOCK, 4, 0x00, VIRTUAL, SyncManagerUse::Inputs))
        .distributed_clock("DcSync", mode)
}

/// A terminal with a microcontroller and CoE: mailboxes, and SyncManagers 2 and 3 with these
/// numbers of bytes.
fn with_mailbox(builder: Builder, outputs: u16, inputs: u16, at: u16) -> Builder {
    let mailbox = Mailbox {
        receive_offset: MAILBOX,
        receive_size: MAILBOX_SIZE,
        send_offset: MAILBOX + MAILBOX_SIZE,
        send_size: MAILBOX_SIZE,
    };
    let enable = |bytes| if bytes > 0 { ENABLE } else { 0 };
    let usage = |address, length, control, usage| sync_manager(address, length, control, ENABLE, usage);
    let mode = DistributedClock {
        assign_activate: ASSIGN_ACTIVATE_SYNC0,
        sync0_cycle_factor: 1,
        ..DistributedClock::default()
    };
    builder
        .pdi(SPI, 0, 0, 0)
        .mailbox(mailbox, MailboxProtocols::COE)
        .coe_details(CoeDetails::SDO.with(CoeDetails::SDO_INFORMATION).with(CoeDetails::COMPLETE_ACCESS))
        .fmmu(FmmuUse::Outputs)
        .fmmu(FmmuUse::Inputs)
        .fmmu(FmmuUse::MailboxStatus)
        .sync_manager(usage(
            MAILBOX,
            MAILBOX_SIZE,
            SyncManager::CONTROL_MAILBOX_OUT,
            SyncManagerUse::MailboxOut,
        ))
        .sync_manager(usage(
            MAILBOX + MAILBOX_SIZE,
            MAILBOX_SIZE,
            SyncManager::CONTROL_MAILBOX_IN,
            SyncManagerUse::MailboxIn,
        ))
        .sync_manager(sync_manager(
            OUTPUTS,
            outputs,
            SyncManager::CONTROL_OUTPUTS,
            enable(outputs),
            SyncManagerUse::Outputs,
        ))
        .sync_manager(sync_manager(
            at,
            inputs,
            SyncManager::CONTROL_INPUTS,
            enable(inputs),
            SyncManagerUse::Inputs,
        ))
        .distributed_clock("DC-Synchron", mode)
}

fn sync_manager(
    physical_address: u16,
    length: u16,
    control: u8,
    enable: u8,
    usage: SyncManagerUse,
) -> SiiSyncManager {
    SiiSyncManager { physical_address, length, control, status: 0, enable, usage }
}
