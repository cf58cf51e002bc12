//! Objects of the dictionary and their entries (ETG.1000.6, 5.6.7).

use std::borrow::Cow;
use std::sync::LazyLock;

use ethercat::al::AlState;
use ethercat::wire::coe::{AccessRights, ObjectCode};
use smallvec::{SmallVec, smallvec};

use super::data_type::DataType;

/// Access to read and write in every state with a mailbox.
pub const READ_WRITE: AccessRights = AccessRights::READ.with(AccessRights::WRITE);

/// True if `access` grants reading in `state`.
#[must_use]
pub const fn reads_in(access: AccessRights, state: AlState) -> bool {
    access.0 & state_bit(state) != 0
}

/// True if `access` grants writing in `state`.
#[must_use]
pub const fn writes_in(access: AccessRights, state: AlState) -> bool {
    access.0 >> 3 & state_bit(state) != 0
}

const fn state_bit(state: AlState) -> u16 {
    match state {
        AlState::PreOp => AccessRights::READ_PRE_OP.0,
        AlState::SafeOp => AccessRights::READ_SAFE_OP.0,
        AlState::Op => AccessRights::READ_OP.0,
        AlState::Init | AlState::Bootstrap => 0,
    }
}

/// Values that an entry accepts.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Allowed {
    /// Any value of its type.
    #[default]
    Any,
    /// From the first to the second, both included.
    Range(i64, i64),
    /// Only these.
    OneOf(Vec<i64>),
}

impl Allowed {
    /// True if `value` may be written.
    #[must_use]
    pub fn permits(&self, value: i64) -> bool {
        match self {
            Self::Any => true,
            Self::Range(minimum, maximum) => (*minimum..=*maximum).contains(&value),
            Self::OneOf(values) => values.contains(&value),
        }
    }
}

/// One sub-index: description and value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Sub-index.
    pub sub_index: u8,
    /// Type.
    pub data_type: DataType,
    /// Length in bits: of the type, or the longest of a string.
    pub bit_length: u16,
    /// Access rights.
    pub access: AccessRights,
    /// Name.
    pub name: Cow<'static, str>,
    /// Values accepted in a write by SDO.
    pub allowed: Allowed,
    /// Value, little-endian; at most `byte_length` bytes.
    pub(super) value: SmallVec<[u8; 8]>,
    /// Changes with each cycle, and is no setting.
    pub(super) is_set_point: bool,
}

/// Name of an entry without a name; one for all SubDevices.
pub(crate) fn numbered(sub_index: u8) -> &'static str {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..=u8::MAX).map(|number| format!("SubIndex {number:03}")).collect());
    &NAMES[usize::from(sub_index)]
}

impl Entry {
    /// An entry of value zero.
    ///
    /// A string type has no length yet: give it one with [`Entry::with_text`] or
    /// [`Entry::with_bit_length`].
    #[must_use]
    pub fn new(
        sub_index: u8,
        name: impl Into<Cow<'static, str>>,
        data_type: DataType,
        access: AccessRights,
    ) -> Self {
        let bit_length = data_type.bit_length().unwrap_or(0);
        let value = smallvec![0; usize::from(bit_length.div_ceil(8))];
        let (name, allowed) = (name.into(), Allowed::Any);
        Self { sub_index, data_type, bit_length, access, name, allowed, value, is_set_point: false }
    }

    /// Sets the value, cut to the entry's length.
    #[must_use]
    pub fn with_value(mut self, value: i64) -> Self {
        self.set_integer(value);
        self
    }

    /// Sets the text, and the length of the entry to its length.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        self.value = SmallVec::from_slice(text.as_bytes());
        self.bit_length = u16::try_from(self.value.len() * 8).unwrap_or(!7);
        self.value.truncate(usize::from(self.bit_length / 8));
        self
    }

    /// Sets the length, with all bits zero.
    #[must_use]
    pub fn with_bit_length(mut self, bit_length: u16) -> Self {
        self.bit_length = bit_length;
        self.value = smallvec![0; self.byte_length()];
        self
    }

    /// Accepts only these values.
    #[must_use]
    pub fn with_allowed(mut self, allowed: Allowed) -> Self {
        self.allowed = allowed;
        self
    }

    /// Bytes of the longest value, as in an SDO.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        usize::from(self.bit_length.div_ceil(8))
    }

    /// Bytes of the value, as in an SDO.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.value
    }

    /// First 64 bits of the value, sign-extended for signed types.
    #[must_use]
    pub fn integer(&self) -> i64 {
        decode(&self.value, self.data_type)
    }

    /// Sets an integer, cut to the entry's bits; a string type takes its bytes.
    pub fn set_integer(&mut self, value: i64) {
        let kept = match self.bit_length {
            bits @ 0..64 => value as u64 & ((1 << bits) - 1),
            _ => value as u64,
        };
        let length = self.byte_length();
        for (byte, new) in self.value.iter_mut().zip(kept.to_le_bytes()).take(length) {
            *byte = new;
        }
    }
}

/// Integer in `bytes`, sign-extended for signed types; bytes past the eighth are ignored.
pub(super) fn decode(bytes: &[u8], data_type: DataType) -> i64 {
    let length = bytes.len().min(8);
    let mut raw = [0; 8];
    raw[..length].copy_from_slice(&bytes[..length]);
    let unsigned = u64::from_le_bytes(raw);
    if data_type.is_signed() && (1..8).contains(&length) {
        let unused = 64 - 8 * length;
        (unsigned << unused) as i64 >> unused
    } else {
        unsigned as i64
    }
}

