//! Results computed of a bus, for people and for programs.

use std::fmt::Write as _;

use report::{Row, Table};
use robot::FrameOrder;
use schedulability::bus::{LinkRate, Network, Range, frame_bytes, wire_time_ns};
use serde_json::{Value, json};

use super::BusFound;
use crate::commands::analyse::time;
use cli::words::sub_device_count;

/// Numbers, table, verdict.
pub(super) fn text(file: &str, found: &BusFound) -> String {
    let network = &found.network;
    let period = found.period_ns();
    let mut text = format!(
        "{file}: the bus of {}, {} at {}, period {}, {}\n\n",
        found.robot.name,
        sub_device_count(network.sub_devices as usize),
        match found.rate {
            LinkRate::Mbit100 => "100 Mbit/s",
            LinkRate::Gbit1 => "1 Gbit/s",
        },
        time(period),
        order(found),
    );
    text.push_str("computed  how long the frames of a cycle take, and an event from an input through the controller to an output\n");
    text.push_str("good      a round trip and the computing fit into the period, with room for what was not foreseen\n\n");
    let frames = network.frames.iter().map(|&datagrams| {
        format!("{} bytes ({})", frame_bytes(datagrams), time(wire_time_ns(datagrams, network.rate)))
    });
    let frames: Vec<String> = frames.collect();
    let share = network.occupied_ns() as f64 / period as f64 * 100.0;
    let _ = writeln!(text, "frames of a cycle    {}", frames.join(", "));
    let _ =
        writeln!(text, "on the wire         {} of each period, {share:.1} %", time(network.occupied_ns()));
    let _ = writeln!(
        text,
        "forwarding          {} x {}, cables {}",
        sub_device_count(network.sub_devices as usize),
        time(network.forward_ns),
        time(network.cables_ns)
    );
    let _ = writeln!(text, "round trip          {}", time(network.round_trip_ns()));
    let computing = time(found.computing_ns);
    let _ =
        writeln!(text, "shortest period     {} with {computing} of computing", time(found.shortest_ns()));
    let spread = &found.spread;
    let _ = writeln!(
        text,
        "one missing         {} bytes in {} frames ({}), shortest period {}\n",
        spread.frames.iter().map(|&datagrams| frame_bytes(datagrams)).sum::<usize>(),
        spread.frames.len(),
        time(spread.occupied_ns()),
        time(spread.shortest_period_ns(found.computing_ns)),
    );
    let rows = found.ways.iter().map(|(sampling, way)| {
        let latency = way.latency();
        let cells = [latency.sensor, latency.command, latency.total].map(|range| cycles(range, period));
        Row { name: (*sampling).to_owned(), cells: cells.into(), from_paper: false }
    });
    let table = Table {
        caption: "From event to reaction, in periods, by when SubDevices sample".into(),
        columns: ["sampling", "input to controller", "controller to output", "in all"]
            .map(String::from)
            .into(),
        rows: rows.collect(),
    };
    let _ = writeln!(text, "{}", table.text());
    text.push_str(&if found.holds() {
        format!("holds: {} of {} are left in each period\n", time(period - found.shortest_ns()), time(period))
    } else {
        format!(
            "does not hold: the period of {} is {} too short; the smallest change that helps is a period of {}\n",
            time(period),
            time(found.shortest_ns() - period),
            time(found.shortest_ns())
        )
    });
    text
}

/// One object.
pub(super) fn json(found: &BusFound) -> Value {
    let network = &found.network;
    let bytes = |network: &Network| network.frames.iter().map(|&it| frame_bytes(it)).collect::<Vec<_>>();
    let ways: Vec<Value> = found
        .ways
        .iter()
        .map(|(sampling, way)| {
            let latency = way.latency();
            json!({
                "sampling": sampling,
                "sensor_ns": latency.sensor,
                "command_ns": latency.command,
                "total_ns": latency.total,
            })
        })
        .collect();
    json!({
        "bus": {
            "sub_devices": network.sub_devices,
            "period_ns": found.period_ns(),
            "frame_bytes": bytes(network),
            "wire_ns": network.occupied_ns(),
            "round_trip_ns": network.round_trip_ns(),
            "shortest_period_ns": found.shortest_ns(),
            "holds": found.holds(),
            "somebody_missing": {
                "frame_bytes": bytes(&found.spread),
                "wire_ns": found.spread.occupied_ns(),
                "shortest_period_ns": found.spread.shortest_period_ns(found.computing_ns),
            },
        },
        "latency": ways,
    })
}

fn order(found: &BusFound) -> &'static str {
    match found.robot.cycle.frame_order {
        FrameOrder::ReplyOfLastCycle => "working with the reply of the last cycle",
        FrameOrder::WaitForReply => "waiting for the reply",
    }
}

fn cycles((shortest, longest): Range, period: u64) -> String {
    let cycles = |ns: u64| ns as f64 / period as f64;
    if shortest == longest {
        format!("{:.2}", cycles(shortest))
    } else {
        format!("{:.2} to {:.2}", cycles(shortest), cycles(longest))
    }
}
