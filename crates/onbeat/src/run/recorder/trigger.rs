//! Triggers of a flight recorder.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use record::CycleRecord;
use record::process_data::Column;
use thiserror::Error;
use types::Value;

/// Trigger of a flight recorder: it has a recording kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// An error: of the bus, of a SubDevice, of a drive; an axis that was stopped.
    Fault,
    /// A cycle that overran, that was skipped, or, with a time, that began later than that.
    Late(Option<Duration>),
    /// A request from outside: `onbeat record`.
    Command,
    /// A value that passes a threshold.
    Threshold(Threshold),
}

/// A threshold of a value: passed in the cycle in which the value is beyond it and was not before.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Name of a signal, or `AXIS.QUANTITY` as `x.torque`.
    pub name: String,
    /// True if it is passed upwards.
    pub above: bool,
    /// The threshold, in the unit of the value.
    pub limit: f64,
}

/// Text that is no trigger.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found \"{0}\", expected fault, late, late:TIME as late:200us, command, NAME>VALUE or NAME<VALUE")]
pub struct TriggerError(String);

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let wrong = || TriggerError(text.to_owned());
        match text {
            "fault" => return Ok(Self::Fault),
            "late" => return Ok(Self::Late(None)),
            "command" => return Ok(Self::Command),
            _ => {}
        }
        if let Some(time) = text.strip_prefix("late:") {
            return types::duration::parse(time).map(|time| Self::Late(Some(time))).map_err(|_| wrong());
        }
        let above = text.contains('>');
        let (name, limit) = text.rsplit_once(if above { '>' } else { '<' }).ok_or_else(wrong)?;
        let limit = limit.trim().parse().ok().filter(|limit: &f64| limit.is_finite()).ok_or_else(wrong)?;
        match name.trim() {
            "" => Err(wrong()),
            name => Ok(Self::Threshold(Threshold { name: name.to_owned(), above, limit })),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, if self.above { '>' } else { '<' }, self.limit)
    }
}

impl Threshold {
    /// True if the column of this name has its value.
    fn is_of(&self, column: &str) -> bool {
        match Column::of(column) {
            Some(Column::Signal(name)) => name == self.name,
            Some(Column::Axis(axis, quantity, _)) => {
                self.name.strip_prefix(axis).and_then(|rest| rest.strip_prefix('.')) == Some(quantity)
            }
            _ => false,
        }
    }
}

/// A cause for which a recording is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) cycle: u64,
    /// Word of the trigger, for the name of the file.
    pub(super) kind: &'static str,
    pub(super) sentence: String,
}

/// Looks at the rows of a recording.
pub(super) struct Eye {
    late: Option<Option<Duration>>,
    thresholds: Vec<Watched>,
}

struct Watched {
    threshold: Threshold,
    /// Place of its value in the process data.
    place: usize,
    was_beyond: bool,
}

impl Eye {
    /// For process data in these columns.
    ///
    /// # Errors
    /// A threshold for an unknown name.
    pub(super) fn new(triggers: &[Trigger], columns: &[String]) -> Result<Self, String> {
        let limits = triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Late(limit) => Some(*limit),
            _ => None,
        });
        // Of several times the shortest counts.
        let late = limits.reduce(|one, other| one.into_iter().chain(other).min());
        let thresholds = triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Threshold(threshold) => Some(threshold),
            _ => None,
        });
        let watched = |threshold: &Threshold| {
            let place = columns.iter().position(|column| threshold.is_of(column));
            let place = place.ok_or_else(|| unknown(&threshold.name, columns))?;
            // A value that is beyond it from the beginning has not passed it.
            Ok(Watched { threshold: threshold.clone(), place, was_beyond: true })
        };
        Ok(Self { late, thresholds: thresholds.map(watched).collect::<Result<_, String>>()? })
    }

    /// Causes in this row.
    pub(super) fn look(&mut self, record: &CycleRecord, values: &[Option<Value>]) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut add = |kind, sentence| causes.push(Cause { cycle: record.cycle, kind, sentence });
        if let Some(limit) = self.late {
            let late = Duration::from_nanos(record.wakeup_latency());
            if record.skipped > 0 {
                add("late", format!("{} releases were skipped", record.skipped));
            } else if record.overrun {
                add("late", "the cycle was not over at the next release".to_owned());
            } else if limit.is_some_and(|limit| late > limit) {
                add("late", format!("the cycle began {} us late", late.as_micros()));
            }
        }
        for watched in &mut self.thresholds {
            let Some(value) = values.get(watched.place).copied().flatten().map(Value::number) else {
                continue;
            };
            let threshold = &watched.threshold;
            let beyond = if threshold.above { value > threshold.limit } else { value < threshold.limit };
            if beyond && !std::mem::replace(&mut watched.was_beyond, beyond) {
                add("threshold", format!("{threshold}: it is {value}"));
            }
            watched.was_beyond = beyond;
        }
        causes
    }
}

