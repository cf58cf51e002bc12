//! `onbeat simulate`: what it says.

use crate::common::run;

#[test]
fn without_an_interface_it_says_what_it_needs() {
    let ran = run(&["simulate"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--iface"), "{}", ran.stderr);
}
