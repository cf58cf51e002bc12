//! Files of a crate that use each other.
//!
//! A file uses another one if its code names an item that the other declares: in a path, or in an
//! import that is not re-exported. A table of contents (`mod x; pub use x::Y;`) uses nothing, and a
//! call of a method is no use. Uses between the file of a module and the files of its parts, in the
//! folder of its name, do not count: the parts are the module, written down in pieces. Files from
//! each of which a chain of uses leads to all others are a circle: none of them can be read without
//! the others.

use std::collections::{BTreeMap, BTreeSet};

use super::crates::Crate;
use super::ratchet::{Figure, Figures, Rule};
use super::scope::{Scope, Use};

pub(super) const CIRCLES: Rule = Rule {
    name: "circles of files",
    key: "circle-files",
    unit: "files in circles",
    allowed: 0,
    remedy: "move the item to the file where it belongs",
};

pub(super) fn circles(crates: &[Crate]) -> Figures {
    let measured = |code: &Crate| {
        let mut uses = Scope::of(code).uses();
        uses.retain(|it| !is_part(code, it.from, it.to) && !is_part(code, it.to, it.from));
        let mut figure = Figure::default();
        for circle in circles_of(code.files.len(), &uses) {
            figure.value += circle.len();
            figure.at.push(described(code, &circle, &uses));
        }
        (code.folder.clone(), figure)
    };
    crates.iter().map(measured).collect()
}

/// `part` is below the module that begins with the file `whole`.
fn is_part(code: &Crate, whole: usize, part: usize) -> bool {
    let above = |number: usize| std::iter::successors(Some(number), |&it| code.modules[it].parent);
    let parts = (0..code.modules.len()).filter(|&module| code.modules[module].file == part);
    parts.flat_map(above).any(|module| code.modules[module].file == whole)
}

/// Sets of files that reach each other.
fn circles_of(files: usize, uses: &[Use]) -> Vec<BTreeSet<usize>> {
    let mut next: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for it in uses {
        next.entry(it.from).or_default().insert(it.to);
    }
    let reached: Vec<BTreeSet<usize>> = (0..files).map(|file| reached(file, &next)).collect();
    let mut circles = BTreeSet::new();
    for file in 0..files {
        let circle: BTreeSet<usize> =
            reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Files at the end of a chain of uses from `file`.
fn reached(file: usize, next: &BTreeMap<usize, BTreeSet<usize>>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        for &other in next.get(&file).into_iter().flatten() {
            if found.insert(other) {
                open.push(other);
            }
        }
    }
    found
}

/// The uses within a circle, the pair with the fewest first.
fn described(code: &Crate, circle: &BTreeSet<usize>, uses: &[Use]) -> String {
    let mut pairs: BTreeMap<(usize, usize), Vec<&Use>> = BTreeMap::new();
    for it in uses.iter().filter(|it| circle.contains(&it.from) && circle.contains(&it.to)) {
        pairs.entry((it.from, it.to)).or_default().push(it);
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|(_, uses)| uses.len());
    let path = |file: usize| code.files[file].path.as_str();
    let row = |((from, to), uses): &((usize, usize), Vec<&Use>)| {
        let names: BTreeSet<&str> = uses.iter().map(|it| it.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        format!("{}:{} uses {} of {}", path(*from), uses[0].line, names.join(", "), path(*to))
    };
    let rows: Vec<String> = pairs.iter().map(row).collect();
    format!("{} files:\n      {}", circle.len(), rows.join("\n      "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_of_files_are_found_and_chains_and_parts_are_not() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "pub struct A(super::b::B);"),
            ("b.rs", "pub struct B(crate::c::C);"),
        ];
        let chain = Crate::of(&[&files[..], &[("c.rs", "pub struct C;")]].concat());
        assert_eq!(circles(&[chain])["a"].value, 0);
        let circle = Crate::of(&[&files[..], &[("c.rs", "pub struct C; fn f() { crate::A }")]].concat());
        let figure = &circles(&[circle])["a"];
        assert_eq!(figure.value, 3);
        let files = [
            ("lib.rs", "mod a; fn top() { a::A }"),
            ("a.rs", "mod b; use b::B; pub struct A(B);"),
            ("a/b.rs", "pub struct B; fn f(_: super::A) { crate::top() }"),
        ];
        assert_eq!(circles(&[Crate::of(&files)])["a"].value, 0);
        assert!(figure.at[0].contains("a/src/c.rs:1 uses crate::A of a/src/a.rs"), "{:?}", figure.at);
    }
}
