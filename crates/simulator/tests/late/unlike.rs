//! SubDevices that join late and differ from their description, or have a minimal one.

use ethercat::main_device::LatchMode;
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use onbeat_simulator::application::NoApplication;
use onbeat_simulator::application::digital::{DigitalInputs, Wires};
use onbeat_simulator::application::sii::digital_inputs;

use super::*;

/// A SubDevice without a mailbox, with a clock or without.
pub(super) fn plain(description: SiiDescription, has_clock: bool) -> SubDevice {
    let mut esc = EscDescription::default();
    if !has_clock {
        esc.features.bits = 0;
    }
    SubDevice::new(esc, description.image().emit(), Box::new(NoApplication))
}

/// Eight digital inputs without CoE.
fn inputs() -> SubDevice {
    let application = DigitalInputs::new(8, Wires::new()).expect("eight channels");
    let image = digital_inputs(identity(3), "inputs", 8).image();
    SubDevice::new(EscDescription::default(), image.emit(), Box::new(application))
}

/// Their PDOs.
fn pdos() -> PdoMapping {
    digital_inputs(identity(3), "inputs", 8).mapping()
}

/// Described with these alone.
fn with_pdos(process_data: PdoMapping, presence: Presence) -> SubDeviceConfiguration {
    let process_data = ProcessDataSource::Explicit(process_data);
    SubDeviceConfiguration {
        process_data,
        startup: Vec::new(),
        sync0: None,
        ..expected("late", 3, presence)
    }
}

/// The second of two joins, or the sentence why it does not.
fn joins(late: SubDeviceConfiguration, device_of: SubDevice) -> Result<(), String> {
    let segment = Segment::new(vec![device(1, 0), device_of]);
    let mut rig = in_op(described(vec![required("first", 1), late]), segment, &[1]);
    assert!(rig.segment.power_on(1));
    for _ in 0..SOON {
        rig.cycle();
        assert!(rig.main_device.exchanged(0));
        let error = rig.events.iter().find_map(|event| match event {
            Event::NotRecovered { error, .. } => Some(error.to_string()),
            _ => None,
        });
        if let Some(error) = error {
            return Err(error);
        }
        if joined(&rig) == [1] {
            (0..20).for_each(|_| _ = rig.cycle());
            assert!(rig.main_device.exchanged(1));
            return Ok(());
        }
    }
    panic!("neither joined nor refused: {:?}", rig.events);
}

// feature(main-device): a SubDevice without CoE that is absent at the start: its PDOs as described are compared with its SII when it joins
#[test]
fn one_without_coe_joins_with_the_pdos_of_its_sii() {
    assert_eq!(joins(with_pdos(pdos(), Presence::Optional), inputs()), Ok(()));
    let mut at_the_first = pdos();
    at_the_first.inputs.iter_mut().for_each(|pdo| pdo.sync_manager = None);
    assert_eq!(joins(with_pdos(at_the_first, Presence::Optional), inputs()), Ok(()));
    let mut other = pdos();
    other.inputs.pop();
    assert_eq!(
        joins(with_pdos(other.clone(), Presence::Optional), inputs()),
        Err("its 8 bits of process data are not the PDOs that are described, of 7 bits, expected the same, as it has no CoE to change \
             them; give the indices, entries and SyncManagers of its SII"
            .to_owned())
    );
    // The same where it is there from the start.
    let bus = || vec![device(1, 0), inputs()];
    let with = |pdos| vec![required("first", 1), with_pdos(pdos, Presence::Required)];
    let rig = in_op(described(with(pdos())), Segment::new(bus()), &[]);
    assert!(rig.main_device.exchanged(1), "{:?}", rig.events);
    let error = refusals::refused(with(other), bus()).to_string();
    assert!(error.contains("its 8 bits of process data are not the PDOs that are described"), "{error}");
}

#[test]
fn alias_only_sub_device_is_a_coupler_until_it_has_process_data() {
    let late = || SubDeviceConfiguration {
        name: "late".to_owned(),
        alias: Some(7),
        presence: Presence::HotConnect,
        ..SubDeviceConfiguration::default()
    };
    let coupler = SiiDescription { alias: 7, ..coupler(identity(3), "coupler") };
    assert_eq!(joins(late(), plain(coupler, true)), Ok(()));
    let unexpected = "it has process data, expected none: it was absent at the start, and the \
        robot file gives no process data; give its pdos or its identity, or plug it in before the \
        start";
    assert_eq!(joins(late(), device(3, 7)), Err(unexpected.to_owned()));
    let terminal = SiiDescription { alias: 7, ..digital_inputs(identity(3), "inputs", 8) };
    assert_eq!(joins(late(), plain(terminal, true)), Err(unexpected.to_owned()));
}

