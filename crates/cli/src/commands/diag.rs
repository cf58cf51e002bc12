//! `onbeat diag`: where on the bus a fault is.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::arguments::lasting;
use crate::bus::{ToolBus, Where};
use crate::failure::Failure;
use crate::output;
use crate::words::diagnosis::Diagnosis;
use crate::words::latches::{Latched, json as latched_json, text as latched_text};

/// Reads the error counters, links and states of all SubDevices, and reports faults with their
/// place. A bus that a running Onbeat cycle uses is read through that cycle, which continues; any
/// other bus goes to PreOp and back to Init. Exit code 0 without findings, 3 with findings.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Diag {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    place: Place,

    /// Print a JSON object; with --watch one a line
    #[arg(long)]
    json: bool,

    /// Look again and again, at what was counted since the look before, until Ctrl-C
    #[arg(long, value_name = "INTERVAL", value_parser = lasting, num_args = 0..=1, default_missing_value = "1s")]
    watch: Option<Duration>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Clear the error counters of all SubDevices; on a running cycle this takes the command lease
    Clear(Place),
    /// Show the latch inputs of all SubDevices with a distributed clock: levels and edge times.
    /// This releases latched single edges; on a running cycle it takes the command lease
    Latches {
        #[command(flatten)]
        place: Place,

        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}

/// The bus.
#[derive(Args, Debug)]
struct Place {
    /// Robot file that says what should be there; simulated without --iface
    #[arg(value_name = "ROBOT.toml", conflicts_with = "cycle")]
    robot: Option<PathBuf>,

    #[command(flatten)]
    place: Where,
}

impl Place {
    fn with<T>(&self, work: impl FnOnce(&mut ToolBus) -> Result<T, Failure>) -> Result<T, Failure> {
        ToolBus::with("diag", self.robot.as_deref().map(Path::new), &self.place, work)
    }
}

impl Diag {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match &self.verb {
            Some(Verb::Clear(place)) => return clear(place),
            Some(Verb::Latches { place, json }) => return latches(place, *json),
            None => {}
        }
        let healthy = self.place.with(|bus| self.look(bus))?;
        if healthy { Ok(()) } else { Err(Failure::silent(FINDINGS)) }
    }

    /// Shows the bus, and with --watch again and again; true if nothing was found the last time.
    fn look(&self, bus: &mut ToolBus) -> Result<bool, Failure> {
        let found = bus.described()?;
        let mut diagnosis = Diagnosis::new(&found, bus.diagnosed()?, None, bus.is_running());
        self.show(&diagnosis)?;
        while self.watch.is_some_and(|interval| bus.wait(interval)) {
            diagnosis = Diagnosis::new(&found, bus.diagnosed()?, Some(&diagnosis.status), bus.is_running());
            self.show(&diagnosis)?;
        }
        Ok(diagnosis.findings.is_empty())
    }

    fn show(&self, diagnosis: &Diagnosis<'_>) -> Result<(), Failure> {
        let json = diagnosis.json();
        if !self.json && self.watch.is_some() && io::stdout().is_terminal() {
            return output::print_drawn(&format!("{CLEAR_SCREEN}{}", output::shown(&diagnosis.text())));
        }
        output::print(match (self.json, self.watch) {
            (true, None) => format!("{json:#}\n"),
            (true, Some(_)) => format!("{json}\n"),
            (false, None) => diagnosis.text(),
            (false, Some(_)) => format!("{}\n", diagnosis.text()),
        })
    }
}

/// Clears the counters and reports the SubDevices where that failed.
fn clear(place: &Place) -> Result<(), Failure> {
    place.with(|bus| {
        bus.clear_errors()?;
        let (found, status) = (bus.described()?, bus.diagnosed()?);
        let silent = found.iter().zip(&status.sub_devices).filter(|(_, now)| now.errors.is_none());
        let silent: Vec<String> = silent
            .map(|(it, _)| control::bus::sub_device(it.object.position.into(), &it.object.name))
            .collect();
        if silent.is_empty() {
            return output::print(format!(
                "cleared the error counters of {}\n",
                crate::words::sub_device_count(found.len())
            ));
        }
        Err(Failure::new(format!(
            "the error counters were not cleared at {}: no answer; check power and cable",
            silent.join(", ")
        )))
    })
}

/// Shows the latch inputs of the SubDevices that have a clock.
fn latches(place: &Place, json: bool) -> Result<(), Failure> {
    place.with(|bus| {
        let mut found = Vec::new();
        for it in bus.described()? {
            if it.object.delay_ns.is_some() {
                let inputs = bus.latches(it.object.position)?;
                found.push(Latched { position: it.object.position, name: it.object.name, inputs });
            }
        }
        output::print(if json { latched_json(&found) } else { latched_text(&found) })
    })
}

/// Exit code where something was found.
pub(crate) const FINDINGS: u8 = 3;

/// Cursor to the beginning, and all behind it away (ECMA-48).
const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";
