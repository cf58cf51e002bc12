//! From an event at a SubDevice's input to the reaction at its output: measured in virtual time,
//! within the bounds that `schedulability::bus` computes, and close to them.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::mpsc::Sender;
use std::time::Duration;

use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::Request;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;
use ethercat_linux::link::DirectLink;
use motion::{AxisPhase, Radians};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, VirtualClock};
use schedulability::bus::{Sampling, Way};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::with_coe;
use simulator::application::{Application, ProcessDataLengths, Replies, StateChange, Sync0Event};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::cycle;

const PERIOD: Duration = Duration::from_millis(4);
const ROUND_TRIP: Duration = Duration::from_micros(60);
/// Interval at which a simulated SubDevice looks at its inputs and moves its outputs.
const STEP_NS: u64 = 250_000;

/// A drive with one digital input, shown as full torque or none, and one digital output: its target
/// moves.
struct Terminal {
    drive: ServoDrive,
    level: bool,
    last_target: Option<i32>,
    event: Option<Instant>,
    next: Instant,
    random: u64,
    reactions: Sender<Duration>,
}

impl Application for Terminal {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.drive.process_data_lengths()
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.drive.enter(change)
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.drive.step(now, outputs, inputs);
        if let Some(outputs) = outputs {
            let target = i32::from_le_bytes(outputs[2..6].try_into().unwrap());
            let moved = self.last_target.is_some_and(|last| last.abs_diff(target) > 1000);
            if let Some(event) = self.event.take_if(|_| moved) {
                let _ = self.reactions.send(now.since(event));
            }
            self.last_target = Some(target);
        }
        if now >= self.next {
            self.event = Some(self.next);
            self.level = !self.level;
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12345);
            self.next = self.next + 6 * PERIOD + Duration::from_nanos((self.random >> 20) % 8_000_000);
        }
        if let Some(torque) = inputs.get_mut(10..12) {
            torque.copy_from_slice(&if self.level { 1000_i16 } else { 0 }.to_le_bytes());
        }
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.drive.sync0(event, outputs, inputs);
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.drive.coe(request, replies)
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        self.drive.poll_coe(replies);
    }
}

/// Output as input.
#[derive(Default)]
struct Follow {
    home: Option<f64>,
}

impl Controller for Follow {
    fn update(&mut self, _cycle: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(Radians(position)) = report.feedback.phase {
                self.home.get_or_insert(position);
            }
            if let Some(home) = self.home {
                let high = report.feedback.torque.0 > 1.0;
                command.setpoint.position = Radians(home + if high { 0.05 } else { 0.0 });
            }
        }
    }
}

fn reactions(order: FrameOrder) -> Vec<Duration> {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let sii = with_coe(identity, "Servo", default_mapping()).image().emit();
    let (sender, seen) = std::sync::mpsc::channel();
    let terminal = Terminal {
        drive: ServoDrive::new(&ServoDescription::new(DeviceDescription::new(identity, "Servo"))).unwrap(),
        level: false,
        last_target: None,
        event: None,
        next: clock.now() + Duration::from_secs(2),
        random: 1,
        reactions: sender,
    };
    let segment = Segment::new(vec![SubDevice::new(EscDescription::default(), sii, Box::new(terminal))]);
    let link = DirectLink::new(segment, clock.clone(), ROUND_TRIP);
    let configuration =
        CycleConfiguration { order, cycles: Some(12_000), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _observer) = cycle(link, clock, 1, Follow::default(), configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    // The first event may fall into the time before the axis holds.
    seen.try_iter().skip(1).collect()
}

// feature(analyse): the bus: wire time, shortest period, event to reaction, computed and measured
#[test]
fn reaction_time_is_as_computed_in_both_frame_orders() {
    let period_ns = PERIOD.as_nanos() as u64;
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let sampling = Sampling::Free { input_ns: STEP_NS, output_ns: STEP_NS };
        let return_ns = ROUND_TRIP.as_nanos() as u64;
        let (soonest, latest) = Way { period_ns, order, frame_ns: 0, return_ns, sampling }.latency().total;
        let seen: Vec<u64> = reactions(order).iter().map(|time| time.as_nanos() as u64).collect();
        assert!(seen.len() > 1000, "{order:?}: {} reactions", seen.len());
        let (first, last) = (*seen.iter().min().unwrap(), *seen.iter().max().unwrap());
        println!(
            "{order:?}: {first} to {last} ns, computed {soonest} to {latest} ns, {} events",
            seen.len()
        );
        assert!(
            first >= soonest && last <= latest,
            "{order:?}: {first} to {last}, not {soonest} to {latest}"
        );
        assert!(first < soonest + period_ns / 5, "{order:?}: none is as short as computed, {first}");
        assert!(last > latest - period_ns / 5, "{order:?}: none is as long as computed, {last}");
    }
}
