//! Length of lines and sentences in Markdown.

use super::ratchet::{Figure, Figures, Rule};
use super::tracked::Tracked;

pub(super) const LINES: Rule = Rule {
    name: "Markdown: length of lines",
    key: "long-lines",
    unit: "lines above 100 columns outside tables, links and code",
    allowed: 0,
    remedy: "break them",
};
pub(super) const MEAN: Rule = Rule {
    name: "Markdown: mean length of sentences",
    key: "mean-sentence",
    unit: "words a sentence on average",
    allowed: 17,
    remedy: "one fact a sentence",
};
pub(super) const SENTENCES: Rule = Rule {
    name: "Markdown: longest sentences",
    key: "long-sentences",
    unit: "sentences above 30 words",
    allowed: 0,
    remedy: "split them",
};

/// Columns of a line.
pub(super) const COLUMNS: usize = 100;

/// Words of a sentence.
const WORDS: usize = 30;

pub(super) fn lines(tracked: &Tracked) -> Figures {
    by_page(tracked, |text, figure| {
        let long = body(text).filter(|(_, line)| {
            line.chars().count() > COLUMNS && !line.trim_start().starts_with('|') && !is_link(line)
        });
        for (number, line) in long {
            figure.add(format!("line {number}: {} columns", line.chars().count()));
        }
    })
}

/// A line that cannot be broken: its longest word is an address.
fn is_link(line: &str) -> bool {
    let word = |word: &str| word.contains("](") || word.contains("://");
    line.split_whitespace().any(|it| word(it) && it.chars().count() > COLUMNS / 2)
}

pub(super) fn mean(tracked: &Tracked) -> Figures {
    by_page(tracked, |text, figure| {
        let lengths: Vec<usize> = sentences_of(text).iter().map(|it| words(it)).collect();
        let mean = lengths.iter().sum::<usize>().div_ceil(lengths.len().max(1));
        figure.value = mean;
    })
}

pub(super) fn sentences(tracked: &Tracked) -> Figures {
    by_page(tracked, |text, figure| {
        for sentence in sentences_of(text) {
            let count = words(&sentence);
            if count > WORDS {
                figure.add(format!("{count} words: {sentence}"));
            }
        }
    })
}

fn by_page(tracked: &Tracked, measure: impl Fn(&str, &mut Figure)) -> Figures {
    let measured = |(path, text): (&str, String)| {
        let mut figure = Figure::default();
        measure(&text, &mut figure);
        (path.to_owned(), figure)
    };
    tracked.texts(".md").map(measured).collect()
}

/// Lines of a page with their numbers, without blocks of code.
pub(super) fn body(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Sentences of more than three words: of paragraphs, items of lists, and cells of tables.
fn sentences_of(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (_, line) in body(text) {
        let line = line.trim();
        if line.starts_with('#') {
            parts.push(String::new());
        } else if line.starts_with('|') {
            parts.extend(line.trim_matches('|').split('|').map(str::to_owned));
            parts.push(String::new());
        } else {
            let item = without_bullet(line);
            if item.is_some() || line.is_empty() {
                parts.push(String::new());
            }
            if let Some(part) = parts.last_mut() {
                part.push(' ');
                part.push_str(item.unwrap_or(line));
            }
        }
    }
    let sentences = parts.iter().flat_map(|part| split(&without_code(part)));
    sentences.filter(|sentence| words(sentence) > 3).collect()
}

/// An item of a list, without its bullet or number.
fn without_bullet(line: &str) -> Option<&str> {
    let (bullet, rest) = line.split_once(' ')?;
    let is_number = bullet.strip_suffix('.').is_some_and(|it| it.parse::<u32>().is_ok());
    (matches!(bullet, "*" | "-") || is_number).then_some(rest)
}

/// A text with an `X` in the place of each piece of code, and without the addresses of links.
fn without_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let text: String = pieces.map(|(number, piece)| if number % 2 == 0 { piece } else { "X" }).collect();
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let rest = part.split_once(')').map_or(part, |(_, rest)| rest);
        all + "]" + rest
    })
}

/// Splits after a full stop, colon or the like with a space behind it.
fn split(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(sentence) = sentences.last_mut() {
            sentence.push_str(if sentence.is_empty() { "" } else { " " });
            sentence.push_str(word);
        }
        if word.ends_with(['.', '!', '?', ':', ';']) {
            sentences.push(String::new());
        }
    }
    sentences
}

fn words(sentence: &str) -> usize {
    let pieces = sentence.split(|letter: char| !letter.is_alphanumeric() && !"'-_".contains(letter));
    pieces.filter(|piece| piece.starts_with(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_with_paragraphs_items_cells_and_marks() {
        let page = "# Title of the page\nOne is a first `a b.c d` sentence. Then\ncomes a second \
                    one:\n\n* the third one [is this](long/address.md)\n* the fourth one is this\n\
                    | a cell of four words | another cell |\n```\nno sentence in code here\n```\n";
        let found = sentences_of(page);
        assert_eq!(
            found,
            [
                "One is a first X sentence.",
                "Then comes a second one:",
                "the third one [is this]",
                "the fourth one is this",
                "a cell of four words"
            ]
        );
        assert_eq!(words("It's the drive-3's X, at 0.5 s."), 8);
    }

    #[test]
    fn long_lines_of_links_and_tables_stay() {
        let link = format!("see [the page](https://{}.org)", "x".repeat(100));
        assert!(is_link(&link));
        assert!(!is_link(&"a word ".repeat(20)));
    }
}
