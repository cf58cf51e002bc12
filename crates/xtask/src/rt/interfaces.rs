//! Drivers on the kernel's I2C, SPI and GPIO: `crates/devices/tests/linux_interfaces.rs`, inside
//! the virtual machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::guest::{Boot, Image};
use super::program;

/// Tests that must have run.
const TESTS: [&str; 6] = [
    "kernel_i2c_imu_is_set_up_read_lost_and_found_again",
    "kernel_i2c_myahrs_gives_orientation_and_skips_invalid_data",
    "silent_address_is_named_with_its_bus",
    "sonar_lines_are_triggered_and_missing_echo_is_reported",
    "a_strip_behind_the_kernels_spi_takes_frame_after_frame",
    "kernel_spi_carries_words_and_no_encoder_means_no_motion",
];

/// Modules of each interface, by the name under which the script loads them. The script itself
/// loads `i2c-stub`, which needs its chip as a parameter. Debian's kernel has neither `gpio-sim`
/// nor `gpio-mockup`: the test itself is a chip on USB.
const MODULES: [(&str, &[&str]); 3] =
    [("i2c", &["i2c-dev"]), ("spi", &["parport_pc", "spi-lm70llp"]), ("gpio", &["uhid", "hid-cp2112"])];

/// Builds the test program.
///
/// # Errors
/// The build failed.
pub(super) fn tests(root: &Path, image: &Image) -> Result<PathBuf, String> {
    program::test_of_tests(root, &image.folder, "linux_interfaces")
}

/// Boots, runs the tests, and evaluates the results.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    let tests = tests(root, image)?;
    let mut files = vec![("root/interfaces".to_owned(), read(&tests)?)];
    for (interface, modules) in MODULES {
        for (number, module) in image.kernel.modules_of(modules)?.iter().enumerate() {
            files.push((format!("root/{interface}-{number:02}.ko"), read(module)?));
        }
    }
    let stub = image.kernel.modules_of(&["i2c-stub"])?;
    let [stub] = &stub[..] else { return Err(format!("i2c-stub needs more than itself: {stub:?}")) };
    files.push(("root/stub.ko".to_owned(), read(stub)?));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, it)| (path.as_str(), it.as_slice())).collect();
    let results = image.boot(&Boot {
        name: "interfaces",
        // The parallel port exists, with nothing at its other end.
        machine: &["-smp", "2", "-accel", "tcg,thread=multi", "-parallel", "null"],
        parameters: super::QUICK,
        script: include_str!("interfaces.sh"),
        files: &files,
        longest: Duration::from_secs(240),
    })?;
    println!("{}", results.section("kernel")?);
    println!("{}", results.section("devices")?.replace('\n', " "));
    let said = results.section("said")?;
    if results.section("exit")? != "0" {
        return Err(format!("the tests failed: {said}"));
    }
    all_ran(said, &TESTS)?;
    println!("{} tests passed on the kernel's interfaces", TESTS.len());
    Ok(())
}

/// Checks that none of these tests was left out or skipped itself.
pub(super) fn all_ran(said: &str, tests: &[&str]) -> Result<(), String> {
    if let Some(skipped) = said.lines().find(|line| line.contains("skipped: ")) {
        return Err(format!("expected no test to be skipped, found: {skipped}"));
    }
    let passed = |test: &&str| {
        let start = said.find(&format!("test {test} ..."));
        start.is_some_and(|start| said[start..].lines().any(|line| line.ends_with("ok")))
    };
    match tests.iter().find(|test| !passed(test)) {
        Some(test) => Err(format!("the test {test} did not run: {said}")),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_skipped_itself_or_did_not_run_is_no_success() {
        let whole: String = TESTS.iter().map(|test| format!("test {test} ... ok\n")).collect();
        assert_eq!(all_ran(&whole, &TESTS), Ok(()));
        let skipped = whole.replacen("... ok", "... skipped: needs a bus\nok", 1);
        assert!(all_ran(&skipped, &TESTS).is_err_and(|why| why.ends_with("needs a bus")));
        let less = whole.replacen(TESTS[1], "another", 1);
        assert!(all_ran(&less, &TESTS).is_err_and(|why| why.contains("did not run")));
    }
}
