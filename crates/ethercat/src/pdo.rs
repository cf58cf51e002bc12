//! Process data objects: mapped objects and their offsets (ETG.1000.6, 5.6.7.4; CiA 301, 7.5.2.35
//! ff.).

mod field;
mod oversampling;
mod value;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use field::{Direction, Field, FieldError};
pub use value::{ProcessElement, ProcessValue};

/// Object index of the RxPDO assignment (SyncManager 2, outputs).
pub const ASSIGNMENT_OUTPUTS: u16 = 0x1C12;
/// Object index of the TxPDO assignment (SyncManager 3, inputs).
pub const ASSIGNMENT_INPUTS: u16 = 0x1C13;
/// First object index of RxPDO mappings, up to 0x17FF.
pub const MAPPING_OUTPUTS: u16 = 0x1600;
/// First object index of TxPDO mappings, up to 0x1BFF.
pub const MAPPING_INPUTS: u16 = 0x1A00;

/// Sub-index of the value of a terminal's channel; lower sub-indices are its status (ETG.5001.3).
const VALUE: u8 = 0x11;

/// One object in a PDO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdoEntry {
    /// Object index; 0 is padding.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// Bits.
    pub bit_length: u8,
    /// Index of its data type in the object dictionary (ETG.1000.6, Table 64), where the SII gives
    /// it, or it was read; else 0.
    pub data_type: u16,
    /// Name, where the SII or the robot file gives one.
    pub name: String,
}

impl PdoEntry {
    /// The entry as a mapping object's sub-index holds it: index, sub-index, bit length.
    #[must_use]
    pub fn mapping_value(&self) -> u32 {
        u32::from(self.index) << 16 | u32::from(self.sub_index) << 8 | u32::from(self.bit_length)
    }

    /// The nameless entry a mapping object's sub-index describes.
    #[must_use]
    pub fn from_mapping_value(value: u32) -> Self {
        Self {
            index: (value >> 16) as u16,
            sub_index: (value >> 8) as u8,
            bit_length: value as u8,
            data_type: 0,
            name: String::new(),
        }
    }
}

/// A process data object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdo {
    /// Index of the mapping object: 0x1600 ff. outputs, 0x1A00 ff. inputs.
    pub index: u16,
    /// SyncManager it belongs to, or `None` if it is not assigned by default.
    pub sync_manager: Option<u8>,
    /// True if the mapping is fixed and must not be written.
    pub fixed: bool,
    /// Name, where the SII or the robot file gives one.
    pub name: String,
    /// The objects in it, in order.
    pub entries: Vec<PdoEntry>,
}

impl Pdo {
    /// Bits of all entries.
    #[must_use]
    pub fn bit_length(&self) -> usize {
        self.entries.iter().map(|entry| usize::from(entry.bit_length)).sum()
    }
}

/// The PDOs of a SubDevice that are in use, in the order they lie in the process image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PdoMapping {
    /// RxPDOs: MainDevice to SubDevice.
    pub outputs: Vec<Pdo>,
    /// TxPDOs: SubDevice to MainDevice.
    pub inputs: Vec<Pdo>,
}

impl PdoMapping {
    /// Place of output object `index`:`sub_index` among the outputs.
    #[must_use]
    pub fn output(&self, index: u16, sub_index: u8) -> Option<PdoField> {
        find(&self.outputs, index, sub_index)
    }

    /// Place of input object `index`:`sub_index` among the inputs.
    #[must_use]
    pub fn input(&self, index: u16, sub_index: u8) -> Option<PdoField> {
        find(&self.inputs, index, sub_index)
    }

