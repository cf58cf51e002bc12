//! File of a script of faults, which errors name.

use std::fmt;
use std::path::Path;

use robot::FileError;
use simulator::fault::{FaultError, Script, Targets};
use thiserror::Error;

/// Everything that is wrong with a script, at least one error; errors beyond the first
/// [`MOST_SHOWN`] are counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct ScriptErrors {
    /// In the order of lines, each with its file and line.
    pub errors: Vec<FileError>,
}

impl fmt::Display for ScriptErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.errors.iter().take(MOST_SHOWN).map(FileError::to_string).collect();
        f.write_str(&shown.join("\n"))?;
        match self.errors.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{more} more errors"),
        }
    }
}

/// Errors shown of one script.
pub const MOST_SHOWN: usize = 20;

/// Reads and checks the script at `path`.
///
/// # Errors
/// It cannot be read, or lines of it are wrong: all of them.
pub fn read(path: &Path, targets: &Targets) -> Result<Script, ScriptErrors> {
    let text = robot::read_text(path, "a script of faults");
    let text = text.map_err(|error| ScriptErrors { errors: vec![error] })?;
    parse(&text, &path.display().to_string(), targets)
}

/// Checks the script `text`, which errors name `file`.
///
/// # Errors
/// All lines that are wrong.
pub fn parse(text: &str, file: &str, targets: &Targets) -> Result<Script, ScriptErrors> {
    let of_file = |(line, error): (usize, FaultError)| FileError {
        file: file.to_owned(),
        place: Some((line, error.column)),
        found: error.found,
        expected: error.expected,
        remedy: error.remedy,
    };
    Script::parse(text, targets)
        .map_err(|errors| ScriptErrors { errors: errors.into_iter().map(of_file).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_their_line_and_many_are_counted() {
        let names = ["a".to_owned(), "b".to_owned()];
        let targets = Targets::of(names.into_iter(), &mut simulator::Segment::new(Vec::new()));
        let errors = parse("1s clear\n2s powr off a", "faults.txt", &targets).unwrap_err().to_string();
        assert!(errors.starts_with("faults.txt:2:4: found \"powr\", expected power, "), "{errors}");
        let many = "x\n".repeat(1000);
        let errors = parse(&many, "many", &targets).unwrap_err().to_string();
        assert!(errors.lines().count() == 21 && errors.ends_with("980 more errors"), "{errors}");
    }
}
