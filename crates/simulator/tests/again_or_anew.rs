//! Compares a resent frame of a quiet cycle with a frame that is built again. Two MainDevices run
//! on separate buses with the same history. One of them is asked to keep its state around each
//! frame; it therefore builds each frame and evaluates each reply in full. Both must send, take and
//! report the same.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::rig;

use ethercat::al::AlState;
use ethercat::main_device::{
    Configuration, ExpectedIdentity, MailboxRequest, MailboxService, Presence, ProcessDataSource,
    SubDeviceConfiguration,
};
use ethercat::wire::Command;
use ethercat::wire::frame::places;
use onbeat_simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::{digital_inputs, digital_outputs};
use onbeat_simulator::{EscDescription, SubDevice};
use proptest::prelude::*;

use rig::wire::Faults;
use rig::{DRIVE, Replies, Rig, Tamper, described, drive, drives, to_op};

/// A bus: its configuration and its SubDevices.
#[derive(Clone, Copy, Debug)]
enum Bus {
    Drives { clocks: bool },
    Optional,
    Mixed { packed: bool },
}

/// SubDevices of each bus.
const COUNT: usize = 4;

fn digital(number: u32) -> SubDevice {
    let identity = ethercat::sii::Identity { serial: number, ..DRIVE };
    let (image, application): (_, Box<dyn onbeat_simulator::application::Application>) = match number % 2 {
        0 => (
            digital_inputs(identity, "inputs", 4).image(),
            Box::new(DigitalInputs::new(4, Wires::new()).unwrap()),
        ),
        _ => (
            digital_outputs(identity, "outputs", 4).image(),
            Box::new(DigitalOutputs::new(4, Wires::new()).unwrap()),
        ),
    };
    SubDevice::new(EscDescription::of(None, Some(&image)), image.emit(), application)
}

impl Bus {
    fn rig(self) -> Rig {
        let mut rig = match self {
            Self::Drives { clocks } => {
                Rig::new(Configuration { distributed_clocks: clocks, ..to_op() }, drives(COUNT as u32))
            }
            Self::Optional => {
                let configured = (0..COUNT).map(|number| SubDeviceConfiguration {
                    name: format!("drive {number}"),
                    process_data: ProcessDataSource::Explicit(default_mapping()),
                    presence: if number == COUNT - 1 { Presence::Optional } else { Presence::default() },
                    identity: Some(ExpectedIdentity {
                        vendor_id: DRIVE.vendor_id,
                        product_code: DRIVE.product_code,
                        revision: None,
                    }),
                    ..Default::default()
                });
                let mut rig = Rig::new(described(configured.collect()), drives(COUNT as u32));
                rig.segment.power_off(COUNT - 1);
                rig
            }
            Self::Mixed { packed } => {
                let devices = vec![digital(0), drive(1), digital(1), digital(2)];
                Rig::new(Configuration { packed, ..to_op() }, devices)
            }
        };
        rig.run_up();
        rig
    }
}

/// Event on both buses, before a cycle or in it.
#[derive(Clone, Debug)]
enum Happens {
    Nothing,
    Lost { reply: bool },
    Late,
    Doubled,
    Spoiled { byte: usize, bits: u8 },
    NoTime,
    Power(usize),
    Cable(usize),
    Falls(usize),
    DriveFault(usize),
    Asked(AlState),
    AskedInIt(AlState),
    BegunTwice,
    NotSent,
    ErrorCounters,
    Sdo(usize),
    RepliesIn(Replies),
}

fn happens() -> impl Strategy<Value = Happens> {
    let state =
        || prop_oneof![Just(AlState::PreOp), Just(AlState::SafeOp), Just(AlState::Op), Just(AlState::Op)];
    prop_oneof![
        2 => Just(Happens::Nothing),
        3 => any::<bool>().prop_map(|reply| Happens::Lost { reply }),
        2 => Just(Happens::Late),
        2 => Just(Happens::Doubled),
        4 => (0..240_usize, 1_u8..).prop_map(|(byte, bits)| Happens::Spoiled { byte, bits }),
        1 => Just(Happens::NoTime),
        2 => (0..COUNT).prop_map(Happens::Power),
        1 => (0..COUNT).prop_map(Happens::Cable),
        2 => (0..COUNT).prop_map(Happens::Falls),
        2 => (0..COUNT).prop_map(Happens::DriveFault),
        1 => state().prop_map(Happens::Asked),
        1 => state().prop_map(Happens::AskedInIt),
        1 => Just(Happens::BegunTwice),
        1 => Just(Happens::NotSent),
        1 => Just(Happens::ErrorCounters),
        2 => (0..COUNT).prop_map(Happens::Sdo),
        1 => prop_oneof![Just(Replies::SameCycle), Just(Replies::NextCycle)].prop_map(Happens::RepliesIn),
    ]
}

/// One of the two, and the frames that reached its far end.
struct Side {
    rig: Rig,
    seen: Rc<RefCell<Vec<Vec<u8>>>>,
    outputs: u8,
}

impl Side {
    fn new(bus: Bus, builds: bool) -> Self {
        let mut rig = bus.rig();
        rig.asks = builds;
        Self { rig, seen: Rc::default(), outputs: 0 }
    }

