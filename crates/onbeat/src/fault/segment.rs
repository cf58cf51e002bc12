//! A segment on which faults take place: scripted faults at their times, and faults requested
//! through a handle.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use ethercat::link;
use ethercat::time::Instant;
use ipc::text::Server;
use onbeat_ethercat_linux::link::FaultControl;
use simulator::application::ServoDrive;
use simulator::application::brake::Sticking;
use simulator::application::servo::{Encoder, ServoAxis};
use simulator::fault::{Fault, OtherIdentity, Port, Script, Targets, Timed};
use simulator::{Segment, SubDevice};
use thiserror::Error;

use super::FrameFaults;
use crate::Notice;

/// A segment with its faults, between two frames. Faults of frames are sent on to its link.
pub struct FaultySegment {
    segment: Segment,
    link: FaultControl,
    frames: FrameFaults,
    /// Time of the first frame, or before.
    began: Option<Instant>,
    /// Faults to come, the last first.
    steps: Vec<Step>,
    /// Faults that last.
    active: Vec<Fault>,
    /// SIIs that were replaced, with their positions.
    siis: Vec<(usize, Vec<u8>)>,
    orders: Receiver<Order>,
    reports: Option<SyncSender<Report>>,
}

/// A fault that took place, or the end of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Time since the start.
    pub at: Duration,
    /// The fault.
    pub fault: Fault,
}

/// Faults of a run that took place, as they come.
pub(crate) struct FaultReports {
    reports: Receiver<Report>,
    targets: Targets,
    /// Takes faults of others, as long as there are reports of them.
    _server: Option<Server>,
}

impl FaultReports {
    pub(crate) fn of(segment: &mut FaultySegment, targets: Targets, server: Option<Server>) -> Self {
        Self { reports: segment.reports(), targets, _server: server }
    }

    /// The next report, if there is one.
    pub(crate) fn next(&self) -> Option<Notice> {
        let Report { at, fault } = self.reports.try_recv().ok()?;
        Some(Notice::Fault { at, fault: fault.named(&self.targets) })
    }
}

/// Faults at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Listing {
    /// Time since the start.
    pub now: Duration,
    /// Lasting faults in effect.
    pub active: Vec<Fault>,
    /// Planned faults, with their times.
    pub coming: Vec<(Duration, Fault)>,
}

/// Reason for which a fault did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the simulated bus takes no faults: it has ended, or its process is stopped")]
pub struct NotTaken;

/// Hands faults to a segment, from any ordinary thread.
#[derive(Clone, Debug)]
pub struct FaultHandle(SyncSender<Order>);

#[derive(Debug)]
enum Order {
    Take {
        timed: Timed,
        /// Time at which the requester stops waiting.
        until: std::time::Instant,
        answer: SyncSender<Duration>,
    },
    List(SyncSender<Listing>),
}

/// A fault to come.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: Duration,
    timed: Timed,
    /// The end of one that lasts for a time.
    is_end: bool,
}

/// Orders that wait for the segment.
const ORDERS: usize = 16;

/// Reports that wait for their reader; more are dropped.
const REPORTS: usize = 256;

/// Longest wait for the segment, which looks every 250 us.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longer wait for the answer to an order that the segment took at the end of that time.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

impl FaultHandle {
    /// Has a fault take place; returns when it did, since the start. Waits for that.
    ///
    /// # Errors
    /// The segment is gone, or does not run.
    pub fn take(&self, timed: Timed) -> Result<Duration, NotTaken> {
        let until = std::time::Instant::now() + TIMEOUT;
        self.ask(|answer| Order::Take { timed, until, answer })
    }

    /// Lasting faults, and planned ones.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn list(&self) -> Result<Listing, NotTaken> {
        self.ask(Order::List)
    }

    fn ask<T>(&self, order: impl FnOnce(SyncSender<T>) -> Order) -> Result<T, NotTaken> {
        let (answer, answered) = sync_channel(1);
        self.0.try_send(order(answer)).map_err(|_: TrySendError<_>| NotTaken)?;
        answered.recv_timeout(TIMEOUT + ANSWERED_WITHIN).map_err(|_| NotTaken)
    }
}

impl FaultySegment {
    /// `segment` with the faults of `script`, and with the faults from the handle. Faults of frames
    /// go to `link`.
    #[must_use]
    pub fn new(segment: Segment, link: FaultControl, script: &Script) -> (Self, FaultHandle) {
        let step = |&(at, timed): &(Duration, Timed)| Step { at, timed, is_end: false };
        let (sender, orders) = sync_channel(ORDERS);
        let faulty = Self {
            segment,
            link,
            frames: FrameFaults::default(),
            began: None,
            steps: script.steps().iter().rev().map(step).collect(),
            active: Vec::new(),
            siis: Vec::new(),
            orders,
            reports: None,
        };
        (faulty, FaultHandle(sender))
    }

    /// Reports of faults from now on, until the segment is gone; unread reports are dropped.
    pub fn reports(&mut self) -> Receiver<Report> {
        let (sender, reports) = sync_channel(REPORTS);
        self.reports = Some(sender);
        reports
    }

