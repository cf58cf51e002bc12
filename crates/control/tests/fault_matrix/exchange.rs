//! Inputs that name the exchange they belong to, and the rule that only inputs of the newest
//! exchange are called fresh.
//!
//! The drives of the matrix count the steps of their applications in the actual torque (0x6077),
//! four and more in a cycle: no two frames of different cycles read the same inputs. What each
//! frame with process data reads is noted when it passes.

use std::sync::{Arc, Mutex};

use ethercat::al::AlStatus;
use ethercat::al_status_code::AlStatusCode;
use ethercat::time::Instant;
use ethercat::wire::Command;
use ethercat::wire::frame::{self, DATAGRAMS_OFFSET, DatagramPlace};
use ethercat::wire::mailbox::MailboxError;
use onbeat_control::controller::AxisReport;
use simulator::application::servo::ServoDrive;
use simulator::application::{Application, ProcessDataLengths, Replies, StateChange, Sync0Event};

use super::cell::{Cell, Fault, Phase};
use super::robot::{COUNTS_PER_RADIAN, RATED_TORQUE, Report};
use crate::support::PERIOD;

/// Statusword, position, velocity, torque, mode: as `robot::mapping` has them.
const LENGTH: usize = 13;
const TORQUE: usize = 10;

/// Inputs of one drive, as its application put them last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(Arc<Mutex<[u8; LENGTH]>>);

/// A servo drive that shows how many steps it has made.
pub(crate) struct Counting {
    drive: ServoDrive,
    steps: u16,
    shown: Shown,
}

impl Counting {
    pub(crate) fn new(drive: ServoDrive) -> (Self, Shown) {
        let shown = Shown::default();
        (Self { drive, steps: 0, shown: shown.clone() }, shown)
    }

    fn count(&mut self, inputs: &mut [u8]) {
        self.steps = self.steps.wrapping_add(1);
        if let Ok(inputs) = <&mut [u8; LENGTH]>::try_from(inputs) {
            inputs[TORQUE..TORQUE + 2].copy_from_slice(&self.steps.to_le_bytes());
            *self.shown.0.lock().unwrap() = *inputs;
        }
    }
}

impl Application for Counting {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.drive.process_data_lengths()
    }

    fn power_on(&mut self) {
        self.drive.power_on();
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.drive.enter(change)
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.drive.step(now, outputs, inputs);
        self.count(inputs);
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.drive.sync0(event, outputs, inputs);
        self.count(inputs);
    }

    fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        Some(&mut self.drive)
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.drive.coe(request, replies)
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        self.drive.poll_coe(replies);
    }
}

/// A frame with process data.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    sent: Instant,
    /// Inputs that each drive put into it; `None` if it did not come to that one, or found no
    /// inputs there.
    read: [Option<[u8; LENGTH]>; 3],
    altered: Option<Part>,
}

/// The newest one: the wire notes it, the controller looks before the next leaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Newest(Arc<Mutex<Option<Exchange>>>);

impl Newest {
    /// A frame leaves; it reads `inputs` of the SubDevices it reaches.
    pub(crate) fn leaves(&self, frame: &[u8], sent: Instant, inputs: [Option<&Shown>; 3]) {
        if has_process_data(frame) {
            let read = inputs.map(|shown| shown.map(|shown| *shown.0.lock().unwrap()));
            *self.0.lock().unwrap() = Some(Exchange { sent, read, altered: None });
        }
    }

    /// Its reply is altered on its way back: one bit of it.
    pub(crate) fn is_altered(&self, reply: &[u8], bit: usize) {
        if let Some(exchange) = self.0.lock().unwrap().as_mut().filter(|_| has_process_data(reply)) {
            exchange.altered = Some(Part::of(reply, bit));
        }
    }

    pub(crate) fn get(&self) -> Option<Exchange> {
        self.0.lock().unwrap().clone()
    }
}

fn has_process_data(frame: &[u8]) -> bool {
    frame::places(frame).any(|it| it.header.command.is_logical())
}

/// Part of a reply with process data that a bit belongs to: it decides whether a change can be
/// detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Identity of the reply: changed, it is no reply at all.
    Head,
    /// A working counter of process data: not of all.
    Counter,
    /// Process data: only a frame check sequence could tell.
    ProcessData,
    /// Bits on which no input depends.
    Other,
}

