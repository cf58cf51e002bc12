//! SubDevices as people and programs read them.

use onbeat::sub_devices::{Described, PdoObject};
use std::fmt::Write as _;

use super::tree::tree;

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
    for (branch, Described { object: it, details: lines, .. }) in branches.iter().zip(sub_devices) {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use ethercat::main_device::{Configuration, MainDevice};
    use ethercat::sii::Identity;
    use ethercat_linux::bring_up::Pump;
    use ethercat_linux::link::DirectLink;
    use rt::clock::VirtualClock;
    use simulator::application::GenericDevice;
    use simulator::application::sii::digital_outputs;
    use simulator::segment::Attachment;
    use simulator::{Segment, SubDevice as Simulated};

    use onbeat::sub_devices::{SubDeviceObject, described};

    use super::*;

    /// Three terminals: the second is plugged in the wrong way round, the third was never
    /// programmed.
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
    fn faults_are_listed_next_to_healthy_parts() {
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
