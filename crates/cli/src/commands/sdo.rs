//! `onbeat sdo`: objects of a SubDevice.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ethercat::cia402::{ErrorCode, object};
use ethercat::wire::coe::AccessRights;
use serde_json::{Value, json};
use types::object::{ObjectType, ObjectValue};

use crate::bus::dictionary::DictionaryItem;
use crate::bus::{ToolBus, Where, dictionary};
use crate::failure::Failure;
use crate::object_address::ObjectAddress;
use crate::output;
use crate::words::hex_dump::HexDump;

#[derive(Subcommand, Debug)]
pub(crate) enum Sdo {
    /// Read an object; its type is the one its object dictionary gives, unless --type says another
    Read(Read),
    /// Write an object
    Write(Write),
    /// List the objects a SubDevice says it has, with types, access and names
    List(List),
}

#[derive(Args, Debug)]
pub(crate) struct Read {
    #[command(flatten)]
    place: Place,

    /// Index and sub-index in hexadecimal, as 0x1018:1
    object: ObjectAddress,

    /// bool, int8 to int64, uint8 to uint64, float, double, string, octet_string
    #[arg(short, long, value_name = "TYPE")]
    r#type: Option<ObjectType>,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Write {
    #[command(flatten)]
    place: Place,

    /// Index and sub-index in hexadecimal, as 0x6060:0
    object: ObjectAddress,

    /// The value: a number (decimal, 0x...), true, false, a text, or hexadecimal digits for
    /// octet_string
    #[arg(allow_hyphen_values = true)]
    value: String,

    /// bool, int8 to int64, uint8 to uint64, float, double, string, octet_string
    #[arg(short, long, value_name = "TYPE")]
    r#type: Option<ObjectType>,

    /// Write although a running cycle relies on the object: process data, its mapping, an axis,
    /// limits of a drive with power
    #[arg(long)]
    force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,

    /// Read the value of each entry that may be read, too
    #[arg(long)]
    values: bool,

    /// Print a JSON array of the objects with their entries
    #[arg(long)]
    json: bool,
}

/// A SubDevice, and its bus.
#[derive(Args, Debug)]
pub(super) struct Place {
    /// The SubDevice: its position from 0, or its name
    #[arg(value_name = "SUBDEVICE", value_parser = sub_device)]
    sub_device: String,

    /// Robot file that says what should be there; simulated without --iface
    #[arg(long, value_name = "ROBOT.toml", conflicts_with = "cycle")]
    robot: Option<PathBuf>,

    #[command(flatten)]
    place: Where,
}

/// Anything but a robot file: other commands take the robot file in this position.
fn sub_device(text: &str) -> Result<String, &'static str> {
    match text.ends_with(".toml") {
        true => Err(
            "expected the position or the name of a SubDevice; a robot file is given as --robot ROBOT.toml",
        ),
        false => Ok(text.to_owned()),
    }
}

impl Place {
    /// Does `work` with the SubDevice. Other programs that want the interface see that it is in use
    /// for `doing` this.
    pub(super) fn with<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&mut ToolBus, u16) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        ToolBus::with(doing, self.robot.as_deref(), &self.place, |bus| {
            let position = bus.position_of(&self.sub_device)?;
            work(bus, position)
        })
    }

    /// Failure of an object there.
    fn failure(&self, object: ObjectAddress, what: &str) -> Failure {
        Failure::new(format!("SubDevice \"{}\", object {object}: {what}", self.sub_device))
    }
}

impl Sdo {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Read(read) => read.execute(),
            Self::Write(write) => write.execute(),
            Self::List(list) => list.execute(),
        }
    }
}

impl Read {
    fn execute(self) -> Result<(), Failure> {
        let (bytes, told) = self.place.with("sdo", |bus, position| {
            let bytes = bus.upload(position, self.object)?;
            let told = match self.r#type {
                None => dictionary_type(bus, position, self.object)?,
                Some(_) => None,
            };
            Ok((bytes, told))
        })?;
        let value = self.r#type.or(told).and_then(|it| it.decode(&bytes).ok());
        let shown = match (self.r#type, told) {
            (Some(asked), _) => show(asked, &bytes).map_err(|error| {
                self.place.failure(self.object, &format!("{error}; choose another --type"))
            })?,
            // A dictionary that contradicts its object is the device's affair: show the bytes.
            (None, Some(told)) => show(told, &bytes).unwrap_or_else(|_| HexDump(&bytes).to_string()),
            (None, None) => HexDump(&bytes).to_string(),
        };
        let error = value.as_ref().and_then(|value| error_words(self.object, value));
        if !self.json {
            let words = error.map(|words| format!(", {words}")).unwrap_or_default();
            return output::print(format!("{shown}{words}\n"));
        }
        let value_type = self.r#type.or(told).map(|it| it.to_string());
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = shown.trim_end();
        let value = value.map_or(text.into(), |value| number_or(text, value));
        let mut object = json!({ "sub_device": self.place.sub_device, "object": self.object.to_string(), "type": value_type,
                                 "value": value, "text": text, "bytes": digits });
        if let Some(error) = error {
            object["error"] = error.into();
        }
        output::print(format!("{object:#}\n"))
    }
}

