//! Complete access: all sub-indices of an object in one SDO (ETG.1000.6, 5.6.2.1.1).
//!
//! Sub-index 0 comes first, padded to 16 bits, unless the access starts at sub-index 1. Entries
//! follow without gaps. Entries shorter than a byte are packed bit by bit; every other entry starts
//! on a byte.

use ethercat::al::AlState;
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::ObjectCode;

use super::dictionary::{ObjectDictionary, check_read, check_value, check_write};
use super::mapping;
use super::object::{Entry, Object};

impl ObjectDictionary {
    /// Serves an SDO upload with complete access from sub-index `first`, 0 or 1: the entries up to
    /// the number in sub-index 0.
    ///
    /// # Errors
    /// 0x06020000 without such an object, 0x06010000 for a single value or a `first` above 1,
    /// 0x06010004 if an entry has a varying length, 0x06010001 or 0x08000022 if an entry cannot be
    /// read.
    pub fn upload_complete(&self, index: u16, first: u8, state: AlState) -> Result<Vec<u8>, AbortCode> {
        let object = checked(self.object(index)?, first)?;
        let count = object.entry(0).map_or(0, Entry::integer);
        let mut bytes = Vec::new();
        let mut bits = 0;
        for entry in object.entries().iter().skip(usize::from(first)) {
            if i64::from(entry.sub_index) > count {
                break;
            }
            check_read(entry, state)?;
            bits = aligned(bits, entry);
            bytes.resize((bits + usize::from(entry.bit_length)).div_ceil(8), 0);
            mapping::copy_bits(entry.bytes(), 0, &mut bytes, bits, usize::from(entry.bit_length));
            bits += usize::from(entry.bit_length);
            if entry.sub_index == 0 {
                bits = SUB_INDEX_0_BITS;
            }
        }
        bytes.resize(bits.div_ceil(8), 0);
        Ok(bytes)
    }

    /// Executes an SDO download with complete access from sub-index `first`, 0 or 1: all of it or
    /// none.
    ///
    /// A writable sub-index 0 is set last, as PDO mapping and assignment need it. Read-only entries
    /// must be downloaded with their present values.
    ///
    /// # Errors
    /// As [`ObjectDictionary::upload_complete`] and [`ObjectDictionary::download`].
    pub fn download_complete(
        &mut self,
        index: u16,
        first: u8,
        bytes: &[u8],
        state: AlState,
    ) -> Result<(), AbortCode> {
        let object = checked(self.object(index)?, first)?;
        let values = split(object, first, bytes)?;
        let before = object.clone();
        let result = self.write_all(index, &values, state);
        if result.is_err() {
            self.add(before);
        }
        result
    }

    /// Largest number of bytes of a download with complete access.
    ///
    /// # Errors
    /// As [`ObjectDictionary::upload_complete`]; 0x06010002 or 0x08000022 if no entry can be
    /// written.
    pub fn download_complete_limit(
        &self,
        index: u16,
        first: u8,
        state: AlState,
    ) -> Result<usize, AbortCode> {
        let object = checked(self.object(index)?, first)?;
        let mut refusal = AbortCode::READ_ONLY;
        let mut writable = false;
        let mut bits = 0;
        for entry in object.entries().iter().skip(usize::from(first)) {
            match check_write(entry, state) {
                Ok(()) => writable = true,
                Err(AbortCode::DEVICE_STATE) => refusal = AbortCode::DEVICE_STATE,
                Err(_) => {}
            }
            bits = aligned(bits, entry) + usize::from(entry.bit_length);
            if entry.sub_index == 0 {
                bits = SUB_INDEX_0_BITS;
            }
        }
        if writable { Ok(bits.div_ceil(8)) } else { Err(refusal) }
    }

    fn write_all(&mut self, index: u16, values: &[(u8, Vec<u8>)], state: AlState) -> Result<(), AbortCode> {
        let mut count = None;
        for (sub_index, value) in values {
            let id = self.find(index, *sub_index)?;
            let entry = self.entry(id);
            match check_write(entry, state) {
                Ok(()) if *sub_index == 0 => {
                    count = Some(value);
                    check_value(entry, value)?;
                    self.set(id, 0);
                }
                Ok(()) => self.download(index, *sub_index, value, state)?,
                Err(_) if entry.bytes() == value.as_slice() => {}
                Err(refusal) => return Err(refusal),
            }
        }
        match count {
            Some(count) => self.download(index, 0, count, state),
            None => Ok(()),
        }
    }
}

/// Sub-index 0 is padded to 16 bits.
const SUB_INDEX_0_BITS: usize = 16;

fn checked(object: &Object, first: u8) -> Result<&Object, AbortCode> {
    if object.code == ObjectCode::VARIABLE || first > 1 {
        return Err(AbortCode::UNSUPPORTED_ACCESS);
    }
    if object.entries().iter().any(|entry| entry.data_type.bit_length().is_none()) {
        return Err(AbortCode::NO_COMPLETE_ACCESS);
    }
    Ok(object)
}

fn aligned(bits: usize, entry: &Entry) -> usize {
    if entry.bit_length < 8 { bits } else { bits.next_multiple_of(8) }
}

