//! Names of the code of a crate, and the files that declare them.
//!
//! Simplifications: methods are not followed, nor is the text of macros by example resolved where
//! it is used. A local variable counts as the item of its name, if the module has one.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenTree;

use super::crates::{Crate, Item, Module, ident, is_punct};

/// A path in the code, such as `super::Name`.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) parts: Vec<String>,
    pub(super) line: usize,
}

/// The thing that a path names.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Thing {
    Module(usize),
    /// An item, declared in this module.
    Item(usize),
}

/// The names that each module of a crate knows.
pub(super) struct Scope<'a> {
    code: &'a Crate,
    /// Imported names by module: the local name, and the path.
    imports: Vec<BTreeMap<String, Vec<String>>>,
    /// Names of the items of each module.
    items: Vec<BTreeSet<&'a str>>,
    /// Modules of which all names are imported.
    globs: Vec<Vec<Vec<String>>>,
}

/// A use of a file's item in another file.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: String,
    pub(super) line: usize,
}

/// Steps after which a path is not followed any more: it leads to itself.
const DEPTH: usize = 16;

impl<'a> Scope<'a> {
    pub(super) fn of(code: &'a Crate) -> Self {
        let mut imports = vec![BTreeMap::new(); code.modules.len()];
        let mut globs = vec![Vec::new(); code.modules.len()];
        for (number, module) in code.modules.iter().enumerate() {
            for tokens in module.items.iter().flat_map(imports_in) {
                for (name, path) in use_tree(&tokens, &[]) {
                    match name.as_str() {
                        "*" => globs[number].push(path.parts),
                        "_" => {}
                        _ => drop(imports[number].entry(name).or_insert(path.parts)),
                    }
                }
            }
        }
        let names = |module: &'a Module| module.items.iter().map(|item| item.name.as_str()).collect();
        let items = code.modules.iter().map(names).collect();
        Self { code, imports, items, globs }
    }

    /// Uses between the files. A table of contents, `pub use`, uses nothing.
    pub(super) fn uses(&self) -> Vec<Use> {
        let mut found = Vec::new();
        for (number, module) in self.code.modules.iter().enumerate() {
            let items = module.items.iter().filter(|item| !(item.keyword == "use" && item.is_visible));
            let mut paths = BTreeMap::new();
            for Path { parts, line } in items.flat_map(paths_of) {
                paths.entry(parts).or_insert(line);
            }
            for (parts, line) in paths {
                let Some(Thing::Item(owner)) = self.resolve(number, &parts, DEPTH) else { continue };
                let (from, to) = (module.file, self.code.modules[owner].file);
                if from != to {
                    found.push(Use { from, to, name: parts.join("::"), line });
                }
            }
        }
        found
    }

    fn resolve(&self, module: usize, parts: &[String], depth: usize) -> Option<Thing> {
        let depth = depth.checked_sub(1)?;
        let (first, rest) = parts.split_first()?;
        let is_last = rest.is_empty();
        let mut thing = match first.as_str() {
            "crate" => Thing::Module(self.root(module)),
            "self" => Thing::Module(module),
            "super" => Thing::Module(self.code.modules[module].parent?),
            name => self.lookup(module, name, is_last, depth)?,
        };
        for (place, part) in rest.iter().enumerate() {
            let Thing::Module(inside) = thing else { break };
            thing = match part.as_str() {
                "super" => Thing::Module(self.code.modules[inside].parent?),
                "self" => thing,
                name => self.lookup(inside, name, place + 1 == rest.len(), depth)?,
            };
        }
        Some(thing)
    }

    fn lookup(&self, module: usize, name: &str, is_last: bool, depth: usize) -> Option<Thing> {
        let here = &self.code.modules[module];
        let child = here.children.get(name).copied().map(Thing::Module);
        let is_item = self.items[module].contains(name);
        let item = is_item.then_some(Thing::Item(module));
        let own = if is_last { item.or(child) } else { child.or(item) };
        own.or_else(|| {
            let path = self.imports[module].get(name)?;
            // `use name::Item as name` leads to a crate, not to itself.
            let is_crate = path.len() > 1 && path[0] == name;
            if is_crate { None } else { self.resolve(module, path, depth) }
        })
        .or_else(|| {
            self.globs[module].iter().find_map(|path| match self.resolve(module, path, depth)? {
                Thing::Module(inside) if inside != module => {
                    self.lookup(inside, name, is_last, depth.checked_sub(1)?)
                }
                _ => None,
            })
        })
    }

    /// The root of the library or program that a module belongs to.
    fn root(&self, module: usize) -> usize {
        self.code.modules[module].parent.map_or(module, |parent| self.root(parent))
    }
}

/// The tokens of imports: the item itself, and the imports in its body.
fn imports_in(item: &Item) -> Vec<Vec<TokenTree>> {
    if item.keyword == "use" {
        return vec![item.tokens.clone()];
    }
    let mut found = Vec::new();
    inner_imports(&item.tokens, &mut found);
    found
}

fn inner_imports(tokens: &[TokenTree], found: &mut Vec<Vec<TokenTree>>) {
    for (place, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            inner_imports(&group.stream().into_iter().collect::<Vec<_>>(), found);
        } else if ident(Some(token)).is_some_and(|it| it == "use") {
            let import = tokens[place + 1..].iter().take_while(|token| !is_punct(Some(token), ';'));
            found.push(import.cloned().collect());
        }
    }
}

