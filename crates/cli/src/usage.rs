//! Advice where the command line cannot be read.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use crate::object_address::is_index;

/// Corrects the advice that clap gives for the command line of `program`.
pub(crate) fn correct(error: &mut Error, program: &Command) {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    if error.kind() == ErrorKind::InvalidUtf8 {
        return name_the_word(error, &typed);
    }
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    drop_far_words(error);
    drop_two_dashes(error, &words);
    name_the_usual(error, &words, program);
    name_the_place_of_the_robot(error);
    name_the_sub_index(error, &words);
}

/// Names the word that is no text, which clap does not.
fn name_the_word(error: &mut Error, typed: &[OsString]) {
    let Some((number, word)) = typed.iter().enumerate().find(|(_, word)| word.to_str().is_none()) else {
        return;
    };
    let number = number + 1;
    *error = Error::raw(
        ErrorKind::InvalidUtf8,
        format_args!("word {number} of the command line: found {word:?}, expected UTF-8\n"),
    );
}

/// Drops clap's advice to put an option behind `--`, which no command here can use. For a number
/// below 0, says where it belongs.
fn drop_two_dashes(error: &mut Error, words: &[String]) {
    let Some(wrong) = error.get(ContextKind::InvalidArg).map(ToString::to_string) else { return };
    if !wrong.starts_with('-') || error.remove(ContextKind::Suggested).is_none() {
        return;
    }
    let is_number = wrong[1..].starts_with(|letter: char| letter.is_ascii_digit());
    let at = words.iter().position(|it| it.starts_with(&wrong)).filter(|at| is_number && *at > 0);
    let Some(option) = at.map(|at| &words[at - 1]).filter(|it| it.starts_with("--")) else { return };
    advise(
        error,
        format!(
            "a value below 0 is given as {option}={}, where {option} takes one",
            words[at.unwrap_or(0)]
        ),
    );
}

fn advise(error: &mut Error, advice: String) {
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
}

/// Drops suggestions for a word of a few letters that are other words: they have a letter or two in
/// common with it.
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

/// True of the beginning of another word, of a slip of the finger, and of a word long enough for
/// clap to compare.
fn is_near(word: &str, other: &str) -> bool {
    let [word, other] = [word, other].map(|it| it.trim_start_matches('-'));
    word.chars().count() > 3 || other.starts_with(word) || types::near::nearest(word, [other]).is_some()
}

/// Names an option by what it is called here, in place of one that is spelled as it was before, or
/// elsewhere.
fn name_the_usual(error: &mut Error, words: &[String], program: &Command) {
    for (wrong, right) in [("--duration", "--for"), ("--time", "--for")] {
        if is_wrong(error, wrong) && takes(program, words, &right[2..]) {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(right.to_owned()));
        }
    }
}

/// True if the command of these words has this option.
fn takes(program: &Command, words: &[String], option: &str) -> bool {
    let command =
        words.iter().fold(program, |command, word| command.find_subcommand(word).unwrap_or(command));
    command.get_arguments().any(|it| it.get_long() == Some(option))
}

/// Says how to give an object with its sub-index, which other tools take as a separate word.
fn name_the_sub_index(error: &mut Error, words: &[String]) {
    let Some(wrong) = error.get(ContextKind::InvalidArg).map(ToString::to_string) else { return };
    let object = words.windows(2).find(|it| is_index(&it[0]) && it[1] == wrong).map(|it| &it[0]);
    if let (Some(object), true) = (object, words.first().is_some_and(|it| it == "sdo")) {
        advise(error, format!("sub-index {wrong} of {object} is one word with it: {object}:{wrong}"));
    }
}

/// Says where the robot file belongs in a command that takes it without an option.
fn name_the_place_of_the_robot(error: &mut Error) {
    let takes_one =
        error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains("[ROBOT.toml]"));
    if takes_one && is_wrong(error, "--robot") {
        error.remove(ContextKind::SuggestedArg);
        advise(error, "the robot file of this command is given without --robot".to_owned());
    }
}

fn is_wrong(error: &Error, option: &str) -> bool {
    error.get(ContextKind::InvalidArg).is_some_and(|wrong| wrong.to_string() == option)
}
