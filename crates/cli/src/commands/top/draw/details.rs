//! Diagnostics of the run in addition to the state: real-time tasks, channels, warnings.
//!
//! It is a JSON document with parts that this view does not prescribe: a list of objects becomes a
//! table, a list of words lines, an object one line. Values of a newer run are shown, too.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};
use serde_json::{Map, Value};

use super::super::picture::Picture;
use super::{bold, faint, first, range, titled};

/// Lines all of it takes.
pub(super) fn rows(picture: &Picture) -> usize {
    lines(picture).len()
}

/// Draws it from the line numbered `scroll` on, below its title.
pub(super) fn render(picture: &Picture, scroll: usize, area: Rect, buffer: &mut Buffer) {
    render_lines("tasks, channels, warnings", lines(picture), scroll, area, buffer);
}

/// Draws lines from the one numbered `scroll` on, below their title.
pub(super) fn render_lines(
    title: &str,
    lines: Vec<Line<'static>>,
    scroll: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let room = usize::from(area.height.saturating_sub(1));
    let from = first(scroll, room, lines.len());
    let title = format!(" {title}{} ", range(from, room, lines.len()));
    let inner = titled(title, area, buffer);
    let shown: Vec<Line<'static>> = lines.into_iter().skip(from).take(room).collect();
    Paragraph::new(shown).render(inner, buffer);
}

fn lines(picture: &Picture) -> Vec<Line<'static>> {
    let Some(diagnostics) = &picture.diagnostics else {
        return vec![Line::styled(" nothing has been reported yet", faint())];
    };
    let Value::Object(parts) = diagnostics else {
        return vec![Line::raw(format!(" {}", word(diagnostics)))];
    };
    let mut parts: Vec<_> =
        parts.iter().filter(|(name, _)| !OF_NO_INTEREST.contains(&name.as_str())).collect();
    parts.sort_by_key(|(name, _)| place(FIRST_PARTS, name));
    parts.into_iter().flat_map(|(name, part)| section(name, part)).collect()
}

/// Rank of a name in a list of names that come first; names not in the list rank last.
fn place(first: &[&str], name: &str) -> usize {
    first.iter().position(|it| *it == name).unwrap_or(first.len())
}

/// Parts not shown: number of the document, process number, and the bus, which has a separate page.
const OF_NO_INTEREST: &[&str] = &["number", "process", "bus_diagnosis"];

/// Names people look for, first: JSON objects have no order of their own.
const FIRST_PARTS: &[&str] = &["tasks", "channels", "ports", "warnings", "watch"];

/// The same for the columns of tables: a narrow terminal cuts the last ones.
const FIRST_COLUMNS: &[&str] = &[
    "name",
    "period us",
    "jobs",
    "response mean us",
    "response maximum us",
    "overruns",
    "disturbances involuntary switches",
    "disturbances minor faults",
    "disturbances major faults",
    "disturbances voluntary switches",
    "actual period minimum us",
    "actual period mean us",
    "actual period maximum us",
    "open",
    "sent",
    "refused",
    "delivered",
    "written",
    "received",
    "dropped",
];

/// Heads shorter than the names.
const SHORT: &[(&str, &str)] = &[
    ("response mean us", "response us"),
    ("response maximum us", "at most"),
    ("disturbances involuntary switches", "preempted"),
    ("disturbances minor faults", "faults"),
    ("disturbances major faults", "major faults"),
    ("disturbances voluntary switches", "waits"),
    ("actual period minimum us", "period min us"),
    ("actual period mean us", "mean us"),
    ("actual period maximum us", "max us"),
    ("response minimum us", "response min us"),
];

fn section(name: &str, part: &Value) -> Vec<Line<'static>> {
    let name = if name == "ports" { "channels".to_owned() } else { name.replace('_', " ") };
    match part {
        Value::Array(items) if items.is_empty() => Vec::new(),
        Value::Array(items) if items.iter().all(Value::is_object) => {
            let rows: Vec<Vec<(String, String)>> =
                items.iter().filter_map(Value::as_object).map(|it| flat("", it)).collect();
            table(&name, &rows)
        }
        Value::Array(items) => items.iter().map(|item| titled_line(&name, word(item))).collect(),
        Value::Object(object) if object.is_empty() => Vec::new(),
        Value::Object(object) => {
            let words: Vec<String> =
                flat("", object).into_iter().map(|(key, value)| format!("{key} {value}")).collect();
            vec![titled_line(&name, words.join("  "))]
        }
        Value::Null => Vec::new(),
        scalar => {
            let (key, value) = one(&name, scalar);
            vec![titled_line(&key, value)]
        }
    }
}

fn titled_line(name: &str, text: String) -> Line<'static> {
    Line::from(vec![Span::styled(format!(" {name}  "), bold()), Span::raw(text)])
}

/// Rows below heads that are as wide as their cells; a row lacks what it lacks.
pub(super) fn table(name: &str, rows: &[Vec<(String, String)>]) -> Vec<Line<'static>> {
    let mut heads: Vec<&str> = Vec::new();
    for (head, _) in rows.iter().flatten() {
        if !heads.contains(&head.as_str()) {
            heads.push(head);
        }
    }
    heads.sort_by_key(|head| place(FIRST_COLUMNS, head));
    let cell = |row: &[(String, String)], head: &str| {
        row.iter().find(|(key, _)| key == head).map_or(String::new(), |(_, value)| value.clone())
    };
    let short =
        |head: &str| SHORT.iter().find(|(name, _)| *name == head).map_or(head, |it| it.1).to_owned();
    let width = |head: &str| {
        let cells = rows.iter().map(|row| cell(row, head).chars().count());
        cells.chain([short(head).chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
    let line = |cells: Vec<String>| {
        let aligned = cells.iter().zip(&widths).enumerate().map(|(place, (cell, &width))| match place {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("   {}", aligned.collect::<Vec<_>>().join("  "))
    };
    let mut lines = vec![Line::styled(format!(" {name}"), bold())];
    lines.push(Line::styled(line(heads.iter().map(|&head| short(head)).collect()), faint()));
    let body = rows.iter().map(|row| line(heads.iter().map(|head| cell(row, head)).collect()));
    lines.extend(body.map(Line::raw));
    lines
}

/// Values of an object by name; a nested value gets both names. Nanoseconds, marked in the name of
/// the value or of the enclosing object, become microseconds.
fn flat(above: &str, object: &Map<String, Value>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (key, value) in object {
        let name = format!("{above} {}", key.replace('_', " "));
        match value {
            Value::Object(inner) => all.extend(flat(&name, inner)),
            value => all.push(one(name.trim_start(), value)),
        }
    }
    all
}

/// A name and its value.
fn one(name: &str, value: &Value) -> (String, String) {
    let words: Vec<&str> = name.split(' ').filter(|&word| word != "ns").collect();
    let short = words.join(" ");
    match value.as_f64() {
        Some(number) if short.len() < name.len() => (format!("{short} us"), format!("{:.1}", number / 1e3)),
        _ => (short, word(value)),
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
