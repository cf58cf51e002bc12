//! A MainDevice and a segment in one thread and in virtual time.
//!
//! SII images of real devices.
#![allow(dead_code)]

pub(crate) mod devices;
pub(crate) mod wire;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, CycleReport, Event, MainDevice, SubDeviceConfiguration,
};
use ethercat::sii::{Identity, Image};
use ethercat::time::Instant;
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, Oscillator, Segment, SubDevice};
use wire::{Direction, Wire};

/// Period of the cycle.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

/// Time at which the replies of a cycle are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    SameCycle,
    NextCycle,
}

/// Change of the bytes of a reply.
pub(crate) type Tamper = Box<dyn FnMut(&mut [u8])>;

/// MainDevice, segment and time.
pub(crate) struct Rig {
    pub(crate) main_device: MainDevice,
    pub(crate) segment: Segment,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    pub(crate) wire: Wire,
    pub(crate) replies: Replies,
    /// Time between two cycles.
    pub(crate) period: Duration,
    /// Cycles so far.
    pub(crate) cycles: u64,
    /// Changes replies on their way back.
    pub(crate) tamper: Option<Tamper>,
    /// Requests the current target state again around each frame.
    pub(crate) asks: bool,
    /// Replies that wait to be taken, as in a network interface's ring.
    ring: VecDeque<Vec<u8>>,
}

impl Rig {
    pub(crate) fn new(configuration: Configuration, devices: Vec<SubDevice>) -> Self {
        Self::on(configuration, Segment::new(devices))
    }

    pub(crate) fn on(configuration: Configuration, segment: Segment) -> Self {
        Self {
            main_device: MainDevice::new(configuration).expect("a configuration that can be run"),
            segment,
            now: Instant::from_nanos(1_000_000_000),
            events: Vec::new(),
            wire: Wire::new(1),
            replies: Replies::SameCycle,
            period: PERIOD,
            cycles: 0,
            tamper: None,
            asks: false,
            ring: VecDeque::new(),
        }
    }

    /// From here on the segment leaves the source address of frames unchanged.
    pub(crate) fn unmark(&mut self) {
        self.tamper = Some(Box::new(|bytes| bytes[SOURCE_OFFSET] &= !PROCESSED_BIT));
    }

    /// Sends and receives without cycles until `phase`, a failure, or 30 seconds have passed.
    pub(crate) fn pump_to(&mut self, phase: BringUpPhase) {
        let end = self.now + Duration::from_secs(30);
        while self.main_device.phase() != phase && self.now < end {
            self.pump(Duration::ZERO);
            if self.failure().is_some() && self.main_device.phase() == BringUpPhase::Down {
                return;
            }
        }
    }

