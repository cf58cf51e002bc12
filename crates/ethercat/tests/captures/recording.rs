//! Recordings of real devices, and their decoding by tshark.
//!
//! Frames and datagrams of real devices.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use onbeat_ethercat::link::MAXIMUM_FRAME_LENGTH;
use onbeat_ethercat::wire::{Frame, FrameError};
use pcap_file::pcapng::{Block, PcapNgReader};

/// One recording.
pub(crate) struct Recording {
    pub(crate) path: PathBuf,
    /// Ethernet frames in the order they were captured.
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Recording {
    pub(crate) fn name(&self) -> String {
        self.path.file_stem().unwrap().to_string_lossy().into_owned()
    }

    /// The recording called `name`, or `None` with the reason printed.
    pub(crate) fn open(name: &str) -> Option<Self> {
        let path = folder()?.join(format!("{name}.pcapng"));
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
            return None;
        }
        Some(Self::read(path))
    }

    /// Every recording, or none with the reason printed.
    pub(crate) fn all() -> Vec<Self> {
        let Some(folder) = folder() else { return Vec::new() };
        let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcapng"));
        paths.sort();
        assert!(!paths.is_empty(), "{} holds no .pcapng", folder.display());
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Self {
        let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
        let mut frames = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => frames.push(packet.data.into_owned()),
                Block::SimplePacket(packet) => frames.push(packet.data.into_owned()),
                _ => {}
            }
        }
        Self { path, frames }
    }

    /// Output of tshark: for each frame that passes `filter`, the values of each of `fields`,
    /// comma-separated if there are several. `None`, with the reason printed, if tshark is not
    /// installed.
    pub(crate) fn tshark(&self, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&self.path).args(["-Y", filter, "-T", "fields", "-E", "occurrence=a"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => {
                println!("skipped: tshark cannot be run ({error}); install it to compare");
                return None;
            }
        };
        assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }
}

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/captures");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: {} with recordings of real devices is not there", folder.display());
    None
}

// feature(protocol): Ethernet and EtherCAT frames, every datagram command, byte for byte as real devices sent them
#[test]
fn every_recorded_frame_re_emits_byte_for_byte() {
    for recording in Recording::all() {
        let mut ethercat = 0;
        for (number, bytes) in recording.frames.iter().enumerate() {
            let place = format!("{} frame {}", recording.name(), number + 1);
            let frame = match Frame::parse(bytes) {
                Err(FrameError::NotEtherCat { .. }) => continue,
                frame => frame.unwrap_or_else(|error| panic!("{place}: {error}")),
            };
            let mut buffer = [0xEE; MAXIMUM_FRAME_LENGTH];
            let length = frame.emit(&mut buffer).unwrap_or_else(|| panic!("{place} does not fit"));
            assert!(buffer[..length] == bytes[..], "{place}:\n{:02x?}\n{:02x?}", &buffer[..length], bytes);
            ethercat += 1;
        }
        assert!(ethercat > 0, "{} holds no EtherCAT frame", recording.name());
    }
}

// feature(protocol): the same frames and datagrams as tshark sees
#[test]
fn frames_and_datagrams_are_the_ones_tshark_sees() {
    let fields = ["ecat.cmd", "ecat.idx", "ecat.adp", "ecat.ado", "ecat.lad", "ecat.cnt"];
    for recording in Recording::all() {
        let Some(theirs) = recording.tshark("ecat", &fields) else { return };
        let ours: Vec<_> = recording.frames.iter().filter_map(|bytes| Frame::parse(bytes).ok()).collect();
        assert_eq!(ours.len(), theirs.len(), "{}: frames", recording.name());
        for (number, (frame, their_fields)) in ours.iter().zip(&theirs).enumerate() {
            let place = format!("{}, EtherCAT frame {}", recording.name(), number + 1);
            assert_eq!(&described(frame)[..], their_fields, "{place}");
        }
    }
}

/// The fields of all datagrams as tshark prints them.
fn described(frame: &Frame<'_>) -> [String; 6] {
    let mut fields: [Vec<String>; 6] = Default::default();
    for datagram in frame.datagrams() {
        let header = datagram.header;
        fields[0].push(format!("0x{:02x}", header.command.number()));
        fields[1].push(format!("0x{:02x}", header.index));
        if header.command.is_logical() {
            fields[4].push(format!("0x{:08x}", header.address));
        } else {
            fields[2].push(format!("0x{:04x}", header.adp()));
            fields[3].push(format!("0x{:04x}", header.ado()));
        }
        fields[5].push(datagram.working_counter.to_string());
    }
    fields.map(|values| values.join(","))
}
