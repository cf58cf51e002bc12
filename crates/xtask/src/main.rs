//! The project's own commands: `cargo xtask test|check|bench|fuzz`.
fn main() {}
