//! A SubDevice with inputs that contain their time.

use std::time::Duration;

use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::sii::{Identity, Image};
use ethercat::time::Instant;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths};
use onbeat_simulator::{EscDescription, SubDevice};

/// Bytes of a stamp.
pub(crate) const STAMP: usize = 8;

pub(crate) const STAMPED: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x57A3, revision: 1, serial: 0 };

/// Every 8 bytes of its inputs hold the instant of the step that wrote them, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    lengths: ProcessDataLengths,
}

impl Application for Stamped {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.lengths
    }

    fn step(&mut self, now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        for stamp in inputs.chunks_exact_mut(STAMP) {
            stamp.copy_from_slice(&now.as_nanos().to_le_bytes());
        }
    }
}

/// A mapping of this many 8-byte outputs and inputs, 32 a PDO.
pub(crate) fn stamped_mapping(outputs: usize, inputs: usize) -> PdoMapping {
    let pdos = |first: u16, sync_manager, object: u32, count: usize| {
        let entry = |number: usize| PdoEntry::from_mapping_value((object + number as u32) << 16 | 64);
        let pdo = |(index, start): (u16, usize)| Pdo {
            index,
            sync_manager: Some(sync_manager),
            fixed: true,
            name: String::new(),
            entries: (start..count.min(start + 32)).map(entry).collect(),
        };
        (first..).zip((0..count).step_by(32)).map(pdo).collect()
    };
    PdoMapping { outputs: pdos(0x1600, 2, 0x7000, outputs), inputs: pdos(0x1A00, 3, 0x6000, inputs) }
}

pub(crate) fn stamped_image(outputs: usize, inputs: usize) -> Image {
    with_coe(STAMPED, "stamped", stamped_mapping(outputs, inputs)).image()
}

/// A SubDevice with this many 8-byte outputs and inputs.
pub(crate) fn stamped(outputs: usize, inputs: usize) -> SubDevice {
    stamped_on(EscDescription::default(), outputs, inputs)
}

/// The same with another ESC.
pub(crate) fn stamped_on(esc: EscDescription, outputs: usize, inputs: usize) -> SubDevice {
    let lengths = ProcessDataLengths { outputs: outputs * STAMP, inputs: inputs * STAMP };
    let image = stamped_image(outputs, inputs).emit();
    SubDevice::new(esc, image, Box::new(Stamped { lengths }))
}

/// Instant at which all of `inputs` were made, or `None` if they differ.
pub(crate) fn stamp_of(inputs: &[u8]) -> Option<Instant> {
    let mut stamps = inputs.chunks_exact(STAMP);
    let first = stamps.next()?;
    let whole = stamps.all(|other| other == first);
    whole.then(|| Instant::from_nanos(u64::from_le_bytes(first.try_into().expect("eight bytes"))))
}

/// Largest age of a stamp at the passage of a frame: the time between two steps.
pub(crate) const STEP: Duration = onbeat_simulator::sub_device::STEP;
