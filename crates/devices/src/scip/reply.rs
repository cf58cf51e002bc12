//! Replies of a sensor: echo of the command, status, and lines with a sum each (7, 8, 9).

use std::fmt;

use thiserror::Error;

use super::command::{Echo, Symbol};
use super::{decode, sum};

/// Reply with correct sums, counts and characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Echo of the command.
    pub echo: Echo,
    /// Status.
    pub status: Status,
    /// Content.
    pub content: Content,
}

/// Status of a reply: two characters; their meaning depends on the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub [u8; 2]);

impl Status {
    /// Done, or started.
    pub const DONE: Self = Self(*b"00");
    /// A scan of MD or MS follows.
    pub const SCAN: Self = Self(*b"99");

    /// Meaning for this command, in words.
    #[must_use]
    pub fn meaning(self, symbol: Symbol) -> &'static str {
        let number = std::str::from_utf8(&self.0).ok().and_then(|text| text.parse::<u8>().ok());
        match (symbol, number) {
            (_, Some(0)) => "done",
            (Symbol::Stream(_), Some(99)) => "a scan",
            // Chapter 9.
            (_, None) => match &self.0 {
                b"0A" => "it cannot make its reply",
                b"0B" => "its buffer is full, or the command came twice",
                b"0C" | b"0D" => "the command's parameters are too few or wrong",
                b"0E" => "it does not know the command",
                b"0F" | b"0G" | b"0H" => "the command is too long or has wrong characters",
                b"0I" => "it is in firmware update mode",
                _ => "a status it should not have",
            },
            // Sections 8.1 and 8.2.
            (Symbol::Once(_) | Symbol::Stream(_), Some(1)) => "the first step is no number",
            (Symbol::Once(_) | Symbol::Stream(_), Some(2)) => "the last step is no number",
            (Symbol::Once(_) | Symbol::Stream(_), Some(3)) => "the cluster count is no number",
            (Symbol::Once(_) | Symbol::Stream(_), Some(4)) => "the last step is out of range",
            (Symbol::Once(_) | Symbol::Stream(_), Some(5)) => "the last step is below the first",
            (Symbol::Stream(_), Some(6)) => "the scan interval is no number",
            (Symbol::Stream(_), Some(7)) => "the number of scans is no number",
            (Symbol::Stream(_), Some(21..=49)) => "it stopped measuring to look into an error",
            (Symbol::Stream(_), Some(98)) => "it measures again after an error",
            (Symbol::Once(_), Some(10)) => "its laser is off",
            (Symbol::Once(_) | Symbol::Stream(_), Some(50..=98)) => {
                "its laser, motor or another part is broken"
            }
            // Section 8.3.
            (Symbol::LaserOn, Some(1)) => "its laser is broken",
            (Symbol::LaserOn, Some(2)) => "its laser is on already",
            // Section 8.6.
            (Symbol::Time, Some(1)) => "no such time command",
            (Symbol::Time, Some(2)) => "it is in time adjustment mode already",
            (Symbol::Time, Some(3)) => "it was not in time adjustment mode",
            (Symbol::Time, Some(4)) => "it must first be set to time adjustment mode",
            _ => "a status it should not have",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// Content of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// No content.
    Nothing,
    /// Content of VV.
    Version(Version),
    /// Content of PP.
    Parameters(Parameters),
    /// Content of II: names and values, uninterpreted.
    Status(Vec<(String, String)>),
    /// Content of TM1: the sensor's clock, ms, 24 bits.
    Time(u32),
    /// Content of GD, GS, MD and MS.
    Scan {
        /// Start of the scan by the sensor's clock, ms, 24 bits.
        time: u32,
        /// Ranges, mm; values below the sensor's shortest range are error codes.
        ranges: Vec<u32>,
    },
}

/// Identity of the sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// VEND
    pub vendor: String,
    /// PROD
    pub product: String,
    /// FIRM
    pub firmware: String,
    /// PROT
    pub protocol: String,
    /// SERI
    pub serial: String,
}

