//! The Rust code of each crate as tokens, without its tests: files and their modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A crate of ours.
#[derive(Debug)]
pub(super) struct Crate {
    /// Its folder, below the root of the repository.
    pub(super) folder: String,
    pub(super) files: Vec<File>,
    /// Modules of its library and of its program; a parent is before its children.
    pub(super) modules: Vec<Module>,
}

/// A file of a crate.
#[derive(Debug)]
pub(super) struct File {
    /// Below the root of the repository.
    pub(super) path: String,
    /// Tokens without tests.
    pub(super) tokens: Vec<TokenTree>,
}

/// A module: a file, or a part of one.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    pub(super) items: Vec<Item>,
}

/// An item of a module that is no module.
#[derive(Debug)]
pub(super) struct Item {
    /// Its keyword, such as `struct`, `use` or `impl`; empty for the call of a macro.
    pub(super) keyword: String,
    /// Empty for `use`, `impl` and calls of macros.
    pub(super) name: String,
    pub(super) is_public: bool,
    /// Has `pub`, or `pub(...)`.
    pub(super) is_visible: bool,
    pub(super) line: usize,
    /// All behind the keyword, without attributes.
    pub(super) tokens: Vec<TokenTree>,
}

/// Reads the crates below `crates/` and `lab/`, and the ROS 2 node.
pub(super) fn read(root: &Path) -> Result<Vec<Crate>, String> {
    let mut folders = vec!["ros2".to_owned()];
    for place in ["crates", "lab"] {
        let entries = std::fs::read_dir(root.join(place)).map_err(|error| format!("{place}: {error}"))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        folders.extend(names.map(|name| format!("{place}/{name}")));
    }
    folders.retain(|folder| root.join(folder).join("Cargo.toml").exists());
    folders.sort();
    folders.into_iter().map(|folder| Crate::read(root, folder)).collect()
}

impl Crate {
    fn read(root: &Path, folder: String) -> Result<Self, String> {
        let source = root.join(&folder).join("src");
        let mut found = Self { folder, files: Vec::new(), modules: Vec::new() };
        // A library and a program next to it have separate modules.
        for top in ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().filter(|it| it.exists())
        {
            found.load(root, &top, None)?;
        }
        match found.files.is_empty() {
            true => Err(format!("{}: expected lib.rs or main.rs, found neither", source.display())),
            false => Ok(found),
        }
    }

    /// Code of a crate in one file, for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("onbeat-xtask-{:?}", std::thread::current().id()));
        let root = root.join(std::process::id().to_string());
        for (path, text) in files {
            let path = root.join("a/src").join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
            std::fs::write(path, text).expect("a file is written");
        }
        let read = Self::read(&root, "a".to_owned());
        std::fs::remove_dir_all(&root).expect("the folder is removed");
        read.expect("code")
    }

    fn add_file(&mut self, root: &Path, path: &Path) -> Result<usize, String> {
        let short = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{short}: {error}"))?;
        let tokens: TokenStream = text.parse().map_err(|error| format!("{short}: {error}"))?;
        self.files.push(File { path: short, tokens: without_tests(tokens) });
        Ok(self.files.len() - 1)
    }

    /// Reads a file and its modules.
    fn load(&mut self, root: &Path, path: &Path, parent: Option<usize>) -> Result<usize, String> {
        let file = self.add_file(root, path)?;
        let tokens = self.files[file].tokens.clone();
        let name = path.file_stem().unwrap_or_default();
        let above = path.parent().unwrap_or(path);
        let folder = match parent {
            None => above.to_owned(),
            Some(_) if name == "mod" => above.to_owned(),
            Some(_) => above.join(name),
        };
        self.add_module(root, file, &tokens, parent, &folder)
    }

    fn add_module(
        &mut self,
        root: &Path,
        file: usize,
        tokens: &[TokenTree],
        parent: Option<usize>,
        folder: &Path,
    ) -> Result<usize, String> {
        let module = self.modules.len();
        self.modules.push(Module { file, parent, children: BTreeMap::new(), items: Vec::new() });
        for (item, path) in items(tokens) {
            if item.keyword != "mod" {
                self.modules[module].items.push(item);
                continue;
            }
            let below = folder.join(&item.name);
            let body = item.tokens.iter().find_map(|token| braces(token));
            if let Some(path) = path {
                // The other body of a module with two: both have the same names.
                let place = root.join(&self.files[file].path).parent().unwrap_or(root).join(path);
                self.add_file(root, &place)?;
            } else if let Some(body) = body {
                let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
                let child = self.add_module(root, file, &tokens, Some(module), &below)?;
                self.modules[module].children.insert(item.name, child);
            } else {
                let places = [below.with_extension("rs"), below.join("mod.rs")];
                let place: &PathBuf = places.iter().find(|it| it.exists()).unwrap_or(&places[0]);
                let child = self.load(root, place, Some(module))?;
                self.modules[module].children.insert(item.name, child);
            }
        }
        Ok(module)
    }
}

/// A block in braces.
fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

pub(super) fn is_punct(token: Option<&TokenTree>, letter: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == letter)
}

pub(super) fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// Removes, at every depth, the items below `#[cfg(test)]` or `#[test]`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let attribute = attribute(&tokens[place..]);
        if attribute.is_some_and(is_of_tests) {
            place = end_of_item(&tokens, place + 2);
            continue;
        }
        kept.push(match &tokens[place] {
            TokenTree::Group(group) => {
                let mut inner =
                    Group::new(group.delimiter(), without_tests(group.stream()).into_iter().collect());
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other.clone(),
        });
        place += 1;
    }
    kept
}

