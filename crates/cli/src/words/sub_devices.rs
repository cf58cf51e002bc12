//! SubDevices as people and programs read them.

use std::fmt::Write as _;
use std::time::Duration;

use ethercat::main_device::SubDevice;
use ethercat::pdo::Pdo;
use robot::duration;
use serde::{Deserialize, Serialize};

use super::tree::tree;

/// A SubDevice, as people find it.
pub(crate) fn place(position: usize, name: &str) -> String {
    format!("SubDevice {position} \"{name}\"")
}

/// A SubDevice described for people, as other processes are told of it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Described {
    #[serde(flatten)]
    pub(crate) object: SubDeviceObject,
    /// What it is made of, a line each.
    details: Vec<String>,
}

/// Descriptions of all SubDevices.
pub(crate) fn described(sub_devices: &[SubDevice]) -> Vec<Described> {
    let described = |it| Described { object: SubDeviceObject::new(it), details: detail_lines(it) };
    sub_devices.iter().map(described).collect()
}

/// The bus as a tree, one SubDevice a line; with `details`, what each one is made of below it.
pub(crate) fn drawing(sub_devices: &[Described], details: bool) -> String {
    let upstream: Vec<_> = sub_devices
        .iter()
        .map(|it| it.object.upstream.as_ref().map(|upstream| (upstream.position, upstream.port)))
        .collect();
    let branches = tree(&upstream);
    let names =
        branches.iter().zip(sub_devices).map(|(branch, it)| width(branch.indent.as_str(), &it.object.name));
    let names = names.max().unwrap_or(0);
    let mut text = String::new();
    for (branch, Described { object: it, details: lines }) in branches.iter().zip(sub_devices) {
        if let Some(above) = &branch.above {
            let _ = writeln!(text, "     {above}");
        }
        let placed = format!("{}{}", branch.indent, it.name);
        let _ = write!(text, "{:>4} {placed:names$}  {:<8}", it.position, it.state);
        let _ = writeln!(
            text,
            "  {:#010x} {:#010x} rev {:#010x}  {:>3}+{} bytes",
            it.vendor_id,
            it.product_code,
            it.revision,
            bytes(&it.outputs),
            bytes(&it.inputs),
        );
        if details {
            let indent = format!("     {}  ", branch.indent);
            for line in lines {
                let _ = writeln!(text, "{indent}{line}");
            }
        }
    }
    for remark in sub_devices.iter().flat_map(|it| &it.object.remarks) {
        let _ = writeln!(text, "{remark}");
    }
    text
}

/// Bytes of the entries of these PDOs.
fn bytes(pdos: &[PdoObject]) -> usize {
    let bits = pdos.iter().flat_map(|pdo| &pdo.entries).map(|entry| usize::from(entry.bits));
    bits.sum::<usize>().div_ceil(8)
}

fn width(indent: &str, name: &str) -> usize {
    indent.chars().count() + name.chars().count()
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

/// A line for each SubDevice whose outputs nothing watches.
pub(crate) fn unwatched(sub_devices: &[SubDevice]) -> Vec<String> {
    let line = |it: &SubDevice| {
        format!(
            "SubDevice {} \"{}\" has no process data watchdog: its outputs stay as they are when this machine or the \
             cable fails; set process_data_watchdog",
            it.position, it.name
        )
    };
    sub_devices.iter().filter(|it| it.has_unwatched_outputs()).map(line).collect()
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

/// A SubDevice in `scan --json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct SubDeviceObject {
    pub(crate) position: u16,
    vendor_id: u32,
    product_code: u32,
    revision: u32,
    serial: u32,
    alias: u16,
    pub(crate) name: String,
    pub(crate) state: String,
    upstream: Option<UpstreamObject>,
    entry_port: u8,
    /// What is not well with it, a sentence each.
    remarks: Vec<String>,
    outputs: Vec<PdoObject>,
    inputs: Vec<PdoObject>,
}

#[derive(Serialize, Deserialize)]
struct UpstreamObject {
    position: u16,
    port: u8,
}

#[derive(Serialize, Deserialize)]
struct PdoObject {
    index: u16,
    name: String,
    entries: Vec<EntryObject>,
}

#[derive(Serialize, Deserialize)]
struct EntryObject {
    index: u16,
    sub_index: u8,
    bits: u8,
    name: String,
}

impl SubDeviceObject {
    fn new(it: &SubDevice) -> Self {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use ethercat::main_device::{Configuration, MainDevice};
    use ethercat::sii::Identity;
    use runtime::bring_up::Pump;
    use runtime::clock::VirtualClock;
    use runtime::link::DirectLink;
    use simulator::application::GenericDevice;
    use simulator::application::sii::digital_outputs;
    use simulator::segment::Attachment;
    use simulator::{Segment, SubDevice as Simulated};

    use super::*;

    /// Three terminals: the second is plugged in the wrong way round, the third was never programmed.
    fn found() -> MainDevice {
        let identity = Identity { vendor_id: 2, product_code: 3, revision: 4, serial: 5 };
        let image = digital_outputs(identity, "lamps", 4).image();
        let terminal = |sii: &[u8]| {
            let application = GenericDevice::from_sii(&image).expect("a mapping that fits");
            Simulated::from_sii(sii, Box::new(application))
        };
        let devices = vec![terminal(&image.emit()), terminal(&image.emit()), terminal(&[0xFF; 2048])];
        let attachments = [Attachment::new(0, 1).entered_at(1), Attachment::new(1, 0)];
        let segment = Segment::with_topology(devices, &attachments).expect("a line");
        let clock = VirtualClock::default();
        let mut link = DirectLink::new(segment, clock.clone(), Duration::from_micros(20));
        let mut main_device = MainDevice::new(Configuration::default()).expect("a configuration");
        let stop = AtomicBool::new(false);
        Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
            .bring_up(Duration::from_secs(10), |_| ())
            .expect("the others come up");
        main_device
    }

    #[test]
    fn what_is_not_well_is_told_beside_what_is() {
        let main_device = found();
        let text = drawing(&described(main_device.sub_devices()), false);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("   0 lamps ") && lines[0].contains("  PreOp "), "{text}");
        assert!(lines[2].starts_with("   2 SubDevice 2  Init "), "{text}");
        let swapped =
            "SubDevice 1 \"lamps\": frames enter at port 1, not at port 0: its IN and OUT are swapped";
        assert_eq!(lines[3], swapped);
        assert!(
            lines[4].starts_with("SubDevice 2 \"SubDevice 2\": SII checksum 0xff at byte 14"),
            "{text}"
        );
        let objects: Vec<_> = main_device.sub_devices().iter().map(SubDeviceObject::new).collect();
        let json = serde_json::to_value(&objects).expect("JSON");
        let remarks = |position: usize| json[position]["remarks"].as_array().map(Vec::len);
        assert_eq!([remarks(0), remarks(1), remarks(2)], [Some(0), Some(1), Some(1)]);
        assert_eq!((&json[1]["entry_port"], &json[1]["remarks"][0]), (&1.into(), &swapped.into()));
        assert_eq!(json[2]["upstream"]["port"], 0);
    }
}
