//! Remains of other MainDevices: ports closed by one, and SubDevices in the middle of a change of
//! state that a killed process requested. A new MainDevice takes over the bus from there.

use crate::bus;
use crate::rig;

use std::time::Duration;

use bus::Bus;
use ethercat::al::{AlControl, AlState};
use ethercat::main_device::{BringUpPhase, Configuration, SubDeviceConfiguration, Watchdog};
use ethercat::register::{self, SyncManager};
use ethercat::wire::{Address, Command};
use onbeat_simulator::Segment;
use onbeat_simulator::segment::Attachment;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use rig::{Rig, described, drives, to_op};

const COUNT: u32 = 6;

/// 0 -3- 1 -1- 2, -1- 3 -1- 4, -2- 5.
fn tree() -> Segment {
    let attachments = [
        Attachment::new(0, 3),
        Attachment::new(1, 1),
        Attachment::new(0, 1),
        Attachment::new(3, 1),
        Attachment::new(0, 2),
    ];
    Segment::with_topology(drives(COUNT), &attachments).expect("a tree")
}

/// Writes loop settings to the SubDevices at these positions, the last first: each closes the path
/// behind it.
fn close(segment: Segment, settings: &[(u16, u8)]) -> Segment {
    let mut bus = Bus::new(segment);
    for &(position, loops) in settings.iter().rev() {
        bus.write(position, register::DL_CONTROL_LOOPS, &[loops]);
    }
    bus.segment
}

fn all_are_found(segment: Segment) {
    let mut rig = Rig::on(Configuration::default(), segment);
    // The segment's time does not run backwards.
    rig.now = Bus::new(Segment::new(Vec::new())).now + Duration::from_secs(1);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    assert_eq!(rig.main_device.sub_devices().len(), COUNT as usize);
}

#[test]
fn a_pdi_watchdog_that_another_one_switched_off_is_set_as_asked() {
    let mut bus = Bus::new(Segment::new(drives(1)));
    assert_eq!(bus.write(0, register::WATCHDOG_TIME_PDI, &[0; 2]), 1);
    let asked = Watchdog::After(Duration::from_millis(100));
    let device = SubDeviceConfiguration { pdi_watchdog: Some(asked), ..SubDeviceConfiguration::default() };
    let mut rig = Rig::on(described(vec![device]), bus.segment);
    rig.now = bus.now + Duration::from_secs(1);
    rig.run_up();
    let found = rig.main_device.sub_devices()[0].watchdogs.expect("they were read");
    assert_eq!(found.pdi_time(), Some(Duration::from_millis(100)), "{:?}", rig.events);
}

/// Settings of two bits a port: 0 automatic, 1 opened explicitly after closing, 2 open, 3 closed.
const CLOSED: u8 = 3;

#[test]
fn a_line_closed_at_any_place_is_found_again() {
    for position in 0..COUNT as u16 - 1 {
        let segment = close(Segment::new(drives(COUNT)), &[(position, CLOSED << 2)]);
        all_are_found(segment);
    }
}

// feature(main-device): ports that another MainDevice closed are opened
#[test]
fn a_line_closed_at_every_place_is_found_again() {
    let every: Vec<_> = (0..COUNT as u16).map(|position| (position, CLOSED << 2)).collect();
    all_are_found(close(Segment::new(drives(COUNT)), &every));
}

// feature(main-device): ports that another MainDevice closed are opened
#[test]
fn a_tree_with_every_branch_closed_is_found_again() {
    let every: Vec<_> = (0..COUNT as u16).map(|position| (position, 0b1111_1100)).collect();
    all_are_found(close(tree(), &every));
}

#[test]
fn events_requested_by_another_client_are_ignored() {
    let mut bus = Bus::line(drives(2));
    bus.write(1, register::ECAT_EVENT_MASK, &[0xFF, 0xFF]);
    let mut rig = Rig::on(Configuration::default(), bus.segment);
    rig.now = bus.now + Duration::from_secs(1);
    rig.pump_to(BringUpPhase::PreOp);
    for device in rig.segment.sub_devices() {
        let mut mask = [0xFF; 2];
        device.peek(register::ECAT_EVENT_MASK, &mut mask);
        assert_eq!(mask, [0; 2]);
    }
}

