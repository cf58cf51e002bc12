//! Messages of a row: which column is in which message.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::process_data::{Column, FORCED, OF_AXIS, STATE_OF_AXIS, is_process_data};
use crate::recording::{Facts, Header};

/// Places of columns in the messages of a row. Places of process data count from its first column.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Columns of whole numbers; process data follows them.
    pub(super) whole: usize,
    /// Columns of process data.
    pub(super) width: usize,
    /// Columns `release_ns` and `start_ns`, if there are both.
    pub(super) times: Option<(usize, usize)>,
    /// Column with the instant of a row, and true if it is on CLOCK_MONOTONIC.
    pub(super) instant: Option<(usize, bool)>,
    /// Place of [`FORCED`].
    pub(super) forced: Option<usize>,
    pub(super) axes: Vec<AxisColumns>,
    pub(super) signals: Vec<SignalColumn>,
}

/// An axis, and the places of its quantities.
#[derive(Debug)]
pub(super) struct AxisColumns {
    pub(super) name: String,
    pub(super) quantities: [Option<usize>; OF_AXIS.len()],
    pub(super) state: [Option<usize>; STATE_OF_AXIS.len()],
}

/// A signal, and the places of its value and of its force.
#[derive(Debug)]
pub(super) struct SignalColumn {
    pub(super) name: String,
    pub(super) value: usize,
    pub(super) force: Option<usize>,
    /// Whole numbers of 64 bits, which a `float64` rounds.
    pub(super) whole: Option<Whole>,
}

/// Whole numbers of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    Unsigned,
    Signed,
}

impl Layout {
    /// Layout of a recording with this header.
    ///
    /// # Errors
    /// Columns that no message has, or too many of them, in words: expected, found.
    pub(super) fn of(header: &Header) -> Result<Self, (&'static str, String)> {
        if header.columns.len() > MOST_COLUMNS {
            return Err(too_many(header.columns.len()));
        }
        if header.what.contains('/') || ["events", "late"].contains(&header.what.as_str()) {
            return Err(("a kind of rows that is no other topic", header.what.clone()));
        }
        let whole = header.columns.iter().position(|it| is_process_data(it));
        let (whole, process_data) = header.columns.split_at(whole.unwrap_or(header.columns.len()));
        if header.columns.iter().collect::<BTreeSet<_>>().len() < header.columns.len() {
            return Err(("columns with different names", header.columns.join(",")));
        }
        if !process_data.is_empty() && (whole.is_empty() || !process_data.iter().any(|it| it == FORCED)) {
            let expected =
                "columns of process data behind at least one other, and among them signals:forced";
            return Err((expected, header.columns.join(",")));
        }
        let place = |name: &str| whole.iter().position(|column| column == name);
        let instant = INSTANTS.iter().find_map(|&(name, monotonic)| Some((place(name)?, monotonic)));
        let mut layout = Self {
            whole: whole.len(),
            width: process_data.len(),
            times: place("release_ns").zip(place("start_ns")),
            instant,
            ..Self::default()
        };
        let mut known = Known { described: described(&header.facts), ..Known::default() };
        for (place, column) in process_data.iter().enumerate() {
            layout.add(place, column, &mut known).ok_or_else(|| (KNOWN, column.clone()))?;
        }
        Ok(layout)
    }

    /// Adds a column of process data; `None` if no message has it.
    fn add<'a>(&mut self, place: usize, column: &'a str, known: &mut Known<'a>) -> Option<()> {
        match Column::of(column)? {
            Column::Signal(name) => {
                let whole = known.described.get(name).and_then(|it| whole(it));
                known.signals.insert(name, self.signals.len());
                let name = name.to_owned();
                self.signals.push(SignalColumn { name, value: place, force: None, whole });
            }
            Column::Force(name) => {
                self.signals[*known.signals.get(name)?].force = Some(place);
            }
            Column::Axis(name, quantity, _) => {
                let at = *known.axes.entry(name).or_insert(self.axes.len());
                if at == self.axes.len() {
                    let (quantities, state) = Default::default();
                    self.axes.push(AxisColumns { name: name.to_owned(), quantities, state });
                }
                let axis = &mut self.axes[at];
                let of_feedback = OF_AXIS.iter().position(|(it, _)| *it == quantity);
                let of_state = STATE_OF_AXIS.iter().position(|it| *it == quantity);
                match (of_feedback, of_state) {
                    (Some(at), _) => axis.quantities[at] = Some(place),
                    (None, at) => axis.state[at?] = Some(place),
                }
            }
            Column::Other if column == FORCED => self.forced = Some(place),
            Column::Other => return None,
        }
        Some(())
    }

    /// Fields of the message of a row: its columns, and numbers derived from them.
    pub(super) fn row_schema(&self, columns: &[String]) -> String {
        let field = |name: &String| {
            let letter = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '_' };
            format!("int64 {}\n", name.chars().map(letter).collect::<String>())
        };
        let mut schema: String = columns[..self.whole].iter().map(field).collect();
        if self.times.is_some() {
            schema += "int64 wakeup_latency_ns\nint64 period_ns\nint64 signals_forced\n";
        } else if self.forced.is_some() {
            schema += "int64 signals_forced\n";
        }
        schema
    }

    /// Numbers in the message of a row.
    pub(super) fn numbers(&self) -> usize {
        self.whole + if self.times.is_some() { 3 } else { usize::from(self.forced.is_some()) }
    }
}

/// Places of signals and axes by their names, while columns are added.
#[derive(Default)]
struct Known<'a> {
    described: BTreeMap<&'a str, &'a Json>,
    signals: BTreeMap<&'a str, usize>,
    axes: BTreeMap<&'a str, usize>,
}

/// Kind of whole numbers of 64 bits that the signal of this description has, if it has them.
fn whole(description: &Json) -> Option<Whole> {
    match description["type"].as_str()? {
        "uint64" => Some(Whole::Unsigned),
        "int64" => Some(Whole::Signed),
        _ => None,
    }
}

/// Descriptions of the signals by their names; the first of a name counts.
pub(super) fn described(facts: &Facts) -> BTreeMap<&str, &Json> {
    let all = facts.get("signals").and_then(Json::as_array).into_iter().flatten();
    all.rev().filter_map(|signal| Some((signal["name"].as_str()?, signal))).collect()
}

/// Error of so many columns: expected, found.
pub(super) fn too_many(found: usize) -> (&'static str, String) {
    ("16384 columns at most (`--signals named` records fewer)", format!("{found} columns"))
}

/// Columns of a recording at most. 59 axes with all signals of their drives need about 3000; a row
/// takes 8 bytes of memory for each.
pub(super) const MOST_COLUMNS: usize = 16_384;

/// Columns with the instant of a row; true: on CLOCK_MONOTONIC.
const INSTANTS: [(&str, bool); 3] = [("release_ns", true), ("arrival_ns", false), ("time_ns", true)];

const KNOWN: &str =
    "process data of a signal, of the force of a signal before it, or of an axis, as axis:x.position";
