//! The binary `onbeat`: composition, and words for people.
fn main() {}
