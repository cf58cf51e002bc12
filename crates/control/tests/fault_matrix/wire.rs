//! The wire of a cell: the segment, and the faults on the way to it and back.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ethercat::al::{AlControl, AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::State;
use ethercat::cia402::object::DIGITAL_OUTPUTS;
use ethercat::link::Segment as _;
use ethercat::register;
use ethercat::time::Instant;
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use ethercat_linux::link::Link;
use rt::clock::{Clock, VirtualClock};
use simulator::Segment;
use simulator::application::brake::Sticking;
use simulator::application::servo::ServoRecord;

use super::cell::{Cell, Fall, Fault, Phase};
use super::exchange::{Newest, Shown, gives_inputs};
use super::robot::SECOND;
use super::second::SecondMaster;
use super::stream::{Sent, Stream};

/// Time a passing fault lasts.
const WHILE: Duration = Duration::from_millis(60);

/// Time after which the cause of a fault in Op is removed.
const HEALS: Duration = Duration::from_millis(500);

/// The same on the way up, where a SubDevice that does not answer ends it after half a second.
const HEALS_ON_THE_WAY_UP: Duration = Duration::from_millis(300);

/// Time that the second SubDevice is without power where it falls out of Op that way.
const POWERLESS: Duration = Duration::from_millis(20);

/// mN m, on a motor of 2400.
const LOAD: i32 = 500;

/// By then another MainDevice that began has its bus in Op.
const SETTLED: Duration = Duration::from_secs(2);

/// Frames after which an index of ours comes round again.
const INDICES: usize = 64;

/// From transmit to reply.
pub(crate) const ROUND_TRIP: Duration = Duration::from_micros(60);

/// News of the controller for the wire: cycles since the axes move, homing, stopping.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    pub(crate) const MOVING: u64 = 1;
    pub(crate) const HOMING: u64 = 2;
    pub(crate) const STOPPING: u64 = 4;

    pub(crate) fn note(&self, what: u64) {
        self.0.fetch_or(what, Ordering::Relaxed);
    }

    fn has(&self, what: u64) -> bool {
        self.0.load(Ordering::Relaxed) & what != 0
    }
}

/// When all SubDevices were in Op for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// From before the fault on.
    Stayed,
    /// Before its cause had gone.
    BeforeItsEnd,
    /// So long after that.
    After(Duration),
}

pub(crate) struct Wire {
    segment: Segment,
    /// Process data of the drives, frame by frame.
    shown: [Shown; 3],
    records: Vec<ServoRecord>,
    stream: Stream,
    clock: VirtualClock,
    cell: Cell,
    progress: Progress,
    newest: Newest,
    random: fastrand::Rng,
    began: Option<Instant>,
    replies: VecDeque<(Instant, Vec<u8>)>,
    /// Replies of before, the oldest first.
    history: VecDeque<Vec<u8>>,
    frames: u64,
    /// Effects of the fault: frames lost or changed on their way, and what happened once.
    spoilt: u64,
    second: Option<SecondMaster>,
    /// The other MainDevice once it sends no more.
    second_left: Option<SecondMaster>,
    /// SII of the second SubDevice, as it was.
    sii: Vec<u8>,
    /// When the cause went away.
    healed: Option<Instant>,
    /// Since when all SubDevices have been in Op.
    in_op_since: Option<Instant>,
    /// One was in another state since the fault began.
    left_op: bool,
}

impl Wire {
    pub(crate) fn new(
        cell: Cell,
        (segment, records, shown): (Segment, Vec<ServoRecord>, [Shown; 3]),
        clock: VirtualClock,
        progress: Progress,
        newest: Newest,
    ) -> Self {
        let random = fastrand::Rng::with_seed(cell.seed);
        let (began, replies) = (None, VecDeque::new());
        let sii = segment.sub_devices()[1].sii().to_vec();
        let mut wire = Self {
            segment,
            shown,
            records,
            stream: Stream::default(),
            clock,
            cell,
            progress,
            newest,
            random,
            began,
            replies,
            history: VecDeque::new(),
            frames: 0,
            // These change places before they have power.
            spoilt: u64::from(cell.fault == Fault::Swapped),
            second: None,
            second_left: None,
            sii,
            healed: None,
            in_op_since: None,
            left_op: false,
        };
        if cell.phase == Phase::Scan && cell.fault == Fault::SecondMaster {
            wire.begin();
            wire.clock.advance(SETTLED);
            wire.act_until(wire.clock.now());
            wire.replies.clear();
        }
        wire
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Frames with process data that have left.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.stream.sent()
    }