    /// Sends and receives without cycles until the next event, and for at least `time`.
    pub(crate) fn pump(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.transmit();
            let due =
                self.main_device.poll_timeout().map(|due| due.max(self.now + Duration::from_micros(1)));
            let latest = self.now + Duration::from_millis(1);
            self.pass_to(due.map_or(latest, |due| due.min(latest)), true);
            if self.now >= end {
                return;
            }
        }
    }

    /// Runs one cycle, and returns its report; with [`Replies::NextCycle`] the report of the
    /// previous cycle.
    pub(crate) fn cycle(&mut self) -> CycleReport {
        match self.replies {
            Replies::SameCycle => {
                self.begin_cycle();
                // Replies that are taken in the same cycle are waited for until three fifths of it.
                let end_of_receiving = self.now + self.period * 3 / 5;
                let end = self.now + self.period;
                self.receive();
                while self.main_device.in_flight() > 0 && self.now < end_of_receiving {
                    let arrival = self.wire.next_arrival().unwrap_or(end_of_receiving);
                    self.pass_to(arrival.min(end_of_receiving), true);
                }
                let report = self.main_device.end_cycle(self.now);
                self.pass_to(end, false);
                report
            }
            Replies::NextCycle => {
                let report = self.take_replies();
                self.send_cycle();
                report
            }
        }
    }

    /// First half of a cycle with [`Replies::NextCycle`]: takes the replies to the previous one.
    pub(crate) fn take_replies(&mut self) -> CycleReport {
        self.receive();
        self.main_device.end_cycle(self.now)
    }

    /// Second half of a cycle with [`Replies::NextCycle`]: sends this one and waits for the next.
    pub(crate) fn send_cycle(&mut self) {
        self.begin_cycle();
        self.pass_to(self.now + self.period, false);
    }

    /// Runs cycles until `phase`; panics with the last event if it takes more than `cycles`.
    pub(crate) fn cycle_to(&mut self, phase: BringUpPhase, cycles: usize) {
        for _ in 0..cycles {
            if self.main_device.phase() == phase {
                return;
            }
            self.cycle();
        }
        panic!("{:?} after {cycles} cycles: {:?}", self.main_device.phase(), self.events);
    }

    fn begin_cycle(&mut self) {
        self.cycles += 1;
        self.ask();
        self.main_device.begin_cycle(self.now);
        self.transmit();
        self.ask();
    }

    fn ask(&mut self) {
        if self.asks {
            self.main_device.request_state(self.main_device.configuration().target);
        }
    }

    /// Sends all that is due.
    pub(crate) fn transmit(&mut self) {
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        while let Some(length) = self.main_device.poll_transmit(self.now, &mut buffer) {
            self.wire.request(self.now, self.cycles, buffer[..length].to_vec());
        }
        self.events.extend(std::iter::from_fn(|| self.main_device.poll_event()));
    }

    /// Takes the replies that have arrived, and sends the resulting frames.
    pub(crate) fn receive(&mut self) {
        while let Some(bytes) = self.ring.pop_front() {
            self.main_device.handle_frame(self.now, &bytes);
            self.wire.delivered(self.cycles, &bytes);
            self.transmit();
        }
    }

    /// Advances time to `end`; frames arrive. The MainDevice takes its replies at once if it
    /// `receives`.
    pub(crate) fn pass_to(&mut self, end: Instant, receives: bool) {
        while let Some(arrival) = self.wire.next_arrival().filter(|&arrival| arrival <= end) {
            self.now = self.now.max(arrival);
            let Some(mut frame) = self.wire.take(self.now) else { break };
            match frame.direction {
                Direction::Request => {
                    if self.segment.process_frame(self.now, &mut frame.bytes) {
                        self.tamper.iter_mut().for_each(|tamper| tamper(&mut frame.bytes));
                        self.wire.reply(self.now, frame.bytes);
                    }
                }
                Direction::Reply => {
                    self.ring.push_back(frame.bytes);
                    if receives {
                        self.receive();
                    }
                }
            }
        }
        self.now = self.now.max(end);
        self.segment.advance(self.now);
    }

    /// True if no frame is in transit or waits to be taken.
    pub(crate) fn is_quiet(&self) -> bool {
        self.wire.next_arrival().is_none() && self.ring.is_empty()
    }

    pub(crate) fn failure(&self) -> Option<&BusError> {
        self.events.iter().find_map(|event| match event {
            Event::Failed(error) => Some(error),
            _ => None,
        })
    }

    /// Brings the bus to Op with cycles, or panics.
    pub(crate) fn run_up(&mut self) {
        self.pump_to(BringUpPhase::PreOp);
        assert_eq!(self.main_device.phase(), BringUpPhase::PreOp, "{:?}", self.events);
        self.cycle_to(BringUpPhase::Op, 2000);
    }
}

/// A configuration that accepts any SubDevices, with target Op.
pub(crate) fn to_op() -> Configuration {
    Configuration { target: AlState::Op, ..Configuration::default() }
}

/// The same for these SubDevices.
pub(crate) fn described(sub_devices: Vec<SubDeviceConfiguration>) -> Configuration {
    Configuration { sub_devices: Some(sub_devices), ..to_op() }
}

pub(crate) const DRIVE: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// A servo drive with the default mapping and a crystal that is off by some ppm.
pub(crate) fn drive(number: u32) -> SubDevice {
    let identity = Identity { serial: number, ..DRIVE };
    let image = with_coe(identity, &format!("drive {number}"), default_mapping()).image();
    let description = ServoDescription {
        initial_position: f64::from(number),
        ..ServoDescription::new(DeviceDescription::from_sii(&image))
    };
    let drive = ServoDrive::new(&description).expect("the default mapping fits");
    let oscillator = Oscillator { drift_ppm: f64::from(number % 7) * 10.0 - 30.0, ..Oscillator::default() };
    SubDevice::new(
        EscDescription { oscillator, ..EscDescription::default() },
        image.emit(),
        Box::new(drive),
    )
}

pub(crate) fn drives(count: u32) -> Vec<SubDevice> {
    (0..count).map(drive).collect()
}

/// The image of a real device, or `None` with a message if the files are missing.
pub(crate) fn real(name: &str) -> Option<Image> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/sii");
    let path = folder.join(name).with_extension("bin");
    let Ok(bytes) = fs::read(&path) else {
        testkit::skip!("needs {}", path.display());
        return None;
    };
    Some(Image::parse(&bytes).expect("a real device's image parses"))
}
