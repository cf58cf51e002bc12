//! Checks of interlocks, and of their digital inputs.

use toml::Spanned;

use super::{Checked, mapping, readable_name};
use crate::error::Problem;
use crate::file;
use crate::model::{Application, Axis, Bus, Interlock, SubDevice};
use crate::nearest::nearest;

pub(super) fn interlocks(entries: &[file::Interlock], bus: &Bus, axes: &[Axis]) -> Checked<Vec<Interlock>> {
    let mut found: Vec<Interlock> = Vec::new();
    for entry in entries {
        let one = interlock(entry, bus, axes)?;
        if found.iter().any(|other| other.name == one.name) {
            let what = format!("a second interlock \"{}\"", one.name);
            return Err(Problem::new(entry.name.span(), what, "every name once", "give it another name"));
        }
        found.push(one);
    }
    Ok(found)
}

fn interlock(entry: &file::Interlock, bus: &Bus, axes: &[Axis]) -> Checked<Interlock> {
    readable_name(&entry.name)?;
    let name = entry.name.get_ref();
    let sub_device = position(entry, bus)?;
    let there = digital_inputs(&bus.sub_devices[sub_device]);
    let most = there.unwrap_or(mapping::MOST_BYTES * 8);
    let channel = usize::try_from(*entry.channel.get_ref()).ok().filter(|it| (1..=most).contains(it));
    let Some(channel) = channel else {
        let found = format!("channel {} for the interlock \"{name}\"", entry.channel.get_ref());
        let sub_device = &bus.sub_devices[sub_device].name;
        let expected = match most {
            0 => format!("a SubDevice with digital inputs; \"{sub_device}\" has none"),
            most => format!("1 to {most}, the digital inputs of \"{sub_device}\""),
        };
        return Err(Problem::new(entry.channel.span(), found, expected, "correct sub_device or channel"));
    };
    let axes = match &entry.axes {
        None => (0..axes.len()).collect(),
        Some(names) => names.iter().map(|wanted| axis(name, wanted, axes)).collect::<Checked<_>>()?,
    };
    Ok(Interlock {
        name: name.clone(),
        kind: entry.kind,
        sub_device,
        channel,
        inverted: entry.inverted,
        axes,
    })
}

fn position(entry: &file::Interlock, bus: &Bus) -> Checked<usize> {
    let wanted = entry.sub_device.get_ref();
    let names = || bus.sub_devices.iter().map(|it| it.name.as_str());
    names().position(|name| name == wanted).ok_or_else(|| {
        let remedy = nearest(wanted, names())
            .map_or("correct sub_device".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("interlock \"{}\" on the unknown SubDevice \"{wanted}\"", entry.name.get_ref());
        Problem::new(entry.sub_device.span(), found, "the name of a SubDevice on the bus", remedy)
    })
}

fn axis(interlock: &str, wanted: &Spanned<String>, axes: &[Axis]) -> Checked<usize> {
    axes.iter().position(|axis| axis.name == *wanted.get_ref()).ok_or_else(|| {
        let remedy = nearest(wanted.get_ref(), axes.iter().map(|axis| axis.name.as_str()))
            .map_or("correct axes".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("interlock \"{interlock}\" for the unknown axis \"{}\"", wanted.get_ref());
        Problem::new(wanted.span(), found, "the name of an axis", remedy)
    })
}

/// Number of its digital inputs; `None` where only its SII gives it, which is checked when the bus is
/// there.
fn digital_inputs(sub_device: &SubDevice) -> Option<usize> {
    if let Some(mapping) = sub_device.explicit_mapping() {
        return Some(mapping.digital_inputs().count());
    }
    let simulation = sub_device.simulation.as_ref()?;
    match simulation.application {
        Application::DigitalInputs { channels } => Some(channels.into()),
        _ => simulation.sii.is_none().then_some(0),
    }
}
