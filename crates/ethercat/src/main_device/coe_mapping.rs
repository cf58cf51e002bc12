//! Reads the PDOs of a SubDevice whose SII declares none: its assignment objects 0x1C12 and 0x1C13,
//! and the mapping objects they name (ETG.1000.6, 5.6.7.4). Compares them with the expected values.
//!
//! Pure: the object to upload out, its value in.

use alloc::string::String;
use alloc::vec::Vec;

use crate::pdo::{ASSIGNMENT_INPUTS, ASSIGNMENT_OUTPUTS, Pdo, PdoEntry, PdoMapping};

use super::error::SubDeviceError;
use super::request::MailboxError;

/// Objects mapped at most, padding included: far more than any device maps, and soon read.
const MOST_ENTRIES: usize = 1024;

/// SyncManagers of a SubDevice with a mailbox, and their assignment objects: outputs, inputs.
const DIRECTIONS: [(u8, u16); 2] = [(2, ASSIGNMENT_OUTPUTS), (3, ASSIGNMENT_INPUTS)];

/// Directions for which there is a SyncManager: outputs, inputs.
pub(super) type Directions = [bool; 2];

/// Object to read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    PdoCount,
    /// Index of the PDO, and number of PDOs.
    Pdo(u8, u8),
    EntryCount(u8, u8),
    /// The PDO, index of the entry, and number of its entries.
    Entry((u8, u8), u8, u8),
}

/// A mapping being read.
#[derive(Debug)]
pub(super) struct MappingReader {
    directions: Directions,
    direction: usize,
    at: At,
    entries: usize,
    mapping: PdoMapping,
}

impl MappingReader {
    /// Reads these directions; at least one.
    pub(super) fn new(directions: Directions) -> Self {
        let direction = usize::from(!directions[0]);
        Self { directions, direction, at: At::PdoCount, entries: 0, mapping: PdoMapping::default() }
    }

    /// The object to upload: index and sub-index.
    pub(super) fn request(&self) -> (u16, u8) {
        let assignment = DIRECTIONS[self.direction].1;
        let pdo = self.pdos().last().map_or(0, |pdo| pdo.index);
        match self.at {
            At::PdoCount => (assignment, 0),
            At::Pdo(number, _) => (assignment, number),
            At::EntryCount(..) => (pdo, 0),
            At::Entry(_, number, _) => (pdo, number),
        }
    }

    /// Its value came, or why not. The mapping, once it is whole.
    pub(super) fn answered(
        &mut self,
        answer: Result<&[u8], MailboxError>,
    ) -> Result<Option<PdoMapping>, SubDeviceError> {
        let (index, sub_index) = self.request();
        let value = match (answer, self.at) {
            (Ok(bytes), _) => number(bytes),
            // Without an assignment object there is no process data that way.
            (Err(MailboxError::Aborted(_)), At::PdoCount) => 0,
            (Err(error), _) => return Err(SubDeviceError::Sdo { index, sub_index, error }),
        };
        self.at = match self.at {
            At::PdoCount => return Ok(self.after_pdo(0, value as u8)),
            At::Pdo(number, of) => {
                self.begin_pdo(value as u16);
                At::EntryCount(number, of)
            }
            At::EntryCount(number, of) if value as u8 == 0 => return Ok(self.after_pdo(number, of)),
            At::EntryCount(number, of) => At::Entry((number, of), 1, value as u8),
            At::Entry(pdo, number, of) => {
                self.entries += 1;
                if self.entries > MOST_ENTRIES {
                    return Err(SubDeviceError::TooManyEntries { index, maximum: MOST_ENTRIES });
                }
                if let Some(pdo) = self.pdos_mut().last_mut() {
                    pdo.entries.push(PdoEntry::from_mapping_value(value));
                }
                match number < of {
                    true => At::Entry(pdo, number + 1, of),
                    false => return Ok(self.after_pdo(pdo.0, pdo.1)),
                }
            }
        };
        Ok(None)
    }

    /// The next PDO, the other direction, or the end.
    fn after_pdo(&mut self, number: u8, of: u8) -> Option<PdoMapping> {
        if number < of {
            self.at = At::Pdo(number + 1, of);
        } else if self.direction == 0 && self.directions[1] {
            (self.direction, self.at) = (1, At::PdoCount);
        } else {
            return Some(core::mem::take(&mut self.mapping));
        }
        None
    }

    fn begin_pdo(&mut self, index: u16) {
        let sync_manager = Some(DIRECTIONS[self.direction].0);
        let pdo = Pdo { index, sync_manager, fixed: false, name: String::new(), entries: Vec::new() };
        self.pdos_mut().push(pdo);
    }

    fn pdos(&self) -> &[Pdo] {
        if self.direction == 0 { &self.mapping.outputs } else { &self.mapping.inputs }
    }

    fn pdos_mut(&mut self) -> &mut Vec<Pdo> {
        if self.direction == 0 { &mut self.mapping.outputs } else { &mut self.mapping.inputs }
    }
}

