//! Two required SubDevices that changed places while they had no power: both stay out, and are
//! named.
use crate::rig;

use ethercat::al::{AlState, AlStatus};
use ethercat::main_device::{BringUpPhase, Event, ExpectedIdentity, SubDeviceConfiguration};
use ethercat::sii::Identity;
use onbeat_simulator::application::digital::{DigitalInputs, Wires};
use onbeat_simulator::application::sii::digital_inputs;
use onbeat_simulator::{EscDescription, SubDevice};

use rig::{DRIVE, Rig, described, drive, to_op};

const INPUTS: Identity = Identity { product_code: 0x0404, ..DRIVE };

fn inputs() -> SubDevice {
    let image = digital_inputs(INPUTS, "inputs", 8).image();
    let inputs = DigitalInputs::new(8, Wires::new()).unwrap();
    SubDevice::new(EscDescription::default(), image.emit(), Box::new(inputs))
}

/// The SubDevices at these two places of the cable change them.
fn change_places(rig: &mut Rig, [one, other]: [usize; 2]) {
    let mut put = |place: usize, device: SubDevice| {
        std::mem::replace(rig.segment.sub_device_mut(place).unwrap(), device)
    };
    let first = put(one, drive(99));
    let second = put(other, first);
    put(one, second);
}

/// In Op; then the two lose their power, change places, and have it again.
fn changed(devices: Vec<SubDevice>, places: [usize; 2]) -> Rig {
    let mut rig = Rig::new(to_op(), devices);
    rig.run_up();
    rig.events.clear();
    places.into_iter().for_each(|place| assert!(rig.segment.power_off(place)));
    (0..300).for_each(|_| _ = rig.cycle());
    change_places(&mut rig, places);
    places.into_iter().for_each(|place| assert!(rig.segment.power_on(place)));
    (0..3000).for_each(|_| _ = rig.cycle());
    rig
}

/// Reported unexpected SubDevices: the position of each, and its configured position. At each
/// position a SubDevice is expected.
fn named(rig: &Rig) -> Vec<(u16, Option<u16>)> {
    let stranger = |event: &Event| match event {
        Event::Stranger { place, known, expected, .. } => {
            assert_eq!(*expected, Some(*place));
            Some((*place, *known))
        }
        _ => None,
    };
    rig.events.iter().filter_map(stranger).collect()
}

fn stay_out(rig: &Rig, places: [usize; 2]) {
    let brought_back = |event: &Event| match event {
        Event::Recovered { position, .. } | Event::Reconfiguring { position } => {
            places.contains(&usize::from(*position))
        }
        _ => false,
    };
    assert!(!rig.events.iter().any(brought_back), "{:?}", rig.events);
    for place in places {
        assert_eq!(rig.segment.sub_devices()[place].al_status(), AlStatus::in_state(AlState::Init));
        assert!(!rig.main_device.exchanged(place));
    }
    assert!(rig.main_device.exchanged(0), "the others go on");
}

// feature(main-device): two required SubDevices that changed places while they had no power stay in Init, each named with its place
/// Drives of one kind that differ by their serial numbers: each is the other's axis, and neither
/// moves.
#[test]
fn two_of_one_kind_stay_out_and_are_named() {
    for places in [[1, 2], [1, 3], [2, 3]] {
        let rig = changed((0..4).map(drive).collect(), places);
        let [one, other] = places.map(|place| place as u16);
        assert_eq!(named(&rig), [(one, Some(other)), (other, Some(one))]);
        stay_out(&rig, places);
    }
}

/// A drive and a terminal.
#[test]
fn two_of_different_kinds_stay_out_and_are_named() {
    let rig = changed(vec![drive(0), drive(1), inputs(), drive(3)], [1, 2]);
    assert_eq!(named(&rig), [(1, Some(2)), (2, Some(1))]);
    stay_out(&rig, [1, 2]);
}

/// Back in their own places they are in Op again.
#[test]
fn back_in_their_places_they_are_in_op_again() {
    let places = [1, 2];
    let mut rig = changed((0..4).map(drive).collect(), places);
    rig.events.clear();
    places.into_iter().for_each(|place| assert!(rig.segment.power_off(place)));
    (0..300).for_each(|_| _ = rig.cycle());
    change_places(&mut rig, places);
    places.into_iter().for_each(|place| assert!(rig.segment.power_on(place)));
    (0..3000).for_each(|_| _ = rig.cycle());
    assert!((0..4).all(|place| rig.main_device.exchanged(place)), "{:?}", rig.events);
    assert_eq!(named(&rig), []);
}

/// At the start kinds, and where they are described aliases, are compared place by place: the first
/// of the two is named with what was expected.
#[test]
fn at_the_start_the_first_in_another_place_is_named() {
    let of = |identity: Identity, name: &str| SubDeviceConfiguration {
        name: name.to_owned(),
        identity: Some(ExpectedIdentity {
            vendor_id: identity.vendor_id,
            product_code: identity.product_code,
            revision: None,
        }),
        ..SubDeviceConfiguration::default()
    };
    let configuration = described(vec![of(DRIVE, "left"), of(DRIVE, "right"), of(INPUTS, "switches")]);
    let mut rig = Rig::new(configuration, vec![drive(0), inputs(), drive(1)]);
    rig.pump_to(BringUpPhase::PreOp);
    let failure = rig.failure().unwrap().to_string();
    assert!(failure.starts_with("SubDevice 1 \"right\": "), "{failure}");
    let (found, expected) = (failure.find("0x00000404"), failure.find("0x00000402"));
    assert!(found.is_some() && expected.is_some(), "{failure}");
}
