//! The commands, one file each.

mod check;
mod completions;
mod control;
mod diag;
mod doctor;
mod events;
mod explain;
mod export;
mod fault;
mod io;
mod measure;
mod new;
mod record;
pub(crate) mod run;
mod scan;
mod sdo;
mod serve;
mod sii;
mod simulate;
mod top;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a robot: bring up its bus, enable its axes, follow its controller, measure its timing
    #[command(after_help = run::HOW_IT_ENDS)]
    Run(run::Run),
    /// Check a robot file without a run: errors, doubtful values, what it requires of the machine
    Check(check::Check),
    /// Draft a robot file from the SubDevices on a bus or from SII images; gaps are marked
    New(new::New),
    /// Check whether this machine can hold a real-time cycle, and how to fix what it finds
    Doctor(doctor::Doctor),
    /// Show a running cycle in this terminal: axes, bus health, timing, commands, tasks and
    /// channels
    Top(top::Top),
    /// Show a running cycle in a browser: axes, bus, events, timing, and a scope of every cycle
    Serve(serve::Serve),
    /// Read, set and force the process data of a running cycle by name
    #[command(subcommand)]
    Io(io::Io),
    /// Print the events of a running cycle: states, emergencies, losses, returns, stopped axes
    Events(events::Events),
    /// Ask a running cycle why it was late: late cycles, their causes, and the remedies
    Explain(explain::Explain),
    /// Have the flight recorder of a running cycle keep a recording
    Record(record::Record),
    /// Write a recording as MCAP, for Foxglove, PlotJuggler and tools of ROS 2, or as CSV
    Export(export::Export),
    /// Ask a running cycle: enable, disable or home its axes, reset faults, stop, switch the
    /// controller
    Control(control::Control),
    /// Answer as a robot's SubDevices on a network interface, for any MainDevice
    Simulate(simulate::Simulate),
    /// Inject a fault into a simulator: power, cables, frames, mailboxes, clocks, drives
    #[command(after_help = fault::forms())]
    Fault(fault::Fault),
    /// Show the SubDevices on the bus: identities, states, process data
    Scan(scan::Scan),
    /// Show where on the bus a fault is: damaged frames, lost links, states, working counters,
    /// clocks
    Diag(diag::Diag),
    /// Read, write and list the objects of a SubDevice
    #[command(subcommand)]
    Sdo(sdo::Sdo),
    /// Read a SubDevice's SII (EEPROM contents) into a file, or write an image of it
    #[command(subcommand)]
    Sii(sii::Sii),
    /// Print a script with which a shell completes these commands and their options
    Completions(completions::Completions),
    /// Show tables and plots of a recorded run or an experiment (the program onbeat-measure)
    Report(measure::Elsewhere),
    /// Prove from measured times whether tasks meet their deadlines (program onbeat-measure)
    Analyse(measure::Elsewhere),
    /// Make a measurement as a paper made it, with its tables and plots (the program
    /// onbeat-measure)
    Measure(measure::Elsewhere),
}

impl Command {
    /// Does it; `line` is the command line of the program.
    pub(crate) fn execute(self, line: fn() -> clap::Command) -> Result<(), Failure> {
        match self {
            Self::Run(run) => run.execute(),
            Self::Top(top) => top.execute(),
            Self::Serve(serve) => serve.execute(),
            Self::Io(io) => io.execute(),
            Self::Events(events) => events.execute(),
            Self::Explain(explain) => explain.execute(),
            Self::Record(record) => record.execute(),
            Self::Export(export) => export.execute(),
            Self::Control(control) => control.execute(),
            Self::Check(check) => check.execute(),
            Self::New(new) => new.execute(),
            Self::Completions(completions) => completions.execute(line()),
            Self::Doctor(doctor) => doctor.execute(),
            Self::Simulate(simulate) => simulate.execute(),
            Self::Fault(fault) => fault.execute(),
            Self::Scan(scan) => scan.execute(),
            Self::Diag(diag) => diag.execute(),
            Self::Sdo(sdo) => sdo.execute(),
            Self::Sii(sii) => sii.execute(),
            Self::Report(it) => it.execute(Some("report")),
            Self::Analyse(it) => it.execute(Some("analyse")),
            Self::Measure(it) => it.execute(None),
        }
    }
}

/// The exit code for a command line that cannot be read: 2, as usual, but the doctor means
/// something by that.
pub(crate) fn usage_exit_code(command: Option<&std::ffi::OsStr>) -> u8 {
    if command.is_some_and(|name| name == "doctor") { doctor::COULD_NOT_WORK } else { 2 }
}
