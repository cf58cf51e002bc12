//! Combination of tunings.

use std::str::FromStr;

use thiserror::Error;

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