    /// One cycle with this event, and everything observable of it.
    fn cycle(&mut self, what: &Happens) -> String {
        let rig = &mut self.rig;
        self.outputs = self.outputs.wrapping_add(1);
        for position in 0..rig.main_device.sub_devices().len() {
            // The drives' control words stay as they are.
            rig.main_device.outputs_mut(position).iter_mut().skip(2).for_each(|it| *it = self.outputs);
        }
        let all = |faults| (faults, Some(faults));
        let (mut faults, mut reply_faults) = all(Faults::default());
        let mut unsent = None;
        let mut spoil: Tamper = Box::new(|_| ());
        match *what {
            Happens::Nothing => {}
            Happens::Lost { reply } => {
                let lost = Faults { lost: 1.0, ..Faults::default() };
                if reply { reply_faults = Some(lost) } else { faults = lost }
            }
            Happens::Late => {
                reply_faults =
                    Some(Faults { delayed: 1.0, delay: Duration::from_micros(900), ..Faults::default() });
            }
            Happens::Doubled => reply_faults = Some(Faults { doubled: 1.0, ..Faults::default() }),
            Happens::Spoiled { byte, bits } => {
                spoil = Box::new(move |frame| {
                    let length = frame.len();
                    frame[byte % length] ^= bits;
                });
            }
            Happens::NoTime => {
                spoil = Box::new(|frame| {
                    let time = places(frame).find(|it| it.header.command == Command::Frmw);
                    time.into_iter().for_each(|it| frame[it.data()].fill(0));
                });
            }
            Happens::Power(position) => {
                let _ = match rig.segment.is_powered(position) {
                    true => rig.segment.power_off(position),
                    false => rig.segment.power_on(position),
                };
            }
            Happens::Cable(position) => {
                let _ = match rig.segment.has_cable(position, 1) {
                    true => rig.segment.disconnect(position, 1),
                    false => rig.segment.connect(position, 1),
                };
            }
            Happens::Falls(position) => {
                rig.segment.sub_device_mut(position).into_iter().for_each(SubDevice::expire_watchdog);
            }
            Happens::DriveFault(position) => {
                let servo = rig.segment.sub_device_mut(position).and_then(SubDevice::servo_mut);
                servo.into_iter().for_each(|it| it.raise_fault(0, 0x7500));
            }
            Happens::Asked(state) => rig.main_device.request_state(state),
            Happens::AskedInIt(state) => {
                rig.main_device.begin_cycle(rig.now);
                rig.main_device.request_state(state);
                rig.transmit();
            }
            Happens::BegunTwice => rig.main_device.begin_cycle(rig.now),
            Happens::NotSent => {
                rig.main_device.begin_cycle(rig.now);
                unsent = Some(rig.main_device.end_cycle(rig.now));
            }
            Happens::ErrorCounters => rig.main_device.read_error_counters(),
            Happens::Sdo(position) => {
                let service =
                    MailboxService::Upload { index: 0x1018, sub_index: 1, complete_access: false };
                let data = Vec::with_capacity(4);
                let _ = rig.main_device.submit(MailboxRequest { position: position as u16, service, data });
            }
            Happens::RepliesIn(replies) => rig.replies = replies,
        }
        (rig.wire.faults, rig.wire.reply_faults) = (faults, reply_faults);
        let seen = Rc::clone(&self.seen);
        rig.tamper = Some(Box::new(move |frame| {
            seen.borrow_mut().push(frame.to_vec());
            spoil(frame);
        }));
        let report = rig.cycle();
        self.told(&format!("{report:?} {unsent:?}"))
    }

    fn told(&mut self, report: &str) -> String {
        let main_device = &mut self.rig.main_device;
        let count = main_device.sub_devices().len();
        let each: Vec<_> = (0..count)
            .map(|it| {
                let taking_part = [
                    main_device.inputs_fresh(it),
                    main_device.outputs_taken(it),
                    main_device.exchanged(it),
                ];
                (taking_part, main_device.inputs(it).to_vec())
            })
            .collect();
        let counters: Vec<_> = main_device.working_counters().collect();
        format!(
            "{report}\n{each:?}\n{counters:?}\n{:?} {:?} {:?}\n{:?} {:?}\n{:?}\n{:?}\n{:x?}",
            main_device.phase(),
            main_device.reception(),
            main_device.in_flight(),
            main_device.clock(),
            main_device.take_reference_sample(),
            self.rig.events.drain(..).collect::<Vec<_>>(),
            main_device.sub_devices(),
            self.seen.take(),
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    // feature(main-device): a frame that is sent again is the one that would be built, whatever happens meanwhile
    #[test]
    fn a_frame_that_is_sent_again_is_the_one_that_would_be_built(
        bus in prop_oneof![
            any::<bool>().prop_map(|clocks| Bus::Drives { clocks }),
            Just(Bus::Optional),
            any::<bool>().prop_map(|packed| Bus::Mixed { packed }),
        ],
        story in prop::collection::vec((happens(), 0..60_usize), 1..30),
    ) {
        let (mut again, mut anew) = (Side::new(bus, false), Side::new(bus, true));
        let quiet = (Happens::Nothing, 150);
        for (step, (what, cycles)) in std::iter::once(&quiet).chain(&story).enumerate() {
            for cycle in 0..=*cycles {
                let now = if cycle == 0 { what } else { &Happens::Nothing };
                let (one, other) = (again.cycle(now), anew.cycle(now));
                prop_assert!(one == other, "step {step} ({what:?}), cycle {cycle}:\nagain {one}\nanew  {other}");
            }
        }
    }
}