    /// The segment.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Has faults take place that are due at `now`.
    fn play(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let since = now.since(began);
        while self.steps.last().is_some_and(|step| step.at <= since) {
            let Some(step) = self.steps.pop() else { break };
            // As if each of a pause came in its time.
            self.take(began + step.at, step.at, step.timed);
        }
        while let Ok(order) = self.orders.try_recv() {
            // A requester that no longer waits gets no answer, and a fault reported as not taken
            // does not take place.
            match order {
                Order::Take { until, .. } if std::time::Instant::now() > until => {}
                Order::Take { timed, answer, .. } => {
                    self.take(now, since, timed);
                    let _ = answer.try_send(since);
                }
                Order::List(answer) => {
                    let _ = answer.try_send(self.listing(since));
                }
            }
        }
        self.link.flush();
    }

    fn take(&mut self, now: Instant, since: Duration, timed: Timed) {
        link::Segment::advance(&mut self.segment, now);
        let Timed { fault, lasting } = timed;
        if fault == Fault::Clear {
            for fault in std::mem::take(&mut self.active) {
                self.apply(fault.settled());
            }
            self.steps.retain(|step| !step.is_end);
        }
        self.apply(fault);
        // One of the same thing takes the place of the other.
        let settled = fault.settled();
        self.active.retain(|other| other.settled() != settled);
        self.steps.retain(|step| !step.is_end || step.timed.fault != settled);
        if let Some(end) = fault.end() {
            self.active.push(fault);
            if let Some(lasting) = lasting {
                self.end_at(since.saturating_add(lasting), end);
            }
        }
        if let Some(reports) = &self.reports {
            let _ = reports.try_send(Report { at: since, fault });
        }
    }

    /// Plans the end of a fault: after the other steps of the same time.
    fn end_at(&mut self, at: Duration, fault: Fault) {
        let place = self.steps.iter().position(|step| step.at <= at).unwrap_or(self.steps.len());
        self.steps.insert(place, Step { at, timed: Timed { fault, lasting: None }, is_end: true });
    }

    fn listing(&self, now: Duration) -> Listing {
        let coming = self.steps.iter().rev().map(|step| (step.at, step.timed.fault)).collect();
        Listing { now, active: self.active.clone(), coming }
    }

    fn apply(&mut self, fault: Fault) {
        match fault {
            Fault::Power { position, on: false } => {
                self.segment.power_off(position);
            }
            Fault::Power { position, on: true } => {
                self.segment.power_on(position);
                self.restore_drive(position);
            }
            Fault::PowerCycle(position) => {
                self.segment.power_cycle(position);
                self.restore_drive(position);
            }
            Fault::Cable { at: Port { position, port }, plugged: true } => {
                self.segment.connect(position, port);
            }
            Fault::Cable { at: Port { position, port }, plugged: false } => {
                self.segment.disconnect(position, port);
            }
            Fault::InvalidFrames { at: Port { position, port }, count } => {
                (0..count).for_each(|_| self.segment.disturb(position, port));
            }
            Fault::Mailbox { position, runs } => {
                self.change(position, |device| device.set_mailbox_runs(runs));
            }
            Fault::Application { position, runs } => {
                self.change(position, |device| device.set_application_runs(runs));
            }
            Fault::RefuseState { position, state, code } => {
                self.change(position, |device| device.refuse_state(Some((state, code))));
            }
            Fault::AllowStates(position) => self.change(position, |device| device.refuse_state(None)),
            Fault::Watchdog(position) => self.change(position, SubDevice::expire_watchdog),
            Fault::Identity { position, identity } => self.sii(position, |image| replace(image, identity)),
            Fault::BlankSii(position) => self.sii(position, |image| image.fill(0xFF)),
            Fault::SpoilSii(position) => self.sii(position, |image| spoil(image)),
            Fault::CutSii { position, length } => {
                self.sii(position, |image| image.truncate(length as usize))
            }
            Fault::RestoreSii(position) => self.sii(position, |_| ()),
            Fault::ClockJump { position, by } => {
                self.segment.jump_clock(position, by);
            }
            Fault::ReceiveTime { at: Port { position, port }, latches } => {
                self.change(position, |device| device.set_receive_time_latches(port, latches));
            }
            Fault::Latch { position, input, high } => {
                self.segment.set_latch(position, input, high);
            }
            Fault::Input { position, input, level } => {
                self.change(position, |device| set_input(device, input, level));
            }
            Fault::DriveFault { position, axis, code } => {
                self.drive(position, |drive| drive.raise_fault(axis, code));
            }
            Fault::DrivePower { position, on } => self.drive(position, |drive| drive.set_main_power(on)),
            Fault::DriveLoad { position, axis, torque } => {
                self.drive(position, |drive| drive.set_load(axis, torque));
            }
            Fault::DriveMotor { position, axis, reversed } => {
                self.drive(position, |drive| drive.set_reversed(axis, reversed));
            }
            Fault::Brake { position, axis, sticking } => {
                self.drive(position, |drive| stick_brake(drive, axis, sticking));
            }
            Fault::Encoder { position, axis, by, turned } => {
                self.drive(position, |drive| displace(drive, axis, f64::from(by) / 1e3, turned));
            }
            Fault::LoseFrames(share) => self.rates(|frames| frames.loss = share.fraction()),
            Fault::LoseNext(count) => self.link.lose_next(count),
            Fault::DelayFrames { by, share } => self.rates(|frames| {
                (frames.delay, frames.late) = (by, share.fraction());
            }),
            Fault::DuplicateFrames(share) => self.rates(|frames| frames.duplicate = share.fraction()),
            Fault::ReorderFrames(share) => self.rates(|frames| frames.reorder = share.fraction()),
            Fault::CorruptFrames(share) => self.rates(|frames| frames.corrupt = share.fraction()),
            Fault::Seed(seed) => self.seed(seed),
            Fault::Clear => self.clear(),
        }
    }