    /// True if the fault took place: later effects are outcomes of the fault.
    pub(crate) fn went_wrong(&self) -> bool {
        self.spoilt > 0
    }

    /// The other MainDevice, if there is one.
    pub(crate) fn second(&self) -> Option<&SecondMaster> {
        self.second.as_ref().or(self.second_left.as_ref())
    }

    /// True if the passing fault is on.
    fn is_on(&self) -> bool {
        self.began.is_some_and(|began| self.clock.now().since(began) < WHILE)
    }

    fn watch(&mut self, frame: &[u8]) {
        if self.began.is_some() {
            return;
        }
        let states = || self.segment.sub_devices().iter().map(|it| it.al_status().state);
        let begins = match self.cell.phase {
            Phase::Scan => true,
            Phase::MailboxTransfer => writes_to_a_mailbox(frame),
            Phase::DcStart => self.segment.sub_devices().iter().any(|it| {
                let mut active = [0];
                it.peek(0x0981, &mut active);
                active[0] & 1 != 0
            }),
            Phase::BringUp => states().any(|state| state == AlState::SafeOp.number()),
            Phase::Op | Phase::Profile => self.progress.has(Progress::MOVING),
            Phase::Homing => self.progress.has(Progress::HOMING),
            Phase::Shutdown => self.progress.has(Progress::STOPPING),
        };
        if begins {
            self.begin();
        }
    }

    /// Event that comes once.
    fn begin(&mut self) {
        self.began = Some(self.clock.now());
        let last = self.segment.sub_devices().len() - 1;
        let second = |segment: &mut Segment, change: fn(&mut simulator::SubDevice)| {
            segment.sub_device_mut(1).map(change).unwrap();
        };
        match self.cell.fault {
            Fault::PowerLoss => assert!(self.segment.power_off(last)),
            Fault::UnmarkedPower => (0..=last).for_each(|it| assert!(self.segment.power_off(it))),
            Fault::CableBreak => assert!(self.segment.disconnect(0, 1)),
            Fault::StuckMailbox => second(&mut self.segment, |it| it.set_mailbox_runs(false)),
            Fault::RefusedState => second(&mut self.segment, |it| {
                it.refuse_state(Some((AlState::Op, AlStatusCode(0x001D))));
            }),
            Fault::SiiGarbage => second(&mut self.segment, |it| it.set_sii(vec![0xFF; 2048])),
            Fault::WatchdogExpiry => second(&mut self.segment, simulator::SubDevice::expire_watchdog),
            Fault::ClockJump => assert!(self.segment.jump_clock(1, 5_000_000)),
            Fault::SecondMaster => {
                self.second = Some(SecondMaster::new(self.clock.now(), self.cell));
            }
            Fault::TurnOffInOp => self.count_from_elsewhere(),
            Fault::BrakeStuckOpen | Fault::BrakeStuckShut => {
                self.stick(self.cell.fault.sticks().unwrap_or_default());
            }
            Fault::HalfTurnOff
            | Fault::TurnOff
            | Fault::ThreeTurnsOff
            | Fault::TurnedUnseen
            | Fault::TurnedByRange => assert!(self.segment.power_off(SECOND)),
            Fault::Swapped => {}
            // These faults hit single frames.
            Fault::Loss
            | Fault::Delay
            | Fault::Duplicate
            | Fault::Replay
            | Fault::Reorder
            | Fault::Corrupt
            | Fault::Altered
            | Fault::Foreign
            | Fault::Truncated
            | Fault::LinkDown
            | Fault::InterfaceGone
            | Fault::NoQuickStop
            | Fault::NoStopBrake
            | Fault::NoStopLoad
            | Fault::NoStopBrakeLoad
            | Fault::HostStall
            | Fault::HostStallHalf
            | Fault::HostStallFive => return,
        }
        match self.cell.falls() {
            Some(Fall::Watchdog) => second(&mut self.segment, simulator::SubDevice::expire_watchdog),
            Some(Fall::Power) => assert!(self.segment.power_off(1)),
            None => {}
        }
        self.spoilt += 1;
    }

