//! `onbeat control accept-position` and `set-position`: positions that the operator gives an axis.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use ipc::client::Client;
use ipc::reference::{Given, Purpose, Refusal};
use types::number::Rounded;

use super::place;
use crate::failure::Failure;
use crate::output;

/// Accepts the position of an unreferenced axis after a measurement at the machine. Refused if the
/// measured position and the reading of its drive differ. Needs a terminal, to type the name of the
/// axis. The drive has to be disabled, and the axis at standstill.
#[derive(Args, Debug)]
pub(super) struct AcceptPosition {
    /// Name of the axis
    axis: String,

    /// Position measured at the machine, rad
    #[arg(allow_negative_numbers = true)]
    value: f64,
}

/// Sets the position of an axis. The drive has to be disabled, and the axis at standstill. Refused
/// for an unreferenced axis, and for an axis with position limits and an absolute encoder or a
/// homing method.
#[derive(Args, Debug)]
pub(super) struct SetPosition {
    /// Name of the axis
    axis: String,

    /// Its position from now on, rad
    #[arg(allow_negative_numbers = true)]
    value: f64,
}

impl AcceptPosition {
    pub(super) fn execute(&self, cycle: &Client) -> Result<(), Failure> {
        let axis = find(cycle, &self.axis)?;
        if !self.value.is_finite() {
            return Err(Failure::new(format!("axis \"{}\": {}", self.axis, Refusal::NotFinite)));
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::new(
                "accept-position needs a terminal: a person measures the position and types the name of the axis",
            ));
        }
        let (name, value) = (&self.axis, self.value);
        let question = format!("Type the name of the axis that was measured to be at {value} rad: ");
        io::stderr().write_all(question.as_bytes()).map_err(Failure::new)?;
        let mut typed = String::new();
        io::stdin().lock().read_line(&mut typed).map_err(Failure::new)?;
        if typed.trim() != name {
            return Err(Failure::new(format!("not accepted: expected the name \"{name}\"")));
        }
        give(cycle, name, Given { axis, position: value, purpose: Purpose::Accept })?;
        let next = "type `onbeat control reset`, then `onbeat control enable`";
        output::print(format!("{name}: {value} rad accepted; {next}\n"))
    }
}

impl SetPosition {
    pub(super) fn execute(&self, cycle: &Client) -> Result<(), Failure> {
        let axis = find(cycle, &self.axis)?;
        let (name, value) = (&self.axis, self.value);
        let before = give(cycle, name, Given { axis, position: value, purpose: Purpose::Set })?;
        output::print(format!(
            "{name}: {} rad before, {} rad now; not homed\n",
            Rounded(before),
            Rounded(value)
        ))
    }
}

fn find(cycle: &Client, axis: &str) -> Result<usize, Failure> {
    place("axis", axis, cycle.description().axes.iter().map(|it| it.name.as_str())).map(|it| it as usize)
}

fn give(cycle: &Client, name: &str, given: Given) -> Result<f64, Failure> {
    cycle.give_position(given).map_err(|why| Failure::new(format!("axis \"{name}\": {why}")))
}
