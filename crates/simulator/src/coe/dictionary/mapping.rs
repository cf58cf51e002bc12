//! PDO mapping (0x1600 to 0x17FF, 0x1A00 to 0x1BFF) and PDO assignment (0x1C12, 0x1C13): places of
//! the objects in the process data (ETG.1000.6, 5.6.7.4.7 ff.; CiA 301, 7.5.2.35 ff.).
//!
//! Both are written in the order of the standard: sub-index 0 := 0, then the entries, then
//! sub-index 0 := their number, which triggers the check of the whole. A mapping cannot be written
//! while its PDO is assigned, or outside PreOp: "device state" (0x08000022).

use core::ops::RangeInclusive;

use ethercat::pdo::{
    ASSIGNMENT_INPUTS, ASSIGNMENT_OUTPUTS, MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoEntry,
};
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::AccessRights;

use super::super::data_type::DataType;
use super::super::object::{Entry, Object, numbered};
use super::{EntryId, ObjectDictionary};

/// Direction of process data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// MainDevice to SubDevice: RxPDOs, SyncManager 2.
    Outputs,
    /// SubDevice to MainDevice: TxPDOs, SyncManager 3.
    Inputs,
}

impl Direction {
    /// Index of the assignment object.
    #[must_use]
    pub const fn assignment(self) -> u16 {
        match self {
            Self::Outputs => ASSIGNMENT_OUTPUTS,
            Self::Inputs => ASSIGNMENT_INPUTS,
        }
    }

    /// Indices of the mapping objects.
    #[must_use]
    pub const fn mappings(self) -> RangeInclusive<u16> {
        match self {
            Self::Outputs => MAPPING_OUTPUTS..=MAPPING_OUTPUTS + 0x1FF,
            Self::Inputs => MAPPING_INPUTS..=MAPPING_INPUTS + 0x1FF,
        }
    }

    /// Right that an entry needs to be mapped.
    #[must_use]
    pub const fn mappable(self) -> AccessRights {
        match self {
            Self::Outputs => AccessRights::RX_PDO_MAPPABLE,
            Self::Inputs => AccessRights::TX_PDO_MAPPABLE,
        }
    }
}

const DIRECTIONS: [Direction; 2] = [Direction::Outputs, Direction::Inputs];

/// Mapping object of `pdo`, with space for `capacity` entries; writable in PreOp unless it is
/// fixed.
#[must_use]
pub fn mapping_object(pdo: &Pdo, capacity: u8) -> Object {
    let access =
        if pdo.fixed { AccessRights::READ } else { AccessRights::READ.with(AccessRights::WRITE_PRE_OP) };
    let values = pdo.entries.iter().map(PdoEntry::mapping_value);
    let entries = counted_entries(values, capacity, DataType::U32, access);
    let name = match pdo.name.as_str() {
        "" if pdo.index < MAPPING_INPUTS => {
            format!("RxPDO mapping {}", pdo.index.wrapping_sub(MAPPING_OUTPUTS) + 1)
        }
        "" => format!("TxPDO mapping {}", pdo.index - MAPPING_INPUTS + 1),
        name => name.to_owned(),
    };
    Object::record(pdo.index, name, PDO_MAPPING_TYPE, entries).with_count(length(&pdo.entries), access)
}

/// Assignment object of one direction, with space for `capacity` PDOs; writable in PreOp unless
/// `fixed`.
#[must_use]
pub fn assignment_object(direction: Direction, assigned: &[u16], capacity: u8, fixed: bool) -> Object {
    let access =
        if fixed { AccessRights::READ } else { AccessRights::READ.with(AccessRights::WRITE_PRE_OP) };
    let name = match direction {
        Direction::Outputs => "RxPDO assign",
        Direction::Inputs => "TxPDO assign",
    };
    let entries =
        counted_entries(assigned.iter().map(|&pdo| u32::from(pdo)), capacity, DataType::U16, access);
    Object::array(direction.assignment(), name, entries).with_count(length(assigned), access)
}

/// Data type of a PDO mapping record (ETG.1000.6, Table 64).
const PDO_MAPPING_TYPE: u16 = 0x0021;

