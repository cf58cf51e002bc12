//! The wire of a cell: the segment, and what goes wrong on the way to it and back.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ethercat::al::{AlControl, AlState};
use ethercat::al_status_code::AlStatusCode;
use ethercat::link::Segment as _;
use ethercat::register;
use ethercat::time::Instant;
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use onbeat_runtime::clock::{Clock, VirtualClock};
use onbeat_runtime::link::Link;
use simulator::Segment;

/// When the fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// With the first frame.
    Scan,
    /// With the first message to a mailbox: the start-up objects are written in PreOp.
    MailboxTransfer,
    /// Once a SYNC0 is running.
    DcStart,
    /// Once a SubDevice is in SafeOp.
    BringUp,
    /// In Op, with the axes in motion.
    Op,
    /// In Op, while a drive looks for its home.
    Homing,
    /// Once the cycle was asked to stop.
    Shutdown,
}

impl Phase {
    pub(crate) const ALL: [Self; 7] = [
        Self::Scan,
        Self::MailboxTransfer,
        Self::DcStart,
        Self::BringUp,
        Self::Op,
        Self::Homing,
        Self::Shutdown,
    ];
}

/// What goes wrong from there on: for [`WHILE`], or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No frame comes through for a while, either way.
    Loss,
    /// Replies come 5 ms late for a while.
    Delay,
    /// Every reply comes twice for a while.
    Duplicate,
    /// Replies overtake each other for a while.
    Reorder,
    /// One bit of every fifth reply is another one, as if no check sequence had seen it; such requests are dropped.
    Corrupt,
    /// Frames of other programs and other MainDevices come in between for a while.
    Foreign,
    /// Replies are cut for a while.
    Truncated,
    /// The last SubDevice loses its power for good.
    PowerLoss,
    /// The cable behind the first SubDevice breaks for good.
    CableBreak,
    /// The last two SubDevices have changed places.
    Swapped,
    /// The second SubDevice answers in its mailbox no more.
    StuckMailbox,
    /// The second SubDevice refuses Op.
    RefusedState,
    /// The EEPROM of the second SubDevice is blank.
    SiiGarbage,
    /// The process data watchdog of the second SubDevice expires.
    WatchdogExpiry,
    /// The clock of the second SubDevice jumps by 5 ms.
    ClockJump,
    /// The interface is down for a while.
    LinkDown,
    /// The interface is removed.
    InterfaceGone,
    /// The host stands still for 50 ms.
    HostStall,
    /// Another MainDevice takes all SubDevices to Init.
    SecondMaster,
}

impl Fault {
    pub(crate) const ALL: [Self; 19] = [
        Self::Loss,
        Self::Delay,
        Self::Duplicate,
        Self::Reorder,
        Self::Corrupt,
        Self::Foreign,
        Self::Truncated,
        Self::PowerLoss,
        Self::CableBreak,
        Self::Swapped,
        Self::StuckMailbox,
        Self::RefusedState,
        Self::SiiGarbage,
        Self::WatchdogExpiry,
        Self::ClockJump,
        Self::LinkDown,
        Self::InterfaceGone,
        Self::HostStall,
        Self::SecondMaster,
    ];
}

/// Time a passing fault lasts.
const WHILE: Duration = Duration::from_millis(60);

/// From transmit to reply.
const ROUND_TRIP: Duration = Duration::from_micros(60);

/// What the controller tells the wire: cycles since the axes move, homing, stopping.
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

pub(crate) struct Wire {
    segment: Segment,
    clock: VirtualClock,
    phase: Phase,
    fault: Fault,
    progress: Progress,
    random: fastrand::Rng,
    began: Option<Instant>,
    replies: VecDeque<(Instant, Vec<u8>)>,
    frames: u64,
}

