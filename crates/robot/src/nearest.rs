//! Known word nearest to a mistyped one.

use strsim::osa_distance;

/// Candidate with the fewest edits from `word`, if they are few enough for a typing error.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = cut(word);
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&word, &cut(candidate)), candidate))
        .filter(|&(edits, _)| edits <= allowed)
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}

/// Its first letters, so that no text makes the comparison slow.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
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
    }
}
