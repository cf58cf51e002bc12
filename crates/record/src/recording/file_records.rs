//! Records of an MCAP file one after the other, in constant memory, up to where the file ends.

use std::io::{self, BufRead, Read};

use mcap::parse_record;
use mcap::records::{Record, op};

use super::{RecordingError, is_text_recording};

/// Reads the records of an MCAP file, also from chunks.
pub(super) struct FileRecords<R> {
    file: R,
    /// Bytes read.
    at: u64,
    chunk: Option<Chunk>,
    /// Checksum of all bytes before the end of the data; `None` behind it.
    section: Option<crc32fast::Hasher>,
    /// Content of the record that was read last.
    pub(super) data: Vec<u8>,
    is_over: bool,
    /// Bytes that were read last.
    last: [u8; mcap::MAGIC.len()],
}

/// A chunk that is being read.
struct Chunk {
    /// Bytes of its records that are not read.
    left: u64,
    checksum: crc32fast::Hasher,
    expected: u64,
}

impl<R: BufRead> FileRecords<R> {
    /// Reads the magic bytes.
    ///
    /// # Errors
    /// A file that does not begin as MCAP files do; I/O errors of the reader.
    pub(super) fn open(mut file: R) -> Result<Self, RecordingError> {
        let mut begin = Vec::new();
        file.by_ref().take(mcap::MAGIC.len() as u64).read_to_end(&mut begin)?;
        if begin != mcap::MAGIC {
            file.take(LINE).read_until(b'\n', &mut begin)?;
            if is_text_recording(&begin) {
                return Err(RecordingError::Text);
            }
            let text = String::from_utf8_lossy(&begin);
            let found = text.lines().next().unwrap_or_default().chars().take(60).collect();
            return Err(RecordingError::NoRecording { found });
        }
        let mut section = crc32fast::Hasher::new();
        section.update(&begin);
        Ok(Self {
            file,
            at: begin.len() as u64,
            chunk: None,
            section: Some(section),
            data: Vec::new(),
            is_over: false,
            last: [0; mcap::MAGIC.len()],
        })
    }

    /// Reads a record and returns its kind: [`op::CHUNK`] at the end of one. `None` where the file
    /// ends, in the middle of a record too, or in zeros: a file system that lost its power may
    /// leave them behind the data. A record that zeros follow may end in some, and is left out,
    /// except the last one of a chunk with the right checksum.
    ///
    /// # Errors
    /// The place that is not as in MCAP files; I/O errors of the reader.
    pub(super) fn next(&mut self) -> Result<Option<u8>, RecordingError> {
        if self.is_over {
            return Ok(None);
        }
        let read = self.record();
        let is_checked = self.chunk.as_ref().is_some_and(|chunk| chunk.left == 0);
        match read {
            // A file that was cut off does not have its last bytes.
            Ok(None) if self.last == mcap::MAGIC && self.at > MAGIC_LENGTH => {
                Err(self.damaged("a record that ends before the end of the file"))
            }
            Ok(Some(op::CHUNK)) => read,
            Ok(Some(_)) if !is_checked && self.is_zero_next()? => self.zeros(self.at),
            Err(RecordingError::Damaged { .. })
                if self.last.ends_with(&[0]) && self.is_zero_next()? && self.is_zero_to_end()? =>
            {
                Ok(None)
            }
            _ => read,
        }
    }

    /// Reads a record and returns its kind; `None` where the file ends.
    fn record(&mut self) -> Result<Option<u8>, RecordingError> {
        loop {
            if self.chunk.take_if(|chunk| chunk.left == 0).is_some() {
                return Ok(Some(op::CHUNK));
            }
            if !self.read(HEAD)? {
                return Ok(None);
            }
            let kind = self.data[0];
            let length = number(&self.data[1..]);
            if kind == 0 && length == 0 {
                return self.zeros(self.at - HEAD);
            }
            if self.chunk.is_some() || kind != op::DATA_END {
                self.add_to_section();
            }
            if let Some(chunk) = &mut self.chunk {
                chunk.checksum.update(&self.data);
                match chunk.left.checked_sub(HEAD).and_then(|left| left.checked_sub(length)) {
                    Some(left) => chunk.left = left,
                    None => return Err(self.damaged("a record that ends in its chunk")),
                }
            } else if kind == op::CHUNK {
                if !self.begin_chunk(length)? {
                    return Ok(None);
                }
                continue;
            }
            if length > LONGEST {
                return Err(self.damaged("a record of 64 MiB at most"));
            }
            if !self.read(length)? {
                return Ok(None);
            }
            if self.chunk.is_none() && kind == op::DATA_END {
                self.end_section()?;
            }
            self.add_to_section();
            if let Some(chunk) = &mut self.chunk {
                chunk.checksum.update(&self.data);
                if chunk.left == 0 && !chunk.is_right() {
                    return Err(self.damaged("a chunk with the right checksum"));
                }
            } else if kind == op::FOOTER {
                if self.section.is_some() {
                    return Err(self.damaged("the end of the data before the footer"));
                }
                self.is_over = true;
                // A program that writes into a pipe may still be at its end.
                io::copy(&mut self.file, &mut io::sink())?;
            }
            return Ok(Some(kind));
        }
    }

