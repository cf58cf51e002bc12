//! Object dictionary: shared by SDOs, PDOs and the application.

pub mod mapping;

use std::sync::Arc;

use ethercat::al::AlState;
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::AccessRights;

use super::data_type::DataType;
use super::object::{Entry, Object, decode, reads_in, writes_in};

/// Objects by index.
///
/// Objects are added while a SubDevice is built; from then on their number and lengths stay as they
/// are, so an [`EntryId`] stays valid and process data is copied without a search. A clone shares
/// the objects until they change.
#[derive(Clone, Debug, Default)]
pub struct ObjectDictionary {
    objects: Vec<Arc<Object>>,
    /// Largest number of bits of all PDOs of one direction together.
    process_data_limit: usize,
    changes: u64,
    /// Changes of set-points among them.
    set_point_changes: u64,
}

/// Handle of an entry, valid only in the dictionary that returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId {
    object: u16,
    entry: u16,
}

/// Default limit of process data of one direction, in bytes: the capacity of one datagram.
pub const PROCESS_DATA_LIMIT: usize = 1486;

impl ObjectDictionary {
    /// A dictionary without objects.
    #[must_use]
    pub fn new() -> Self {
        Self {
            objects: Vec::new(),
            process_data_limit: 8 * PROCESS_DATA_LIMIT,
            changes: 0,
            set_point_changes: 0,
        }
    }

    /// Adds an object, in place of one with the same index. Earlier handles become stale.
    pub fn add(&mut self, object: Object) {
        self.changes += 1;
        match self.objects.binary_search_by_key(&object.index, |other| other.index) {
            Ok(position) => self.objects[position] = Arc::new(object),
            Err(position) => self.objects.insert(position, Arc::new(object)),
        }
    }

