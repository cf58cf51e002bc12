//! The number of the cycle on digital outputs, in virtual time: read from the frames as an observer reads them.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::sii::Identity;
use onbeat_control::bring_up::Pump;
use onbeat_control::clock::VirtualClock;
use onbeat_control::controller::{Controller, CycleInfo};
use onbeat_control::cycle::{Cycle, CycleConfiguration, FrameOrder};
use onbeat_control::link::DirectLink;
use onbeat_control::link::Link;
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;
use simulator::application::NoApplication;
use simulator::application::digital::{DigitalOutputs, Wires};
use simulator::application::sii::{coupler, digital_outputs};
use simulator::output_probe::OutputProbe;
use simulator::{EscDescription, Segment, SubDevice};

const PERIOD: Duration = Duration::from_millis(1);
const CYCLES: u64 = 700;

/// A coupler, eight lamps, and twelve outputs that carry the number.
fn segment() -> Segment {
    let identity = Identity { vendor_id: 2, product_code: 0x07D4_3052, revision: 1, serial: 0 };
    let outputs = |channels| {
        let sii = digital_outputs(identity, "outputs", channels).image().emit();
        let application = DigitalOutputs::new(channels, Wires::new()).unwrap();
        SubDevice::new(EscDescription::default(), sii, Box::new(application))
    };
    let sii = coupler(identity, "coupler").image().emit();
    let coupler = SubDevice::new(EscDescription::default(), sii, Box::new(NoApplication));
    Segment::new(vec![coupler, outputs(8), outputs(12)])
}

/// Tells what each frame says to the outputs.
struct Observed {
    link: DirectLink<Segment, VirtualClock>,
    probes: [OutputProbe; 2],
    tell: Sender<[Option<u64>; 2]>,
}

impl Link for Observed {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.link.transmit(frame)?;
        let segment = self.link.segment();
        let levels = self.probes.each_mut().map(|probe| probe.levels(segment, frame));
        if levels.iter().any(Option::is_some) {
            self.tell.send(levels).unwrap();
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.link.receive(buffer, timeout)
    }
}

/// There are no axes.
struct Nothing;

impl Controller for Nothing {
    fn update(&mut self, _: CycleInfo, _: &mut Io<'_>) {}
}

/// The cycle up to its first cycle, and what it tells the outputs.
fn cycle(
    order: FrameOrder,
) -> (Cycle<Observed, VirtualClock>, std::sync::mpsc::Receiver<[Option<u64>; 2]>) {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (tell, told) = channel();
    let mut link = Observed {
        link: DirectLink::new(segment(), clock.clone(), Duration::from_micros(50)),
        probes: [OutputProbe::new(1, 8), OutputProbe::new(2, 12)],
        tell,
    };
    let configuration = Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() };
    let mut main_device = MainDevice::new(configuration).unwrap();
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &AtomicBool::new(false) }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
    let configuration =
        CycleConfiguration { order, cycles: Some(CYCLES), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _) = Cycle::new(main_device, link, clock, &[], Box::new(Nothing), configuration).unwrap();
    (cycle, told)
}

#[test]
fn every_frame_carries_the_number_of_its_cycle() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let (cycle, told) = cycle(order);
        let ended = cycle.with_cycle_numbers(&[2]).unwrap().run(&StopHandle::new());
        assert_eq!(ended.failure, None);
        let levels: Vec<_> = told.try_iter().collect();
        let numbers: Vec<u64> = levels.iter().filter_map(|levels| levels[1]).collect();
        assert!(numbers.len() as u64 >= CYCLES, "{order:?}: {} numbers", numbers.len());
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{order:?}: {numbers:?}");
        assert!(numbers[numbers.len() - 1] > 0xFF, "more than a byte is used");
        // The other terminal keeps its lamps off.
        assert!(levels.iter().all(|levels| levels[0].is_none_or(|lamps| lamps == 0)), "{order:?}");
    }
}

#[test]
fn a_sub_device_that_cannot_carry_it_is_named() {
    let error = |position| {
        let (cycle, _told) = cycle(FrameOrder::default());
        cycle.with_cycle_numbers(&[position]).unwrap_err().to_string()
    };
    assert!(error(0).starts_with("SubDevice 0 \"") && error(0).contains("expected digital outputs"));
    assert_eq!(error(3), "SubDevice 3 is to carry the number of the cycle, but the bus has 3 SubDevices");
}