impl Part {
    fn of(reply: &[u8], bit: usize) -> Self {
        let (byte, bit) = (bit / 8, bit % 8);
        if byte < DATAGRAMS_OFFSET {
            // Of the EtherCAT header bit 11 is reserved.
            return if (byte, bit) == (15, 3) { Self::Other } else { Self::Head };
        }
        let place = frame::places(reply).enumerate().find(|(_, place)| byte < place.end());
        place.map_or(Self::Other, |(number, place)| Self::of_datagram(number, &place, byte, bit))
    }

    fn of_datagram(number: usize, place: &DatagramPlace, byte: usize, bit: usize) -> Self {
        let (is_first, is_logical) = (number == 0, place.header.command.is_logical());
        match byte - place.offset {
            // ESCs count up the positions of a broadcast.
            2 | 3 if place.header.command == Command::Brd => Self::Other,
            // Of the flags three are reserved and one says that the frame circulates.
            7 if (3..=6).contains(&bit) => Self::Other,
            0..=7 => Self::Head,
            // Event requests.
            8 | 9 => Self::Other,
            // The first datagram carries the generation number.
            _ if is_first && byte < place.working_counter() => Self::Head,
            _ if !is_logical => Self::Other,
            _ if byte < place.working_counter() => Self::ProcessData,
            _ => Self::Counter,
        }
    }
}

/// Inputs called fresh in a cycle are, bit by bit, the inputs that the drive put into the frame of
/// the previous cycle: all except the one bit of process data that was altered on the way.
pub(crate) fn check(cell: Cell, reports: &[Report]) {
    // On the way back from a stall, up to two cycles without a look are no outage.
    let oldest = if cell.fault == Fault::HostStall { PERIOD * 4 } else { PERIOD };
    for report in reports {
        let fresh = |drive: &usize| report.axes[*drive].feedback.fresh;
        let Some(exchange) = &report.exchange else {
            assert!(!(0..3).any(|drive| fresh(&drive)), "fresh before the first frame {cell:?}");
            continue;
        };
        let mut differing = 0;
        for drive in (0..3).filter(fresh) {
            let at = format!("drive {drive} at {:?} {exchange:?} {cell:?}", report.now);
            assert!(report.now.since(exchange.sent) <= oldest, "{at}");
            let Some(read) = exchange.read[drive] else { panic!("no frame came to {at}") };
            // A drive that homes counts from a new origin.
            let homes = cell.phase == Phase::Homing && drive == 0;
            differing += different_bits(read, &report.axes[drive], homes);
        }
        let all = (0..3).filter(fresh).count();
        let (bits, drives) = match exchange.altered {
            Some(Part::Head) => (0, 0),
            Some(Part::Counter) => (0, 2),
            Some(Part::ProcessData) => (1, 3),
            Some(Part::Other) | None => (0, 3),
        };
        assert!(
            differing <= bits && all <= drives,
            "{differing} bits of {all} fresh drives at {:?}: {:?} {exchange:?} {cell:?}",
            report.now,
            report.axes
        );
    }
}

/// Cycles in which a bit of process data was altered.
pub(crate) fn altered_at(reports: &[Report]) -> Vec<Instant> {
    let altered = |it: &&Report| {
        it.exchange.as_ref().is_some_and(|exchange| exchange.altered == Some(Part::ProcessData))
    };
    reports.iter().filter(altered).map(|it| it.now).collect()
}

/// Bits in which a report differs from the inputs it is of.
fn different_bits(read: [u8; LENGTH], report: &AxisReport, homes: bool) -> u32 {
    let number = |from: usize, to: usize| {
        read[from..to].iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
    };
    let counts = |angle: f64| (angle * COUNTS_PER_RADIAN).round() as i64 as u32;
    let steps = (report.feedback.torque.0 / RATED_TORQUE * 1000.0).round() as i16 as u16;
    let position = if homes { number(2, 6) } else { counts(report.feedback.position.0) };
    [
        (number(0, 2), report.statusword.0.into()),
        (number(2, 6), position),
        (number(6, 10), counts(report.feedback.velocity.0)),
        (number(TORQUE, TORQUE + 2), steps.into()),
    ]
    .iter()
    .map(|(read, reported): &(u32, u32)| (read ^ reported).count_ones())
    .sum()
}

/// The number of a state that exchanges inputs.
pub(crate) fn gives_inputs(status: AlStatus) -> bool {
    use ethercat::al::AlState;
    matches!(status.al_state(), Some(AlState::SafeOp | AlState::Op))
}
