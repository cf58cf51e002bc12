//! A SubDevice as it was found: contents of its SII, and its answers.

use std::collections::{BTreeMap, BTreeSet};

use ethercat::cia402::object::{
    self, CONTROLWORD, FEED_CONSTANT, GEAR_RATIO, INTERPOLATION_TIME_PERIOD, MOST_AXES,
    MOTOR_RATED_CURRENT, MOTOR_RATED_TORQUE, POSITION_ENCODER_RESOLUTION, QUICK_STOP_DECELERATION,
    STATUSWORD, SUPPORTED_DRIVE_MODES, of_axis,
};
use ethercat::pdo::PdoMapping;
use ethercat::sii::{CoeDetails, DistributedClock, Identity, Image, MailboxProtocols};

/// Index and sub-index of an object.
pub type ObjectPlace = (u16, u8);

/// A SubDevice as it was found.
///
/// The caller with a bus reads the objects that [`Found::questions`] lists, until the list is
/// empty.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Identity; `None` where its SII could not be read.
    pub identity: Option<Identity>,
    /// Name of the device; may be empty.
    pub name: String,
    /// Order number; may be empty.
    pub order: String,
    /// Station alias; 0 for none.
    pub alias: u16,
    /// Position of the SubDevice it is attached to, and the port there; `None` for the first one,
    /// and if unknown.
    pub upstream: Option<(u16, u8)>,
    /// PDOs that it exchanges unless others are assigned.
    pub mapping: PdoMapping,
    /// All PDOs that its SII lists.
    pub offered: PdoMapping,
    /// PDOs that hold a sample of an oversampling terminal.
    pub samples: Vec<u16>,
    /// Modes of its clock, the default first; empty without a clock.
    pub clock_modes: Vec<DistributedClock>,
    /// True if it has a clock with unknown modes.
    pub has_untold_clock: bool,
    /// True if it has objects (CoE).
    pub coe: bool,
    /// Abilities of its CoE server, as its SII says.
    pub coe_details: CoeDetails,
    /// Defect for which it cannot be described whole, as a sentence.
    pub problem: Option<String>,
    /// Answers to the questions: the bytes of an object, or the reason that there are none.
    pub objects: BTreeMap<ObjectPlace, Result<Vec<u8>, String>>,
    /// Objects that cannot be written in PreOp, as its object dictionary says.
    pub read_only: BTreeSet<ObjectPlace>,
}

/// Device type (CiA 301, 7.5.2.1): the number of the profile in the lower half.
const DEVICE_TYPE: u16 = 0x1000;

/// Minimum cycle time of the outputs' SyncManager, UNSIGNED32, ns (ETG.1020, 0x1C32).
const SHORTEST_CYCLE: ObjectPlace = (0x1C32, 5);

/// Number of the profile of drives.
const DRIVES: u64 = 402;

/// Objects of an axis with its scale and abilities.
const OF_AXIS: [ObjectPlace; 12] = [
    (SUPPORTED_DRIVE_MODES, 0),
    (POSITION_ENCODER_RESOLUTION, 1),
    (POSITION_ENCODER_RESOLUTION, 2),
    (GEAR_RATIO, 1),
    (GEAR_RATIO, 2),
    (FEED_CONSTANT, 1),
    (FEED_CONSTANT, 2),
    (MOTOR_RATED_CURRENT, 0),
    (MOTOR_RATED_TORQUE, 0),
    (QUICK_STOP_DECELERATION, 0),
    (INTERPOLATION_TIME_PERIOD, 1),
    (INTERPOLATION_TIME_PERIOD, 2),
];

/// True of an object that a draft may have written at start-up, unless it is among
/// [`Found::read_only`].
#[must_use]
pub fn may_be_written((index, _): ObjectPlace) -> bool {
    object::of_first_axis(index) == INTERPOLATION_TIME_PERIOD
}

impl Found {
    /// A SubDevice as its SII alone describes it.
    #[must_use]
    pub fn of_image(image: &Image) -> Self {
        let header = &image.header;
        Self {
            identity: Some(header.identity()),
            name: image.name(),
            order: image.order(),
            alias: header.alias(),
            mapping: image.default_mapping(),
            offered: PdoMapping { outputs: image.outputs(), inputs: image.inputs() },
            samples: image.samples(),
            clock_modes: image.distributed_clocks().to_vec(),
            coe: header.mailbox().is_some() && header.mailbox_protocols().contains(MailboxProtocols::COE),
            coe_details: image.general().map_or(CoeDetails(0), |general| general.coe_details),
            ..Self::default()
        }
    }

