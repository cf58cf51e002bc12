//! Synchronisation parameters and error settings (ETG.1020, 13.3 and 15.2; objects 0x1C32, 0x1C33
//! and 0x10F1).

use ethercat::wire::coe::AccessRights;

use super::data_type::DataType;
use super::device::{CoeDevice, SHOWN_COUNTERS, ShownSynchronisation};
use super::dictionary::ObjectDictionary;
use super::object::{Allowed, Entry, Object, READ_WRITE};
use crate::application::{Synchronisation, SynchronisationState};

/// Error settings.
pub const ERROR_SETTINGS: u16 = 0x10F1;
/// Synchronisation parameters of SyncManager 2, outputs.
pub const OUTPUT_SYNCHRONISATION: u16 = 0x1C32;
/// Synchronisation parameters of SyncManager 3, inputs.
pub const INPUT_SYNCHRONISATION: u16 = 0x1C33;

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
const TYPES: [i64; 3] = [0, 1, WITH_SYNC0];

/// Synchronisation type with SYNC0.
const WITH_SYNC0: i64 = 2;

/// [`TYPES`] that are supported, one bit each, as in sub-index 4.
const SUPPORTED: i64 = 0b0000_0111;

/// Shortest cycle, nanoseconds.
const MINIMUM_CYCLE_NS: i64 = 125_000;

/// Time that the application takes after SYNC0 or the SyncManager's event, nanoseconds.
const CALC_AND_COPY_NS: i64 = 20_000;

/// Data type of the synchronisation parameter record (ETG.1020).
const RECORD_TYPE: u16 = 0x0029;

/// Synchronisation parameters at `index`. The type is accepted and shown; the application follows
/// the configuration of the ESC.
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

/// Error settings: the limit above which missed SyncManager events end Op. 0, the default, means no
/// limit: events are only counted. Real devices have 4 by default.
pub(super) fn error_settings() -> Object {
    let entries = vec![
        Entry::new(0x01, "Local error reaction", DataType::U32, READ_WRITE),
        Entry::new(ERROR_LIMIT, "Sync error counter limit", DataType::U16, READ_WRITE),
    ];
    Object::record(ERROR_SETTINGS, "Error settings", 0, entries)
}

const OBJECTS: [u16; 2] = [OUTPUT_SYNCHRONISATION, INPUT_SYNCHRONISATION];

/// State that changes while the synchronisation is in use.
const COUNTERS: [u8; SHOWN_COUNTERS] = [EVENTS_MISSED, CYCLE_TOO_SHORT, SHIFT_TOO_SHORT, SYNC_ERROR];

/// Values of [`COUNTERS`].
fn counters(state: &SynchronisationState) -> [i64; SHOWN_COUNTERS] {
    let &SynchronisationState { events_missed, cycle_too_short, shift_too_short, error, .. } = state;
    [events_missed.into(), cycle_too_short.into(), shift_too_short.into(), error.into()]
}

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

    /// Shows the synchronisation in use; `None` restores the configured values. While outputs are
    /// missed, counters change with each SYNC0: only changed ones are written, without a search,
    /// and the application does not read its settings again for them.
    pub fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        let before = self.shown_synchronisation.take();
        let Some(state) = shown else {
            if let Some(before) = before {
                self.show_types(before.configured);
            }
            return;
        };
        let known = before.as_ref().map(|it| it.state);
        let mut now = before.unwrap_or_else(|| ShownSynchronisation::of(self.dictionary()));
        if known.is_none_or(|known| known.cycle != state.cycle) {
            self.show_types([(WITH_SYNC0, state.cycle.into()); 2]);
            for index in OBJECTS {
                self.show_value(index, SYNC0_CYCLE, state.cycle.into());
            }
        }
        now.state = *state;
        let (old, new) = (known.map(|known| counters(&known)), counters(state));
        for entries in &now.counters {
            for (number, entry) in entries.iter().enumerate() {
                if old.is_none_or(|old| old[number] != new[number]) {
                    entry.iter().for_each(|&entry| self.dictionary_mut().show(entry, new[number]));
                }
            }
        }
        self.shown_synchronisation = Some(now);
    }

    fn show_types(&mut self, values: [(i64, i64); 2]) {
        for (index, (kind, cycle_time)) in OBJECTS.into_iter().zip(values) {
            self.show_value(index, TYPE, kind);
            self.show_value(index, CYCLE_TIME, cycle_time);
        }
    }

    fn show_value(&mut self, index: u16, sub_index: u8, value: i64) {
        if let Ok(entry) = self.dictionary().find(index, sub_index) {
            self.dictionary_mut().show(entry, value);
        }
    }
}

impl ShownSynchronisation {
    fn of(dictionary: &ObjectDictionary) -> Self {
        let value = |index, sub_index| dictionary.value(index, sub_index).unwrap_or(0);
        Self {
            configured: OBJECTS.map(|index| (value(index, TYPE), value(index, CYCLE_TIME))),
            counters: OBJECTS.map(|index| COUNTERS.map(|sub_index| dictionary.find(index, sub_index).ok())),
            state: SynchronisationState::default(),
        }
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
        // They start over with the next one.
        device.show_synchronisation(Some(&SynchronisationState { cycle: 250_000, ..Default::default() }));
        assert_eq!(values(&device), [2, 250_000, 0, 0, 0]);
    }

    /// Each SYNC0 without outputs counts: of a thousand on a host that is late, a thousand times a
    /// cycle.
    #[test]
    fn shown_counters_do_not_cause_a_settings_read() {
        let description = DeviceDescription::new(Identity::default(), "device");
        let mut device = CoeDevice::new(common::dictionary(&description));
        let before = device.dictionary().changes();
        for events_missed in 0..9 {
            let state = SynchronisationState { cycle: 500_000, events_missed, ..Default::default() };
            device.show_synchronisation(Some(&state));
        }
        assert_eq!(device.dictionary().value(INPUT_SYNCHRONISATION, EVENTS_MISSED), Some(8));
        assert_eq!(device.dictionary().changes(), before);
    }
}
