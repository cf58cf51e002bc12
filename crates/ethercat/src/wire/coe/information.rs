//! The SDO information service: the object dictionary described by the SubDevice itself
//! (ETG.1000.6, 5.6.3.2 to 5.6.3.6 "SDO Information").
//!
//! Responses may be longer than a mailbox: [`SdoInformation::fragments_left`] counts down to 0, and
//! the client joins the data of all fragments before [`ObjectDescription::parse`] and its sisters
//! read it.

use super::{CoeFormatError, CoeHeader, CoeService, expect, field, read_u16, room};
use crate::sdo_abort::AbortCode;
use crate::table::bit_set;

/// Bytes of CoE and SDO information header.
pub const INFORMATION_HEADER_LENGTH: usize = 6;

/// One message of the SDO information service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdoInformation<'a> {
    /// Number of fragments still to come; 0 in requests and in the last fragment.
    pub fragments_left: u16,
    /// More fragments follow; goes with `fragments_left`.
    pub incomplete: bool,
    /// The request or the answer.
    pub service: SdoInformationService<'a>,
}

/// Contents of an SDO information message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdoInformationService<'a> {
    /// Request for the list of objects.
    ListRequest(ListType),
    /// A fragment: of all fragments joined, the first two bytes repeat the list type, then follow
    /// indices, two bytes each; or, for [`ListType::LENGTHS`], five lengths.
    ListResponse(&'a [u8]),
    /// Describe an object.
    ObjectRequest {
        /// Object index.
        index: u16,
    },
    /// A fragment of an [`ObjectDescription`].
    ObjectResponse(&'a [u8]),
    /// Describe an entry of an object.
    EntryRequest {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Values that shall follow the description.
        value_info: ValueInfo,
    },
    /// A fragment of an [`EntryDescription`].
    EntryResponse(&'a [u8]),
    /// The request failed.
    Error(AbortCode),
}

/// Kind of a list of objects (ETG.1000.6, 5.6.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListType(pub u16);

impl ListType {
    /// No indices: how long the five lists below are.
    pub const LENGTHS: Self = Self(0);
    /// All objects.
    pub const ALL: Self = Self(1);
    /// Objects that may be mapped into an RxPDO.
    pub const RX_PDO_MAPPABLE: Self = Self(2);
    /// Objects that may be mapped into a TxPDO.
    pub const TX_PDO_MAPPABLE: Self = Self(3);
    /// Objects to be stored for a device replacement.
    pub const STORED_FOR_REPLACEMENT: Self = Self(4);
    /// Objects used as start-up parameters.
    pub const STARTUP_PARAMETERS: Self = Self(5);
}

/// Values that follow an entry description (ETG.1000.6, 5.6.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValueInfo(pub u8);

impl ValueInfo {
    /// The unit type, 2 bytes.
    pub const UNIT: Self = Self(0x08);
    /// The default value.
    pub const DEFAULT: Self = Self(0x10);
    /// The minimum value.
    pub const MINIMUM: Self = Self(0x20);
    /// The maximum value.
    pub const MAXIMUM: Self = Self(0x40);
}

bit_set!(ValueInfo);

/// Kind of the object (CiA 301, 7.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectCode(pub u8);

impl ObjectCode {
    /// A single value.
    pub const VARIABLE: Self = Self(7);
    /// Entries of one type.
    pub const ARRAY: Self = Self(8);
    /// Entries of any types.
    pub const RECORD: Self = Self(9);
}

/// Rights to read, write and map an entry (ETG.1000.6, 5.6.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessRights(pub u16);

impl AccessRights {
    /// Readable in PreOp.
    pub const READ_PRE_OP: Self = Self(0x0001);
    /// Readable in SafeOp.
    pub const READ_SAFE_OP: Self = Self(0x0002);
    /// Readable in Op.
    pub const READ_OP: Self = Self(0x0004);
    /// Readable in PreOp, SafeOp and Op.
    pub const READ: Self = Self(0x0007);
    /// Writable in PreOp.
    pub const WRITE_PRE_OP: Self = Self(0x0008);
    /// Writable in SafeOp.
    pub const WRITE_SAFE_OP: Self = Self(0x0010);
    /// Writable in Op.
    pub const WRITE_OP: Self = Self(0x0020);
    /// Writable in PreOp, SafeOp and Op.
    pub const WRITE: Self = Self(0x0038);
    /// May be mapped into an RxPDO.
    pub const RX_PDO_MAPPABLE: Self = Self(0x0040);
    /// May be mapped into a TxPDO.
    pub const TX_PDO_MAPPABLE: Self = Self(0x0080);
    /// To be stored for a device replacement.
    pub const BACKUP: Self = Self(0x0100);
    /// A start-up parameter.
    pub const SETTING: Self = Self(0x0200);
}

bit_set!(AccessRights);

impl<'a> SdoInformation<'a> {
    /// A message that is all there is: a request, or a response in one fragment.
    #[must_use]
    pub const fn whole(service: SdoInformationService<'a>) -> Self {
        Self { fragments_left: 0, incomplete: false, service }
    }

    /// The message in a mailbox payload.
    ///
    /// # Errors
    /// A [`CoeFormatError`] that names the byte, the expected value and the one found.
    pub fn parse(payload: &'a [u8]) -> Result<Self, CoeFormatError> {
        expect(payload, CoeService::SdoInformation)?;
        let [operation, _reserved, left_low, left_high] = field(payload, super::HEADER_LENGTH)?;
        let data = payload.get(INFORMATION_HEADER_LENGTH..).unwrap_or(&[]);
        let service = match operation & OPERATION {
            LIST_REQUEST => {
                SdoInformationService::ListRequest(ListType(u16::from_le_bytes(field(payload, 6)?)))
            }
            LIST_RESPONSE => SdoInformationService::ListResponse(data),
            OBJECT_REQUEST => {
                SdoInformationService::ObjectRequest { index: u16::from_le_bytes(field(payload, 6)?) }
            }
            OBJECT_RESPONSE => SdoInformationService::ObjectResponse(data),
            ENTRY_REQUEST => {
                let [low, high, sub_index, value_info] = field(payload, 6)?;
                let index = u16::from_le_bytes([low, high]);
                SdoInformationService::EntryRequest { index, sub_index, value_info: ValueInfo(value_info) }
            }
            ENTRY_RESPONSE => SdoInformationService::EntryResponse(data),
            ERROR => SdoInformationService::Error(AbortCode(u32::from_le_bytes(field(payload, 6)?))),
            found => return Err(CoeFormatError::UnknownOperation { found }),
        };
        let fragments_left = u16::from_le_bytes([left_low, left_high]);
        Ok(Self { fragments_left, incomplete: operation & INCOMPLETE != 0, service })
    }

    /// Writes the message into `payload` and returns its bytes.
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`].
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, CoeFormatError> {
        use SdoInformationService as Service;
        let mut small = [0; 4];
        let (operation, data): (u8, &[u8]) = match self.service {
            Service::ListRequest(list) => {
                small[..2].copy_from_slice(&list.0.to_le_bytes());
                (LIST_REQUEST, &small[..2])
            }
            Service::ListResponse(data) => (LIST_RESPONSE, data),
            Service::ObjectRequest { index } => {
                small[..2].copy_from_slice(&index.to_le_bytes());
                (OBJECT_REQUEST, &small[..2])
            }
            Service::ObjectResponse(data) => (OBJECT_RESPONSE, data),
            Service::EntryRequest { index, sub_index, value_info } => {
                small[..2].copy_from_slice(&index.to_le_bytes());
                (small[2], small[3]) = (sub_index, value_info.0);
                (ENTRY_REQUEST, &small)
            }
            Service::EntryResponse(data) => (ENTRY_RESPONSE, data),
            Service::Error(code) => {
                small = code.0.to_le_bytes();
                (ERROR, &small)
            }
        };
        let message = room(payload, INFORMATION_HEADER_LENGTH + data.len())?;
        message[0..2].copy_from_slice(&CoeHeader::new(CoeService::SdoInformation).emit());
        message[2] = operation | if self.incomplete { INCOMPLETE } else { 0 };
        message[3] = 0;
        message[4..6].copy_from_slice(&self.fragments_left.to_le_bytes());
        message[INFORMATION_HEADER_LENGTH..].copy_from_slice(data);
        Ok(message.len())
    }
}

/// An object, as described by [`SdoInformationService::ObjectResponse`] (ETG.1000.6, 5.6.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectDescription<'a> {
    /// Object index.
    pub index: u16,
    /// Index of the data type; of the record's or array's type if it has one, else 0.
    pub data_type: u16,
    /// Highest sub-index.
    pub maximum_sub_index: u8,
    /// Variable, array or record.
    pub object_code: ObjectCode,
    /// Name, not terminated; ASCII by the standard, anything in the field.
    pub name: &'a [u8],
}

impl<'a> ObjectDescription<'a> {
    /// The description in the joined data of all fragments; offsets in errors count from there.
    ///
    /// # Errors
    /// [`CoeFormatError::Truncated`].
    pub fn parse(data: &'a [u8]) -> Result<Self, CoeFormatError> {
        let fixed: [u8; OBJECT_LENGTH] = field(data, 0)?;
        Ok(Self {
            index: read_u16(&fixed, 0).unwrap_or(0),
            data_type: read_u16(&fixed, 2).unwrap_or(0),
            maximum_sub_index: fixed[4],
            object_code: ObjectCode(fixed[5]),
            name: data.get(OBJECT_LENGTH..).unwrap_or(&[]),
        })
    }

    /// Writes the description into `data` and returns its bytes; fragments are cut from these.
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`].
    pub fn emit(&self, data: &mut [u8]) -> Result<usize, CoeFormatError> {
        let data = room(data, OBJECT_LENGTH + self.name.len())?;
        data[0..2].copy_from_slice(&self.index.to_le_bytes());
        data[2..4].copy_from_slice(&self.data_type.to_le_bytes());
        data[4] = self.maximum_sub_index;
        data[5] = self.object_code.0;
        data[OBJECT_LENGTH..].copy_from_slice(self.name);
        Ok(data.len())
    }
}

/// An entry of an object, as described by [`SdoInformationService::EntryResponse`] (ETG.1000.6,
/// 5.6.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDescription<'a> {
    /// Object index.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// Values that stand in `data` before the name.
    pub value_info: ValueInfo,
    /// Index of the data type.
    pub data_type: u16,
    /// Bits.
    pub bit_length: u16,
    /// Rights to read, write and map it.
    pub access: AccessRights,
    /// The values `value_info` names, then the name: [`EntryDescription::values`].
    pub data: &'a [u8],
}