    /// Places of the digital outputs among the outputs, in their order: the objects of one bit,
    /// padding left out.
    pub fn digital_outputs(&self) -> impl Iterator<Item = PdoField> + '_ {
        digital(&self.outputs)
    }

    /// Places of the digital inputs among the inputs, in their order: the objects of one bit,
    /// padding left out.
    pub fn digital_inputs(&self) -> impl Iterator<Item = PdoField> + '_ {
        digital(&self.inputs)
    }

    /// All entries that go in this direction, padding too, and where they lie among the inputs or
    /// outputs.
    pub fn entries(&self, direction: Direction) -> impl Iterator<Item = (&PdoEntry, PdoField)> {
        fields(self.pdos(direction))
    }

    /// The channels of a terminal in this direction, in their order, each an entry of
    /// [`PdoMapping::entries`]: the bits of a PDO that has nothing but bits; else its values
    /// (sub-index 0x11, ETG.5001.3), if it has any; else every entry wider than a bit.
    pub fn channels(&self, direction: Direction) -> impl Iterator<Item = (&PdoEntry, PdoField)> {
        let mut entries = fields(self.pdos(direction));
        self.pdos(direction).iter().flat_map(move |pdo| {
            let own: Vec<_> = entries.by_ref().take(pdo.entries.len()).collect();
            let all = |accept: fn(&PdoEntry) -> bool| {
                own.iter().filter(|(it, _)| it.index != 0).all(|(it, _)| accept(it))
            };
            let accept: fn(&PdoEntry) -> bool = if all(|it| it.bit_length == 1) {
                |_| true
            } else if !all(|it| it.sub_index != VALUE) {
                |it| it.sub_index == VALUE
            } else {
                |it| it.bit_length > 1
            };
            own.into_iter().filter(move |(it, _)| it.index != 0 && accept(it))
        })
    }

    /// Bits of all outputs.
    #[must_use]
    pub fn output_bits(&self) -> usize {
        self.outputs.iter().map(Pdo::bit_length).sum()
    }

    /// Bits of all inputs.
    #[must_use]
    pub fn input_bits(&self) -> usize {
        self.inputs.iter().map(Pdo::bit_length).sum()
    }
}

/// Place of an object among a SubDevice's outputs or inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdoField {
    /// Bits from the start of the SubDevice's outputs or inputs.
    pub bit_offset: usize,
    /// Bits.
    pub bit_length: usize,
}

fn find(pdos: &[Pdo], index: u16, sub_index: u8) -> Option<PdoField> {
    let mut fields = fields(pdos);
    fields.find(|(entry, _)| entry.index == index && entry.sub_index == sub_index).map(|(_, field)| field)
}

fn digital(pdos: &[Pdo]) -> impl Iterator<Item = PdoField> + '_ {
    fields(pdos).filter(|(entry, field)| entry.index != 0 && field.bit_length == 1).map(|(_, field)| field)
}

/// All entries and their offsets: each SyncManager's share starts at a byte; shares are in the
/// order of their first PDOs.
fn fields(pdos: &[Pdo]) -> impl Iterator<Item = (&PdoEntry, PdoField)> {
    let starts = starts(pdos);
    pdos.iter().zip(starts).flat_map(|(pdo, mut end)| {
        pdo.entries.iter().map(move |entry| {
            let field = PdoField { bit_offset: end, bit_length: usize::from(entry.bit_length) };
            end += field.bit_length;
            (entry, field)
        })
    })
}

/// Bits before each PDO.
fn starts(pdos: &[Pdo]) -> Vec<usize> {
    let mut shares: Vec<(Option<u8>, usize)> = Vec::new();
    let mut places = Vec::with_capacity(pdos.len());
    for pdo in pdos.iter() {
        let known = shares.iter().position(|(sync_manager, _)| *sync_manager == pdo.sync_manager);
        let share = known.unwrap_or_else(|| {
            shares.push((pdo.sync_manager, 0));
            shares.len() - 1
        });
        places.push((share, shares[share].1));
        shares[share].1 += pdo.bit_length();
    }
    let before =
        |share: usize| -> usize { shares[..share].iter().map(|it| it.1.next_multiple_of(8)).sum() };
    places.into_iter().map(|(share, within)| before(share) + within).collect()
}

