//! A fault as the line that means it.

use std::fmt;

use ethercat::al_status_code::AlStatusCode;
use types::duration;

use super::line::QUOTE;
use super::share::{Fixed, Share};
use super::{Fault, OtherIdentity, Port, Targets, Timed};
use crate::application::brake::Sticking;

impl fmt::Display for Fault {
    /// With positions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words(None).fmt(f)
    }
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words(None).fmt(f)
    }
}

impl Timed {
    /// With the names of SubDevices.
    #[must_use]
    pub fn named(self, targets: &Targets) -> String {
        self.words(Some(targets))
    }

    fn words(self, targets: Option<&Targets>) -> String {
        let lasting = self.lasting.map(|time| format!(" for {}", duration::format(time)));
        format!("{}{}", self.fault.words(targets), lasting.unwrap_or_default())
    }
}

impl Fault {
    /// With the names of SubDevices.
    #[must_use]
    pub fn named(self, targets: &Targets) -> String {
        self.words(Some(targets)).to_string()
    }

    fn words(self, targets: Option<&Targets>) -> Shown<'_> {
        Shown { fault: self, targets }
    }
}

struct Shown<'t> {
    fault: Fault,
    targets: Option<&'t Targets>,
}

impl Shown<'_> {
    /// A SubDevice, by a name that can be read again, or by position.
    fn at(&self, position: usize) -> String {
        let name =
            self.targets.and_then(|targets| targets.get(position)).map(|target| target.name.as_str());
        match name.filter(|name| !name.is_empty() && !name.contains(['#', QUOTE])) {
            Some(name) if name.contains(char::is_whitespace) => format!("{QUOTE}{name}{QUOTE}"),
            Some(name) => name.to_owned(),
            None => position.to_string(),
        }
    }

    /// An axis of a drive; the first one goes without its number.
    fn axis(&self, position: usize, axis: usize) -> String {
        match axis {
            0 => self.at(position),
            _ => format!("{}:{}", self.at(position), axis + 1),
        }
    }

    fn port(&self, Port { position, port }: Port) -> String {
        format!("{}:{port}", self.at(position))
    }
}

/// Fields of an identity, each with a space before it.
fn fields(identity: OtherIdentity) -> String {
    let OtherIdentity { vendor, product, revision, serial } = identity;
    let fields = [("vendor", vendor), ("product", product), ("revision", revision), ("serial", serial)];
    fields.iter().filter_map(|(key, value)| Some(format!(" {key}={:#x}", (*value)?))).collect()
}

fn verb(sticking: Sticking) -> &'static str {
    match sticking {
        Sticking::Free => "free",
        Sticking::Closed => "stuck-closed",
        Sticking::Open => "stuck-open",
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_of = |is: bool, yes, no| if is { yes } else { no };
        match self.fault {
            Fault::Power { position, on } => {
                write!(f, "power {} {}", one_of(on, "on", "off"), self.at(position))
            }
            Fault::PowerCycle(position) => write!(f, "power cycle {}", self.at(position)),
            Fault::Cable { at, plugged } => {
                write!(f, "cable {} {}", one_of(plugged, "plug", "pull"), self.port(at))
            }
            Fault::InvalidFrames { at, count } => write!(f, "crc {} {count}", self.port(at)),
            Fault::Mailbox { position, runs } => {
                write!(f, "mailbox {} {}", one_of(runs, "free", "stuck"), self.at(position))
            }
            Fault::Application { position, runs } => {
                write!(f, "application {} {}", one_of(runs, "run", "stop"), self.at(position))
            }
            Fault::RefuseState { position, state, code: AlStatusCode(code) } => {
                write!(f, "state refuse {} {state} {code:#06x}", self.at(position))
            }
            Fault::AllowStates(position) => write!(f, "state allow {}", self.at(position)),
            Fault::Watchdog(position) => write!(f, "watchdog expire {}", self.at(position)),
            Fault::Identity { position, identity } => {
                write!(f, "identity {}{}", self.at(position), fields(identity))
            }
            Fault::BlankSii(position) => write!(f, "sii blank {}", self.at(position)),
            Fault::SpoilSii(position) => write!(f, "sii spoil {}", self.at(position)),
            Fault::CutSii { position, length } => write!(f, "sii cut {} {length}", self.at(position)),
            Fault::RestoreSii(position) => write!(f, "sii restore {}", self.at(position)),
            Fault::ClockJump { position, by } => {
                let time = duration::format(std::time::Duration::from_nanos(by.unsigned_abs()));
                write!(f, "clock jump {} {}{time}", self.at(position), one_of(by < 0, "-", "+"))
            }
            Fault::ReceiveTime { at, latches } => {
                write!(f, "clock {} {}", one_of(latches, "latches", "stale"), self.port(at))
            }
            Fault::Latch { position, input, high } => {
                write!(f, "latch {} {} {input}", one_of(high, "high", "low"), self.at(position))
            }
            Fault::Input { position, input, level } => {
                let level = level.map_or("free", |high| one_of(high, "high", "low"));
                write!(f, "input {}:{} {level}", self.at(position), input + 1)
            }
            Fault::DriveFault { position, axis, code } => {
                write!(f, "drive fault {} {code:#06x}", self.axis(position, axis))
            }
            Fault::DrivePower { position, on } => {
                write!(f, "drive power {} {}", one_of(on, "on", "off"), self.at(position))
            }
            Fault::DriveLoad { position, axis, torque } => {
                let torque = Fixed { value: torque.into(), decimals: 3 };
                write!(f, "drive load {} {torque}Nm", self.axis(position, axis))
            }
            Fault::DriveMotor { position, axis, reversed } => {
                let turns = one_of(reversed, "reversed", "forward");
                write!(f, "drive motor {turns} {}", self.axis(position, axis))
            }
            Fault::Brake { position, axis, sticking } => {
                write!(f, "brake {} {}", verb(sticking), self.axis(position, axis))
            }
            Fault::Encoder { position, axis, by, turned } => {
                let (turns, verb) =
                    (Fixed { value: by.into(), decimals: 3 }, one_of(turned, "turned", "off"));
                write!(f, "encoder {} {verb} by {turns} turns", self.axis(position, axis))
            }
            Fault::LoseFrames(share) => write!(f, "frames lose {share}"),
            Fault::LoseNext(count) => write!(f, "frames lose {count}"),
            Fault::DelayFrames { by, share: Share::ALL } => {
                write!(f, "frames delay {}", duration::format(by))
            }
            Fault::DelayFrames { by, share } => write!(f, "frames delay {} {share}", duration::format(by)),
            Fault::DuplicateFrames(share) => write!(f, "frames duplicate {share}"),
            Fault::ReorderFrames(share) => write!(f, "frames reorder {share}"),
            Fault::CorruptFrames(share) => write!(f, "frames corrupt {share}"),
            Fault::Seed(seed) => write!(f, "seed {seed}"),
            Fault::Clear => f.write_str("clear"),
        }
    }
}
