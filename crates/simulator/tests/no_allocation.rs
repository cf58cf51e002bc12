//! From the first cycle on the MainDevice does not allocate: through SafeOp and Op, during lost
//! frames, mailbox services and emergencies, and while SubDevices fail and return.

mod rig;

use std::time::Duration;

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{
    BringUpPhase, CycleReport, Event, ExpectedIdentity, LatchMode, MailboxRequest, MailboxService,
    Presence, ProcessDataSource, StartupSdo, SubDeviceConfiguration, Sync0, Sync1,
};
use onbeat_simulator::application::servo::{SIMULATION, default_mapping};
use testkit::CountingAllocator;
use testkit::allocations::{self, watched};

use rig::devices::echo;
use rig::{PERIOD, Rig, described, drives};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// Runs one cycle with only the MainDevice's work watched. Every `losing`th frame is lost; 0 for
/// none.
fn one_cycle(rig: &mut Rig, sent: &mut u64, losing: u64) -> CycleReport {
    let end = rig.now + PERIOD;
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    watched(|| rig.main_device.begin_cycle(rig.now));
    while let Some(length) = watched(|| rig.main_device.poll_transmit(rig.now, &mut buffer)) {
        *sent += 1;
        rig.now = rig.now + Duration::from_micros(20);
        let frame = &mut buffer[..length];
        if rig.segment.process_frame(rig.now, frame) && (losing == 0 || *sent % losing != 0) {
            watched(|| rig.main_device.handle_frame(rig.now, frame));
        }
        while let Some(event) = watched(|| rig.main_device.poll_event()) {
            rig.events.push(event);
        }
    }
    let report = watched(|| rig.main_device.end_cycle(rig.now));
    rig.now = end;
    rig.segment.advance(end);
    report
}

fn rig() -> Rig {
    let mut devices = drives(6);
    devices.extend([echo(100), echo(150)]);
    let drive = SubDeviceConfiguration {
        process_data: ProcessDataSource::Explicit(default_mapping()),
        sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::from_micros(250) }),
        ..SubDeviceConfiguration::default()
    };
    let mut configuration = vec![drive; 6];
    // One of them more seldom, with SYNC1 and latch inputs.
    configuration[4].every = 3;
    configuration[4].sync1 = Some(Sync1 { cycle: 3 * PERIOD, delay: Duration::from_micros(100) });
    configuration[4].latches = Some([LatchMode::SINGLE; 2]);
    configuration.extend([SubDeviceConfiguration::default(), SubDeviceConfiguration::default()]);
    let mut rig = Rig::new(described(configuration), devices);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    rig
}

// feature(main-device): no allocation from the first cycle on
#[test]
fn from_the_first_cycle_through_op_nothing_is_allocated() {
    let mut rig = rig();
    let (mut sent, mut cycles_in_op) = (0, 0);
    for number in 0..4000 {
        one_cycle(&mut rig, &mut sent, 53);
        if rig.main_device.phase() != BringUpPhase::Op {
            continue;
        }
        cycles_in_op += 1;
        if number % 70 == 0 {
            assert!(watched(|| rig.main_device.read_latches(4)));
        }
        // Now and then a name is read, and a fault raised, with an emergency.
        let service = match number % 100 {
            0 => MailboxService::Upload { index: 0x1008, sub_index: 0, complete_access: false },
            50 => MailboxService::Download { index: SIMULATION, sub_index: 2, complete_access: false },
            _ => continue,
        };
        let data = if number % 100 == 0 { Vec::with_capacity(200) } else { vec![0x11, 0x86] };
        let request = MailboxRequest { position: 3, service, data };
        watched(|| rig.main_device.submit(request)).expect("there is room for it");
    }
    assert!(cycles_in_op > 2000, "{:?}", rig.events);
    let count = |wanted: fn(&Event) -> bool| rig.events.iter().filter(|&it| wanted(it)).count();
    assert!(count(|it| matches!(it, Event::Mailbox(outcome) if outcome.result.is_ok())) > 40);
    assert!(count(|it| matches!(it, Event::Emergency { .. })) > 0);
    assert!(rig.main_device.sub_devices()[4].latches.is_some());

    // The segment's end is missing for a while, then back: the spread layout starts and ends.
    assert!(rig.segment.disconnect(5, 1));
    one_cycle(&mut rig, &mut sent, 0);
    for _ in 0..20 {
        assert!(one_cycle(&mut rig, &mut sent, 0).spread);
        assert_eq!([5, 6].map(|it| watched(|| rig.main_device.exchanged(it))), [true, false]);
    }
    assert!(rig.segment.connect(5, 1));
    assert!((0..20).any(|_| !one_cycle(&mut rig, &mut sent, 0).spread));

    rig.segment.power_cycle(2);
    for _ in 0..1500 {
        one_cycle(&mut rig, &mut sent, 0);
    }
    assert!(rig.events.iter().any(|it| matches!(it, Event::Unreachable { position: 2 })));
    assert!(rig.events.iter().any(|it| matches!(it, Event::Recovered { position: 2, anew: true })));
    assert_eq!(allocations::own_calls(), 0, "calls of the allocator");
}

#[test]
fn one_that_joins_late_costs_no_allocation() {
    let mut devices = drives(3);
    devices.push(echo(100));
    let drive = SubDeviceConfiguration {
        identity: Some(ExpectedIdentity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: None }),
        process_data: ProcessDataSource::Explicit(default_mapping()),
        sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::from_micros(250) }),
        startup: vec![StartupSdo { index: 0x6060, sub_index: 0, complete_access: false, data: vec![8] }],
        ..SubDeviceConfiguration::default()
    };
    let optional = SubDeviceConfiguration { presence: Presence::Optional, ..drive.clone() };
    let mut rig = Rig::new(described(vec![drive.clone(), drive, optional]), devices);
    // The echo behind it is an unexpected SubDevice.
    assert!(rig.segment.power_off(2));
    rig.pump_to(BringUpPhase::PreOp);
    let mut sent = 0;
    for _ in 0..500 {
        one_cycle(&mut rig, &mut sent, 0);
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
    assert!(rig.segment.power_on(2));
    for _ in 0..2500 {
        one_cycle(&mut rig, &mut sent, 97);
    }
    assert!(rig.events.iter().any(|it| matches!(it, Event::Joined { position: 2 })), "{:?}", rig.events);
    assert!(rig.main_device.exchanged(2));
    rig.segment.power_cycle(2);
    for _ in 0..2500 {
        one_cycle(&mut rig, &mut sent, 0);
    }
    assert!(rig.events.iter().any(|it| matches!(it, Event::Recovered { position: 2, .. })));
    assert_eq!(allocations::own_calls(), 0, "calls of the allocator");
}

#[test]
fn the_watch_sees_an_allocation() {
    watched(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(allocations::own_calls(), 2);
}
