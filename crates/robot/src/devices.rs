//! Tables completed: properties that a file gives once for several SubDevices, in `[device.NAME]`
//! and in `[bus]`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use types::near::nearest;

use crate::check::Checked;
use crate::error::unknown_word;
use crate::model::{BUS_KEYS, DEVICE_KEYS, SubDevice};
use crate::value;

/// The tables of a robot file in which SubDevices have all their properties, and controllers are a
/// list.
pub(crate) fn completed<'t>(text: &str, tables: Spanned<DeTable<'t>>) -> Checked<Spanned<DeValue<'t>>> {
    let span = tables.span();
    let mut root = tables.into_inner();
    one_is_a_list_of_one(&mut root, "controller");
    inherit(text, &mut root)?;
    Ok(Spanned::new(span, DeValue::Table(root)))
}

/// Makes a single table the only one of a list.
fn one_is_a_list_of_one(root: &mut DeTable<'_>, key: &str) {
    if let Some(value) = root.get_mut(key).filter(|value| value.get_ref().is_table()) {
        let one = value.clone();
        *value.get_mut() = DeValue::Array([one].into_iter().collect());
    }
}

/// Gives each SubDevice the properties of its device, and then of the bus, unless it sets them
/// itself.
fn inherit(text: &str, root: &mut DeTable<'_>) -> Checked<()> {
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
        let name = entry.get("device").and_then(|name| name.get_ref().as_str());
        let device = name.and_then(|name| devices.get(name)?.get_ref().as_table().cloned());
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
    value::read::<SubDevice>(text, &device).map(drop)
}
