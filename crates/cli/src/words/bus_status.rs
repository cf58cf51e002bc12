//! The state of a running bus, in lines.

use std::fmt::Write as _;

use control::bus::sub_device;
use ipc::bus::{BusStatus, ErrorCounters, WorkingCounter};

use onbeat::sub_devices::Described;

/// The cycle and its frames, then a line for each SubDevice that is not as it should be, or has
/// counted errors.
pub(crate) fn text(found: &[Described], status: &BusStatus) -> String {
    let BusStatus { cycle, phase, frames_sent, frames_lost, .. } = status;
    let mut text = format!("cycle {cycle}, {phase}: {frames_sent} frames sent, {frames_lost} lost");
    let _ = writeln!(text, "; working counters {}", working_counters(status));
    for (it, now) in found.iter().zip(&status.sub_devices) {
        let mut remarks = Vec::new();
        if now.al_status_code != 0 {
            remarks.push(format!("AL status code {:#06x}: {}", now.al_status_code, now.al_status_text));
        }
        if now.is_absent() {
            remarks.push("not on the bus, and need not be".to_owned());
        } else if now.waits {
            remarks.push("no process data until all of its group are there".to_owned());
        } else if !now.exchanges {
            remarks.push(format!("no process data for {} cycles", now.missed));
        }
        remarks.extend(now.errors.as_ref().and_then(errors));
        if !remarks.is_empty() {
            let device = sub_device(it.object.position.into(), &it.object.name);
            let _ = writeln!(text, "{device}: {}", remarks.join("; "));
        }
    }
    text
}

/// The working counters of the cycle, as far as they are worth reading.
pub(super) fn working_counters(status: &BusStatus) -> String {
    let counter = |it: &WorkingCounter| counter(it.received, it.expected);
    shortened(&status.working_counters.iter().map(counter).collect::<Vec<_>>())
}

/// A working counter and its expected value.
pub(super) fn counter(received: Option<u16>, expected: u16) -> String {
    received.map_or_else(|| format!("-/{expected}"), |received| format!("{received}/{expected}"))
}

/// The first of many.
fn shortened(counters: &[String]) -> String {
    let more = if counters.len() > MOST { ", ..." } else { "" };
    counters[..counters.len().min(MOST)].join(", ") + more
}

/// The counters that are not zero.
fn errors(counters: &ErrorCounters) -> Option<String> {
    let ports = counters.ports.iter().enumerate().flat_map(|(port, it)| {
        let of_port = [
            (it.invalid_frames, "invalid frames"),
            (it.rx_errors, "RX errors"),
            (it.forwarded_rx_errors, "forwarded RX errors"),
            (it.lost_links, "lost links"),
        ];
        of_port.map(move |(count, what)| (count, format!("{what} at port {port}")))
    });
    let others = [
        (counters.processing_unit_errors, "errors of the processing unit".to_owned()),
        (counters.pdi_errors, "errors of the PDI".to_owned()),
    ];
    let words: Vec<String> = ports
        .chain(others)
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Working counters shown.
const MOST: usize = 16;