/// An object: its entries in the order of their sub-indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Index.
    pub index: u16,
    /// Kind.
    pub code: ObjectCode,
    /// Type of the value, of the array's elements, or of the record (ETG.1000.6, Table 64 ff.; 0
    /// for a record without a specific type).
    pub data_type_code: u16,
    /// Name.
    pub name: Cow<'static, str>,
    /// Entries, ascending by sub-index.
    pub(super) entries: Vec<Entry>,
}

impl Object {
    /// An object of a single value.
    #[must_use]
    pub fn variable(index: u16, entry: Entry) -> Self {
        Self {
            index,
            code: ObjectCode::VARIABLE,
            data_type_code: entry.data_type.code(),
            name: entry.name.clone(),
            entries: vec![entry],
        }
    }

    /// A record of `entries` (sub-indices 1 and up), with a read-only sub-index 0 that counts them.
    #[must_use]
    pub fn record(
        index: u16,
        name: impl Into<Cow<'static, str>>,
        data_type_code: u16,
        entries: Vec<Entry>,
    ) -> Self {
        Self::counted(ObjectCode::RECORD, index, name, data_type_code, entries)
    }

    /// An array of `entries` (sub-indices 1 and up, of one type), with a read-only sub-index 0.
    #[must_use]
    pub fn array(index: u16, name: impl Into<Cow<'static, str>>, entries: Vec<Entry>) -> Self {
        let code = entries.first().map_or(0, |entry| entry.data_type.code());
        Self::counted(ObjectCode::ARRAY, index, name, code, entries)
    }

    fn counted(
        code: ObjectCode,
        index: u16,
        name: impl Into<Cow<'static, str>>,
        data_type_code: u16,
        mut entries: Vec<Entry>,
    ) -> Self {
        entries.sort_by_key(|entry| entry.sub_index);
        let highest = entries.last().map_or(0, |entry| entry.sub_index);
        let count = Entry::new(0, numbered(0), DataType::U8, AccessRights::READ);
        let count = count.with_value(i64::from(highest));
        entries.insert(0, count);
        Self { index, code, data_type_code, name: name.into(), entries }
    }

    /// Sets count and access of sub-index 0.
    #[must_use]
    pub fn with_count(mut self, count: u8, access: AccessRights) -> Self {
        if let Some(entry) = self.entries.first_mut() {
            entry.access = access;
            entry.set_integer(i64::from(count));
        }
        self
    }

    /// The entries, ascending by sub-index.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Entry at `sub_index`.
    #[must_use]
    pub fn entry(&self, sub_index: u8) -> Option<&Entry> {
        self.position(sub_index).map(|position| &self.entries[position])
    }

    /// Highest sub-index the object can have.
    #[must_use]
    pub fn highest_sub_index(&self) -> u8 {
        self.entries.last().map_or(0, |entry| entry.sub_index)
    }

    pub(crate) fn entry_mut(&mut self, sub_index: u8) -> Option<&mut Entry> {
        self.position(sub_index).map(|position| &mut self.entries[position])
    }

    /// Adds an entry, in place of one with the same sub-index; a read-only sub-index 0 is updated.
    pub(crate) fn add_entry(&mut self, entry: Entry) {
        match self.entries.binary_search_by_key(&entry.sub_index, |other| other.sub_index) {
            Ok(position) => self.entries[position] = entry,
            Err(position) => self.entries.insert(position, entry),
        }
        if self.code == ObjectCode::VARIABLE && self.entries.len() > 1 {
            self.code = ObjectCode::RECORD;
        }
        let highest = i64::from(self.highest_sub_index());
        match self.entries.first_mut() {
            Some(count) if count.sub_index == 0 && count.access == AccessRights::READ => {
                count.set_integer(highest);
            }
            _ => {}
        }
    }

    pub(super) fn position(&self, sub_index: u8) -> Option<usize> {
        self.entries.binary_search_by_key(&sub_index, |entry| entry.sub_index).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_follows_the_state() {
        let access =
            AccessRights::READ.with(AccessRights::WRITE_PRE_OP).with(AccessRights::RX_PDO_MAPPABLE);
        assert!(reads_in(access, AlState::PreOp) && reads_in(access, AlState::Op));
        assert!(writes_in(access, AlState::PreOp));
        assert!(!writes_in(access, AlState::SafeOp) && !writes_in(access, AlState::Op));
        assert!(!reads_in(access, AlState::Init));
    }

    #[test]
    fn integers_keep_their_sign_and_lose_what_does_not_fit() {
        let mut entry = Entry::new(0, "", DataType::I16, AccessRights::READ).with_value(-2);
        assert_eq!((entry.bytes(), entry.integer()), (&[0xFE, 0xFF][..], -2));
        entry.set_integer(0x1_8000);
        assert_eq!(entry.integer(), -32768);
        let bits = Entry::new(0, "", DataType::Bits(3), AccessRights::READ).with_value(0xFF);
        assert_eq!(bits.integer(), 7);
        let wide = Entry::new(0, "", DataType::Unsigned(64), AccessRights::READ).with_value(-1);
        assert_eq!(wide.bytes(), [0xFF; 8]);
    }

    #[test]
    fn arrays_count_themselves() {
        let entries = (1..=3).map(|sub| Entry::new(sub, "", DataType::U8, AccessRights::READ)).collect();
        let object = Object::array(0x1C00, "Sync manager types", entries);
        assert_eq!(object.entry(0).map(Entry::integer), Some(3));
        assert_eq!((object.highest_sub_index(), object.data_type_code), (3, 5));
        assert!(object.entry(4).is_none());
    }
}
