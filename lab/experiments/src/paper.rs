//! Numbers of the five papers, as printed, for comparison with ours.
//!
//! One file a paper, `paper/*.toml`: citation, conditions, and its tables and figures as far as
//! they have numbers.

use report::{Report, Row, Section, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A paper, by the name that our texts have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// A humanoid with 59 drives and sensors.
    Humanoid,
    /// A MainDevice measured by an observer.
    MasterPerformance,
    /// A service robot with drivers that talk to real-time tasks.
    ServiceRobot,
    /// Six servo drives under two kernels.
    Servo,
    /// Controllers on four boards.
    Controllers,
}

/// Contents of a paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// Name in our texts: `servo paper`.
    pub name: String,
    /// Authors, title, place.
    pub citation: String,
    /// Machine and kernels, as pairs of name and value.
    pub conditions: Vec<(String, String)>,
    /// Tables and figures.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// A table or figure of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name in the paper: `Table 3`.
    pub name: String,
    /// Caption, with units.
    pub caption: String,
    /// Conditions of these numbers alone.
    #[serde(default)]
    pub conditions: Vec<(String, String)>,
    /// Remarks of ours, such as another quantity than ours under the same name.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Heads of the columns, without the one of the row names.
    pub columns: Vec<String>,
    /// Name of each row, then its cells as printed.
    pub rows: Vec<Vec<String>>,
    /// Values that cannot be right.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// A printed value that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doubt {
    /// Name of the row.
    pub row: String,
    /// Head of the column.
    pub column: String,
    /// Reason.
    pub why: String,
}

impl Paper {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Humanoid, Self::MasterPerformance, Self::ServiceRobot, Self::Servo, Self::Controllers];

    /// Its contents.
    #[must_use]
    pub fn contents(self) -> Contents {
        let text = match self {
            Self::Humanoid => include_str!("paper/humanoid.toml"),
            Self::MasterPerformance => include_str!("paper/master_performance.toml"),
            Self::ServiceRobot => include_str!("paper/service_robot.toml"),
            Self::Servo => include_str!("paper/servo.toml"),
            Self::Controllers => include_str!("paper/controllers.toml"),
        };
        toml::from_str(text).expect("the tables are part of this program, and a test reads all")
    }

    /// Appends these tables and figures to a report, with the paper's conditions and our remarks,
    /// and to its values.
    pub fn append(self, names: &[&str], report: &mut Report) {
        let contents = self.contents();
        let figures: Vec<&Figure> =
            contents.figures.iter().filter(|it| names.contains(&it.name.as_str())).collect();
        assert_eq!(figures.len(), names.len(), "{names:?} are of the {}", contents.name);
        report.sections.push(Section::Text(contents.introduction()));
        for figure in figures {
            report.sections.push(Section::Table(figure.table()));
            report.sections.extend(figure.notes().map(Section::Text));
            let value = json!({ "paper": contents.name, "figure": figure });
            match report.values.get_mut("paper").and_then(|it| it.as_array_mut()) {
                Some(all) => all.push(value),
                None => {
                    report.values.insert("paper".into(), json!([value]));
                }
            }
        }
    }
}

impl Contents {
    /// The source, and the conditions of all its numbers, as a paragraph.
    fn introduction(&self) -> String {
        format!("For comparison, the {}: {}. {}.", self.name, self.citation, sentence(&self.conditions))
    }
}

