//! Properties that a file gives once for several SubDevices: those of `[device.NAME]` and of `[bus]`.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::check::Checked;
use crate::error::{Problem, unknown_word};
use crate::model::{BUS_KEYS, DEVICE_KEYS, SubDevice};
use crate::nearest::nearest;

/// Gives each SubDevice the properties of its device, and each the bus's, as far as it has none of its own.
pub(crate) fn inherit(text: &str, root: &mut DeTable<'_>) -> Checked<()> {
    let devices = root.get("device").and_then(|it| it.get_ref().as_table()).cloned().unwrap_or_default();
    for device in devices.values() {
        check(text, device)?;
    }
    let Some(DeValue::Table(bus)) = root.get_mut("bus").map(Spanned::get_mut) else { return Ok(()) };
    let mut of_the_bus = DeTable::new();
    of_the_bus.extend(BUS_KEYS.iter().filter_map(|&key| {
        let (key, value) = bus.get_key_value(key)?;
        Some((key.clone(), value.clone()))
    }));
    let Some(DeValue::Array(entries)) = bus.get_mut("sub_device").map(Spanned::get_mut) else {
        return Ok(());
    };
    for entry in entries.iter_mut() {
        let DeValue::Table(entry) = entry.get_mut() else { continue };
        let name = entry.get("device").and_then(|name| Some((name.span(), name.get_ref().as_str()?)));
        let find = |(place, name)| devices.get(name).ok_or_else(|| unknown(place, name, &devices));
        let device = name.map(find).transpose()?.and_then(|device| device.get_ref().as_table().cloned());
        for (key, value) in device.into_iter().chain([of_the_bus.clone()]).flatten() {
            if !entry.contains_key(key.get_ref().as_ref()) {
                entry.insert(key, value);
            }
        }
    }
    Ok(())
}

/// Checks a device as a SubDevice would be that has all from it.
fn check(text: &str, device: &Spanned<DeValue<'_>>) -> Checked<()> {
    let mut device = device.clone();
    if let DeValue::Table(table) = device.get_mut() {
        if let Some(key) = table.keys().find(|key| !DEVICE_KEYS.contains(&&**key.get_ref())) {
            let nearest = nearest(key.get_ref(), DEVICE_KEYS);
            return Err(unknown_word(key.span(), "key", key.get_ref(), &DEVICE_KEYS, nearest));
        }
        let name = DeValue::String("device".into());
        table.insert(Spanned::new(0..0, "name".into()), Spanned::new(0..0, name));
    }
    let read = SubDevice::deserialize(ValueDeserializer::from(device));
    read.map(|_| ()).map_err(|error| Problem::from_toml(text, &error))
}

fn unknown(place: Range<usize>, name: &str, devices: &DeTable<'_>) -> Problem {
    let known: Vec<&str> = devices.keys().map(|key| key.get_ref().as_ref()).collect();
    let expected = if known.is_empty() { "a [device.NAME] table".to_owned() } else { known.join(", ") };
    let remedy = nearest(name, known).map_or_else(
        || format!("add a table [device.{name}] or correct the name"),
        |nearest| format!("did you mean \"{nearest}\"?"),
    );
    Problem::new(place, format!("unknown device \"{name}\""), expected, remedy)
}
