//! Any line as a request to the bus, its reply, or an event: no panic, and a parsed value is read
//! again from its own line.
#![no_main]

use std::fmt::Debug;

use ipc::bus::{Event, Reply, Request};
use libfuzzer_sys::fuzz_target;
use serde_json::{from_str, to_string};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    for line in text.lines() {
        comes_back::<Request>(line);
        comes_back::<Reply>(line);
        comes_back::<Event>(line);
    }
});

fn comes_back<T: Debug + serde::Serialize + for<'a> serde::Deserialize<'a>>(line: &str) {
    let Ok(found) = from_str::<T>(line) else { return };
    let own = to_string(&found).expect("JSON");
    let again = from_str::<T>(&own).unwrap_or_else(|error| panic!("{own}: {error}"));
    // By their lines: NaN is no equal of itself, and an unknown event has no contents.
    assert_eq!(to_string(&again).expect("JSON"), own, "{found:?}");
}