/// Brings it up while the applications are stalled for these times, in us.
fn run_up_after<const N: usize>(rig: &mut Rig, stalls: [u64; N]) {
    let start = rig.now;
    let end = |stall: u64| start + Duration::from_micros(stall);
    for (position, stall) in stalls.into_iter().enumerate().filter(|(_, stall)| *stall > 0) {
        rig.segment.sub_device_mut(position).expect("a SubDevice").set_application_runs(false);
        assert!(stall < 10_000);
    }
    let mut order: Vec<_> = (0..N).filter(|&position| stalls[position] > 0).collect();
    order.sort_by_key(|&position| stalls[position]);
    for position in order {
        while rig.now < end(stalls[position]) {
            rig.pump(Duration::ZERO);
        }
        rig.segment.sub_device_mut(position).expect("a SubDevice").set_application_runs(true);
    }
    rig.run_up();
}

/// A process killed at any instant of its bring-up, and its successor that starts at once.
// feature(main-device): any state, error or pending change that a dead process left
#[test]
fn killed_in_bring_up_and_started_again() {
    for step in 0..60_u64 {
        let mut rig = Rig::new(to_op(), drives(4));
        let end = rig.now + Duration::from_micros(step * 1_237 + 100);
        while rig.now < end && rig.main_device.phase() != BringUpPhase::PreOp {
            rig.pump(Duration::from_micros(50));
        }
        while rig.now < end {
            rig.cycle();
        }
        let mut next = Rig::on(to_op(), rig.segment);
        next.now = rig.now + Duration::from_micros(step * 7 % 300);
        run_up_after(&mut next, [0, step % 13 * 100, step % 7 * 300, 0]);
    }
}

/// Last requests of a killed process to one SubDevice.
#[derive(Clone, Debug)]
struct Leftover {
    position: u16,
    /// States requested in turn, each with the time in us until the next.
    asked: Vec<(u8, bool, u64)>,
    /// True if its SyncManagers were set before.
    set_up: bool,
}

fn leftover() -> impl Strategy<Value = Leftover> {
    let asked = (0_u8..16, any::<bool>(), 0_u64..600);
    (0_u16..3, proptest::collection::vec(asked, 1..6), any::<bool>())
        .prop_map(|(position, asked, set_up)| Leftover { position, asked, set_up })
}

// feature(main-device): any state, error or pending change that a dead process left
#[test]
fn any_state_error_and_pending_change_at_the_start() {
    let configuration =
        ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner =
        TestRunner::new_with_rng(configuration, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let stalls = proptest::array::uniform3(0_u64..2_000);
    let strategy = (proptest::collection::vec(leftover(), 0..5), 0_u64..400, stalls);
    runner
        .run(&strategy, |(leftovers, pause, stalls)| {
            let mut bus = Bus::line(drives(3));
            for Leftover { position, asked, set_up } in leftovers {
                if set_up {
                    let out = SyncManager::CONTROL_MAILBOX_OUT;
                    let settings = [(0, out, 0x1000), (1, SyncManager::CONTROL_MAILBOX_IN, 0x1400)];
                    for (number, control, physical_address) in settings {
                        let it = SyncManager { physical_address, length: 256, control, active: true };
                        bus.write(position, SyncManager::register(number), &it.emit());
                    }
                }
                for (state, acknowledge, wait) in asked {
                    let control = AlControl { state, acknowledge, request_identification: false };
                    let address = Address::at_position(position, register::AL_CONTROL);
                    bus.send(Command::Apwr, address, &control.bits().to_le_bytes());
                    bus.now = bus.now + Duration::from_micros(wait);
                }
            }
            let mut rig = Rig::on(to_op(), bus.segment);
            rig.now = bus.now + Duration::from_micros(pause);
            run_up_after(&mut rig, stalls);
            let states = rig.segment.sub_devices().iter().map(|it| it.al_status().al_state());
            prop_assert!(states.into_iter().all(|state| state == Some(AlState::Op)));
            Ok(())
        })
        .expect("it comes up whatever was left behind");
}
