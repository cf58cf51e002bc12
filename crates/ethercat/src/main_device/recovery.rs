//! Recovery: SubDevices that leave Op, lose their power or their cable are brought back while the
//! others stay in Op.
//!
//! ```text
//! in Op --another state--> acknowledged, Op requested --refused--> full plan
//!    \--no answer--> lost --answers its station address--> as above
//!                       \--more answer than are known--> survey, visit --its identity--> addressed, full plan
//! ```
//!
//! One that is absent from the start ([`Presence`]) is lost from the start, and joins the same way.
//!
//! A try that fails is made again after a pause that doubles; after [`TRIES`] the SubDevice is left
//! alone until it vanishes and comes again. Nothing here allocates: plans and tables are made
//! before the first cycle.

mod places;
mod search;
mod survey;
mod visit;

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::al::{AlState, AlStatus};
use crate::sii::Identity;
use crate::time::Instant;

use super::MainDevice;
use super::configuration::Presence;
use super::error::SubDeviceError;
use super::others;
use super::phase::Phase;
use super::presence;
use super::report::Event;
use super::standstill::Silence;
use super::sub_device::SubDevice;

use survey::Survey;
use visit::Visit;

/// Tries to bring one SubDevice back.
pub(super) const TRIES: u32 = 8;

/// Pause after the first failed try; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Time in Op after which earlier tries are forgotten.
const STEADY: Duration = Duration::from_secs(5);

/// Time without the reference clock after which a clock is set again: at 50 ppm it is 50 us off
/// then.
const CLOCK_KEPT: Duration = Duration::from_secs(1);

/// Pause between two surveys that found none to bring back.
const SURVEY_PAUSE: Duration = Duration::from_millis(250);

/// Strangers that are reported, until the number of SubDevices on the bus changes.
const STRANGERS: usize = 16;

/// One SubDevice, with the state of its recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    standing: Standing,
    /// The bus may lack it.
    may_leave: bool,
    tries: u32,
    /// When it came back last.
    back_since: Instant,
    /// When it was lost.
    lost_since: Instant,
    /// It is in Op again, and its group is not yet.
    untold: Option<Back>,
}

/// Ways to have come to Op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    Joined,
    Recovered { anew: bool },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    InOp,
    /// It does not answer to its station address.
    Lost,
    /// Its station address is answered again: its identity is read before anything else.
    Answers,
    /// Its worker carries out the plan of this way.
    Under(Way),
    /// The next try is made then, this way.
    Waiting(Instant, Way),
    /// All tries failed.
    LeftAlone,
}

/// Way back to Op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its error acknowledged, and Op requested.
    Short,
    /// All of its configuration written again.
    Anew,
}

/// A device that is none of the members, as far as is known.
#[derive(Clone, Copy, Debug)]
struct Stranger {
    place: u16,
    identity: Identity,
    is_told: bool,
}

/// All members, and the search for SubDevices that return without an address.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    members: Vec<Member>,
    /// Positions in the order in which frames are processed.
    order: Vec<u16>,
    /// Members that are not in Op.
    away: usize,
    /// Of these, members that are lost and that the bus may lack.
    absent: usize,
    /// Some may return at another place.
    moves: bool,
    /// SubDevices that took part in the last broadcast.
    answering: u16,
    survey: Survey,
    visit: Option<Visit>,
    /// Datagrams on their way that belong to a visit given up since.
    stale_visits: u8,
    /// The first place that a survey may visit: all before it were visited since the last pause.
    visit_from: u16,
    /// Earliest time of the next survey.
    survey_at: Instant,
    strangers: Vec<Stranger>,
    /// Number of times the survey has found each member.
    found: Vec<u8>,
    /// A SubDevice went or came: another reference clock may be due.
    changed: bool,
    pub(super) silence: Silence,
}

impl Recovery {
    /// State for these members, some of which may be absent, and the unexpected SubDevices already
    /// on the bus.
    pub(super) fn new(sub_devices: &[SubDevice], there: &[presence::Stranger]) -> Self {
        let mut order: Vec<u16> = (0..sub_devices.len() as u16).collect();
        order.sort_by_key(|&position| sub_devices[usize::from(position)].processed);
        let mut strangers = Vec::with_capacity(STRANGERS);
        let told =
            |it: &presence::Stranger| Stranger { place: it.place, identity: it.identity, is_told: true };
        strangers.extend(there.iter().take(STRANGERS).map(told));
        let member = |it: &SubDevice| {
            let may_leave = it.mark.presence != Presence::Required;
            let standing = if it.is_absent { Standing::Lost } else { Standing::InOp };
            Member { standing, may_leave, ..Member::default() }
        };
        let absent = sub_devices.iter().filter(|it| it.is_absent).count();
        Self {
            members: sub_devices.iter().map(member).collect(),
            away: absent,
            absent,
            moves: sub_devices.iter().any(|it| it.mark.presence == Presence::HotConnect),
            answering: (sub_devices.len() - absent + there.len()) as u16,
            survey: Survey::with_room(sub_devices.len()),
            strangers,
            found: vec![0; sub_devices.len()],
            order,
            ..Self::default()
        }
    }

