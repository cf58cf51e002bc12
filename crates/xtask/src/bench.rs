//! Measurements. None of them asserts a time: they print the result and its conditions, and save
//! every single number in `bench-results/`.

mod conditions;
mod contestant;
mod explain;
mod recorded;
mod reflector;
mod serve;
mod soak;
mod soem;
mod start;
mod statistics;
mod wire;

use std::path::Path;

use crate::report::Report;

/// Runs the measurement named by the arguments.
///
/// # Errors
/// The expected arguments, in one sentence.
pub(crate) fn run(root: &Path, words: &[&str], report: &mut Report) -> Result<(), String> {
    match words {
        ["clone"] => start::fresh_clone(root, report),
        ["wire"] => wire::measure(root, &wire::Options::default(), report),
        ["wire", "--rounds", rounds] => {
            let rounds = rounds.parse().map_err(|error| format!("--rounds `{rounds}`: {error}"))?;
            wire::measure(root, &wire::Options { rounds, ..wire::Options::default() }, report);
        }
        ["bring-up"] => wire::bring_up(root, report),
        ["explain"] => explain::measure(root, 20, report),
        ["explain", "--rounds", rounds] => {
            let rounds = rounds.parse().map_err(|error| format!("--rounds `{rounds}`: {error}"))?;
            explain::measure(root, rounds, report);
        }
        ["serve"] => serve::measure(root, 4, report),
        ["serve", "--rounds", rounds] => {
            let rounds = rounds.parse().map_err(|error| format!("--rounds `{rounds}`: {error}"))?;
            serve::measure(root, rounds, report);
        }
        ["soak", words @ ..] => soak::measure(root, soak::Options::parse(words)?, report),
        _ => {
            return Err(format!(
                "`bench {}`: there are `bench wire [--rounds N]`, `bench bring-up`, `bench explain [--rounds N]`, `bench serve [--rounds N]`, \
                 `bench soak [--seconds N] [--seed N]` and `bench clone`",
                words.join(" ")
            ));
        }
    }
    Ok(())
}
