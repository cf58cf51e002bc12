//! tshark dissects a capture of the whole bring-up and 1 000 cycles.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command;
use crate::report::{Outcome, Report};

/// Cycles of the captured run.
const CYCLES: usize = 1000;

/// Captures a run of the six-axis robot and checks it with tshark.
pub(crate) fn all(root: &Path, onbeat: &Path, report: &mut Report) {
    report.step("conformance tshark", || {
        if !command::works("tshark", &["--version"]) {
            return Outcome::Skipped("no tshark (Debian: tshark)".into());
        }
        let folder = root.join("target/judges");
        let capture = folder.join("six-axis.pcapng");
        let prepared = fs::create_dir_all(&folder).map_err(|error| error.to_string());
        let judged = prepared.and_then(|()| captured_run(root, onbeat, &capture)).and_then(|()| {
            let found = dissect(&capture)?;
            println!("{found}");
            found.cover_a_run(CYCLES)
        });
        judged.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    });
}

/// Checks a capture for anything tshark reports as wrong.
pub(crate) fn file(capture: &Path, report: &mut Report) {
    report.step("dissect", || match dissect(capture) {
        Ok(found) => {
            println!("{found}");
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

fn captured_run(root: &Path, onbeat: &Path, capture: &Path) -> Result<(), String> {
    let six_axis = root.join("examples/six-axis.toml");
    let text = fs::read_to_string(&six_axis).map_err(|error| format!("{}: {error}", six_axis.display()))?;
    // A host stall must not end it with drives in fault.
    let text = text.replacen("[bus]\n", "[bus]\nprocess_data_watchdog = \"5s\"\n", 1);
    let robot = capture.with_file_name("six-axis.toml");
    fs::write(&robot, text.replacen("outage_time = \"80ms\"", "outage_time = \"2s\"", 1))
        .map_err(|error| format!("{}: {error}", robot.display()))?;
    let mut run = Command::new(onbeat);
    run.arg("run").arg(&robot).args(["--cycles", &CYCLES.to_string(), "--capture"]).arg(capture);
    command::run(&mut run)
}

/// Counts of a capture by tshark.
#[derive(Debug)]
struct Found {
    frames: usize,
    /// Returned frames that have an LRW, LRD or LWR with an increased working counter.
    answered_process_data: usize,
    sdo_requests: usize,
    sdo_responses: usize,
}

impl std::fmt::Display for Found {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { frames, answered_process_data, sdo_requests, sdo_responses } = self;
        write!(
            formatter,
            "{frames} frames, all EtherCAT, none malformed, no warning; {answered_process_data} answers to process \
             data, {sdo_requests} SDO requests and {sdo_responses} responses"
        )
    }
}

impl Found {
    /// Checks that the capture contains the frames of such a run.
    fn cover_a_run(&self, cycles: usize) -> Result<(), String> {
        let wanted = [
            ("answers to process data", self.answered_process_data, cycles),
            ("SDO requests", self.sdo_requests, 1),
            ("SDO responses", self.sdo_responses, 1),
        ];
        match wanted.iter().find(|(_, found, expected)| found < expected) {
            None => Ok(()),
            Some((what, found, expected)) => {
                Err(format!("{what}: expected {expected} at least, found {found}"))
            }
        }
    }
}

fn dissect(capture: &Path) -> Result<Found, String> {
    for (what, filter) in WRONG {
        let found = frames(capture, filter)?;
        if let Some(first) = found.first() {
            let rows = found.len();
            return Err(format!(
                "{rows} frames with {what}, the first is {first}; tshark -Y '{filter}' shows them"
            ));
        }
    }
    Ok(Found {
        frames: frames(capture, "frame")?.len(),
        answered_process_data: frames(capture, ANSWERED)?.len(),
        sdo_requests: frames(capture, "ecat_mailbox.coe.sdoreq")?.len(),
        sdo_responses: frames(capture, "ecat_mailbox.coe.sdores")?.len(),
    })
}

/// Numbers of the frames selected by a display filter.
fn frames(capture: &Path, filter: &str) -> Result<Vec<String>, String> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    Ok(command::output(&mut tshark)?.lines().map(str::to_owned).collect())
}

/// Filters for frames that must not be in a capture of ours. Severities: 0x600000 is a warning,
/// 0x800000 an error.
const WRONG: &[(&str, &str)] = &[
    ("another protocol than EtherCAT", "not ecat"),
    ("a malformed part", "_ws.malformed"),
    ("a warning or an error of the dissector", "_ws.expert.severity >= 0x600000"),
    (
        "bytes tshark has no meaning for",
        "data.data or _ws.unreassembled or _ws.short or ecat_mailbox.invalid or ecat_mailbox.coe.invalid",
    ),
];

/// Filter for returned frames: the first ESC sets bit 1 of the source address.
const ANSWERED: &str =
    "(ecat.cmd == 10 or ecat.cmd == 11 or ecat.cmd == 12) and ecat.cnt > 0 and eth.src[0] & 02";
