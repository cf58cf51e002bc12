//! Names that types of many crates share: a search for them finds the wrong ones.

use std::collections::BTreeMap;

use super::crates::Crate;
use super::ratchet::{Figure, Figures, Rule};

pub(super) const SHARED: Rule = Rule {
    name: "names of types",
    key: "type",
    unit: "crates declare a type of this name",
    allowed: 3,
    remedy: "give it a name that a search finds",
};

pub(super) fn shared(crates: &[Crate]) -> Figures {
    let mut places: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for code in crates {
        for module in &code.modules {
            let is_type = |keyword: &str| matches!(keyword, "struct" | "enum" | "union" | "trait" | "type");
            for item in module.items.iter().filter(|item| is_type(&item.keyword)) {
                let place = format!("{}:{}", code.files[module.file].path, item.line);
                places.entry(&item.name).or_default().entry(&code.folder).or_default().push(place);
            }
        }
    }
    let figure = |(name, crates): (&str, BTreeMap<&str, Vec<String>>)| {
        let value = crates.len();
        (name.to_owned(), Figure { value, at: crates.into_values().flatten().collect() })
    };
    places.into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_once_for_each_crate() {
        let code = "struct Kind; mod a { enum Kind {} } impl Kind {} fn f() { struct Inner; }";
        let found = shared(&[Crate::of(&[("lib.rs", code)])]);
        assert_eq!(found.len(), 1);
        assert_eq!((found["Kind"].value, found["Kind"].at.len()), (1, 2));
    }
}
