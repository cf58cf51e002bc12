//! Lines of code of functions and files: lines with a token, without comments and tests.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenTree};

use super::crates::{Crate, ident};
use super::ratchet::{Figure, Figures, Rule};

pub(super) const FUNCTIONS: Rule = Rule {
    name: "length of functions",
    key: "function",
    unit: "lines of code in a function",
    allowed: 80,
    remedy: "split it",
};
pub(super) const FILES: Rule = Rule {
    name: "length of files",
    key: "file",
    unit: "lines of code in a file",
    allowed: 400,
    remedy: "split it into files of one idea each",
};

pub(super) fn files(crates: &[Crate]) -> Figures {
    let files = crates.iter().flat_map(|code| &code.files);
    files.map(|file| (file.path.clone(), lines(&file.tokens))).collect()
}

pub(super) fn functions(crates: &[Crate]) -> Figures {
    let mut figures = Figures::new();
    for file in crates.iter().flat_map(|code| &code.files) {
        for (name, figure) in functions_in(&file.tokens) {
            let kept = figures.entry(format!("{}:{name}", file.path)).or_default();
            // Methods of one name in one file: the longest counts.
            if figure.value > kept.value {
                *kept = figure;
            }
        }
    }
    figures
}

fn functions_in(tokens: &[TokenTree]) -> Vec<(String, Figure)> {
    let mut found = Vec::new();
    let mut name = None;
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if word == "fn" => name = ident(tokens.get(place + 1)),
            TokenTree::Punct(punct) if punct.as_char() == ';' => name = None,
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                found.extend(functions_in(&inner));
                if group.delimiter() == Delimiter::Brace {
                    found.extend(name.take().map(|name| (name, lines(&inner))));
                }
            }
            _ => {}
        }
    }
    found
}

/// Number of lines with a token. A doc comment is an attribute; its lines do not count.
fn lines(tokens: &[TokenTree]) -> Figure {
    let mut found = BTreeSet::new();
    collect(tokens, &mut found);
    Figure { value: found.len(), at: Vec::new() }
}

fn collect(tokens: &[TokenTree], found: &mut BTreeSet<usize>) {
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        place += 1;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let at = place + usize::from(super::crates::is_punct(tokens.get(place), '!'));
                if matches!(tokens.get(at), Some(TokenTree::Group(group)) if is_doc(group)) {
                    place = at + 1;
                    continue;
                }
                found.insert(token.span().start().line);
            }
            TokenTree::Group(group) => {
                found.extend([group.span_open().start().line, group.span_close().end().line]);
                collect(&group.stream().into_iter().collect::<Vec<_>>(), found);
            }
            _ => found.extend(token.span().start().line..=token.span().end().line),
        }
    }
}

fn is_doc(attribute: &proc_macro2::Group) -> bool {
    ident(attribute.stream().into_iter().next().as_ref()).is_some_and(|it| it == "doc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_have_a_token() {
        let code = "//! Doc.\n\n/// Doc\n/// of two lines.\nfn f() {\n    // Why.\n    g(\"a\n    b\");\n\n}\n\
                    impl X {\n    fn h(&self) -> u8 { 1 }\n    fn i(&self) {\n        j()\n    }\n}\n";
        let crates = [Crate::of(&[("lib.rs", code)])];
        assert_eq!(files(&crates)["a/src/lib.rs"].value, 10);
        let found: Vec<_> = functions(&crates).into_iter().map(|(name, it)| (name, it.value)).collect();
        let name = |name: &str| format!("a/src/lib.rs:{name}");
        assert_eq!(found, [(name("f"), 2), (name("h"), 1), (name("i"), 1)]);
    }
}
