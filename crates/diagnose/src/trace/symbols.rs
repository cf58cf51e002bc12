//! Names of kernel functions.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Names of the functions at these addresses, from `/proc/kallsyms`; hidden and unknown ones are left out.
#[must_use]
pub fn names(addresses: &[u64]) -> BTreeMap<u64, String> {
    match File::open("/proc/kallsyms") {
        Ok(file) => names_in(BufReader::new(file), addresses),
        Err(_) => BTreeMap::new(),
    }
}

fn names_in(symbols: impl BufRead, addresses: &[u64]) -> BTreeMap<u64, String> {
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
        let names = names_in(symbols.as_bytes(), &[0xffff_ffff_8110_0010, 5]);
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            [(0xffff_ffff_8110_0010, "hrtimer_wakeup".to_owned())]
        );
    }

    #[test]
    fn a_kernel_that_hides_addresses_names_nothing() {
        assert!(names_in("0000000000000000 T _stext\n".as_bytes(), &[0]).is_empty());
    }
}
