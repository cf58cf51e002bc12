//! Effect of each tuning: the wake-up latency and the period of a 1 ms cycle with 59 SubDevices,
//! under every combination of real-time tunings, unloaded and under load (humanoid paper, Figures 7
//! and 8).
//!
//! | module | contents |
//! |---|---|
//! | this one | the experiment: columns and loads, one run each |
//! | `column` | combination of tunings |
//! | `cell` | one run: measured only while its load is on |
//! | `table` | the cells as tables, plots and values |

mod cell;
mod table;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use report::Report;
use thiserror::Error;

use crate::load::Load;
use crate::runner::robot_file;
use crate::surroundings::Surroundings;
use crate::{Context, Error};
use cell::Cell;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Combinations, in the order of the tables.
    pub columns: Vec<Column>,
    /// Loads next to the cycle, one table each.
    pub loads: Vec<Background>,
    /// Duration of the measurement in each cell.
    pub duration: Duration,
    /// Period of the cycle.
    pub period: Duration,
    /// Robot file; `None` for the humanoid of 59 SubDevices, simulated.
    pub robot: Option<PathBuf>,
    /// CPU of the cycle in every column; `None` for the machine's last with C, and any without it.
    pub cpu: Option<usize>,
    /// Additional options of `onbeat run`, for every column.
    pub options: Vec<std::ffi::OsString>,
}

/// Load next to the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// No load.
    None,
    /// Load of the humanoid paper, with its parameters.
    Paper,
    /// The same kinds, lighter.
    Light,
}

impl Background {
    /// Name in tables and file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Paper => "paper",
            Self::Light => "light",
        }
    }

    const fn loads(self) -> &'static [Load] {
        match self {
            Self::None => &[],
            Self::Paper => &Load::HUMANOID_PAPER,
            Self::Light => &Load::HUMANOID_LIGHT,
        }
    }
}

impl Default for Tuning {
    /// The paper's columns, unloaded and loaded, 30 s a cell.
    fn default() -> Self {
        Self {
            columns: Column::paper(),
            loads: vec![Background::None, Background::Paper],
            duration: Duration::from_secs(30),
            period: Duration::from_millis(1),
            robot: None,
            cpu: None,
            options: Vec::new(),
        }
    }
}

impl Tuning {
    /// Runs every cell in a separate process, one after the other.
    ///
    /// # Errors
    /// No cell could be measured, or a file cannot be written. A single failed cell is a warning.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let robot = robot_file(context, self.robot.as_deref(), "humanoid-59.toml", HUMANOID)?;
        let surroundings = Surroundings::begin(context).of_robot(Some(&robot));
        let count = self.loads.len() * self.columns.len();
        context.say(format_args!("tuning: {count} cells of {} s each", self.duration.as_secs_f64()));
        context.progress.plan("tuning", vec![self.duration + cell::AROUND; count]);
        let (mut cells, mut failures) = (Vec::new(), Vec::new());
        'all: for &load in &self.loads {
            for &column in &self.columns {
                if context.stopped() {
                    break 'all;
                }
                let cell = Cell { column, load, period: self.period, duration: self.duration };
                let name = format!("{} under load {}", column.title(), load.name());
                if let Some(measured) = cell.measured_before(context)? {
                    context.pass_over_cell(name);
                    cells.push(measured);
                    continue;
                }
                context.begin_cell(name);
                match cell.measure(context, &robot, self.cpu, &self.options) {
                    Ok(Some(measured)) => {
                        context.say(format_args!("tuning: {measured}"));
                        cells.push(measured);
                    }
                    Ok(None) => break 'all,
                    Err(error) => {
                        let sentence = format!("{} under load {}: {error}", column.title(), load.name());
                        context.say(format_args!("tuning: {sentence}"));
                        failures.push(sentence);
                    }
                }
            }
        }
        if cells.is_empty() {
            let why = failures.into_iter().next().unwrap_or_else(|| "stopped before the first".to_owned());
            return Err(Error::other(format_args!("no cell was measured: {why}")));
        }
        let mut report = table::report(self, &cells);
        surroundings.end(&mut report);
        failures.into_iter().for_each(|failure| report.warn(failure));
        Ok(report)
    }
}

/// Robot file of 59 SubDevices, 52 of them drives.
const HUMANOID: &str = include_str!("../../../examples/humanoid-59.toml");

/// Combination of the letters: P max priority, M memory lock, C CPU shield, S spinning sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    on: [bool; LETTERS.len()],
}

impl Column {
    /// The paper's columns in its order.
    #[must_use]
    pub fn paper() -> Vec<Self> {
        ["none", "M", "C", "MC", "P", "PM", "PC", "PMC", "PMCS"]
            .iter()
            .filter_map(|it| it.parse().ok())
            .collect()
    }

    /// Heading in the paper.
    #[must_use]
    pub fn title(self) -> String {
        if self == Self::default() { "No tuning".to_owned() } else { self.letters() }
    }

    /// Text on the command line: the letters, or `none`.
    #[must_use]
    pub fn profile(self) -> String {
        if self == Self::default() { "none".to_owned() } else { self.letters() }
    }

    fn letters(self) -> String {
        LETTERS.iter().zip(self.on).filter_map(|(&letter, on)| on.then_some(letter)).collect()
    }
}

impl FromStr for Column {
    type Err = ColumnError;

    fn from_str(text: &str) -> Result<Self, ColumnError> {
        let error = || ColumnError(text.chars().take(40).collect());
        let mut column = Self::default();
        if text.eq_ignore_ascii_case("none") {
            return Ok(column);
        }
        for letter in text.chars() {
            let place =
                LETTERS.iter().position(|it| *it == letter.to_ascii_uppercase()).ok_or_else(error)?;
            if std::mem::replace(&mut column.on[place], true) {
                return Err(error());
            }
        }
        if text.is_empty() { Err(error()) } else { Ok(column) }
    }
}

/// Text that is no combination.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found \"{0}\", expected \"none\" or some of the letters P, M, C, S, each once, as in \"PM\"")]
pub struct ColumnError(String);

const LETTERS: [char; 4] = ['P', 'M', 'C', 'S'];

#[cfg(test)]
mod tests {
    use super::*;

    // feature(measure): `measure tuning`: the humanoid paper's columns, rows and loads
    #[test]
    fn the_papers_columns() {
        let titles: Vec<String> = Column::paper().into_iter().map(Column::title).collect();
        assert_eq!(titles, ["No tuning", "M", "C", "MC", "P", "PM", "PC", "PMC", "PMCS"]);
    }

    #[test]
    fn letters_in_any_order_and_case_each_once() {
        assert_eq!("smp".parse::<Column>().unwrap().profile(), "PMS");
        assert_eq!("NONE".parse::<Column>().unwrap().profile(), "none");
        for wrong in ["", "X", "PP", "P M", "none,P"] {
            let sentence = wrong.parse::<Column>().unwrap_err().to_string();
            assert!(sentence.starts_with(&format!("found \"{wrong}\", expected")), "{sentence}");
        }
    }
}
