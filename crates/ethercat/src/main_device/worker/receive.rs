//! The replies to a worker: each moves the current action on.

use core::time::Duration;

use crate::al::AlStatus;
use crate::al_status_code::AlStatusCode;
use crate::register::{DlStatus, dc};
use crate::time::Instant;
use crate::wire::{read_u16, read_u32, read_u64};

use super::{Look, MayHangOn, Outcome, Received, Step, Worker};
use crate::main_device::clock::{ClockSetting, delay_behind};
use crate::main_device::error::{SubDeviceError, SyncMiss};
use crate::main_device::error_counters;
use crate::main_device::mailbox::Progress;
use crate::main_device::plan::{Action, Latched, Reading};
use crate::main_device::request::{MailboxError, MailboxOutcome, MailboxRequest, MailboxService};
use crate::main_device::retry::RetryCounter;
use crate::main_device::sii_reader::{SiiProgress, SiiRequest};
use crate::main_device::state_change::{Ask, StateProgress};
use crate::main_device::sub_device::{EscInformation, SubDevice};
use crate::main_device::topology::LatchedTimes;
use crate::main_device::topology::{Upstream, walk};
use crate::main_device::{bring_up, coe_mapping, latches, limits, receive_times, watchdogs};

impl Worker {
    /// The datagram on its way came back.
    pub(in super::super) fn reply(
        &mut self,
        received: Received,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Outcome {
        let Received { now, working_counter, .. } = received;
        self.awaiting = false;
        if core::mem::take(&mut self.stale) {
            return Outcome::Nothing;
        }
        self.losses = RetryCounter::default();
        if let Some(look) = self.looking.take() {
            return self.look_answered(look, received, data, sub_device);
        }
        if !self.mailbox.is_idle() {
            let progress = self.mailbox.reply(now, data, working_counter);
            return self.mailbox_progress(now, progress, sub_device);
        }
        if self.is_done() {
            return Outcome::Nothing;
        }
        // A latch is everybody's.
        let is_latch = working_counter > 0 && matches!(self.plan.get(self.next), Some(Action::Latch));
        if working_counter != 1 && !is_latch {
            return self.unanswered(now);
        }
        self.unanswered = RetryCounter::default();
        let mut pause = Duration::ZERO;
        if let Action::CheckSync(sync) = self.plan[self.next] {
            let has_64_bits = sub_device.information.features.distributed_clocks_64_bit();
            if let Some(miss) = sync.miss(data, has_64_bits, self.lead()) {
                return self.sync_missed(miss);
            }
            pause = sync.pause(data, has_64_bits, self.limits.period, self.lead());
        }
        match self.advance(now, data, sub_device) {
            Ok(()) => {
                self.not_before = self.not_before.max(now + pause);
                Outcome::Nothing
            }
            Err(error) => Outcome::Failed(error),
        }
    }

    /// SYNC0 was not started in time: it is started again, a few times.
    fn sync_missed(&mut self, last: SyncMiss) -> Outcome {
        self.sync_misses += 1;
        if self.sync_misses >= limits::SYNC_STARTS {
            return Outcome::Failed(SubDeviceError::SyncMissed { tries: self.sync_misses, last });
        }
        self.begin_sync_anew();
        Outcome::SyncMissed(last)
    }

    fn look_answered(
        &mut self,
        look: Look,
        Received { now, bus_time, working_counter }: Received,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Outcome {
        match look {
            Look::Status if working_counter != 1 => return self.unanswered(now),
            Look::Status => {
                self.unanswered = RetryCounter::default();
                self.look_at_status = false;
                note_status(sub_device, data);
                return Outcome::Looked;
            }
            Look::Latch => {
                self.times = None;
                return if working_counter > 0 { Outcome::Latched } else { Outcome::Nothing };
            }
            _ => self.looked(look, sub_device, (working_counter == 1).then_some(data), bus_time),
        }
        Outcome::Nothing
    }

    /// A read of a diagnosis came back, with `data` if it was answered.
    fn looked(
        &mut self,
        look: Look,
        sub_device: &mut SubDevice,
        data: Option<&[u8]>,
        bus_time: Option<u64>,
    ) {
        match look {
            Look::Status | Look::Clear | Look::Latch => {}
            Look::Errors => sub_device.error_counters = data.and_then(error_counters::parse),
            Look::Inputs => {
                let is_whole = sub_device.information.features.distributed_clocks_64_bit();
                let about = bus_time.filter(|_| !is_whole);
                let told = sub_device.latches_told;
                sub_device.latches = data.and_then(|data| latches::parse(data, told, about));
                self.look_at_inputs = false;
                return;
            }
            Look::Times => {
                sub_device.receive_times = data.and_then(receive_times::parse);
                self.times = None;
                return;
            }
            Look::Links => {
                sub_device.links = data.and_then(|data| read_u16(data, 0)).map(DlStatus::from_bits);
            }
        }
        if self.look == Some(look) {
            self.look = look.next();
        }
    }

    fn unanswered(&mut self, now: Instant) -> Outcome {
        self.unanswered.count(now);
        self.not_before = now + limits::PAUSE;
        if self.is_done() {
            self.look_at_status = self.unanswered.tries < limits::ATTEMPTS;
            let newly = self.unanswered.tries == limits::ATTEMPTS;
            return if newly { Outcome::Unreachable } else { Outcome::Nothing };
        }
        if !self.unanswered.exhausts(limits::UNANSWERED) {
            return Outcome::Nothing;
        }
        Outcome::Failed(SubDeviceError::NoAnswer {
            register: self.register(),
            attempts: self.unanswered.tries,
            within: self.unanswered.lasted(),
        })
    }

    /// The current action's datagram was answered with `data`.
    fn advance(
        &mut self,
        now: Instant,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Result<(), SubDeviceError> {
        match &self.plan[self.next] {
            Action::Read(reading) => note(*reading, data, sub_device),
            Action::RequestState(_) => return self.advance_state(now, data, sub_device),
            Action::ReadSii => {
                self.advance_sii(now, data, sub_device);
                return Ok(());
            }
            Action::Latch => self.latches.at = now,
            Action::ReadLatch(whose) => {
                let (time, whose) = (read_u64(data, 0).unwrap_or(0), *whose);
                match whose {
                    Latched::Reference => self.latches.reference = time,
                    Latched::Own => self.latches.own = time,
                    Latched::ReferenceAgain if time == self.latches.reference => {}
                    Latched::ReferenceAgain => {
                        // Another has latched meanwhile: its latch does as well.
                        self.latches.reference = time;
                        self.next -= 1;
                        return Ok(());
                    }
                }
            }
            Action::LearnSii => return self.advance_outline(now, data, sub_device),
            Action::ReadBefore(reading) => {
                let reading = *reading;
                self.take_before(reading, data, sub_device);
            }
            Action::FindPlace => {
                self.look_at_junction(DlStatus::from_bits(read_u16(data, 0).unwrap_or(0)));
                if self.may_hang_on.iter().any(Option::is_some) {
                    return Ok(());
                }
            }
            Action::WriteOffset => {
                let delay = sub_device.clock.map_or(0, |it| it.delay);
                sub_device.clock = Some(ClockSetting { offset: self.latches.offset, delay });
            }
            Action::AssignStationAddress
            | Action::Part(_)
            | Action::Write(..)
            | Action::WriteSyncStart(_)
            | Action::StartSync(_)
            | Action::CheckSync(_)
            | Action::Download(_)
            | Action::Verify { .. }
            | Action::SkipIfMapped { .. }
            | Action::Bound { .. }
            | Action::ReadMapping(_) => {}
        }
        self.action_done();
        Ok(())
    }

    fn advance_state(
        &mut self,
        now: Instant,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Result<(), SubDeviceError> {
        let Step::State(change) = &mut self.step else { return Ok(()) };
        if change.ask(sub_device.al_status) == Ask::Read {
            note_status(sub_device, data);
        }
        match change.answered(now, sub_device.al_status, sub_device.al_status_code)? {
            StateProgress::Continue => {}
            StateProgress::Wait => self.not_before = now + limits::PAUSE,
            StateProgress::Reached => {
                sub_device.al_status_code = AlStatusCode::NO_ERROR;
                self.action_done();
            }
        }
        Ok(())
    }

    fn advance_sii(&mut self, now: Instant, data: &[u8], sub_device: &mut SubDevice) {
        let Step::Sii(reader) = &mut self.step else { return };
        if matches!(reader.request(), SiiRequest::Command(_)) {
            reader.commanded(now);
            return;
        }
        let image = match reader.fetched(now, data) {
            Ok(SiiProgress::Busy) => return self.not_before = now + limits::PAUSE / 4,
            Ok(SiiProgress::More) => return self.stuck_since = None,
            Ok(SiiProgress::Complete) => core::mem::take(reader).finish(),
            Err(error) => Err(error),
        };
        let sound = |image: crate::sii::Image| {
            let header = &image.header;
            bring_up::declared(header.mailbox(), header.mailbox_protocols()).map(|_| image)
        };
        match image.and_then(sound) {
            Ok(image) => {
                sub_device.identity = image.header.identity();
                sub_device.sii = Some(image);
            }
            // The SubDevice counts as present; a configuration that needs its SII reports the
            // problem.
            Err(error) => sub_device.sii_problem = Some(error),
        }
        self.action_done();
    }

    /// Continues with the outline of its SII, and takes the addresses of its mailbox and process
    /// data.
    fn advance_outline(
        &mut self,
        now: Instant,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Result<(), SubDeviceError> {
        let Step::Sii(reader) = &mut self.step else { return Ok(()) };
        if matches!(reader.request(), SiiRequest::Command(_)) {
            reader.commanded(now);
            return Ok(());
        }
        match reader.fetched(now, data)? {
            SiiProgress::Busy => self.not_before = now + limits::PAUSE / 4,
            SiiProgress::More => self.stuck_since = None,
            SiiProgress::Complete => {
                if let Some(outline) = reader.outline() {
                    sub_device.learn(outline)?;
                }
                self.mailbox.open(sub_device.mailbox);
                self.action_done();
            }
        }
        Ok(())
    }

    /// The one before it shows its links, then its latched times: from these its own delay follows.
    fn take_before(&mut self, reading: Reading, data: &[u8], sub_device: &mut SubDevice) {
        let Some(before) = &mut self.before else { return };
        if reading == Reading::DlStatus {
            before.links = DlStatus::from_bits(read_u16(data, 0).unwrap_or(0));
            return;
        }
        let times = core::array::from_fn(|port| read_u32(data, port * 4).unwrap_or(0));
        let own = (sub_device.dl_status, sub_device.latched.ports);
        let delay = delay_behind((before.links, times, before.delay), own);
        sub_device.clock = sub_device.clock.map(|clock| ClockSetting { delay, ..clock });
    }

    /// Takes the links of a possible upstream SubDevice: this one is connected to its first open
    /// port, or further upstream.
    fn look_at_junction(&mut self, links: DlStatus) {
        let Some(junction) = self.may_hang_on.iter_mut().find_map(Option::take) else { return };
        let ports = walk(0).skip_while(|&port| port != usize::from(junction.behind)).skip(1);
        if let Some(port) = ports.into_iter().find(|&port| links.is_open(port)) {
            self.hangs_on = Some(Upstream { position: junction.position, port: port as u8 });
            self.may_hang_on = MayHangOn::default();
        }
    }

    pub(super) fn mailbox_progress(
        &mut self,
        now: Instant,
        progress: Progress,
        sub_device: &mut SubDevice,
    ) -> Outcome {
        match progress {
            Progress::Continue | Progress::Idle => Outcome::Nothing,
            Progress::Wait => {
                self.not_before = now + limits::PAUSE;
                Outcome::Nothing
            }
            Progress::Emergency(emergency) => Outcome::Emergency(emergency),
            Progress::Done(outcome) if self.owns_request() => {
                let done = self.request_done(&outcome, sub_device);
                self.keep(outcome.request.data);
                match done {
                    Ok(done) => {
                        if let Some(skipped) = done {
                            self.next += skipped;
                            self.action_done();
                        }
                        Outcome::Nothing
                    }
                    Err(error) => Outcome::Failed(error),
                }
            }
            Progress::Done(outcome) => Outcome::Mailbox(outcome),
        }
    }

    /// The current action's SDO is done: if the action is, how many behind it are left out.
    fn request_done(
        &mut self,
        outcome: &MailboxOutcome,
        sub_device: &mut SubDevice,
    ) -> Result<Option<usize>, SubDeviceError> {
        let answer = outcome.result.map(|()| &outcome.request.data[..]);
        if let Step::Mapping(reader) = &mut self.step {
            match reader.answered(answer) {
                Ok(None) => return Ok(None),
                Ok(Some(mapping)) => sub_device.mapping = mapping,
                // Reported later, if the bus has to leave PreOp: tools inspect the rest.
                Err(error) => sub_device.mapping_error = Some(error),
            }
            return Ok(Some(0));
        }
        if let (Step::Comparison(comparison), Action::SkipIfMapped { objects, at_once, actions }) =
            (&mut self.step, &self.plan[self.next])
        {
            let is_same = match answer {
                Ok(bytes) => comparison.answered(objects, *at_once, bytes),
                // What it does not show is written.
                Err(MailboxError::Aborted(_) | MailboxError::BufferTooSmall { .. }) => Some(false),
                Err(error) => return Err(sdo_error(&outcome.request, error)),
            };
            return Ok(is_same.map(|is_same| if is_same { *actions } else { 0 }));
        }
        if let (Step::Barrier(access), &Action::Bound { place, barrier, .. }) =
            (&mut self.step, &self.plan[self.next])
        {
            let state = access.answered(&barrier, answer)?;
            if let (Some(state), Some(shown)) = (state, sub_device.barriers.get_mut(usize::from(place))) {
                *shown = state;
            }
            return Ok(state.map(|_| 0));
        }
        outcome.result.map_err(|error| sdo_error(&outcome.request, error))?;
        if let Action::Verify { index, sub_index, expected } = self.plan[self.next] {
            let found = coe_mapping::number(&outcome.request.data);
            if !coe_mapping::is_same(index, expected, found) {
                return Err(SubDeviceError::Mapping { index, sub_index, expected, found });
            }
        }
        Ok(Some(0))
    }

    pub(super) fn action_done(&mut self) {
        self.next += 1;
        self.step = Step::Start;
        self.not_before = Instant::EPOCH;
        if self.next > self.furthest {
            (self.furthest, self.stuck_since) = (self.next, None);
        }
    }
}

fn sdo_error(request: &MailboxRequest, error: MailboxError) -> SubDeviceError {
    match request.service {
        MailboxService::Download { index, sub_index, .. }
        | MailboxService::Upload { index, sub_index, .. } => {
            SubDeviceError::Sdo { index, sub_index, error }
        }
        service => SubDeviceError::Sdo { index: service.index().unwrap_or(0), sub_index: 0, error },
    }
}

fn note(reading: Reading, data: &[u8], sub_device: &mut SubDevice) {
    match reading {
        Reading::Information => {
            sub_device.information = EscInformation::parse(data).unwrap_or_default();
        }
        Reading::DlStatus => {
            sub_device.dl_status = DlStatus::from_bits(read_u16(data, 0).unwrap_or(0));
        }
        Reading::LatchedTimes => {
            sub_device.latched = LatchedTimes {
                ports: core::array::from_fn(|port| read_u32(data, port * 4).unwrap_or(0)),
                processing_unit: read_u64(data, 0x18).unwrap_or(0),
            };
        }
        Reading::ClockDifference => {
            sub_device.clock_difference = read_u32(data, 0).map(dc::difference_nanoseconds);
        }
        Reading::Watchdogs => sub_device.watchdogs = watchdogs::parse(data),
        Reading::SyncManagers(_) => sub_device.feeds_watchdog = watchdogs::is_fed(data),
    }
}

fn note_status(sub_device: &mut SubDevice, data: &[u8]) {
    let before = sub_device.al_status.state;
    sub_device.al_status = AlStatus::from_bits(read_u16(data, 0).unwrap_or(0));
    let code = AlStatusCode(read_u16(data, 4).unwrap_or(0));
    // An acknowledged error stays reported as long as the state does not change.
    let acknowledged = code == AlStatusCode::NO_ERROR && !sub_device.al_status.error;
    if !acknowledged || sub_device.al_status.state != before {
        sub_device.al_status_code = code;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_error_stays_until_the_state_changes() {
        let mut sub_device = SubDevice::new(0);
        let mut shown = |status: u8, code: u8| {
            note_status(&mut sub_device, &[status, 0, 0, 0, code, 0]);
            (sub_device.al_status.error, sub_device.al_status_code.0)
        };
        assert_eq!(shown(0x14, 0x1B), (true, 0x1B), "SafeOp + error");
        assert_eq!(shown(0x04, 0), (false, 0x1B), "acknowledged");
        assert_eq!(shown(0x14, 0x1D), (true, 0x1D), "another one");
        assert_eq!(shown(0x04, 0), (false, 0x1D));
        assert_eq!(shown(0x08, 0), (false, 0), "Op");
    }
}