/// Fields after the fixed part of an entry description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryValues<'a> {
    /// Unit type.
    pub unit: Option<u16>,
    /// Default value, little-endian.
    pub default: Option<&'a [u8]>,
    /// Minimum value, little-endian.
    pub minimum: Option<&'a [u8]>,
    /// Maximum value, little-endian.
    pub maximum: Option<&'a [u8]>,
    /// Name, not terminated.
    pub name: &'a [u8],
}

impl<'a> EntryDescription<'a> {
    /// The description in the joined data of all fragments; offsets in errors count from there.
    ///
    /// # Errors
    /// [`CoeFormatError::Truncated`].
    pub fn parse(data: &'a [u8]) -> Result<Self, CoeFormatError> {
        let fixed: [u8; ENTRY_LENGTH] = field(data, 0)?;
        Ok(Self {
            index: read_u16(&fixed, 0).unwrap_or(0),
            sub_index: fixed[2],
            value_info: ValueInfo(fixed[3]),
            data_type: read_u16(&fixed, 4).unwrap_or(0),
            bit_length: read_u16(&fixed, 6).unwrap_or(0),
            access: AccessRights(read_u16(&fixed, 8).unwrap_or(0)),
            data: data.get(ENTRY_LENGTH..).unwrap_or(&[]),
        })
    }

