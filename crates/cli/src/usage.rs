//! Advice where the command line cannot be read.

use clap::Error;
use clap::error::{ContextKind, ContextValue};

/// Corrects the advice that clap gives.
pub(crate) fn correct(error: &mut Error) {
    drop_far_words(error);
    name_the_new(error);
    name_the_place_of_the_robot(error);
}

/// Drops suggestions for a word of a few letters that are other words: they have a letter or two in common with it.
fn drop_far_words(error: &mut Error) {
    for (wrong, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(word) = error.get(wrong).map(ToString::to_string) else { continue };
        let words = match error.get(suggested) {
            Some(ContextValue::String(word)) => vec![word.clone()],
            Some(ContextValue::Strings(words)) => words.clone(),
            _ => continue,
        };
        let near: Vec<String> = words.into_iter().filter(|it| is_near(&word, it)).collect();
        error.remove(suggested);
        match near.as_slice() {
            // The usage has the other option.
            [] if wrong == ContextKind::InvalidArg => drop(error.remove(ContextKind::Usage)),
            [] => {}
            [one] => drop(error.insert(suggested, ContextValue::String(one.clone()))),
            _ => drop(error.insert(suggested, ContextValue::Strings(near))),
        }
    }
}

/// True of the beginning of another word, of a slip of the finger, and of a word long enough for clap to compare.
fn is_near(word: &str, other: &str) -> bool {
    let [word, other] = [word, other].map(|it| it.trim_start_matches('-'));
    word.chars().count() > 3 || other.starts_with(word) || robot::nearest(word, [other]).is_some()
}

/// Names what an option of before is called now, in place of one that is spelled as it was.
fn name_the_new(error: &mut Error) {
    if is_wrong(error, "--seam") {
        error.insert(ContextKind::SuggestedArg, ContextValue::String("--ipc".to_owned()));
    }
}

/// Says where the robot file stands in a command that takes it without an option.
fn name_the_place_of_the_robot(error: &mut Error) {
    let takes_one =
        error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains("[ROBOT.toml]"));
    if takes_one && is_wrong(error, "--robot") {
        error.remove(ContextKind::SuggestedArg);
        let advice = "the robot file of this command is given without --robot";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    }
}

fn is_wrong(error: &Error, option: &str) -> bool {
    error.get(ContextKind::InvalidArg).is_some_and(|wrong| wrong.to_string() == option)
}
