//! Runs of one experiment next to each other: a column for each, ratios to the first, and the
//! conditions in which they differ.

use serde_json::{Value, json};

use crate::boxes::{BoxOf, Boxes};
use crate::{Plot, Report, Row, Section, Series, Table};

/// A run among others.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name in heads of columns.
    pub name: String,
    /// Its report.
    pub report: Report,
}

/// Names for reports from these files: the given names, else the kernels if all differ, else the
/// file names.
#[must_use]
pub fn names(files: &[String], reports: &[Report]) -> Vec<String> {
    let kernel = |report: &Report| condition(report, "kernel").map(str::to_owned);
    let kernels: Option<Vec<String>> = reports.iter().map(kernel).collect();
    kernels.filter(|it| is_distinct(it)).unwrap_or_else(|| files.to_vec())
}

/// Sets the runs side by side.
///
/// # Errors
/// Fewer than two runs, runs of different experiments, or runs that have no table in common.
pub fn compare(runs: &[Run]) -> Result<Report, String> {
    let (first, others) = runs.split_first().ok_or("no run to compare")?;
    if others.is_empty() {
        return Err(format!("{} is the only run: name a second run to compare it with", first.name));
    }
    if let Some(other) = others.iter().find(|it| it.report.experiment != first.report.experiment) {
        return Err(format!(
            "{}: found a run of `{}`, expected one of `{}` as {} is: runs of one experiment can be compared",
            other.name, other.report.experiment, first.report.experiment, first.name
        ));
    }
    let mut report = heading(runs);
    let mut compared = Vec::new();
    let mut tables = 0;
    let mut seen: Vec<String> = Vec::new();
    for section in &first.report.sections {
        match section {
            Section::Text(text) if runs.iter().all(|it| has_text(&it.report, text)) => {
                report.sections.push(section.clone());
            }
            // A paper's numbers are the same in all.
            Section::Table(table) if table.rows.iter().all(|row| row.from_paper) => {
                report.sections.push(section.clone());
            }
            Section::Table(table) => {
                let found: Vec<Option<&Table>> = nth(runs, &table.caption, &mut seen, table_named);
                let together = Together { tables: found };
                if together.tables.iter().flatten().count() > 1 {
                    tables += 1;
                    report.sections.push(Section::Table(together.table(runs, &mut compared)));
                }
            }
            Section::Boxes(boxes) => {
                let found = nth(runs, &boxes.caption, &mut seen, boxes_named);
                report.sections.push(Section::Boxes(all_boxes(runs, &found)));
            }
            Section::Tail(plot) => {
                let found = nth(runs, &plot.caption, &mut seen, tail_named);
                report.sections.push(Section::Tail(all_lines(runs, &found)));
            }
            _ => {}
        }
    }
    if tables == 0 {
        let names: Vec<&str> = runs.iter().map(|it| it.name.as_str()).collect();
        return Err(format!("{}: found no table that two of them have, expected one", names.join(", ")));
    }
    let each = |run: &Run| json!({ "name": run.name, "conditions": run.report.conditions, "warnings": run.report.warnings, "values": run.report.values });
    report.values.insert("runs".into(), runs.iter().map(each).collect());
    report.values.insert("compared".into(), compared.into());
    Ok(report)
}

/// Title, and conditions: first the ones that all share, then a table of the ones in which they
/// differ.
fn heading(runs: &[Run]) -> Report {
    let first = &runs[0].report;
    let mut report = Report {
        experiment: first.experiment.clone(),
        title: format!("{}: {} runs side by side", first.title, runs.len()),
        source: first.source.clone(),
        measured: first.measured.clone(),
        good: first.good.clone(),
        found: first.found.clone(),
        ..Report::default()
    };
    let mut names: Vec<&str> = Vec::new();
    for fact in runs.iter().flat_map(|it| &it.report.conditions) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    let mut differing = Vec::new();
    for name in names {
        let values: Vec<Option<&str>> = runs.iter().map(|it| condition(&it.report, name)).collect();
        match values[0] {
            Some(value) if values.iter().all(|it| *it == values[0]) => report.condition(name, value),
            _ => differing.push(row(name, values.iter().map(|it| it.unwrap_or("-").to_owned()).collect())),
        }
    }
    for warning in runs.iter().flat_map(|it| &it.report.warnings) {
        let with: Vec<&str> = runs
            .iter()
            .filter(|it| it.report.warnings.contains(warning))
            .map(|it| it.name.as_str())
            .collect();
        match with.len() == runs.len() {
            true => report.warn(warning.as_str()),
            false => report.warn(format!("{}: {warning}", with.join(", "))),
        }
    }
    let caption = "Conditions in which they differ: a difference in the numbers may be of any of them";
    match differing.is_empty() {
        true => {
            report.sections.push(Section::Text("The runs differ in no condition that is known.".into()))
        }
        false => report.sections.push(Section::Table(Table {
            caption: caption.into(),
            columns: heads(runs, &[]),
            rows: differing,
        })),
    }
    report
}

