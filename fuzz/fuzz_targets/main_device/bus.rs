//! The segment that answers truthfully: a device with CoE and a clock, and inputs without a
//! mailbox.

use std::sync::LazyLock;

use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::sii::{Identity, Image};
use ethercat::time::Instant;
use simulator::application::sii::{SiiDescription, coupler, with_coe};
use simulator::application::{Application, GenericDevice, ProcessDataLengths};
use simulator::{Segment, SubDevice};

/// Number there are.
pub(crate) const COUNT: u16 = 2;

/// Images and the device behind them: made once.
struct Parts {
    coe: Vec<u8>,
    inputs: Vec<u8>,
    device: GenericDevice,
}

static PARTS: LazyLock<Parts> = LazyLock::new(|| {
    let image: Image = with_coe(Identity::default(), "", mapping()).image();
    Parts {
        device: GenericDevice::from_sii(&image).expect("its own mapping"),
        coe: image.emit(),
        inputs: inputs().image().emit(),
    }
});

/// The segment, with its power just on.
pub(crate) fn segment() -> Segment {
    let parts = &*PARTS;
    Segment::new(vec![
        SubDevice::from_sii(&parts.coe, Box::new(parts.device.clone())),
        SubDevice::from_sii(&parts.inputs, Box::new(Inputs)),
    ])
}

/// Eight inputs without a mailbox and with constant levels: it rests while only time passes.
struct Inputs;

impl Application for Inputs {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 0, inputs: 1 }
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        inputs.fill(0x5A);
    }

    fn rests(&self) -> bool {
        true
    }
}

/// One PDO: a short EEPROM, for most frames of a bring-up read it.
fn inputs() -> SiiDescription {
    let inputs = vec![pdo(0x1A00, 0, &[0x6000_0108])];
    SiiDescription {
        mapping: PdoMapping { outputs: Vec::new(), inputs },
        ..coupler(Identity::default(), "")
    }
}

/// Two objects out and two in.
pub(crate) fn mapping() -> PdoMapping {
    let objects = |object: u32| [object << 16 | 0x0120, object << 16 | 0x0210];
    PdoMapping {
        outputs: vec![pdo(0x1600, 2, &objects(0x7000))],
        inputs: vec![pdo(0x1A00, 3, &objects(0x6000))],
    }
}

fn pdo(index: u16, sync_manager: u8, entries: &[u32]) -> Pdo {
    Pdo {
        index,
        sync_manager: Some(sync_manager),
        fixed: false,
        name: String::new(),
        entries: entries.iter().map(|&entry| PdoEntry::from_mapping_value(entry)).collect(),
    }
}
