//! ~/events: state changes, emergencies, losses, returns and stops, each with the number of its
//! cycle.
//!
//! A thread of each attachment reads them from the cycle's process; it ends with the cycle.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use ipc::bus::{Event, Severity};
use ipc::client::Client;
use ipc::description::Description;
use serde_json::Value;

use super::diagnostics::{flatten, pair, status};
use super::{Endpoints, Moment};
use crate::clock::WallClock;
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::Header;
use crate::messages::sensor::{DiagnosticArray, DiagnosticStatus, Level};

/// Writer, and the subscription of the current attachment.
pub(crate) struct Events {
    writer: Writer,
    coming: Option<Receiver<Read>>,
    is_pressed: bool,
}

/// An event, or the number of events dropped before they were read.
type Read = Result<Event, u64>;

/// Events published in one turn: a reader keeps ten samples.
const AT_ONCE: usize = 8;

impl Events {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        let writer = endpoints.publish("~/events", "diagnostic_msgs/DiagnosticArray", Quality::Reliable)?;
        Ok(Self { writer, coming: None, is_pressed: false })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        let Some(robot) = moment.robot.as_deref() else {
            self.coming = None;
            return;
        };
        let coming = self.coming.get_or_insert_with(|| subscribe(robot.path()));
        let mut sent = 0;
        for read in coming.try_iter().take(AT_ONCE) {
            let message = match read {
                Ok(event) => told(&event, robot.description(), moment.node.base()),
                Err(missed) => {
                    moment.voice.warn("events", format_args!("{missed} events were missed"));
                    continue;
                }
            };
            self.writer.send(&message);
            sent += 1;
        }
        self.is_pressed = sent == AT_ONCE;
    }

    /// True if more events may wait.
    pub(crate) fn is_pressed(&self) -> bool {
        self.is_pressed
    }
}

/// Events kept by the cycle, then new ones.
fn subscribe(path: &Path) -> Receiver<Read> {
    let (events, coming) = channel();
    let path = path.to_owned();
    std::thread::spawn(move || read(path, &events));
    coming
}

fn read(path: PathBuf, events: &Sender<Read>) {
    let subscribed = Client::open(&path).ok().and_then(|client| client.bus().ok()?.events(true).ok());
    for event in subscribed.into_iter().flatten() {
        if events.send(event).is_err() {
            break;
        }
    }
}

fn told(event: &Event, robot: &Description, node: &str) -> DiagnosticArray {
    let stamp = WallClock::now().stamp(event.at_ns);
    let document = serde_json::to_value(&event.what).unwrap_or_default();
    let name = document["event"].as_str().unwrap_or_default();
    let mut values = vec![pair("cycle", event.cycle)];
    if let Value::Object(fields) = &document {
        let fields = fields.iter().filter(|(key, _)| *key != "event");
        fields.for_each(|(key, value)| flatten(key, value, &mut values));
    }
    if let Some(ends) = event.between.and_then(|ends| serde_json::to_value(ends).ok()) {
        flatten("between", &ends, &mut values);
    }
    let told = status(&format!("{node}: {name}"), level(event.severity), event.sentence.clone(), values);
    let told = DiagnosticStatus { hardware_id: robot.robot.clone(), ..told };
    DiagnosticArray { header: Header { stamp, frame_id: String::new() }, status: vec![told] }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Ok => Level::Ok,
        Severity::Warning => Level::Warn,
        Severity::Error => Level::Error,
    }
}
