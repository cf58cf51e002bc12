//! Any text as a robot file: no panic, an error is one sentence with its place, and an accepted
//! file has only finite numbers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use robot::RobotConfig;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    match RobotConfig::parse(text, "robot.toml") {
        Err(error) => {
            assert!(error.to_string().starts_with("robot.toml:"), "{error}");
            assert_eq!(RobotConfig::problems(text, "robot.toml").first(), Some(&error));
        }
        Ok(robot) => {
            let _ = robot.doubts();
            let shown = format!("{robot:?}");
            assert!(!without_names(&shown).any(|word| matches!(word, "NaN" | "inf")), "{shown}");
        }
    }
});

/// The words that `Debug` shows, without what people have named.
fn without_names(shown: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    let outside = shown.split(move |letter| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    let outside = outside.filter(move |_| {
        quoted = !quoted;
        quoted
    });
    outside.flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric()))
}
