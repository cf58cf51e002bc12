//! Names of kernel functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Names of kernel functions, each looked up once.
#[derive(Clone, Debug, Default)]
pub struct Symbols(BTreeMap<u64, String>);

impl Symbols {
    /// Looks up the functions at these addresses in `/proc/kallsyms`, unless all were before.
    pub fn look_up(&mut self, addresses: impl IntoIterator<Item = u64>) {
        let unknown: BTreeSet<u64> = addresses.into_iter().filter(|it| !self.0.contains_key(it)).collect();
        if unknown.is_empty() {
            return;
        }
        if let Ok(file) = File::open("/proc/kallsyms") {
            self.0.extend(names_in(BufReader::new(file), &unknown));
        }
        unknown.into_iter().for_each(|address| {
            self.0.entry(address).or_insert_with(|| at(address));
        });
    }

    /// Name of the function at this address; the address, if the kernel hides the name.
    #[must_use]
    pub fn name(&self, address: u64) -> String {
        self.0.get(&address).cloned().unwrap_or_else(|| at(address))
    }
}

fn at(address: u64) -> String {
    format!("at 0x{address:x}")
}

fn names_in(symbols: impl BufRead, addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    for line in symbols.lines().map_while(Result::ok) {
        if names.len() == addresses.len() {
            break;
        }
        let mut words = line.split_ascii_whitespace();
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if let (Some(address), Some(name)) = (address, words.nth(1)) {
            if address != 0 && addresses.contains(&address) {
                names.entry(address).or_insert_with(|| name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let symbols = "ffffffff81000000 T _stext\nffffffff81100010 t hrtimer_wakeup\nbad\n";
        let names = names_in(symbols.as_bytes(), &[0xffff_ffff_8110_0010, 5].into());
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            [(0xffff_ffff_8110_0010, "hrtimer_wakeup".to_owned())]
        );
    }

    #[test]
    fn a_function_without_a_name_is_its_address() {
        let mut symbols = Symbols::default();
        symbols.look_up([5]);
        assert_eq!((symbols.name(5), symbols.name(255)), ("at 0x5".to_owned(), "at 0xff".to_owned()));
        assert_eq!(Symbols([(5, "tick".to_owned())].into()).name(5), "tick");
    }

    #[test]
    fn a_kernel_that_hides_addresses_names_nothing() {
        assert!(names_in("0000000000000000 T _stext\n".as_bytes(), &[0].into()).is_empty());
    }
}
