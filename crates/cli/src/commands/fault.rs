//! `onbeat fault`: a fault for a simulator that runs.

use std::path::Path;

use clap::Args;
use ipc::text::{AskError, Client};
use onbeat::fault::GRAMMAR;
use onbeat::fault::socket::{LIST, SIMULATOR};

use crate::failure::Failure;
use crate::output;

/// Injects a fault into the SubDevices of an `onbeat simulate`, and reports when, in seconds after
/// its start.
#[derive(Args, Debug)]
pub(crate) struct Fault {
    /// Name of the simulator, or path of its socket; without it the one that runs
    #[arg(long, value_name = "NAME|SOCKET")]
    of: Option<String>,

    /// The fault, as `power off drive-3 for 500ms`; `list` prints all forms and the active faults
    #[arg(value_name = "FAULT", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Behind the options in the help.
pub(crate) fn forms() -> String {
    let width = GRAMMAR.iter().map(|(form, _)| form.len()).max().unwrap_or_default();
    let line = |(form, help): &(&str, &str)| format!("  {form:width$}  {help}");
    let lines: Vec<String> = GRAMMAR.iter().map(line).collect();
    format!("Faults; SUBDEVICE is a name, in quotes if it has spaces, or a position:\n{}", lines.join("\n"))
}

impl Fault {
    pub(crate) fn execute(mut self) -> Result<(), Failure> {
        self.take_name()?;
        let line = self.line();
        if line.trim() == LIST {
            output::print(forms() + "\n\n")?;
        }
        let answer = self.find()?.ask(&line)?;
        let answer = answer.map_err(|refusal| Failure::new(format!("fault \"{line}\": {refusal}")))?;
        output::print(answer + "\n")
    }

    /// The words in a line; a shell has taken the quotes from around a name with spaces.
    fn line(&self) -> String {
        let is_name = |word: &str| word.contains(char::is_whitespace) && !word.contains('"');
        match &self.words[..] {
            [line] => line.clone(),
            words => {
                let quoted =
                    |word: &String| if is_name(word) { format!("\"{word}\"") } else { word.clone() };
                words.iter().map(quoted).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Takes `--of NAME` from behind the fault, or from its middle: no fault has such a word.
    fn take_name(&mut self) -> Result<(), Failure> {
        const OF: &str = "--of";
        let behind =
            |word: &String| word.strip_prefix(OF).is_some_and(|it| it.is_empty() || it.starts_with('='));
        while let Some(place) = self.words.iter().position(behind) {
            let word = self.words.remove(place);
            let name = match word.split_once('=') {
                Some((_, name)) => Some(name.to_owned()),
                None => (place < self.words.len()).then(|| self.words.remove(place)),
            };
            let name = name.filter(|name| !name.is_empty()).ok_or_else(|| {
                Failure::new(format!(
                    "{OF} without a name, expected the name of the simulator, or the path of its socket"
                ))
            })?;
            if self.of.replace(name).is_some() {
                return Err(Failure::new(format!("{OF} twice, expected one simulator: leave one out")));
            }
        }
        Ok(())
    }

    fn find(&self) -> Result<Client, AskError> {
        match self.of.as_deref() {
            Some(path) if path.contains('/') => Client::open(Path::new(path)),
            name => Client::find(&SIMULATOR, name),
        }
    }
}
