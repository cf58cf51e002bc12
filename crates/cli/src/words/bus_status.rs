//! The state of a running bus, in lines.

use std::fmt::Write as _;

use ipc::bus::{BusStatus, SubDeviceErrorCounters, WorkingCounter};

use onbeat::sub_devices::Described;

use super::sub_devices::place;

/// The cycle and its frames, then a line for each SubDevice that is not as it should be, or has counted errors.
pub(crate) fn text(found: &[Described], status: &BusStatus) -> String {
    let BusStatus { cycle, stage, frames_sent, frames_lost, .. } = status;
    let mut text = format!("cycle {cycle}, {stage}: {frames_sent} frames sent, {frames_lost} lost");
    let counter = |it: &WorkingCounter| match it.received {
        Some(received) => format!("{received}/{}", it.expected),
        None => format!("-/{}", it.expected),
    };
    let counters: Vec<String> = status.working_counters.iter().map(counter).collect();
    let _ = writeln!(text, "; working counters {}", shortened(&counters));
    for (it, now) in found.iter().zip(&status.sub_devices) {
        let mut remarks = Vec::new();
        if now.al_status_code != 0 {
            remarks.push(format!("AL status code {:#06x}: {}", now.al_status_code, now.al_status_text));
        }
        if !now.exchanges {
            remarks.push(format!("no process data for {} cycles", now.missed));
        }
        remarks.extend(now.errors.as_ref().and_then(errors));
        if !remarks.is_empty() {
            let who = place(it.object.position.into(), &it.object.name);
            let _ = writeln!(text, "{who}: {}", remarks.join("; "));
        }
    }
    text
}

/// The first of many.
fn shortened(counters: &[String]) -> String {
    let more = if counters.len() > MOST { ", ..." } else { "" };
    counters[..counters.len().min(MOST)].join(", ") + more
}

/// The counters that are not zero.
fn errors(counters: &SubDeviceErrorCounters) -> Option<String> {
    let ports = counters.ports.iter().enumerate().flat_map(|(port, it)| {
        let of_port = [
            (it.invalid_frames, "invalid frames"),
            (it.receive_errors, "receive errors"),
            (it.forwarded, "forwarded errors"),
            (it.lost_links, "lost links"),
        ];
        of_port.map(move |(count, what)| (count, format!("{what} at port {port}")))
    });
    let others = [
        (counters.processing_unit, "errors of the processing unit".to_owned()),
        (counters.pdi, "errors of the PDI".to_owned()),
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
