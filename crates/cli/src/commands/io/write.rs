//! `onbeat io set`, `force` and `release`: what changes the signals of a running cycle.

use std::borrow::Cow;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ipc::client::LeaseError;
use ipc::command::Command;
use ipc::description::{OUTSIDE, SignalDescription};
use ipc::state::{Signal, State, Value, ValueKind};
use ipc::words;
use types::object::without_point;

use super::Cycle;
use super::bytes::{self, Form};
use crate::arguments::{RunningCycle, a_period_at_least, lasting, time};
use crate::failure::Failure;
use crate::printer::{Printer, print_until_stop};
use crate::stop::Stop;
use crate::words::signals;

/// Takes the command lease and holds these outputs at their values until Ctrl-C, the end of
/// `--for`, or the end of the cycle. Afterwards they take their `on_stale` values of the robot
/// file.
#[derive(Args, Debug)]
pub(crate) struct Set {
    /// Outputs with `writer = "outside"` in the robot file, each with its value: true, false or a
    /// number; for a signal with elements, one value for all, or all values with commas between
    #[arg(required = true, num_args = 2.., value_names = ["SIGNAL", "VALUE"], allow_negative_numbers = true)]
    pairs: Vec<String>,

    /// Values of arrays of bytes as a text, which zeros fill up, or as hexadecimal digits
    #[arg(long = "as", value_name = "FORM")]
    form: Option<Form>,

    /// Time after which it ends by itself
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    lasting: Option<Duration>,

    #[command(flatten)]
    of: RunningCycle,
}

/// Forces a signal: the cycle holds it at this value, over all other writers, until the time
/// expires, `io release`, or the end of the cycle. The controller sees the forced value of an
/// input; axes and interlocks see the real value.
#[derive(Args, Debug)]
pub(crate) struct Force {
    /// Name of an input or an output
    #[arg(value_name = "SIGNAL")]
    name: String,

    /// True or false, or a number
    #[arg(allow_negative_numbers = true)]
    value: String,

    /// Value of an array of bytes as a text, which zeros fill up, or as hexadecimal digits
    #[arg(long = "as", value_name = "FORM")]
    form: Option<Form>,

    /// Time after which the cycle releases it by itself, up to a day
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasting: Duration,

    #[command(flatten)]
    of: RunningCycle,
}

/// Returns forced signals to their normal writers.
#[derive(Args, Debug)]
pub(crate) struct Release {
    /// Names of signals
    #[arg(value_name = "SIGNAL", required_unless_present = "all")]
    names: Vec<String>,

    /// Every signal that is forced
    #[arg(long, conflicts_with = "names")]
    all: bool,

    #[command(flatten)]
    of: RunningCycle,
}

impl Set {
    pub(super) fn execute(self, stop: &Stop) -> Result<(), Failure> {
        let pairs = self.pairs.chunks(2).map(|pair| match pair {
            [name, value] => Ok((name.clone(), value.as_str())),
            rest => Err(Failure::new(format!(
                "\"{}\" without a value, expected a value behind each signal",
                rest.join(" ")
            ))),
        });
        let (names, texts): (Vec<String>, Vec<&str>) =
            pairs.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        if let Some(name) =
            (1..names.len()).find_map(|at| names[..at].contains(&names[at]).then_some(&names[at]))
        {
            return Err(Failure::new(format!(
                "\"{name}\" named twice, expected one value for each signal"
            )));
        }
        let cycle = Cycle::attach(&self.of, &names)?;
        let pairs = names.iter().zip(&texts).map(|(name, text)| each(&cycle, name, text, self.form));
        let values = values(&cycle, &pairs.collect::<Result<Vec<_>, _>>()?.concat())?;
        let Some(before) = cycle.first(stop)? else { return Ok(()) };
        let mut writer = cycle.attached.command().map_err(|error| match error {
            LeaseError::Taken { .. } => {
                Failure::new(format!("{error}, or use `onbeat io force`, which needs no lease"))
            }
            error => Failure::new(error),
        })?;
        let longest = match cycle.attached.description().longest_time_to_live_ns {
            0 => LASTS,
            nanoseconds => Duration::from_nanos(nanoseconds).min(LASTS),
        };
        let command = Command {
            time_to_live_ns: types::time::nanoseconds(longest),
            signals: values,
            ..Command::default()
        };
        let begin = Instant::now();
        let mut taken = false;
        // An output that takes nothing does not hold up the sending.
        let printer = Printer::start()?;
        loop {
            writer.send(&command).map_err(Failure::new)?;
            thread::sleep(longest / 5);
            if let Ok(state) = cycle.attached.state().read() {
                refused(&cycle, &before, &state)?;
                if !taken && state.command.accepted > before.command.accepted {
                    taken = true;
                    printer.print(cycle.lines(&state), || false);
                }
            }
            if !taken && begin.elapsed() > TIMEOUT {
                return Err(Failure::new(
                    "the cycle did not take the command within 2 s: it is stalled, or has ended",
                ));
            }
            if stop.is_requested()
                || taken && self.lasting.is_some_and(|lasting| begin.elapsed() >= lasting)
            {
                drop(writer);
                return printer.finish(stop);
            }
        }
    }
}

