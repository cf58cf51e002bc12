//! Simulated SubDevices to run programs against.
#![allow(dead_code, clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onbeat_ethercat_linux::ethercat::link::MAXIMUM_FRAME_LENGTH;
use onbeat_ethercat_linux::ethercat::sii::Identity;
use onbeat_ethercat_linux::ethercat::time::Instant;
use onbeat_ethercat_linux::link::Link;
use simulator::application::servo::default_mapping;
use simulator::application::sii::{coupler, digital_inputs, digital_outputs, with_coe};
use simulator::application::{
    Application, DigitalInputs, DigitalOutputs, NoApplication, ProcessDataLengths, ServoDescription,
    ServoDrive, Wires,
};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};

pub(crate) const VENDOR: u32 = 0x4F4E;

fn identity(product_code: u32) -> Identity {
    Identity { vendor_id: VENDOR, product_code, ..Identity::default() }
}

/// A coupler, four buttons, four lamps.
pub(crate) fn station(buttons: &Wires, lamps: &Wires) -> Vec<SubDevice> {
    let buttons = DigitalInputs::new(4, buttons.clone()).unwrap();
    let lamps = DigitalOutputs::new(4, lamps.clone()).unwrap();
    let device = |image: Vec<u8>, application: Box<dyn Application>| {
        SubDevice::new(EscDescription::default(), image, application)
    };
    vec![
        device(coupler(identity(1), "coupler").image().emit(), Box::new(NoApplication)),
        device(digital_inputs(identity(2), "buttons", 4).image().emit(), Box::new(buttons)),
        device(digital_outputs(identity(3), "lamps", 4).image().emit(), Box::new(lamps)),
    ]
}

/// A servo drive in CSP, and the record of its targets.
pub(crate) fn servo() -> (SubDevice, simulator::application::servo::ServoRecord) {
    let image = with_coe(identity(4), "servo", default_mapping()).image();
    let description = ServoDescription::new(DeviceDescription::from_sii(&image));
    let mut drive = ServoDrive::new(&description).unwrap();
    let record = drive.record();
    (SubDevice::new(EscDescription::default(), image.emit(), Box::new(drive)), record)
}

/// Outputs received by a terminal with eight of them: each change, `None` outside Op.
pub(crate) type Outputs = Arc<Mutex<Vec<Option<u8>>>>;

struct Recorder(Outputs);

impl Application for Recorder {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 1, inputs: 0 }
    }

    fn step(&mut self, _: Instant, outputs: Option<&[u8]>, _: &mut [u8]) {
        let mut seen = self.0.lock().unwrap();
        let outputs = outputs.map(|outputs| outputs[0]);
        if seen.last() != Some(&outputs) {
            seen.push(outputs);
        }
    }
}

/// A terminal with eight outputs that remembers them.
pub(crate) fn recorder() -> (SubDevice, Outputs) {
    recorder_of(5, 8)
}

/// The like of another product, or with fewer outputs.
pub(crate) fn recorder_of(product_code: u32, count: u8) -> (SubDevice, Outputs) {
    let outputs = Outputs::default();
    let image = digital_outputs(identity(product_code), "recorder", count).image().emit();
    (SubDevice::new(EscDescription::default(), image, Box::new(Recorder(outputs.clone()))), outputs)
}

pub(crate) fn segment(devices: Vec<SubDevice>) -> Segment {
    Segment::new(devices)
}

/// Waits for a frame that does not come, for exactly the given time.
pub(crate) fn waits_as_long_as_it_is_told(link: &mut impl Link, timeout: Duration) {
    let begin = std::time::Instant::now();
    let received = link.receive(&mut [0; MAXIMUM_FRAME_LENGTH], Duration::from_millis(5)).unwrap();
    let elapsed = begin.elapsed();
    assert_eq!(received, None);
    assert!(elapsed >= Duration::from_millis(5) && elapsed < timeout, "{elapsed:?}");
}

/// Looks at each of two hundred frames in place while others come. It must not change meanwhile,
/// and the next one must be another. `frame` makes a frame of a length, with a number in bytes 14
/// to 17.
pub(crate) fn frames_in_place_are_left_alone(
    near: &mut impl Link,
    far: &mut impl Link,
    frame: impl Fn(usize, u32) -> Vec<u8>,
) {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let other = frame(MAXIMUM_FRAME_LENGTH, u32::MAX);
    for round in 0..200 {
        let sent = frame(60 + round as usize * 7, round);
        near.transmit(&sent).unwrap();
        let took = far.receive_in_place(&mut buffer, &mut |bytes| {
            for _ in 0..200 {
                near.transmit(&other).unwrap();
            }
            assert_eq!(bytes, sent, "round {round}");
        });
        assert!(took.unwrap());
        let mut others = 0;
        while far.receive_in_place(&mut buffer, &mut |bytes| assert_eq!(bytes, other)).unwrap() {
            others += 1;
        }
        assert!((64..=200).contains(&others), "{others}");
    }
    assert_eq!(buffer, [0; MAXIMUM_FRAME_LENGTH], "it needs no buffer");
}