    /// Objects, ascending by index.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.iter().map(Arc::as_ref)
    }

    /// Object at `index`.
    ///
    /// # Errors
    /// 0x06020000 if there is none.
    pub fn object(&self, index: u16) -> Result<&Object, AbortCode> {
        self.position(index).map(|position| &*self.objects[position])
    }

    /// Handle of entry `index`:`sub_index`.
    ///
    /// # Errors
    /// 0x06020000 without such an object, 0x06090011 without such a sub-index.
    pub fn find(&self, index: u16, sub_index: u8) -> Result<EntryId, AbortCode> {
        let object = self.position(index)?;
        let entry = self.objects[object].position(sub_index).ok_or(AbortCode::NO_SUB_INDEX)?;
        // A u16 index space holds at most 65536 objects of at most 256 entries.
        Ok(EntryId { object: object as u16, entry: entry as u16 })
    }

    /// Entry of `id`.
    ///
    /// # Panics
    /// With an id of another dictionary.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> &Entry {
        &self.objects[usize::from(id.object)].entries[usize::from(id.entry)]
    }

    /// Object at `index`, for changes while the SubDevice is built.
    pub(crate) fn object_mut(&mut self, index: u16) -> Option<&mut Object> {
        self.changes += 1;
        self.position(index).ok().map(|position| Arc::make_mut(&mut self.objects[position]))
    }

    /// Entry of `id`, to change its value.
    pub(super) fn entry_mut(&mut self, id: EntryId) -> &mut Entry {
        self.count_change(id);
        self.shown_mut(id)
    }

    fn count_change(&mut self, id: EntryId) {
        self.changes += 1;
        self.set_point_changes += u64::from(self.entry(id).is_set_point);
    }

    /// Has changes of an entry count apart: a set-point, that the application reads for itself.
    pub(crate) fn mark_set_point(&mut self, id: EntryId) {
        self.shown_mut(id).is_set_point = true;
    }

    /// Copies the object of an entry, if it is shared with other dictionaries.
    pub(super) fn own(&mut self, id: EntryId) {
        Arc::make_mut(&mut self.objects[usize::from(id.object)]);
    }

    fn shown_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut Arc::make_mut(&mut self.objects[usize::from(id.object)]).entries[usize::from(id.entry)]
    }

    /// First 64 bits of the value, sign-extended for signed types.
    #[must_use]
    pub fn get(&self, id: EntryId) -> i64 {
        self.entry(id).integer()
    }

    /// Sets a value from inside the SubDevice: without access rights or range, cut to the entry's
    /// bits.
    pub fn set(&mut self, id: EntryId, value: i64) {
        let before = self.get(id);
        self.show(id, value);
        if self.get(id) != before {
            self.count_change(id);
        }
    }

    /// Sets a value that the application shows, and does not read: no change for it.
    pub(crate) fn show(&mut self, id: EntryId, value: i64) {
        // The same again is not written: an object that others may share costs as much as many that
        // are read.
        if self.get(id) != value {
            self.shown_mut(id).set_integer(value);
        }
    }

    /// Number of changes of objects and values so far, without changes by [`show`](Self::show).
    /// While it is constant, the application need not read anything again.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The same without set-points: while it stays as it is, the application need not read its
    /// settings again.
    pub(crate) fn setting_changes(&self) -> u64 {
        self.changes - self.set_point_changes
    }

    /// Takes process data for an entry, from bit `from` on; the same value again is no change.
    pub(super) fn take(&mut self, id: EntryId, process_data: &[u8], from: usize) {
        let entry = self.entry(id);
        let bits = usize::from(entry.bit_length);
        let is_whole = from % 8 == 0 && bits % 8 == 0;
        if is_whole && process_data.get(from / 8..(from + bits) / 8) == Some(&entry.value[..]) {
            return;
        }
        let before = entry.integer();
        mapping::copy_bits(process_data, from, &mut self.shown_mut(id).value, 0, bits);
        if bits > 64 || self.get(id) != before {
            self.count_change(id);
        }
    }

    /// Value at `index`:`sub_index`, or `None` if there is no such entry.
    #[must_use]
    pub fn value(&self, index: u16, sub_index: u8) -> Option<i64> {
        self.find(index, sub_index).ok().map(|id| self.get(id))
    }

    /// Serves an SDO upload of one entry: returns the value's bytes.
    ///
    /// # Errors
    /// 0x06020000 and 0x06090011 if there is no such entry, 0x06010001 if it is write-only,
    /// 0x08000022 if it cannot be read in `state`.
    pub fn upload(&self, index: u16, sub_index: u8, state: AlState) -> Result<&[u8], AbortCode> {
        let entry = self.entry(self.find(index, sub_index)?);
        check_read(entry, state)?;
        Ok(entry.bytes())
    }

    /// Executes an SDO download of one entry.
    ///
    /// # Errors
    /// 0x06020000 and 0x06090011 if there is no such entry, 0x06010002 if it is read-only,
    /// 0x08000022 if it cannot be written in `state`, 0x06070012 and 0x06070013 if `bytes` is too
    /// long or too short, 0x06090030 if the value is out of range, and errors of PDO mapping and
    /// assignment.
    pub fn download(
        &mut self,
        index: u16,
        sub_index: u8,
        bytes: &[u8],
        state: AlState,
    ) -> Result<(), AbortCode> {
        let id = self.find(index, sub_index)?;
        let entry = self.entry(id);
        check_write(entry, state)?;
        check_value(entry, bytes)?;
        mapping::check_write(self, index, sub_index, decode(bytes, entry.data_type))?;
        self.store(id, bytes);
        Ok(())
    }

    /// Checks a download to this entry before its data comes; returns the most bytes it takes.
    ///
    /// # Errors
    /// As [`ObjectDictionary::download`], as far as they do not depend on the value.
    pub fn download_limit(&self, index: u16, sub_index: u8, state: AlState) -> Result<usize, AbortCode> {
        let entry = self.entry(self.find(index, sub_index)?);
        check_write(entry, state)?;
        Ok(entry.byte_length())
    }

    /// Largest number of bits of all PDOs of one direction together.
    #[must_use]
    pub fn process_data_limit(&self) -> usize {
        self.process_data_limit
    }

    /// Limits the process data of one direction to this many bits.
    pub fn set_process_data_limit(&mut self, bits: usize) {
        self.process_data_limit = bits;
    }

    pub(super) fn store(&mut self, id: EntryId, bytes: &[u8]) {
        let entry = self.entry_mut(id);
        if entry.data_type.is_string() {
            entry.value.clear();
            entry.value.extend_from_slice(bytes);
            if entry.data_type == DataType::OctetString {
                // Process data may contain it, so it has only one length.
                let length = entry.byte_length();
                entry.value.resize(length, 0);
            }
        } else {
            let value = decode(bytes, entry.data_type);
            entry.set_integer(value);
        }
    }

    fn position(&self, index: u16) -> Result<usize, AbortCode> {
        self.objects.binary_search_by_key(&index, |object| object.index).map_err(|_| AbortCode::NO_OBJECT)
    }
}

