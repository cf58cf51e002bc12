//! The few blocks of a pcapng file that a capture needs (draft-ietf-opsawg-pcapng, section 4).

use std::io::{self, Write};

/// First bytes of a file: type of the section header block, the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// Direction of a frame, seen from the MainDevice (epb_flags, section 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Inbound = 1,
    Outbound = 2,
}

/// Writes one section with one Ethernet interface and nanosecond time stamps.
pub(super) struct Writer<W> {
    output: W,
    block: Vec<u8>,
}

/// Counts for the closing statistics block.
pub(super) struct Statistics {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) received: u64,
    pub(super) dropped: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the section header and the description of the interface.
    pub(super) fn new(output: W, interface: &str) -> io::Result<Self> {
        let mut writer = Self { output, block: Vec::with_capacity(2048) };

        writer.begin(u32::from_le_bytes(SECTION_HEADER));
        writer.put_u32(0x1A2B_3C4D); // byte-order magic
        writer.put_u16(1); // major version
        writer.put_u16(0); // minor version
        writer.block.extend((-1_i64).to_le_bytes()); // section length: unknown
        writer.option(4, concat!("Onbeat ", env!("CARGO_PKG_VERSION")).as_bytes()); // shb_userappl
        writer.end_options();
        writer.finish_block()?;

        writer.begin(1);
        writer.put_u16(1); // LINKTYPE_ETHERNET
        writer.put_u16(0);
        writer.put_u32(0); // snap length: unlimited
        writer.option(2, interface.as_bytes()); // if_name
        writer.option(9, &[9]); // if_tsresol: 10^-9 s
        writer.end_options();
        writer.finish_block()?;
        Ok(writer)
    }

    /// Writes one frame; `time` is in nanoseconds since 1970.
    pub(super) fn packet(&mut self, time: u64, direction: Direction, frame: &[u8]) -> io::Result<()> {
        self.begin(6);
        self.put_u32(0); // interface
        self.put_time(time);
        self.put_u32(frame.len() as u32); // captured
        self.put_u32(frame.len() as u32); // on the wire
        self.put_padded(frame);
        self.option(2, &(direction as u32).to_le_bytes()); // epb_flags
        self.end_options();
        self.finish_block()
    }

    /// Writes the interface's statistics: the number of frames, and of frames missing in the file.
    pub(super) fn statistics(&mut self, statistics: &Statistics) -> io::Result<()> {
        self.begin(5);
        self.put_u32(0); // interface
        self.put_time(statistics.end);
        let halves = |time: u64| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&((time >> 32) as u32).to_le_bytes());
            bytes[4..].copy_from_slice(&(time as u32).to_le_bytes());
            bytes
        };
        self.option(2, &halves(statistics.start)); // isb_starttime
        self.option(3, &halves(statistics.end)); // isb_endtime
        self.option(4, &statistics.received.to_le_bytes()); // isb_ifrecv
        self.option(5, &statistics.dropped.to_le_bytes()); // isb_ifdrop
        self.end_options();
        self.finish_block()
    }

    /// Passes the written bytes to the operating system.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put_u32(kind);
        self.put_u32(0); // length: filled in by `finish_block`
    }

    /// A block ends with its length, which is also at its start.
    fn finish_block(&mut self) -> io::Result<()> {
        let length = self.block.len() as u32 + 4;
        self.put_u32(length);
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.output.write_all(&self.block)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put_u16(code);
        self.put_u16(value.len() as u16);
        self.put_padded(value);
    }

    fn end_options(&mut self) {
        self.put_u32(0);
    }

    /// Time stamps are two halves, the high one first, each in the section's byte order.
    fn put_time(&mut self, time: u64) {
        self.put_u32((time >> 32) as u32);
        self.put_u32(time as u32);
    }

    fn put_padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn put_u16(&mut self, value: u16) {
        self.block.extend(value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }
}