    /// Members that are lost and that the bus may lack.
    pub(super) fn absent(&self) -> usize {
        self.absent
    }

    /// True if the SubDevice at `position` does not answer, as far as is known.
    pub(super) fn is_lost(&self, position: u16) -> bool {
        self.members.get(usize::from(position)).is_some_and(|it| it.standing == Standing::Lost)
    }

    /// True if a SubDevice that the bus may lack is on its way to Op.
    pub(super) fn is_joining(&self, sub_devices: &[SubDevice]) -> bool {
        self.away > self.absent && self.one_is_coming(sub_devices)
    }

    #[cold]
    fn one_is_coming(&self, sub_devices: &[SubDevice]) -> bool {
        let is_coming = |(it, member): (&SubDevice, &Member)| {
            it.is_absent && !matches!(member.standing, Standing::Lost)
        };
        sub_devices.iter().zip(&self.members).any(is_coming)
    }

    /// True while all are in Op, or absent and no more are there than that.
    pub(super) fn is_idle(&self) -> bool {
        let nobody_more =
            self.absent == 0 || usize::from(self.answering) + self.absent <= self.members.len();
        self.away == self.absent
            && nobody_more
            && !self.changed
            && self.visit.is_none()
            && !self.survey.is_under_way()
            && self.stale_visits == 0
    }

    /// True if the SubDevice at `position` is in Op, as far as is known.
    pub(super) fn is_in_op(&self, position: u16) -> bool {
        self.members.get(usize::from(position)).is_none_or(|it| it.standing == Standing::InOp)
    }

    /// True if the clock of the SubDevice at `position` is known to run as it was set: in Op, or on
    /// its way there from SafeOp.
    pub(super) fn keeps_its_clock(&self, position: u16) -> bool {
        let member = self.members.get(usize::from(position));
        member.is_none_or(|it| {
            matches!(
                it.standing,
                Standing::InOp | Standing::Under(Way::Short) | Standing::Waiting(_, Way::Short)
            )
        })
    }

    /// True if the SubDevice at `position` is there, and a way to Op has failed.
    pub(super) fn has_failed(&self, position: usize) -> bool {
        let member = self.members.get(position);
        member.is_some_and(|it| it.tries > 0 && !matches!(it.standing, Standing::InOp | Standing::Lost))
    }

    /// True if the SubDevice at `position` is being brought back now.
    pub(super) fn is_under_way(&self, position: u16) -> bool {
        let member = self.members.get(usize::from(position));
        member.is_some_and(|it| matches!(it.standing, Standing::Under(_)))
    }

    /// Time of the next datagram of the recovery, not of a worker.
    pub(super) fn due(&self) -> Option<Instant> {
        let waits = self.members.iter().filter_map(|it| match it.standing {
            Standing::Waiting(until, _) => Some(until),
            Standing::Answers => Some(Instant::EPOCH),
            _ => None,
        });
        let visit = self.visit.as_ref().and_then(Visit::due);
        let survey = self.survey.is_due().then_some(Instant::EPOCH);
        waits.chain(visit).chain(survey).min().filter(|_| !self.is_idle())
    }

    fn set(&mut self, position: u16, standing: Standing) {
        let member = &mut self.members[usize::from(position)];
        let is_away = |standing| usize::from(standing != Standing::InOp);
        let is_absent = |standing, may_leave: bool| usize::from(may_leave && standing == Standing::Lost);
        self.away = self.away + is_away(standing) - is_away(member.standing);
        let may_leave = member.may_leave;
        self.absent = self.absent + is_absent(standing, may_leave) - is_absent(member.standing, may_leave);
        member.standing = standing;
    }

    fn lost(&self) -> usize {
        self.members.iter().filter(|it| it.standing == Standing::Lost).count()
    }
}

impl MainDevice {
    /// True if SubDevices that leave Op are recovered.
    fn recovers(&self) -> bool {
        self.configuration.recovery && self.phase == Phase::Running
    }

