//! Names of a robot's parts in the sentences of events.

use std::time::Duration;

use ipc::bus::CableEnd;
use ipc::description::Referencing;
use types::state::BrakeInput;
use types::time::span;
use types::{FeedbackInput, Interlock};

/// Parts of a kind named one by one; of more the first and their number.
pub const MOST_NAMED: usize = 3;

/// Names of a robot's parts, in the order of their places.
#[derive(Clone, Debug, Default)]
pub struct PartNames {
    /// Names of the SubDevices.
    pub sub_devices: Vec<String>,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Ways to make an unreferenced axis ready, in the order of the axes.
    pub referencing: Vec<Referencing>,
    /// Interlocks.
    pub interlocks: Vec<Interlock>,
    /// Inputs of the brakes, in the order of the axes.
    pub brake_inputs: Vec<(BrakeInput, FeedbackInput)>,
    /// Name of the network interface; none on a simulated bus.
    pub interface: Option<String>,
    /// Time between two releases.
    pub period: Duration,
}

impl PartNames {
    /// The SubDevice at this place.
    #[must_use]
    pub fn sub_device(&self, position: usize) -> String {
        sub_device(position, self.sub_devices.get(position).map_or("?", String::as_str))
    }

    /// The SubDevices at these places: a cable cut takes many.
    #[must_use]
    pub fn sub_devices(&self, positions: &[usize]) -> String {
        match positions.len() {
            all if all > MOST_NAMED && all == self.sub_devices.len() => format!("all {all} SubDevices"),
            many if many > MOST_NAMED => {
                format!("{many} SubDevices, the first {}", self.sub_device(positions[0]))
            }
            _ => positions.iter().map(|&it| self.sub_device(it)).collect::<Vec<_>>().join(", "),
        }
    }

    /// The interlock at this place, with its input.
    pub(super) fn interlock(&self, interlock: usize) -> String {
        let Some(it) = self.interlocks.get(interlock) else { return format!("interlock {interlock}") };
        let sub_device = self.sub_devices.get(it.sub_device).map_or("?", String::as_str);
        ipc::description::interlock_input(&it.name, sub_device, it.channel)
    }

    /// The input of a brake at this place.
    pub(super) fn brake_input(&self, place: usize) -> String {
        let Some((name, it)) = self.brake_inputs.get(place) else { return format!("input {place}") };
        let sub_device = self.sub_devices.get(it.sub_device).map_or("?", String::as_str);
        ipc::description::brake_input(name.words(), sub_device, it.channel)
    }

    /// Name of the axis at this place.
    #[must_use]
    pub fn axis(&self, axis: usize) -> &str {
        self.axes.get(axis).map_or("?", String::as_str)
    }

    /// Remedy for these axes while they are unreferenced.
    pub(super) fn unreferenced(&self, axes: &[usize]) -> &'static str {
        let mut ways = axes.iter().map(|&it| self.referencing.get(it).copied());
        let first = ways.next().flatten();
        ipc::words::unreferenced(first.filter(|&it| ways.all(|other| other == Some(it))))
    }

    /// The axes at these places, with their verb.
    pub(super) fn axes_are(&self, axes: &[usize]) -> String {
        match axes {
            [one] => format!("axis \"{}\" is", self.axis(*one)),
            all if all.len() > MOST_NAMED && all.len() == self.axes.len() => {
                format!("all {} axes are", all.len())
            }
            [first, ..] if axes.len() > MOST_NAMED => {
                format!("{} axes, the first \"{}\", are", axes.len(), self.axis(*first))
            }
            few => {
                let names: Vec<String> = few.iter().map(|&it| format!("\"{}\"", self.axis(it))).collect();
                format!("axes {} are", names.join(", "))
            }
        }
    }

    /// Both ends of the cable at which a ring is open.
    pub(super) fn cable(&self, between: [CableEnd; 2]) -> String {
        between.map(|end| end.words(|position| self.sub_device(position))).join(" and ")
    }

    /// The cable to a SubDevice.
    pub(super) fn cable_to(&self, between: [CableEnd; 2]) -> String {
        let words = |end: CableEnd| match end.position {
            Some(_) => end.words(|position| self.sub_device(position)),
            None => self.interface(),
        };
        format!("the cable between {}", between.map(words).join(" and "))
    }

    /// The network interface.
    pub(super) fn interface(&self) -> String {
        self.interface
            .as_ref()
            .map_or("the network interface".to_owned(), |name| format!("interface {name}"))
    }

    /// So many cycles, and the time they take.
    pub(super) fn cycles(&self, cycles: u64) -> String {
        let lasted = self.period.saturating_mul(u32::try_from(cycles).unwrap_or(u32::MAX));
        format!("{cycles} cycles, {}", span(lasted))
    }
}

/// A SubDevice by its place and name.
#[must_use]
pub fn sub_device(position: usize, name: &str) -> String {
    format!("SubDevice {position} \"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts are named one by one up to three; of more the first, or that it is all of them.
    #[test]
    fn many_parts_are_counted_and_few_are_named() {
        let names = |count| (0..count).map(|it| format!("a{it}")).collect::<Vec<_>>();
        let robot = PartNames { sub_devices: names(5), axes: names(6), ..PartNames::default() };
        assert_eq!(robot.sub_devices(&[1, 4]), "SubDevice 1 \"a1\", SubDevice 4 \"a4\"");
        assert_eq!(robot.sub_devices(&[1, 2, 3, 4]), "4 SubDevices, the first SubDevice 1 \"a1\"");
        assert_eq!(robot.sub_devices(&[0, 1, 2, 3, 4]), "all 5 SubDevices");
        assert_eq!(robot.axes_are(&[9]), "axis \"?\" is");
        assert_eq!(robot.axes_are(&[0, 1]), "axes \"a0\", \"a1\" are");
        assert_eq!(robot.axes_are(&[1, 2, 3, 4]), "4 axes, the first \"a1\", are");
        assert_eq!(robot.axes_are(&[0, 1, 2, 3, 4, 5]), "all 6 axes are");
    }
}