/// A mapping or assignment object, and the expected values of its sub-indices from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) index: u16,
    pub(super) values: Vec<u32>,
}

impl Wanted {
    /// Bytes of a value, if all of the object is uploaded at once (ETG.1000.6, 5.6.2.1.1).
    fn width(&self) -> usize {
        if is_assignment(self.index) { 2 } else { 4 }
    }

    fn is_at(&self, sub_index: u8, found: u32) -> bool {
        match sub_index.checked_sub(1) {
            None => found as usize == self.values.len(),
            Some(place) => {
                self.values.get(usize::from(place)).is_some_and(|&it| is_same(self.index, it, found))
            }
        }
    }

    /// True if `bytes` are the complete expected object: sub-index 0 with a padding byte, then the
    /// others.
    fn is_all(&self, bytes: &[u8]) -> bool {
        let Some((count, values)) = bytes.split_first_chunk::<2>() else { return false };
        let is_whole = values.len() >= self.values.len() * self.width();
        let mut numbers = (1..).zip(values.chunks(self.width()).take(self.values.len()));
        is_whole && self.is_at(0, count[0].into()) && numbers.all(|(at, it)| self.is_at(at, number(it)))
    }
}

/// Comparison of objects with their expected values.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    object: usize,
    sub_index: u8,
}

impl Comparison {
    /// Object to upload: index and sub-index.
    pub(super) fn request(&self, wanted: &[Wanted]) -> (u16, u8) {
        (wanted.get(self.object).map_or(0, |it| it.index), self.sub_index)
    }

    /// Takes an answer: the complete object or one value. True once all match the expectation,
    /// false at the first that does not.
    pub(super) fn answered(&mut self, wanted: &[Wanted], at_once: bool, bytes: &[u8]) -> Option<bool> {
        let Some(object) = wanted.get(self.object) else { return Some(true) };
        let is_same =
            if at_once { object.is_all(bytes) } else { object.is_at(self.sub_index, number(bytes)) };
        if !is_same {
            return Some(false);
        }
        if at_once || usize::from(self.sub_index) == object.values.len() {
            (self.object, self.sub_index) = (self.object + 1, 0);
        } else {
            self.sub_index += 1;
        }
        (self.object == wanted.len()).then_some(true)
    }
}

/// A number of up to four bytes, as an object holds it.
pub(super) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// True if a mapping or assignment object has the expected value. Padding is padding, whatever
/// sub-index a device gives it.
pub(super) fn is_same(index: u16, expected: u32, found: u32) -> bool {
    let are_padding = !is_assignment(index) && expected >> 16 == 0 && found >> 16 == 0;
    expected == found || are_padding && expected as u8 == found as u8
}