fn counted_entries(
    values: impl Iterator<Item = u32>,
    capacity: u8,
    data_type: DataType,
    access: AccessRights,
) -> Vec<Entry> {
    let mut values = values.take(usize::from(u8::MAX)).map(i64::from);
    // One more is for sub-index 0.
    let mut entries = Vec::with_capacity(1 + usize::from(capacity).max(values.size_hint().0));
    for sub_index in 1..=u8::MAX {
        let value = values.next();
        if value.is_none() && sub_index > capacity {
            break;
        }
        let entry = Entry::new(sub_index, numbered(sub_index), data_type, access);
        entries.push(entry.with_value(value.unwrap_or(0)));
    }
    entries
}

fn length<T>(items: &[T]) -> u8 {
    u8::try_from(items.len()).unwrap_or(u8::MAX)
}

/// Checks of mapping and assignment on a write, in addition to the checks of every entry.
pub(in crate::coe) fn check_write(
    dictionary: &ObjectDictionary,
    index: u16,
    sub_index: u8,
    value: i64,
) -> Result<(), AbortCode> {
    for direction in DIRECTIONS {
        let assigns = index == direction.assignment();
        if !assigns && !direction.mappings().contains(&index) {
            continue;
        }
        if !assigns && assigned(dictionary, direction).any(|pdo| pdo == index) {
            return Err(AbortCode::DEVICE_STATE);
        }
        if sub_index > 0 {
            if dictionary.value(index, 0) != Some(0) {
                return Err(AbortCode::SUB_INDEX_0_NOT_ZERO);
            }
            // Zero clears an entry; the count shows if a counted one may be empty.
            return if value == 0 {
                Ok(())
            } else {
                check_entry(dictionary, direction, assigns, value).map(drop)
            };
        }
        let object = dictionary.object(index)?;
        if value > i64::from(object.highest_sub_index()) {
            return Err(AbortCode::PDO_LENGTH_EXCEEDED);
        }
        let mut bits = 0;
        for entry in
            object.entries().iter().filter(|entry| (1..=value).contains(&i64::from(entry.sub_index)))
        {
            bits += check_entry(dictionary, direction, assigns, entry.integer())?;
        }
        let assigned = (1..=value).filter_map(|sub| object.entry(sub as u8)).map(Entry::integer);
        if assigns && assigned.enumerate().any(|(position, pdo)| is_earlier(object, position, pdo)) {
            return Err(AbortCode::NOT_MAPPABLE);
        }
        return if bits > dictionary.process_data_limit() {
            Err(AbortCode::PDO_LENGTH_EXCEEDED)
        } else {
            Ok(())
        };
    }
    Ok(())
}

/// True if one of the first `position` PDOs of an assignment is already `pdo`.
fn is_earlier(assignment: &Object, position: usize, pdo: i64) -> bool {
    assignment.entries().iter().skip(1).take(position).any(|entry| entry.integer() == pdo)
}

/// Checks the value of a mapping or assignment entry; returns the bits it then takes.
fn check_entry(
    dictionary: &ObjectDictionary,
    direction: Direction,
    assigns: bool,
    value: i64,
) -> Result<usize, AbortCode> {
    if assigns {
        let pdo = value as u16;
        if !direction.mappings().contains(&pdo) {
            return Err(AbortCode::NOT_MAPPABLE);
        }
        return Ok(mapped(dictionary.object(pdo)?).map(|entry| usize::from(entry.bit_length)).sum());
    }
    let mapped = PdoEntry::from_mapping_value(value as u32);
    if mapped.index == 0 {
        // Padding.
        let padding = mapped.sub_index == 0 && mapped.bit_length > 0;
        return if padding { Ok(usize::from(mapped.bit_length)) } else { Err(AbortCode::NOT_MAPPABLE) };
    }
    let entry = dictionary.entry(dictionary.find(mapped.index, mapped.sub_index)?);
    let fits =
        entry.access.contains(direction.mappable()) && entry.bit_length == u16::from(mapped.bit_length);
    if fits { Ok(usize::from(mapped.bit_length)) } else { Err(AbortCode::NOT_MAPPABLE) }
}

/// Assigned PDOs, in their order.
fn assigned(dictionary: &ObjectDictionary, direction: Direction) -> impl Iterator<Item = u16> + '_ {
    let assignment = dictionary.object(direction.assignment()).ok();
    let count = assignment.and_then(|object| object.entry(0)).map_or(0, Entry::integer);
    let entry = move |sub| assignment.and_then(|object| object.entry(sub as u8));
    (1..=count).filter_map(entry).map(|entry| entry.integer() as u16)
}

