//! `onbeat io`: process data by name, on a running cycle.

mod bytes;
mod write;

use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use ipc::client::Client;
use ipc::description::{Description, SignalDescription};
use ipc::state::{Signal, SignalCounters, State};
use serde_json::Value;
use types::near::Near;

use self::bytes::Form;
use crate::arguments::{RunningCycle, a_period_at_least, time};
use crate::failure::Failure;
use crate::output;
use crate::printer::{Printer, print_until_stop};
use crate::stop::Stop;
use crate::target::first_state;
use crate::words::signals;

/// Reads the signals of a running cycle as any program may, without root: the cycle cannot notice
/// it. To set and force them takes the right to command it.
#[derive(Subcommand, Debug)]
pub(crate) enum Io {
    /// Show all signals, with their types, directions and values
    List(List),
    /// Print the values of these signals, one a line
    Get(Get),
    /// Print the values of these signals, or of all, and each change of one
    Watch(Watch),
    /// Hold outputs that may be commanded from outside at these values
    Set(write::Set),
    /// Hold an input or an output at a value, over all other writers
    Force(write::Force),
    /// Give forced signals back
    Release(write::Release),
}

#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    shown: Shown,
}

#[derive(Args, Debug)]
pub(crate) struct Get {
    /// Names of signals; of one with elements, as of an array of samples, all of them
    #[arg(required = true, value_name = "SIGNAL")]
    names: Vec<String>,

    /// Arrays of bytes as a text, or as hexadecimal digits, one a line
    #[arg(long = "as", value_name = "FORM")]
    form: Option<Form>,

    #[command(flatten)]
    shown: Shown,
}

#[derive(Args, Debug)]
pub(crate) struct Watch {
    /// Names of signals; without one all
    #[arg(value_name = "SIGNAL")]
    names: Vec<String>,

    /// Sampling interval, at least the period of the cycle; default 10ms, or the period if longer
    #[arg(long, value_name = "TIME", value_parser = time)]
    every: Option<Duration>,

    /// Print a line only where a value changes, not where it only becomes old, or fresh again
    #[arg(long)]
    values: bool,

    #[command(flatten)]
    shown: Shown,
}

#[derive(Args, Debug)]
struct Shown {
    #[command(flatten)]
    of: RunningCycle,

    /// Print JSON: an array, or with `watch` an object a line
    #[arg(long)]
    json: bool,
}

impl Io {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        match self {
            Self::List(List { shown }) => {
                let cycle = Cycle::attach(&shown.of, &[])?;
                let Some(state) = cycle.first(&stop)? else { return Ok(()) };
                let text = if shown.json { cycle.array(&state)? } else { cycle.table(&state) };
                print_until_stop(text, &stop)
            }
            Self::Get(Get { names, form: Some(form), shown }) => {
                let cycle = Cycle::attach(&shown.of, &names)?;
                let Some(state) = cycle.first(&stop)? else { return Ok(()) };
                let text = cycle.arrays(&names, form, &state, shown.json)?;
                print_until_stop(text, &stop)
            }
            Self::Get(Get { names, form: None, shown }) => {
                let cycle = Cycle::attach(&shown.of, &names)?;
                let Some(state) = cycle.first(&stop)? else { return Ok(()) };
                let line = |(described, signal)| signals::text(described, signal) + "\n";
                let lines = || cycle.of(&state).map(line).collect();
                let text = if shown.json { cycle.array(&state)? } else { lines() };
                print_until_stop(text, &stop)
            }
            Self::Watch(watch) => Cycle::attach(&watch.shown.of, &watch.names)?.watch(&watch, &stop),
            Self::Set(set) => set.execute(&stop),
            Self::Force(force) => force.execute(&stop),
            Self::Release(release) => release.execute(&stop),
        }
    }
}

/// A running cycle, and the signals of it that are wanted, by their places.
struct Cycle {
    attached: Client,
    wanted: Vec<usize>,
}

impl Cycle {
    /// All signals, where no name is given.
    fn attach(of: &RunningCycle, names: &[String]) -> Result<Self, Failure> {
        let attached = of.find()?;
        let wanted = match names {
            [] => (0..attached.description().signals.len()).collect(),
            names => {
                let places = names.iter().map(|name| places(attached.description(), name));
                places.collect::<Result<Vec<_>, _>>()?.concat()
            }
        };
        Ok(Self { attached, wanted })
    }

    fn period(&self) -> Duration {
        Duration::from_nanos(self.attached.description().period_ns)
    }

    fn first(&self, stop: &Stop) -> Result<Option<State>, Failure> {
        first_state(&self.attached, stop)
    }

