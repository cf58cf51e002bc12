//! What a measurement found, for people.
//!
//! A [`Report`] is plain data: what was measured, on what, with which doubts, as tables and plots. It is saved as
//! JSON and shown as text, Markdown or HTML.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | the data, and [`save`] |
//! | `text`, `markdown` | the tables, for a terminal and for a page |
//! | `html`, `picture` | one page with everything in it, its plots as SVG |
//! | [`plots`] | from values to the lines of a plot |
//! | `recorded` | any recording as a report |
//! | [`cycle`] | the beats of a run as tables and plots |
//! | [`numbers`] | numbers as text |
#![forbid(unsafe_code)]

pub mod cycle;
mod html;
mod json;
mod markdown;
pub mod numbers;
mod picture;
pub mod plots;
mod recorded;
mod save;
mod text;

pub use json::NotAReport;
pub use save::{Saved, save};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a measurement found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name on the command line: `tuning`.
    pub experiment: String,
    /// The title.
    pub title: String,
    /// Where the experiment comes from: the paper, its tables and figures.
    pub source: Option<String>,
    /// One line: what is measured.
    pub measured: String,
    /// One line: what is good.
    pub good: String,
    /// The conditions it was made under, in order.
    pub conditions: Vec<Fact>,
    /// What spoils the numbers, each with its remedy.
    pub warnings: Vec<String>,
    /// What was found, in order.
    pub sections: Vec<Section>,
    /// The same numbers for programs, with units in their names, as `maximum_ns`. Each experiment says what it puts
    /// here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

impl Report {
    /// One more condition.
    pub fn condition(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.conditions.push(Fact { name: name.into(), value: value.into() });
    }

    /// One more doubt, with its remedy; the same one is said once.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value, with its unit.
    pub value: String,
}

/// One part of what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// A paragraph.
    Text(String),
    /// Numbers side by side.
    Table(Table),
    /// How often each value came, on a logarithmic scale.
    Histogram(Plot),
    /// Values over time, on a logarithmic scale where they span much.
    Trace(Plot),
    /// Values over time, on an even scale.
    Curve(Plot),
    /// Places on the floor: x and y on the same scale.
    Map(Plot),
    /// The share of values above each value, on logarithmic scales.
    Tail(Plot),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows, with units.
    pub caption: String,
    /// Heads of the columns; the first is over the names of the rows.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What the row is of.
    pub name: String,
    /// One cell for each column but the first.
    pub cells: Vec<String>,
    /// Whether these are the paper's numbers, beside ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_paper: bool,
}

/// One or more lines in one picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub caption: String,
    /// What is along x, with its unit.
    pub x: String,
    /// What is along y, with its unit.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of a plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, x rising but on a map. In a histogram: lower edge of the bin and how many fell in.
    pub points: Vec<(f64, f64)>,
}