    /// Objects to read next; none once everything is known. Call it again when each of them has its
    /// answer in [`Found::objects`].
    #[must_use]
    pub fn questions(&self) -> Vec<ObjectPlace> {
        let is_open = |place: &ObjectPlace| !self.objects.contains_key(place);
        if !self.coe {
            return Vec::new();
        }
        if is_open(&(DEVICE_TYPE, 0)) {
            return vec![(DEVICE_TYPE, 0)];
        }
        let axes = self.axes();
        let of = |axis: &u8| OF_AXIS.map(|(index, sub_index)| (of_axis(index, *axis), sub_index));
        let cycle = Some(SHORTEST_CYCLE).filter(|_| !axes.is_empty());
        let open: Vec<_> = cycle.into_iter().chain(axes.iter().flat_map(of)).filter(is_open).collect();
        // If no further axis is mapped, only its objects show whether it exists.
        let next = axes.last().map(|last| (of_axis(SUPPORTED_DRIVE_MODES, last + 1), 0));
        let further =
            next.filter(|it| axes.len() < usize::from(MOST_AXES) && is_open(it) && self.is_answered());
        if open.is_empty() { further.into_iter().collect() } else { open }
    }

    /// Axes of a drive (CiA 402), from 0: axes that are mapped or can be, and axes with supported
    /// modes. Empty for other SubDevices.
    pub(super) fn axes(&self) -> Vec<u8> {
        let is_mapped = |axis: &u8| {
            [&self.mapping, &self.offered].iter().any(|mapping| {
                let is_word =
                    |field: Option<ethercat::pdo::PdoField>| field.is_some_and(|it| it.bit_length == 16);
                is_word(mapping.output(of_axis(CONTROLWORD, *axis), 0))
                    && is_word(mapping.input(of_axis(STATUSWORD, *axis), 0))
            })
        };
        let has_modes = |axis: &u8| self.of_axis(*axis, SUPPORTED_DRIVE_MODES, 0).is_some();
        let is_drive = self.number(DEVICE_TYPE, 0).is_some_and(|it| it & 0xFFFF == DRIVES);
        let is_there = |axis: &u8| is_mapped(axis) || has_modes(axis) || (*axis == 0 && is_drive);
        (0..MOST_AXES).take_while(is_there).collect()
    }

    /// Shortest cycle that its application can hold, ns (ETG.1020, 0x1C32:05), if it gives one.
    pub(super) fn shortest_cycle(&self) -> Option<u64> {
        let (index, sub_index) = SHORTEST_CYCLE;
        self.number(index, sub_index).filter(|it| *it > 0)
    }

    /// Number in an object of the first axis, or the same of another.
    pub(super) fn of_axis(&self, axis: u8, index: u16, sub_index: u8) -> Option<u64> {
        self.number(of_axis(index, axis), sub_index)
    }

    /// True if the SubDevice answered any question about its axes.
    fn is_answered(&self) -> bool {
        self.objects.iter().any(|((index, _), answer)| object::axis_of(*index).is_some() && answer.is_ok())
    }

    /// Number in an object, if it was read and is one.
    fn number(&self, index: u16, sub_index: u8) -> Option<u64> {
        let bytes = self.objects.get(&(index, sub_index))?.as_ref().ok()?;
        let is_number = (1..=8).contains(&bytes.len());
        is_number.then(|| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Reason that a number of an axis is not known.
    pub(super) fn why(&self, axis: u8, index: u16, sub_index: u8) -> String {
        match self.objects.get(&(of_axis(index, axis), sub_index)) {
            None if self.coe => "is in no SII; --iface reads it".to_owned(),
            None => "is not there without CoE".to_owned(),
            Some(Err(why)) => super::text::shown(why),
            Some(Ok(_)) => "is no number that can be".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethercat::cia402::object::FEED_CONSTANT;

    /// Requests as a bus does; the drive has these objects.
    fn asked(found: &mut Found, has: &[(ObjectPlace, u32)]) -> Vec<ObjectPlace> {
        let mut asked = Vec::new();
        loop {
            let questions = found.questions();
            if questions.is_empty() {
                return asked;
            }
            for place in questions {
                let value = has.iter().find(|it| it.0 == place).map(|it| it.1.to_le_bytes().to_vec());
                assert!(found.objects.insert(place, value.ok_or_else(|| "aborted".to_owned())).is_none());
                asked.push(place);
            }
        }
    }

    // feature(program): `onbeat new`: a robot file from a bus, or from SII images
    #[test]
    fn only_drives_are_asked_and_each_of_their_axes() {
        let mut without = Found::default();
        assert_eq!(asked(&mut without, &[]), []);
        let mut terminal = Found { coe: true, ..Found::default() };
        assert_eq!(asked(&mut terminal, &[((0x1000, 0), 0x0001_1389)]), [(0x1000, 0)]);
        assert!(terminal.axes().is_empty());
        let mut drive = Found { coe: true, ..Found::default() };
        let has = [((0x1000, 0), 0x0002_0192), ((0x6502, 0), 0x80), ((0x6D02, 0), 0x80)];
        let all = asked(&mut drive, &has);
        assert_eq!(drive.axes(), [0, 1]);
        assert_eq!(all.len(), 2 + 2 * OF_AXIS.len() + 1, "{all:x?}");
        assert!(all.contains(&(FEED_CONSTANT + 0x800, 2)) && all.last() == Some(&(0x7502, 0)));
        // A SubDevice that answers nothing gets no requests for further axes.
        let mut silent = Found { coe: true, ..Found::default() };
        assert_eq!(asked(&mut silent, &[((0x1000, 0), 0x192)]).len(), 2 + OF_AXIS.len());
    }
}
