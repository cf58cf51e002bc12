//! Types of process data that neither the SII nor the robot file has, from the object dictionaries.

use std::collections::HashMap;
use std::time::Duration;

use ethercat::main_device::{Event, MailboxError, MailboxRequest, MailboxService, SubDevice};
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::{CoeDetails, Identity};
use ethercat::wire::coe::{EntryDescription, ValueInfo};
use onbeat_ethercat_linux::bring_up::{BringUpError, Pump};
use onbeat_ethercat_linux::link::Link;
use rt::clock::Clock;

/// Process data of each SubDevice, in their order, of a bus in PreOp, with the types of their SDO
/// information. SubDevices without it, and entries without an answer, keep their types.
///
/// # Errors
/// A bus or a link that fails, a request to stop.
pub(super) fn typed_mappings<L: Link + ?Sized, C: Clock>(
    pump: &mut Pump<'_, L, C>,
) -> Result<Vec<PdoMapping>, BringUpError> {
    let sub_devices = pump.main_device.sub_devices();
    let mut mappings: Vec<PdoMapping> = sub_devices.iter().map(|it| it.mapping.clone()).collect();
    let asked: Vec<Option<Identity>> =
        sub_devices.iter().map(|it| tells(it).then_some(kind(it.identity))).collect();
    // SubDevices of one kind have one dictionary.
    let mut known: HashMap<(Identity, u16, u8), u16> = HashMap::new();
    let end = pump.clock.now() + TIME;
    for (position, mapping) in (0..).zip(&mut mappings) {
        let Some(identity) = asked[usize::from(position)] else { continue };
        let pdos = mapping.outputs.iter_mut().chain(&mut mapping.inputs);
        for entry in pdos.flat_map(|pdo| &mut pdo.entries).filter(|it| is_untyped(it)) {
            let key = (identity, entry.index, entry.sub_index);
            if !known.contains_key(&key) {
                if known.len() == MOST || pump.clock.now() >= end {
                    break;
                }
                let Some(data_type) = ask(pump, position, entry)? else { break };
                known.insert(key, data_type);
            }
            entry.data_type = known[&key];
        }
    }
    Ok(mappings)
}

/// SubDevices that have one dictionary: the serial number has no part in it.
fn kind(identity: Identity) -> Identity {
    Identity { serial: 0, ..identity }
}

/// True if its SII says that it has SDO information.
fn tells(sub_device: &SubDevice) -> bool {
    let general = sub_device.sii.as_ref().and_then(|sii| sii.general());
    general.is_some_and(|it| it.coe_details.contains(CoeDetails::SDO_INFORMATION))
}

/// True for an entry with several possible types: padding and single bits have only one.
fn is_untyped(entry: &PdoEntry) -> bool {
    entry.data_type == 0 && entry.index != 0 && (2..=64).contains(&entry.bit_length)
}

/// Data type of an entry, 0 of one that the dictionary does not have; `None` if the SubDevice gives
/// no answers.
fn ask<L: Link + ?Sized, C: Clock>(
    pump: &mut Pump<'_, L, C>,
    position: u16,
    entry: &PdoEntry,
) -> Result<Option<u16>, BringUpError> {
    let PdoEntry { index, sub_index, .. } = *entry;
    let service = MailboxService::DescribeEntry { index, sub_index, value_info: ValueInfo::default() };
    let request = MailboxRequest { position, service, data: Vec::with_capacity(LONGEST) };
    let outcome = match pump.main_device.submit(request) {
        Err(refused) => refused,
        Ok(()) => pump.until(TIMEOUT, |_, event| match event {
            Some(Event::Mailbox(outcome)) => Some(Ok(outcome)),
            Some(Event::Failed(error)) => Some(Err(BringUpError::Bus(error))),
            _ => None,
        })??,
    };
    Ok(match outcome.result {
        Ok(()) => Some(EntryDescription::parse(&outcome.request.data).map_or(0, |it| it.data_type)),
        Err(MailboxError::Aborted(_)) => Some(0),
        Err(_) => None,
    })
}

/// Time after which no more is asked: a SubDevice that answers does so within milliseconds.
const TIME: Duration = Duration::from_secs(1);

/// Maximum number of requested entries.
const MOST: usize = 256;

/// Bytes of the longest description: its name is at its end.
const LONGEST: usize = 1024;

/// Backstop: the MainDevice ends each request in its own, shorter time.
const TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::sync::atomic::AtomicBool;

    use ethercat::al::AlState;
    use ethercat::pdo::Direction;
    use robot::{Overrides, RobotConfig};
    use rt::clock::MonotonicClock;

    use super::*;
    use crate::compose::link::Wire;
    use crate::compose::{configuration, link};

    /// So many drives of one kind, with process data described by the file.
    fn drives(count: usize) -> RobotConfig {
        let mut text = "name = \"drives\"\n[cycle]\nperiod = \"1ms\"\n".to_owned();
        for drive in 0..count {
            let _ = write!(
                text,
                "[[bus.sub_device]]\nname = \"drive {drive}\"\nsimulate = {{ kind = \"servo_drive\" }}\n\
                 [bus.sub_device.pdos]\n\
                 outputs = [{{ index = 0x1600, entries = [{{ index = 0x6040, bits = 16 }}] }}]\n\
                 inputs = [{{ index = 0x1A00, entries = [{{ index = 0x6041, bits = 16 }}, \
                 {{ index = 0x6063, bits = 32 }}, {{ index = 0x6074, bits = 16 }}] }}]\n"
            );
        }
        RobotConfig::parse_with(&text, "drives.toml", Overrides::default()).unwrap()
    }

    /// Types of the inputs of the last SubDevice, and frames it took to ask for all.
    fn asked(robot: &RobotConfig) -> (Vec<u16>, u64) {
        let mut main_device =
            configuration::main_device(configuration::configuration(robot, AlState::Op)).unwrap();
        let wire = Wire::default();
        let mut link = link::open(robot, &wire, "test", &mut |_| {}).unwrap();
        let stop = AtomicBool::new(false);
        let mut pump =
            Pump { main_device: &mut main_device, link: &mut link, clock: &MonotonicClock, stop: &stop };
        link::bring_up(&mut pump, &wire, &mut |_| {}).unwrap();
        let before = pump.main_device.reception().sent;
        let mappings = typed_mappings(&mut pump).unwrap();
        let frames = pump.main_device.reception().sent - before;
        let inputs = mappings.last().unwrap().entries(Direction::Input);
        (inputs.map(|(entry, _)| entry.data_type).collect(), frames)
    }

    /// Real drives have a serial number each.
    #[test]
    fn drives_of_one_kind_share_a_dictionary() {
        let drive = |revision, serial| kind(Identity { vendor_id: 1, product_code: 2, revision, serial });
        assert_eq!(drive(3, 4), drive(3, 5));
        assert_ne!(drive(3, 4), drive(4, 4));
    }

    // feature(signals): types from the object dictionary where the file and the SII give none
    #[test]
    fn drives_of_one_kind_are_asked_once() {
        let unsigned16_signed32_signed16 = vec![6, 4, 3];
        let (types, of_one) = asked(&drives(1));
        assert_eq!(types, unsigned16_signed32_signed16);
        let (types, of_twelve) = asked(&drives(12));
        assert_eq!(types, unsigned16_signed32_signed16);
        assert!(of_one > 0 && of_twelve < 4 * of_one, "{of_one} frames for one, {of_twelve} for twelve");
    }
}
