//! Checks of brakes, of the digital outputs that power their coils, and of the digital inputs of
//! their feedback.

use std::collections::HashMap;

use motion::brake::BrakeConfiguration;
use types::state::BrakeInput;
use types::{BrakeFeedback, FeedbackInput};

use super::interlock::digital_inputs;
use super::repeat::{Repetition, axis_sub_device};
use super::{Checked, in_every_cycle, presence};
use crate::error::Problem;
use crate::field::Place;
use crate::model::{
    ApplicationKind, Axis, Bus, DigitalOutput, FeedbackInputKeys, FeedbackKeys, MOST_BYTES, SubDevice,
};

/// Brakes found so far: each needs its own output and inputs.
pub(super) struct Brakes<'a> {
    bus: &'a Bus,
    positions: &'a HashMap<&'a str, usize>,
    outputs: HashMap<(usize, usize), String>,
    inputs: HashMap<(usize, usize), String>,
}

/// Axis of a brake: the `step`-th one of a repeated entry.
#[derive(Clone, Copy)]
struct Holder<'a> {
    repetition: &'a Repetition,
    step: usize,
    drive: &'a SubDevice,
}

/// Digital input or output that a brake needs.
struct WantedBrake<'a> {
    sub_device: &'a str,
    channel: i64,
    /// Part of the brake, as in "the brake of axis".
    part: &'a str,
    /// The same, as in "axis with its brake".
    with: &'a str,
    /// Kind of its channels: "outputs" or "inputs".
    kind: &'static str,
    /// Number of them that a SubDevice has, as far as it is known.
    channels: fn(&SubDevice) -> Option<usize>,
}

impl<'a> Brakes<'a> {
    pub(super) fn new(bus: &'a Bus, positions: &'a HashMap<&'a str, usize>) -> Self {
        Self { bus, positions, outputs: HashMap::new(), inputs: HashMap::new() }
    }

    /// Brake of the `step`-th axis of a repeated entry, with its drive at this position.
    pub(super) fn brake(
        &mut self,
        (axis, drive): (&Axis, usize),
        repetition: &Repetition,
        step: usize,
        entry: Place<'_>,
    ) -> Checked<Option<BrakeConfiguration>> {
        let Some(brake) = &axis.brake_keys else { return Ok(None) };
        let holder = Holder { repetition, step, drive: &self.bus.sub_devices[drive] };
        let output = brake.output.as_ref().map(|it| {
            let wanted = WantedBrake {
                sub_device: &it.sub_device,
                channel: it.channel,
                part: "brake",
                with: " with its brake",
                kind: "outputs",
                channels: digital_outputs,
            };
            self.output(&wanted, holder, entry.key("output"))
        });
        let feedback = brake.feedback.as_ref().map(|it| self.feedback(it, holder, entry.key("feedback")));
        Ok(Some(BrakeConfiguration {
            times: brake.times(),
            output: output.transpose()?,
            feedback: feedback.transpose()?.unwrap_or_default(),
        }))
    }

    fn output(
        &mut self,
        wanted: &WantedBrake<'_>,
        holder: Holder<'_>,
        entry: Place<'_>,
    ) -> Checked<DigitalOutput> {
        let axis = &holder.repetition.name;
        let (sub_device, channel) = self.place(wanted, holder, entry)?;
        if let Some(other) = self.outputs.insert((sub_device, channel), axis.clone()) {
            let name = &self.bus.sub_devices[sub_device].name;
            let found = format!(
                "channel {channel} of \"{name}\" for the brake of axis \"{axis}\"; the brake of \"{other}\" has it"
            );
            let expected = "an output for each brake";
            return Err(Problem::new(entry.key("channel"), found, expected, "choose another"));
        }
        Ok(DigitalOutput { sub_device, channel })
    }

