//! Known word nearest to a mistyped one.

use strsim::osa_distance;

/// Candidate with the fewest edits from `word`, if they are few enough for a typing error.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = cut(word);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((edits(&word, &cut(candidate))?, candidate)))
        // Of equally near ones the alphabetically first, for any order of candidates.
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits that make one of the other, if they leave most of it as it is.
fn edits(word: &str, candidate: &str) -> Option<usize> {
    let [letters, others] = [word, candidate].map(|it| it.chars().count());
    let allowed = match letters {
        // With another letter it is another word; one may be missing.
        0..=2 => usize::from(letters == 2 && others == 3),
        _ => letters / 3,
    };
    Some(osa_distance(word, candidate)).filter(|&edits| edits <= allowed)
}

/// Its first letters, so that no text makes the comparison slow, and all of them small.
fn cut(text: &str) -> String {
    text.chars().take(64).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_found_and_other_words_are_not() {
        let keys = ["period", "priority", "cpu"];
        assert_eq!(nearest("perod", keys), Some("period"));
        assert_eq!(nearest("preiod", keys), Some("period"));
        assert_eq!(nearest("cpus", keys), Some("cpu"));
        assert_eq!(nearest("gear", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("Cpu", keys), Some("cpu"));
    }

    #[test]
    fn a_short_word_with_another_letter_is_another_word() {
        let names = ["do", "top", "x"];
        assert_eq!(nearest("di", names), None);
        assert_eq!(nearest("y", names), None);
        assert_eq!(nearest("tip", ["do", "in"]), None);
        assert_eq!(nearest("tp", names), Some("top"));
        assert_eq!(nearest("tpo", names), Some("top"));
        assert_eq!(nearest("topp", names), Some("top"));
        assert_eq!(nearest("DO", names), Some("do"));
    }
}
