//! Threads that ask the bus of a cycle: for its SubDevices and their state while a page is open,
//! and for its events.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ipc::bus::{BusClient, BusError, BusStatus, Outcome, Service};
use ipc::client::Client;
use serde_json::{Value, json};

use super::hub::{Hub, Slot};

/// Time from one question for the state of the bus to the next.
const EVERY: Duration = Duration::from_secs(1);

/// Questions of which one asks for the error counters of all SubDevices, too: they ride in service
/// frames, one a cycle.
const COUNTERS: u64 = 5;

/// Starts both threads; they end with the cycle.
pub(super) fn start(hub: &Arc<Hub>, attached: u64, start_ns: u64, client: &Client) {
    // A cycle without a free connection is shown in place of the bus.
    match (client.bus(), client.bus()) {
        (Ok(bus), Ok(events)) => {
            let hubs = (Arc::clone(hub), Arc::clone(hub));
            let asked = spawn("bus", move || ask(&hubs.0, attached, bus));
            let told = spawn("events", move || tell(&hubs.1, start_ns, events));
            if let Err(error) = asked.and(told) {
                refused(hub, attached, &error.to_string());
            }
        }
        (Err(error), _) | (_, Err(error)) => refused(hub, attached, &error.to_string()),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn refused(hub: &Hub, attached: u64, why: &str) {
    hub.set(attached, Slot::Tree, &json!({ "kind": "tree", "why": why }));
}

/// Asks until the cycle ends.
fn ask(hub: &Hub, attached: u64, mut bus: BusClient) {
    let mut found = match bus.call(Service::Describe) {
        Ok(Outcome::SubDevices(found)) => {
            hub.set(attached, Slot::Tree, &tree(&found));
            found
        }
        Ok(_) => {
            refused(hub, attached, "the running cycle does not describe its bus");
            Value::Null
        }
        Err(error) => {
            refused(hub, attached, &error.to_string());
            Value::Null
        }
    };
    for number in 0_u64.. {
        while !hub.is_watched() {
            thread::sleep(EVERY);
        }
        match bus.call(Service::Status { errors: number % COUNTERS == 0, receive_times: false }) {
            Ok(Outcome::Status(status)) => {
                if moved(&mut found, &status) {
                    hub.set(attached, Slot::Tree, &tree(&found));
                }
                hub.set(attached, Slot::Bus, &json!({ "kind": "bus", "status": status }));
            }
            // A refusal may be for this moment, as while the bus is brought up.
            Ok(_) | Err(BusError::Refused { .. }) => {}
            Err(_) => return,
        }
        thread::sleep(EVERY);
    }
}

fn tree(found: &Value) -> Value {
    json!({ "kind": "tree", "sub_devices": found })
}

/// Notes in the tree where SubDevices hang now; true if it is another than before.
fn moved(found: &mut Value, status: &BusStatus) -> bool {
    let mut moved = false;
    for (it, now) in found.as_array_mut().into_iter().flatten().zip(&status.sub_devices) {
        let place = |it: &Value| [&it["upstream"], &it["entry_port"]].map(Value::clone);
        let before = place(it);
        now.describe(it);
        moved |= place(it) != before;
    }
    moved
}

/// Passes the events on until the cycle ends; `start_ns`: zero of the scope's axis.
fn tell(hub: &Hub, start_ns: u64, bus: BusClient) {
    let Ok(events) = bus.events(true) else { return };
    for event in events {
        hub.event(&match event {
            Ok(event) => {
                let time = event.at_ns as f64 / 1e9 - start_ns as f64 / 1e9;
                json!({ "kind": "event", "time": time, "event": event })
            }
            Err(missed) => json!({ "kind": "events_missed", "count": missed }),
        });
    }
}

#[cfg(test)]
mod tests {
    use ipc::bus::{CableEnd, SubDeviceStatus};

    use super::*;

    // feature(program): the tree of the bus is that of now: one that joins or is plugged elsewhere is drawn where it hangs
    #[test]
    fn the_tree_is_sent_again_when_the_topology_changes() {
        let end = |position, port| CableEnd { position, port: Some(port) };
        let hangs_on = |above| {
            let cable = Some([above, end(Some(1), 0)]);
            BusStatus {
                sub_devices: vec![
                    SubDeviceStatus::default(),
                    SubDeviceStatus { cable, ..SubDeviceStatus::default() },
                ],
                ..BusStatus::default()
            }
        };
        let mut found = json!([{ "name": "hub", "upstream": null, "entry_port": 0 },
            { "name": "tool", "upstream": { "position": 0, "port": 1 }, "entry_port": 0 }]);
        assert!(!moved(&mut found, &hangs_on(end(Some(0), 1))), "{found}");
        assert!(moved(&mut found, &hangs_on(end(Some(0), 3))), "{found}");
        assert_eq!(tree(&found)["sub_devices"][1]["upstream"], json!({ "position": 0, "port": 3 }));
        assert_eq!(found[0]["upstream"], Value::Null);
        assert!(moved(&mut found, &hangs_on(end(None, 0))) && found[1]["upstream"].is_null(), "{found}");
    }
}
