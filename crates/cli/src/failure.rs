//! End of a command that cannot do its work.

use std::fmt;
use std::process::ExitCode;

use control::verdict::COULD_NOT_RUN;

/// One sentence for people: the place, the expected, the found, and what to do. And the exit code:
/// 1 unless the command has given others a meaning. Several of them are one, with the highest code.
#[derive(Debug)]
pub struct Failure {
    sentence: String,
    code: Option<u8>,
}

impl Failure {
    /// Creates a failure from its sentence.
    pub fn new(sentence: impl fmt::Display) -> Self {
        Self { sentence: sentence.to_string(), code: None }
    }

    /// Everything was said already; only the exit code is left.
    pub fn silent(code: u8) -> Self {
        Self { sentence: String::new(), code: Some(code) }
    }

    /// Ends with `code`, unless another was chosen already.
    pub fn or_code(mut self, code: u8) -> Self {
        self.code.get_or_insert(code);
        self
    }

    /// This one and another, a line each.
    pub fn and(self, other: Self) -> Self {
        let code = self.code().max(other.code());
        let sentences: Vec<String> =
            [self.sentence, other.sentence].into_iter().filter(|it| !it.is_empty()).collect();
        Self { sentence: sentences.join("\n"), code: Some(code) }
    }

    /// Both, where both failed.
    pub fn both(one: Result<(), Self>, other: Result<(), Self>) -> Result<(), Self> {
        match (one, other) {
            (Err(one), Err(other)) => Err(one.and(other)),
            (one, other) => one.and(other),
        }
    }

    /// Lines for standard error: the name of the program precedes each sentence. An indented line
    /// belongs to the line before.
    #[must_use]
    pub fn lines(&self) -> String {
        let named =
            |line: &str| if line.starts_with(' ') { line.to_owned() } else { format!("onbeat: {line}") };
        self.sentence.lines().map(named).collect::<Vec<_>>().join("\n")
    }

    /// True if there is nothing to say.
    pub fn is_silent(&self) -> bool {
        self.sentence.is_empty()
    }

    /// Exit code of a program that ends with it.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The same as a number.
    pub fn code(&self) -> u8 {
        self.code.unwrap_or(COULD_NOT_RUN)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(program): exit codes, from one verdict for program and fault matrix
    #[test]
    fn of_several_failures_each_is_said_and_the_highest_code_counts() {
        let failure = |sentence, code| Err(Failure::new(sentence).or_code(code));
        let both = Failure::both(failure("the bus", 4), failure("the file", 1)).unwrap_err();
        assert_eq!((both.lines().as_str(), both.code()), ("onbeat: the bus\nonbeat: the file", 4));
        let both = Failure::both(Ok(()), failure("the axis", 3)).unwrap_err();
        assert_eq!((both.to_string().as_str(), both.code()), ("the axis", 3));
        assert!(Failure::both(Ok(()), Ok(())).is_ok());
    }

    /// Each of several sentences begins with the name of the program; the lines of a list do not.
    // feature(program): every sentence of an error has the name of the program before it, each of several, too
    #[test]
    fn each_sentence_has_the_name_of_the_program() {
        let lines = |text: &str| Failure::new(text).lines();
        assert_eq!(lines("a:1: one\na:3: two"), "onbeat: a:1: one\nonbeat: a:3: two");
        assert_eq!(lines("several run:\n  one\n  two"), "onbeat: several run:\n  one\n  two");
    }
}