    fn seed(&mut self, seed: u64) {
        self.frames.seed = seed;
        self.link.set_seed(seed);
    }

    /// Lasting faults have ended; left are faults from the start, and faults with a planned end.
    fn clear(&mut self) {
        self.rates(|frames| *frames = FrameFaults { seed: frames.seed, ..FrameFaults::default() });
        self.link.lose_next(0);
    }

    fn change(&mut self, position: usize, change: impl FnOnce(&mut SubDevice)) {
        if let Some(device) = self.segment.sub_device_mut(position) {
            change(device);
        }
    }

    fn drive(&mut self, position: usize, change: impl FnOnce(&mut ServoDrive)) {
        if let Some(drive) = self.segment.sub_device_mut(position).and_then(SubDevice::servo_mut) {
            change(drive);
        }
    }

    /// Faults around a drive outlive its objects, which are new with its power.
    fn restore_drive(&mut self, position: usize) {
        for fault in self.active.clone() {
            match fault {
                Fault::DrivePower { position: of, .. } | Fault::DriveLoad { position: of, .. }
                    if of == position =>
                {
                    self.apply(fault);
                }
                _ => {}
            }
        }
    }

    fn rates(&mut self, change: impl FnOnce(&mut FrameFaults)) {
        change(&mut self.frames);
        self.link.set_rates(self.frames.on_link());
    }

    /// Replaces an SII by the result of `change` on its initial content.
    fn sii(&mut self, position: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(device) = self.segment.sub_device_mut(position) else { return };
        let kept = self.siis.iter().position(|(of, _)| *of == position).unwrap_or_else(|| {
            self.siis.push((position, device.sii().to_vec()));
            self.siis.len() - 1
        });
        let mut image = self.siis[kept].1.clone();
        change(&mut image);
        device.set_sii(image);
    }
}

/// Level of an input of a terminal with digital inputs.
fn set_input(device: &mut SubDevice, input: u8, level: Option<bool>) {
    if let Some(inputs) = device.digital_inputs_mut() {
        inputs.set(input, level);
    }
}

fn stick_brake(drive: &mut ServoDrive, axis: usize, sticking: Sticking) {
    if let Some(brake) = drive.axes().get(axis).and_then(ServoAxis::brake) {
        brake.stick(sticking);
    }
}

/// The count of an axis changes, or its shaft is turned.
fn displace(drive: &mut ServoDrive, axis: usize, turns: f64, turned: bool) {
    let unlimited = drive.axes().get(axis).is_some_and(|it| it.encoder() == Encoder::Unlimited);
    match turned {
        false => drive.shift_count(axis, turns),
        true => drive.displace(axis, turns),
    }
    // The robot file does not describe the input of this encoder, so it sees nothing.
    if turned && unlimited {
        drive.shift_count(axis, -turns);
    }
}

/// Place of the checksum over the first bytes of an SII (ETG.1000.6, Table 16).
const CHECKSUM: usize = 14;

/// Makes the checksum a wrong one.
fn spoil(image: &mut [u8]) {
    image.get_mut(CHECKSUM).into_iter().for_each(|checksum| *checksum ^= 0xFF);
}

/// Replaces the identity (ETG.1000.6, Table 16), on which the checksum does not depend.
fn replace(image: &mut [u8], identity: OtherIdentity) {
    let OtherIdentity { vendor, product, revision, serial } = identity;
    for (place, value) in [(0x10, vendor), (0x14, product), (0x18, revision), (0x1C, serial)] {
        if let (Some(bytes), Some(value)) = (image.get_mut(place..place + 4), value) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
}

impl link::Segment for FaultySegment {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.play(now);
        self.segment.process_frame(now, frame)
    }

    fn process_frame_at(&mut self, end: link::End, now: Instant, frame: &mut [u8]) -> Option<link::End> {
        self.play(now);
        self.segment.process_frame_at(end, now, frame)
    }

    fn set_link(&mut self, end: link::End, linked: bool) {
        self.segment.set_link(end, linked);
    }

    fn advance(&mut self, now: Instant) {
        self.play(now);
        link::Segment::advance(&mut self.segment, now);
    }
}

#[cfg(test)]
mod tests;