impl Write {
    fn execute(self) -> Result<(), Failure> {
        let object = self.object;
        self.place.with("sdo", |bus, position| {
            let told = match self.r#type {
                None => dictionary_type(bus, position, object)?,
                given => given,
            };
            let untold = "the SubDevice does not report its type, expected --type: add it, as \
                --type uint16";
            let object_type = told.ok_or_else(|| self.place.failure(object, untold))?;
            let bytes = object_type
                .encode_text(&self.value)
                .map_err(|error| self.place.failure(object, &format!("{error}; correct the value")))?;
            bus.download(position, object, &bytes, self.force)
        })
    }
}

impl List {
    fn execute(self) -> Result<(), Failure> {
        let mut told = Vec::new();
        let listed = self.place.with("sdo", |bus, position| {
            let listed = bus.list_objects(position, &mut told);
            if self.values {
                told.iter_mut().for_each(|it| read_value(bus, position, it));
            }
            listed
        });
        let text = match self.json {
            true => format!("{:#}\n", dictionary::json(&told)),
            false => told.iter().map(|it| format!("{it}\n")).collect(),
        };
        // What came is shown, however it ended.
        Failure::both(listed, output::print(text))
    }
}

/// Reads the value of an entry that may be read.
fn read_value(bus: &mut ToolBus, position: u16, told: &mut DictionaryItem) {
    let DictionaryItem::Entry { address, entry, value } = told else { return };
    let reads = [AccessRights::READ_PRE_OP, AccessRights::READ_SAFE_OP, AccessRights::READ_OP];
    if !reads.iter().any(|right| entry.access.contains(*right)) {
        return;
    }
    let read = bus.upload(position, *address).ok().map(|bytes| {
        let shown = ObjectType::from_data_type(entry.data_type).and_then(|it| show(it, &bytes).ok());
        shown.unwrap_or_else(|| HexDump(&bytes).to_string()).trim_end().to_owned()
    });
    *value = Some(read.unwrap_or_else(|| "?".to_owned()));
}

/// Meaning of an error code: of an axis (0x603F), or in the error history (0x1003), with a
/// manufacturer's upper half.
fn error_words(object: ObjectAddress, value: &ObjectValue) -> Option<String> {
    let ObjectValue::Integer(value) = *value else { return None };
    let of_axis = object::of_first_axis(object.index) == object::ERROR_CODE;
    let is_error = of_axis || object.index == ERROR_HISTORY && object.sub_index > 0;
    let code = ErrorCode(value as u16);
    (is_error && code != ErrorCode(0)).then(|| code.to_string())
}

/// Pre-defined error field: errors in the past, newest first (CiA 301, 7.5.2.4).
const ERROR_HISTORY: u16 = 0x1003;

/// The type the SubDevice's own object dictionary gives, if it has one.
fn dictionary_type(
    bus: &mut ToolBus,
    position: u16,
    object: ObjectAddress,
) -> Result<Option<ObjectType>, Failure> {
    let entry = bus.entry(position, object)?;
    Ok(entry.and_then(|entry| ObjectType::from_data_type(entry.data_type)))
}

/// A value in JSON: numbers, true and false as such, strings as they are, bytes as the text that is
/// shown.
fn number_or(text: &str, value: ObjectValue) -> Value {
    match value {
        ObjectValue::Bool(value) => value.into(),
        ObjectValue::Integer(value) => i64::try_from(value)
            .map(Value::from)
            .or_else(|_| u64::try_from(value).map(Value::from))
            .unwrap_or_else(|_| text.into()),
        ObjectValue::Real(value) => value.into(),
        ObjectValue::Text(value) => value.into(),
        ObjectValue::Octets(_) => text.into(),
    }
}

/// A value: whole numbers decimal and hexadecimal, bytes as a dump.
fn show(object_type: ObjectType, bytes: &[u8]) -> Result<String, types::object::ObjectValueError> {
    Ok(match object_type.decode(bytes)? {
        ObjectValue::Integer(value) => {
            let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
            format!("{value} 0x{digits}")
        }
        ObjectValue::Text(value) => value.escape_debug().to_string(),
        ObjectValue::Octets(value) => HexDump(&value).to_string(),
        value => value.to_string(),
    })
}
