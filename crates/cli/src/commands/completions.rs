//! `onbeat completions`: what a shell needs to complete our command lines.

use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Prints a script that completes commands and options in a shell: bash: `onbeat completions bash >
/// ~/.local/share/bash-completion/completions/onbeat`; zsh: into a file `_onbeat` of a folder in
/// `$fpath`; fish: `~/.config/fish/completions/onbeat.fish`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// Shell that is to complete
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(self, mut line: clap::Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut line, "onbeat", &mut script);
        output::print(String::from_utf8_lossy(&script))
    }
}
