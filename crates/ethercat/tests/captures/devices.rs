//! Statements of real devices about themselves: identity, PDO mapping, objects.

use std::collections::BTreeMap;
use std::path::Path;

use onbeat_ethercat::pdo::{ASSIGNMENT_INPUTS, ASSIGNMENT_OUTPUTS, Pdo, PdoEntry, PdoMapping};
use onbeat_ethercat::register::{self, SyncManager, sii_interface};
use onbeat_ethercat::sii::Image;
use onbeat_ethercat::wire::{Command, Frame, read_u16, read_u32};

use crate::mailbox::{Transfer, transfers};
use crate::recording::Recording;

/// A SubDevice by station address, or by auto-increment position before it has one.
type Device = u16;

/// Every read of an SII: device, word address, bytes.
fn sii_reads(recording: &Recording) -> Vec<(Device, u32, Vec<u8>)> {
    let mut asked = BTreeMap::new();
    let mut reads = Vec::new();
    for frame in recording.frames.iter().filter_map(|bytes| Frame::parse(bytes).ok()) {
        if !frame.source().is_processed() {
            continue;
        }
        for datagram in frame.datagrams().filter(|datagram| datagram.working_counter == 1) {
            let device = datagram.header.adp();
            match (datagram.header.command, datagram.header.ado()) {
                (Command::Fpwr | Command::Apwr, sii_interface::CONTROL) => {
                    let control = read_u16(datagram.data, 0).unwrap();
                    if control & sii_interface::COMMAND_READ != 0 {
                        asked.extend(read_u32(datagram.data, 2).map(|word| (device, word)));
                    }
                }
                (Command::Fprd | Command::Aprd, sii_interface::DATA) => {
                    reads.extend(asked.remove(&device).map(|word| (device, word, datagram.data.to_vec())));
                }
                _ => {}
            }
        }
    }
    reads
}

/// The double words of `device`'s SII that the recording shows.
fn sii_double_word(reads: &[(Device, u32, Vec<u8>)], device: Device, word: u32) -> Option<u32> {
    reads.iter().filter(|(of, ..)| *of == device).find_map(|(_, start, bytes)| {
        let offset = word.checked_sub(*start)? as usize * 2;
        read_u32(bytes, offset)
    })
}

/// The bytes SyncManager `number` of `device` was last set to.
fn sync_manager_length(recording: &Recording, device: Device, number: u8) -> u16 {
    let frames = recording.frames.iter().filter_map(|bytes| Frame::parse(bytes).ok());
    let mut written = frames.flat_map(|frame| frame.datagrams().collect::<Vec<_>>()).filter(|datagram| {
        let header = datagram.header;
        (header.command, header.adp(), header.ado())
            == (Command::Fpwr, device, register::SYNC_MANAGER + u16::from(number) * 8)
    });
    SyncManager::parse(written.next_back().unwrap().data).unwrap().length
}

/// The PDO mapping of `device` as its objects were uploaded, sub-index by sub-index or completely.
fn mapping(transfers: &[Transfer], device: Device) -> PdoMapping {
    let objects: BTreeMap<_, _> = transfers
        .iter()
        .filter(|it| it.station == device && !it.download)
        .map(|it| ((it.index, it.sub_index, it.complete_access), it.result.as_ref().unwrap().as_slice()))
        .collect();
    let elements = |index: u16, length: usize| -> Vec<Vec<u8>> {
        if let Some(all) = objects.get(&(index, 0, true)) {
            // Sub-index 0 is filled up to 16 bits.
            return all[2..].chunks(length).take(usize::from(all[0])).map(<[u8]>::to_vec).collect();
        }
        let count = objects.get(&(index, 0, false)).map_or(0, |bytes| bytes[0]);
        (1..=count).map(|sub_index| objects[&(index, sub_index, false)].to_vec()).collect()
    };
    let assigned = |assignment| {
        let pdos = elements(assignment, 2).into_iter().map(|bytes| read_u16(&bytes, 0).unwrap());
        pdos.map(|index| Pdo {
            index,
            sync_manager: None,
            fixed: false,
            name: String::new(),
            entries: elements(index, 4)
                .iter()
                .map(|bytes| PdoEntry::from_mapping_value(read_u32(bytes, 0).unwrap()))
                .collect(),
        })
        .collect()
    };
    PdoMapping { outputs: assigned(ASSIGNMENT_OUTPUTS), inputs: assigned(ASSIGNMENT_INPUTS) }
}

#[test]
fn the_akd_servo_is_identified_from_its_sii_reads() {
    // SOEM reads by station address, TwinCAT by position, which the drive has counted up to 1.
    for (name, device) in [("soem-sdinfo-akd", 0x1001), ("twincat-akd-nc-mode", 0x0001)] {
        let Some(recording) = Recording::open(name) else { return };
        let reads = sii_reads(&recording);
        assert_eq!(sii_double_word(&reads, device, 0x08), Some(0x0000_006A), "{name}: Kollmorgen");
        assert_eq!(sii_double_word(&reads, device, 0x0A), Some(0x0041_4B44), "{name}: AKD");
    }
}