impl Wire {
    pub(crate) fn new(
        segment: Segment,
        clock: VirtualClock,
        phase: Phase,
        fault: Fault,
        progress: Progress,
        seed: u64,
    ) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self {
            segment,
            clock,
            phase,
            fault,
            progress,
            random,
            began: None,
            replies: VecDeque::new(),
            frames: 0,
        }
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
        let begins = match self.phase {
            Phase::Scan => true,
            Phase::MailboxTransfer => writes_to_a_mailbox(frame),
            Phase::DcStart => self.segment.sub_devices().iter().any(|it| {
                let mut active = [0];
                it.peek(0x0981, &mut active);
                active[0] & 1 != 0
            }),
            Phase::BringUp => states().any(|state| state == AlState::SafeOp.number()),
            Phase::Op => self.progress.has(Progress::MOVING),
            Phase::Homing => self.progress.has(Progress::HOMING),
            Phase::Shutdown => self.progress.has(Progress::STOPPING),
        };
        if begins {
            self.began = Some(self.clock.now());
            self.begin();
        }
    }

    /// What happens once.
    fn begin(&mut self) {
        let last = self.segment.sub_devices().len() - 1;
        let second = |segment: &mut Segment, change: fn(&mut simulator::SubDevice)| {
            segment.sub_device_mut(1).map(change).unwrap();
        };
        match self.fault {
            Fault::PowerLoss => assert!(self.segment.power_off(last)),
            Fault::CableBreak => assert!(self.segment.disconnect(0, 1)),
            Fault::StuckMailbox => second(&mut self.segment, |it| it.set_mailbox_runs(false)),
            Fault::RefusedState => second(&mut self.segment, |it| {
                it.refuse_state(Some((AlState::Op, AlStatusCode(0x001D))));
            }),
            Fault::SiiGarbage => second(&mut self.segment, |it| it.set_sii(vec![0xFF; 2048])),
            Fault::WatchdogExpiry => second(&mut self.segment, simulator::SubDevice::expire_watchdog),
            Fault::ClockJump => assert!(self.segment.jump_clock(1, 5_000_000)),
            Fault::HostStall => self.clock.advance(Duration::from_millis(50)),
            Fault::SecondMaster => {
                let mut frame = al_control_for_all(AlControl::request(AlState::Init));
                self.segment.process_frame(self.clock.now(), &mut frame);
            }
            _ => {}
        }
    }

    fn put(&mut self, due: Instant, bytes: Vec<u8>) {
        self.replies.push_back((due, bytes));
    }

    /// A reply on its way back.
    fn reply(&mut self, mut bytes: Vec<u8>) {
        let due = self.clock.now() + ROUND_TRIP;
        if !self.is_on() {
            return self.put(due, bytes);
        }
        match self.fault {
            Fault::Delay => self.put(due + Duration::from_millis(5), bytes),
            Fault::Duplicate => {
                self.put(due, bytes.clone());
                self.put(due, bytes);
            }
            Fault::Reorder if self.frames % 2 == 0 => self.put(due + Duration::from_micros(1_100), bytes),
            Fault::Corrupt if self.frames % 5 == 0 => {
                let bit = self.random.usize(14 * 8..bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
                self.put(due, bytes);
            }
            Fault::Truncated => {
                bytes.truncate(self.random.usize(14..bytes.len()));
                self.put(due, bytes);
            }
            Fault::Foreign => {
                for number in 0..5_u8 {
                    let mut foreign = al_control_for_all(AlControl::request(AlState::Op));
                    // Processed by an ESC, from another source; and no EtherCAT at all.
                    foreign[6..12].copy_from_slice(&[0x06, 0, 0, 0, 0, number]);
                    if number % 2 == 0 {
                        foreign[12] = 0x08;
                    }
                    self.put(due, foreign);
                }
                self.put(due, bytes);
            }
            _ => self.put(due, bytes),
        }
    }
}

impl Link for Wire {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.frames += 1;
        self.watch(frame);
        let now = self.clock.now();
        self.segment.advance(now);
        match self.fault {
            Fault::Loss if self.is_on() => return Ok(()),
            Fault::Corrupt if self.is_on() && self.frames % 7 == 0 => return Ok(()),
            Fault::LinkDown if self.is_on() => return Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
            Fault::InterfaceGone if self.began.is_some() => {
                return Err(io::Error::from_raw_os_error(libc::ENXIO));
            }
            _ => {}
        }
        let mut bytes = frame.to_vec();
        if self.segment.process_frame(now, &mut bytes) {
            self.reply(bytes);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        let next = self.replies.iter().enumerate().min_by_key(|(place, (due, _))| (*due, *place));
        let next = next.map(|(place, (due, _))| (place, *due)).filter(|(_, due)| *due <= end);
        if !timeout.is_zero() {
            self.clock.sleep_until(next.map_or(end, |(_, due)| due));
        }
        self.segment.advance(self.clock.now());
        let Some((_, bytes)) = next.and_then(|(place, _)| self.replies.remove(place)) else {
            return Ok(None);
        };
        if self.fault == Fault::Loss && self.is_on() {
            return Ok(None);
        }
        if self.fault == Fault::InterfaceGone && self.began.is_some() {
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
