//! Both ends and the virtual time between them: frames pass the segment when they are sent, and the
//! replies wait for their time, changed as the script says.

use core::time::Duration;
use std::collections::VecDeque;

use ethercat::al::AlState;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{
    BringUpPhase, Configuration, CycleReport, Event, MailboxRequest, MailboxService, MainDevice,
};
use ethercat::time::Instant;
use ethercat::wire::coe::{ListType, ValueInfo};
use ethercat::wire::frame::{self, DatagramPlace};
use simulator::Segment;
use testkit::allocations;

use crate::freshness::Freshness;
use crate::progress::Progress;
use crate::script::{Deed, Lie, Script, SegmentDeed, write};

/// Longest time for which such a program waits.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A program that sends and receives needs at least this time for a round.
const SHORTEST_WAIT: Duration = Duration::from_micros(50);

/// There and back: longer than an EEPROM takes for a read, so that few frames find it busy.
const ROUND_TRIP: Duration = Duration::from_micros(400);

/// The same where it is waited for long already; none is late by it.
const SLOW_ROUND_TRIP: Duration = Duration::from_millis(15);

/// Cycles then last so many times their period: a late host, still far from any watchdog time.
const SLOW_CYCLES: u32 = 10;

/// Frames on their way at most (`exchange::SLOTS`): so many can be handed out without a reply.
const MOST_FRAMES_AT_ONCE: usize = 64;

/// Replies kept, to come again.
const OLDER: usize = 16;

pub(crate) struct Wire<'a> {
    pub(crate) main_device: MainDevice,
    segment: Segment,
    pub(crate) now: Instant,
    script: Script<'a>,
    /// Replies that are true for now.
    true_replies: u32,
    lost_requests: u8,
    lost_replies: u8,
    lies: Vec<Lie>,
    travelling: Vec<(Instant, Vec<u8>)>,
    /// The newest first.
    older: VecDeque<Vec<u8>>,
    /// The frame being made.
    buffer: Vec<u8>,
    /// Buffers of frames that have arrived, for the next ones.
    spare: Vec<Vec<u8>>,
    /// When the MainDevice had nothing to send, if nothing but time has passed since.
    had_nothing_at: Option<Instant>,
    freshness: Freshness,
    pub(crate) progress: Progress,
    pub(crate) failed: bool,
    /// Requests without an outcome so far, and the time of the oldest.
    pub(crate) requests: usize,
    /// The cable is pulled.
    pub(crate) silent: bool,
    /// Nothing has gone wrong so far.
    pub(crate) calm: bool,
}