pub(super) fn check_read(entry: &Entry, state: AlState) -> Result<(), AbortCode> {
    if reads_in(entry.access, state) {
        Ok(())
    } else if entry.access.0 & AccessRights::READ.0 != 0 {
        Err(AbortCode::DEVICE_STATE)
    } else {
        Err(AbortCode::WRITE_ONLY)
    }
}

pub(super) fn check_write(entry: &Entry, state: AlState) -> Result<(), AbortCode> {
    if writes_in(entry.access, state) {
        Ok(())
    } else if entry.access.0 & AccessRights::WRITE.0 != 0 {
        Err(AbortCode::DEVICE_STATE)
    } else {
        Err(AbortCode::READ_ONLY)
    }
}

pub(super) fn check_value(entry: &Entry, bytes: &[u8]) -> Result<(), AbortCode> {
    if bytes.len() > entry.byte_length() {
        return Err(AbortCode::TOO_LONG);
    }
    if entry.data_type.is_string() {
        return Ok(());
    }
    if bytes.len() < entry.byte_length() {
        return Err(AbortCode::TOO_SHORT);
    }
    let value = decode(bytes, entry.data_type);
    let fits = entry.bit_length >= 64 || entry.data_type.is_signed() || (value >> entry.bit_length) == 0;
    if fits && entry.allowed.permits(value) { Ok(()) } else { Err(AbortCode::VALUE_RANGE) }
}

#[cfg(test)]
mod tests {
    use super::super::object::{Allowed, READ_WRITE};
    use super::*;

    fn dictionary() -> ObjectDictionary {
        let mut dictionary = ObjectDictionary::new();
        let range = Allowed::Range(-5, 5);
        dictionary.add(Object::variable(
            0x2001,
            Entry::new(0, "limited", DataType::I16, READ_WRITE).with_allowed(range),
        ));
        dictionary
            .add(Object::variable(0x2000, Entry::new(0, "secret", DataType::U8, AccessRights::WRITE)));
        dictionary.add(Object::record(
            0x2002,
            "record",
            0,
            vec![
                Entry::new(
                    1,
                    "set-up",
                    DataType::Boolean,
                    AccessRights::READ.with(AccessRights::WRITE_PRE_OP),
                ),
                Entry::new(3, "text", DataType::VisibleString, READ_WRITE).with_text("abcd"),
            ],
        ));
        dictionary
    }

    #[test]
    fn each_refusal_has_its_abort_code() {
        let mut dictionary = dictionary();
        let upload = |index, sub| dictionary.upload(index, sub, AlState::Op).map(<[u8]>::to_vec);
        assert_eq!(upload(0x1FFF, 0), Err(AbortCode(0x0602_0000)));
        assert_eq!(upload(0x2001, 1), Err(AbortCode(0x0609_0011)));
        assert_eq!(upload(0x2002, 2), Err(AbortCode(0x0609_0011)), "a gap in the record");
        assert_eq!(upload(0x2000, 0), Err(AbortCode(0x0601_0001)));
        assert_eq!(upload(0x2002, 0), Ok(vec![3]));
        let mut download =
            |index, sub, bytes: &[u8]| dictionary.download(index, sub, bytes, AlState::Op).map_err(|e| e.0);
        assert_eq!(download(0x2002, 0, &[1]), Err(0x0601_0002));
        assert_eq!(download(0x2002, 1, &[1]), Err(0x0800_0022));
        assert_eq!(download(0x2001, 0, &[1]), Err(0x0607_0013));
        assert_eq!(download(0x2001, 0, &[1, 0, 0]), Err(0x0607_0012));
        assert_eq!(download(0x2001, 0, &[6, 0]), Err(0x0609_0030));
        assert_eq!(download(0x2001, 0, &(-5_i16).to_le_bytes()), Ok(()));
        assert_eq!(download(0x2002, 3, b"abcde"), Err(0x0607_0012));
        assert_eq!(download(0x2002, 3, b"xy"), Ok(()));
        assert_eq!(dictionary.value(0x2001, 0), Some(-5));
        assert_eq!(dictionary.upload(0x2002, 3, AlState::Op), Ok(&b"xy"[..]));
        assert_eq!(dictionary.download(0x2002, 1, &[2], AlState::PreOp), Err(AbortCode(0x0609_0030)));
        assert_eq!(dictionary.download(0x2002, 1, &[1], AlState::PreOp), Ok(()));
    }

    #[test]
    fn objects_stand_in_order_however_they_came() {
        let indices: Vec<u16> = dictionary().objects().map(|object| object.index).collect();
        assert_eq!(indices, [0x2000, 0x2001, 0x2002]);
    }
}
