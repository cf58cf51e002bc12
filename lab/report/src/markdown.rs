//! A report as a Markdown page.

use std::fmt::Write as _;

use crate::{Report, Section, Table};

impl Report {
    /// The report as Markdown with tables. Plots are named, not drawn: they are in the HTML.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut page = format!("# {}\n\n", inline(&self.title));
        if let Some(source) = &self.source {
            let _ = writeln!(page, "After {}.\n", inline(source));
        }
        let _ = writeln!(page, "* **Measured:** {}", inline(&self.measured));
        let _ = writeln!(page, "* **Good:** {}", inline(&self.good));
        if let Some(found) = &self.found {
            let _ = writeln!(page, "* **The paper found:** {}", inline(found));
        }
        for warning in &self.warnings {
            let _ = writeln!(page, "* **Warning:** {}", inline(warning));
        }
        if !self.conditions.is_empty() {
            page.push_str("\n| condition | value |\n|---|---|\n");
            for fact in &self.conditions {
                let _ = writeln!(page, "| {} | {} |", cell(&fact.name), cell(&fact.value));
            }
        }
        for section in &self.sections {
            page.push('\n');
            match section {
                Section::Text(paragraph) => page.push_str(&format!("{}\n", inline(paragraph))),
                Section::Table(table) => write_table(&mut page, table),
                Section::Boxes(boxes) => {
                    page.push_str(&format!("```text\n{}```\n", boxes.text().replace('`', "'")))
                }
                Section::Histogram(plot)
                | Section::Trace(plot)
                | Section::Tail(plot)
                | Section::Curve(plot)
                | Section::Map(plot) => {
                    page.push_str(&format!("(Plot in `report.html`: {}.)\n", inline(&plot.caption)));
                }
            }
        }
        page
    }
}

fn write_table(page: &mut String, table: &Table) {
    let _ = writeln!(page, "{}\n", inline(&table.caption));
    let width = table.width();
    let heads: Vec<String> = (0..width).map(|column| cell(table.head(column))).collect();
    let _ = writeln!(page, "| {} |", heads.join(" | "));
    let _ = writeln!(page, "|---|{}", "---:|".repeat(width.saturating_sub(1)));
    for row in &table.rows {
        let mut cells = vec![cell(&row.label())];
        cells.extend(
            (1..width).map(|column| row.cells.get(column - 1).map_or_else(String::new, |it| cell(it))),
        );
        let line = cells.join(" | ");
        let _ = writeln!(page, "| {line} |");
    }
}

/// Text on one line.
fn inline(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text in a table cell: a bar would end the cell.
fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}