    /// Time from the begin to the end of the cause; `None` for a cause that stays.
    fn cause_lasts(&self) -> Option<Duration> {
        Some(match self.cell.fault {
            Fault::Swapped | Fault::InterfaceGone => return None,
            Fault::WatchdogExpiry | Fault::ClockJump | Fault::TurnOffInOp => Duration::ZERO,
            Fault::HostStall | Fault::HostStallHalf | Fault::HostStallFive => self.cell.fault.stall()?,
            Fault::HalfTurnOff
            | Fault::TurnOff
            | Fault::ThreeTurnsOff
            | Fault::TurnedUnseen
            | Fault::TurnedByRange => POWERLESS,
            Fault::SecondMaster => SETTLED,
            Fault::PowerLoss
            | Fault::UnmarkedPower
            | Fault::CableBreak
            | Fault::StuckMailbox
            | Fault::RefusedState
            | Fault::SiiGarbage
            | Fault::BrakeStuckOpen
            | Fault::BrakeStuckShut => {
                if self.cell.is_in_op() {
                    HEALS
                } else {
                    HEALS_ON_THE_WAY_UP
                }
            }
            Fault::Loss
            | Fault::Delay
            | Fault::Duplicate
            | Fault::Replay
            | Fault::Reorder
            | Fault::Corrupt
            | Fault::Altered
            | Fault::Foreign
            | Fault::Truncated
            | Fault::NoQuickStop
            | Fault::NoStopBrake
            | Fault::NoStopLoad
            | Fault::NoStopBrakeLoad
            | Fault::LinkDown => WHILE,
        })
    }

    /// Gives the second SubDevice its power again, where it was without for a moment.
    fn wake(&mut self, now: Instant) {
        let restarts = self.cell.fault.restarts();
        let is_over = self.began.is_some_and(|began| now.since(began) >= POWERLESS);
        if (self.cell.falls() == Some(Fall::Power) || restarts)
            && is_over
            && !self.segment.is_powered(SECOND)
        {
            self.count_from_elsewhere();
            assert!(self.segment.power_on(SECOND));
        }
    }

    /// Count or shaft of the second drive is changed meanwhile.
    fn count_from_elsewhere(&mut self) {
        let fault = self.cell.fault;
        let drive = self.segment.sub_device_mut(SECOND).unwrap().servo_mut().unwrap();
        if let Some(turns) = fault.turns_off() {
            drive.shift_count(0, turns);
        }
        if fault.turns_the_shaft() {
            drive.displace(0, 1.0);
        }
    }

    /// The brake of the second axis sticks, or does not any more.
    fn stick(&mut self, sticking: Sticking) {
        let drive = self.segment.sub_device_mut(SECOND).unwrap().servo_mut().unwrap();
        drive.axes()[0].brake().unwrap().stick(sticking);
    }

    /// Brake and load of the second drive, which closes its brake wherever it is not enabled.
    fn work(&mut self) {
        let fault = self.cell.fault;
        if !fault.has_no_quick_stop() && !fault.has_load() {
            return;
        }
        let loaded = fault.has_load()
            && self.progress.has(Progress::MOVING)
            && !self.progress.has(Progress::STOPPING);
        let drive = self.segment.sub_device_mut(SECOND).unwrap().servo_mut().unwrap();
        drive.set_load(0, if loaded { LOAD } else { 0 });
        if fault.sticks().is_some() {
            // That brake works by itself.
            return;
        }
        let open = matches!(
            drive.axes()[0].state(),
            State::OperationEnabled | State::QuickStopActive | State::FaultReactionActive
        );
        let [outputs, mask] = [1, 2].map(|it| drive.dictionary().find(DIGITAL_OUTPUTS, it).unwrap());
        drive.dictionary_mut().set(mask, 1);
        drive.dictionary_mut().set(outputs, i64::from(fault.has_brake() && !open));
    }

    /// Removes the cause at its end, and records the SubDevices in Op, until the cycle stops.
    fn heal(&mut self, now: Instant) {
        let Some(began) = self.began.filter(|_| self.cell.heals && !self.progress.has(Progress::STOPPING))
        else {
            return;
        };
        let last = self.segment.sub_devices().len() - 1;
        let Some(lasts) = self.cause_lasts() else { return };
        if self.healed.is_none() && now.since(began) >= lasts {
            self.healed = Some(began + lasts);
            match self.cell.fault {
                Fault::PowerLoss => assert!(self.segment.power_on(last)),
                Fault::UnmarkedPower => (0..=last).for_each(|it| assert!(self.segment.power_on(it))),
                Fault::CableBreak => assert!(self.segment.connect(0, 1)),
                Fault::StuckMailbox => self.segment.sub_device_mut(1).unwrap().set_mailbox_runs(true),
                Fault::RefusedState => self.segment.sub_device_mut(1).unwrap().refuse_state(None),
                Fault::SiiGarbage => self.segment.sub_device_mut(1).unwrap().set_sii(self.sii.clone()),
                Fault::SecondMaster => self.second_left = self.second.take(),
                Fault::BrakeStuckOpen | Fault::BrakeStuckShut => self.stick(Sticking::Free),
                _ => {}
            }
        }
        let op = AlStatus::in_state(AlState::Op);
        let all = (0..=last)
            .all(|it| self.segment.is_powered(it) && self.segment.sub_devices()[it].al_status() == op);
        self.in_op_since = if all { self.in_op_since.or(Some(now)) } else { None };
        self.left_op |= !all;
    }

