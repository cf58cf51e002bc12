//! Each kind of SubDevice after a long rest, in bring-up and in Op: it receives all requests, and
//! its answers reach the MainDevice.
use crate::rig;

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::link::Segment as _;
use ethercat::main_device::{BringUpPhase, Event, MailboxOutcome, MailboxRequest, MailboxService};
use ethercat::register;
use ethercat::sii::{Identity, Image};
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::{coupler, with_coe};
use onbeat_simulator::application::{
    AnalogueInputs, AnalogueOutputs, Application, Encoders, ForceTorqueSensor, GenericDevice, Level,
    NoApplication, SerialLines, ServoDescription, ServoDrive, Signal, TimeStampedInputs, terminal,
};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, SubDevice, TerminalModel};

use rig::{DRIVE, Rig, to_op};

/// Kinds of SubDevices, by the application behind the ESC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Coupler,
    Terminal(TerminalModel),
    /// A gateway: a mailbox, and process data that means nothing to us.
    Gateway,
    ForceTorque,
    Drive,
}

const KINDS: [Kind; 11] = [
    Kind::Coupler,
    Kind::Terminal(TerminalModel::El2004),
    Kind::Terminal(TerminalModel::El1008),
    Kind::Terminal(TerminalModel::El1252),
    Kind::Terminal(TerminalModel::El4034),
    Kind::Terminal(TerminalModel::El3104),
    Kind::Terminal(TerminalModel::El5101),
    Kind::Terminal(TerminalModel::El6022),
    Kind::Gateway,
    Kind::ForceTorque,
    Kind::Drive,
];

fn device(kind: Kind) -> SubDevice {
    let (image, application): (Image, Box<dyn Application>) = match kind {
        Kind::Coupler => {
            let identity = Identity { product_code: 0xC0, ..DRIVE };
            (coupler(identity, "coupler").image(), Box::new(NoApplication))
        }
        Kind::Terminal(model) => {
            let image = terminal::image(model, 0);
            let application = terminal_of(model, &DeviceDescription::from_sii(&image));
            (image, application)
        }
        Kind::Gateway => {
            let identity = Identity { product_code: 0x6A, ..DRIVE };
            let image = with_coe(identity, "gateway", default_mapping()).image();
            let application = GenericDevice::from_sii(&image).unwrap();
            (image, Box::new(application))
        }
        Kind::ForceTorque => {
            let identity = Identity { product_code: 0xF7, ..DRIVE };
            let image =
                with_coe(identity, "sensor", onbeat_simulator::application::force_torque::mapping())
                    .image();
            let description = DeviceDescription::from_sii(&image);
            let signals = [0.0; 6].map(Signal::Constant);
            let application = ForceTorqueSensor::new(&description, signals).unwrap();
            (image, Box::new(application))
        }
        Kind::Drive => {
            let image = with_coe(DRIVE, "drive", default_mapping()).image();
            let description = ServoDescription::new(DeviceDescription::from_sii(&image));
            (image, Box::new(ServoDrive::new(&description).unwrap()))
        }
    };
    SubDevice::new(EscDescription::of(None, Some(&image)), image.emit(), application)
}

fn terminal_of(model: TerminalModel, device: &DeviceDescription) -> Box<dyn Application> {
    let levels = [(); 4].map(|()| Level::default());
    let signals = [1.0, 2.0, 3.0, 4.0].map(Signal::Constant);
    match model {
        TerminalModel::El2004 => Box::new(DigitalOutputs::new(4, Wires::new()).unwrap()),
        TerminalModel::El1008 => Box::new(DigitalInputs::new(8, Wires::new()).unwrap()),
        TerminalModel::El1252 => Box::new(TimeStampedInputs::new(Wires::new())),
        TerminalModel::El4034 => Box::new(AnalogueOutputs::new(device, &levels).unwrap()),
        TerminalModel::El3104 => Box::new(AnalogueInputs::el3104(device, &signals).unwrap()),
        TerminalModel::El5101 => Box::new(Encoders::el5101(device, Signal::Constant(7.0)).unwrap()),
        TerminalModel::El3702 | TerminalModel::El4732 => panic!("they need SYNC1: see oversampling.rs"),
        TerminalModel::El6022 => Box::new(SerialLines::new(device)),
    }
}

