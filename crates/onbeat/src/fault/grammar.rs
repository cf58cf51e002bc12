//! Grammar of a fault: one line of words.

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::register::dl::PORTS;
use simulator::application::brake::Sticking;
use thiserror::Error;
use types::duration;
use types::near::Near;
use types::near::nearest;

use super::frames::fixed;
use super::targets::Target;
use super::{Fault, OtherIdentity, Port, Share, Targets, Timed};

/// Forms of a fault, and their effects. SUBDEVICE is a name, in quotes if it has spaces, or a
/// position.
pub const GRAMMAR: [(&str, &str); 30] = [
    ("power off|on|cycle SUBDEVICE", "power of a SubDevice; frames do not pass one without"),
    ("cable pull|plug SUBDEVICE:PORT", "cable at a port; 0:0 is that of the MainDevice"),
    ("crc SUBDEVICE:PORT [COUNT]", "invalid frames, with a wrong check sequence, in the port's counter"),
    ("mailbox stuck|free SUBDEVICE", "stuck: a request stays in the mailbox without an answer"),
    ("application stop|run SUBDEVICE", "stop: a crashed microcontroller behind a working ESC"),
    ("state refuse SUBDEVICE PreOp|SafeOp|Op [CODE]", "refuse a state, with this AL status code"),
    ("state allow SUBDEVICE", "refuse no state any more"),
    ("watchdog expire SUBDEVICE", "the process data watchdog expires, whatever outputs come"),
    (
        "identity SUBDEVICE vendor=N product=N revision=N serial=N",
        "another identity in its SII; any of the four",
    ),
    (
        "sii blank|spoil|restore SUBDEVICE",
        "an erased SII, or a wrong checksum; restore: as it was, identity too",
    ),
    ("sii cut SUBDEVICE BYTES", "an SII that ends after so many bytes"),
    ("clock jump SUBDEVICE +TIME|-TIME", "the local clock jumps"),
    (
        "clock stale|latches SUBDEVICE:PORT",
        "stale: the receive time of the port does not change; latches: normal",
    ),
    ("latch high|low SUBDEVICE INPUT", "level of a latch input, 0 or 1: an edge latches the time"),
    (
        "input SUBDEVICE:CHANNEL high|low|free",
        "level of a digital input; free: as at the start, or as the output of its number",
    ),
    (
        "drive fault SUBDEVICE[:AXIS] CODE",
        "an axis of a servo drive has a fault, with this error code (0x603F)",
    ),
    ("drive power off|on SUBDEVICE", "main power of a servo drive; its ESC keeps its supply"),
    ("drive load SUBDEVICE[:AXIS] TORQUE", "load on the shaft of an axis of a servo drive, as 0.5Nm"),
    (
        "drive motor reversed|forward SUBDEVICE[:AXIS]",
        "reversed: two phases of the motor are exchanged, and it turns against its torque; forward: normal",
    ),
    (
        "brake stuck-closed|stuck-open|free SUBDEVICE[:AXIS]",
        "the brake of an axis with brake.feedback sticks; free: it works",
    ),
    (
        "encoder SUBDEVICE[:AXIS] off|turned by NUMBER turns",
        "off: the count of an axis of a servo drive changes; turned: its shaft is turned by hand; as `off by 1 turn`",
    ),
    ("frames lose SHARE", "lose this share of the frames, there and back, as 2.5%"),
    ("frames lose COUNT", "lose the next frames, this many"),
    ("frames delay TIME [SHARE]", "hold back replies: all, or this share"),
    ("frames duplicate SHARE", "replies come twice"),
    ("frames reorder SHARE", "replies are overtaken by the next"),
    ("frames corrupt SHARE", "one bit of a reply is another"),
    (
        "seed NUMBER",
        "new seed for the random faults of frames: the same seed and frames give the same faults",
    ),
    ("clear", "end all faults that last"),
    ("FAULT for TIME", "end FAULT after this time, if it lasts"),
];