impl Figure {
    /// Its numbers as rows that are marked as the paper's; a star is on a value that cannot be
    /// right.
    #[must_use]
    pub fn table(&self) -> Table {
        let row = |row: &Vec<String>| {
            let (name, cells) = row.split_first().expect("a row has a name");
            let cell = |(column, cell): (&String, &String)| {
                let is_doubted = self.doubts.iter().any(|it| it.row == *name && it.column == *column);
                format!("{cell}{}", if is_doubted { " *" } else { "" })
            };
            let cells = self.columns.iter().zip(cells).map(cell).collect();
            Row { name: name.clone(), cells, from_paper: true }
        };
        Table {
            caption: format!("{} of the paper: {}", self.name, self.caption),
            columns: std::iter::once(String::new()).chain(self.columns.iter().cloned()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// Conditions, remarks and doubts, as a paragraph.
    fn notes(&self) -> Option<String> {
        let conditions = (!self.conditions.is_empty()).then(|| format!("{}.", sentence(&self.conditions)));
        let doubts = (!self.doubts.is_empty()).then(|| {
            let doubts = self.doubts.iter().map(|it| format!("{}, {}: {}", it.row, it.column, it.why));
            format!("* as printed, and impossible: {}.", doubts.collect::<Vec<_>>().join("; "))
        });
        let all: Vec<String> =
            conditions.into_iter().chain(self.remarks.iter().cloned()).chain(doubts).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

fn sentence(facts: &[(String, String)]) -> String {
    let facts = facts.iter().map(|(name, value)| format!("{name}: {value}"));
    let text = facts.collect::<Vec<_>>().join("; ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn figures() -> impl Iterator<Item = (Paper, Figure)> {
        Paper::ALL
            .into_iter()
            .flat_map(|paper| paper.contents().figures.into_iter().map(move |it| (paper, it)))
    }

    #[test]
    fn every_row_has_a_cell_for_each_column_and_every_doubt_a_value() {
        for (paper, figure) in figures() {
            for row in &figure.rows {
                assert_eq!(row.len(), figure.columns.len() + 1, "{paper:?} {}: {row:?}", figure.name);
            }
            for doubt in &figure.doubts {
                let is_there = figure.rows.iter().any(|row| row[0] == doubt.row);
                assert!(is_there && figure.columns.contains(&doubt.column), "{paper:?} {doubt:?}");
            }
        }
    }

    /// A printed number, between the least and the greatest that are rounded to it.
    fn bounds(printed: &str) -> Option<(f64, f64)> {
        let printed = printed.split(' ').next()?;
        let value: f64 = printed.parse().ok()?;
        let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let half = 0.5 * 10_f64.powi(-i32::try_from(decimals).ok()?);
        Some((value - half, value + half))
    }

    /// Bounds of minimum, mean, maximum and standard deviation.
    type Four = [(f64, f64); 4];

    /// True if no sample has these four: its variance is at most (maximum - mean)(mean - minimum).
    fn is_impossible([minimum, mean, maximum, deviation]: Four) -> bool {
        let (above, below) = (maximum.1 - mean.0, mean.1 - minimum.0);
        deviation.0 > (above.max(0.0) * below.max(0.0)).sqrt()
    }

    /// Values of one column that belong together: name of the row with the deviation, the column,
    /// and the four.
    fn quadruples(figure: &Figure) -> Vec<(String, String, Four)> {
        const NAMES: [&[&str]; 4] =
            [&["min", "minimum"], &["avg", "mean", "average"], &["max", "maximum"], &["SD"]];
        let find = |cells: &[(String, String)], names: &[&str]| {
            let found = cells.iter().find(|(name, _)| names.contains(&name.as_str()));
            found.and_then(|(_, cell)| bounds(cell))
        };
        let four = |cells: &[(String, String)]| -> Option<Four> {
            let [minimum, mean, maximum, deviation] = NAMES.map(|names| find(cells, names));
            Some([minimum?, mean?, maximum?, deviation?])
        };
        let mut found = Vec::new();
        // Across the columns of a row.
        for row in &figure.rows {
            let cells: Vec<_> = figure.columns.iter().cloned().zip(row[1..].iter().cloned()).collect();
            found.extend(four(&cells).map(|it| (row[0].clone(), "SD".to_owned(), it)));
        }
        // A column's rows, with names like `what: value`, or `what value, unit`.
        let split = |name: &str| {
            let name = name.split(", ").next().unwrap_or(name).replace(": ", " ");
            name.rsplit_once(' ').map(|(what, value)| (what.to_owned(), value.to_owned()))
        };
        for (index, column) in figure.columns.iter().enumerate() {
            let cells: Vec<_> = figure
                .rows
                .iter()
                .filter_map(|row| Some((split(&row[0])?, row[0].clone(), row[index + 1].clone())))
                .collect();
            for ((what, value), name, _) in &cells {
                if value != "SD" {
                    continue;
                }
                let of_it = cells.iter().filter(|((it, _), ..)| it == what);
                let of_it: Vec<_> =
                    of_it.map(|((_, value), _, cell)| (value.clone(), cell.clone())).collect();
                found.extend(four(&of_it).map(|it| (name.clone(), column.clone(), it)));
            }
        }
        found
    }

    #[test]
    fn only_impossible_standard_deviations_are_doubted() {
        let mut judged = 0;
        for (paper, figure) in figures() {
            let doubted: Vec<_> =
                figure.doubts.iter().map(|it| (it.row.clone(), it.column.clone())).collect();
            let all = quadruples(&figure);
            judged += all.len();
            let impossible = all.into_iter().filter(|(.., four)| is_impossible(*four));
            let mut impossible: Vec<_> = impossible.map(|(row, column, _)| (row, column)).collect();
            impossible.sort_by_key(|it| doubted.iter().position(|doubt| doubt == it));
            assert_eq!(doubted, impossible, "{paper:?} {}", figure.name);
        }
        assert!(judged > 70, "{judged} standard deviations");
    }

    /// If the papers' numbers are available, every number here is among them.
    #[test]
    fn every_number_is_one_of_the_paper() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/papers.md");
        let Ok(text) = std::fs::read_to_string(&path) else {
            testkit::skip!("{} is not there", path.display());
            return;
        };
        for (paper, figure) in figures() {
            for row in &figure.rows {
                for cell in row[1..].iter().filter(|cell| cell.parse::<f64>().is_ok()) {
                    assert!(text.contains(cell.as_str()), "{paper:?} {}: {row:?}: {cell}", figure.name);
                }
            }
        }
    }

    #[test]
    fn a_report_has_the_tables_their_conditions_and_their_doubts() {
        let mut report = Report::default();
        Paper::ServiceRobot.append(&["Table 1", "Figure 10"], &mut report);
        let text = report.text();
        assert!(text.contains("Raspberry Pi 3, Linux 4.1.21, Xenomai 3.0.2"), "{text}");
        assert!(text.contains("4420.113 *") && text.contains("most likely a slip"), "{text}");
        assert_eq!(report.values["paper"].as_array().map(Vec::len), Some(2));
        let tables = report.sections.iter().filter_map(|it| match it {
            Section::Table(table) => Some(table),
            _ => None,
        });
        let rows: Vec<&Row> = tables.flat_map(|it| &it.rows).collect();
        assert_eq!(rows.len(), 24);
        assert!(rows.iter().all(|row| row.from_paper));
    }
}