/// Counted entries of a mapping object.
fn mapped(mapping: &Object) -> impl Iterator<Item = PdoEntry> + '_ {
    let count = mapping.entry(0).map_or(0, Entry::integer);
    (1..=count)
        .filter_map(|sub| mapping.entry(sub as u8))
        .map(|entry| PdoEntry::from_mapping_value(entry.integer() as u32))
}

/// Prepared copies between process data of one direction and the dictionary, so that a cycle
/// neither searches nor allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyPlan {
    /// First bit in process data, number of bits, entry.
    steps: Vec<(usize, u16, EntryId)>,
    bit_length: usize,
}

impl CopyPlan {
    /// Plan for the present assignment and mappings. Objects that do not exist are left out, like
    /// padding.
    #[must_use]
    pub fn new(dictionary: &ObjectDictionary, direction: Direction) -> Self {
        let mut plan = Self::default();
        for mapping in assigned(dictionary, direction).filter_map(|pdo| dictionary.object(pdo).ok()) {
            for entry in mapped(mapping) {
                if let Ok(id) = dictionary.find(entry.index, entry.sub_index) {
                    if dictionary.entry(id).bit_length == u16::from(entry.bit_length) {
                        plan.steps.push((plan.bit_length, u16::from(entry.bit_length), id));
                    }
                }
                plan.bit_length += usize::from(entry.bit_length);
            }
        }
        plan
    }

    /// Gives the dictionary its own copy of each mapped object, so that no value of process data
    /// allocates.
    pub(in crate::coe) fn own(&self, dictionary: &mut ObjectDictionary) {
        self.steps.iter().for_each(|(_, _, id)| dictionary.own(*id));
    }

    /// Bytes of process data.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.bit_length.div_ceil(8)
    }

    /// True if the entry is mapped.
    #[must_use]
    pub fn contains(&self, id: EntryId) -> bool {
        self.steps.iter().any(|(_, _, mapped)| *mapped == id)
    }

    /// Copies outputs into the dictionary. Entries past the end of `process_data` keep their
    /// values.
    pub fn take(&self, dictionary: &mut ObjectDictionary, process_data: &[u8]) {
        self.take_changed(dictionary, process_data, None);
    }

    /// The same, without entries that have the same bytes as `before`.
    pub(in crate::coe) fn take_changed(
        &self,
        dictionary: &mut ObjectDictionary,
        process_data: &[u8],
        before: Option<&[u8]>,
    ) {
        for &(bit_offset, bits, id) in &self.steps {
            let bytes = bit_offset / 8..(bit_offset + usize::from(bits)).div_ceil(8);
            let as_before = before.and_then(|before| before.get(bytes.clone()));
            if as_before.is_none() || as_before != process_data.get(bytes) {
                dictionary.take(id, process_data, bit_offset);
            }
        }
    }

    /// Copies inputs from the dictionary into `process_data`. Padding keeps its bits.
    pub fn put(&self, dictionary: &ObjectDictionary, process_data: &mut [u8]) {
        for &(bit_offset, bits, id) in &self.steps {
            copy_bits(dictionary.entry(id).bytes(), 0, process_data, bit_offset, usize::from(bits));
        }
    }
}

/// Copies `bits` bits, least significant first, or none if either end does not hold them all.
pub(in crate::coe) fn copy_bits(from: &[u8], from_bit: usize, to: &mut [u8], to_bit: usize, bits: usize) {
    if from_bit + bits > 8 * from.len() || to_bit + bits > 8 * to.len() {
        return;
    }
    if from_bit % 8 == 0 && to_bit % 8 == 0 && bits % 8 == 0 {
        let (from_byte, to_byte, bytes) = (from_bit / 8, to_bit / 8, bits / 8);
        to[to_byte..to_byte + bytes].copy_from_slice(&from[from_byte..from_byte + bytes]);
        return;
    }
    for bit in 0..bits {
        let (source, target) = (from_bit + bit, to_bit + bit);
        let set = from[source / 8] >> (source % 8) & 1;
        let byte = &mut to[target / 8];
        *byte = *byte & !(1 << (target % 8)) | set << (target % 8);
    }
}