/// One table in several runs.
struct Together<'a> {
    tables: Vec<Option<&'a Table>>,
}

impl Together<'_> {
    /// A row for each cell of the tables, with a column for each run; compared values are also
    /// added to `compared`.
    fn table(&self, runs: &[Run], compared: &mut Vec<Value>) -> Table {
        let known = || self.tables.iter().flatten();
        let mut columns: Vec<&str> = Vec::new();
        for head in known().flat_map(|it| it.columns.iter().skip(1)) {
            if !columns.contains(&head.as_str()) {
                columns.push(head);
            }
        }
        let mut rows: Vec<&str> = Vec::new();
        for row in known().flat_map(|it| it.rows.iter().filter(|row| !row.from_paper)) {
            if !rows.contains(&row.name.as_str()) {
                rows.push(&row.name);
            }
        }
        let captions: Vec<&str> = known().map(|it| it.caption.as_str()).collect();
        let caption = match captions.iter().all(|it| *it == captions[0]) {
            true => captions[0].to_owned(),
            false => without_numbers(captions[0]),
        };
        let mut table = Table { caption, columns: heads(runs, &ratio_heads(runs)), rows: Vec::new() };
        for column in &columns {
            for name in &rows {
                let cells: Vec<&str> = self
                    .tables
                    .iter()
                    .map(|it| it.and_then(|it| cell(it, name, column)).unwrap_or("-"))
                    .collect();
                if cells.iter().all(|it| matches!(it.trim(), "" | "-")) {
                    continue;
                }
                let label = match (columns.len(), name.is_empty()) {
                    (1, false) => (*name).to_owned(),
                    (_, true) => (*column).to_owned(),
                    _ => format!("{column}: {name}"),
                };
                let numbers: Vec<Option<f64>> = cells.iter().map(|it| leading_number(it)).collect();
                // The number of a cycle is no quantity.
                let first = numbers[0].filter(|_| !column.ends_with("cycle"));
                let ratios: Vec<Option<f64>> = numbers[1..].iter().map(|it| ratio(*it, first)).collect();
                compared.push(json!({
                    "table": table.caption, "column": column, "row": name, "values": numbers, "ratios": ratios,
                }));
                let ratios =
                    ratios.iter().map(|it| it.map_or_else(|| "-".to_owned(), |it| format!("{it:.3}")));
                table
                    .rows
                    .push(row(&label, cells.iter().map(|it| (*it).to_owned()).chain(ratios).collect()));
            }
        }
        table
    }
}

/// The parts of the runs with this caption, numbers aside; several in one run are matched in order.
fn nth<'a, T>(
    runs: &'a [Run],
    caption: &str,
    seen: &mut Vec<String>,
    named: fn(&'a Section) -> Option<(&'a str, &'a T)>,
) -> Vec<Option<&'a T>> {
    let key = without_numbers(caption);
    let key_of_kind = format!("{} {key}", std::any::type_name::<T>());
    let place = seen.iter().filter(|it| **it == key_of_kind).count();
    seen.push(key_of_kind);
    let of = |run: &'a Run| {
        let all = run.report.sections.iter().filter_map(named);
        all.filter(|(caption, _)| without_numbers(caption) == key).nth(place).map(|it| it.1)
    };
    runs.iter().map(of).collect()
}

fn table_named(section: &Section) -> Option<(&str, &Table)> {
    match section {
        Section::Table(it) if !it.rows.iter().all(|row| row.from_paper) => Some((&it.caption, it)),
        _ => None,
    }
}