    /// Writes the description into `data` and returns its bytes; fragments are cut from these.
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`].
    pub fn emit(&self, data: &mut [u8]) -> Result<usize, CoeFormatError> {
        let data = room(data, ENTRY_LENGTH + self.data.len())?;
        data[0..2].copy_from_slice(&self.index.to_le_bytes());
        data[2] = self.sub_index;
        data[3] = self.value_info.0;
        data[4..6].copy_from_slice(&self.data_type.to_le_bytes());
        data[6..8].copy_from_slice(&self.bit_length.to_le_bytes());
        data[8..10].copy_from_slice(&self.access.0.to_le_bytes());
        data[ENTRY_LENGTH..].copy_from_slice(self.data);
        Ok(data.len())
    }

    /// Takes `data` apart. Values are as long as the entry, in whole bytes; the name is the rest.
    ///
    /// # Errors
    /// [`CoeFormatError::Truncated`] if `value_info` names more than there is.
    pub fn values(&self) -> Result<EntryValues<'a>, CoeFormatError> {
        let mut rest = self.data;
        let mut take = |kind: ValueInfo, length: usize| {
            if !self.value_info.contains(kind) {
                return Ok(None);
            }
            let offset = ENTRY_LENGTH + self.data.len() - rest.len();
            let found = ENTRY_LENGTH + self.data.len();
            let truncated = CoeFormatError::Truncated { expected: offset + length, found };
            let (value, behind) = rest.split_at_checked(length).ok_or(truncated)?;
            rest = behind;
            Ok(Some(value))
        };
        let length = usize::from(self.bit_length.div_ceil(8));
        let unit = take(ValueInfo::UNIT, 2)?;
        let default = take(ValueInfo::DEFAULT, length)?;
        let minimum = take(ValueInfo::MINIMUM, length)?;
        let maximum = take(ValueInfo::MAXIMUM, length)?;
        let unit = unit.and_then(|bytes| read_u16(bytes, 0));
        Ok(EntryValues { unit, default, minimum, maximum, name: rest })
    }
}

// Operation codes (ETG.1000.6, 5.6.3.2), and the bit above them.
const LIST_REQUEST: u8 = 1;
const LIST_RESPONSE: u8 = 2;
const OBJECT_REQUEST: u8 = 3;
const OBJECT_RESPONSE: u8 = 4;
const ENTRY_REQUEST: u8 = 5;
const ENTRY_RESPONSE: u8 = 6;
const ERROR: u8 = 7;
const OPERATION: u8 = 0x7F;
const INCOMPLETE: u8 = 0x80;

const OBJECT_LENGTH: usize = 6;
const ENTRY_LENGTH: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_has_its_standard_bytes() {
        use SdoInformationService as Service;
        let entry = Service::EntryRequest { index: 0x6040, sub_index: 1, value_info: ValueInfo::DEFAULT };
        let fragment = |service| SdoInformation { fragments_left: 2, incomplete: true, service };
        let cases: [(SdoInformation<'_>, &[u8]); 7] = [
            (SdoInformation::whole(Service::ListRequest(ListType::ALL)), &[0, 0x80, 1, 0, 0, 0, 1, 0]),
            (fragment(Service::ListResponse(&[1, 0, 0, 0x10])), &[0, 0x80, 0x82, 0, 2, 0, 1, 0, 0, 0x10]),
            (
                SdoInformation::whole(Service::ObjectRequest { index: 0x1018 }),
                &[0, 0x80, 3, 0, 0, 0, 0x18, 0x10],
            ),
            (SdoInformation::whole(Service::ObjectResponse(&[9])), &[0, 0x80, 4, 0, 0, 0, 9]),
            (SdoInformation::whole(entry), &[0, 0x80, 5, 0, 0, 0, 0x40, 0x60, 1, 0x10]),
            (SdoInformation::whole(Service::EntryResponse(&[])), &[0, 0x80, 6, 0, 0, 0]),
            (
                SdoInformation::whole(Service::Error(AbortCode::NO_OBJECT)),
                &[0, 0x80, 7, 0, 0, 0, 0, 0, 2, 6],
            ),
        ];
        for (message, bytes) in cases {
            let mut payload = [0xEE; 16];
            let length = message.emit(&mut payload).unwrap();
            assert_eq!(payload[..length], *bytes);
            assert_eq!(SdoInformation::parse(bytes), Ok(message));
            assert!(message.emit(&mut payload[..length - 1]).is_err());
            assert!(SdoInformation::parse(&bytes[..5]).is_err());
        }
    }

    #[test]
    fn descriptions_parse_back() {
        let object = ObjectDescription {
            index: 0x1018,
            data_type: 0x0023,
            maximum_sub_index: 4,
            object_code: ObjectCode::RECORD,
            name: b"Identity",
        };
        let mut data = [0; 32];
        let length = object.emit(&mut data).unwrap();
        assert_eq!(ObjectDescription::parse(&data[..length]), Ok(object));
        assert!(ObjectDescription::parse(&data[..5]).is_err());
    }

    #[test]
    fn entry_values_come_in_the_order_of_their_bits() {
        let mut entry = EntryDescription {
            index: 0x607A,
            sub_index: 0,
            value_info: ValueInfo(0x78),
            data_type: 3,
            bit_length: 16,
            access: AccessRights::READ.with(AccessRights::WRITE),
            data: &[1, 2, 5, 6, 7, 8, 9, 10, b'T'],
        };
        let mut data = [0; 32];
        let length = entry.emit(&mut data).unwrap();
        assert_eq!(EntryDescription::parse(&data[..length]), Ok(entry));
        let values = entry.values().unwrap();
        assert_eq!(values.unit, Some(0x0201));
        assert_eq!(values.default, Some(&[5, 6][..]));
        assert_eq!(values.maximum, Some(&[9, 10][..]));
        assert_eq!(values.name, b"T");
        entry.data = &[1, 2, 3];
        assert_eq!(entry.values(), Err(CoeFormatError::Truncated { expected: 14, found: 13 }));
    }

    #[test]
    fn unknown_operations_are_named() {
        let error = SdoInformation::parse(&[0, 0x80, 8, 0, 0, 0]).unwrap_err();
        assert_eq!(error, CoeFormatError::UnknownOperation { found: 8 });
    }
}