    fn feedback(
        &mut self,
        keys: &FeedbackKeys,
        holder: Holder<'_>,
        entry: Place<'_>,
    ) -> Checked<BrakeFeedback> {
        if keys.released.is_none() && keys.closed.is_none() {
            let found = format!("axis \"{}\" with brake feedback without an input", holder.repetition.name);
            let expected = "released, closed, or both";
            return Err(Problem::new(entry, found, expected, "add one, or remove feedback"));
        }
        let mut input = |name: BrakeInput, keys: &Option<FeedbackInputKeys>| {
            let input = keys.as_ref().map(|it| self.input(name, it, holder, entry.key(name.words())));
            input.transpose()
        };
        let released = input(BrakeInput::Released, &keys.released)?;
        let closed = input(BrakeInput::Closed, &keys.closed)?;
        Ok(BrakeFeedback { released, closed })
    }

    fn input(
        &mut self,
        name: BrakeInput,
        keys: &FeedbackInputKeys,
        holder: Holder<'_>,
        entry: Place<'_>,
    ) -> Checked<FeedbackInput> {
        let axis = &holder.repetition.name;
        let part = format!("input {name} of the brake");
        let with = format!(" with the input {name} of its brake");
        let wanted = WantedBrake {
            sub_device: &keys.sub_device,
            channel: keys.channel,
            part: &part,
            with: &with,
            kind: "inputs",
            channels: digital_inputs,
        };
        let (sub_device, channel) = self.place(&wanted, holder, entry)?;
        let holds = format!("the {part} of axis \"{axis}\"");
        if let Some(other) = self.inputs.insert((sub_device, channel), holds.clone()) {
            let on = &self.bus.sub_devices[sub_device].name;
            let found = format!("channel {channel} of \"{on}\" for {holds}; {other} has it");
            let expected = "an input for each feedback";
            return Err(Problem::new(entry.key("channel"), found, expected, "choose another"));
        }
        Ok(FeedbackInput { sub_device, channel, inverted: keys.inverted })
    }

    /// Position and channel of an input or output that the robot has.
    fn place(
        &self,
        wanted: &WantedBrake<'_>,
        Holder { repetition, step, drive }: Holder<'_>,
        entry: Place<'_>,
    ) -> Checked<(usize, usize)> {
        let WantedBrake { part, with, kind, .. } = *wanted;
        let axis = &repetition.name;
        let place = entry.key("sub_device");
        let position = axis_sub_device(wanted.sub_device, repetition, self.positions, with, place)?;
        let it = &self.bus.sub_devices[position];
        let name = &it.name;
        in_every_cycle(&format!("the {part} of axis \"{axis}\""), it, place)?;
        presence::of_brake(axis, with, it, drive, place)?;
        let there = (wanted.channels)(it);
        if there == Some(0) {
            let found = format!("axis \"{axis}\"{with} on \"{name}\", which has no digital {kind}");
            let expected = self.one_with(wanted);
            return Err(Problem::new(place, found, expected, "name another SubDevice"));
        }
        // Axes on one terminal take its channels one by one. If each axis has its own terminal, all
        // take the same channel of each.
        let further = if repetition.changes(wanted.sub_device) { 0 } else { step };
        let most = there.unwrap_or(MOST_BYTES * 8);
        let number = usize::try_from(wanted.channel).ok().and_then(|first| first.checked_add(further));
        let Some(channel) = number.filter(|number| (1..=most).contains(number)) else {
            let asked = number.map_or(wanted.channel.to_string(), |number| number.to_string());
            let found = format!("channel {asked} for the {part} of axis \"{axis}\"");
            let expected = format!("1 to {most}, the digital {kind} of \"{name}\"");
            return Err(Problem::new(entry.key("channel"), found, expected, "correct channel"));
        };
        Ok((position, channel))
    }

    fn one_with(&self, WantedBrake { kind, channels, .. }: &WantedBrake<'_>) -> String {
        let has_some = |it: &&SubDevice| channels(it).is_some_and(|number| number > 0);
        match self.bus.sub_devices.iter().find(has_some) {
            Some(it) => format!("a SubDevice with digital {kind}, as \"{}\"", it.name),
            None => format!("a SubDevice with digital {kind}"),
        }
    }
}

/// Number of its digital outputs; `None` where only its SII gives it, which is checked when the bus
/// is there.
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