/// Error of a line: place, found text, expected text, and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column}: {found}, expected {expected}: {remedy}")]
#[non_exhaustive]
pub struct FaultError {
    /// Column in characters from 1.
    pub column: usize,
    /// Content found.
    pub found: String,
    /// Content expected.
    pub expected: String,
    /// Remedy.
    pub remedy: String,
}

impl Timed {
    /// Reads a fault, and how long it lasts.
    ///
    /// # Errors
    /// Not a fault, or a fault that no target can have.
    pub fn parse(line: &str, targets: &Targets) -> Result<Self, FaultError> {
        let mut words = Words::of(line, targets);
        let timed = words.timed()?;
        words.end().map(|()| timed)
    }
}

/// One word and its column.
#[derive(Clone, Copy, Debug)]
struct Word<'t> {
    text: &'t str,
    column: usize,
}

/// Words of a line, taken from the left.
pub(super) struct Words<'t> {
    words: Vec<Word<'t>>,
    next: usize,
    /// Column behind the last.
    behind: usize,
    targets: &'t Targets,
}

type Found<T> = Result<T, FaultError>;

/// Reads the words behind the first.
type Read<W> = fn(&mut W) -> Found<Fault>;

impl Words<'_> {
    /// First words, and the reader of the words after them.
    const SUBJECTS: [(&'static str, Read<Self>); 17] = [
        ("power", Self::power),
        ("cable", Self::cable),
        ("crc", Self::invalid_frames),
        ("mailbox", Self::mailbox),
        ("application", Self::application),
        ("state", Self::state),
        ("watchdog", Self::watchdog),
        ("identity", Self::identity),
        ("sii", Self::sii),
        ("clock", Self::clock),
        ("latch", Self::latch),
        ("input", Self::input),
        ("drive", Self::drive),
        ("brake", Self::brake),
        ("encoder", Self::encoder),
        ("frames", Self::frames),
        ("seed", Self::seed),
    ];

    fn power(&mut self) -> Found<Fault> {
        let on = self.choice(&[("off", Some(false)), ("on", Some(true)), ("cycle", None)])?;
        let position = self.sub_device()?;
        Ok(on.map_or(Fault::PowerCycle(position), |on| Fault::Power { position, on }))
    }

    fn cable(&mut self) -> Found<Fault> {
        let plugged = self.choice(&[("pull", false), ("plug", true)])?;
        Ok(Fault::Cable { at: self.port()?, plugged })
    }

    fn invalid_frames(&mut self) -> Found<Fault> {
        let at = self.port()?;
        let count = if self.goes_on() { self.number("a number of errors", 1, 255)? } else { 1 };
        Ok(Fault::InvalidFrames { at, count: count as u8 })
    }

    fn mailbox(&mut self) -> Found<Fault> {
        let runs = self.choice(&[("stuck", false), ("free", true)])?;
        Ok(Fault::Mailbox { position: self.one_with(WITH_MAILBOX, |it| it.has_mailbox)?, runs })
    }

    fn application(&mut self) -> Found<Fault> {
        let runs = self.choice(&[("stop", false), ("run", true)])?;
        Ok(Fault::Application { position: self.sub_device()?, runs })
    }

    fn state(&mut self) -> Found<Fault> {
        let refuses = self.choice(&[("refuse", true), ("allow", false)])?;
        let position = self.sub_device()?;
        if !refuses {
            return Ok(Fault::AllowStates(position));
        }
        let states = [AlState::PreOp, AlState::SafeOp, AlState::Op];
        let state = self.choice(&[("PreOp", states[0]), ("SafeOp", states[1]), ("Op", states[2])])?;
        let code = match self.goes_on() {
            true => AlStatusCode(self.number("an AL status code", 1, u16::MAX.into())? as u16),
            false => AlStatusCode::UNSPECIFIED,
        };
        Ok(Fault::RefuseState { position, state, code })
    }

    fn watchdog(&mut self) -> Found<Fault> {
        self.choice(&[("expire", ())])?;
        Ok(Fault::Watchdog(self.sub_device()?))
    }

    fn identity(&mut self) -> Found<Fault> {
        let position = self.sub_device()?;
        let mut identity = OtherIdentity::default();
        loop {
            let word = self.take("vendor=N, product=N, revision=N or serial=N")?;
            let (key, value) = word.text.split_once('=').unwrap_or((word.text, ""));
            let field = match key {
                "vendor" => &mut identity.vendor,
                "product" => &mut identity.product,
                "revision" => &mut identity.revision,
                "serial" => &mut identity.serial,
                _ => return Err(word.is_not("vendor=N, product=N, revision=N or serial=N", "correct it")),
            };
            let value = number(value).and_then(|value| u32::try_from(value).ok());
            let Some(value) = value else {
                return Err(word.is_not(&format!("{key}= and a number up to 0xffffffff"), "correct it"));
            };
            if field.replace(value).is_some() {
                return Err(word.is_not("each of the four once", "leave one out"));
            }
            if !self.goes_on() {
                return Ok(Fault::Identity { position, identity });
            }
        }
    }

    fn sii(&mut self) -> Found<Fault> {
        type OfSii = fn(usize) -> Fault;
        let verbs: [(&str, Option<OfSii>); 4] = [
            ("blank", Some(Fault::BlankSii)),
            ("spoil", Some(Fault::SpoilSii)),
            ("restore", Some(Fault::RestoreSii)),
            ("cut", None),
        ];
        let fault = self.choice(&verbs)?;
        let position = self.sub_device()?;
        match fault {
            Some(fault) => Ok(fault(position)),
            None => {
                let length = self.number("a number of bytes", 0, u32::MAX.into())? as u32;
                Ok(Fault::CutSii { position, length })
            }
        }
    }

    fn clock(&mut self) -> Found<Fault> {
        let latches = self.choice(&[("jump", None), ("stale", Some(false)), ("latches", Some(true))])?;
        if let Some(latches) = latches {
            let word = self.words.get(self.next).copied();
            let at = self.port()?;
            let has_clock = self.targets.get(at.position).is_some_and(|it| it.has_clock);
            return match word.filter(|_| !has_clock) {
                None => Ok(Fault::ReceiveTime { at, latches }),
                Some(word) => Err(word.is_not(WITH_CLOCK, "name another")),
            };
        }
        let position = self.one_with(WITH_CLOCK, |it| it.has_clock)?;
        let word = self.take(JUMP)?;
        let signed = |sign: char, sense: i64| {
            let time = duration::parse(word.text.strip_prefix(sign)?).ok()?;
            i64::try_from(time.as_nanos()).ok().filter(|&by| by > 0).map(|by| sense * by)
        };
        let by = signed('+', 1).or_else(|| signed('-', -1));
        Ok(Fault::ClockJump { position, by: by.ok_or_else(|| word.is_not(JUMP, "correct it"))? })
    }

    fn latch(&mut self) -> Found<Fault> {
        let high = self.choice(&[("high", true), ("low", false)])?;
        let position = self.one_with(WITH_CLOCK, |it| it.has_clock)?;
        let input = self.number("a latch input", 0, 1)? as usize;
        Ok(Fault::Latch { position, input, high })
    }

    fn input(&mut self) -> Found<Fault> {
        let word = self.take(INPUT)?;
        let Some((name, channel)) = word.text.rsplit_once(':') else {
            return Err(word.is_not(INPUT, "add :CHANNEL"));
        };
        let position = self.position(word, name)?;
        let inputs = self.targets.get(position).map_or(0, |target| target.inputs);
        if inputs == 0 {
            return Err(word.is_not("a simulated terminal with digital inputs", "name another"));
        }
        let channel = channel.parse::<u8>().ok().filter(|channel| (1..=inputs).contains(channel));
        let there = || format!("an input of that terminal, 1 to {inputs}");
        let channel = channel.ok_or_else(|| word.is_not(&there(), "correct the channel"))?;
        let level = self.choice(&[("high", Some(true)), ("low", Some(false)), ("free", None)])?;
        Ok(Fault::Input { position, input: channel - 1, level })
    }

    fn drive(&mut self) -> Found<Fault> {
        #[derive(Clone, Copy)]
        enum Verb {
            Fault,
            Power,
            Load,
            Motor,
        }
        match self.choice(&[
            ("fault", Verb::Fault),
            ("power", Verb::Power),
            ("load", Verb::Load),
            ("motor", Verb::Motor),
        ])? {
            Verb::Fault => {
                let (position, axis) = self.servo_axis()?;
                let code = self.number("an error code", 1, u16::MAX.into())? as u16;
                Ok(Fault::DriveFault { position, axis, code })
            }
            Verb::Power => {
                let on = self.choice(&[("off", false), ("on", true)])?;
                Ok(Fault::DrivePower { position: self.servo_drive()?, on })
            }
            Verb::Motor => {
                let reversed = self.choice(&[("reversed", true), ("forward", false)])?;
                let (position, axis) = self.servo_axis()?;
                Ok(Fault::DriveMotor { position, axis, reversed })
            }
            Verb::Load => {
                let (position, axis) = self.servo_axis()?;
                let word = self.take(TORQUE)?;
                let torque = word.text.strip_suffix("Nm").and_then(|number| fixed(number, 3));
                let torque = torque.and_then(|torque| i32::try_from(torque).ok());
                let torque = torque.ok_or_else(|| word.is_not(TORQUE, "correct it"))?;
                Ok(Fault::DriveLoad { position, axis, torque })
            }
        }
    }

    fn brake(&mut self) -> Found<Fault> {
        let sticking = self.choice(&[
            ("stuck-closed", Sticking::Closed),
            ("stuck-open", Sticking::Open),
            ("free", Sticking::Free),
        ])?;
        let word = self.words.get(self.next).copied();
        let (position, axis) = self.servo_axis()?;
        let has_brake = self.targets.get(position).is_some_and(|it| it.brakes.contains(&axis));
        match word.filter(|_| !has_brake) {
            None => Ok(Fault::Brake { position, axis, sticking }),
            Some(word) => Err(word.is_not(WITH_BRAKE, "name another")),
        }
    }

    fn encoder(&mut self) -> Found<Fault> {
        let (position, axis) = self.servo_axis()?;
        let turned = self.choice(&[("off", false), ("turned", true)])?;
        self.choice(&[("by", ())])?;
        let word = self.take(TURNS)?;
        let by = fixed(word.text, 3).and_then(|by| i32::try_from(by).ok());
        let by = by.ok_or_else(|| word.is_not(TURNS, "correct it"))?;
        self.choice(&[("turns", ()), ("turn", ())])?;
        Ok(Fault::Encoder { position, axis, by, turned })
    }

    fn frames(&mut self) -> Found<Fault> {
        #[derive(Clone, Copy)]
        enum Verb {
            Lose,
            Delay,
            Other(fn(Share) -> Fault),
        }
        let verb = self.choice(&[
            ("lose", Verb::Lose),
            ("delay", Verb::Delay),
            ("duplicate", Verb::Other(Fault::DuplicateFrames)),
            ("reorder", Verb::Other(Fault::ReorderFrames)),
            ("corrupt", Verb::Other(Fault::CorruptFrames)),
        ])?;
        match verb {
            Verb::Lose => {
                let word = self.take(SHARE_OR_COUNT)?;
                let count = || number(word.text).and_then(|count| u32::try_from(count).ok());
                let share = Share::parse(word.text).map(Fault::LoseFrames);
                let fault = share.or_else(|| count().filter(|&count| count > 0).map(Fault::LoseNext));
                fault.ok_or_else(|| word.is_not(SHARE_OR_COUNT, "correct it"))
            }
            Verb::Delay => {
                let by = self.time("a time")?;
                let share = if self.goes_on() { self.share()? } else { Share::ALL };
                Ok(Fault::DelayFrames { by, share })
            }
            Verb::Other(fault) => Ok(fault(self.share()?)),
        }
    }

    fn seed(&mut self) -> Found<Fault> {
        Ok(Fault::Seed(self.number("a number", 0, u64::MAX)?))
    }
}