fn is_assignment(index: u16) -> bool {
    DIRECTIONS.iter().any(|(_, assignment)| *assignment == index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdo_abort::AbortCode;

    fn wanted() -> Vec<Wanted> {
        let objects: [(u16, &[u32]); 3] =
            [(0x1C12, &[0x1600, 0x1601]), (0x1600, &[0x6040_0010, 0x0000_0010]), (0x1601, &[])];
        objects.map(|(index, values)| Wanted { index, values: values.to_vec() }).into()
    }

    /// Answer of a device with these objects, value by value or at once, and uploads until then.
    fn compared(device: &[Wanted], at_once: bool) -> (bool, usize) {
        let (mut comparison, wanted) = (Comparison::default(), wanted());
        for uploads in 1.. {
            let (index, sub_index) = comparison.request(&wanted);
            let object = device.iter().find(|it| it.index == index).unwrap();
            let count = object.values.len() as u8;
            let bytes = match (at_once, sub_index) {
                (true, _) => {
                    let values =
                        object.values.iter().flat_map(|it| it.to_le_bytes()[..object.width()].to_vec());
                    [count, 0].into_iter().chain(values).collect()
                }
                (false, 0) => vec![count],
                (false, _) => object.values[usize::from(sub_index) - 1].to_le_bytes().to_vec(),
            };
            if let Some(is_same) = comparison.answered(&wanted, at_once, &bytes) {
                return (is_same, uploads);
            }
        }
        unreachable!()
    }

    #[test]
    fn matching_objects_are_compared_by_all_values() {
        assert_eq!(compared(&wanted(), false), (true, 7));
        assert_eq!(compared(&wanted(), true), (true, 3));
        let mut padded = wanted();
        padded[1].values[1] = 0x0000_0310;
        assert!(compared(&padded, false).0 && compared(&padded, true).0);
    }

    #[test]
    fn the_first_value_that_differs_ends_the_comparison() {
        let mut other = wanted();
        other[0].values[1] = 0x1602;
        assert_eq!((compared(&other, false), compared(&other, true)), ((false, 3), (false, 1)));
        other[0].values.pop();
        assert_eq!((compared(&other, false), compared(&other, true)), ((false, 1), (false, 1)));
        let mut other = wanted();
        other[2].values.push(0x6060_0008);
        assert_eq!((compared(&other, false), compared(&other, true)), ((false, 7), (false, 3)));
    }

    #[test]
    fn truncated_object_does_not_match() {
        for bytes in [&[][..], &[2], &[2, 0], &[2, 0, 0, 0x16], &[2, 0, 0, 0x16, 1]] {
            assert_eq!(Comparison::default().answered(&wanted(), true, bytes), Some(false), "{bytes:?}");
        }
    }

    /// Reads a device that has only these objects and aborts all others. Also returns the number of
    /// uploads.
    fn read(
        directions: Directions,
        objects: &[(u16, u8, u32)],
    ) -> Result<(PdoMapping, usize), SubDeviceError> {
        let mut reader = MappingReader::new(directions);
        for uploads in 1.. {
            let asked = reader.request();
            let found = objects.iter().find(|it| (it.0, it.1) == asked).map(|it| it.2.to_le_bytes());
            let aborted = MailboxError::Aborted(AbortCode::NO_OBJECT);
            let answer = found.as_ref().map(|bytes| &bytes[..]).ok_or(aborted);
            if let Some(mapping) = reader.answered(answer)? {
                return Ok((mapping, uploads));
            }
        }
        unreachable!()
    }

    const OBJECTS: [(u16, u8, u32); 14] = [
        (0x1C12, 0, 1),
        (0x1C12, 1, 0x1601),
        (0x1601, 0, 2),
        (0x1601, 1, 0x6040_0010),
        (0x1601, 2, 0x607A_0020),
        (0x1C13, 0, 3),
        (0x1C13, 1, 0x1A00),
        (0x1C13, 2, 0x1A01),
        (0x1C13, 3, 0x1A05),
        (0x1A00, 0, 1),
        (0x1A00, 1, 0x6041_0010),
        (0x1A01, 0, 0),
        (0x1A05, 0, 1),
        (0x1A05, 1, 0x0000_0008),
    ];

    // feature(main-device): PDOs that only CoE knows are read and used
    #[test]
    fn both_directions_with_all_their_pdos_are_read_in_their_order() {
        let (mapping, uploads) = read([true, true], &OBJECTS).unwrap();
        assert_eq!(uploads, OBJECTS.len());
        let indices = |pdos: &[Pdo]| pdos.iter().map(|it| (it.index, it.sync_manager)).collect::<Vec<_>>();
        assert_eq!(indices(&mapping.outputs), [(0x1601, Some(2))]);
        assert_eq!(indices(&mapping.inputs), [(0x1A00, Some(3)), (0x1A01, Some(3)), (0x1A05, Some(3))]);
        assert_eq!((mapping.output_bits(), mapping.input_bits()), (48, 24));
        assert_eq!(mapping.output(0x607A, 0).unwrap().bit_offset, 16);
    }

    #[test]
    fn a_direction_without_sync_manager_or_assignment_is_left_out() {
        let (mapping, _) = read([false, true], &OBJECTS).unwrap();
        assert_eq!((mapping.output_bits(), mapping.input_bits()), (0, 24));
        let (mapping, uploads) = read([true, true], &[]).unwrap();
        assert_eq!((mapping, uploads), (PdoMapping::default(), 2));
        let (mapping, _) = read([true, false], &OBJECTS).unwrap();
        assert_eq!((mapping.output_bits(), mapping.input_bits()), (48, 0));
    }

    #[test]
    fn an_object_that_is_missing_further_in_is_named() {
        let missing = read([true, true], &OBJECTS[..4]).unwrap_err();
        assert!(matches!(missing, SubDeviceError::Sdo { index: 0x1601, sub_index: 2, .. }), "{missing}");
    }

    #[test]
    fn padding_is_the_same_by_its_bits_alone() {
        assert!(is_same(0x1600, 0x0000_0008, 0x0000_0308));
        assert!(!is_same(0x1600, 0x0000_0008, 0x0000_0007));
        assert!(!is_same(0x1600, 0x6040_0010, 0x6041_0010));
        assert!(!is_same(0x1600, 0x0000_0010, 0x6041_0010));
        assert!(!is_same(ASSIGNMENT_OUTPUTS, 0x1600, 0x1700));
    }

    #[test]
    fn a_device_that_maps_without_end_is_not_read_for_ever() {
        let mut reader = MappingReader::new([true, true]);
        let ended = (0..100_000).find_map(|_| {
            let (index, _) = reader.request();
            let assigns = index == ASSIGNMENT_OUTPUTS && matches!(reader.at, At::Pdo(..));
            let value: u32 = if assigns { 0x1600 } else { 255 };
            reader.answered(Ok(&value.to_le_bytes())).err()
        });
        assert!(matches!(ended, Some(SubDeviceError::TooManyEntries { .. })), "{ended:?}");
    }
}
