//! Synchronisation parameters and error settings (ETG.1020, 13.3 and 15.2; objects 0x1C32, 0x1C33 and 0x10F1).

use ethercat::wire::coe::AccessRights;

use super::common::{ERROR_SETTINGS, INPUT_SYNCHRONISATION, OUTPUT_SYNCHRONISATION};
use super::data_type::DataType;
use super::device::CoeDevice;
use super::dictionary::ObjectDictionary;
use super::object::{Allowed, Entry, Object, READ_WRITE};
use crate::application::{Synchronisation, SynchronisationState};

const TYPE: u8 = 0x01;
const CYCLE_TIME: u8 = 0x02;
const MINIMUM_CYCLE: u8 = 0x05;
const CALC_AND_COPY: u8 = 0x06;
const SYNC0_CYCLE: u8 = 0x0A;
const EVENTS_MISSED: u8 = 0x0B;
const CYCLE_TOO_SHORT: u8 = 0x0C;
const SHIFT_TOO_SHORT: u8 = 0x0D;
const SYNC_ERROR: u8 = 0x20;
const ERROR_LIMIT: u8 = 0x02;

/// Synchronisation types (ETG.1020, 13.3): free run, with the SyncManager's event, with SYNC0.
const TYPES: [i64; 3] = [0, 1, 2];

/// [`TYPES`] that are supported, one bit each, as in sub-index 4.
const SUPPORTED: i64 = 0b0000_0111;

/// Shortest cycle, nanoseconds.
const MINIMUM_CYCLE_NS: i64 = 125_000;

/// Time that the application takes after SYNC0 or the SyncManager's event, nanoseconds.
const CALC_AND_COPY_NS: i64 = 20_000;

/// Data type of the synchronisation parameter record (ETG.1020).
const RECORD_TYPE: u16 = 0x0029;

/// Synchronisation parameters at `index`. The type is accepted and shown; the application follows the configuration of the
/// ESC.
pub(super) fn parameters(index: u16, name: &'static str) -> Object {
    let settable = AccessRights::READ.with(AccessRights::WRITE_PRE_OP);
    let read = |sub_index, name, data_type| Entry::new(sub_index, name, data_type, AccessRights::READ);
    let entries = vec![
        Entry::new(TYPE, "Synchronization type", DataType::U16, settable)
            .with_allowed(Allowed::OneOf(TYPES.to_vec()))
            .with_value(1),
        Entry::new(CYCLE_TIME, "Cycle time", DataType::U32, settable),
        read(0x03, "Shift time", DataType::U32),
        read(0x04, "Synchronization types supported", DataType::U16).with_value(SUPPORTED),
        read(MINIMUM_CYCLE, "Minimum cycle time", DataType::U32).with_value(MINIMUM_CYCLE_NS),
        read(CALC_AND_COPY, "Calc and copy time", DataType::U32).with_value(CALC_AND_COPY_NS),
        read(0x09, "Delay time", DataType::U32),
        read(SYNC0_CYCLE, "Sync0 cycle time", DataType::U32),
        read(EVENTS_MISSED, "SM-event missed", DataType::U16),
        read(CYCLE_TOO_SHORT, "Cycle time too small", DataType::U16),
        read(SHIFT_TOO_SHORT, "Shift time too short", DataType::U16),
        read(SYNC_ERROR, "Sync error", DataType::Boolean),
    ];
    Object::record(index, name, RECORD_TYPE, entries)
}

/// Error settings: the limit above which missed SyncManager events end Op. 0, the default, is none: the counters count alone.
/// Real devices come with 4.
pub(super) fn error_settings() -> Object {
    let entries = vec![
        Entry::new(0x01, "Local error reaction", DataType::U32, READ_WRITE),
        Entry::new(ERROR_LIMIT, "Sync error counter limit", DataType::U16, READ_WRITE),
    ];
    Object::record(ERROR_SETTINGS, "Error settings", 0, entries)
}

/// Types and cycle times as the MainDevice has configured them, of outputs and inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Configured([(i64, i64); 2]);

