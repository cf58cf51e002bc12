//! Grammar of a fault: one line of words.

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use types::duration;

use super::line::{FOR, FaultError, Found, Words, number};
use super::share::{Share, fixed};
use super::{Fault, OtherIdentity, Targets, Timed};
use crate::application::brake::Sticking;

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
}

const WITH_MAILBOX: &str = "a SubDevice with a mailbox";
const WITH_CLOCK: &str = "a SubDevice with a distributed clock";
const WITH_BRAKE: &str = "the drive of an axis with brake.feedback";
const JUMP: &str = "a time with its sign, as +1ms or -200us";
const TURNS: &str = "a number of turns of the motor to three decimals, as 0.5";
const TORQUE: &str = "a torque to three decimals, as 0.5Nm";
const SHARE_OR_COUNT: &str = "a share of the frames, as 2.5%, or a number of them";
const INPUT: &str = "a terminal and its input, as inputs-1:3";
