//! The segment that answers truthfully: a device with CoE and a clock, and inputs without a mailbox.

use std::sync::LazyLock;

use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::sii::{Identity, Image};
use simulator::application::GenericDevice;
use simulator::application::digital::{DigitalInputs, Wires};
use simulator::application::sii::{digital_inputs, with_coe};
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
    let image: Image = with_coe(Identity::default(), "device", mapping()).image();
    Parts {
        device: GenericDevice::from_sii(&image).expect("its own mapping"),
        coe: image.emit(),
        inputs: digital_inputs(Identity::default(), "inputs", 8).image().emit(),
    }
});

/// The segment, with its power just on.
pub(crate) fn segment() -> Segment {
    let parts = &*PARTS;
    let wires = Wires::new();
    wires.set_levels(0x5A);
    let inputs = Box::new(DigitalInputs::new(8, wires).expect("eight inputs"));
    Segment::new(vec![
        SubDevice::from_sii(&parts.coe, Box::new(parts.device.clone())),
        SubDevice::from_sii(&parts.inputs, inputs),
    ])
}

/// Two objects out and two in.
pub(crate) fn mapping() -> PdoMapping {
    let pdo = |index, sync_manager, object: u32| Pdo {
        index,
        sync_manager: Some(sync_manager),
        fixed: false,
        name: String::new(),
        entries: [object << 16 | 0x0120, object << 16 | 0x0210].map(PdoEntry::from_mapping_value).into(),
    };
    PdoMapping { outputs: vec![pdo(0x1600, 2, 0x7000)], inputs: vec![pdo(0x1A00, 3, 0x6000)] }
}
