//! Objects that are not written behind the back of a running cycle.

use ethercat::cia402::object;
use ethercat::main_device::MainDevice;

/// Objects that a running cycle depends on.
#[derive(Clone, Debug)]
pub struct WriteProtection {
    /// Entries that the process data writes, for each SubDevice.
    outputs: Vec<Vec<(u16, u8)>>,
    /// Place of the drive of each axis, and its place among the axes of that drive.
    drives: Vec<(usize, u8)>,
}

/// Reason why an object is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Protected {
    /// It defines the process data.
    #[error(
        "it is part of the process data mapping, which the running cycle relies on: end the run, or use --force"
    )]
    Mapping,
    /// The cycle writes it in every period.
    #[error(
        "the running cycle writes it in every period, as process data: set it as a signal, or use --force"
    )]
    Output,
    /// It moves an axis, or changes how its numbers are read.
    #[error(
        "it belongs to a running axis, and changes its motion past all limits: end the run, or use --force"
    )]
    Axis,
    /// It bounds how an axis moves that has power.
    #[error(
        "it bounds how the axis of this drive moves and stops, and the axis has power: disable it first, or use --force"
    )]
    Limit,
    /// Even by force: the axis has power.
    #[error(
        "the axis of this drive has power, and what moves it comes from its controller: disable it first"
    )]
    Powered,
}

impl WriteProtection {
    /// For a bus in PreOp; `drives` are the places of the axes' drives, and theirs among the axes
    /// of these, in their order.
    #[must_use]
    pub fn new(main_device: &MainDevice, drives: Vec<(usize, u8)>) -> Self {
        let written = |sub_device: &ethercat::main_device::SubDevice| {
            let entries = sub_device.mapping.outputs.iter().flat_map(|pdo| &pdo.entries);
            entries.filter(|it| it.index != 0).map(|it| (it.index, it.sub_index)).collect()
        };
        Self { outputs: main_device.sub_devices().iter().map(written).collect(), drives }
    }

    /// Checks a download to `index`:`sub_index` of the SubDevice at `position`; `has_power` takes
    /// the index of an axis.
    pub(super) fn check(
        &self,
        position: usize,
        (index, sub_index): (u16, Option<u8>),
        force: bool,
        has_power: impl Fn(usize) -> bool,
    ) -> Result<(), Protected> {
        let Some(protected) = self.protected(position, index, sub_index) else { return Ok(()) };
        let known = object::axis_of(index).filter(|&axis| self.drives.contains(&(position, axis)));
        // An object of none of its axes may concern any of them.
        let concerned = |&(_, &(drive, axis)): &(usize, &(usize, u8))| {
            drive == position && known.is_none_or(|known| known == axis)
        };
        let powered = self.drives.iter().enumerate().filter(concerned).any(|(axis, _)| has_power(axis));
        match (protected, force) {
            (Protected::Limit, _) if force || !powered => Ok(()),
            (_, false) => Err(protected),
            (_, true) if powered => Err(Protected::Powered),
            (_, true) => Ok(()),
        }
    }

    fn protected(&self, position: usize, index: u16, sub_index: Option<u8>) -> Option<Protected> {
        if matches!(index, 0x1600..=0x17FF | 0x1A00..=0x1BFF | 0x1C10..=0x1C2F) {
            return Some(Protected::Mapping);
        }
        let has_axis = self.drives.iter().any(|(drive, _)| *drive == position);
        if has_axis && object::moves(index) {
            return Some(Protected::Axis);
        }
        let outputs = self.outputs.get(position)?;
        let is_written = |&(written, entry): &(u16, u8)| {
            written == index && sub_index.is_none_or(|sub_index| sub_index == entry)
        };
        if outputs.iter().any(is_written) {
            return Some(Protected::Output);
        }
        (has_axis && object::limits(index)).then_some(Protected::Limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(running-bus): what the cycle relies on is refused; without power by force only, with power not at all
    #[test]
    fn writes_that_disturb_a_running_cycle_are_refused() {
        let protection = WriteProtection {
            outputs: vec![vec![(0x6040, 0), (0x607A, 0)], vec![(0x7000, 1)]],
            drives: vec![(0, 0)],
        };
        let check = |position, index, sub_index, force| {
            protection.check(position, (index, Some(sub_index)), force, |_| false)
        };
        for index in [0x1600, 0x17FF, 0x1A03, 0x1BFF, 0x1C10, 0x1C12, 0x1C13] {
            assert_eq!(check(1, index, 0, false), Err(Protected::Mapping), "{index:#06x}");
        }
        for index in [
            0x6040, 0x6060, 0x6071, 0x607A, 0x60B2, 0x60FE, 0x60FF, 0x6840, 0x707A, 0x6091, 0x6076, 0x6096,
            0x60A8,
        ] {
            assert_eq!(check(0, index, 0, false), Err(Protected::Axis), "{index:#06x}");
            assert_eq!(check(0, index, 0, true), Ok(()), "{index:#06x}");
            let powered = protection.check(0, (index, Some(0)), true, |axis| axis == 0);
            assert_eq!(powered, Err(Protected::Powered), "{index:#06x}");
        }
        // Objects that bound an axis, as long as it has power.
        for index in
            [0x6065, 0x6067, 0x6072, 0x6085, 0x605A, 0x60E0, 0x6872, 0x60C2, 0x68C0, 0x607B, 0x60F2, 0x60A4]
        {
            let powered = |force| protection.check(0, (index, Some(0)), force, |axis| axis == 0);
            assert_eq!((powered(false), powered(true)), (Err(Protected::Limit), Ok(())), "{index:#06x}");
            assert_eq!(check(0, index, 0, false), Ok(()), "{index:#06x}");
        }
        // With two axes in a drive only the one with power is concerned; an object of neither
        // concerns both.
        let double = WriteProtection { outputs: vec![vec![]], drives: vec![(0, 0), (0, 1)] };
        let force = |index| double.check(0, (index, Some(0)), true, |axis| axis == 1);
        assert_eq!(force(0x6060), Ok(()));
        for index in [0x6860, 0x7060] {
            assert_eq!(force(index), Err(Protected::Powered), "{index:#06x}");
        }
        assert_eq!(check(1, 0x7000, 1, false), Err(Protected::Output));
        assert_eq!(
            protection.check(1, (0x7000, None), false, |_| false),
            Err(Protected::Output),
            "complete access"
        );
        for (position, index, sub_index) in
            [(0, 0x607D, 1), (0, 0x2000, 0), (0, 0x1C32, 1), (1, 0x6040, 0), (1, 0x7000, 2), (9, 0x6040, 0)]
        {
            assert_eq!(
                check(position, index, sub_index, false),
                Ok(()),
                "{position} {index:#06x}:{sub_index}"
            );
        }
    }
}
