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
        let head = [
            ("measured", Some(&self.measured)),
            ("good", Some(&self.good)),
            ("paper", self.found.as_ref()),
        ];
        let head = head.into_iter().filter_map(|(label, text)| Some((label.to_owned(), text?)));
        let facts = self.conditions.iter().map(|fact| (fact.name.clone(), &fact.value));
        let warnings = self.warnings.iter().map(|warning| ("warning".to_owned(), warning));
        let lines: Vec<_> = head.chain(facts).chain(warnings).collect();
        let width = lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) + 2;
        for (label, value) in lines {
            let mut label = label.as_str();
            for line in wrapped(value, LINE.saturating_sub(width).max(40)) {
                let _ = writeln!(text, "{label:<width$}{line}");
                label = "";
            }
        }
        let is_plot = |section: &Section| {
            !matches!(section, Section::Text(_) | Section::Table(_) | Section::Boxes(_))
        };
        for (index, section) in self.sections.iter().enumerate() {
            let follows = index.checked_sub(1).is_some_and(|before| is_plot(&self.sections[before]));
            if !(follows && is_plot(section)) {
                text.push('\n');
            }
            match section {
                Section::Text(paragraph) => {
                    for line in wrapped(paragraph, LINE) {
                        let _ = writeln!(text, "{line}");
                    }
                }
                Section::Table(table) => write_table(&mut text, table),
                Section::Boxes(boxes) => text.push_str(&boxes.text()),
                Section::Histogram(plot)
                | Section::Trace(plot)
                | Section::Tail(plot)
                | Section::Curve(plot)
                | Section::Map(plot) => {
                    text.push_str(&format!("plot in the HTML report: {}\n", plot.caption));
                }
            }
        }
        text
    }
}

impl Row {
    /// Name of the row, with a mark on the paper's numbers.
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

    /// Number of columns that the widest row needs.
    pub(crate) fn width(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.cells.len() + 1).max().unwrap_or(0);
        rows.max(self.columns.len())
    }

    /// Head of a column, empty where there is none.
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

/// Wraps a paragraph to lines of at most `width` characters, if its words allow.
fn wrapped(paragraph: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let last = lines.len() - 1;
        let length = lines[last].chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if length > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

/// Characters in a line of prose.
const LINE: usize = 110;

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
                Section::Table(table) => write_markdown_table(&mut page, table),
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

fn write_markdown_table(page: &mut String, table: &Table) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three  four", 8), ["one two", "three", "four"]);
        assert_eq!(wrapped("unbreakable as it is", 5), ["unbreakable", "as it", "is"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
