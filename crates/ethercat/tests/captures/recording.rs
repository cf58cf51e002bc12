//! Recordings of real devices, and their decoding by tshark.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

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
