//! `onbeat sii`: the SII (EEPROM contents) of a SubDevice.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ethercat::sii::{Header, Image, crc8};
use onbeat::compose::sii_files::{image_file, is_xml};

use super::sdo::Place;
use crate::failure::Failure;
use crate::output;

#[derive(Subcommand, Debug)]
pub(crate) enum Sii {
    /// Read all of it into a file: an image for `simulate`, `onbeat new --sii` and `onbeat sii
    /// write`
    Read(Read),
    /// Compare it with an image, and with --force write the words that differ; the SubDevice keeps
    /// its station alias
    Write(Write),
}

#[derive(Args, Debug)]
pub(crate) struct Read {
    #[command(flatten)]
    place: Place,

    /// The new file
    #[arg(value_name = "IMAGE.bin")]
    file: PathBuf,

    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Write {
    #[command(flatten)]
    place: Place,

    /// The image
    #[arg(value_name = "IMAGE.bin")]
    file: PathBuf,

    /// Write it. A wrong image makes a device useless until a right one is written
    #[arg(long)]
    force: bool,
}

impl Sii {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Read(it) => it.execute(),
            Self::Write(it) => it.execute(),
        }
    }
}

impl Read {
    fn execute(self) -> Result<(), Failure> {
        if !self.force && self.file.exists() {
            let file = self.file.display();
            return Err(Failure::new(format!(
                "{file}: the file exists, expected none; --force replaces it"
            )));
        }
        let image = self.place.with("sii", |bus, position| bus.eeprom(position)?.image())?;
        let contents = described(&image);
        // What cannot be understood is kept all the same: that is what one wants to look at.
        let written = fs::File::create(&self.file).and_then(|mut file| file.write_all(&image));
        written.map_err(|error| Failure::new(format!("{}: {error}", self.file.display())))?;
        output::print(format!("{} bytes in {}: {contents}\n", image.len(), self.file.display()))
    }
}

impl Write {
    fn execute(self) -> Result<(), Failure> {
        let image = read(&self.file)?;
        self.place.with("sii", |bus, position| {
            let mut eeprom = bus.eeprom(position)?;
            let found = eeprom.image()?;
            let wanted = with_alias_of(&image, &found);
            if wanted.len() > found.len() {
                return Err(Failure::new(format!(
                    "{}: {} bytes, expected at most {}, the size of the SubDevice's EEPROM",
                    self.file.display(),
                    wanted.len(),
                    found.len()
                )));
            }
            let words = wanted.chunks_exact(2).zip(found.chunks_exact(2)).enumerate();
            let differing: Vec<usize> =
                words.filter(|(_, (wanted, found))| wanted != found).map(|(word, _)| word).collect();
            let changes = format!(
                "{} -> {}, {} of {} words",
                described(&found),
                described(&wanted),
                differing.len(),
                wanted.len() / 2
            );
            if differing.is_empty() {
                return output::print(format!("nothing to write: {}\n", described(&found)));
            }
            if !self.force {
                return Err(Failure::new(format!(
                    "nothing was written: {changes} would be; --force writes them"
                )));
            }
            for &word in &differing {
                eeprom.write(word, [wanted[2 * word], wanted[2 * word + 1]])?;
            }
            let now = eeprom.image()?;
            match wanted.iter().zip(&now).position(|(wanted, now)| wanted != now) {
                None => output::print(format!(
                    "{changes} written and read back; the SubDevice uses them after its next power \
                     cycle\n"
                )),
                Some(byte) => Err(Failure::new(format!(
                    "byte {byte} reads back as {:#04x}, expected {:#04x}: write it again before \
                     the SubDevice is power-cycled",
                    now[byte], wanted[byte]
                ))),
            }
        })
    }
}

/// An image that may be written: whole, and with its right checksum.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let refused = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let mut bytes = image_file(path).map_err(|error| {
        refused(format!("cannot be read, expected an SII image (EEPROM contents): {error}"))
    })?;
    if is_xml(&bytes) {
        return Err(refused("an ESI file (XML), expected an SII image (EEPROM contents)".to_owned()));
    }
    Image::parse(&bytes).map_err(|error| refused(format!("{error}; nothing was written")))?;
    if bytes.len() % 2 != 0 {
        bytes.push(0xFF);
    }
    Ok(bytes)
}

/// The image with the station alias that the SubDevice has, and the checksum of that.
fn with_alias_of(image: &[u8], found: &[u8]) -> Vec<u8> {
    let mut image = image.to_vec();
    image[ALIAS..ALIAS + 2].copy_from_slice(&found[ALIAS..ALIAS + 2]);
    let checksum = crc8(&image[..CHECKSUM]);
    image[CHECKSUM] = checksum;
    image
}

fn described(image: &[u8]) -> String {
    let Ok(header) = Header::parse(image) else { return "no SII".to_owned() };
    let defect = Image::parse(image).err().map(|error| format!(" ({error})")).unwrap_or_default();
    format!("{}{defect}", header.identity())
}

/// Byte of the station alias, word 4.
const ALIAS: usize = 8;

/// Byte of the checksum over the preceding bytes.
const CHECKSUM: usize = 14;