    /// Continues the recoveries that are under way.
    pub(super) fn recover(&mut self, now: Instant) {
        if !self.recovers() || self.recovery.is_idle() {
            return;
        }
        for position in 0..self.recovery.members.len() as u16 {
            let place = usize::from(position);
            match self.recovery.members[place].standing {
                Standing::Under(way) if self.workers[place].is_done() => self.recovered(now, position, way),
                Standing::Waiting(until, way) if until <= now => self.begin_way(now, position, way),
                _ => {}
            }
        }
        if core::mem::take(&mut self.recovery.changed) {
            self.elect_reference();
        }
        self.search(now);
    }

    /// The AL status of the SubDevice at `position` was read: it may have left its state, or be
    /// back.
    pub(super) fn note_state(&mut self, now: Instant, position: u16, before: AlStatus) {
        let it = &self.sub_devices[usize::from(position)];
        let (status, code) = (it.al_status, it.al_status_code);
        let in_op = status == AlStatus::in_state(AlState::Op);
        if self.phase != Phase::Running {
            return;
        }
        if status != before && !in_op {
            self.tell(Event::StateChanged { position, status, code });
        }
        // Without an SII it was never brought up.
        let is_known = self.sub_devices[usize::from(position)].sii_problem.is_none();
        if !self.recovers() || !is_known {
            return;
        }
        match self.recovery.members[usize::from(position)].standing {
            Standing::Lost => self.recovery.set(position, Standing::Answers),
            Standing::Waiting(..) if in_op => self.is_back(now, position, false),
            Standing::InOp if !in_op => {
                let way = way_from(status);
                if way == Way::Anew {
                    // Its application may have restarted, with the ESC powered on.
                    self.tell(Event::Reconfiguring { position });
                }
                self.fell(now, position, way);
            }
            _ => {}
        }
    }

    fn fell(&mut self, now: Instant, position: u16, way: Way) {
        let member = &mut self.recovery.members[usize::from(position)];
        if now.since(member.back_since) >= STEADY {
            member.tries = 0;
        }
        match member.tries {
            0 => self.begin_way(now, position, way),
            tries => self.recovery.set(position, Standing::Waiting(now + pause(tries), way)),
        }
    }

    /// The SubDevice at `position` does not answer any more.
    pub(super) fn note_unreachable(&mut self, now: Instant, position: u16) {
        if self.recovery.is_lost(position) {
            return;
        }
        if !self.recovery.silence.has_reported(now, position) {
            self.tell(Event::Unreachable { position });
        }
        if !self.recovers() || self.sub_devices[usize::from(position)].sii_problem.is_some() {
            return;
        }
        let it = &mut self.sub_devices[usize::from(position)];
        if it.mark.presence != Presence::Required {
            it.is_absent = true;
            self.cycle.count(position, false);
        }
        let member = &mut self.recovery.members[usize::from(position)];
        match member.standing {
            // It goes again and again while it is brought back.
            Standing::Under(_) => member.tries = member.tries.saturating_add(1),
            _ => member.tries = 0,
        }
        (member.lost_since, member.untold) = (now, None);
        self.recovery.set(position, Standing::Lost);
        self.recovery.changed = true;
    }

    /// Starts a recovery, after a pause if earlier ones failed. While another MainDevice is on the
    /// wire, which may have taken the SubDevice away, it waits.
    fn begin_way(&mut self, now: Instant, position: u16, way: Way) {
        let standing = self.recovery.members[usize::from(position)].standing;
        let tries = self.recovery.members[usize::from(position)].tries;
        if self.others.are_there(now) {
            return self.recovery.set(position, Standing::Waiting(now + others::GONE, way));
        }
        if tries > 0 && matches!(standing, Standing::Lost | Standing::Answers) {
            return self.recovery.set(position, Standing::Waiting(now + pause(tries), way));
        }
        if way == Way::Anew && !self.may_set_clock(position) {
            return self.recovery.set(position, Standing::Waiting(now + FIRST_PAUSE, way));
        }
        let place = usize::from(position);
        let before = self.recovery.clock_before(position, &self.sub_devices);
        let may_hang_on = self.recovery.may_hang_on(position, &self.sub_devices);
        let (worker, plans) = (&mut self.workers[place], &mut self.plans[place]);
        // A clock that frames pass before the reference clock would receive zero as the time.
        let reference = self.reference.map(|reference| self.sub_devices[usize::from(reference)].processed);
        if reference.is_some_and(|it| self.sub_devices[place].processed < it) {
            self.reference_hands_on = false;
        }
        worker.stands_behind(before, may_hang_on);
        let dropped = match way {
            Way::Short => worker.start(&mut plans.short),
            Way::Anew => {
                let dropped = worker.start(&mut plans.anew);
                worker.mailbox.reset();
                dropped
            }
        };
        self.recovery.set(position, Standing::Under(way));
        if let Some(outcome) = dropped {
            self.tell(Event::Mailbox(outcome));
        }
    }