fn boxes_named(section: &Section) -> Option<(&str, &Boxes)> {
    if let Section::Boxes(it) = section { Some((&it.caption, it)) } else { None }
}

fn tail_named(section: &Section) -> Option<(&str, &Plot)> {
    if let Section::Tail(it) = section { Some((&it.caption, it)) } else { None }
}

/// All boxes on one scale, grouped by name.
fn all_boxes(runs: &[Run], found: &[Option<&Boxes>]) -> Boxes {
    let all = || runs.iter().zip(found).filter_map(|(run, it)| Some((run, (*it)?)));
    let mut names: Vec<&str> = Vec::new();
    for it in all().flat_map(|(_, it)| &it.boxes) {
        if !names.contains(&it.name.as_str()) {
            names.push(&it.name);
        }
    }
    let mut boxes = Vec::new();
    for name in &names {
        for (run, it) in all() {
            let named = match names.len() {
                1 => run.name.clone(),
                _ => format!("{name}, {}", run.name),
            };
            let of_name = it.boxes.iter().filter(|it| it.name == *name);
            boxes.extend(of_name.map(|it| BoxOf { name: named.clone(), ..it.clone() }));
        }
    }
    let one = found.iter().flatten().next();
    Boxes {
        caption: one.map_or_else(String::new, |it| it.caption.clone()),
        unit: one.map_or_else(String::new, |it| it.unit.clone()),
        boxes,
    }
}

/// The lines of all plots, each with the name of its run.
fn all_lines(runs: &[Run], found: &[Option<&Plot>]) -> Plot {
    let mut all = Plot::default();
    for (run, plot) in runs.iter().zip(found).filter_map(|(run, it)| Some((run, (*it)?))) {
        let named = |it: &Series| {
            let name = match plot.series.len() {
                1 => run.name.clone(),
                _ => format!("{}, {}", it.name, run.name),
            };
            Series { name, points: it.points.clone() }
        };
        let series = all.series.into_iter().chain(plot.series.iter().map(named)).collect();
        all = Plot { series, caption: plot.caption.clone(), x: plot.x.clone(), y: plot.y.clone() };
    }
    all
}

fn condition<'a>(report: &'a Report, name: &str) -> Option<&'a str> {
    report.conditions.iter().find(|it| it.name == name).map(|it| it.value.as_str())
}

fn has_text(report: &Report, text: &str) -> bool {
    report.sections.iter().any(|it| matches!(it, Section::Text(other) if other == text))
}

fn cell<'a>(table: &'a Table, row: &str, column: &str) -> Option<&'a str> {
    let place = table.columns.iter().skip(1).position(|it| it == column)?;
    let row = table.rows.iter().find(|it| it.name == row && !it.from_paper)?;
    row.cells.get(place).map(String::as_str)
}

fn heads(runs: &[Run], more: &[String]) -> Vec<String> {
    let names = runs.iter().map(|it| it.name.clone());
    std::iter::once(String::new()).chain(names).chain(more.iter().cloned()).collect()
}

fn ratio_heads(runs: &[Run]) -> Vec<String> {
    (2..=runs.len()).map(|place| format!("{place} / 1")).collect()
}

fn row(name: &str, cells: Vec<String>) -> Row {
    Row { name: name.to_owned(), cells, from_paper: false }
}

fn is_distinct(names: &[String]) -> bool {
    names.iter().enumerate().all(|(place, name)| !names[..place].contains(name))
}

/// A caption with three dots for each number: counts differ from run to run.
fn without_numbers(caption: &str) -> String {
    let mut text = String::new();
    let mut letters = caption.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_digit() {
            text.push(letter);
            continue;
        }
        while letters.peek().is_some_and(|it| it.is_ascii_digit() || *it == '.') {
            letters.next();
        }
        text.push_str("...");
    }
    text
}

/// Number that a cell begins with, as `9.47 %` does.
fn leading_number(cell: &str) -> Option<f64> {
    cell.split_whitespace().next()?.parse().ok().filter(|it: &f64| it.is_finite())
}

