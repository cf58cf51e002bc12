//! Threads that ask the bus of a cycle: for its SubDevices and their state while a page is open, and for its events.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ipc::bus::{BusClient, BusError, Outcome, Service};
use ipc::client::Client;
use serde_json::json;

use super::hub::{Hub, Slot};

/// Time from one question for the state of the bus to the next.
const EVERY: Duration = Duration::from_secs(1);

/// Questions of which one asks for the error counters of all SubDevices, too: they ride in service frames, one a cycle.
const COUNTERS: u64 = 5;

/// Starts both threads; they end with the cycle.
pub(super) fn start(hub: &Arc<Hub>, attached: u64, start_ns: u64, client: &Client) {
    // A cycle that has no room for a connection more is told in the place of the bus.
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
    match bus.call(Service::Describe) {
        Ok(Outcome::SubDevices(found)) => {
            hub.set(attached, Slot::Tree, &json!({ "kind": "tree", "sub_devices": found }));
        }
        Ok(_) => refused(hub, attached, "the running cycle does not describe its bus"),
        Err(error) => refused(hub, attached, &error.to_string()),
    }
    for number in 0_u64.. {
        while !hub.is_watched() {
            thread::sleep(EVERY);
        }
        match bus.call(Service::Status { errors: number % COUNTERS == 0, receive_times: false }) {
            Ok(Outcome::Status(status)) => {
                hub.set(attached, Slot::Bus, &json!({ "kind": "bus", "status": status }));
            }
            // A refusal may be for this moment, as while the bus is brought up.
            Ok(_) | Err(BusError::Refused { .. }) => {}
            Err(_) => return,
        }
        thread::sleep(EVERY);
    }
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
