//! A MainDevice and a segment in one thread and in virtual time.
#![allow(dead_code)]

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{
    BeatReport, BusError, Configuration, Event, MainDevice, Stage, SubDeviceConfiguration,
};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, Oscillator, Segment, SubDevice};

/// What a round trip takes.
const ROUND_TRIP: Duration = Duration::from_micros(20);

/// One beat.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

/// What happens to a frame on its way back: `false` loses it.
type Wire = Box<dyn FnMut(Instant, &mut Vec<u8>) -> bool>;

/// Both ends and the time.
pub(crate) struct Rig {
    pub(crate) main_device: MainDevice,
    pub(crate) segment: Segment,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    pub(crate) wire: Wire,
}

impl Rig {
    pub(crate) fn new(configuration: Configuration, devices: Vec<SubDevice>) -> Self {
        Self::on(configuration, Segment::new(devices))
    }

    pub(crate) fn on(configuration: Configuration, segment: Segment) -> Self {
        let main_device = MainDevice::new(configuration).expect("a configuration that can be run");
        let now = Instant::from_nanos(1_000_000_000);
        Self { main_device, segment, now, events: Vec::new(), wire: Box::new(|_, _| true) }
    }

    /// Sends and receives without beats until `stage`, a failure, or ten seconds have gone by.
    pub(crate) fn pump_to(&mut self, stage: Stage) {
        let end = self.now + Duration::from_secs(10);
        while self.main_device.stage() != stage && self.now < end {
            self.exchange();
            if self.failure().is_some() && self.main_device.stage() == Stage::Down {
                return;
            }
            let due = self.main_device.poll_timeout().unwrap_or(self.now);
            self.pass(due.since(self.now).clamp(ROUND_TRIP, Duration::from_millis(1)));
        }
    }

    /// One beat: replies of this beat's own frames, then the rest of the period.
    pub(crate) fn beat(&mut self) -> BeatReport {
        let start = self.now;
        self.main_device.begin_beat(self.now);
        self.exchange();
        let report = self.main_device.end_beat(self.now);
        let elapsed = self.now.since(start);
        self.pass(PERIOD.saturating_sub(elapsed));
        report
    }

    /// Beats until `stage`; panics with what happened if it takes more than `beats`.
    pub(crate) fn beat_to(&mut self, stage: Stage, beats: usize) {
        for _ in 0..beats {
            if self.main_device.stage() == stage {
                return;
            }
            self.beat();
        }
        panic!("{:?} after {beats} beats: {:?}", self.main_device.stage(), self.events);
    }

    /// Sends all that is due, one frame after the other, each answered at once.
    pub(crate) fn exchange(&mut self) {
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        while let Some(length) = self.main_device.poll_transmit(self.now, &mut buffer) {
            let mut frame = buffer[..length].to_vec();
            self.pass(ROUND_TRIP);
            if self.segment.process_frame(self.now, &mut frame) && (self.wire)(self.now, &mut frame) {
                self.main_device.handle_frame(self.now, &frame);
            }
            self.events.extend(std::iter::from_fn(|| self.main_device.poll_event()));
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.segment.advance(self.now);
    }

    pub(crate) fn failure(&self) -> Option<&BusError> {
        self.events.iter().find_map(|event| match event {
            Event::Failed(error) => Some(error),
            _ => None,
        })
    }

    /// To Op with beats, or panic.
    pub(crate) fn run_up(&mut self) {
        self.pump_to(Stage::PreOp);
        assert_eq!(self.main_device.stage(), Stage::PreOp, "{:?}", self.events);
        self.beat_to(Stage::Op, 2000);
    }
}

/// A configuration that takes what is there, to Op.
pub(crate) fn to_op() -> Configuration {
    Configuration { target: AlState::Op, ..Configuration::default() }
}

/// The same for these SubDevices.
pub(crate) fn described(sub_devices: Vec<SubDeviceConfiguration>) -> Configuration {
    Configuration { sub_devices: Some(sub_devices), ..to_op() }
}

pub(crate) const DRIVE: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// A servo drive with the default mapping, its crystal off by some ppm.
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