    /// When the cause went away.
    pub(crate) fn healed(&self) -> Option<Instant> {
        self.healed
    }

    /// When all SubDevices were in Op for good.
    pub(crate) fn back(&self) -> Option<Back> {
        let (since, healed) = (self.in_op_since?, self.healed?);
        Some(match since > healed {
            true => Back::After(since.since(healed)),
            false if self.left_op => Back::BeforeItsEnd,
            false => Back::Stayed,
        })
    }

    /// The SubDevices that give inputs to a frame that leaves now, if it reaches them.
    fn readable(&self) -> [Option<&Shown>; 3] {
        let cut = match self.cell.fault {
            _ if self.healed.is_some() => 3,
            Fault::CableBreak if self.began.is_some() => 1,
            _ => 3,
        };
        let is_off = |&position: &usize| !self.segment.is_powered(position);
        let cut = (0..3).find(is_off).map_or(cut, |off| off.min(cut));
        std::array::from_fn(|position| {
            let status = self.segment.sub_devices()[position].al_status();
            (position < cut && gives_inputs(status)).then_some(&self.shown[position])
        })
    }

    /// Runs the other MainDevice.
    fn act_until(&mut self, now: Instant) {
        let Some(second) = &mut self.second else { return };
        while second.due() <= now {
            second.act(&mut self.segment, |due, bytes| self.replies.push_back((due, bytes.to_vec())));
        }
    }

    /// The first reply until `end`, and when it comes. The other MainDevice's come too.
    fn next_reply(&mut self, end: Instant) -> Option<(usize, Instant)> {
        loop {
            let next = self.replies.iter().enumerate().min_by_key(|(place, (due, _))| (*due, *place));
            let next = next.map(|(place, (due, _))| (place, *due)).filter(|(_, due)| *due <= end);
            let until = next.map_or(end, |(_, due)| due);
            match self.second.as_ref().map(SecondMaster::due) {
                Some(due) if due < until => self.act_until(due),
                _ => return next,
            }
        }
    }

    /// A reply on its way back.
    fn reply(&mut self, bytes: Vec<u8>) {
        let due = self.clock.now() + ROUND_TRIP;
        if !self.is_on() {
            return self.replies.push_back((due, bytes));
        }
        let come = self.come_of(due, bytes.clone());
        self.spoilt += u64::from(come != [(due, bytes)]);
        self.replies.extend(come);
    }

    /// Outcome of a reply while the passing fault is on, and its time.
    fn come_of(&mut self, due: Instant, mut bytes: Vec<u8>) -> Vec<(Instant, Vec<u8>)> {
        match self.cell.fault {
            Fault::Delay => vec![(due + Duration::from_millis(5), bytes)],
            Fault::Duplicate => vec![(due, bytes.clone()), (due, bytes)],
            Fault::Replay => {
                let old = self.history.front().filter(|_| self.history.len() == INDICES).cloned();
                old.into_iter().chain([bytes]).map(|bytes| (due, bytes)).collect()
            }
            Fault::Reorder => {
                let late = if self.frames % 2 == 0 { 1_100 } else { 0 };
                vec![(due + Duration::from_micros(late), bytes)]
            }
            Fault::Corrupt if self.frames % 5 == 0 => Vec::new(),
            Fault::Altered if self.frames % 5 == 0 => {
                let bit = self.random.usize(14 * 8..bytes.len() * 8);
                self.newest.is_altered(&bytes, bit);
                bytes[bit / 8] ^= 1 << (bit % 8);
                vec![(due, bytes)]
            }
            Fault::Truncated => {
                bytes.truncate(self.random.usize(14..bytes.len()));
                vec![(due, bytes)]
            }
            Fault::Foreign => {
                let foreign = (0..5_u8).map(|number| {
                    let mut foreign = al_control_for_all(AlControl::request(AlState::Op));
                    // Processed by an ESC, from another source; and no EtherCAT at all.
                    foreign[6..12].copy_from_slice(&[0x06, 0, 0, 0, 0, number]);
                    if number % 2 == 0 {
                        foreign[12] = 0x08;
                    }
                    foreign
                });
                foreign.chain([bytes]).map(|bytes| (due, bytes)).collect()
            }
            Fault::Corrupt
            | Fault::Altered
            | Fault::Loss
            | Fault::PowerLoss
            | Fault::UnmarkedPower
            | Fault::CableBreak
            | Fault::Swapped
            | Fault::StuckMailbox
            | Fault::RefusedState
            | Fault::SiiGarbage
            | Fault::WatchdogExpiry
            | Fault::ClockJump
            | Fault::LinkDown
            | Fault::InterfaceGone
            | Fault::HostStall
            | Fault::HostStallHalf
            | Fault::HostStallFive
            | Fault::HalfTurnOff
            | Fault::TurnOff
            | Fault::ThreeTurnsOff
            | Fault::TurnOffInOp
            | Fault::TurnedUnseen
            | Fault::TurnedByRange
            | Fault::NoQuickStop
            | Fault::NoStopBrake
            | Fault::NoStopLoad
            | Fault::NoStopBrakeLoad
            | Fault::BrakeStuckOpen
            | Fault::BrakeStuckShut
            | Fault::SecondMaster => vec![(due, bytes)],
        }
    }

