//! Checks from the frames alone that inputs may be called fresh: from the frames sent in this
//! cycle, the replies received in this cycle, and, by the written FMMUs, the SubDevices that had to
//! take part.

use std::collections::BTreeMap;

use ethercat::main_device::{CycleReport, MainDevice};
use ethercat::register::FMMU;
use ethercat::register::fmmu::{self, Fmmu, FmmuDirection};
use ethercat::wire::{Command, DatagramHeader, frame};

/// A frame of this cycle that carries process data.
#[derive(Debug)]
struct Sent {
    bytes: Vec<u8>,
    replies: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct Freshness {
    cycle: Vec<Sent>,
    /// Buffers of earlier cycles, for the next ones.
    spare: Vec<Vec<u8>>,
    /// The FMMU registers of each station address.
    fmmus: BTreeMap<u16, [u8; FMMU_BYTES]>,
    /// They were written since the last judgement.
    written: bool,
    /// The active FMMUs of these registers, as of the last judgement.
    active: Vec<(u16, Fmmu)>,
}

/// Sixteen of them.
const FMMU_BYTES: usize = 16 * fmmu::LENGTH as usize;

impl Freshness {
    pub(crate) fn begin_cycle(&mut self) {
        for sent in self.cycle.drain(..) {
            self.spare.push(sent.bytes);
            self.spare.extend(sent.replies);
        }
    }

    /// The MainDevice sends this datagram.
    pub(crate) fn requested(&mut self, header: &DatagramHeader, data: &[u8]) {
        let offset = usize::from(header.ado().wrapping_sub(FMMU));
        if !header.command.writes() || header.command.is_logical() || offset >= FMMU_BYTES {
            return;
        }
        if header.command == Command::Bwr {
            self.fmmus.clear();
        } else {
            let registers = self.fmmus.entry(header.adp()).or_insert([0; FMMU_BYTES]);
            super::script::write(registers, offset, data);
        }
        self.written = true;
    }

    /// The MainDevice sends this frame with process data.
    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        let bytes = self.copy(bytes);
        self.cycle.push(Sent { bytes, replies: Vec::new() });
    }

    /// The MainDevice is handed this.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        if self.cycle.is_empty() {
            return;
        }
        let Some(generation) = generation(bytes) else { return };
        let is_answered = |sent: &Sent| self::generation(&sent.bytes) == Some(generation);
        if let Some(number) = self.cycle.iter().position(is_answered) {
            let reply = self.copy(bytes);
            self.cycle[number].replies.push(reply);
        }
    }

    /// A copy in a spare buffer.
    fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        copy
    }

    /// Nothing is called fresh that is not.
    pub(crate) fn judge(&mut self, main_device: &MainDevice, report: &CycleReport) {
        if core::mem::take(&mut self.written) {
            self.active.clear();
            for (&station, registers) in &self.fmmus {
                let fmmus = registers.chunks_exact(fmmu::LENGTH.into()).filter_map(Fmmu::parse);
                self.active.extend(fmmus.filter(|it| it.active).map(|it| (station, it)));
            }
        }
        for sub_device in main_device.sub_devices() {
            let position = usize::from(sub_device.position);
            let inputs = main_device.inputs(position);
            if inputs.is_empty() {
                continue;
            }
            if main_device.inputs_fresh(position) {
                assert!(
                    self.delivered(sub_device.station_address, inputs),
                    "{position} is called fresh: {self:?}"
                );
            } else {
                assert!(!report.all_fresh, "all are called fresh, and {position} is not: {report:?}");
            }
        }
        let answered = self.cycle.iter().filter(|sent| !sent.replies.is_empty()).count();
        assert!(
            !report.all_fresh || answered == self.cycle.len(),
            "{report:?}, with {answered} answers: {self:?}"
        );
    }

    /// True if replies of this cycle, in which everybody took part, brought these inputs.
    fn delivered(&self, station: u16, inputs: &[u8]) -> bool {
        let fmmus = &self.active;
        let own = |it: &&(u16, Fmmu)| it.0 == station && it.1.direction == FmmuDirection::Read;
        let mut read: Vec<Fmmu> = fmmus.iter().filter(own).map(|it| it.1).collect();
        read.sort_by_key(|it| it.logical_address);
        let mut missing = vec![true; inputs.len()];
        let replies =
            self.cycle.iter().flat_map(|sent| sent.replies.iter().map(|reply| (&sent.bytes, reply)));
        for (sent, reply) in replies {
            for (sent, received) in frame::places(sent).zip(frame::places(reply)) {
                let header = received.header;
                let same = (header.command, header.address, header.length)
                    == (sent.header.command, sent.header.address, sent.header.length);
                let counter = ethercat::wire::read_u16(reply, received.working_counter());
                if !same
                    || counter != Some(participants(fmmus, header.command, header.address, header.length))
                {
                    continue;
                }
                let data = &reply[received.data()];
                let places = read
                    .iter()
                    .flat_map(|it| it.logical_address..it.logical_address + u32::from(it.length));
                for ((at, input), missing) in places.zip(inputs).zip(&mut missing) {
                    let offset = at.checked_sub(header.address).unwrap_or(u32::MAX);
                    *missing &= data.get(offset as usize) != Some(input);
                }
            }
        }
        !missing.contains(&true)
    }
}

/// Working counter of such a datagram when all SubDevices with FMMUs there take part (ETG.1000.4,
/// 5.4.1.3).
fn participants(fmmus: &[(u16, Fmmu)], command: Command, address: u32, length: u16) -> u16 {
    let end = address + u32::from(length);
    let count = |direction| {
        let overlaps = |it: &&(u16, Fmmu)| {
            let own_end = it.1.logical_address + u32::from(it.1.length);
            it.1.direction == direction && it.1.logical_address < end && address < own_end
        };
        let mut stations: Vec<u16> = fmmus.iter().filter(overlaps).map(|it| it.0).collect();
        stations.dedup();
        stations.len() as u16
    };
    match command {
        Command::Lrw => count(FmmuDirection::Read) + 2 * count(FmmuDirection::Write),
        Command::Lrd => count(FmmuDirection::Read),
        // It brings no inputs: no counter is right.
        _ => u16::MAX,
    }
}

/// The number in the frame's first datagram, and its index.
fn generation(bytes: &[u8]) -> Option<(u8, u32)> {
    let first = frame::places(bytes).next()?;
    let number = bytes[first.data()].try_into().ok()?;
    Some((first.header.index, u32::from_le_bytes(number)))
}
