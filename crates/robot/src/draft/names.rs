//! Names of types and of SubDevices: short, of letters that need no quotes, each of them once.

use std::collections::HashSet;

use super::found::Found;

/// Longest name of a type.
const LONGEST: usize = 24;

/// Name of a type of SubDevice: the first word of its order number, or of its name. If the names
/// differ by a number, their common part. `None` if they have nothing in common.
pub(super) fn of_type(all: &[&Found]) -> Option<String> {
    let texts: Vec<String> = all.iter().map(|it| first_word(it)).collect();
    let first = texts.first().cloned().unwrap_or_default();
    let differ = texts.iter().any(|it| *it != first);
    let mut name = first;
    if differ {
        name = texts.iter().fold(name, |name, other| {
            let same = name.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
            name.chars().take(same).collect()
        });
        let number = |text: &String| text[name.len()..].chars().all(|it| it.is_ascii_digit() || it == '-');
        if !texts.iter().all(number) {
            return None;
        }
        name = name.trim_end_matches(|it: char| it.is_ascii_digit()).to_owned();
    }
    let name: String = name.chars().take(LONGEST).collect();
    Some(name.trim_matches('-').to_owned()).filter(|it| !it.is_empty())
}

/// Names of several that are called differently, if no two are called alike.
pub(super) fn of_each(all: &[&Found]) -> Option<Vec<String>> {
    let names: Vec<String> = all.iter().map(|it| first_word(it).chars().take(LONGEST).collect()).collect();
    let distinct: HashSet<&String> = names.iter().filter(|it| !it.is_empty()).collect();
    (distinct.len() == names.len() && names.len() > 1).then_some(names)
}

fn first_word(found: &Found) -> String {
    let word = |text: &str| {
        let words = text.split(|it: char| it.is_whitespace() || it.is_control() || it == ',');
        let plain = words.map(|word| {
            let letters = word
                .chars()
                .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' });
            letters.collect::<String>().trim_matches('-').to_owned()
        });
        plain.into_iter().find(|word| word.len() >= 2)
    };
    word(&found.order).or_else(|| word(&found.name)).unwrap_or_default()
}

/// Names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A name like `wanted` for a type with `count` SubDevices, so that their names are free, too:
    /// its own, or with a number.
    pub(super) fn give(&mut self, wanted: &str, count: usize) -> String {
        // Names of types have no underscore, so a numbered one never equals another type's name.
        let candidates = (1_u64..).map(|number| match number {
            1 => wanted.to_owned(),
            number => format!("{wanted}_{number}"),
        });
        let members =
            |name: &String| (1..=count).map(|number| member(name, count, number)).collect::<Vec<_>>();
        let mut free = candidates.filter(|name| {
            !self.taken.contains(name) && members(name).iter().all(|it| !self.taken.contains(it))
        });
        let name = free.next().unwrap_or_default();
        self.taken.extend(members(&name));
        self.taken.insert(name.clone());
        name
    }
}

/// Name of a SubDevice: the name of its type, with its number if there are several.
pub(super) fn member(name: &str, count: usize, number: usize) -> String {
    if count == 1 { name.to_owned() } else { format!("{name}-{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(order: &str, name: &str) -> Found {
        Found { order: order.to_owned(), name: name.to_owned(), ..Found::default() }
    }

    #[test]
    fn a_type_is_called_as_its_maker_calls_it() {
        let of = |all: &[Found]| of_type(&all.iter().collect::<Vec<_>>());
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(of(&[found("EL7211-0010", "EL7211 servo")]), named("el7211-0010"));
        assert_eq!(of(&[found("", "AKD EtherCAT Drive (CoE)")]), named("akd"));
        assert_eq!(of(&[found("drive-1", "drive-1"), found("drive-12", "drive-12")]), named("drive"));
        assert_eq!(of(&[found("", "\u{0}\n"), found("", "")]), None);
        assert_eq!(of(&[found("Ärger", "")]), named("rger"));
        let limbs = [found("arm", ""), found("axe", "")];
        assert_eq!(of(&limbs), None);
        assert_eq!(of_each(&[&limbs[0], &limbs[1]]), Some(vec!["arm".to_owned(), "axe".to_owned()]));
        assert_eq!(of_each(&[&limbs[0], &limbs[0]]), None);
    }

    #[test]
    fn every_name_is_given_once() {
        let mut names = Names::default();
        assert_eq!(names.give("el2004", 2), "el2004");
        assert_eq!(names.give("el2004-2", 1), "el2004-2_2");
        assert_eq!(names.give("el2004", 2), "el2004_2");
        assert_eq!((names.give("akd", 1), names.give("akd", 2)), ("akd".to_owned(), "akd_2".to_owned()));
    }
}