impl Force {
    pub(super) fn execute(self, stop: &Stop) -> Result<(), Failure> {
        let cycle = Cycle::attach(&self.of, std::slice::from_ref(&self.name))?;
        let signals = &cycle.attached.description().signals;
        let pairs = each(&cycle, &self.name, &self.value, self.form)?.into_iter();
        let values = pairs.map(|(place, text)| Ok((place, value(&signals[place], &text)?)));
        let values = values.collect::<Result<Vec<_>, Failure>>()?;
        a_period_at_least("--for", self.lasting, cycle.period())?;
        for (place, value) in values {
            cycle.attached.force(place, value, self.lasting).map_err(Failure::new)?;
        }
        let Some(asked) = cycle.first(stop)? else { return Ok(()) };
        // The cycle takes it when the next one begins; it may have been forced before, at another
        // value.
        let taken = |state: &State| state.cycle >= asked.cycle + 2;
        if !cycle.await_state(taken, |state| cycle.lines(state), stop)? {
            return Err(Failure::new(
                "the cycle did not take the request within 2 s: it is stalled, or has ended",
            ));
        }
        Ok(())
    }
}

impl Release {
    pub(super) fn execute(self, stop: &Stop) -> Result<(), Failure> {
        let cycle = Cycle::attach(&self.of, &self.names)?;
        let Some(before) = cycle.first(stop)? else { return Ok(()) };
        if self.all {
            cycle.attached.release(None).map_err(Failure::new)?;
        } else {
            for &place in &cycle.wanted {
                cycle.attached.release(Some(place)).map_err(Failure::new)?;
            }
        }
        let released = |state: &State| cycle.of(state).all(|(_, signal)| !signal.forced);
        let lines = |state: &State| cycle.released(&before, state, self.all);
        if !cycle.await_state(released, lines, stop)? {
            return Err(Failure::new(
                "the cycle did not release the signal within 2 s: it is stalled, or another client \
                 forces the signal again",
            ));
        }
        Ok(())
    }
}