/// Parameters of the sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// MODL
    pub model: String,
    /// DMIN: shortest range, mm.
    pub shortest: u32,
    /// DMAX: longest range, mm.
    pub longest: u32,
    /// ARES: steps of a full turn.
    pub steps_per_turn: u32,
    /// AMIN: first step that is measured.
    pub first: u16,
    /// AMAX: last step that is measured.
    pub last: u16,
    /// AFRT: step that points ahead.
    pub front: u16,
    /// SCAN: turns per minute.
    pub turns_per_minute: u32,
}

/// Reason for an invalid reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The reply does not begin with a command.
    #[error("expected a command's echo, found \"{}\"", found.escape_ascii())]
    Echo {
        /// Beginning of the line.
        found: Vec<u8>,
    },
    /// The status line is missing or wrong.
    #[error("{symbol}: expected a status of two characters and their sum, found \"{}\"", found.escape_ascii())]
    Status {
        /// Symbol of the command.
        symbol: Symbol,
        /// Beginning of the line.
        found: Vec<u8>,
    },
    /// The sum of a line is wrong.
    #[error("{symbol}: expected the sum '{}' in line {line}, found '{}'", expected.escape_ascii(), found.escape_ascii())]
    Sum {
        /// Symbol of the command.
        symbol: Symbol,
        /// Number of the line, 1 for the echo.
        line: usize,
        /// Expected sum.
        expected: u8,
        /// Sum found.
        found: u8,
    },
    /// A line is too short or too long.
    #[error("{symbol}: expected a line of {expected}, found {found} bytes in line {line}")]
    Length {
        /// Symbol of the command.
        symbol: Symbol,
        /// Number of the line, 1 for the echo.
        line: usize,
        /// Expected length, in words.
        expected: &'static str,
        /// Length found, bytes.
        found: usize,
    },
    /// A character is not one of an encoded number.
    #[error("{symbol}: expected characters from '0' to 'o' in an encoded number, found '{}'", found.escape_ascii())]
    Character {
        /// Symbol of the command.
        symbol: Symbol,
        /// Byte found.
        found: u8,
    },
    /// There are too few or too many ranges.
    #[error("{symbol}: expected {expected} characters of ranges, found {found}")]
    Points {
        /// Symbol of the command.
        symbol: Symbol,
        /// Number of ranges of the sector.
        expected: usize,
        /// Number of ranges found.
        found: usize,
    },
    /// A named value is missing, or no number.
    #[error("{symbol}: expected {name}:NUMBER, found {found}")]
    Value {
        /// Symbol of the command.
        symbol: Symbol,
        /// Name of the value.
        name: &'static str,
        /// Value found.
        found: String,
    },
}

impl Reply {
    /// Parses a reply without its last two line feeds.
    ///
    /// # Errors
    /// The expected and the found content of the first wrong part.
    pub fn parse(block: &[u8]) -> Result<Self, ReplyError> {
        let mut lines = block.split(|&byte| byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let echo = Echo::parse(first).ok_or_else(|| ReplyError::Echo { found: beginning(first) })?;
        let symbol = echo.symbol;
        let line = lines.next().unwrap_or_default();
        let status =
            status(line, symbol).ok_or_else(|| ReplyError::Status { symbol, found: beginning(line) })?;
        let body = Body { symbol, lines: lines.collect() };
        let content = body.content(&echo, status)?;
        Ok(Self { echo, status, content })
    }
}

/// Status in a line with its sum. SCIP2.0 is answered by one digit without a sum (2).
pub(super) fn status(line: &[u8], symbol: Symbol) -> Option<Status> {
    match *line {
        [one, two, check] if sum(&[one, two]) == check => Some(Status([one, two])),
        [one] if symbol == Symbol::Scip2 && one.is_ascii_alphanumeric() => Some(Status([b'0', one])),
        _ => None,
    }
}

/// Beginning of a wrong line, for an error.
fn beginning(line: &[u8]) -> Vec<u8> {
    line[..line.len().min(32)].to_vec()
}

/// Lines after the status.
struct Body<'a> {
    symbol: Symbol,
    lines: Vec<&'a [u8]>,
}

/// Number of a body's first line.
const FIRST: usize = 3;

