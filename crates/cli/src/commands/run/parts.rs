//! Axes and SubDevices at the end of a run, as a table and as reasons, for people.

use std::fmt::Write as _;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::State;
use ipc::bus::{SubDeviceStatus, SyncStatus};
use serde::Serialize;

/// An axis in the last cycle before the stop.
#[derive(Serialize)]
pub(super) struct AxisOutcome<'a> {
    pub(super) name: &'a str,
    pub(super) mode: &'static str,
    /// "no answer" of a drive that did not: only its past is known.
    pub(super) state: String,
    /// Reason that supervision has the axis.
    pub(super) stop: Option<String>,
    /// Axis that it was stopped with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped_with: Option<&'a str>,
    /// Reason that it is not enabled though its controller wants it to be.
    pub(super) not_enabled: Option<String>,
    /// Error code of a drive in fault, object 0x603F.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_code: Option<u16>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Rad.
    pub(super) position: f64,
    /// Rad/s.
    pub(super) velocity: f64,
    /// N m; none where its drive does not map it.
    pub(super) torque: Option<f64>,
}

/// A SubDevice in the last cycle before the stop.
#[derive(Serialize)]
pub(super) struct SubDeviceOutcome<'a> {
    pub(super) name: &'a str,
    /// Its process data came and went, or it reported that it is not in Op.
    pub(super) answers: bool,
    /// AL state, as it was read last.
    pub(super) state: String,
    /// AL status code (ETG.1000.6, Table 11), read with it.
    pub(super) al_status_code: u16,
    /// Its SYNC0, if it has one, and the cycle's frame against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sync0: Option<SyncStatus>,
    /// The same of SYNC1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sync1: Option<SyncStatus>,
}

/// Most rows of the table, and most names of a reason: JSON has them all.
const MOST_LISTED: usize = 12;

/// Number that is not known.
const UNKNOWN: &str = "-";

