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
mod tests;