/// Local names and paths of an import; the name of all is `*`.
fn use_tree(tokens: &[TokenTree], before: &[String]) -> Vec<(String, Path)> {
    let mut found = Vec::new();
    for branch in tokens.split(|token| is_punct(Some(token), ',') || is_punct(Some(token), ';')) {
        let mut parts = before.to_vec();
        let (mut name, mut line) = (None, 0);
        let mut words = branch.iter();
        while let Some(token) = words.next() {
            line = token.span().start().line;
            match token {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    found.extend(use_tree(&inner, &parts));
                    parts.clear();
                }
                TokenTree::Ident(word) if word == "as" => name = ident(words.next()),
                TokenTree::Ident(word) => parts.push(word.to_string()),
                _ if is_punct(Some(token), '*') => name = Some("*".to_owned()),
                _ => {}
            }
        }
        if parts.len() > 1 && parts.last().is_some_and(|it| it == "self") {
            parts.pop();
        }
        if let Some(last) = parts.last() {
            found.push((name.unwrap_or_else(|| last.clone()), Path { parts, line }));
        }
    }
    found
}

/// All paths in an item.
fn paths_of(item: &Item) -> Vec<Path> {
    if item.keyword == "use" {
        return use_tree(&item.tokens, &[]).into_iter().map(|(_, path)| path).collect();
    }
    let mut found = Vec::new();
    paths_in(&item.tokens, &mut found);
    found
}

fn paths_in(tokens: &[TokenTree], found: &mut Vec<Path>) {
    let mut place = 0;
    while place < tokens.len() {
        let before = place.checked_sub(1).and_then(|it| tokens.get(it));
        match &tokens[place] {
            TokenTree::Group(group) => {
                paths_in(&group.stream().into_iter().collect::<Vec<_>>(), found);
            }
            TokenTree::Ident(word) if word == "use" => {
                let length = tokens[place..].iter().take_while(|it| !is_punct(Some(it), ';')).count();
                let import = use_tree(&tokens[place + 1..place + length], &[]);
                found.extend(import.into_iter().map(|(_, path)| path));
                place += length;
            }
            TokenTree::Ident(word) => {
                let line = word.span().start().line;
                let mut parts = vec![word.to_string()];
                while is_punct(tokens.get(place + 1), ':') && is_punct(tokens.get(place + 2), ':') {
                    let Some(part) = ident(tokens.get(place + 3)) else { break };
                    parts.push(part);
                    place += 3;
                }
                // A field or method, a lifetime, or a path from another crate.
                let is_field = is_punct(before, '.') && !is_range(tokens, place, parts.len());
                if !is_field && !is_punct(before, '\'') && !is_punct(before, ':')
                    || is_type(tokens, place, &parts)
                {
                    found.push(Path { parts, line });
                }
            }
            _ => {}
        }
        place += 1;
    }
}

/// Number of tokens of a path: two colons between the parts.
fn length(parts: usize) -> usize {
    3 * parts - 2
}

/// The path that ends at `place` has two dots before it.
fn is_range(tokens: &[TokenTree], place: usize, parts: usize) -> bool {
    let start = place + 1 - length(parts);
    start >= 2 && is_punct(tokens.get(start - 2), '.')
}

/// The path that ends at `place` has one colon before it: it is a type, or the value of a field.
fn is_type(tokens: &[TokenTree], place: usize, parts: &[String]) -> bool {
    let start = place + 1 - length(parts.len());
    start >= 1
        && is_punct(tokens.get(start - 1), ':')
        && !(start >= 2 && is_punct(tokens.get(start - 2), ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Vec<(String, String, String)> {
        let code = Crate::of(files);
        let path = |file: usize| code.files[file].path.replace("a/src/", "");
        let uses = Scope::of(&code).uses();
        uses.into_iter().map(|it| (path(it.from), it.name, path(it.to))).collect()
    }

    fn expected(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        rows.iter().map(|&(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())).collect()
    }

    #[test]
    fn paths_lead_to_the_file_of_the_item() {
        let found = uses(&[
            ("lib.rs", "mod a; mod b; pub use a::One; pub use b::*;"),
            ("a.rs", "use crate::b as other; pub struct One { x: other::Two, y: u8 }"),
            ("b.rs", "pub struct Two; pub fn call(it: &super::One) -> u8 { it.Two + crate::One::X }"),
        ]);
        assert_eq!(
            found,
            expected(&[
                ("a.rs", "other::Two", "b.rs"),
                ("b.rs", "crate::One::X", "a.rs"),
                ("b.rs", "super::One", "a.rs")
            ])
        );
    }

    #[test]
    fn globs_renamed_and_inner_imports_are_followed() {
        let found = uses(&[
            ("lib.rs", "mod a; mod b; pub struct Top;"),
            ("a.rs", "use super::*; fn f(_: Top) { use b::{Two as X}; X::new(); ..X }"),
            ("b.rs", "pub struct Two; fn f() { std::fmt::Top; Top }"),
        ]);
        assert_eq!(
            found,
            expected(&[
                ("a.rs", "Top", "lib.rs"),
                ("a.rs", "X", "b.rs"),
                ("a.rs", "X::new", "b.rs"),
                ("a.rs", "b::Two", "b.rs")
            ])
        );
    }
}
