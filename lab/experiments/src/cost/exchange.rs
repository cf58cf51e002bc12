//! SubDevices that exchange so many bytes and do nothing else.

use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use simulator::application::sii::{SiiDescription, coupler};
use simulator::application::{Application, ProcessDataLengths};
use simulator::{EscDescription, SubDevice};

/// Application without a mailbox.
struct Exchanging {
    bytes: usize,
}

impl Application for Exchanging {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: self.bytes, inputs: self.bytes }
    }

    fn step(&mut self, _now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            let length = outputs.len().min(inputs.len());
            inputs[..length].copy_from_slice(&outputs[..length]);
        }
    }
}

/// Bytes of an entry.
const ENTRY: usize = 4;

/// A SubDevice with one PDO in each direction, of `bytes`: a multiple of four, 1020 at most.
pub(super) fn sub_device(identity: Identity, bytes: usize) -> SubDevice {
    let entry = |index: u16, number: usize| PdoEntry {
        index,
        sub_index: number as u8,
        bit_length: (8 * ENTRY) as u8,
        // UNSIGNED32 (ETG.1020, table of base data types).
        data_type: 7,
        name: String::new(),
    };
    let pdo = |index: u16, object: u16| Pdo {
        index,
        sync_manager: Some(0),
        fixed: true,
        name: String::new(),
        entries: (1..=bytes / ENTRY).map(|number| entry(object, number)).collect(),
    };
    let mapping = PdoMapping {
        outputs: vec![pdo(MAPPING_OUTPUTS, 0x7000)],
        inputs: vec![pdo(MAPPING_INPUTS, 0x6000)],
    };
    let sii = SiiDescription { mapping, ..coupler(identity, "Exchange") }.image().emit();
    SubDevice::new(EscDescription::default(), sii, Box::new(Exchanging { bytes }))
}