/// Splits `bytes` into the values of the object's entries. They may end behind the last entry that
/// a downloaded or present sub-index 0 counts.
fn split(object: &Object, first: u8, bytes: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, AbortCode> {
    let count = match first {
        0 => i64::from(*bytes.first().ok_or(AbortCode::TOO_SHORT)?),
        _ => object.entry(0).map_or(0, Entry::integer),
    };
    let mut values = Vec::new();
    let mut bits = 0;
    for entry in object.entries().iter().skip(usize::from(first)) {
        let start = aligned(bits, entry);
        let end = start + usize::from(entry.bit_length);
        if end > 8 * bytes.len() {
            if i64::from(entry.sub_index) <= count {
                return Err(AbortCode::TOO_SHORT);
            }
            break;
        }
        let mut value = vec![0; entry.byte_length()];
        mapping::copy_bits(bytes, start, &mut value, 0, usize::from(entry.bit_length));
        values.push((entry.sub_index, value));
        bits = if entry.sub_index == 0 { SUB_INDEX_0_BITS } else { end };
    }
    if bytes.len() > bits.div_ceil(8) {
        return Err(AbortCode::TOO_LONG);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::super::data_type::DataType;
    use super::super::object::READ_WRITE;
    use super::*;
    use ethercat::wire::coe::AccessRights;

    const OP: AlState = AlState::Op;

    fn dictionary() -> ObjectDictionary {
        let entry = |sub, data_type, value| Entry::new(sub, "", data_type, READ_WRITE).with_value(value);
        let mut dictionary = ObjectDictionary::new();
        dictionary.add(Object::record(
            0x2000,
            "mixed",
            0,
            vec![
                entry(1, DataType::Boolean, 1),
                entry(2, DataType::Bits(2), 2),
                entry(3, DataType::U16, 0x1234),
                entry(4, DataType::U8, 0x56),
            ],
        ));
        dictionary.add(Object::variable(0x2001, entry(0, DataType::U8, 0)));
        let text = Entry::new(1, "", DataType::VisibleString, AccessRights::READ).with_text("x");
        dictionary.add(Object::record(0x2002, "text", 0, vec![text]));
        dictionary
    }

    #[test]
    fn sub_index_0_is_padded_and_bits_are_packed() {
        let dictionary = dictionary();
        assert_eq!(dictionary.upload_complete(0x2000, 0, OP), Ok(vec![4, 0, 0b101, 0x34, 0x12, 0x56]));
        assert_eq!(dictionary.upload_complete(0x2000, 1, OP), Ok(vec![0b101, 0x34, 0x12, 0x56]));
        assert_eq!(dictionary.download_complete_limit(0x2000, 0, OP), Ok(6));
        assert_eq!(dictionary.download_complete_limit(0x2000, 1, OP), Ok(4));
    }

    #[test]
    fn download_is_all_or_nothing() {
        let mut dictionary = dictionary();
        assert_eq!(dictionary.download_complete(0x2000, 1, &[0b010, 0xCD, 0xAB, 0x99], OP), Ok(()));
        assert_eq!(dictionary.upload_complete(0x2000, 1, OP), Ok(vec![0b010, 0xCD, 0xAB, 0x99]));
        let refused = |dictionary: &mut ObjectDictionary, first, bytes: &[u8]| {
            let before = dictionary.upload_complete(0x2000, 0, OP);
            let result = dictionary.download_complete(0x2000, first, bytes, OP).map_err(|code| code.0);
            assert_eq!(dictionary.upload_complete(0x2000, 0, OP), before);
            result
        };
        // Sub-index 0 is read-only and holds 4.
        assert_eq!(refused(&mut dictionary, 0, &[3, 0, 0b111, 1, 1, 1]), Err(0x0601_0002));
        assert_eq!(refused(&mut dictionary, 0, &[4, 0, 0b111, 1, 1]), Err(0x0607_0013));
        assert_eq!(refused(&mut dictionary, 0, &[4, 0, 0b111, 1, 1, 1, 1]), Err(0x0607_0012));
        assert_eq!(refused(&mut dictionary, 0, &[]), Err(0x0607_0013));
        assert_eq!(dictionary.download_complete(0x2000, 0, &[4, 0, 0b111, 1, 2, 3], OP), Ok(()));
        assert_eq!(dictionary.upload_complete(0x2000, 1, OP), Ok(vec![0b111, 1, 2, 3]));
    }

    #[test]
    fn single_values_and_strings_have_no_complete_access() {
        let dictionary = dictionary();
        assert_eq!(dictionary.upload_complete(0x2001, 0, OP), Err(AbortCode(0x0601_0000)));
        assert_eq!(dictionary.upload_complete(0x2000, 2, OP), Err(AbortCode(0x0601_0000)));
        assert_eq!(dictionary.upload_complete(0x2002, 0, OP), Err(AbortCode(0x0601_0004)));
        assert_eq!(dictionary.upload_complete(0x2003, 0, OP), Err(AbortCode(0x0602_0000)));
    }
}