    /// Reads the head of a chunk; false where the file ends.
    fn begin_chunk(&mut self, length: u64) -> Result<bool, RecordingError> {
        const TIMES_AND_SIZE: u64 = 8 + 8 + 8;
        const CHECKSUM_AND_LENGTH: u64 = 4 + 4;
        if !self.read(TIMES_AND_SIZE)? {
            return Ok(false);
        }
        self.add_to_section();
        if !self.read(CHECKSUM_AND_LENGTH)? {
            return Ok(false);
        }
        self.add_to_section();
        let (expected, compression) = (number(&self.data[..4]), number(&self.data[4..]));
        if compression != 0 {
            return Err(self.damaged("chunks that are not compressed (`mcap decompress`)"));
        }
        if !self.read(8)? {
            return Ok(false);
        }
        self.add_to_section();
        let left = number(&self.data);
        if length.checked_sub(TIMES_AND_SIZE + CHECKSUM_AND_LENGTH + 8) != Some(left) {
            return Err(self.damaged("a chunk as long as its records"));
        }
        let chunk = Chunk { left, checksum: crc32fast::Hasher::new(), expected };
        if left == 0 && !chunk.is_right() {
            return Err(self.damaged("a chunk with the right checksum"));
        }
        self.chunk = Some(chunk);
        Ok(true)
    }

    /// The end of a file that zeros follow here.
    ///
    /// # Errors
    /// Data behind the zeros.
    fn zeros(&mut self, at: u64) -> Result<Option<u8>, RecordingError> {
        match self.is_zero_to_end()? {
            true => Ok(None),
            false => Err(RecordingError::Damaged { at, expected: "a record, found zeros" }),
        }
    }

    /// True if a zero follows: no record begins with one.
    fn is_zero_next(&mut self) -> io::Result<bool> {
        Ok(self.peek()?.first() == Some(&0))
    }

    /// True if nothing but zeros follows, which are read up to the first other byte.
    fn is_zero_to_end(&mut self) -> io::Result<bool> {
        loop {
            let bytes = self.peek()?;
            let (length, is_zero) = (bytes.len(), bytes.iter().all(|&byte| byte == 0));
            if length == 0 || !is_zero {
                return Ok(is_zero);
            }
            self.file.consume(length);
        }
    }

    /// The bytes that follow, or some of them; none at the end of the file.
    fn peek(&mut self) -> io::Result<&[u8]> {
        while self.file.fill_buf().is_err_and(|it| it.kind() == io::ErrorKind::Interrupted) {}
        self.file.fill_buf()
    }

    fn add_to_section(&mut self) {
        if let Some(section) = &mut self.section {
            section.update(&self.data);
        }
    }

    /// Compares the checksum of the data with the one that was read; 0 is none.
    fn end_section(&mut self) -> Result<(), RecordingError> {
        let expected = self.data.first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
        let found = self.section.take().map(crc32fast::Hasher::finalize);
        match found {
            Some(found) if expected != 0 && found != expected => {
                Err(self.damaged("data with the right checksum"))
            }
            _ => Ok(()),
        }
    }

    /// Reads so many bytes; false where the file ends.
    fn read(&mut self, length: u64) -> io::Result<bool> {
        self.data.clear();
        let read = self.file.by_ref().take(length).read_to_end(&mut self.data)?;
        self.at += read as u64;
        let kept = &self.data[read.saturating_sub(self.last.len())..];
        self.last.rotate_left(kept.len());
        let place = self.last.len() - kept.len();
        self.last[place..].copy_from_slice(kept);
        Ok(read as u64 == length)
    }

    /// Damage before the place that was read last.
    pub(super) fn damaged(&self, expected: &'static str) -> RecordingError {
        RecordingError::Damaged { at: self.at, expected }
    }
}

impl Chunk {
    /// True if its records have the expected checksum; 0 is none.
    fn is_right(&self) -> bool {
        self.expected == 0 || u64::from(self.checksum.clone().finalize()) == self.expected
    }
}

/// Metadata or a channel. Lengths are checked first: the library asks for as much memory as a
/// string claims to need.
pub(super) fn parse(kind: u8, data: &[u8]) -> Option<Record<'_>> {
    let mut rest = data;
    if kind == op::CHANNEL {
        // Numbers of the channel and its schema, topic, encoding.
        rest = rest.get(4..)?;
        skip_string(&mut rest)?;
    }
    skip_string(&mut rest)?;
    let (length, pairs) = rest.split_first_chunk()?;
    let mut pairs = pairs.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    while !pairs.is_empty() {
        skip_string(&mut pairs)?;
    }
    parse_record(kind, data).ok()
}

/// Skips a length and as many bytes.
fn skip_string(rest: &mut &[u8]) -> Option<()> {
    let (length, behind) = rest.split_first_chunk()?;
    *rest = behind.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)?;
    Some(())
}

/// A number of eight bytes at most, the lowest first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
}

/// Bytes with which a file begins and ends.
const MAGIC_LENGTH: u64 = mcap::MAGIC.len() as u64;

/// Bytes in front of a record: its kind, and its length.
const HEAD: u64 = 1 + 8;

/// Bytes of a record at most.
const LONGEST: u64 = 64 << 20;

/// Bytes of the first line of another file.
const LINE: u64 = 256;
