//! Arguments that several commands share.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ipc::client::Client;
use machine::cpus::Cpus;
use onbeat::LinkKind;
use onbeat::compose::link::{self, SimulatedTime};
use onbeat::fault::FrameFaults;

use crate::failure::Failure;
use crate::target::{Which, cycle_of, is_absence, say_whom};

/// Parses one of these values, each with its name and help.
pub fn named<T, const N: usize>(
    values: [(T, &'static str, &'static str); N],
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = values.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).try_map(move |wanted| {
        let found = values.iter().find(|(_, name, _)| *name == wanted).map(|(value, ..)| *value);
        found.ok_or("expected one of the names")
    })
}

/// Place of the SubDevices: on a network interface, or simulated.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Wire {
    /// Use the real SubDevices on this network interface (needs CAP_NET_RAW); without it they are
    /// simulated
    #[arg(long, value_name = "NIC", conflicts_with = "segment")]
    pub(crate) iface: Option<String>,

    /// Second end of a ring, at the OUT port of the last SubDevice; the ring survives one break
    #[arg(long, value_name = "NIC", requires = "iface")]
    pub(crate) second_iface: Option<String>,

    /// Way to the interface's frames; packet without it
    #[arg(long, value_name = "KIND", requires = "iface", value_parser = link_kind())]
    pub(crate) link: Option<LinkKind>,

    /// Take the SubDevices from another MainDevice on the wire: it loses them in whatever they do
    #[arg(long, requires = "iface")]
    pub(crate) take_over: bool,

    /// Simulate the SubDevices of this robot file instead: see what happens when others are there
    #[arg(long, value_name = "OTHER.toml")]
    pub(crate) segment: Option<PathBuf>,

    /// Write every frame, sent and received, to this file
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) faults: Faults,
}

/// Heading the help lists them under.
const FAULTS: &str = "Faults injected into the link, for tests";

/// Kinds of links, with their help.
pub(crate) fn link_kind() -> impl TypedValueParser<Value = LinkKind> {
    named([
        (LinkKind::Packet, "packet", "packet socket: any interface"),
        (LinkKind::Xdp, "xdp", "AF_XDP: fewer steps for a frame; CAP_BPF and CAP_NET_ADMIN, too"),
        (
            LinkKind::XdpPolled,
            "xdp-polled",
            "AF_XDP that polls the driver for replies, without its interrupts",
        ),
        (LinkKind::Auto, "auto", "xdp if the interface's driver runs its program itself, else packet"),
    ])
}

/// Faults put on the link on purpose.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// Lose this share of the frames: 1% or 0.01
    #[arg(long, help_heading = FAULTS, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) loss: f64,

    /// Hold back this share of the replies for --delay
    #[arg(long, help_heading = FAULTS, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) late: f64,

    /// Time a late reply is held back
    #[arg(long, help_heading = FAULTS, value_name = "TIME", value_parser = time, default_value = "5ms")]
    pub(crate) delay: Duration,

    /// Deliver this share of the replies twice
    #[arg(long, help_heading = FAULTS, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) duplicate: f64,

    /// Let this share of the replies be overtaken by the next
    #[arg(long, help_heading = FAULTS, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) reorder: f64,

    /// Change a byte in this share of the replies
    #[arg(long, help_heading = FAULTS, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) corrupt: f64,

    /// Same seed, same faults
    #[arg(long, help_heading = FAULTS, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
}

impl Wire {
    /// The same for the library.
    pub(crate) fn on_link(&self) -> link::Wire {
        link::Wire {
            interface: self.iface.clone(),
            second_interface: self.second_iface.clone(),
            program: None,
            link: self.link.unwrap_or_default(),
            take_over: self.take_over,
            segment: self.segment.clone(),
            capture: self.capture.clone(),
            faults: self.faults.any().then(|| self.faults.on_link()),
            script: None,
            control: None,
            time: SimulatedTime::default(),
        }
    }
}

impl Faults {
    /// True if there is any.
    pub(crate) fn any(&self) -> bool {
        [self.loss, self.late, self.duplicate, self.reorder, self.corrupt].iter().any(|&share| share > 0.0)
    }

    fn on_link(self) -> onbeat::Faults {
        let Self { loss, late, delay, duplicate, reorder, corrupt, seed } = self;
        FrameFaults { loss, late, delay, duplicate, reorder, corrupt, seed }.on_link()
    }
}

/// A running cycle, by its name or its interface.
#[derive(Args, Debug)]
pub(crate) struct RunningCycle {
    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(long, value_name = "NAME|SOCKET", conflicts_with = "iface")]
    cycle: Option<String>,

    /// The cycle that has this network interface
    #[arg(long, value_name = "NIC")]
    iface: Option<String>,
}

impl RunningCycle {
    /// True if no such cycle runs.
    pub(crate) fn is_absent(&self) -> bool {
        let found = || Which(self.cycle.as_deref()).find();
        self.iface.is_some() || found().is_err_and(|error| is_absence(&error))
    }

    /// Attaches to it; of one that was found by its interface, says which it is.
    pub(crate) fn find(&self) -> Result<Client, Failure> {
        let Some(interface) = &self.iface else { return Ok(Which(self.cycle.as_deref()).find()?) };
        let owner = ethercat_linux::link::owner(interface).map_err(|error| {
            let why = match error.kind() {
                ErrorKind::NotFound => "no interface has this name".to_owned(),
                _ => error.to_string(),
            };
            Failure::new(format!("interface {interface}: {why}; `ip link` lists the interfaces"))
        })?;
        let found = owner.as_ref().and_then(cycle_of).ok_or_else(|| {
            let found = owner.map_or("found no process".to_owned(), |owner| format!("{owner} has it"));
            Failure::new(format!(
                "interface {interface}: {found}, expected a running cycle that lets this user in"
            ))
        })?;
        say_whom(&found);
        Ok(found)
    }
}

/// A duration on the command line, as in robot files.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    types::duration::parse(text).map_err(|error| error.to_string())
}

/// A time that something lasts.
pub(crate) fn lasting(text: &str) -> Result<Duration, String> {
    types::duration::parse_lasting(text)
}

/// Refuses a time of `option` that is shorter than a cycle, in which nothing new can be seen.
pub(crate) fn a_period_at_least(option: &str, found: Duration, period: Duration) -> Result<(), Failure> {
    if found >= period {
        return Ok(());
    }
    let [found, period] = [found, period].map(types::duration::format);
    Err(Failure::new(format!("{option} {found}, expected at least {period}, the period of the cycle")))
}

/// Refuses a CPU of `option` that this machine does not have: what it is for would take place on
/// any.
pub(crate) fn check_cpu(option: &str, cpu: Option<usize>) -> Result<(), Failure> {
    let online = Cpus::online();
    match cpu.filter(|cpu| !online.is_empty() && !online.contains(*cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Failure::new(format!(
            "{option}: found {cpu}, expected one of this machine's CPUs: {online}"
        ))),
    }
}

/// A share between 0 and 1, or in per cent.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.trim().parse::<f64>().ok().map(|number| number * scale);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("found \"{text}\", expected a share as 1% or 0.01, at most 100%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_fractions_or_per_cent() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("100 %"), Ok(1.0));
        for wrong in ["101%", "-1%", "half", "", "%", "nan"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
