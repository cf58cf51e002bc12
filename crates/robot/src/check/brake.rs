//! Checks of brakes, and of the digital outputs that power their coils.

use std::collections::HashMap;

use motion::brake::BrakeConfiguration;

use super::axis::find;
use super::repeat::Repetition;
use super::{Checked, in_every_cycle, presence};
use crate::error::Problem;
use crate::model::{ApplicationKind, Axis, BrakeOutput, Bus, DigitalOutput, MOST_BYTES, SubDevice};
use crate::place::Place;

/// Brakes found so far: each needs an output of its own.
pub(super) struct Brakes<'a> {
    bus: &'a Bus,
    positions: &'a HashMap<&'a str, usize>,
    taken: HashMap<DigitalOutput, String>,
}

impl<'a> Brakes<'a> {
    pub(super) fn new(bus: &'a Bus, positions: &'a HashMap<&'a str, usize>) -> Self {
        Self { bus, positions, taken: HashMap::new() }
    }

    /// Brake of the `step`-th axis of a repeated entry, whose drive is at this position.
    pub(super) fn brake(
        &mut self,
        (axis, drive): (&Axis, usize),
        repetition: &Repetition,
        step: usize,
        entry: Place<'_>,
    ) -> Checked<Option<BrakeConfiguration>> {
        let Some(brake) = &axis.brake_keys else { return Ok(None) };
        let output = brake.output.as_ref();
        let drive = &self.bus.sub_devices[drive];
        let output = output.map(|it| self.output((it, drive), repetition, step, entry.key("output")));
        let output = output.transpose()?;
        Ok(Some(BrakeConfiguration { times: brake.times(), output }))
    }

    fn output(
        &mut self,
        (BrakeOutput { sub_device: wanted, channel }, drive): (&BrakeOutput, &SubDevice),
        repetition: &Repetition,
        step: usize,
        entry: Place<'_>,
    ) -> Checked<DigitalOutput> {
        let axis = &repetition.name;
        let place = entry.key("sub_device");
        let position = find(wanted, repetition, self.positions, " with its brake", place)?;
        let it = &self.bus.sub_devices[position];
        let name = &it.name;
        in_every_cycle(&format!("the brake of axis \"{axis}\""), it, place)?;
        presence::of_brake(axis, it, drive, place)?;
        let there = digital_outputs(it);
        if there == Some(0) {
            let found =
                format!("axis \"{axis}\" with its brake on \"{name}\", which has no digital outputs");
            let expected = self.one_with_outputs();
            return Err(Problem::new(place, found, expected, "name another SubDevice"));
        }
        // Axes on one terminal take its channels one by one; those with a terminal each take the same
        // channel of each.
        let further = if repetition.changes(wanted) { 0 } else { step };
        let most = there.unwrap_or(MOST_BYTES * 8);
        let number = usize::try_from(*channel).ok().and_then(|first| first.checked_add(further));
        let Some(channel_number) = number.filter(|number| (1..=most).contains(number)) else {
            let asked = number.map_or(channel.to_string(), |number| number.to_string());
            let found = format!("channel {asked} for the brake of axis \"{axis}\"");
            let expected = format!("1 to {most}, the digital outputs of \"{name}\"");
            return Err(Problem::new(entry.key("channel"), found, expected, "correct channel"));
        };
        let output = DigitalOutput { sub_device: position, channel: channel_number };
        if let Some(other) = self.taken.insert(output, axis.clone()) {
            let found = format!(
                "channel {channel_number} of \"{name}\" for the brake of axis \"{axis}\"; that of \"{other}\" has it"
            );
            return Err(Problem::new(
                entry.key("channel"),
                found,
                "an output for each brake",
                "choose another",
            ));
        }
        Ok(output)
    }

    fn one_with_outputs(&self) -> String {
        let with_outputs = |it: &&SubDevice| digital_outputs(it).is_some_and(|outputs| outputs > 0);
        match self.bus.sub_devices.iter().find(with_outputs) {
            Some(it) => format!("a SubDevice with digital outputs, as \"{}\"", it.name),
            None => "a SubDevice with digital outputs".to_owned(),
        }
    }
}

/// Number of its digital outputs; `None` where only its SII gives it, which is checked when the bus is
/// there.
fn digital_outputs(sub_device: &SubDevice) -> Option<usize> {
    if let Some(mapping) = sub_device.explicit_mapping() {
        return Some(mapping.digital_outputs().count());
    }
    let simulation = sub_device.simulation.as_ref()?;
    match simulation.application {
        ApplicationKind::DigitalOutputs => Some(simulation.channels.into()),
        _ => simulation.sii.is_none().then_some(0),
    }
}