/// Longer than anything that a SubDevice waits for.
const REST: Duration = Duration::from_secs(5);

/// The kind behind a drive, on the way up, after a long time without a frame.
fn rested(kind: Kind) -> Rig {
    let mut rig = Rig::new(to_op(), vec![device(Kind::Drive), device(kind)]);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{kind:?}: {:?}", rig.events);
    rig.pass_to(rig.now + REST, true);
    rig
}

/// The same in Op, after cycles with nothing but process data.
fn in_op(kind: Kind) -> Rig {
    let mut rig = rested(kind);
    rig.run_up();
    for _ in 0..1_000 {
        assert!(rig.cycle().all_fresh, "{kind:?}");
    }
    rig.events.clear();
    rig
}

/// The place of the kind behind its drive.
const HERE: usize = 1;

fn state(rig: &Rig) -> AlStatus {
    rig.segment.sub_devices()[HERE].al_status()
}

/// The reply to an upload of the vendor ID.
fn ask(rig: &mut Rig, in_cycles: bool) -> Option<MailboxOutcome> {
    let service = MailboxService::Upload { index: 0x1018, sub_index: 1, complete_access: false };
    let request = MailboxRequest { position: HERE as u16, service, data: Vec::with_capacity(16) };
    rig.main_device.submit(request).unwrap();
    for _ in 0..200 {
        if in_cycles {
            rig.cycle();
        } else {
            rig.pump(Duration::from_millis(1));
        }
        let place = rig.events.iter().position(|event| matches!(event, Event::Mailbox(_)));
        if let Some(Event::Mailbox(outcome)) = place.map(|place| rig.events.remove(place)) {
            return Some(outcome);
        }
    }
    None
}

/// Cycles until it exchanges process data in Op again, and the event of its return.
fn comes_back(rig: &mut Rig, kind: Kind) -> bool {
    for _ in 0..2_000 {
        rig.cycle();
        let back = rig.events.iter().find_map(|event| match *event {
            Event::Recovered { position, anew } if usize::from(position) == HERE => Some(anew),
            _ => None,
        });
        if let Some(anew) = back.filter(|_| rig.main_device.exchanged(HERE)) {
            assert_eq!(state(rig), AlStatus::in_state(AlState::Op), "{kind:?}");
            return anew;
        }
    }
    panic!("{kind:?} is not back: {:?}, {:?}", state(rig), rig.events);
}

/// A foreign frame requests PreOp from it.
fn ask_for_pre_op(rig: &mut Rig) {
    let mut buffer = [0; 64];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::at_position(HERE as u16, register::AL_CONTROL);
    let header = DatagramHeader::new(Command::Apwr, 0, address, 2);
    builder.push_data(header, &[2, 0]).unwrap();
    let length = builder.finish();
    assert!(rig.segment.process_frame(rig.now, &mut buffer[..length]));
}

// feature(simulator): each kind of SubDevice handles mailbox, state requests, faults and recovery after a long idle time
#[test]
fn a_mailbox_request_is_answered_after_a_rest() {
    for kind in KINDS {
        let has_mailbox = device(kind).has_mailbox();
        let mut rig = rested(kind);
        for in_cycles in [false, true] {
            if in_cycles {
                rig.run_up();
                (0..1_000).for_each(|_| _ = rig.cycle());
            }
            if !has_mailbox {
                continue;
            }
            let outcome = ask(&mut rig, in_cycles).unwrap_or_else(|| panic!("{kind:?}: no answer"));
            let expected = rig.main_device.sub_devices()[HERE].identity.vendor_id.to_le_bytes();
            assert_eq!((outcome.result, &outcome.request.data[..]), (Ok(()), &expected[..]), "{kind:?}");
        }
    }
    let with_mailbox = KINDS.into_iter().filter(|&kind| device(kind).has_mailbox()).count();
    assert!(with_mailbox >= 6, "{with_mailbox}");
}