    /// True if the clock of the SubDevice at `position`, if it has one, may be set now: by the
    /// reference clock or, without one, as the first clock. Two set at a time would use two
    /// latches, and differ.
    fn may_set_clock(&self, position: u16) -> bool {
        let may_have = |it: u16| {
            let it = &self.sub_devices[usize::from(it)];
            it.clock.is_some() || it.is_unseen
        };
        if !self.configuration.distributed_clocks || self.reference.is_some() || !may_have(position) {
            return true;
        }
        let is_set = |(it, member): (u16, &Member)| {
            it != position && member.standing == Standing::Under(Way::Anew) && may_have(it)
        };
        self.reference_lost.is_none() && !(0..).zip(&self.recovery.members).any(is_set)
    }

    /// Takes the plan back from a worker that is done with it, or that failed; by now its mailbox
    /// or clock may be known.
    fn end_way(&mut self, position: u16, way: Way) {
        let place = usize::from(position);
        let plans = &mut self.plans[place];
        let plan = match way {
            Way::Short => &mut plans.short,
            Way::Anew => &mut plans.anew,
        };
        self.workers[place].end(plan);
        self.poll_all();
    }

    fn recovered(&mut self, now: Instant, position: u16, way: Way) {
        self.end_way(position, way);
        self.is_back(now, position, way == Way::Anew);
    }

    fn is_back(&mut self, now: Instant, position: u16, anew: bool) {
        self.recovery.set(position, Standing::InOp);
        let member = &mut self.recovery.members[usize::from(position)];
        member.back_since = now;
        member.tries = member.tries.saturating_add(1);
        self.recovery.changed = true;
        if anew && self.sub_devices[usize::from(position)].late.is_some() {
            let upstream = self.workers[usize::from(position)].found_place();
            places::take_place(position, upstream, &mut self.sub_devices);
        }
        let it = &mut self.sub_devices[usize::from(position)];
        it.is_absent = false;
        let is_new = core::mem::take(&mut it.is_unseen);
        self.cycle.count(position, true);
        let back = if is_new { Back::Joined } else { Back::Recovered { anew } };
        self.recovery.members[usize::from(position)].untold = Some(back);
        self.tell_who_is_back(position);
    }

    /// Reports that the SubDevice at `position` is in Op, with all of its group, in their order,
    /// once the last of them is.
    fn tell_who_is_back(&mut self, position: u16) {
        let count = self.recovery.members.len() as u16;
        let mut group = (0..count).filter(|&it| self.stand_together(it, position));
        if !group.all(|it| self.recovery.is_in_op(it)) {
            return;
        }
        for it in 0..count {
            if !self.stand_together(it, position) {
                continue;
            }
            match self.recovery.members[usize::from(it)].untold.take() {
                Some(Back::Joined) => self.tell(Event::Joined { position: it }),
                Some(Back::Recovered { anew }) => self.tell(Event::Recovered { position: it, anew }),
                None => {}
            }
        }
    }

    /// True of one SubDevice and itself, and of two of one group.
    fn stand_together(&self, one: u16, other: u16) -> bool {
        let described = self.configuration.sub_devices.as_deref().unwrap_or_default();
        let group = |it: u16| described.get(usize::from(it)).and_then(|it| it.group.as_deref());
        one == other || group(one).is_some() && group(one) == group(other)
    }

    /// A try failed: true if that is a matter of recovery, and the bus stays up.
    pub(super) fn recovery_failed(
        &mut self,
        now: Instant,
        position: u16,
        error: SubDeviceError,
    ) -> Option<SubDeviceError> {
        let standing = self.recovery.members.get(usize::from(position)).map(|it| it.standing);
        let (true, Some(Standing::Under(way))) = (self.recovers(), standing) else { return Some(error) };
        self.end_way(position, way);
        if matches!(error, SubDeviceError::NoAnswer { .. } | SubDeviceError::Lost { .. }) {
            self.note_unreachable(now, position);
            return None;
        }
        self.recovery.changed = true;
        let member = &mut self.recovery.members[usize::from(position)];
        member.tries += 1;
        let again_in = (member.tries < TRIES).then(|| pause(member.tries));
        let standing =
            again_in.map_or(Standing::LeftAlone, |pause| Standing::Waiting(now + pause, Way::Anew));
        self.recovery.set(position, standing);
        self.tell(Event::NotRecovered { position, error, again_in });
        None
    }
}

/// SafeOp and Op keep the configuration; below them, or after another error, all of it is written
/// again.
fn way_from(status: AlStatus) -> Way {
    match status.al_state() {
        Some(AlState::SafeOp | AlState::Op) => Way::Short,
        _ => Way::Anew,
    }
}

/// Pause after this number of failed tries.
fn pause(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
