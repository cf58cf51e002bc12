//! SubDevices of a bus, described for people and other processes.

use std::time::Duration;

use ethercat::main_device::SubDevice;
use ethercat::pdo::Pdo;
use serde::{Deserialize, Serialize};
use types::duration;

/// A SubDevice described for people and other processes.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Described {
    /// Its description as in `onbeat scan --json`.
    #[serde(flatten)]
    pub object: SubDeviceObject,
    /// Its parts, a line each.
    pub details: Vec<String>,
}

/// Descriptions of all SubDevices.
#[must_use]
pub fn described(sub_devices: &[SubDevice]) -> Vec<Described> {
    let described = |it| Described { object: SubDeviceObject::new(it), details: detail_lines(it) };
    sub_devices.iter().map(described).collect()
}

fn detail_lines(it: &SubDevice) -> Vec<String> {
    let mut lines = Vec::new();
    let identity = it.identity;
    lines.push(format!(
        "vendor {:#010x}, product {:#010x}, revision {:#010x}, serial {:#010x}",
        identity.vendor_id, identity.product_code, identity.revision, identity.serial
    ));
    let alias = match it.information.alias {
        0 => "no alias".to_owned(),
        alias => format!("alias {alias:#06x}"),
    };
    lines.push(format!("station address {:#06x}, {alias}", it.station_address));
    lines.push(format!(
        "ESC type {:#04x}: {} FMMUs, {} SyncManagers, {} KiB",
        it.information.controller_type,
        it.information.fmmu_count,
        it.information.sync_manager_count,
        it.information.ram_kib
    ));
    lines.push(match &it.mailbox {
        None => "no mailbox".to_owned(),
        Some(mailbox) => format!(
            "mailbox {} bytes at {:#06x}, {} bytes at {:#06x}{}",
            mailbox.out_length,
            mailbox.out_address,
            mailbox.in_length,
            mailbox.in_address,
            if mailbox.coe { ", CoE" } else { "" }
        ),
    });
    if let Some(clock) = &it.clock {
        lines.push(format!("distributed clock, {} ns behind the reference", clock.delay));
    }
    lines.extend(watchdog_line(it));
    lines.extend(it.mapping_error.as_ref().map(|error| format!("process data unknown: {error}")));
    lines.extend(it.mapping.outputs.iter().flat_map(|pdo| pdo_lines("RxPDO", pdo)));
    lines.extend(it.mapping.inputs.iter().flat_map(|pdo| pdo_lines("TxPDO", pdo)));
    lines
}

/// The watchdogs of a SubDevice with outputs.
fn watchdog_line(it: &SubDevice) -> Option<String> {
    let watchdogs = it.watchdogs.filter(|_| it.mapping.output_bits() > 0)?;
    let time = |time: Option<Duration>| time.map_or_else(|| "off".to_owned(), duration::format);
    let (process_data, pdi) = (time(it.output_watchdog()), time(watchdogs.pdi_time()));
    Some(format!("process data watchdog {process_data}, PDI watchdog {pdi}"))
}

fn pdo_lines(kind: &str, pdo: &Pdo) -> Vec<String> {
    let mut lines = vec![format!("{kind} {:#06x} {}", pdo.index, pdo.name).trim_end().to_owned()];
    for entry in &pdo.entries {
        let line = match entry.index {
            0 => format!("  {:>11} {:>3} bits  padding", "", entry.bit_length),
            index => format!(
                "  {index:#06x}:{:02x}   {:>3} bits  {}",
                entry.sub_index, entry.bit_length, entry.name
            ),
        };
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// A SubDevice in `onbeat scan --json`.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubDeviceObject {
    /// Position on the bus, from 0.
    pub position: u16,
    /// Vendor id, 0x1018:01.
    pub vendor_id: u32,
    /// Product code, 0x1018:02.
    pub product_code: u32,
    /// Revision number, 0x1018:03.
    pub revision: u32,
    /// Serial number, 0x1018:04.
    pub serial: u32,
    /// Configured station alias; 0 for none.
    pub alias: u16,
    /// Name.
    pub name: String,
    /// AL state.
    pub state: String,
    /// SubDevice and port it is connected to; none for the first.
    pub upstream: Option<UpstreamObject>,
    /// Port at which frames enter.
    pub entry_port: u8,
    /// Delay of its clock behind the reference clock, ns; none without a clock.
    #[serde(default)]
    pub delay_ns: Option<u32>,
    /// Times its ports 0 to 3 latched when the bus was brought up, ns, local, wrapping at 32 bits;
    /// none without a clock.
    #[serde(default)]
    pub receive_times_ns: Option<[u32; 4]>,
    /// Defects, a sentence each.
    pub remarks: Vec<String>,
    /// RxPDOs.
    pub outputs: Vec<PdoObject>,
    /// TxPDOs.
    pub inputs: Vec<PdoObject>,
}

/// Place on the cable.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpstreamObject {
    /// Position of the SubDevice.
    pub position: u16,
    /// Its port.
    pub port: u8,
}

/// A PDO.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PdoObject {
    /// Object index.
    pub index: u16,
    /// Name; may be empty.
    pub name: String,
    /// Entries in their order.
    pub entries: Vec<EntryObject>,
}

/// An entry of a PDO.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntryObject {
    /// Object index; 0 for padding.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// Length in bits.
    pub bits: u8,
    /// Name; may be empty.
    pub name: String,
}

impl SubDeviceObject {
    /// Description of `it`.
    #[must_use]
    pub fn new(it: &SubDevice) -> Self {
        Self {
            position: it.position,
            vendor_id: it.identity.vendor_id,
            product_code: it.identity.product_code,
            revision: it.identity.revision,
            serial: it.identity.serial,
            alias: it.information.alias,
            name: it.name.clone(),
            state: it.al_status.to_string(),
            upstream: it.upstream.map(|it| UpstreamObject { position: it.position, port: it.port }),
            entry_port: it.entry_port,
            delay_ns: it.clock.map(|clock| clock.delay),
            receive_times_ns: it.latched().map(|latched| latched.ports),
            remarks: it.remarks(),
            outputs: it.mapping.outputs.iter().map(PdoObject::new).collect(),
            inputs: it.mapping.inputs.iter().map(PdoObject::new).collect(),
        }
    }
}

impl PdoObject {
    fn new(pdo: &Pdo) -> Self {
        let entries = pdo.entries.iter().map(|entry| EntryObject {
            index: entry.index,
            sub_index: entry.sub_index,
            bits: entry.bit_length,
            name: entry.name.clone(),
        });
        Self { index: pdo.index, name: pdo.name.clone(), entries: entries.collect() }
    }
}
