use super::*;
use crate::main_device::sub_device::SubDevice;
use crate::main_device::topology::Upstream;

#[test]
fn pauses_double_up_to_the_longest() {
    let pauses: Vec<_> = (1..=8).map(|tries| pause(tries).as_millis()).collect();
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    assert!(pause(u32::MAX) == LONGEST_PAUSE);
}

const PRODUCT: Identity = Identity { vendor_id: 2, product_code: 3, revision: 1, serial: 0 };

/// A line of five alike, numbered from 101 on if `numbered`, or in pairs at the ports of the first.
fn five(numbered: bool, in_line: bool) -> Vec<SubDevice> {
    let upstream = |position: u16| {
        let position = if in_line { position.checked_sub(1)? } else { 0 };
        Some(Upstream { position, port: 1 })
    };
    let sub_device = |position| SubDevice {
        identity: Identity { serial: if numbered { 101 + u32::from(position) } else { 0 }, ..PRODUCT },
        upstream: if position == 0 { None } else { upstream(position) },
        ..SubDevice::new(position)
    };
    (0..5).map(sub_device).collect()
}

/// The members at `lost` are lost; a survey has found these addresses.
fn surveyed(lost: &[u16], stations: &[u16]) -> Recovery {
    let mut recovery = Recovery::new(&(0..5).map(SubDevice::new).collect::<Vec<_>>(), &[]);
    lost.iter().for_each(|&position| recovery.set(position, Standing::Lost));
    recovery.survey.start(stations.len() as u16);
    for (place, station) in (0..).zip(stations) {
        recovery.survey.answered(place, *station);
    }
    recovery
}

fn candidate(place: u16, lost: &[u16], stations: &[u16], serial: u32, five: &[SubDevice]) -> Option<u16> {
    surveyed(lost, stations).candidate(place, (Identity { serial, ..PRODUCT }, 0), five)
}

#[test]
fn serial_number_identifies_a_returning_sub_device() {
    let five = five(true, false);
    assert_eq!(candidate(2, &[2], &[0x1001, 0x1002, 0, 0x1004, 0x1005], 103, &five), Some(2));
    assert_eq!(candidate(1, &[1, 2], &[0x1001, 0, 0x1004, 0x1005], 103, &five), Some(2));
    assert_eq!(candidate(4, &[2], &[0x1001, 0x1002, 0x1004, 0x1005, 0], 103, &five), None, "moved");
    assert_eq!(candidate(2, &[2], &[0x1001, 0x1002, 0, 0x1004, 0x1005], 7, &five), Some(2), "exchanged");
    assert_eq!(candidate(4, &[2], &[0x1001, 0x1002, 0x1004, 0x1005, 0], 7, &five), None, "nobody's place");
    let other = Identity { product_code: 4, ..PRODUCT };
    let recovery = surveyed(&[2], &[0x1001, 0x1002, 0, 0x1004, 0x1005]);
    assert_eq!(recovery.candidate(2, (other, 0), &five), None);
}

/// The missing SubDevice of a place that another has, also with unknown ones next to it; none if
/// none is missing.
// feature(main-device): an unexpected SubDevice is reported with its place, and with the SubDevice that belongs there
#[test]
fn missing_sub_device_is_expected_at_its_place() {
    let five = five(true, false);
    let expected =
        |place, lost: &[u16], stations: &[u16]| surveyed(lost, stations).expected_at(place, &five);
    assert_eq!(expected(2, &[2], &[0x1001, 0x1002, 0, 0x1004, 0x1005]), Some(2));
    assert_eq!(expected(2, &[1, 2], &[0x1001, 0, 0, 0x1004, 0x1005]), Some(2));
    assert_eq!(expected(1, &[1, 2], &[0x1001, 0, 0x1004, 0x1005]), Some(1));
    assert_eq!(expected(4, &[2], &[0x1001, 0x1002, 0x1004, 0x1005, 0]), None);
    assert_eq!(expected(3, &[2], &[0x1001, 0x1002, 0, 0, 0x1004, 0x1005]), None, "one too many");
}

#[test]
fn shared_serial_number_identifies_none() {
    let mut five = five(false, false);
    five.iter_mut().for_each(|it| it.identity.serial = 1);
    assert_eq!(candidate(1, &[1, 2], &[0x1001, 0, 0x1004, 0x1005], 1, &five), None);
    assert_eq!(candidate(2, &[1, 2], &[0x1001, 0, 0, 0x1004, 0x1005], 1, &five), Some(2));
}

#[test]
fn known_serial_number_is_not_taken_for_the_missing_one() {
    let five = five(true, false);
    assert_eq!(candidate(2, &[2], &[0x1001, 0x1002, 0, 0x1004, 0x1005], 104, &five), None);
}

#[test]
fn rerouted_line_does_not_identify_the_other_missing() {
    let line = five(false, true);
    assert_eq!(candidate(1, &[1, 2], &[0x1001, 0, 0x1004, 0x1005], 0, &line), None);
}

#[test]
fn without_serial_numbers_only_a_certain_place_counts() {
    let (line, star) = (five(false, true), five(false, false));
    for five in [&line, &star] {
        let all_there = [0x1001, 0, 0, 0x1004, 0x1005];
        assert_eq!(candidate(1, &[1, 2], &all_there, 0, five), Some(1));
        assert_eq!(candidate(2, &[1, 2], &all_there, 0, five), Some(2));
        assert_eq!(
            candidate(2, &[2], &[0x1001, 0x1002, 0, 0, 0x1004, 0x1005], 0, five),
            None,
            "one too many"
        );
    }
    // In a line, each SubDevice is reached only through the one before it.
    assert_eq!(candidate(2, &[2, 3, 4], &[0x1001, 0x1002, 0], 0, &line), Some(2));
    assert_eq!(candidate(2, &[2, 3, 4], &[0x1001, 0x1002, 0], 0, &star), None);
}

#[test]
fn survey_counts_if_all_are_found_once_or_lost() {
    assert!(surveyed(&[2], &[0x1001, 0x1002, 0, 0x1004, 0x1005]).check_places());
    assert!(
        !surveyed(&[2], &[0x1001, 0x1002, 0, 0, 0x1005]).check_places(),
        "the fourth is missing, and not known to be lost"
    );
    assert!(!surveyed(&[2], &[0x1001, 0x1002, 0x1002, 0x1004, 0x1005]).check_places(), "one address twice");
}