fn ratio(of: Option<f64>, to: Option<f64>) -> Option<f64> {
    of.zip(to).map(|(of, to)| of / to).filter(|it| it.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::Samples;

    fn run(name: &str, kernel: &str, maximum: &str, count: u32) -> Run {
        let mut report = Report { experiment: "servo".into(), title: "Drives".into(), ..Report::default() };
        report.condition("kernel", kernel);
        report.condition("period", "1 ms");
        report.warn("the machine was busy");
        let cells = vec![maximum.to_owned(), "-".to_owned(), "5.0 %".to_owned()];
        let columns = ["", "T_jitter (us)", "none", "share"].map(str::to_owned).to_vec();
        let table =
            Table { caption: format!("In {count} cycles"), columns, rows: vec![row("maximum", cells)] };
        let printed = Row { name: "T".into(), cells: vec!["103.7".into()], from_paper: true };
        let paper = Table {
            caption: "Table 3".into(),
            columns: vec![String::new(), "RT".into()],
            rows: vec![printed],
        };
        let values: Vec<f64> = (0..count).map(f64::from).collect();
        let samples = [Samples { name: "T_period", values: &values }];
        report.sections = vec![
            Section::Text("The same in all.".into()),
            Section::Table(table),
            Section::Table(paper),
            Section::Boxes(Boxes::of("T_period", "us", &samples)),
            Section::Tail(crate::plots::tail("tail", "us", &samples)),
        ];
        Run { name: name.into(), report }
    }

    // feature(measure): `report A B ...`: runs side by side, ratios to the first, conditions in which they differ, box plots on one scale
    #[test]
    fn runs_stand_side_by_side_with_ratios_and_what_differs() {
        let runs =
            [run("a", "6.1", "200.000", 10), run("b", "6.12 RT", "50.000", 20), run("c", "6.12", "-", 10)];
        let report = compare(&runs).unwrap();
        let text = report.text();
        assert!(
            text.contains("period    1 ms\n") && text.contains("warning   the machine was busy\n"),
            "{text}"
        );
        let line = |name: &str| {
            let line =
                text.lines().find(|it| it.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("kernel"), "kernel 6.1 6.12 RT 6.12");
        assert_eq!(line("T_jitter (us): maximum"), "T_jitter (us): maximum 200.000 50.000 - 0.250 -");
        assert!(line("share: maximum").ends_with("1.000 1.000") && !text.contains("none:"), "{text}");
        assert!(text.contains("In ... cycles") && text.contains("T (paper)"), "{text}");
        assert_eq!(text.matches("|--==#==--|").count(), 1, "one scale: {text}");
        assert_eq!(text.matches("median").count(), 3 + 1, "a box each, and the legend: {text}");
        assert_eq!(report.values["compared"][0]["ratios"], json!([0.25, null]));
        assert_eq!(report.values["runs"][1]["name"], "b");
        let lines = report.sections.iter().find_map(|it| tail_named(it).map(|it| it.1.series.len()));
        assert_eq!(lines, Some(3));
        assert!(report.html().contains("<svg") && Report::from_json(&report.json()).is_ok());
    }

    #[test]
    fn runs_that_cannot_be_compared_are_a_sentence() {
        let alone = compare(&[run("a", "6.1", "1", 5)]).unwrap_err();
        assert!(alone.starts_with("a is the only run"), "{alone}");
        let mut other = run("b", "6.1", "1", 5);
        other.report.experiment = "tasks".into();
        let error = compare(&[run("a", "6.1", "1", 5), other.clone()]).unwrap_err();
        assert!(error.starts_with("b: found a run of `tasks`, expected one of `servo` as a is"), "{error}");
        (other.report.experiment, other.report.sections) = ("servo".into(), Vec::new());
        let error = compare(&[run("a", "6.1", "1", 5), other]).unwrap_err();
        assert!(error.contains("found no table that two of them have"), "{error}");
    }

    #[test]
    fn runs_are_named_by_their_kernels_where_these_differ() {
        let files = ["x", "y"].map(str::to_owned);
        let reports = |one, other| [run("", one, "1", 2).report, run("", other, "1", 2).report];
        assert_eq!(names(&files, &reports("6.1", "6.12")), ["6.1", "6.12"]);
        assert_eq!(names(&files, &reports("6.1", "6.1")), ["x", "y"]);
    }

    #[test]
    fn counts_in_captions_are_left_out() {
        assert_eq!(without_numbers("In 60000 cycles of 1.5 ms"), "In ... cycles of ... ms");
    }
}