    /// True while no frame passes, either way.
    fn loses_all(&self) -> bool {
        let fault = self.cell.fault;
        (fault == Fault::Loss || fault.has_no_quick_stop()) && self.is_on()
    }

    /// Result of a transmit with a frame that does not reach the segment; `None` for one that does.
    fn lost_on_the_way(&self) -> Option<io::Result<()>> {
        match self.cell.fault {
            _ if self.loses_all() => Some(Ok(())),
            Fault::Corrupt if self.is_on() && self.frames % 7 == 0 => Some(Ok(())),
            Fault::LinkDown if self.is_on() => Some(Err(io::Error::from_raw_os_error(libc::ENETDOWN))),
            Fault::InterfaceGone if self.began.is_some() => {
                Some(Err(io::Error::from_raw_os_error(libc::ENXIO)))
            }
            _ => None,
        }
    }
}

impl Link for Wire {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.act_until(self.clock.now());
        self.frames += 1;
        self.watch(frame);
        let now = self.clock.now();
        self.segment.advance(now);
        self.wake(now);
        self.work();
        self.heal(now);
        let states = std::array::from_fn(|it| self.records[it].last().map(|taken| taken.state));
        self.stream.leaves(frame, now, &self.segment, states);
        self.newest.leaves(frame, now, [None; 3]);
        if let Some(result) = self.lost_on_the_way() {
            self.spoilt += 1;
            return result;
        }
        self.newest.leaves(frame, now, self.readable());
        let mut bytes = frame.to_vec();
        if self.segment.process_frame(now, &mut bytes) {
            if self.cell.fault == Fault::UnmarkedPower {
                bytes[SOURCE_OFFSET] &= !PROCESSED_BIT;
            }
            if let Some(second) = &mut self.second {
                second.receive(now + ROUND_TRIP, &bytes);
            }
            self.reply(bytes.clone());
            self.history.push_back(bytes);
            if self.history.len() > INDICES {
                self.history.pop_front();
            }
        }
        if let Some(stall) = self.cell.fault.stall().filter(|_| self.began == Some(now)) {
            self.clock.advance(stall);
            self.spoilt += 1;
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        self.act_until(self.clock.now());
        let next = self.next_reply(end);
        if !timeout.is_zero() {
            self.clock.sleep_until(next.map_or(end, |(_, due)| due));
        }
        self.segment.advance(self.clock.now());
        let Some((_, bytes)) = next.and_then(|(place, _)| self.replies.remove(place)) else {
            return Ok(None);
        };
        if self.loses_all() {
            return Ok(None);
        }
        if self.cell.fault == Fault::InterfaceGone && self.began.is_some() {
            return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
        }
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(Some(length))
    }
}

fn writes_to_a_mailbox(frame: &[u8]) -> bool {
    let Ok(frame) = Frame::parse(frame) else { return false };
    frame.datagrams().any(|it| {
        matches!(it.header.command, Command::Fpwr)
            && it.header.address >> 16 >= u32::from(register::PROCESS_DATA_MEMORY)
    })
}

fn al_control_for_all(control: AlControl) -> Vec<u8> {
    let mut buffer = vec![0; 64];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::Broadcast { register: register::AL_CONTROL };
    builder
        .push_data(DatagramHeader::new(Command::Bwr, 200, address, 2), &control.bits().to_le_bytes())
        .unwrap();
    let length = builder.finish();
    buffer.truncate(length);
    buffer
}
