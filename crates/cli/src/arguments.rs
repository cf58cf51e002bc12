//! Arguments that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use onbeat::FaultRates;
use onbeat::compose::link;

/// Parses one of these values, each with its name and help.
pub(crate) fn named<T, const N: usize>(
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
    /// Use the real SubDevices on this network interface (needs CAP_NET_RAW); without it they are simulated
    #[arg(long, value_name = "NIC", conflicts_with = "segment")]
    pub(crate) iface: Option<String>,

    /// Take the SubDevices from another MainDevice that is heard on the wire: it loses them in whatever they do
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
const FAULTS: &str = "Faults put on the link, to see what they do";

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
            take_over: self.take_over,
            segment: self.segment.clone(),
            capture: self.capture.clone(),
            faults: self.faults.any().then(|| on_link(&self.faults)),
        }
    }
}

impl Faults {
    /// True if there is any.
    pub(crate) fn any(&self) -> bool {
        [self.loss, self.late, self.duplicate, self.reorder, self.corrupt].iter().any(|&share| share > 0.0)
    }
}

/// Frames are lost on either way; all else happens to replies, so that no SubDevice acts on it.
fn on_link(asked: &Faults) -> onbeat::Faults {
    // A frame goes both ways and must survive each.
    let loss = 1.0 - (1.0 - asked.loss).sqrt();
    let replies = FaultRates {
        loss,
        corrupt: asked.corrupt,
        duplicate: asked.duplicate,
        delay: asked.late,
        delay_by: asked.delay,
        reorder: asked.reorder,
    };
    onbeat::Faults { requests: FaultRates { loss, ..FaultRates::default() }, replies, seed: asked.seed }
}

/// A duration on the command line, as in robot files.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    robot::duration::parse(text).map_err(|error| error.to_string())
}

/// A share between 0 and 1, or in per cent.
fn share(text: &str) -> Result<f64, String> {
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