/// A name that no column has, and similar names.
fn unknown(name: &str, columns: &[String]) -> String {
    let names: Vec<String> = columns
        .iter()
        .filter_map(|column| match Column::of(column)? {
            Column::Signal(name) => Some(name.to_owned()),
            Column::Axis(axis, quantity, _) => Some(format!("{axis}.{quantity}")),
            Column::Force(_) | Column::Other => None,
        })
        .collect();
    let near = types::near::nearest(name, names.iter().map(String::as_str));
    let near = near.map(|near| format!("; nearest: {near}")).unwrap_or_default();
    format!(
        "--trigger {name}: found no such value in the recording, expected a signal that is recorded, or AXIS.QUANTITY as x.torque{near}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_parsed_and_invalid_ones_reported() {
        let threshold = |name: &str, above, limit| {
            Ok(Trigger::Threshold(Threshold { name: name.to_owned(), above, limit }))
        };
        assert_eq!("fault".parse(), Ok(Trigger::Fault));
        assert_eq!("late".parse(), Ok(Trigger::Late(None)));
        assert_eq!("late:200us".parse(), Ok(Trigger::Late(Some(Duration::from_micros(200)))));
        assert_eq!("x.torque > 2.5".parse(), threshold("x.torque", true, 2.5));
        assert_eq!("lamp<-1".parse(), threshold("lamp", false, -1.0));
        for wrong in ["", "fall", "late:", "late:x", "x>", ">1", "x>nan", "x>inf", "x=1"] {
            let error = wrong.parse::<Trigger>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("found \"{wrong}\", expected fault, late")), "{error}");
        }
    }

    fn eye(words: &[&str], columns: &[&str]) -> Result<Eye, String> {
        let triggers: Vec<Trigger> = words.iter().map(|words| words.parse().unwrap()).collect();
        Eye::new(&triggers, &columns.iter().map(|&it| it.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_threshold_is_passed_once_each_time() {
        let mut eye = eye(&["x.torque>2"], &["signals:forced", "axis:x.torque"]).unwrap();
        let mut look = |value: Option<f64>| {
            let record = CycleRecord::begin(1, 0, 0);
            eye.look(&record, &[None, value.map(Value::Real)]).len()
        };
        let passed = [3.0, 1.0, 2.0, 2.1, 9.0, 1.0, 2.5].map(|value| look(Some(value)));
        assert_eq!(passed, [0, 0, 0, 1, 0, 0, 1]);
        assert_eq!((look(None), look(Some(3.0))), (0, 0), "a missing value passes nothing");
    }

    #[test]
    fn a_late_cycle_is_one_beyond_its_time_or_one_that_overran() {
        let causes = |limit: &str, late: u64, skipped, overrun| {
            let record =
                CycleRecord { skipped, overrun, ..CycleRecord::begin(7, 1_000_000, 1_000_000 + late) };
            let mut found = eye(&[limit], &[]).unwrap().look(&record, &[]);
            found.pop().map(|cause| cause.sentence)
        };
        assert_eq!(causes("late:200us", 200_000, 0, false), None);
        assert_eq!(causes("late:200us", 250_000, 0, false).unwrap(), "the cycle began 250 us late");
        assert_eq!(causes("late", 250_000, 0, false), None);
        assert_eq!(causes("late", 0, 2, false).unwrap(), "2 releases were skipped");
        assert!(causes("late", 0, 0, true).is_some());
        assert_eq!(causes("fault", 999_000, 9, true), None);
        let record = CycleRecord::begin(7, 1_000_000, 1_250_000);
        for both in [["late", "late:200us"], ["late:200us", "late:1ms"]] {
            assert_eq!(eye(&both, &[]).unwrap().look(&record, &[]).len(), 1, "{both:?}");
        }
    }

    #[test]
    fn unrecorded_name_is_reported_with_the_nearest() {
        let error = eye(&["x.torqe>2"], &["axis:x.torque", "signal:lamp"]).err().unwrap();
        assert!(
            error.contains("--trigger x.torqe: found no such value")
                && error.ends_with("nearest: x.torque"),
            "{error}"
        );
    }
}
