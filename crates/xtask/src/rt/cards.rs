//! Links on true drivers, inside the virtual machine:
//! `crates/ethercat-linux/tests/network_cards.rs` on pairs of emulated network cards, and a robot
//! on a ring over two of the pairs, which is broken and closed again.

mod doctor;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::guest::{Boot, Image, Results};
use super::qmp::{Monitor, QEMU, Qemu};
use super::{interfaces, program};

/// Tests that must have run, on each pair.
const TESTS: [&str; 3] = [
    "frames_cross_between_cards_by_every_kind_of_link",
    "card_down_is_reported_and_recovers",
    "a_bus_runs_between_cards_by_every_kind_of_link",
];

/// Two cards on a cable of their own.
struct Pair {
    /// Device of qemu.
    device: &'static str,
    /// Module, and section of the results.
    driver: &'static str,
    /// End of a line that the tests say.
    wanted: &'static str,
    /// Checks of the doctor that have something to fix on it, in addition to [`MENDED`].
    mended: &'static [&'static str],
}

/// Checks of the doctor that have something to fix on each card.
const MENDED: [&str; 4] = ["nic-offloads", "nic-deferral", "nic-interrupt", "nic-ipv6"];

/// In the order of the kernel's names: eth0 and eth1 on a cable, eth2 and eth3, ... Two drivers run
/// XDP programs, the other takes none.
const PAIRS: [Pair; 3] = [
    Pair {
        device: "virtio-net-pci",
        driver: "virtio_net",
        wanted: "Xdp: AF_XDP, in the driver, copied, 1 queue",
        mended: &[],
    },
    Pair {
        device: "e1000e",
        driver: "e1000e",
        wanted: "Xdp: AF_XDP, behind the driver, copied, 1 queue",
        mended: &["nic-coalescing", "nic-power"],
    },
    Pair {
        device: IGB,
        driver: IGB,
        wanted: "Xdp: AF_XDP, in the driver, copied, 2 queues",
        mended: &["nic-coalescing", "nic-power", "nic-queues"],
    },
];

/// Card that not every qemu has.
const IGB: &str = "igb";

/// Builds the test program.
///
/// # Errors
/// The build failed.
pub(super) fn tests(root: &Path, image: &Image) -> Result<PathBuf, String> {
    program::test_of_tests(root, &image.folder, "network_cards")
}

/// Reason for which the pair of igb is left out, if it is.
pub(super) fn lack_of_igb(qemu: &Qemu) -> Option<String> {
    (!qemu.has_device(IGB)).then(|| {
        format!("{QEMU} has no device {IGB}, expected version 8.0 or later; the other cards are tested")
    })
}

/// Boots, runs the tests on each pair and the robot on a ring, and evaluates the results.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    let pairs: Vec<&Pair> =
        PAIRS.iter().filter(|pair| pair.device != IGB || lack_of_igb(&image.qemu).is_none()).collect();
    let tests = tests(root, image)?;
    let robot = super::robot(root, "20ms")?;
    // Emulated, an interface is set down in tenths of a second, and the ring is neither open nor
    // closed meanwhile.
    let robot = robot.replace("outage_time = \"80ms\"", "outage_time = \"4s\"");
    let robot = robot.replace("[bus]\n", "[bus]\nprocess_data_watchdog = \"5s\"\n");
    let mut files =
        vec![("root/cards".to_owned(), read(&tests)?), ("robot.toml".to_owned(), robot.into_bytes())];
    let drivers: Vec<&str> = pairs.iter().map(|pair| pair.driver).collect();
    for (number, module) in image.kernel.modules_of(&drivers)?.iter().enumerate() {
        files.push((format!("root/card-{number:02}.ko"), read(module)?));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, it)| (path.as_str(), it.as_slice())).collect();
    // The path of a socket is short.
    let monitor = std::env::temp_dir().join(format!("onbeat-cards-{}.qmp", std::process::id()));
    let machine = machine(&pairs, &monitor);
    let machine: Vec<&str> = machine.iter().map(String::as_str).collect();
    let boot = Boot {
        name: "cards",
        machine: &machine,
        parameters: super::QUICK,
        script: include_str!("cards.sh"),
        files: &files,
        longest: Duration::from_secs(600),
    };
    let results = image.boot_attended(&boot, &mut |section| pull_or_plug(section, &monitor));
    let _ = fs::remove_file(&monitor);
    let results = results?;
    println!("{}", results.section("kernel")?);
    println!("{}", results.section("drivers")?.replace('\n', " "));
    for Pair { driver, wanted, mended, .. } in &pairs {
        doctor::judge(&results, driver, &[&MENDED, *mended].concat())?;
        let said = results.section(driver)?;
        interfaces::all_ran(said, &TESTS)?;
        let polled = wanted.replace("Xdp:", "XdpPolled:").replace("copied,", "copied, polled,");
        let polled = Some(polled).filter(|_| image.kernel.has("CONFIG_NET_RX_BUSY_POLL"));
        for wanted in polled.iter().map(String::as_str).chain([*wanted]) {
            if !said.lines().any(|line| line.ends_with(wanted)) {
                return Err(format!("expected `{wanted}` of {driver}, found: {said}"));
            }
        }
    }
    println!("the tests passed on {}", drivers.join(", "));
    ring(&results)
}

