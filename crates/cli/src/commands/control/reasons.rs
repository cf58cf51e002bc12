//! Progress of a request while the cycle has not answered, reasons for its refusal, and the cause
//! of a motion that ended on the way.

use std::thread;
use std::time::{Duration, Instant};

use ipc::bus::{Event, Happening};
use ipc::client::Client;
use ipc::description::Description;
use ipc::message::control::{Action, Refusal};
use ipc::message::trajectory::{Abort, Outcome, Rejection, Report};
use ipc::request;
use ipc::state::{Axis, DriveState, State, StopReason};
use ipc::words;

use super::LOOK;
use crate::failure::Failure;
use crate::output;

/// Reports what a request waits for, once a second at most.
pub(super) struct Progress<'a> {
    cycle: &'a Client,
    what: Action,
    begin: Instant,
    /// Last line, and its time.
    said: Option<(Instant, String)>,
}

impl<'a> Progress<'a> {
    pub(super) fn of(cycle: &'a Client, what: Action) -> Self {
        Self { cycle, what, begin: Instant::now(), said: None }
    }

    /// Looks at the state of the cycle, and prints what the request waits for if that is another
    /// thing than before.
    pub(super) fn look(&mut self) {
        let is_due = self.said.as_ref().is_none_or(|(at, _)| at.elapsed() >= BETWEEN);
        if self.begin.elapsed() < FIRST || !is_due {
            return;
        }
        let Some(line) = self.cycle.state().read().ok().and_then(|state| self.line(&state)) else { return };
        if self.said.as_ref().is_none_or(|(_, said)| !is_alike(said, &line)) {
            output::say_beside(line.clone());
            self.said = Some((Instant::now(), line));
        }
    }

    fn line(&self, state: &State) -> Option<String> {
        let description = self.cycle.description();
        match self.what {
            Action::Enable | Action::ResetFaults => {
                let all = 0..description.axes.len();
                let waits = all.filter_map(|axis| hindrance(self.cycle, axis, state)).take(MOST);
                // This request is the remedy.
                let own = words::remedy_by(self.what).unwrap_or_default();
                let waits: Vec<String> = waits.map(|it| it.replace(&own, "")).collect();
                (!waits.is_empty()).then(|| format!("{WAITING}{}", waits.join("; ")))
            }
            Action::Home(axis) => {
                let axis = axis as usize;
                let (name, at) = (&description.axes.get(axis)?.name, state.axes.get(axis)?);
                let is_homing = StopReason::from_code(at.stop).is_some_and(StopReason::lets_home);
                let why = (!is_homing).then(|| hindrance(self.cycle, axis, state)).flatten();
                why.or_else(|| Some(format!("{name}: homing, at {:.4} rad", at.position)))
            }
            _ => None,
        }
    }
}

/// True if two lines differ in no more than the time that an outage lasts.
fn is_alike(one: &str, other: &str) -> bool {
    let waits = [one, other].iter().all(|line| line.starts_with(WAITING));
    let words = |line: &str| line.replace(|it: char| it.is_ascii_digit() || it == '.', "");
    if waits { words(one).replace(" ms", " s") == words(other).replace(" ms", " s") } else { one == other }
}

/// A refusal with its cause at each axis, and what to do.
pub(super) fn refused(cycle: &Client, what: Action, refusal: Refusal) -> Failure {
    // The state of the cycle that refused it follows the refusal.
    thread::sleep(LOOK);
    let Ok(state) = cycle.state().read() else { return Failure::new(refusal) };
    let description = cycle.description();
    if let (Action::Home(axis), Refusal::NotPossible) = (what, refusal) {
        return without_homing(axis, &state, description);
    }
    let why = words::refused(refusal, what, &state, description);
    if refusal == Refusal::NoProcessData {
        return Failure::new(why);
    }
    let not = match what {
        Action::Enable if state.axes.iter().any(is_only_held) => "enabled and held",
        Action::Enable => "not enabled",
        Action::Disable => "not disabled",
        Action::ResetFaults => "not reset",
        Action::Home(_) => "not homed",
        _ => return Failure::new(refusal),
    };
    let axes = match what {
        Action::Home(axis) => axis as usize..axis as usize + 1,
        _ => 0..description.axes.len(),
    };
    let details = axes.filter_map(|axis| match refusal {
        Refusal::Stopping => keeps_load(axis, &state, description),
        _ => detail(cycle, axis, state.axes.get(axis)?),
    });
    let details: Vec<String> = details.take(MOST).collect();
    let details = if details.is_empty() { String::new() } else { format!(". {}", details.join(". ")) };
    Failure::new(format!("{not}: {why}{details}"))
}

/// The axis that keeps a cycle from its end, with the remedy: its drive holds a load.
fn keeps_load(axis: usize, state: &State, description: &Description) -> Option<String> {
    let (name, it) = (&description.axes.get(axis)?.name, state.axes.get(axis)?);
    let is_enabled = it.drive_state == DriveState::OperationEnabled as u8;
    let holds = it.stop == StopReason::BrakeNotClosed as u8 || it.quick_stop != 0;
    let why = words::why_stopped(it, state, description).filter(|_| is_enabled && holds)?;
    Some(format!("{name} stays enabled: {why}; secure the load, then stop `onbeat run` again"))
}