// feature(simulator): each kind of SubDevice handles mailbox, state requests, faults and recovery after a long idle time
#[test]
fn a_state_is_left_and_reached_again_after_a_rest() {
    for kind in KINDS {
        let mut rig = in_op(kind);
        ask_for_pre_op(&mut rig);
        rig.cycle();
        assert_eq!(state(&rig), AlStatus::in_state(AlState::PreOp), "{kind:?}");
        comes_back(&mut rig, kind);
        let is_told = |it: &Event| matches!(it, Event::StateChanged { position, .. } if usize::from(*position) == HERE);
        assert!(rig.events.iter().any(is_told), "{kind:?}: {:?}", rig.events);
        // All the way down.
        rig.main_device.request_state(AlState::Init);
        rig.pump_to(BringUpPhase::Down);
        assert_eq!(state(&rig), AlStatus::in_state(AlState::Init), "{kind:?}");
    }
}

// feature(simulator): each kind of SubDevice handles mailbox, state requests, faults and recovery after a long idle time
#[test]
fn watchdog_expires_after_idle_time_and_is_reported() {
    for kind in KINDS {
        let mut rig = in_op(kind);
        // A SubDevice without firmware, with an ESC that answers for it, releases its outputs and
        // stays in Op.
        let has_outputs = !rig.main_device.outputs_mut(HERE).is_empty() && device(kind).has_mailbox();
        // No frame arrives; a SubDevice with outputs leaves Op by itself, in its time.
        rig.pass_to(rig.now + REST, true);
        let fallen = AlStatus { error: true, ..AlStatus::in_state(AlState::SafeOp) };
        let expected = if has_outputs { fallen } else { AlStatus::in_state(AlState::Op) };
        assert_eq!(state(&rig), expected, "{kind:?}");
        if has_outputs {
            let code = rig.segment.sub_devices()[HERE].al_status_code();
            assert_eq!(code, AlStatusCode::SYNC_MANAGER_WATCHDOG, "{kind:?}");
            comes_back(&mut rig, kind);
        }
    }
}

// feature(simulator): each kind of SubDevice handles mailbox, state requests, faults and recovery after a long idle time
#[test]
fn power_loss_after_idle_time_is_reconfigured() {
    for kind in KINDS {
        let mut rig = in_op(kind);
        assert!(rig.segment.power_cycle(HERE));
        assert!(comes_back(&mut rig, kind), "{kind:?}: anew");
        if device(kind).has_mailbox() {
            let outcome = ask(&mut rig, true).unwrap_or_else(|| panic!("{kind:?}: no answer"));
            assert_eq!(outcome.result, Ok(()), "{kind:?}");
        }
    }
}

/// A program that hangs for a while, as in firmware, serves pending requests when it continues.
#[test]
fn hung_application_serves_pending_requests_afterwards() {
    for kind in KINDS.into_iter().filter(|&kind| device(kind).has_mailbox()) {
        let mut rig = in_op(kind);
        rig.segment.sub_device_mut(HERE).unwrap().set_mailbox_runs(false);
        (0..100).for_each(|_| _ = rig.cycle());
        assert_eq!(state(&rig), AlStatus::in_state(AlState::Op), "{kind:?}");
        let service = MailboxService::Upload { index: 0x1018, sub_index: 1, complete_access: false };
        let request = MailboxRequest { position: HERE as u16, service, data: Vec::with_capacity(16) };
        rig.main_device.submit(request).unwrap();
        (0..100).for_each(|_| _ = rig.cycle());
        assert!(!rig.events.iter().any(|it| matches!(it, Event::Mailbox(_))), "{kind:?}: it hangs");
        rig.segment.sub_device_mut(HERE).unwrap().set_mailbox_runs(true);
        (0..100).for_each(|_| _ = rig.cycle());
        let is_whole = |it: &Event| matches!(it, Event::Mailbox(outcome) if outcome.result == Ok(()));
        assert!(rig.events.iter().any(is_whole), "{kind:?}: {:?}", rig.events);
    }
}