#[test]
fn what_one_that_comes_late_lacks_is_one_sentence() {
    let latches = Some([LatchMode::SINGLE; 2]);
    let late = SubDeviceConfiguration { latches, ..with_pdos(PdoMapping::default(), Presence::Optional) };
    assert_eq!(
        joins(late, plain(coupler(identity(3), "coupler"), false)),
        Err("latch inputs are configured, but its ESC has no distributed clock; remove its latch inputs"
            .to_owned())
    );
    let esc = EscDescription { sync_managers: 3, ..EscDescription::default() };
    let few = with_coe(identity(3), "a drive", default_mapping()).image();
    let drive = ServoDrive::new(&ServoDescription::new(DeviceDescription::from_sii(&few)));
    let few = SubDevice::new(esc, few.emit(), Box::new(drive.expect("the default mapping fits")));
    assert_eq!(
        joins(optional("late", 3), few),
        Err("its process data is at SyncManager 3, its ESC has 3; its SII is that of another ESC"
            .to_owned())
    );
    // What the description alone shows ends the start.
    let large = [0x1A00, 0x1A01].map(|index| Pdo {
        index,
        sync_manager: None,
        fixed: false,
        name: String::new(),
        entries: (1..=25).map(|it| PdoEntry::from_mapping_value(0x2000_0000 | it << 8 | 0xF8)).collect(),
    });
    let large = PdoMapping { outputs: Vec::new(), inputs: large.into() };
    let late = SubDeviceConfiguration { every: 2, ..with_pdos(large, Presence::Optional) };
    assert_eq!(
        refusals::refused(vec![required("first", 1), late], vec![device(1, 0)]).to_string(),
        "SubDevice 1 \"late\": its process data of 1550 bytes takes more than one datagram, expected one, as it goes every 2 cycles; \
         remove every"
    );
    let clocks_off = Configuration {
        distributed_clocks: false,
        ..described(vec![
            SubDeviceConfiguration { sync0: None, ..required("first", 1) },
            optional("late", 3),
        ])
    };
    let mut rig = Rig::new(clocks_off, vec![device(1, 0)]);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(
        rig.failure().expect("a refusal").to_string(),
        "SubDevice 1 \"late\": SYNC0 is configured, but distributed clocks are off; switch them on or remove its SYNC0"
    );
}

/// Members in the order of their cable, and not as each gets there.
#[test]
fn group_is_reported_as_a_whole() {
    let described_as = vec![
        required("hub", 9),
        hot("gripper", 1, Some(77), Some("tool")),
        hot("screwdriver", 2, None, Some("tool")),
        hot("lamp", 3, None, Some("tool")),
    ];
    // The first is the slowest: it alone has objects to be written.
    let quick = |it: SubDeviceConfiguration| SubDeviceConfiguration { startup: Vec::new(), ..it };
    let described_as: Vec<_> =
        (0..).zip(described_as).map(|(position, it)| if position > 1 { quick(it) } else { it }).collect();
    let devices = vec![device(9, 0), device(1, 77), device(2, 0), device(3, 0)];
    let mut rig = in_op(described(described_as), Segment::new(devices), &[1, 2, 3]);
    for round in 0..2 {
        rig.events.clear();
        (1..4).for_each(|it| assert!(rig.segment.power_on(it)));
        let mut together = Vec::new();
        for _ in 0..SOON {
            let before = rig.events.len();
            rig.cycle();
            let told = rig.events[before..].iter().filter_map(|event| match event {
                Event::Joined { position } | Event::Recovered { position, .. } => Some(*position),
                _ => None,
            });
            together.extend(Some(told.collect::<Vec<_>>()).filter(|told| !told.is_empty()));
        }
        assert_eq!(together, [[1, 2, 3]], "round {round}: {:?}", rig.events);
        (1..4).for_each(|it| assert!(rig.segment.power_off(it)));
        for _ in 0..300 {
            rig.cycle();
        }
    }
}

/// One of a group differs from its description: it could not join, the other waits for it and
/// counts as no fault.
#[test]
fn of_a_group_with_one_that_is_refused_the_other_waits() {
    let wrong = SubDeviceConfiguration {
        startup: vec![StartupSdo { index: 0x7FFF, sub_index: 0, complete_access: false, data: vec![8] }],
        ..hot("screwdriver", 2, None, Some("tool"))
    };
    let configuration =
        described(vec![required("first", 1), hot("gripper", 1, Some(77), Some("tool")), wrong]);
    let segment = Segment::new(vec![device(1, 0), device(1, 77), device(2, 0)]);
    let mut rig = in_op(configuration, segment, &[1, 2]);
    let told = |rig: &Rig| {
        [1, 2].map(|it| (rig.main_device.waits_for_its_group(it), rig.main_device.could_not_join(it)))
    };
    assert_eq!(told(&rig), [(false, false); 2], "both are absent");
    [1, 2].into_iter().for_each(|it| assert!(rig.segment.power_on(it)));
    for _ in 0..SOON {
        rig.cycle();
    }
    assert_eq!(told(&rig), [(true, false), (false, true)], "{:?}", rig.events);
    assert_eq!([0, 1, 2].map(|it| rig.main_device.exchanged(it)), [true, false, false]);
    [2, 1].into_iter().for_each(|it| assert!(rig.segment.power_off(it)));
    for _ in 0..300 {
        rig.cycle();
    }
    assert_eq!(told(&rig), [(false, false); 2], "{:?}", rig.events);
}