/// True if its drive is enabled, and supervision holds it for a homing or a jog.
fn is_only_held(axis: &Axis) -> bool {
    let enabled = axis.drive_state == DriveState::OperationEnabled as u8;
    enabled && StopReason::from_code(axis.stop).is_some_and(StopReason::is_unreferenced)
}

/// The refusal to home an axis for which the robot file has no homing, with the remedy.
fn without_homing(axis: u32, state: &State, description: &Description) -> Failure {
    let place = axis as usize;
    let described = description.axes.get(place);
    let name = described.map_or("", |it| &it.name);
    let stop = state.axes.get(place).and_then(|it| StopReason::from_code(it.stop));
    if stop.is_some_and(StopReason::is_unreferenced) {
        let remedy = words::unreferenced(described.and_then(|it| it.referencing));
        return Failure::new(format!(
            "axis \"{name}\" is unreferenced, and has no homing in the robot file: {remedy}"
        ));
    }
    let limited = described.filter(|it| it.position_limits.is_some());
    if limited.and_then(|it| it.referencing).is_some_and(|it| it.by_measurement) {
        return Failure::new(format!(
            "axis \"{name}\" needs no homing: its absolute encoder gives its position; correct homing.offset in the \
             robot file if that position is wrong"
        ));
    }
    Failure::new(format!(
        "axis \"{name}\" has no homing in the robot file: `onbeat control set-position {name} VALUE` sets its \
         position, with its drive disabled; an absolute encoder needs none"
    ))
}

/// Names of axes with a drive that ignored a quick stop, for the answer to their reset.
pub(super) fn ignored_quick_stops(cycle: &Client) -> Vec<String> {
    cycle
        .state()
        .read()
        .map_or_else(|_| Vec::new(), |it| words::ignored_quick_stops(&it, cycle.description()))
}

/// Reports the axes that still cannot be moved after a request that was carried out.
///
/// # Errors
/// An axis that the request did not make ready.
pub(super) fn remaining(cycle: &Client, what: Action) -> Result<(), Failure> {
    let begin = Instant::now();
    let (state, waits) = loop {
        let state = cycle.state().read().map_err(Failure::new)?;
        match request::remaining(what, begin.elapsed(), &state, cycle.description()) {
            Some(found) => break (state, found.map_err(Failure::new)?),
            None => thread::sleep(LOOK),
        }
    };
    for why in waits.into_iter().filter_map(|axis| hindrance(cycle, axis, &state)).take(MOST) {
        // The program ends now: a line of a thread that it does not join may be lost.
        output::say_or_give_up(why);
    }
    Ok(())
}

/// Reason for which an axis cannot be moved, with what to do and what is known of the cause.
pub(super) fn hindrance(cycle: &Client, axis: usize, state: &State) -> Option<String> {
    let why = words::hindrance(axis, state, cycle.description())?;
    let detail = detail(cycle, axis, state.axes.get(axis)?);
    Some(detail.map_or_else(|| why.clone(), |detail| format!("{why}. {detail}")))
}

/// Further facts about the cause: the text of an error code, the cable to a lost SubDevice.
fn detail(cycle: &Client, axis: usize, it: &Axis) -> Option<String> {
    let is_faulted = DriveState::from_code(it.drive_state).is_some_and(DriveState::is_faulted);
    if is_faulted && it.error_code != 0 {
        return Some(format!("Error {}", control::bus::error_code(it.error_code)));
    }
    let is_lost = it.stop == StopReason::Outage as u8 && it.stalled == 0;
    is_lost.then(|| lost(cycle, axis, cycle.description())).flatten()
}

/// The last event with the reason that the SubDevice of an axis has no process data.
fn lost(cycle: &Client, axis: usize, description: &Description) -> Option<String> {
    let position = description.axes.get(axis)?.sub_device?;
    let mut bus = cycle.bus().ok()?;
    bus.set_timeout(Some(BETWEEN)).ok()?;
    let events = bus.events(false).ok()?;
    let tells = |event: &Event| match event.what {
        Happening::SubDeviceLost { position: of }
        | Happening::Unreachable { position: of }
        | Happening::StateChanged { position: of, .. }
        | Happening::NotRecovered { position: of, .. } => of == position,
        _ => false,
    };
    events.filter_map(Result::ok).filter(tells).last().map(|event| event.sentence)
}

/// Start of a line about what a request waits for.
const WAITING: &str = "waiting: ";

/// Time without an answer before the first line.
const FIRST: Duration = Duration::from_millis(500);

/// Time between two lines.
const BETWEEN: Duration = Duration::from_secs(1);

/// Axes that are named.
const MOST: usize = 3;

