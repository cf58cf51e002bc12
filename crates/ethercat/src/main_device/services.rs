//! Service frames: everything but process data, in Op at most one a cycle.

use core::time::Duration;

use crate::link::MINIMUM_FRAME_LENGTH;
use crate::time::Instant;

use super::MainDevice;
use super::exchange::{Owner, Purpose};
use super::layout::{AROUND_A_FRAME, BYTE_TIME};
use super::limits;
use super::phase::Phase;
use super::report::{BringUpPhase, Event};
use super::workers::Workers;

impl MainDevice {
    /// Everything but process data: broadcasts, then the workers in turn. Returns the slot of the
    /// frame, as do the functions below.
    pub(super) fn transmit_service(&mut self, now: Instant) -> Option<usize> {
        let searches = self.recovery.is_searching(now);
        let hands_on = self.hands_on_in_services(now);
        let settles = hands_on && self.phase == Phase::SettleClocks;
        let nothing_due =
            self.broadcasts.due().is_none() && !searches && !settles && !self.workers.check_due(now);
        if nothing_due || (self.cycle.running && self.cycle.sending.services == 0) {
            return None;
        }
        let reference = self.reference_clock(now);
        let limit = self.room();
        let keeps_source = self.exchange.takes_unchanged_source;
        let mut outgoing = self.exchange.open(Purpose::Service)?;
        outgoing.limit = limit;
        // Without it, a frame that no SubDevice takes part in is indistinguishable from a
        // reflection: SubDevices that have lost their addresses with their power would never be
        // found.
        if keeps_source {
            outgoing.prove_passage();
        }
        if let (false, Some(broadcast)) =
            (self.broadcasts.awaiting, self.broadcasts.list.get(self.broadcasts.next))
        {
            self.broadcasts.awaiting = broadcast.emit(&mut outgoing);
        }
        if let Some(reference) = self.reference.filter(|_| hands_on) {
            let it = &self.sub_devices[usize::from(reference)];
            let reference = (it.station_address, it.system_time_length());
            Self::hand_on(&mut self.settling, reference, (now, self.phase), &mut outgoing);
        }
        if searches {
            self.recovery.emit(now, &mut outgoing);
        }
        let (count, first) = (self.workers.len(), self.next_worker);
        let mut first_without_room = None;
        // All in turn: from the first one on, then the ones before it.
        for (start, end) in [(first.min(count), count), (0, first.min(count))] {
            let mut place = start;
            while let Some(position) = self.workers.due_between(place, end, now) {
                place = position + 1;
                if outgoing.has_hardly_room() {
                    first_without_room.get_or_insert(position);
                    break;
                }
                let worker = &mut self.workers[position];
                let is_refused = !worker.emit(now, &self.sub_devices[position], reference, &mut outgoing);
                if is_refused && outgoing.is_full {
                    first_without_room.get_or_insert(position);
                }
            }
        }
        self.next_worker = first_without_room.unwrap_or(self.next_worker);
        let slot = outgoing.send(now)?;
        self.cycle.sending.services = self.cycle.sending.services.saturating_sub(1);
        Some(slot)
    }

    /// Bytes of a service frame that fit on the wire before the next cycle's process data; its
    /// first datagram may be longer, and no frame is shorter than the shortest frame. During
    /// bring-up nothing moves yet, and a large bus has hardly any such time.
    fn room(&self) -> usize {
        if !self.cycle.running || self.phase() < BringUpPhase::Op {
            return usize::MAX;
        }
        let in_a_cycle = (self.configuration.period * 7 / 8).as_nanos() / BYTE_TIME.as_nanos();
        let in_a_cycle = usize::try_from(in_a_cycle).unwrap_or(usize::MAX);
        in_a_cycle.saturating_sub(self.cycle.sending.bytes_sent + AROUND_A_FRAME).max(MINIMUM_FRAME_LENGTH)
    }

    /// Time after which a service frame is lost: in Op as configured; during bring-up and shutdown
    /// longer if replies take longer.
    pub(super) fn reply_timeout(&self) -> Duration {
        let usual = self.configuration.reply_timeout;
        if self.phase() == BringUpPhase::Op { usual } else { self.exchange.reply_time.time_out(usual) }
    }

    /// Drops service frames after their time-out: their datagrams are due again.
    pub(super) fn expire_services(&mut self, now: Instant) {
        let timeout = self.reply_timeout();
        while let Some(index) = self.exchange.expire(Purpose::Service, now, timeout) {
            let sent = self.exchange.take_datagrams(index);
            for sent in &sent {
                match sent.owner {
                    Owner::Bus => self.broadcast_lost(now),
                    Owner::Worker(position) => {
                        let late = self.exchange.counters.late;
                        let outcome = self.workers[usize::from(position)].lost(now, late);
                        self.handle_outcome(now, position, outcome);
                    }
                    Owner::Survey(_) => self.recovery.survey_lost(),
                    Owner::Visit => self.recovery.visit_lost(),
                    Owner::Settling => self.settling.over(),
                    _ => {}
                }
            }
            self.exchange.put_back(index, sent);
        }
        // Their limits are far longer.
        let is_time = now.since(self.expired_at) >= limits::EXPIRY_PAUSE || now < self.expired_at;
        let count = if is_time { self.workers.len() } else { 0 };
        if is_time {
            self.expired_at = now;
        }
        for position in 0..count {
            if self.workers.watch_progress(position, now) {
                let sub_device = &mut self.sub_devices[position];
                let outcome = self.workers[position].expire(now, sub_device);
                self.handle_outcome(now, position as u16, outcome);
            }
        }
        self.expire_broadcasts(now);
    }

    /// Starts waiting mailbox requests whose SubDevice is free.
    pub(super) fn serve_requests(&mut self, now: Instant) {
        if self.requests.is_empty() {
            return;
        }
        let is_free = |workers: &Workers, position: u16| workers[usize::from(position)].takes_mail();
        let serves = self.phase.serves_mailboxes();
        while let Some(place) = self
            .requests
            .iter()
            .position(|it| !serves || self.is_gone(it.position) || is_free(&self.workers, it.position))
        {
            let Some(request) = self.requests.remove(place) else { return };
            let started = if serves && self.is_gone(request.position) {
                Err(super::MailboxOutcome { request, result: Err(super::MailboxError::Gone) })
            } else if serves {
                self.workers[usize::from(request.position)].mailbox.start(now, request)
            } else {
                let result = Err(super::MailboxError::NotReady);
                Err(super::MailboxOutcome { request, result })
            };
            if let Err(outcome) = started {
                self.tell(Event::Mailbox(outcome));
            }
        }
    }
}

impl MainDevice {
    /// Reads the latch inputs of the SubDevice at `position`, in a service frame, into
    /// [`super::SubDevice::latches`]; the read releases single edges. `None` there until it
    /// answers. False if there is no such SubDevice, it has no clock, or it is being brought up.
    pub fn read_latches(&mut self, position: usize) -> bool {
        let Some(sub_device) = self.sub_devices.get_mut(position) else { return false };
        let has_clock = sub_device.has_clock();
        let is_asked = has_clock
            && self.phase.has_process_data()
            && self.workers.get_mut(position).is_some_and(super::Worker::look_at_inputs);
        // Returned once: if the read fails, the earlier values are not returned for it.
        if let Some(told) = sub_device.latches.take() {
            sub_device.latches_told = Some(told);
        }
        is_asked
    }

    /// True until they have been read, or do not answer.
    #[must_use]
    pub fn reads_latches(&self, position: usize) -> bool {
        self.workers.get(position).is_some_and(super::Worker::looks_at_inputs)
    }
}