const OBJECTS: [u16; 2] = [OUTPUT_SYNCHRONISATION, INPUT_SYNCHRONISATION];

impl CoeDevice {
    /// Synchronisation that its objects ask for.
    #[must_use]
    pub fn synchronisation(&self) -> Synchronisation {
        let value = |index, sub_index| self.dictionary().value(index, sub_index).unwrap_or(0);
        let number = |sub_index| value(OUTPUT_SYNCHRONISATION, sub_index);
        Synchronisation {
            kinds: OBJECTS.map(|index| value(index, TYPE) as u16),
            cycle_time: number(CYCLE_TIME) as u32,
            minimum_cycle: number(MINIMUM_CYCLE) as u32,
            calc_and_copy: number(CALC_AND_COPY) as u32,
            error_limit: value(ERROR_SETTINGS, ERROR_LIMIT) as u16,
        }
    }

    /// Shows the synchronisation in use; after it, `None`, what was configured is back.
    pub fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        let configured = self.configured_synchronisation.take();
        let configured = configured.unwrap_or_else(|| Configured::of(self.dictionary()));
        self.configured_synchronisation = shown.is_some().then_some(configured);
        let dictionary = self.dictionary_mut();
        for (index, (kind, cycle_time)) in OBJECTS.into_iter().zip(configured.0) {
            let mut set = |sub_index, value| {
                if let Ok(id) = dictionary.find(index, sub_index) {
                    dictionary.set(id, value);
                }
            };
            let used = shown.map(|it| (2, i64::from(it.cycle)));
            let (kind, cycle_time) = used.unwrap_or((kind, cycle_time));
            set(TYPE, kind);
            set(CYCLE_TIME, cycle_time);
            if let Some(shown) = shown {
                set(SYNC0_CYCLE, shown.cycle.into());
                set(EVENTS_MISSED, shown.events_missed.into());
                set(CYCLE_TOO_SHORT, shown.cycle_too_short.into());
                set(SHIFT_TOO_SHORT, shown.shift_too_short.into());
                set(SYNC_ERROR, shown.error.into());
            }
        }
    }
}

impl Configured {
    fn of(dictionary: &ObjectDictionary) -> Self {
        let value = |index, sub_index| dictionary.value(index, sub_index).unwrap_or(0);
        Self(OBJECTS.map(|index| (value(index, TYPE), value(index, CYCLE_TIME))))
    }
}

#[cfg(test)]
mod tests {
    use ethercat::sii::Identity;

    use super::super::common;
    use super::*;
    use crate::coe::DeviceDescription;

    // feature(simulator): synchronisation parameters 0x1C32 and 0x1C33 filled
    #[test]
    fn what_is_in_use_is_shown_and_what_was_configured_comes_back() {
        let description = DeviceDescription::new(Identity::default(), "device");
        let mut device = CoeDevice::new(common::dictionary(&description));
        let values = |device: &CoeDevice| {
            let of = |sub_index| device.dictionary().value(OUTPUT_SYNCHRONISATION, sub_index);
            [TYPE, CYCLE_TIME, EVENTS_MISSED, CYCLE_TOO_SHORT, SYNC_ERROR].map(|sub| of(sub).unwrap_or(-1))
        };
        let mut state = SynchronisationState { cycle: 500_000, ..SynchronisationState::default() };
        device.show_synchronisation(Some(&state));
        assert_eq!(values(&device), [2, 500_000, 0, 0, 0]);
        state = SynchronisationState { events_missed: 6, cycle_too_short: 1, error: true, ..state };
        device.show_synchronisation(Some(&state));
        assert_eq!(values(&device), [2, 500_000, 6, 1, 1]);
        assert_eq!(device.dictionary().value(INPUT_SYNCHRONISATION, TYPE), Some(2));
        device.show_synchronisation(None);
        // Counters stay to be read.
        assert_eq!(values(&device), [1, 0, 6, 1, 1]);
        assert_eq!(device.synchronisation().kinds, [1, 1]);
    }
}
