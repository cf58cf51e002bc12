//! A report for a terminal.

use std::fmt::Write as _;

use crate::{Report, Row, Section, Table};

impl Report {
    /// The report as text of fixed width. Plots are named, not drawn: they are in the HTML.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        if let Some(source) = &self.source {
            let _ = writeln!(text, "after {source}");
        }
        text.push('\n');
        let labels = ["measured", "good"].map(String::from);
        let head = labels.into_iter().zip([&self.measured, &self.good]);
        let facts = self.conditions.iter().map(|fact| (fact.name.clone(), &fact.value));
        let warnings = self.warnings.iter().map(|warning| ("warning".to_owned(), warning));
        let lines: Vec<_> = head.chain(facts).chain(warnings).collect();
        let width = lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) + 2;
        for (label, value) in lines {
            let _ = writeln!(text, "{label:<width$}{value}");
        }
        let is_plot = |section: &Section| !matches!(section, Section::Text(_) | Section::Table(_));
        for (index, section) in self.sections.iter().enumerate() {
            let follows = index.checked_sub(1).is_some_and(|before| is_plot(&self.sections[before]));
            if !(follows && is_plot(section)) {
                text.push('\n');
            }
            match section {
                Section::Text(paragraph) => text.push_str(&format!("{paragraph}\n")),
                Section::Table(table) => write_table(&mut text, table),
                Section::Histogram(plot) | Section::Trace(plot) | Section::Tail(plot) => {
                    text.push_str(&format!("plot in the HTML report: {}\n", plot.caption));
                }
            }
        }
        text
    }
}

impl Row {
    /// The name, and whose numbers these are.
    pub(crate) fn label(&self) -> String {
        if self.from_paper { format!("{} (paper)", self.name) } else { self.name.clone() }
    }
}

impl Table {
    /// The table alone, in columns of fixed width.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        write_table(&mut text, self);
        text
    }

    /// Columns the widest row needs.
    pub(crate) fn width(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.cells.len() + 1).max().unwrap_or(0);
        rows.max(self.columns.len())
    }

    /// The head of a column, empty where there is none.
    pub(crate) fn head(&self, column: usize) -> &str {
        self.columns.get(column).map_or("", String::as_str)
    }
}

fn write_table(text: &mut String, table: &Table) {
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| std::iter::once(row.label()).chain(row.cells.iter().cloned()).collect())
        .collect();
    let widths: Vec<usize> = (0..table.width())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([table.head(column).chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut line = |cells: &dyn Fn(usize) -> String| {
        let mut line = String::new();
        for (column, &width) in widths.iter().enumerate() {
            let cell = cells(column);
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(&|column| if column == 0 { table.caption.clone() } else { String::new() });
    line(&|column| table.head(column).to_owned());
    for row in &rows {
        line(&|column| row.get(column).cloned().unwrap_or_default());
    }
}