impl<'a> Wire<'a> {
    pub(crate) fn new(configuration: Configuration, segment: Segment, script: Script<'a>) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            main_device: MainDevice::new(configuration).expect("a configuration that can be run"),
            segment,
            now,
            script,
            true_replies: 0,
            lost_requests: 0,
            lost_replies: 0,
            lies: Vec::new(),
            travelling: Vec::new(),
            older: VecDeque::new(),
            buffer: vec![0; MAXIMUM_FRAME_LENGTH],
            spare: Vec::new(),
            had_nothing_at: None,
            freshness: Freshness::default(),
            progress: Progress::new(now),
            failed: false,
            requests: 0,
            silent: false,
            calm: true,
        }
    }

    /// True if the input has no deeds left.
    pub(crate) fn script_is_done(&self) -> bool {
        self.script.is_done()
    }

    /// Time in which the host did not stand still.
    pub(crate) fn awake(&self) -> Duration {
        self.progress.awake(self.now)
    }

    /// Sends and receives without cycles until the next thing is due.
    pub(crate) fn pump(&mut self) {
        if self.had_nothing_at != Some(self.now) {
            self.transmit();
        }
        let soonest = self.now + SHORTEST_WAIT;
        let latest = self.now + LONGEST_WAIT;
        let due = self.main_device.poll_timeout().map_or(latest, |due| due.clamp(soonest, latest));
        let arrival = self.travelling.iter().map(|it| it.0).min();
        self.pass_to(arrival.map_or(due, |arrival| arrival.clamp(soonest, due)));
        self.look_at_the_phase();
    }

    /// One cycle of `period`, its replies taken before it ends.
    pub(crate) fn cycle(&mut self, period: Duration) -> CycleReport {
        let now = self.now;
        self.freshness.begin_cycle();
        self.quietly(|main_device| main_device.begin_cycle(now));
        self.transmit();
        let times = if self.progress.is_awaited() { SLOW_CYCLES } else { 1 };
        self.pass_to(now + period * times);
        let now = self.now;
        let report = self.quietly(|main_device| main_device.end_cycle(now));
        self.had_nothing_at = None;
        self.freshness.judge(&self.main_device, &report);
        self.look_at_the_phase();
        report
    }

    pub(crate) fn ask_for(&mut self, state: AlState) {
        self.main_device.request_state(state);
        self.had_nothing_at = None;
        self.look_at_the_phase();
    }

    /// A call that asks for no memory in Op.
    fn quietly<T>(&mut self, call: impl FnOnce(&mut MainDevice) -> T) -> T {
        let in_op = self.main_device.phase() == BringUpPhase::Op;
        let before = allocations::own_calls();
        let done = allocations::watched(|| call(&mut self.main_device));
        let calls = allocations::own_calls() - before;
        assert!(
            !in_op || self.main_device.phase() != BringUpPhase::Op || calls == 0,
            "{calls} calls of the allocator in Op"
        );
        done
    }

    fn look_at_the_phase(&mut self) {
        while let Some(event) = self.quietly(MainDevice::poll_event) {
            match event {
                Event::Failed(_) => self.failed = true,
                Event::Mailbox(_) => self.requests -= 1,
                _ => {}
            }
        }
        self.progress.at(self.main_device.phase(), self.now);
    }

    fn transmit(&mut self) {
        let mut buffer = core::mem::take(&mut self.buffer);
        let now = self.now;
        let mut sent = 0;
        while let Some(length) = self.quietly(|main_device| main_device.poll_transmit(now, &mut buffer)) {
            sent += 1;
            assert!(sent <= MOST_FRAMES_AT_ONCE, "frames without end");
            let frame = &buffer[..length];
            let end = frame::checked_end(frame).expect("a frame of ours is whole");
            self.progress.sent();
            let mut carries_process_data = false;
            let mut offset = Some(frame::DATAGRAMS_OFFSET);
            while let Some(at) = offset {
                let place = frame::place_at(frame, at, end).expect("a frame of ours is whole");
                let (header, data) = (place.header, &frame[place.data()]);
                carries_process_data |= header.command.is_logical();
                self.freshness.requested(&header, data);
                self.progress.requested(&header, data, now);
                offset = header.more_follows.then_some(place.end());
            }
            if carries_process_data {
                self.freshness.sent(&buffer[..length]);
            }
            self.request(&buffer[..length]);
        }
        self.buffer = buffer;
        self.had_nothing_at = Some(now);
    }

    /// A frame passes the segment, and its reply is on its way.
    fn request(&mut self, bytes: &[u8]) {
        if count_down(&mut self.lost_requests) || self.silent {
            return self.calm = false;
        }
        let mut bytes = self.copy(bytes);
        if self.segment.process_frame(self.now, &mut bytes) {
            self.reply(bytes);
        }
    }

    fn reply(&mut self, mut bytes: Vec<u8>) {
        let takes = if self.progress.is_awaited() { SLOW_ROUND_TRIP } else { ROUND_TRIP };
        let mut arrival = self.now + takes;
        if count_down(&mut self.lost_replies) {
            return self.calm = false;
        }
        self.lies.retain(|lie| lie.left > 0);
        if !self.lies.is_empty() {
            self.tell_lies(&mut bytes);
        }
        while self.true_replies == 0 {
            let Some(deed) = self.script.next() else {
                self.true_replies = u32::MAX;
                break;
            };
            self.calm &= matches!(deed, Deed::True(_) | Deed::Truth | Deed::Request { .. });
            let is_about_a_reply = !matches!(
                deed,
                Deed::True(_)
                    | Deed::Truth
                    | Deed::Lie(_)
                    | Deed::Segment(..)
                    | Deed::Request { .. }
                    | Deed::State(_)
            );
            if let Deed::True(replies) = deed {
                self.true_replies = replies;
                continue;
            }
            if let Deed::ReplyLost(more) = deed {
                self.lost_replies = more;
                return;
            }
            self.carry_out(deed, &mut bytes, &mut arrival);
            if is_about_a_reply {
                break;
            }
        }
        self.true_replies = self.true_replies.saturating_sub(1);
        if !self.script.is_done() {
            if self.older.len() == OLDER {
                self.spare.extend(self.older.pop_back());
            }
            let copy = self.copy(&bytes);
            self.older.push_front(copy);
        }
        self.travelling.push((arrival, bytes));
    }

    fn tell_lies(&mut self, bytes: &mut [u8]) {
        let end = frame::checked_end(bytes).unwrap_or(0);
        let mut offset = Some(frame::DATAGRAMS_OFFSET);
        // Lies change no header: the places stay.
        while let Some(Ok(place)) = offset.map(|offset| frame::place_at(bytes, offset, end)) {
            let (data, counter) =
                bytes[place.data().start..place.end()].split_at_mut(place.header.length.into());
            for lie in &mut self.lies {
                lie.tell(place.header.command, place.header.ado(), data, counter);
            }
            offset = place.header.more_follows.then_some(place.end());
        }
    }

    /// A copy in a spare buffer.
    fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        copy
    }

    fn carry_out(&mut self, deed: Deed, bytes: &mut Vec<u8>, arrival: &mut Instant) {
        match deed {
            Deed::RequestLost(more) => self.lost_requests = more + 1,
            Deed::True(_) | Deed::ReplyLost(_) => {}
            Deed::Late(quarters) => {
                *arrival = *arrival + Duration::from_micros(250) * quarters.into();
            }
            Deed::Twice(quarters) => {
                self.travelling
                    .push((*arrival + Duration::from_micros(250) * quarters.into(), bytes.clone()));
            }
            Deed::WorkingCounter { datagram, value } => {
                if let Some(place) = place_of(bytes, datagram) {
                    write(bytes, place.working_counter(), &u16::from(value).to_le_bytes());
                }
            }
            Deed::Bytes { datagram, at, bytes: other } => {
                if let Some(place) = place_of(bytes, datagram) {
                    write(&mut bytes[place.data()], at.into(), &other);
                }
            }
            Deed::Flip { at, by } => {
                let length = bytes.len();
                bytes[usize::from(at) % length] ^= by;
            }
            Deed::Short(length) => bytes.truncate(length.into()),
            Deed::Older(number) => {
                if let Some(older) = self.older.get(usize::from(number) % OLDER) {
                    self.travelling.push((self.now, older.clone()));
                }
            }
            Deed::Foreign(frame) => self.travelling.push((self.now, frame)),
            Deed::Lie(lie) => self.lies.push(lie),
            Deed::Truth => self.lies.clear(),
            Deed::Segment(deed, place) => self.happen(deed, place),
            Deed::Stall(times) => {
                let stall = Duration::from_millis(4) * times.into();
                self.now = self.now + stall;
                self.progress.stalled(stall);
            }
            Deed::Request { kind, position, index } => self.submit(kind, position, index),
            Deed::State(which) => {
                let states = [AlState::Init, AlState::SafeOp, AlState::Op];
                self.main_device.request_state(states[usize::from(which) % states.len()]);
            }
        }
    }

    fn happen(&mut self, deed: SegmentDeed, place: u8) {
        let (position, port) =
            (usize::from(place) % usize::from(crate::bus::COUNT), usize::from(place > 0));
        match deed {
            SegmentDeed::PowerCycle => _ = self.segment.power_cycle(position),
            SegmentDeed::Disconnect => _ = self.segment.disconnect(position, port),
            SegmentDeed::Connect => _ = self.segment.connect(position, port),
            SegmentDeed::Stop | SegmentDeed::Go => {
                let runs = matches!(deed, SegmentDeed::Go);
                self.segment
                    .sub_device_mut(position)
                    .into_iter()
                    .for_each(|it| it.set_application_runs(runs));
            }
        }
    }

    fn submit(&mut self, kind: u8, position: u8, index: u16) {
        let position = u16::from(position) % (crate::bus::COUNT + 1);
        let (sub_index, complete_access) = (index as u8 & 3, kind & 1 != 0);
        // What is there, and what the input says.
        let index = if kind & 4 == 0 { 0x1000 + (index & 0x0F) } else { index };
        let service = match kind & 3 {
            0 => MailboxService::Upload { index, sub_index, complete_access: index & 0x100 != 0 },
            1 => MailboxService::Download { index, sub_index, complete_access },
            2 => MailboxService::ObjectList(ListType::ALL),
            _ => MailboxService::DescribeEntry { index, sub_index, value_info: ValueInfo::default() },
        };
        let data =
            if kind & 3 == 1 { vec![0x11; usize::from(index & 0x3F) * 8] } else { Vec::with_capacity(512) };
        if self.requests < MOST_REQUESTS
            && self.main_device.submit(MailboxRequest { position, service, data }).is_ok()
        {
            self.requests += 1;
        }
    }

    /// Time passes up to `end`; what arrives is handed over, and what that leads to is sent.
    fn pass_to(&mut self, end: Instant) {
        let next = |travelling: &[(Instant, Vec<u8>)]| {
            let due = travelling.iter().enumerate().filter(|(_, it)| it.0 <= end);
            due.min_by_key(|(_, it)| it.0).map(|(place, _)| place)
        };
        while let Some(place) = next(&self.travelling) {
            let (arrival, bytes) = self.travelling.remove(place);
            self.now = self.now.max(arrival);
            self.freshness.received(&bytes);
            let now = self.now;
            self.quietly(|main_device| main_device.handle_frame(now, &bytes));
            self.spare.push(bytes);
            self.transmit();
        }
        self.now = self.now.max(end);
        self.segment.advance(self.now);
    }
}

/// The datagram of this number, counted round and round.
fn place_of(bytes: &[u8], number: u8) -> Option<DatagramPlace> {
    let count = frame::places(bytes).count();
    frame::places(bytes).nth(usize::from(number) % count.max(1))
}

/// True if there was one left.
fn count_down(left: &mut u8) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}

/// Requests under way at once.
const MOST_REQUESTS: usize = 4;
