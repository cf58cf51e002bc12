//! Status `signals`: forced signals, and named inputs that are not fresh.

use ipc::description::{Description, SignalDescription};
use ipc::state::{Signal, State};
use types::signal::Direction;

use super::{MOST_VALUES, OP, pair, status};
use crate::messages::sensor::{DiagnosticStatus, Level};

/// Status of the signals; `None` of a robot without.
pub(super) fn signals(state: &State, description: &Description) -> Option<DiagnosticStatus> {
    let all = || description.signals.iter().zip(&state.signals);
    let forced: Vec<_> = all().filter(|(_, signal)| signal.forced).collect();
    let is_old = |(described, signal): &(&SignalDescription, &Signal)| {
        described.named && described.direction == Direction::Input && !signal.fresh
    };
    let old: Vec<_> = all().filter(is_old).collect();
    let mut complaints = Vec::new();
    if !forced.is_empty() {
        complaints.push(format!("forced: {}", names(&forced)));
    }
    // Before Op no input is fresh; the status of the bus reports that.
    if !old.is_empty() && state.bus.phase == OP {
        complaints.push(format!("not fresh: {}", names(&old)));
    }
    let (level, message) = match &complaints[..] {
        [] => (Level::Ok, "none is forced, named inputs are fresh".to_owned()),
        complaints => (Level::Warn, complaints.join("; ")),
    };
    let mut values = vec![pair("forced", forced.len()), pair("named inputs that are not fresh", old.len())];
    for (what, signals) in [("forced", &forced), ("not fresh", &old)] {
        values.extend(signals.iter().map(|(described, signal)| {
            pair(&format!("{what}: {}", described.name), signal.value(described.kind))
        }));
    }
    values.truncate(MOST_VALUES);
    (!description.signals.is_empty()).then(|| status("signals", level, message, values))
}

/// Names of some of them, and the number of the others.
fn names(signals: &[(&SignalDescription, &Signal)]) -> String {
    let some: Vec<&str> =
        signals.iter().take(MOST_NAMED).map(|(described, _)| described.name.as_str()).collect();
    match signals.len().saturating_sub(MOST_NAMED) {
        0 => some.join(", "),
        others => format!("{} and {others} more", some.join(", ")),
    }
}

/// Signals named in a message; the values have more.
const MOST_NAMED: usize = 8;

#[cfg(test)]
mod tests {
    use ipc::state::{Bus, ValueKind};

    use super::*;

    fn robot() -> Description {
        let signal = |name: &str, direction, named| SignalDescription {
            name: name.to_owned(),
            sub_device: "terminal".to_owned(),
            kind: ValueKind::Signed,
            direction,
            named,
            ..SignalDescription::default()
        };
        Description {
            signals: vec![
                signal("door", Direction::Input, true),
                signal("lamp", Direction::Output, true),
                signal("terminal.0x6000:02", Direction::Input, false),
            ],
            ..Description::default()
        }
    }

    fn told(phase: u8, fresh: [bool; 3], forced: [bool; 3]) -> DiagnosticStatus {
        let signal = |at: usize| Signal { word: at as u64 + 4, fresh: fresh[at], forced: forced[at] };
        let state = State {
            signals: (0..3).map(signal).collect(),
            bus: Bus { phase, ..Bus::default() },
            ..State::default()
        };
        signals(&state, &robot()).unwrap()
    }

    // feature(ros2): `/diagnostics` names the signals that are forced, with their values, and named inputs that are not fresh
    #[test]
    fn forced_signals_and_stale_inputs_are_warnings_with_names() {
        let all = [true; 3];
        let good = told(OP, all, [false; 3]);
        assert_eq!((good.level, good.values.len()), (Level::Ok as u8, 2));
        let forced = told(OP, all, [false, true, true]);
        assert_eq!(forced.level, Level::Warn as u8);
        assert_eq!(forced.message, "forced: lamp, terminal.0x6000:02");
        assert!(forced.values.contains(&pair("forced: lamp", 5)), "{:?}", forced.values);
        // Outputs and unnamed inputs are not reported as old.
        let old = told(OP, [false; 3], [false; 3]);
        assert_eq!((old.level, old.message.as_str()), (Level::Warn as u8, "not fresh: door"));
        assert_eq!(
            old.values[1..],
            [pair("named inputs that are not fresh", 1), pair("not fresh: door", 4)]
        );
        let both = told(OP, [false; 3], [true, false, false]);
        assert_eq!(both.message, "forced: door; not fresh: door");
        assert_eq!(told(0, [false; 3], [false; 3]).level, Level::Ok as u8, "the bus is not in Op yet");
        assert_eq!(signals(&State::default(), &Description::default()), None);
    }

    #[test]
    fn many_are_counted() {
        let (described, signal) =
            (SignalDescription { name: "a".into(), ..SignalDescription::default() }, Signal::default());
        assert_eq!(names(&[(&described, &signal); 10]), "a, a, a, a, a, a, a, a and 2 more");
    }
}