    /// The wanted signals.
    fn of<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (&'a SignalDescription, &'a Signal)> {
        let all = &self.attached.description().signals;
        self.wanted.iter().filter_map(move |&place| Some((all.get(place)?, state.signals.get(place)?)))
    }

    fn array(&self, state: &State) -> Result<String, Failure> {
        let objects: Vec<Value> = self.of(state).map(|(it, signal)| signals::object(it, signal)).collect();
        Ok(serde_json::to_string_pretty(&objects)? + "\n")
    }

    /// Arrays of bytes, a line each or an array of objects.
    fn arrays(&self, names: &[String], form: Form, state: &State, json: bool) -> Result<String, Failure> {
        let mut objects = Vec::new();
        let mut text = String::new();
        for name in names {
            let places = bytes::places(self.attached.description(), name)?;
            let all: Vec<Signal> = places.iter().filter_map(|&it| state.signals.get(it).copied()).collect();
            text += &(form.words(&all) + "\n");
            objects.push(form.object(name, &all));
        }
        Ok(if json { serde_json::to_string_pretty(&objects)? + "\n" } else { text })
    }

    fn table(&self, state: &State) -> String {
        let names = self.of(state).map(|(it, _)| it.name.chars().count());
        let width = names.max().unwrap_or(0).max(6);
        let mut text = format!("{:<width$}  {:<9}{:<8}value\n", "signal", "type", "");
        for (it, signal) in self.of(state) {
            let SignalDescription { name, value_type, direction, .. } = it;
            let writer = it.writer.as_ref().map(|writer| format!("   ({writer})")).unwrap_or_default();
            let value = signals::text(it, signal);
            text += &format!("{name:<width$}  {value_type:<9}{direction:<8}{value}{writer}\n");
        }
        let SignalCounters { clamped, refused } = state.signal_counters;
        if clamped > 0 || refused > 0 {
            text += &format!(
                "\nvalues the controller set beyond a range, clamped: {clamped}; that were no number, refused: {refused}\n"
            );
        }
        text
    }

    /// Prints every requested signal once, then each change, until the cycle or the user ends it.
    fn watch(&self, asked: &Watch, stop: &Stop) -> Result<(), Failure> {
        let every = asked.every.unwrap_or(EVERY.max(self.period()));
        a_period_at_least("--every", every, self.period())?;
        let Some(mut state) = self.first(stop)? else { return Ok(()) };
        let reader = self.attached.state();
        let mut before: Vec<Option<Signal>> = vec![None; self.wanted.len()];
        let printer = Printer::start()?;
        let mut last = false;
        loop {
            let mut text = String::new();
            for ((it, signal), before) in self.of(&state).zip(&mut before) {
                let is_same = |before: Signal| {
                    let freshness = if asked.values { signal.fresh } else { before.fresh };
                    Signal { fresh: freshness, ..before } == *signal
                };
                if before.replace(*signal).is_some_and(is_same) {
                    continue;
                }
                if asked.shown.json {
                    let mut object = signals::object(it, signal);
                    object["cycle"] = state.cycle.into();
                    text += &(object.to_string() + "\n");
                } else {
                    text += &format!("{}  {}\n", it.name, signals::text(it, signal));
                }
            }
            let printed =
                text.is_empty() || printer.print(text, || !stop.is_requested() && !output::is_closed());
            if last || !printed {
                return printer.finish(stop);
            }
            last = !self.wait(every, stop);
            // A state that cannot be read is looked at again.
            let _ = reader.read_into(&mut state);
        }
    }

    /// Waits for `time`; false if before that the user asks for a stop, the cycle ends, or the
    /// output is closed.
    fn wait(&self, time: Duration, stop: &Stop) -> bool {
        let begin = Instant::now();
        loop {
            if stop.is_requested() || self.attached.has_ended() || output::is_closed() {
                return false;
            }
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(output::LOOK));
        }
    }
}

/// Positions of a signal, or of all elements of an array.
fn places(description: &Description, name: &str) -> Result<Vec<usize>, Failure> {
    let all = &description.signals;
    if let Some(place) = all.iter().position(|it| it.name == *name) {
        return Ok(vec![place]);
    }
    let elements = description.elements(name);
    if elements.is_empty() {
        let near = Near::to(name, all.iter().map(|it| it.name.as_str()));
        let robot = &description.robot;
        return Err(Failure::new(format!(
            "no signal is called \"{name}\", expected a signal of robot \"{robot}\"; {near}"
        )));
    }
    Ok(elements)
}

/// Time from one look to the next.
const EVERY: Duration = Duration::from_millis(10);