impl Body<'_> {
    fn content(&self, echo: &Echo, status: Status) -> Result<Content, ReplyError> {
        match self.symbol {
            Symbol::Version if status == Status::DONE => self.version().map(Content::Version),
            Symbol::Parameters if status == Status::DONE => self.parameters().map(Content::Parameters),
            Symbol::Status if status == Status::DONE => self.values().map(Content::Status),
            Symbol::Time if status == Status::DONE && echo.control == 1 => {
                self.exactly(1)?;
                self.time().map(Content::Time)
            }
            Symbol::Once(_) if status == Status::DONE => self.scan(echo),
            Symbol::Stream(_) if status == Status::SCAN => self.scan(echo),
            _ => self.exactly(0).map(|()| Content::Nothing),
        }
    }

    fn exactly(&self, count: usize) -> Result<(), ReplyError> {
        match self.lines.get(count) {
            None => Ok(()),
            Some(line) => Err(ReplyError::Length {
                symbol: self.symbol,
                line: FIRST + count,
                expected: "nothing more",
                found: line.len(),
            }),
        }
    }

    /// Line without its sum, which was checked.
    fn checked(&self, place: usize) -> Result<&[u8], ReplyError> {
        let line = self.lines.get(place).copied().unwrap_or_default();
        let too_short = ReplyError::Length {
            symbol: self.symbol,
            line: FIRST + place,
            expected: "1 to 64 characters and their sum",
            found: line.len(),
        };
        let (&found, text) = line.split_last().ok_or(too_short)?;
        self.compare(place, text, found).map(|()| text)
    }

    fn compare(&self, place: usize, text: &[u8], found: u8) -> Result<(), ReplyError> {
        let expected = sum(text);
        let wrong = ReplyError::Sum { symbol: self.symbol, line: FIRST + place, expected, found };
        (expected == found).then_some(()).ok_or(wrong)
    }

    fn number(&self, characters: &[u8]) -> Result<u32, ReplyError> {
        decode(characters).map_err(|found| match found {
            Some(found) => ReplyError::Character { symbol: self.symbol, found },
            None => ReplyError::Points { symbol: self.symbol, expected: 4, found: characters.len() },
        })
    }

    fn time(&self) -> Result<u32, ReplyError> {
        let line = self.checked(0)?;
        if line.len() != 4 {
            let (symbol, found) = (self.symbol, line.len() + 1);
            return Err(ReplyError::Length {
                symbol,
                line: FIRST,
                expected: "4 characters of time and their sum",
                found,
            });
        }
        self.number(line)
    }

    fn scan(&self, echo: &Echo) -> Result<Content, ReplyError> {
        let time = self.time()?;
        let (Symbol::Once(encoding) | Symbol::Stream(encoding)) = self.symbol else {
            return Ok(Content::Nothing);
        };
        let width = encoding.characters();
        let expected = echo.sector.points() * width;
        // A range may begin in one line and end in the next.
        let mut characters = Vec::with_capacity(expected);
        for place in 1..self.lines.len() {
            let line = self.checked(place)?;
            if line.len() > LONGEST_LINE || characters.len() + line.len() > expected {
                let found = characters.len() + line.len();
                return Err(ReplyError::Points { symbol: self.symbol, expected, found });
            }
            characters.extend_from_slice(line);
        }
        if characters.len() != expected {
            return Err(ReplyError::Points { symbol: self.symbol, expected, found: characters.len() });
        }
        let ranges = characters.chunks(width).map(|it| self.number(it)).collect::<Result<_, _>>()?;
        Ok(Content::Scan { time, ranges })
    }

    /// Values of `NAME:VALUE;` lines. The sum covers the characters before the semicolon (8.11).
    fn values(&self) -> Result<Vec<(String, String)>, ReplyError> {
        let mut values = Vec::new();
        for (place, line) in self.lines.iter().enumerate() {
            let Some((text, &[b';', check])) = line.split_last_chunk::<2>() else {
                let (symbol, line, found) = (self.symbol, FIRST + place, line.len());
                return Err(ReplyError::Length { symbol, line, expected: "NAME:VALUE;SUM", found });
            };
            self.compare(place, text, check)?;
            let text = String::from_utf8_lossy(text);
            let (name, value) = text.split_once(':').unwrap_or((&text, ""));
            values.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(values)
    }

    fn version(&self) -> Result<Version, ReplyError> {
        let values = self.values()?;
        let value = |name| of(&values, name).unwrap_or_default().to_owned();
        Ok(Version {
            vendor: value("VEND"),
            product: value("PROD"),
            firmware: value("FIRM"),
            protocol: value("PROT"),
            serial: value("SERI"),
        })
    }

    fn parameters(&self) -> Result<Parameters, ReplyError> {
        let values = self.values()?;
        let number = |name: &'static str| {
            let found = of(&values, name);
            found.and_then(|it| it.parse::<u32>().ok()).ok_or_else(|| ReplyError::Value {
                symbol: self.symbol,
                name,
                found: found
                    .map_or_else(|| "nothing".to_owned(), |it| format!("\"{}\"", it.escape_debug())),
            })
        };
        let step = |name: &'static str| {
            let value = number(name)?;
            // A step in a command has at most four digits.
            u16::try_from(value).ok().filter(|&it| it <= 9_999).ok_or_else(|| ReplyError::Value {
                symbol: self.symbol,
                name,
                found: value.to_string(),
            })
        };
        Ok(Parameters {
            model: of(&values, "MODL").unwrap_or_default().to_owned(),
            shortest: number("DMIN")?,
            longest: number("DMAX")?,
            steps_per_turn: number("ARES")?,
            first: step("AMIN")?,
            last: step("AMAX")?,
            front: step("AFRT")?,
            turns_per_minute: number("SCAN")?,
        })
    }
}

