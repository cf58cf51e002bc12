//! `onbeat sdo`: objects of a SubDevice.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use robot::object::{ObjectType, ObjectValue};
use serde_json::json;

use crate::bus::{ToolBus, Where};
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

    /// The value: a number (decimal, 0x...), true, false, a text, or hexadecimal digits for octet_string
    #[arg(allow_hyphen_values = true)]
    value: String,

    /// bool, int8 to int64, uint8 to uint64, float, double, string, octet_string
    #[arg(short, long, value_name = "TYPE")]
    r#type: Option<ObjectType>,

    /// Write it to the bus of a running cycle although that relies on it: process data, its mapping, a drive without power
    #[arg(long)]
    force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,
}

/// Which SubDevice, on which bus.
#[derive(Args, Debug)]
struct Place {
    /// The SubDevice: its position from 0, or its name
    #[arg(value_name = "SUBDEVICE")]
    sub_device: String,

    /// Robot file that says what should be there; simulated without --iface
    #[arg(long, value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    #[command(flatten)]
    place: Where,
}

impl Place {
    /// Does `work` with the SubDevice.
    fn with<T>(&self, work: impl FnOnce(&mut ToolBus, u16) -> Result<T, Failure>) -> Result<T, Failure> {
        ToolBus::with("sdo", self.robot.as_deref(), &self.place, |bus| {
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
        let (bytes, told) = self.place.with(|bus, position| {
            let bytes = bus.upload(position, self.object)?;
            let told = match self.r#type {
                None => dictionary_type(bus, position, self.object)?,
                Some(_) => None,
            };
            Ok((bytes, told))
        })?;
        let shown = match (self.r#type, told) {
            (Some(asked), _) => show(asked, &bytes).map_err(|error| {
                self.place.failure(self.object, &format!("{error}; choose another --type"))
            })?,
            // A dictionary that contradicts its object is the device's affair: show the bytes.
            (None, Some(told)) => show(told, &bytes).unwrap_or_else(|_| HexDump(&bytes).to_string()),
            (None, None) => HexDump(&bytes).to_string(),
        };
        if !self.json {
            return output::print(shown + "\n");
        }
        let value_type = self.r#type.or(told).map(|it| it.to_string());
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let object = json!({ "sub_device": self.place.sub_device, "object": self.object.to_string(), "type": value_type,
                             "value": shown.trim_end(), "bytes": digits });
        output::print(format!("{object:#}\n"))
    }
}

impl Write {
    fn execute(self) -> Result<(), Failure> {
        let object = self.object;
        self.place.with(|bus, position| {
            let told = match self.r#type {
                None => dictionary_type(bus, position, object)?,
                given => given,
            };
            let untold = "the SubDevice does not tell its type, expected --type: add it, as --type uint16";
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
        let mut text = String::new();
        let listed = self.place.with(|bus, position| bus.list_objects(position, &mut text));
        // What came is shown, however it ended.
        Failure::both(listed, output::print(text))
    }
}

/// The type the SubDevice's own object dictionary gives, if it has one.
fn dictionary_type(
    bus: &mut ToolBus,
    position: u16,
    object: ObjectAddress,
) -> Result<Option<ObjectType>, Failure> {
    let entry = bus.entry(position, object)?;
    Ok(entry.and_then(|entry| ObjectType::from_data_type(entry.data_type)))
}

/// A value: whole numbers decimal and hexadecimal, bytes as a dump.
fn show(object_type: ObjectType, bytes: &[u8]) -> Result<String, robot::object::ObjectValueError> {
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