/// The outer attribute that these tokens begin with.
fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    match tokens {
        [hash, TokenTree::Group(group), ..] if is_punct(Some(hash), '#') => Some(group),
        _ => None,
    }
}

fn is_of_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "test" || text.starts_with("cfg(test)") || text.starts_with("cfg(all(test,")
}

/// Place behind the item, field or statement that begins at `place`.
fn end_of_item(tokens: &[TokenTree], mut place: usize) -> usize {
    while let Some(token) = tokens.get(place) {
        place += 1;
        let is_end = matches!(token, TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | ','));
        if is_end || braces(token).is_some() && !is_punct(tokens.get(place), ';') {
            break;
        }
    }
    place
}

/// The items of a module, and the path that a `#[path]` gives a module.
fn items(tokens: &[TokenTree]) -> Vec<(Item, Option<String>)> {
    let mut items = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let mut path = None;
        while is_punct(tokens.get(place), '#') {
            let is_inner = is_punct(tokens.get(place + 1), '!');
            if let Some(attribute) = attribute(&tokens[place..]) {
                let text = attribute.stream().to_string();
                path =
                    text.strip_prefix("path = \"").map(|it| it.trim_end_matches('"').to_owned()).or(path);
            }
            place += if is_inner { 3 } else { 2 };
        }
        let start = place;
        let is_visible = ident(tokens.get(place)).is_some_and(|it| it == "pub");
        let is_limited = matches!(tokens.get(place + 1), Some(TokenTree::Group(_)));
        place += usize::from(is_visible) + usize::from(is_visible && is_limited);
        let Some((keyword, behind)) = keyword(tokens, place) else { break };
        let name = match keyword.as_str() {
            "use" | "impl" | "" => String::new(),
            _ => ident(tokens.get(behind + usize::from(is_punct(tokens.get(behind), '!'))))
                .unwrap_or_default(),
        };
        place = end(tokens, behind, &keyword);
        let item = Item {
            is_public: is_visible && !is_limited,
            is_visible,
            line: tokens[start].span().start().line,
            tokens: tokens[behind..place].to_vec(),
            keyword,
            name,
        };
        items.push((item, path));
    }
    items
}

/// Keyword of the item, and the place behind it.
fn keyword(tokens: &[TokenTree], mut place: usize) -> Option<(String, usize)> {
    loop {
        let word = match tokens.get(place)? {
            TokenTree::Literal(_) => String::new(),
            TokenTree::Ident(word) => word.to_string(),
            _ => return Some((String::new(), place)),
        };
        let next = ident(tokens.get(place + 1));
        let is_prefix = match word.as_str() {
            "" | "unsafe" | "async" | "default" => true,
            // `extern "C" fn`
            "extern" => next.as_deref() != Some("crate"),
            "const" => matches!(next.as_deref(), Some("fn" | "unsafe" | "async" | "extern")),
            _ => false,
        };
        if !is_prefix {
            let known = [
                "mod",
                "use",
                "struct",
                "enum",
                "union",
                "trait",
                "type",
                "fn",
                "const",
                "static",
                "impl",
                "macro_rules",
                "extern",
            ];
            let is_known = known.contains(&word.as_str());
            return Some(if is_known { (word, place + 1) } else { (String::new(), place) });
        }
        place += 1;
    }
}

/// Place behind an item: a semicolon, or the braces that close it.
fn end(tokens: &[TokenTree], mut place: usize, keyword: &str) -> usize {
    let needs_semicolon = matches!(keyword, "use" | "const" | "static" | "type");
    while let Some(token) = tokens.get(place) {
        place += 1;
        if is_punct(Some(token), ';') || !needs_semicolon && braces(token).is_some() {
            break;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_without_tests() {
        let code = "//! Doc.\n#![forbid(unsafe_code)]\npub(crate) const fn one() {}\npub struct Two(u8);\n\
                    impl Two { #[cfg(test)] fn hidden() {} fn seen() {} }\nuse std::fmt::{self};\n\
                    #[cfg(test)]\nmod tests { fn gone() {} }\nconst THREE: [u8; 2] = { [0; 2] };\n\
                    macro_rules! four { () => {} }\nfour! {}\nextern \"C\" fn five();\n";
        let found = Crate::of(&[("lib.rs", code)]);
        let items = &found.modules[0].items;
        let names: Vec<_> = items.iter().map(|it| (it.keyword.as_str(), it.name.as_str())).collect();
        let expected = [
            ("fn", "one"),
            ("struct", "Two"),
            ("impl", ""),
            ("use", ""),
            ("const", "THREE"),
            ("macro_rules", "four"),
            ("", ""),
            ("fn", "five"),
        ];
        assert_eq!(names, expected);
        assert_eq!((items[0].line, items[0].is_public, items[1].is_public), (3, false, true));
        let code = items[2].tokens.iter().cloned().collect::<TokenStream>().to_string();
        assert!(code.contains("seen") && !code.contains("hidden"), "{code}");
    }

    #[test]
    fn modules_are_files_and_blocks() {
        let found = Crate::of(&[
            ("lib.rs", "mod a;\nmod b { fn inner() {} }\n#[cfg(test)] mod tests;"),
            ("a.rs", "mod deep;"),
            ("a/deep.rs", "fn f() {}"),
            ("main.rs", "fn main() {}"),
        ]);
        let paths: Vec<_> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a/src/lib.rs", "a/src/a.rs", "a/src/a/deep.rs", "a/src/main.rs"]);
        assert_eq!(found.modules.len(), 5);
        assert_eq!(found.modules[found.modules[0].children["b"]].file, 0);
    }
}