fn of<'a>(values: &'a [(String, String)], name: &str) -> Option<&'a str> {
    values.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
}

/// Most characters of data in a line, without their sum (8.1).
const LONGEST_LINE: usize = 64;

/// The recorded reply of this number: each ends with an empty line.
#[cfg(test)]
pub(super) const fn recorded(number: usize) -> &'static [u8] {
    let (mut rest, mut before, mut length) = (include_bytes!("recorded.txt").as_slice(), number, 0);
    loop {
        length += 1;
        if rest[length - 1] == b'\n' && rest[length] == b'\n' {
            let (reply, others) = rest.split_at(length + 1);
            if before == 0 {
                return reply;
            }
            (rest, before, length) = (others, before - 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scip::command::{Encoding, Sector};

    /// Recorded replies of real sensors: a GD scan of a URG-04LX; VV of a URG-04LX-UG01, PP and II
    /// of a URG-04LX as shown on their maker's pages; and an MD scan of a UTM-30LX that lost one
    /// character on its way through a web page.
    const GD: &[u8] = recorded(0);
    const VV: &[u8] = recorded(1);
    const PP: &[u8] = recorded(2);
    const II: &[u8] = recorded(3);
    const MD_DAMAGED: &[u8] = recorded(4);

    fn parse(reply: &[u8]) -> Result<Reply, ReplyError> {
        Reply::parse(reply.strip_suffix(b"\n\n").unwrap())
    }

    /// A reply with one byte changed.
    fn with(reply: &[u8], place: usize, byte: u8) -> Vec<u8> {
        let mut reply = reply.to_vec();
        reply[place] = byte;
        reply
    }

    // feature(devices): SCIP 2.0 over a (pseudo-)terminal: recorded replies, damage, garbage, unplugging
    #[test]
    fn a_recorded_scan_is_read_range_by_range() {
        let reply = parse(GD).unwrap();
        assert_eq!(reply.echo.sector, Sector { first: 44, last: 725, cluster: 1 });
        let Content::Scan { time, ranges } = reply.content else { panic!("{reply:?}") };
        assert_eq!((time, ranges.len()), (513, 682));
        // Computed from the recording by another program.
        assert_eq!(ranges[..12], [34, 34, 34, 36, 39, 36, 33, 31, 25, 25, 25, 2855]);
        assert_eq!(ranges[340..345], [5239, 5232, 5229, 5226, 5226]);
        assert_eq!((ranges.iter().sum::<u32>(), ranges[681]), (1_322_861, 1_696));
    }

    #[test]
    fn recorded_version_parameters_and_status_are_read() {
        let Content::Version(version) = parse(VV).unwrap().content else { panic!() };
        assert_eq!(version.product, "SOKUIKI Sensor URG-04LX-UG01(Simple-URG)");
        assert_eq!((version.protocol.as_str(), version.serial.as_str()), ("SCIP 2.0", "H1510998"));
        let Content::Parameters(parameters) = parse(PP).unwrap().content else { panic!() };
        assert_eq!(
            (parameters.shortest, parameters.longest, parameters.steps_per_turn),
            (20, 5_600, 1_024)
        );
        assert_eq!((parameters.first, parameters.last, parameters.front), (44, 725, 384));
        assert_eq!(parameters.turns_per_minute, 600);
        let Content::Status(status) = parse(II).unwrap().content else { panic!() };
        assert_eq!(status[1], ("LASR".to_owned(), "OFF".to_owned()));
        assert_eq!(of(&status, "SCSP"), Some("Initial(600[rpm])<-Default setting by user"));
    }

    #[test]
    fn a_recorded_scan_that_was_damaged_is_refused_with_the_line() {
        let error = parse(MD_DAMAGED).unwrap_err();
        assert_eq!(error.to_string(), "MD: expected the sum '2' in line 5, found '1'");
    }

    /// The six-bit check character reveals every change of one byte that alters its lowest six
    /// bits.
    // feature(devices): SCIP 2.0 over a (pseudo-)terminal: recorded replies, damage, garbage, unplugging
    #[test]
    fn every_changed_byte_of_a_scan_is_noticed() {
        for (place, byte) in GD.iter().enumerate().take(GD.len() - 2).skip(13) {
            let changed = with(GD, place, byte ^ 1);
            assert!(parse(&changed).is_err(), "byte {place}");
        }
    }

    #[test]
    fn a_scan_cut_anywhere_is_refused() {
        let whole = GD.strip_suffix(b"\n\n").unwrap();
        for end in 0..whole.len() {
            assert!(Reply::parse(&whole[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_was_expected() {
        let error = |text: &[u8]| Reply::parse(text).unwrap_err().to_string();
        assert_eq!(error(b"hello\n00P"), "expected a command's echo, found \"hello\"");
        let status = "VV: expected a status of two characters and their sum, found \"00Q\"";
        assert_eq!(error(b"VV\n00Q\nVEND:x;0"), status);
        assert_eq!(error(b"BM\n00P\nmore"), "BM: expected a line of nothing more, found 4 bytes in line 3");
        assert_eq!(error(b"PP\n00P"), "PP: expected DMIN:NUMBER, found nothing");
        // Two ranges requested, three sent.
        let points = "GS: expected 4 characters of ranges, found 6";
        assert_eq!(error(b"GS0000000101\n00P\n00000\n000000P"), points);
        assert_eq!(
            error(b"GS0000000001\n00P\n00000\n0~^"),
            "GS: expected characters from '0' to 'o' in an encoded number, found '~'"
        );
        assert_eq!(
            error(b"VV\n00P\nVEND"),
            "VV: expected a line of NAME:VALUE;SUM, found 4 bytes in line 3"
        );
    }

    #[test]
    fn refusals_are_read_and_have_a_meaning() {
        let reply = Reply::parse(b"MD0000999901000\n04T").unwrap();
        assert_eq!((reply.content, reply.status.to_string()), (Content::Nothing, "04".to_owned()));
        assert_eq!(reply.status.meaning(reply.echo.symbol), "the last step is out of range");
        let laser = Reply::parse(b"BM\n02R").unwrap();
        assert_eq!(laser.status.meaning(Symbol::LaserOn), "its laser is on already");
        // A sensor that started in SCIP 1.1, and one without support for it.
        assert_eq!(Reply::parse(b"SCIP2.0\n0").unwrap().status, Status::DONE);
        let unknown = Reply::parse(b"SCIP2.0\n0Ee").unwrap();
        assert_eq!(unknown.status.meaning(Symbol::Scip2), "it does not know the command");
        assert_eq!(Status(*b"99").meaning(Symbol::Stream(Encoding::Long)), "a scan");
    }
}
