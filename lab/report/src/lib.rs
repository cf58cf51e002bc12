//! Reports of measurements as text, Markdown, JSON and HTML.
//!
//! A [`Report`] is plain data: the measured values as tables and plots, the conditions and the
//! warnings. It is saved as JSON and shown as text, Markdown or HTML.
//!
//! | module | contents |
//! |---|---|
//! | this one | the data, and [`save`] |
//! | `text`, `markdown` | the tables, for a terminal and for a page |
//! | `html`, `picture` | one self-contained page, with its plots as SVG |
//! | [`boxes`], `box_picture` | box plots, their text and their SVG |
//! | [`compare`] | runs side by side |
//! | [`plots`] | from values to the lines of a plot |
//! | `recorded` | any recording as a report |
//! | `process_data` | its signals and axes as tables and plots |
//! | [`cycle`] | the cycles of a run as tables and plots |
//! | [`numbers`] | numbers as text |
#![forbid(unsafe_code)]

pub mod boxes;
pub mod compare;
pub mod cycle;
mod html;
pub mod numbers;
mod picture;
pub mod plots;
mod process_data;
mod recorded;
mod save;
mod text;

pub use save::{NotAReport, Saved, save};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Report of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name on the command line: `tuning`.
    pub experiment: String,
    /// Title.
    pub title: String,
    /// Source of the experiment: the paper, its tables and figures.
    pub source: Option<String>,
    /// Measured quantity, in one line.
    pub measured: String,
    /// Good result, in one line.
    pub good: String,
    /// Result of the paper, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Conditions of the measurement, in order.
    pub conditions: Vec<Fact>,
    /// Conditions that spoil the numbers, each with its remedy.
    pub warnings: Vec<String>,
    /// Results, in order.
    pub sections: Vec<Section>,
    /// The same numbers for programs, with units in their names, as `maximum_ns`. The experiment
    /// defines the keys.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

impl Report {
    /// Adds a condition.
    pub fn condition(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.conditions.push(Fact { name: name.into(), value: value.into() });
    }

    /// Adds a warning, with its remedy; the same one only once.
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
    /// Name of the fact.
    pub name: String,
    /// Value, with its unit.
    pub value: String,
}

/// One part of the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// A paragraph.
    Text(String),
    /// Numbers side by side.
    Table(Table),
    /// Counts of values, on a logarithmic scale.
    Histogram(Plot),
    /// Values over time, on a logarithmic scale where they span a wide range.
    Trace(Plot),
    /// Values over time, on a linear scale.
    Curve(Plot),
    /// Positions on the floor: x and y on the same scale.
    Map(Plot),
    /// Share of values above each value, on logarithmic scales.
    Tail(Plot),
    /// Distributions on one scale, a box each.
    Boxes(boxes::Boxes),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Caption, with units.
    pub caption: String,
    /// Heads of the columns; the first is above the names of the rows.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the row.
    pub name: String,
    /// Cells, one for each column but the first.
    pub cells: Vec<String>,
    /// True if these are the paper's numbers, for comparison.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_paper: bool,
}

/// One or more lines in one diagram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// Caption.
    pub caption: String,
    /// Quantity along x, with its unit.
    pub x: String,
    /// Quantity along y, with its unit.
    pub y: String,
    /// Lines.
    pub series: Vec<Series>,
}

/// A line of a plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, with rising x except on a map. In a histogram: lower edge and count of each bin.
    pub points: Vec<(f64, f64)>,
}