#[cfg(test)]
mod tests {
    use ethercat::al::AlState;

    use super::super::super::object::READ_WRITE;
    use super::*;

    fn pdo(index: u16, values: &[u32]) -> Pdo {
        Pdo {
            index,
            sync_manager: None,
            fixed: false,
            name: "PDO".to_owned(),
            entries: values.iter().map(|&value| PdoEntry::from_mapping_value(value)).collect(),
        }
    }

    fn dictionary() -> ObjectDictionary {
        let mut dictionary = ObjectDictionary::new();
        let both = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
        for (index, data_type, access) in [
            (0x6000, DataType::Boolean, both),
            (0x6001, DataType::Bits(3), both),
            (0x6002, DataType::I16, both),
            (0x6003, DataType::U8, AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE)),
        ] {
            dictionary.add(Object::variable(index, Entry::new(0, "", data_type, access)));
        }
        dictionary.add(mapping_object(&pdo(0x1600, &[0x6002_0010]), 4));
        dictionary.add(mapping_object(&pdo(0x1601, &[0x6000_0001]), 4));
        dictionary.add(mapping_object(&Pdo { fixed: true, ..pdo(0x1A00, &[0x6003_0008]) }, 0));
        dictionary.add(assignment_object(Direction::Outputs, &[0x1600], 2, false));
        dictionary.add(assignment_object(Direction::Inputs, &[0x1A00], 2, false));
        dictionary
    }

    fn write(dictionary: &mut ObjectDictionary, index: u16, sub: u8, value: u32) -> Result<(), u32> {
        let entry = dictionary.find(index, sub).map_err(|code| code.0)?;
        let length = dictionary.entry(entry).byte_length();
        let bytes = value.to_le_bytes();
        dictionary.download(index, sub, &bytes[..length], AlState::PreOp).map_err(|code| code.0)
    }

    // feature(simulator): PDO mapping and assignment by the standard's procedure, not while assigned
    #[test]
    fn remapping_follows_the_standard_procedure() {
        let mut it = dictionary();
        for (sub, value) in [(0, 0), (1, 0x6000_0001)] {
            assert_eq!(write(&mut it, 0x1600, sub, value), Err(0x0800_0022), "it is assigned");
        }
        let whole = [1, 0, 1, 0, 0, 0x60];
        let complete = |it: &mut ObjectDictionary| {
            it.download_complete(0x1600, 0, &whole, AlState::PreOp).map_err(|it| it.0)
        };
        assert_eq!(complete(&mut it), Err(0x0800_0022));
        assert_eq!(it.value(0x1600, 1), Some(0x6002_0010), "nothing was written");
        assert_eq!(write(&mut it, 0x1601, 0, 0), Ok(()), "that one is not assigned");
        assert_eq!(write(&mut it, 0x1C12, 0, 0), Ok(()));
        assert_eq!(
            write(&mut it, 0x1600, 1, 0x6000_0001),
            Err(0x0601_0003),
            "before sub-index 0 is cleared"
        );
        assert_eq!(write(&mut it, 0x1600, 0, 0), Ok(()));
        assert_eq!(write(&mut it, 0x1600, 1, 0x6000_0002), Err(0x0604_0041), "wrong length");
        assert_eq!(write(&mut it, 0x1600, 1, 0x6003_0008), Err(0x0604_0041), "an input among outputs");
        assert_eq!(write(&mut it, 0x1600, 1, 0x6009_0008), Err(0x0602_0000));
        assert_eq!(write(&mut it, 0x1600, 1, 0x6000_0108), Err(0x0609_0011));
        for (sub, value) in [(1, 0x6000_0001), (2, 0x0000_0004), (3, 0x6001_0003), (4, 0x6002_0010)] {
            assert_eq!(write(&mut it, 0x1600, sub, value), Ok(()));
        }
        assert_eq!(write(&mut it, 0x1600, 0, 5), Err(0x0604_0042), "more than there is room for");
        assert_eq!(write(&mut it, 0x1600, 0, 4), Ok(()));
        assert_eq!(write(&mut it, 0x1C12, 0, 1), Ok(()));
        let plan = CopyPlan::new(&it, Direction::Outputs);
        assert_eq!(plan.byte_length(), 3);
        plan.take(&mut it, &[0b1010_0001, 0xFE, 0xFF]);
        let values = [0x6000, 0x6001, 0x6002].map(|index| it.value(index, 0));
        assert_eq!(values, [Some(1), Some(5), Some(-2)]);
        assert_eq!(it.download(0x1600, 0, &[0], AlState::SafeOp), Err(AbortCode(0x0800_0022)));
        assert_eq!(write(&mut it, 0x1A00, 0, 0), Err(0x0601_0002), "a fixed PDO");
    }

    #[test]
    fn an_empty_entry_cannot_be_counted() {
        let mut it = dictionary();
        assert_eq!(write(&mut it, 0x1C12, 0, 0), Ok(()));
        assert_eq!(write(&mut it, 0x1600, 0, 0), Ok(()));
        assert_eq!(write(&mut it, 0x1600, 0, 2), Err(0x0604_0041));
        assert_eq!(write(&mut it, 0x1600, 0, 1), Ok(()));
    }

    #[test]
    fn assignment_takes_existing_pdos_of_its_direction_once() {
        let mut it = dictionary();
        assert_eq!(write(&mut it, 0x1C12, 0, 0), Ok(()));
        assert_eq!(CopyPlan::new(&it, Direction::Outputs).byte_length(), 0);
        assert_eq!(write(&mut it, 0x1C12, 1, 0x1A00), Err(0x0604_0041));
        assert_eq!(write(&mut it, 0x1C12, 1, 0x1602), Err(0x0602_0000));
        assert_eq!(write(&mut it, 0x1C12, 1, 0x1601), Ok(()));
        assert_eq!(write(&mut it, 0x1C12, 2, 0x1601), Ok(()));
        assert_eq!(write(&mut it, 0x1C12, 0, 2), Err(0x0604_0041), "the same twice");
        assert_eq!(write(&mut it, 0x1C12, 2, 0x1600), Ok(()));
        it.set_process_data_limit(16);
        assert_eq!(write(&mut it, 0x1C12, 0, 2), Err(0x0604_0042), "17 bits");
        it.set_process_data_limit(17);
        assert_eq!(write(&mut it, 0x1C12, 0, 2), Ok(()));
        assert_eq!(CopyPlan::new(&it, Direction::Outputs).byte_length(), 3);
    }

    #[test]
    fn complete_access_writes_a_whole_assignment() {
        let mut it = dictionary();
        let assign = |it: &mut ObjectDictionary, bytes: &[u8]| {
            it.download_complete(0x1C12, 0, bytes, AlState::PreOp).map_err(|code| code.0)
        };
        assert_eq!(assign(&mut it, &[2, 0, 0x01, 0x16, 0x00, 0x16]), Ok(()));
        assert_eq!(it.upload_complete(0x1C12, 0, AlState::Op), Ok(vec![2, 0, 0x01, 0x16, 0x00, 0x16]));
        assert_eq!(assign(&mut it, &[1, 0, 0x02, 0x16]), Err(0x0602_0000));
        assert_eq!(it.value(0x1C12, 0), Some(2), "nothing was written");
        assert_eq!(assign(&mut it, &[0, 0]), Ok(()));
        assert_eq!(it.upload_complete(0x1C12, 0, AlState::Op), Ok(vec![0, 0]));
    }

    #[test]
    fn mapping_objects_without_a_name_are_named() {
        let name = |index| mapping_object(&Pdo { name: String::new(), ..pdo(index, &[]) }, 0).name;
        assert_eq!(&*name(0x1600), "RxPDO mapping 1");
        assert_eq!(&*name(0x1A10), "TxPDO mapping 17");
        assert_eq!(mapping_object(&pdo(0x1600, &[]), 0).name.as_ref(), "PDO");
    }

    #[test]
    fn inputs_come_out_where_they_are_mapped() {
        let mut it = dictionary();
        let id = it.find(0x6003, 0).expect("0x6003 was added above");
        it.set(id, 0x5A);
        let plan = CopyPlan::new(&it, Direction::Inputs);
        assert!(plan.contains(id));
        let mut bytes = [0; 2];
        plan.put(&it, &mut bytes);
        assert_eq!(bytes, [0x5A, 0]);
        plan.put(&it, &mut []);
    }
}
