//! SubDevices that a line can name, and their possible faults.

use ethercat::register::dl::PORTS;

use crate::Segment;
use crate::application::ServoDrive;

/// SubDevices by position.
#[derive(Clone, Debug, Default)]
pub struct Targets(Vec<Target>);

/// One SubDevice.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    pub(super) name: String,
    /// Ports with a cable.
    pub(super) cables: [bool; PORTS],
    /// Axes of a servo drive; otherwise 0.
    pub(super) axes: usize,
    /// Axes of the drive, from 0, with a simulated brake.
    pub(super) brakes: Vec<usize>,
    /// Inputs of a terminal with digital inputs; otherwise 0.
    pub(super) inputs: u8,
    pub(super) has_mailbox: bool,
    pub(super) has_clock: bool,
}

impl Targets {
    /// The SubDevices of `segment`, with their names by position.
    #[must_use]
    pub fn of(names: impl Iterator<Item = String>, segment: &mut Segment) -> Self {
        let target = |(position, name)| {
            let cables = std::array::from_fn(|port| segment.has_cable(position, port));
            let Some(device) = segment.sub_device_mut(position) else {
                return Target { name, cables, ..Target::default() };
            };
            Target {
                name,
                cables,
                has_mailbox: device.has_mailbox(),
                has_clock: device.has_clock(),
                axes: device.servo_mut().map_or(0, |it| it.axes().len()),
                brakes: device.servo_mut().map_or_else(Vec::new, |it| braked(it)),
                inputs: device.digital_inputs_mut().map_or(0, |it| it.channels()),
            }
        };
        Self(names.enumerate().map(target).collect())
    }

    /// Their number.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|it| it.name.as_str())
    }

    /// The one at this position; a position comes from [`find`](Self::find).
    pub(super) fn get(&self, position: usize) -> Option<&Target> {
        self.0.get(position)
    }

    /// Position of the SubDevice that `wanted` names, by its name or its position.
    pub(super) fn find(&self, wanted: &str) -> Option<usize> {
        let by_position = || wanted.parse::<usize>().ok().filter(|&position| position < self.0.len());
        self.names().position(|name| name == wanted).or_else(by_position)
    }

    #[cfg(test)]
    pub(super) fn line(names: &[&str]) -> Self {
        let last = names.len().saturating_sub(1);
        let target = |(position, name): (usize, &&str)| Target {
            name: (*name).to_owned(),
            cables: [true, position < last, false, false],
            axes: if name.starts_with("drive") { 2 } else { 0 },
            brakes: if name.starts_with("drive") { vec![1] } else { Vec::new() },
            inputs: if name.starts_with("last") { 8 } else { 0 },
            has_mailbox: !name.starts_with("plain"),
            has_clock: !name.starts_with("plain"),
        };
        Self(names.iter().enumerate().map(target).collect())
    }
}

/// Axes with a simulated brake.
fn braked(drive: &ServoDrive) -> Vec<usize> {
    let axes = drive.axes().iter().enumerate();
    axes.filter(|(_, axis)| axis.brake().is_some()).map(|(number, _)| number).collect()
}
