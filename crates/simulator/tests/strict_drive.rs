//! A servo drive that tolerates late frames as little as real ones, with a MainDevice.
use crate::rig;

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{StartupSdo, SubDeviceConfiguration, Sync0};
use rig::{PERIOD, Rig, described, drive};

/// A drive in Op behind SYNC0, with this counter limit (0x10F1:02), or its own.
fn in_op(limit: Option<u16>) -> Rig {
    let startup = limit.map(|limit| StartupSdo {
        index: 0x10F1,
        sub_index: 2,
        complete_access: false,
        data: limit.to_le_bytes().to_vec(),
    });
    let configuration = SubDeviceConfiguration {
        startup: startup.into_iter().collect(),
        sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::from_micros(500) }),
        ..SubDeviceConfiguration::default()
    };
    let mut rig = Rig::new(described(vec![configuration]), vec![drive(3)]);
    rig.run_up();
    for _ in 0..50 {
        assert!(rig.cycle().all_fresh);
    }
    rig
}

fn shown(rig: &mut Rig, index: u16, sub_index: u8) -> i64 {
    let drive = rig.segment.sub_device_mut(0).unwrap().servo_mut().unwrap();
    drive.dictionary_mut().value(index, sub_index).unwrap()
}

fn state(rig: &Rig) -> (AlStatus, AlStatusCode) {
    let it = &rig.segment.sub_devices()[0];
    (it.al_status(), it.al_status_code())
}

// feature(simulator): synchronisation parameters 0x1C32 and 0x1C33 filled
#[test]
fn its_synchronisation_parameters_say_what_it_follows() {
    let mut rig = in_op(None);
    for index in [0x1C32, 0x1C33] {
        let values = [0x01, 0x02, 0x05, 0x06, 0x0A, 0x0B, 0x20].map(|sub| shown(&mut rig, index, sub));
        assert_eq!(values, [2, 1_000_000, 125_000, 20_000, 1_000_000, 0, 0]);
    }
}

// feature(simulator): supervision of SYNC0 and process data: AL status codes 0x1A, 0x2C, 0x2D, 0x30, 0x35, 0x36
#[test]
fn a_pause_of_five_cycles_ends_op_of_a_strict_one_only() {
    for (limit, expected) in [(Some(4), AlStatusCode::SYNCHRONIZATION), (None, AlStatusCode::NO_ERROR)] {
        let mut rig = in_op(limit);
        let op = AlStatus::in_state(AlState::Op);
        assert_eq!(state(&rig), (op, AlStatusCode::NO_ERROR));
        // One missing frame counts nothing yet.
        rig.pass_to(rig.now + PERIOD, false);
        rig.cycle();
        assert_eq!(state(&rig), (op, AlStatusCode::NO_ERROR));
        rig.pass_to(rig.now + 5 * PERIOD, false);
        let fallen = AlStatus { error: true, ..AlStatus::in_state(AlState::SafeOp) };
        assert_eq!(state(&rig), (if limit.is_some() { fallen } else { op }, expected));
        assert!(shown(&mut rig, 0x1C32, 0x0B) > 4);
    }
}
