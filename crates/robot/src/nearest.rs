//! Known word nearest to a mistyped one.

/// Candidate with the fewest edits from `word`, if they are few enough for a typing error.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(LONGEST).collect();
    let allowed = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (edits(&word, candidate), candidate))
        .filter(|&(edits, _)| edits <= allowed)
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}

/// Length after which words are cut, so that no text makes the comparison slow.
const LONGEST: usize = 64;

/// Number of insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn edits(word: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().take(LONGEST).collect();
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=candidate.len()).collect();
    for (row, &letter) in word.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &other) in candidate.iter().enumerate() {
            let substituted = last[column] + usize::from(letter != other);
            let mut fewest = substituted.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped =
                row > 0 && column > 0 && letter == candidate[column - 1] && word[row - 1] == other;
            if swapped {
                fewest = fewest.min(before_last[column - 1] + 1);
            }
            current.push(fewest);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[candidate.len()]
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