/// A row for each axis; of many axes, only axes in another state than Operation enabled. At most
/// 80 columns with names of 16 letters.
pub(super) fn axes_table(axes: &[AxisOutcome<'_>]) -> String {
    let enabled = State::OperationEnabled.to_string();
    let is_listed = |axis: &&AxisOutcome<'_>| axes.len() <= MOST_LISTED || axis.state != enabled;
    let listed: Vec<&AxisOutcome<'_>> = axes.iter().filter(is_listed).take(MOST_LISTED).collect();
    let mut text = String::new();
    if !listed.is_empty() {
        let width = listed.iter().map(|axis| axis.name.chars().count()).max().unwrap_or(0).max(4);
        let states = listed.iter().map(|axis| axis.state.chars().count()).max().unwrap_or(0).max(5);
        let _ = writeln!(
            text,
            "\n{:<width$}  mode  {:<states$}{:>12}{:>11}{:>11}",
            "axis", "state", "position", "velocity", "torque"
        );
        let _ =
            writeln!(text, "{:width$}        {:states$}{:>12}{:>11}{:>11}", "", "", "rad", "rad/s", "N m");
        for AxisOutcome { name, mode, state, position, velocity, torque, .. } in &listed {
            let torque = torque.map_or_else(|| UNKNOWN.to_owned(), |torque| format!("{torque:.4}"));
            let _ = writeln!(
                text,
                "{name:<width$}  {mode:<4}  {state:<states$}{position:>12.4}{velocity:>11.4}{torque:>11}"
            );
        }
    }
    if listed.len() < axes.len() {
        let well = axes.iter().filter(|axis| axis.state == enabled).count();
        let _ = writeln!(text, "\n{well} of {} axes are in {enabled}; --json lists all", axes.len());
    }
    text
}

/// A line for each reason that axes or SubDevices are not as they should be; nothing where all are.
pub(super) fn troubles(axes: &[AxisOutcome<'_>], sub_devices: &[SubDeviceOutcome<'_>]) -> String {
    let mut reasons = Reasons::default();
    for axis in axes {
        let not_enabled = axis.not_enabled.as_ref().map(|why| format!("not enabled: {why}"));
        let why = [axis.error.as_deref(), axis.stop.as_deref(), not_enabled.as_deref()];
        let why: Vec<&str> = why.into_iter().flatten().collect();
        if !why.is_empty() {
            reasons.add(axis.name.to_owned(), why.join("; "));
        }
    }
    let op = AlState::Op.to_string();
    for (position, it) in sub_devices.iter().enumerate() {
        let why = match it.answers {
            false if it.state == SubDeviceStatus::ABSENT => "not on the bus, and need not be".to_owned(),
            false => "no answer".to_owned(),
            true if it.state != op => {
                format!("{}, AL status code {}", it.state, AlStatusCode(it.al_status_code))
            }
            true => continue,
        };
        reasons.add(control::bus::sub_device(position, it.name), why);
    }
    reasons.text()
}

/// Reasons, each with its names, in the order in which they came.
#[derive(Default)]
struct Reasons(Vec<(String, Vec<String>)>);

impl Reasons {
    fn add(&mut self, name: String, why: String) {
        match self.0.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => self.0.push((why, vec![name])),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (number, (why, names)) in self.0.iter().enumerate() {
            let begin = if number == 0 { "\n" } else { "" };
            let named = names[..names.len().min(MOST_LISTED)].join(", ");
            let more = match names.len().saturating_sub(MOST_LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let _ = writeln!(text, "{begin}{named}{more}: {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis<'a>(name: &'a str, state: &str, stop: Option<&str>) -> AxisOutcome<'a> {
        AxisOutcome {
            name,
            mode: "csp",
            state: state.to_owned(),
            stop: stop.map(str::to_owned),
            stopped_with: None,
            not_enabled: None,
            error_code: None,
            error: None,
            position: -12_345.678_9,
            velocity: -1_234.567_8,
            torque: Some(-1_234.567_8),
        }
    }

    // feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
    #[test]
    fn rows_with_names_of_16_letters_fit_80_columns() {
        let names = ["left-wheel-axis1", "x"];
        let axes = [
            axis(names[0], &State::NotReadyToSwitchOn.to_string(), None),
            axis(names[1], &State::FaultReactionActive.to_string(), None),
        ];
        let text = axes_table(&axes);
        assert!(text.lines().all(|line| line.chars().count() <= 80) && text.contains(names[0]), "{text}");
        assert!(text.lines().skip(3).all(|line| line.ends_with(" -1234.5678 -1234.5678")), "{text}");
    }

    #[test]
    fn many_axes_are_listed_only_in_trouble() {
        let names: Vec<String> = (0..40).map(|number| format!("axis-{number}")).collect();
        let mut axes: Vec<_> = names.iter().map(|name| axis(name, "Operation enabled", None)).collect();
        let well = axes_table(&axes);
        assert_eq!(well, "\n40 of 40 axes are in Operation enabled; --json lists all\n");
        axes[7].state = "Fault".to_owned();
        let text = axes_table(&axes);
        assert!(text.contains("\naxis-7 ") && !text.contains("axis-8"), "{text}");
        assert!(text.ends_with("\n39 of 40 axes are in Operation enabled; --json lists all\n"), "{text}");
        axes.iter_mut().for_each(|axis| axis.state = "Fault".to_owned());
        assert_eq!(axes_table(&axes).lines().filter(|line| line.contains("Fault")).count(), 12);
    }

    #[test]
    fn axes_with_the_same_reason_share_a_line() {
        let axes = [
            axis("a", "Fault", Some("outage")),
            axis("b", "Fault", Some("limit")),
            axis("c", "Fault", Some("outage")),
        ];
        assert_eq!(troubles(&axes, &[]), "\na, c: outage\nb: limit\n");
        assert_eq!(troubles(&axes[..0], &[]), "");
    }
}
