//! Descriptions and buses that are ambiguous or contradict themselves.

use super::*;

/// Reason that the bus does not come up.
pub(super) fn refused(described_as: Vec<SubDeviceConfiguration>, devices: Vec<SubDevice>) -> BusError {
    let mut rig = Rig::new(described(described_as), devices);
    rig.pump_to(BringUpPhase::PreOp);
    rig.failure().cloned().unwrap_or_else(|| panic!("it came up: {:?}", rig.main_device.sub_devices()))
}

#[test]
fn indistinguishable_sub_devices_are_one_sentence() {
    let sentence = |described_as, devices| refused(described_as, devices).to_string();
    assert_eq!(
        sentence(
            vec![required("hub", 1), optional("left", 2), optional("right", 2)],
            vec![device(1, 0), device(2, 0)]
        ),
        "the SubDevice at place 1 of the bus (vendor 0xffff0b01 product 0x00000502 revision 0x00000001) can be SubDevice 1 \
         \"left\" or SubDevice 2 \"right\", expected one only: give them an alias each"
    );
    assert_eq!(
        sentence(
            vec![required("hub", 1), hot("tool", 2, Some(5), None)],
            vec![device(1, 0), device(2, 5), device(2, 5)]
        ),
        "the SubDevices at positions 1 and 2 of the bus both match SubDevice 1 \"tool\", expected \
         one: give each a different alias, or unplug one"
    );
    assert_eq!(
        sentence(
            vec![required("hub", 1), optional("left", 2), required("right", 3)],
            vec![device(1, 0), device(2, 0)]
        ),
        "SubDevice 2 \"right\" is required, and none of the 2 that answer matches it, in the order \
         described; check its power, the cable to it and the order"
    );
    assert_eq!(
        sentence(vec![optional("left", 2)], vec![device(7, 0)]),
        "1 SubDevice answers, expected one or more SubDevices of the robot file: the first that \
         answers is vendor 0xffff0b01 product 0x00000507 revision 0x00000001; correct the robot \
         file or the cable"
    );
    assert_eq!(
        sentence(
            vec![required("hub", 1), hot("tool", 2, Some(5), None), required("last", 3)],
            vec![device(1, 0), device(2, 5), device(3, 0)]
        ),
        "SubDevice 2 \"last\" is required and is connected behind SubDevice 1 \"tool\", which is \
         hot_connect, expected nothing required behind what may be unplugged: connect it \
         elsewhere, or make it part of that group"
    );
    let unknown = SubDeviceConfiguration { process_data: ProcessDataSource::Sii, ..optional("left", 2) };
    let unknown = SubDeviceConfiguration { startup: Vec::new(), ..unknown };
    assert_eq!(
        sentence(vec![required("hub", 1), unknown], vec![device(1, 0)]),
        "SubDevice 1 \"left\": it is absent, its process data is not in the robot file, and no \
         SubDevice of the same type is present; give its pdos, or plug it in for the first start"
    );
}

#[test]
fn contradictory_descriptions_are_one_sentence_each() {
    let sentence = |sub_devices: Vec<SubDeviceConfiguration>| {
        MainDevice::new(described(sub_devices)).expect_err("a contradiction").to_string()
    };
    let in_group = |it: SubDeviceConfiguration, group: &str| SubDeviceConfiguration {
        group: Some(group.to_owned()),
        ..it
    };
    assert_eq!(
        sentence(vec![hot("a", 1, Some(1), Some("tool")), in_group(required("b", 2), "tool")]),
        "SubDevice 1 \"b\" is required in the group \"tool\", expected hot_connect, as the first \
         of that group: SubDevices that are plugged together have the same presence"
    );
    assert_eq!(
        sentence(vec![
            hot("a", 1, Some(1), Some("tool")),
            required("b", 2),
            hot("c", 3, None, Some("tool"))
        ]),
        "SubDevice 2 \"c\" is of the hot-connect group \"tool\" behind a SubDevice that is not, expected all of a group in a row, \
         as they are plugged"
    );
    assert_eq!(
        sentence(vec![hot("a", 1, Some(7), None), hot("b", 2, Some(7), None)]),
        "SubDevice 1 \"b\" has alias 7, expected every alias once: SubDevice 0 has it"
    );
    let nothing = SubDeviceConfiguration { identity: None, ..optional("a", 1) };
    assert_eq!(
        sentence(vec![nothing]),
        "SubDevice 0 \"a\" is optional and has neither an alias nor an identity, expected an alias \
         or an identity, which identifies it among the others"
    );
    assert_eq!(
        sentence(vec![hot("a", 1, None, None), required("b", 1)]),
        "SubDevice 0 \"a\" is hot_connect with the identity of SubDevice 1 and no alias, expected \
         an alias that distinguishes two alike"
    );
    let fine = vec![required("a", 1), hot("b", 2, Some(1), Some("tool")), hot("c", 1, None, Some("tool"))];
    assert!(MainDevice::new(described(fine)).is_ok());
}