/// Options of qemu: two CPUs, the monitor, and both cards of each pair at a hub of their own.
fn machine(pairs: &[&Pair], monitor: &Path) -> Vec<String> {
    let mut machine = ["-smp", "2", "-accel", "tcg,thread=multi", "-qmp"].map(str::to_owned).to_vec();
    machine.push(format!("unix:{},server=on,wait=off", monitor.display()));
    for (hub, pair) in pairs.iter().enumerate() {
        for (number, end) in ENDS.iter().enumerate() {
            let mut card = format!("{},netdev={end}{hub}", pair.device);
            if pair.device == IGB {
                // Functions of its virtual cards would overlap with the other card's: each has a
                // separate port.
                machine.push("-device".to_owned());
                machine.push(format!("pcie-root-port,id={end}-port,chassis={}", number + 1));
                card.push_str(&format!(",bus={end}-port"));
            }
            let netdev = format!("hubport,id={end}{hub},hubid={hub}");
            machine.extend(["-netdev".to_owned(), netdev, "-device".to_owned(), card]);
        }
    }
    machine
}

/// Beginnings of the names of netdevs, at both ends of a cable.
const ENDS: [&str; 2] = ["near", "far"];

/// Does what the script of the virtual machine requests by a section, with the cable of the first
/// pair: both of its cards lose their carrier, or get it back. (qemu 7.2 does not report it to
/// e1000e.)
fn pull_or_plug(section: &str, monitor: &Path) -> Result<(), String> {
    let plugged = match section {
        "pull first" => false,
        "plug first" => true,
        _ => return Ok(()),
    };
    let mut monitor = Monitor::connect(monitor)?;
    ENDS.iter().try_for_each(|end| monitor.set_link(&format!("{end}0"), plugged))
}

/// Checks that the run named both breaks, went on, and ended in order.
fn ring(results: &Results) -> Result<(), String> {
    let (said, exit) = (results.section("ring-said")?, results.section("ring-exit")?);
    let breaks = [
        "the ring is open between SubDevice 5 \"drive-6\" port 1 and the second interface; frames \
         now travel from both ends",
        "the ring is open between the first interface and SubDevice 0 \"drive-1\" port 0; frames \
         now travel from both ends",
    ];
    if let Some(lacking) = breaks.iter().find(|told| !said.contains(**told)) {
        return Err(format!("a ring with its cables pulled: expected `{lacking}`, found: {said}"));
    }
    let healed = said.matches("the ring is closed again after ").count();
    if healed != breaks.len() {
        return Err(format!(
            "a ring that is healed: expected {} times, found {healed}: {said}",
            breaks.len()
        ));
    }
    // An emulated CPU sometimes stalls for longer than an axis may continue without inputs: it then
    // stops, as it must.
    let held = matches!(exit, "3" | "4")
        && ["(outage)", "this computer stalled"].iter().any(|it| said.contains(it));
    if exit != "0" && !held {
        return Err(format!("exit code of the run on a ring: expected 0, found {exit}: {said}"));
    }
    let run = results.json("ring-run")?;
    println!(
        "a ring over {}: broken at either end and healed, {} cycles",
        results.section("ring")?,
        run["cycles"]
    );
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