impl fmt::Display for PdoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, sub_index, bit_length, name, .. } = self;
        write!(f, "{index:#06x}:{sub_index:02x}")?;
        if !name.is_empty() {
            write!(f, " \"{name}\"")?;
        }
        write!(f, " ({bit_length} {})", if *bit_length == 1 { "bit" } else { "bits" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(protocol): process data of several SyncManagers in one direction, each from a byte on
    #[test]
    fn shares_of_sync_managers_begin_at_bytes() {
        let pdo = |index, sync_manager, value| Pdo {
            index,
            sync_manager: Some(sync_manager),
            fixed: false,
            name: String::new(),
            entries: vec![PdoEntry::from_mapping_value(value)],
        };
        let inputs = vec![
            pdo(0x1A00, 1, 0x6000_0103),
            pdo(0x1A01, 0, 0x6010_0104),
            pdo(0x1A02, 1, 0x6020_0102),
            pdo(0x1A03, 0, 0x6030_0108),
        ];
        let mapping = PdoMapping { outputs: Vec::new(), inputs };
        let offsets =
            [0x6000, 0x6010, 0x6020, 0x6030].map(|index| mapping.input(index, 1).unwrap().bit_offset);
        assert_eq!(offsets, [0, 8, 3, 12]);
    }

    #[test]
    fn fields_are_found_behind_earlier_ones() {
        let entry = |value| PdoEntry::from_mapping_value(value);
        let pdo = |index, values: &[u32]| Pdo {
            index,
            sync_manager: None,
            fixed: false,
            name: String::new(),
            entries: values.iter().map(|&value| entry(value)).collect(),
        };
        let mapping = PdoMapping {
            outputs: vec![pdo(0x1600, &[0x6040_0010]), pdo(0x1601, &[0x0000_0008, 0x607A_0020])],
            inputs: vec![],
        };
        assert_eq!(mapping.output(0x607A, 0), Some(PdoField { bit_offset: 24, bit_length: 32 }));
        assert_eq!(mapping.output(0x607A, 1), None);
        assert_eq!(mapping.output_bits(), 56);
        assert_eq!(entry(0x607A_0020).mapping_value(), 0x607A_0020);
    }

    // feature(signals): `[[signal]]` by channel or entry, with type, unit, scale, offset, range and the values of an output at a stop, a stale command and a return
    #[test]
    fn channels_are_bits_values_or_numbers() {
        let pdo = |index, values: &[u32]| Pdo {
            index,
            sync_manager: None,
            fixed: false,
            name: String::new(),
            entries: values.iter().map(|&value| PdoEntry::from_mapping_value(value)).collect(),
        };
        let bits = pdo(0x1A00, &[0x6000_0101, 0x0000_0003, 0x6010_0101]);
        let analogue = pdo(0x1A01, &[0x6020_0101, 0x6020_0202, 0x0000_0005, 0x6020_1110]);
        let forces = pdo(0x1A02, &[0x6030_0120, 0x6030_0220, 0x6030_0301]);
        let mapping = PdoMapping { outputs: vec![], inputs: vec![bits, analogue, forces] };
        let channels: Vec<_> =
            mapping.channels(Direction::Input).map(|(it, at)| (it.index, at.bit_offset)).collect();
        assert_eq!(channels, [(0x6000, 0), (0x6010, 4), (0x6020, 13), (0x6030, 29), (0x6030, 61)]);
        assert_eq!(mapping.channels(Direction::Output).count(), 0);
    }

    #[test]
    fn digital_outputs_are_one_bit_objects_without_padding() {
        let entries = [0x7000_0101, 0x0000_0001, 0x6040_0010, 0x7010_0101];
        let pdo = |index, values: &[u32]| Pdo {
            index,
            sync_manager: None,
            fixed: false,
            name: String::new(),
            entries: values.iter().map(|&value| PdoEntry::from_mapping_value(value)).collect(),
        };
        let outputs = vec![pdo(0x1600, &entries), pdo(0x1601, &[0x7020_0101])];
        let mapping = PdoMapping { outputs, inputs: vec![pdo(0x1A00, &[0x6000_0101])] };
        let offsets: Vec<_> = mapping.digital_outputs().map(|field| field.bit_offset).collect();
        assert_eq!(offsets, [0, 18, 19]);
        assert_eq!(mapping.digital_inputs().map(|field| field.bit_offset).collect::<Vec<_>>(), [0]);
    }
}
