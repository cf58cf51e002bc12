//! Links on true drivers: `crates/ethercat-linux/tests/network_cards.rs` on pairs of emulated network cards, inside the guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::guest::{Boot, Image};
use super::{interfaces, program};

/// Tests that must have run, on each pair.
const TESTS: [&str; 3] = [
    "frames_cross_between_cards_by_every_kind_of_link",
    "a_card_that_goes_down_is_told_and_carries_frames_when_it_is_back",
    "a_bus_runs_between_cards_by_every_kind_of_link",
];

/// Pairs of cards, each on a cable of its own: section of the results, and words that one of its lines has. One driver runs
/// XDP programs, the other takes none.
const PAIRS: [(&str, &str); 2] = [
    ("virtio_net", "Xdp: AF_XDP, in the driver, copied, 1 queue"),
    ("e1000e", "Xdp: AF_XDP, behind the driver, copied, 1 queue"),
];

/// Emulated cards in the order of the kernel's names: eth0 and eth1 on a cable, eth2 and eth3.
const CARDS: &[&str] = &[
    "-netdev",
    "hubport,id=a,hubid=0",
    "-device",
    "virtio-net-pci,netdev=a",
    "-netdev",
    "hubport,id=b,hubid=0",
    "-device",
    "virtio-net-pci,netdev=b",
    "-netdev",
    "hubport,id=c,hubid=1",
    "-device",
    "e1000e,netdev=c",
    "-netdev",
    "hubport,id=d,hubid=1",
    "-device",
    "e1000e,netdev=d",
];

/// Builds the test program.
///
/// # Errors
/// The build failed.
pub(super) fn tests(root: &Path, image: &Image) -> Result<PathBuf, String> {
    program::build_test(root, &image.folder, "onbeat-ethercat-linux", "network_cards")
}

/// Boots, runs the tests on each pair, and evaluates the results.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    let tests = tests(root, image)?;
    let mut files = vec![("root/cards".to_owned(), read(&tests)?)];
    for (number, module) in image.kernel.modules_of(&["virtio_net", "e1000e"])?.iter().enumerate() {
        files.push((format!("root/card-{number:02}.ko"), read(module)?));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, it)| (path.as_str(), it.as_slice())).collect();
    let results = image.boot(&Boot {
        name: "cards",
        machine: &[&["-smp", "2", "-accel", "tcg,thread=multi"], CARDS].concat(),
        parameters: super::PARAMETERS,
        script: include_str!("cards.sh"),
        files: &files,
        longest: Duration::from_secs(420),
    })?;
    println!("{}", results.section("kernel")?);
    println!("{}", results.section("drivers")?.replace('\n', " "));
    for (driver, wanted) in PAIRS {
        let said = results.section(driver)?;
        interfaces::all_ran(said, &TESTS)?;
        if !said.lines().any(|line| line.ends_with(wanted)) {
            return Err(format!("expected `{wanted}` of {driver}, found: {said}"));
        }
    }
    println!("{} tests passed on {} drivers", TESTS.len(), PAIRS.len());
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
