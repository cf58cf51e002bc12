//! Runs in which tasks wait for their devices' answers, as the paper's do: each device alone, then
//! all together.

use ::devices::Peripheral;
use record::recording::Facts;
use report::{Report, Row, Section, Table};
use serde_json::json;

use super::response::{self, Answered};
use super::{Devices, statistics};
use crate::distribution;
use crate::raw::{Raw, facts};
use crate::{Context, Error};

/// Runs with tasks that wait for their devices.
#[derive(Default)]
pub(super) struct Waited {
    pub(super) alone: Vec<Answered>,
    pub(super) together: Vec<Answered>,
}

impl Waited {
    /// Runs the devices with tasks that wait for them, and records their commands.
    pub(super) fn run(devices: &Devices, context: &Context) -> Result<Self, Error> {
        let mut waited = Self::default();
        for it in devices.alone() {
            context.say(format_args!("devices: {} alone, waited for", it.name));
            waited.alone.extend(response::conduct(std::slice::from_ref(&it), devices.waiting, context)?);
        }
        context.say("devices: all together, waited for");
        waited.together = response::conduct(&devices.peripherals, devices.waiting, context)?;
        for (what, all) in [("alone", &waited.alone), ("together", &waited.together)] {
            for (it, answered) in devices.peripherals.iter().zip(all) {
                let settings =
                    facts([("task", it.name.as_str().into()), ("device", answered.device.as_str().into())]);
                let mut raw =
                    Raw::begin(context, &format!("{}-{what}", it.name), "command", &STAMPS, settings)?;
                let columns = [0, 1, 2, 3, 4, 5, 6].map(|place| answered.column(place));
                raw.append(&columns.each_ref().map(Vec::as_slice))?;
                raw.finish(facts([("lost", answered.lost.into())]))?;
            }
        }
        Ok(waited)
    }

    /// Tables of responses, of each device alone and of all together.
    pub(super) fn sections(&self, peripherals: &[Peripheral]) -> [Section; 3] {
        let alone = table(peripherals, "Each device alone", &self.alone);
        let together = table(peripherals, "All devices together", &self.together);
        [alone, together, Section::Text(WAITING.into())]
    }

    /// The same as values for programs.
    pub(super) fn values(&self, peripherals: &[Peripheral]) -> Facts {
        let value = |(it, answered): (&Peripheral, &Answered)| {
            json!({
                "name": it.name,
                "period_ns": statistics(&answered.periods()),
                "response_ns": statistics(&answered.responses()),
                "parts_ns": answered.parts(),
                "lost": answered.lost,
                "device": answered.device,
            })
        };
        let of = |all: &[Answered]| peripherals.iter().zip(all).map(value).collect();
        facts([("alone", of(&self.alone)), ("together", of(&self.together))])
    }

    /// Adds warnings on commands without an answer.
    pub(super) fn warn(&self, peripherals: &[Peripheral], report: &mut Report) {
        for (what, all) in [("alone", &self.alone), ("with the others", &self.together)] {
            for (it, answered) in peripherals.iter().zip(all) {
                answered.refusals.iter().for_each(|refusal| report.warn(refusal.as_str()));
                if answered.lost > 0 {
                    let (name, lost, device) = (&it.name, answered.lost, &answered.device);
                    report.warn(format!(
                        "{lost} commands of {name} {what} had no answer in their period ({device})"
                    ));
                }
            }
        }
    }
}

/// Table of responses with their parts.
fn table(peripherals: &[Peripheral], what: &str, all: &[Answered]) -> Section {
    let row = |(it, answered): (&Peripheral, &Answered)| {
        let (periods, responses) = (statistics(&answered.periods()), statistics(&answered.responses()));
        let period = report::numbers::four(&periods).map(|(_, ns)| report::numbers::milliseconds(ns));
        let response = report::numbers::four(&responses).map(|(_, ns)| report::numbers::microseconds(ns));
        let parts = answered.parts();
        let parts = (0..6).map(|place| report::numbers::microseconds(parts.map(|parts| parts[place])));
        let cells = period.into_iter().chain(response).chain(parts).collect();
        Row { name: it.name.clone(), cells, from_paper: false }
    };
    let heads = [
        "period avg",
        "max",
        "min",
        "SD",
        "response avg",
        "max",
        "min",
        "SD",
        "C",
        "S",
        "r",
        "D",
        "R",
        "w",
    ];
    Section::Table(Table {
        caption: format!(
            "{what}, its task waiting for the answer: period, ms, and response = C + S + r + D + R + w, us, with the averages of its parts"
        ),
        columns: distribution::heads("device", &heads),
        rows: peripherals.iter().zip(all).map(row).collect(),
    })
}

/// Columns of a recording of commands.
const STAMPS: [&str; 7] =
    ["begin_ns", "computed_ns", "sent_ns", "read_ns", "carried_out_ns", "back_ns", "taken_ns"];

const WAITING: &str = "C: compute; S: send, which wakes the other side by an event; r: until the ordinary task has read it; D: the driver's own work and its \
                       device; R: the way back; w: take the answer. The range finder sends by itself: its driver takes the newest scan that has come.";
