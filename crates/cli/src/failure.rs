//! How a command ends when it cannot do its work.

use std::fmt;
use std::process::ExitCode;

/// One sentence for people: the place, the expected, the found, and what to do. And the exit code: 1 unless the
/// command has given others a meaning.
#[derive(Debug)]
pub(crate) struct Failure {
    sentence: String,
    code: Option<u8>,
}

impl Failure {
    pub(crate) fn new(sentence: impl fmt::Display) -> Self {
        Self { sentence: sentence.to_string(), code: None }
    }

    /// Everything was said already; only the exit code is left.
    pub(crate) fn silent(code: u8) -> Self {
        Self { sentence: String::new(), code: Some(code) }
    }

    /// Ends with `code`, unless another was chosen already.
    pub(crate) fn or_code(mut self, code: u8) -> Self {
        self.code.get_or_insert(code);
        self
    }

    /// Whether there is nothing to say.
    pub(crate) fn is_silent(&self) -> bool {
        self.sentence.is_empty()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code.unwrap_or(1))
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