impl Cycle {
    /// Waits for a state that is as wanted, and prints its lines; false if that does not come.
    fn await_state(
        &self,
        wanted: impl Fn(&State) -> bool,
        lines: impl Fn(&State) -> String,
        stop: &Stop,
    ) -> Result<bool, Failure> {
        let begin = Instant::now();
        while !stop.is_requested() && begin.elapsed() < TIMEOUT {
            if let Some(state) = self.attached.state().read().ok().filter(&wanted) {
                print_until_stop(lines(&state), stop)?;
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(stop.is_requested())
    }

    /// The signals that were forced before, each with the value that it went back to; unless `all`
    /// were released also the others.
    fn released(&self, before: &State, now: &State, all: bool) -> String {
        let both = self.of(before).zip(self.of(now)).filter(|((_, before), _)| before.forced || !all);
        let line = |((_, before), (it, now)): ((_, &Signal), (&SignalDescription, &Signal))| {
            let released = if before.forced { " (released)" } else { "" };
            format!("{}  {}{released}\n", it.name, signals::text(it, now))
        };
        let lines: String = both.map(line).collect();
        if lines.is_empty() { "no signal was forced\n".to_owned() } else { lines }
    }

    /// The wanted signals, each with its name.
    fn lines(&self, state: &State) -> String {
        let line =
            |(it, signal): (&SignalDescription, _)| format!("{}  {}\n", it.name, signals::text(it, signal));
        self.of(state).map(line).collect()
    }
}

/// Places of a signal, each with its value: of one with elements one for all, or as many with
/// commas between; of an array of bytes in a form its bytes.
fn each<'a>(
    cycle: &Cycle,
    name: &str,
    text: &'a str,
    form: Option<Form>,
) -> Result<Vec<(usize, Cow<'a, str>)>, Failure> {
    if let Some(form) = form {
        let places = bytes::places(cycle.attached.description(), name)?;
        let bytes = form.parse(name, text, places.len())?;
        return Ok(places.into_iter().zip(bytes.iter().map(|byte| byte.to_string().into())).collect());
    }
    let places = super::places(cycle.attached.description(), name)?;
    let texts: Vec<&str> = text.split(',').collect();
    match (places.len(), texts.len()) {
        (1, _) | (_, 1) => Ok(places.into_iter().map(|place| (place, text.into())).collect()),
        (count, given) if count == given => {
            Ok(places.into_iter().zip(texts.into_iter().map(Cow::from)).collect())
        }
        (count, given) => Err(Failure::new(format!(
            "{given} values for the signal \"{name}\", expected one for all its elements, or {count} with commas between"
        ))),
    }
}

/// Values of a command, in its order.
fn values(cycle: &Cycle, pairs: &[(usize, Cow<'_, str>)]) -> Result<Vec<Option<Value>>, Failure> {
    let description = cycle.attached.description();
    let commanded: Vec<usize> = description.commanded().collect();
    let mut values = vec![None; commanded.len()];
    for (place, text) in pairs {
        let it = &description.signals[*place];
        let index = commanded.iter().position(|other| other == place).ok_or_else(|| not_commanded(it))?;
        values[index] = Some(value(it, text)?);
    }
    Ok(values)
}

fn not_commanded(it: &SignalDescription) -> Failure {
    let SignalDescription { name, .. } = it;
    Failure::new(match it.writer.as_deref() {
        None => format!(
            "\"{name}\" is an input, expected an output; `onbeat io force` holds an input at a value"
        ),
        Some("controller") => format!(
            "output \"{name}\" is written by the controller, expected one with writer = \"{OUTSIDE}\" in its [[signal]]; \
             `onbeat io force` wins over a controller"
        ),
        Some(writer) => format!("output \"{name}\" is written by {writer}: it can be read only"),
    })
}

fn value(it: &SignalDescription, text: &str) -> Result<Value, Failure> {
    let (value, expected) = match it.kind {
        ValueKind::Bool => {
            let bit = match text {
                "true" | "on" | "1" => Some(true),
                "false" | "off" | "0" => Some(false),
                _ => None,
            };
            (bit.map(Value::Bool), "true or false")
        }
        ValueKind::Unsigned => (text.parse().ok().map(Value::Unsigned), "a whole number, 0 or more"),
        ValueKind::Signed => (text.parse().ok().map(Value::Signed), "a whole number"),
        ValueKind::Real => {
            (text.parse().ok().filter(|it: &f64| it.is_finite()).map(Value::Real), "a number")
        }
    };
    let value = value.ok_or_else(|| {
        let hint = if expected.starts_with("a whole number") { without_point(text) } else { "" };
        Failure::new(format!("\"{text}\" for the signal \"{}\", expected {expected}{hint}", it.name))
    })?;
    match bounds(it) {
        Some((lowest, highest)) if !(lowest..=highest).contains(&value.number()) => {
            let name = &it.name;
            Err(Failure::new(format!("{text} for the signal \"{name}\", expected {lowest} to {highest}")))
        }
        _ => Ok(value),
    }
}

/// Lowest and highest value of an integer, or of what has a range.
fn bounds(it: &SignalDescription) -> Option<(f64, f64)> {
    let whole = matches!(it.kind, ValueKind::Unsigned | ValueKind::Signed);
    it.range.or_else(|| whole.then(|| it.value_type.bounds()))
}

/// The reason, if the cycle has refused a command.
fn refused(cycle: &Cycle, before: &State, state: &State) -> Result<(), Failure> {
    if state.command.refused == before.command.refused {
        return Ok(());
    }
    let why = words::last_refusal(&state.command, cycle.attached.description()).unwrap_or_default();
    Err(Failure::new(format!("the cycle refused the command: {why}")))
}

/// Validity of a command, if the robot file allows that much: it is sent five times as often.
const LASTS: Duration = Duration::from_millis(200);

/// Time the cycle may take to take a request.
const TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    // feature(signals): `onbeat io set`, `force`, `release`
    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let of = |value_type: &str, kind, range| SignalDescription {
            name: "it".to_owned(),
            value_type: value_type.parse().unwrap(),
            kind,
            range,
            ..SignalDescription::default()
        };
        for (signal, good, wrong, expected) in [
            (of("int16", ValueKind::Signed, None), "-32768", "32768", "-32768 to 32767"),
            (of("uint12", ValueKind::Unsigned, None), "4095", "4096", "0 to 4095"),
            (of("int16", ValueKind::Real, Some((0.0, 10.0))), "9.5", "-0.1", "0 to 10"),
        ] {
            assert!(value(&signal, good).is_ok(), "{good}");
            let sentence = value(&signal, wrong).unwrap_err().to_string();
            assert_eq!(sentence, format!("{wrong} for the signal \"it\", expected {expected}"));
        }
        assert!(value(&of("double", ValueKind::Real, None), "1e300").is_ok());
        let sentence = value(&of("uint12", ValueKind::Unsigned, None), "1e2").unwrap_err().to_string();
        let expected = "a whole number, 0 or more, without point or exponent";
        assert_eq!(sentence, format!("\"1e2\" for the signal \"it\", expected {expected}"));
    }
}
