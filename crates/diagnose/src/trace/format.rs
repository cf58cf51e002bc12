//! Locations of an event's fields, from the kernel's `format` files.
//!
//! Their syntax is stable (`Documentation/trace/events.rst`): a name, an ID, and one line per field
//! with offset, size and sign. Offsets differ between kernels and are always read.

use std::collections::HashMap;

/// Layout of one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFormat {
    /// Name of the event, for example `sched_switch`.
    pub name: String,
    /// Value of `common_type` in its records.
    pub id: u16,
    fields: HashMap<String, Field>,
}

/// Location of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset from the start of the record, bytes.
    pub offset: usize,
    /// Size, bytes.
    pub size: usize,
    /// True for a signed number.
    pub signed: bool,
    kind: FieldKind,
}

/// Storage of a field's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    /// In the field itself.
    InPlace,
    /// `__data_loc`: offset from the record's start and length, in 32 bits.
    Elsewhere,
    /// `__rel_loc`: the same, with the offset counted from the end of the field.
    Behind,
}

impl EventFormat {
    /// Parses a `format` file; `None` without a name or an ID.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut id = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some((name, field)) = field(line) {
                format.fields.insert(name, field);
            }
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }

    /// Location of the field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

impl Field {
    /// Bytes in a record; `None` if it is too short.
    #[must_use]
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Integer in a record; `None` if the record is too short or the field is no number.
    #[must_use]
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = self.bytes(record)?;
        if !(1..=8).contains(&bytes.len()) {
            return None;
        }
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let value = u64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len() as u32;
        // Shifting left and right fills the unused bits with the sign.
        Some(if self.signed { ((value << unused) as i64) >> unused } else { value as i64 })
    }

    /// Text in a record, up to its NUL; `None` if it does not lie within the record.
    #[must_use]
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = match self.kind {
            FieldKind::InPlace => self.bytes(record)?,
            FieldKind::Elsewhere | FieldKind::Behind => {
                let place =
                    Self { kind: FieldKind::InPlace, signed: false, ..*self }.number(record)? as u64;
                let base = if self.kind == FieldKind::Behind { self.offset + self.size } else { 0 };
                let start = base + (place & 0xFFFF) as usize;
                record.get(start..start + (place >> 16 & 0xFFFF) as usize)?
            }
        };
        Some(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
    }
}

/// Parses a line such as `field:char prev_comm[16]; offset:8; size:16; signed:0;`, also without
/// `signed`, as in old kernels.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            Some(("signed", number)) => signed = number == "1",
            _ => {}
        }
    }
    let kind = match declaration {
        _ if declaration.starts_with("__data_loc") => FieldKind::Elsewhere,
        _ if declaration.starts_with("__rel_loc") => FieldKind::Behind,
        _ => FieldKind::InPlace,
    };
    // The name is the last word, without the length of an array.
    let name = declaration.rsplit_once(char::is_whitespace)?.1;
    let name = name.split('[').next().unwrap_or(name).trim_start_matches('*');
    Some((name.to_owned(), Field { offset: offset?, size: size?, signed, kind }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\nprint fmt: \"prev_comm=%s\", REC->prev_comm\n";

    #[test]
    fn fields_are_found_by_name_with_their_place() {
        let format = EventFormat::parse(SWITCH).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 372));
        let comm = format.field("prev_comm").unwrap();
        assert_eq!((comm.offset, comm.size), (8, 16));
        let mut record = vec![0; 40];
        record[4..8].copy_from_slice(&(-3_i32).to_le_bytes());
        record[8..13].copy_from_slice(b"bash\0");
        assert_eq!(comm.text(&record).unwrap(), b"bash");
        assert_eq!(format.field("common_pid").unwrap().number(&record), Some(-3));
        assert_eq!(format.field("prev_state").unwrap().number(&record[..36]), None, "cut off");
    }

    #[test]
    fn the_length_of_an_array_may_be_a_macros_name() {
        let format = EventFormat::parse(&SWITCH.replace("[16]", "[TASK_COMM_LEN]")).unwrap();
        assert_eq!(format.field("prev_comm"), EventFormat::parse(SWITCH).unwrap().field("prev_comm"));
    }

    #[test]
    fn texts_that_lie_elsewhere_are_fetched_from_there() {
        let text = "name: x\nID: 1\n\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:__rel_loc char[] other;\toffset:8;\tsize:4;\tsigned:0;\n";
        let format = EventFormat::parse(text).unwrap();
        let mut record = vec![0; 20];
        record[8..12].copy_from_slice(&(5_u32 << 16 | 12).to_le_bytes());
        record[12..17].copy_from_slice(b"eth0\0");
        assert_eq!(format.field("name").unwrap().text(&record).unwrap(), b"eth0");
        record[8..12].copy_from_slice(&(5_u32 << 16).to_le_bytes());
        assert_eq!(format.field("other").unwrap().text(&record).unwrap(), b"eth0");
        record[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(format.field("name").unwrap().text(&record), None, "beyond the record");
        assert_eq!(format.field("other").unwrap().text(&record), None, "beyond the record");
    }
}