// feature(protocol): an AKD servo read out of captures
#[test]
fn the_akd_servos_pdo_mapping_reads_out_of_its_objects() {
    let Some(recording) = Recording::open("soem-sdinfo-akd") else { return };
    let mapping = mapping(&transfers(&recording), 0x1001);
    let objects = |pdos: &[Pdo]| -> Vec<(u16, Vec<u16>)> {
        pdos.iter().map(|pdo| (pdo.index, pdo.entries.iter().map(|entry| entry.index).collect())).collect()
    };
    let outputs = [
        (0x1600, vec![0x6040]),
        (0x1601, vec![0x6040, 0x6060]),
        (0x1602, vec![0x6040, 0x607A]),
        (0x1603, vec![0x6040, 0x60FF]),
    ];
    let inputs = [
        (0x1A00, vec![0x6041]),
        (0x1A01, vec![0x6041, 0x6061]),
        (0x1A02, vec![0x6041, 0x6064]),
        (0x1A03, vec![0x6041, 0x606C]),
    ];
    assert_eq!(objects(&mapping.outputs), outputs);
    assert_eq!(objects(&mapping.inputs), inputs);
    assert_eq!(mapping.output(0x607A, 0).unwrap().bit_offset, 16 + 24 + 16);
}

#[test]
fn uploaded_mappings_match_the_sync_manager_lengths() {
    let devices = [
        ("soem-sdinfo-akd", 0x1001),
        ("soem-dual-lan9252", 0x1001),
        ("soem-dual-lan9252", 0x1002),
        ("replay-ek1914-no-complete-access", 0x1000),
        ("replay-ek1914-no-complete-access", 0x1001),
    ];
    for (name, device) in devices {
        let Some(recording) = Recording::open(name) else { return };
        let mapping = mapping(&transfers(&recording), device);
        let bytes = |bits: usize| bits.div_ceil(8) as u16;
        let lengths = (bytes(mapping.output_bits()), bytes(mapping.input_bits()));
        let set = (sync_manager_length(&recording, device, 2), sync_manager_length(&recording, device, 3));
        assert_eq!(lengths, set, "{name}, station {device:#06x}");
        assert!(lengths.1 > 0, "{name}: no inputs");
    }
}

#[test]
fn transfers_longer_than_four_bytes_and_downloads_read_out() {
    let Some(recording) = Recording::open("replay-ek1914-segmented-upload") else { return };
    let uploads = transfers(&recording);
    assert_eq!(uploads.len(), 1);
    assert_eq!((uploads[0].index, uploads[0].result.as_deref()), (0x1008, Ok(&b"EK1914"[..])));

    let Some(recording) = Recording::open("replay-ek1914-el3004-mailbox") else { return };
    let version_and_code_word = transfers(&recording);
    let told: Vec<_> = version_and_code_word
        .iter()
        .map(|it| (it.index, it.download, it.result.as_deref().unwrap()))
        .collect();
    let code_word = [1, 0, 0, 0];
    let expected: [(u16, bool, &[u8]); 3] =
        [(0x100A, false, b"08"), (0xF008, true, &code_word), (0xF008, false, &code_word)];
    assert_eq!(told, expected);
}

#[test]
fn recorded_sii_reads_match_the_images() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/sii");
    let devices = [
        ("replay-dc", 0x1000, "ek1100"),
        ("replay-ek1100-el2828-el2889", 0x1000, "ek1100"),
        ("replay-ek1100-el2828-el2889", 0x1001, "el2828"),
        ("replay-ek1100-el2828-el2889", 0x1002, "el2889"),
        ("soem-sdinfo-ek1100-el1004", 0x1001, "ek1100"),
        ("soem-sdinfo-akd", 0x1001, "akd"),
    ];
    for (name, device, image) in devices {
        let Some(recording) = Recording::open(name) else { return };
        let Ok(bytes) = std::fs::read(folder.join(format!("{image}.bin"))) else {
            println!("skipped: {image}.bin is not in {}", folder.display());
            continue;
        };
        let identity = Image::parse(&bytes).unwrap().header.identity();
        let reads = sii_reads(&recording);
        assert_eq!(sii_double_word(&reads, device, 0x08), Some(identity.vendor_id), "{name} {image}");
        assert_eq!(sii_double_word(&reads, device, 0x0A), Some(identity.product_code), "{name} {image}");
        assert_eq!(sii_double_word(&reads, device, 0x0C), Some(identity.revision), "{name} {image}");
        for (of, word, read) in reads.iter().filter(|(of, ..)| *of == device) {
            let start = *word as usize * 2;
            let stored = &bytes[start..start + read.len()];
            assert_eq!(stored, read, "{name} station {of:#06x} word {word:#06x} against {image}.bin");
        }
    }
}
