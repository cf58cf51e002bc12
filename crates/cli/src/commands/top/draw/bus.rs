//! The bus: its SubDevices with their states, clocks and error counters, and the working counters.

use ipc::diagnostics::{BusDiagnosis, SubDeviceDiagnosis};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use serde::Deserialize;

use super::super::picture::Picture;
use super::details::{render_lines, table};

/// Lines of the whole bus part; 0 without a report on the bus.
pub(super) fn rows(picture: &Picture) -> usize {
    lines(picture).len()
}

/// Draws it from the line numbered `scroll` on, below its title.
pub(super) fn render(picture: &Picture, scroll: usize, area: Rect, buffer: &mut Buffer) {
    render_lines("bus", lines(picture), scroll, area, buffer);
}

fn lines(picture: &Picture) -> Vec<Line<'static>> {
    let part = picture.diagnostics.as_ref().and_then(|it| it.get("bus_diagnosis"));
    let Some(Ok(bus)) = part.map(BusDiagnosis::deserialize) else { return Vec::new() };
    let history = &bus.working_counter_history;
    let mut working = format!(" working counters short in {} cycles", history.short_cycles);
    if let Some(last) = history.changes.last() {
        working += &match last.received {
            _ if last.short == 0 => format!(", all complete since cycle {}", last.cycle),
            Some(received) => format!(
                ", since cycle {} {} short, the first is datagram {}: {received}/{}",
                last.cycle, last.short, last.datagram, last.expected
            ),
            None => format!(", frames lost since cycle {}", last.cycle),
        };
    }
    let mut clocks =
        bus.clock_spread_ns.map_or(String::new(), |ns| format!("   clocks spread over {ns} ns"));
    if let Some(position) = bus.reference_clock {
        clocks += &format!(", reference SubDevice {position}");
    }
    let mut lines = vec![Line::raw(working + &clocks)];
    let told: Vec<_> = bus.sub_devices.iter().map(cells).collect();
    if !told.is_empty() {
        lines.extend(table("SubDevices: errors of all ports together, port by port in onbeat diag", &told));
    }
    if bus.left_out > 0 {
        lines.push(Line::raw(format!("   {} more", bus.left_out)));
    }
    lines
}

fn cells(it: &SubDeviceDiagnosis) -> Vec<(String, String)> {
    let state = match it.al_status_code {
        0 => it.state.clone(),
        code => format!("{} 0x{code:04X}", it.state),
    };
    let links = it
        .links
        .as_ref()
        .map_or("-".to_owned(), |ports| ports.iter().map(u8::to_string).collect::<Vec<_>>().join(","));
    let cells = [
        ("SubDevice", format!("{} {}", it.position, it.name)),
        ("state", state),
        ("missed", it.missed.to_string()),
        ("clock ns", it.clock_difference_ns.map_or("-".to_owned(), |ns| ns.to_string())),
        ("links", links),
        ("invalid", it.sum(|port| port.invalid_frames).to_string()),
        ("RX", it.sum(|port| port.rx_errors).to_string()),
        ("forwarded", it.sum(|port| port.forwarded_rx_errors).to_string()),
        ("lost", it.sum(|port| port.lost_links).to_string()),
        ("proc", it.processing_unit_errors.to_string()),
        ("PDI", it.pdi_errors.to_string()),
    ];
    // Last column, and only if a SubDevice has a value: a narrow terminal shows the counters.
    let sync0 = it.sync0.map(|it| ("SYNC0 us", format!("{:.1}", it.frame_phase_ns as f64 / 1e3)));
    cells.into_iter().chain(sync0).map(|(head, cell)| (head.to_owned(), cell)).collect()
}
