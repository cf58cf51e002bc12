//! Any text as a script of faults: no panic, errors name their line and a column in it, and an
//! accepted fault is read again from its own words.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use onbeat::compose::segment::segment;
use onbeat::fault::{self, Targets, Timed, script};
use robot::RobotConfig;

static TARGETS: OnceLock<Targets> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let targets = TARGETS.get_or_init(targets);
    if let Err(errors) = script::parse(text, "faults.txt", targets) {
        assert!(!errors.errors.is_empty());
        for error in &errors.errors {
            assert!(error.to_string().starts_with("faults.txt:"), "{error}");
        }
    }
    for line in text.lines() {
        match Timed::parse(line, targets) {
            Ok(timed) => {
                let again = Timed::parse(&timed.to_string(), targets);
                assert_eq!(again.as_ref(), Ok(&timed), "{timed}");
            }
            Err(error) => assert!((1..=line.chars().count() + 1).contains(&error.column), "{error:?}"),
        }
    }
});

/// Six servo drives in a line.
fn targets() -> Targets {
    let text = include_str!("../../examples/six-axis.toml");
    let robot = RobotConfig::parse(text, "six-axis.toml").expect("the example");
    let mut segment = segment(&robot).expect("its segment");
    fault::targets(&robot, &mut segment)
}