const WITH_MAILBOX: &str = "a SubDevice with a mailbox";
const WITH_CLOCK: &str = "a SubDevice with a distributed clock";
const WITH_BRAKE: &str = "the drive of an axis with brake.feedback";
const JUMP: &str = "a time with its sign, as +1ms or -200us";
const TURNS: &str = "a number of turns of the motor to three decimals, as 0.5";
const TORQUE: &str = "a torque to three decimals, as 0.5Nm";
const SHARE: &str = "a share of at most 100% to four decimals, as 2.5%";
const SHARE_OR_COUNT: &str = "a share of the frames, as 2.5%, or a number of them";
const INPUT: &str = "a terminal and its input, as inputs-1:3";
const SUB_DEVICE_AND_PORT: &str = "a SubDevice and its port, as 2:1";

impl<'t> Words<'t> {
    pub(super) fn of(line: &'t str, targets: &'t Targets) -> Self {
        let (mut words, mut behind) = (Vec::new(), 1);
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (text, further) = rest.split_at(length(rest));
            let column = line[..line.len() - rest.len()].chars().count() + 1;
            behind = column + text.chars().count();
            words.push(Word { text: unquoted(text), column });
            rest = further.trim_start();
        }
        Self { words, next: 0, behind, targets }
    }

    pub(super) fn timed(&mut self) -> Found<Timed> {
        let subjects = Self::SUBJECTS.map(|(name, read)| (name, Some(read)));
        let fault = match self.choice(&[&subjects[..], &[("clear", None)]].concat())? {
            Some(read) => read(self)?,
            None => Fault::Clear,
        };
        let Some(word) = self.words.get(self.next).copied().filter(|word| word.text == FOR) else {
            return Ok(Timed { fault, lasting: None });
        };
        if fault.end().is_none() {
            return Err(word.is_not("the end of the line", "this fault does not last: leave out `for`"));
        }
        self.next += 1;
        let lasting = self.time("a time that it lasts")?;
        Ok(Timed { fault, lasting: Some(lasting) })
    }

    pub(super) fn end(&self) -> Found<()> {
        let more = self.words.get(self.next);
        more.map_or(Ok(()), |word| Err(word.is_not("the end of the line", "leave it out")))
    }

    /// True if there is a further word of the fault.
    fn goes_on(&self) -> bool {
        self.words.get(self.next).is_some_and(|word| word.text != FOR)
    }

    fn take(&mut self, expected: &str) -> Found<Word<'t>> {
        let Some(word) = self.words.get(self.next) else {
            let (column, found) = (self.behind, "the line ends".to_owned());
            return Err(FaultError {
                column,
                found,
                expected: expected.to_owned(),
                remedy: "add it".to_owned(),
            });
        };
        self.next += 1;
        Ok(*word)
    }

    /// One of these words, in capitals or not.
    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Found<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let expected = match &names[..] {
            [only] => (*only).to_owned(),
            [others @ .., last] => format!("{} or {last}", others.join(", ")),
            [] => String::new(),
        };
        let word = self.take(&expected)?;
        let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.text));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let near = nearest(word.text, names.iter().copied());
            word.is_not(
                &expected,
                &near.map_or("correct it".into(), |near| format!("did you mean \"{near}\"?")),
            )
        })
    }

    fn sub_device(&mut self) -> Found<usize> {
        let word = self.take(&self.some_sub_device())?;
        self.position(word, word.text)
    }

    fn one_with(&mut self, expected: &str, has: impl Fn(&Target) -> bool) -> Found<usize> {
        let word = self.take(expected)?;
        let position = self.position(word, word.text)?;
        let found = self.targets.get(position).is_some_and(has);
        if found { Ok(position) } else { Err(word.is_not(expected, "name another")) }
    }

    fn some_sub_device(&self) -> String {
        format!("a SubDevice: a name, or a position from 0 to {}", self.targets.count().saturating_sub(1))
    }

    fn position(&self, word: Word<'t>, name: &str) -> Found<usize> {
        self.targets.find(unquoted(name)).ok_or_else(|| {
            word.is_not(
                &self.some_sub_device(),
                &Near::to(unquoted(name), self.targets.names()).to_string(),
            )
        })
    }

    fn servo_drive(&mut self) -> Found<usize> {
        let word = self.take("a servo drive")?;
        self.drive_named(word, word.text).map(|(position, _)| position)
    }

    /// Position of a drive, and its number of axes.
    fn drive_named(&self, word: Word<'t>, name: &str) -> Found<(usize, usize)> {
        let position = self.position(word, name)?;
        match self.targets.get(position).map_or(0, |target| target.axes) {
            0 => Err(word.is_not("a servo drive", "name another")),
            axes => Ok((position, axes)),
        }
    }

    /// A servo drive and, behind a colon, its axis from 1; the first one goes without. The axis is
    /// counted from 0 here.
    fn servo_axis(&mut self) -> Found<(usize, usize)> {
        let word = self.take("a servo drive")?;
        let Some((name, axis)) =
            word.text.rsplit_once(':').filter(|_| self.targets.find(word.text).is_none())
        else {
            return self.drive_named(word, word.text).map(|(position, _)| (position, 0));
        };
        let (position, axes) = self.drive_named(word, name)?;
        match axis.parse::<usize>() {
            Ok(axis) if (1..=axes).contains(&axis) => Ok((position, axis - 1)),
            _ => Err(word.is_not(&format!("an axis of that drive, 1 to {axes}"), "correct the axis")),
        }
    }

    fn port(&mut self) -> Found<Port> {
        let word = self.take(SUB_DEVICE_AND_PORT)?;
        let Some((name, port)) = word.text.rsplit_once(':') else {
            return Err(word.is_not(SUB_DEVICE_AND_PORT, "add :PORT"));
        };
        let position = self.position(word, name)?;
        let cables = self.targets.get(position).map_or([false; PORTS], |target| target.cables);
        let port = port.parse::<usize>().ok().filter(|&port| port < PORTS && cables[port]);
        let there = || {
            let ports = (0..PORTS).filter(|&port| cables[port]).map(|port| port.to_string());
            format!("a port with a cable, which are {}", ports.collect::<Vec<_>>().join(", "))
        };
        port.map(|port| Port { position, port }).ok_or_else(|| word.is_not(&there(), "correct the port"))
    }

    pub(super) fn time(&mut self, expected: &str) -> Found<Duration> {
        let expected = format!("{expected}, as 500us or 1.5s");
        let word = self.take(&expected)?;
        duration::parse(word.text).map_err(|_| word.is_not(&expected, "correct it"))
    }

    fn share(&mut self) -> Found<Share> {
        let word = self.take(SHARE)?;
        Share::parse(word.text).ok_or_else(|| word.is_not(SHARE, "correct it"))
    }

    fn number(&mut self, what: &str, lowest: u64, highest: u64) -> Found<u64> {
        let expected = format!("{what}, {lowest} to {highest} or as 0x{highest:x}");
        let word = self.take(&expected)?;
        let value = number(word.text).filter(|value| (lowest..=highest).contains(value));
        value.ok_or_else(|| word.is_not(&expected, "correct it"))
    }
}

impl Word<'_> {
    fn is_not(self, expected: &str, remedy: &str) -> FaultError {
        let found: String = self.text.chars().take(LONGEST_SHOWN).collect();
        let more = if found.len() < self.text.len() { "..." } else { "" };
        FaultError {
            column: self.column,
            found: format!("found {found:?}{more}"),
            expected: expected.to_owned(),
            remedy: remedy.to_owned(),
        }
    }
}

/// Length of the first word, which may contain spaces between the quotes it begins with.
fn length(line: &str) -> usize {
    let quoted = line.strip_prefix(QUOTE).and_then(|inner| inner.find(QUOTE)).map_or(0, |end| end + 2);
    line[quoted..].find(char::is_whitespace).map_or(line.len(), |end| quoted + end)
}

/// Without the quotes around it.
fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix(QUOTE).and_then(|text| text.strip_suffix(QUOTE));
    inner.filter(|inner| !inner.contains(QUOTE)).unwrap_or(text)
}

/// Reads a whole number, decimal or hexadecimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// Around a name with spaces.
pub(super) const QUOTE: char = '"';

/// Before the time that a fault lasts.
const FOR: &str = "for";

/// Characters of a wrong word that are shown.
const LONGEST_SHOWN: usize = 40;