/// A motion under way.
pub(super) struct Motion<'a> {
    /// Its axes.
    pub(super) moved: &'a [usize],
    /// Cycle before its start.
    pub(super) from_cycle: u64,
}

impl Motion<'_> {
    /// Cause, as the end of a sentence; empty where the report says all.
    pub(super) fn cause(&self, report: &Report, cycle: &Client) -> String {
        let abort = match report.outcome {
            Outcome::Aborted(why) => Some(why),
            Outcome::Rejected(Rejection::Held | Rejection::NotEnabled) => None,
            _ => return String::new(),
        };
        let begin = Instant::now();
        loop {
            // The state of the cycle that ended it follows the report, and so do its events.
            thread::sleep(LOOK);
            if let Some(why) = self.hindrance(report, cycle) {
                return format!("; {why}");
            }
            let tolerance = matches!(abort, Some(Abort::PathTolerance | Abort::GoalTolerance));
            if let Some(event) = self.event(cycle).filter(|_| !tolerance) {
                return format!("; {event}; {AGAIN}");
            }
            if tolerance || begin.elapsed() >= EVENTS_WITHIN {
                return abort.map_or_else(String::new, |why| format!("; {}", without_event(why)));
            }
        }
    }

    /// An axis that cannot be moved now, with the remedy.
    fn hindrance(&self, report: &Report, cycle: &Client) -> Option<String> {
        let state = cycle.state().read().ok()?;
        let mut axes = match report.axis {
            Some(axis) => axis as usize..axis as usize + 1,
            None => 0..state.axes.len(),
        };
        axes.find_map(|axis| hindrance(cycle, axis, &state))
    }

    /// The event that ended the motion of axes that can be moved again.
    fn event(&self, cycle: &Client) -> Option<String> {
        let mut bus = cycle.bus().ok()?;
        bus.set_timeout(Some(EVENTS_WITHIN)).ok()?;
        self.first(bus.events(false).ok()?.filter_map(Result::ok))
    }

    /// The first event since the start that ends a motion: the others follow from it.
    fn first(&self, events: impl Iterator<Item = Event>) -> Option<String> {
        events.filter(|it| it.cycle >= self.from_cycle).find(|it| self.ends(&it.what)).map(|it| it.sentence)
    }

    fn ends(&self, what: &Happening) -> bool {
        match what {
            Happening::AxisStopped { axis, .. } | Happening::DriveFault { axis, .. } => {
                self.moved.contains(axis)
            }
            Happening::Repeated { of, .. } => self.ends(of),
            _ => false,
        }
    }
}

/// Remedy where nothing has an event.
const fn without_event(why: Abort) -> &'static str {
    match why {
        Abort::Stopped => {
            "another program stopped or disabled the axes, or switched the controller; give the motion again"
        }
        Abort::Replaced => "stop the other program, or wait for it; then give the motion again",
        Abort::PathTolerance | Abort::GoalTolerance => {
            "check the drive and its load, or give a lower --speed"
        }
        Abort::Fault | Abort::Unreachable => AGAIN,
    }
}

const AGAIN: &str = "the axes are ready again: give the motion again";

/// Time in which the events of the end arrive.
const EVENTS_WITHIN: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use ipc::bus::Severity;

    use super::*;

    #[test]
    fn an_outage_that_lasts_is_reported_once() {
        let outage = |time| format!("{WAITING}x: no process data, for {time}; check its power");
        assert!(is_alike(&outage("680 ms"), &outage("1.1 s")));
        assert!(!is_alike(&outage("1.1 s"), &outage("1.1 s").replace("x:", "y:")));
        assert!(!is_alike("x: homing, at 0.1000 rad", "x: homing, at 0.2000 rad"));
    }

    fn event(cycle: u64, sentence: &str, what: Happening) -> Event {
        let severity = Severity::Error;
        Event { cycle, at_ns: cycle, severity, sentence: sentence.to_owned(), between: None, what }
    }

    fn stopped(axis: usize) -> Happening {
        Happening::AxisStopped {
            axis,
            reason: String::new(),
            stopped_with: None,
            interlock: None,
            stalled: 0,
        }
    }

    // feature(program): `onbeat control move` names what ended it, also where the axes are ready again
    #[test]
    fn an_event_names_what_ended_a_motion_that_was_resumed() {
        let motion = Motion { moved: &[1, 2], from_cycle: 100 };
        let requested = |refused| Happening::Requested {
            request: "reset of faults".to_owned(),
            user: None,
            process: None,
            refused,
        };
        let events = [
            event(99, "an earlier motion", stopped(1)),
            event(100, "another axis", stopped(0)),
            event(100, "a reset that ends no motion", requested(None)),
            event(101, "refused", requested(Some("busy".to_owned()))),
            event(102, "outage", stopped(2)),
            event(103, "what followed", stopped(1)),
        ];
        assert_eq!(motion.first(events.iter().cloned()).as_deref(), Some("outage"));
        assert_eq!(motion.first(events[..4].iter().cloned()), None);
    }
}
