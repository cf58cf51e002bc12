//! A SubDevice that returns its outputs as inputs.

use ethercat::sii::{Identity, Image};
use ethercat::time::Instant;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths};
use onbeat_simulator::{EscDescription, SubDevice};

use super::stamped::{STAMP, stamped_mapping};

struct Echo {
    bytes: usize,
}

impl Application for Echo {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: self.bytes, inputs: self.bytes }
    }

    fn step(&mut self, _now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            inputs.copy_from_slice(outputs);
        }
    }
}

pub(crate) fn echo_image(words: usize) -> Image {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0xEC0, revision: 1, serial: 0 };
    with_coe(identity, "echo", stamped_mapping(words, words)).image()
}

/// A SubDevice with `words` times 8 bytes each way.
pub(crate) fn echo(words: usize) -> SubDevice {
    echo_on(EscDescription::default(), words)
}

/// The same with another ESC.
pub(crate) fn echo_on(esc: EscDescription, words: usize) -> SubDevice {
    SubDevice::new(esc, echo_image(words).emit(), Box::new(Echo { bytes: words * STAMP }))
}
