//! Commands of a host (8), and their echo by the sensor.

use std::fmt;
use std::io::Write;

/// Command to the sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// SCIP2.0: leave SCIP 1.1, for sensors that start in it (2). Others answer "undefined
    /// command".
    Scip2,
    /// VV: version (8.11).
    Version,
    /// PP: parameters (8.12).
    Parameters,
    /// II: status (8.13).
    Status,
    /// BM: laser on (8.3).
    LaserOn,
    /// QT: laser off, and end of MD/MS (8.4).
    LaserOff,
    /// RS: all settings as after power-on (8.5).
    Reset,
    /// TM: the sensor's clock (8.6).
    Time(TimeControl),
    /// GD/GS: the newest scan; the laser must be on (8.2).
    Once(Sector, Encoding),
    /// MD/MS: continuous scans (8.1).
    Stream {
        /// Sector of the scan.
        sector: Sector,
        /// Encoding of the ranges.
        encoding: Encoding,
        /// Scans left out after each one, 0 to 9.
        skip: u8,
        /// Number of scans, 1 to 99; 0 for all until QT.
        scans: u8,
    },
}

/// Operation of TM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeControl {
    /// Begins time mode, in which the sensor measures nothing.
    On = 0,
    /// Reads the sensor's clock.
    Ask = 1,
    /// Ends time mode.
    Off = 2,
}

/// Sector of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sector {
    /// First step, up to 9 999.
    pub first: u16,
    /// Last step, up to 9 999, not below the first.
    pub last: u16,
    /// Steps merged into one range, up to 99; 0 or 1 for no merging.
    pub cluster: u8,
}

impl Sector {
    /// Number of ranges of the sector.
    #[must_use]
    pub fn points(&self) -> usize {
        let steps = usize::from(self.last.saturating_sub(self.first)) + 1;
        steps.div_ceil(usize::from(self.cluster.max(1)))
    }
}

/// Encoding of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Two characters, up to 4 095 mm: GS, MS.
    Short,
    /// Three characters, up to 262 143 mm: GD, MD.
    Long,
}

impl Encoding {
    /// Number of characters of a range.
    #[must_use]
    pub fn characters(self) -> usize {
        match self {
            Self::Short => 2,
            Self::Long => 3,
        }
    }
}

/// Symbol at the beginning of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// SCIP2.0
    Scip2,
    /// VV
    Version,
    /// PP
    Parameters,
    /// II
    Status,
    /// BM
    LaserOn,
    /// QT
    LaserOff,
    /// RS
    Reset,
    /// TM
    Time,
    /// GD or GS
    Once(Encoding),
    /// MD or MS
    Stream(Encoding),
}

/// All symbols with their text and the number of parameter characters that follow.
const SYMBOLS: [(Symbol, &str, usize); 12] = [
    (Symbol::Scip2, "SCIP2.0", 0),
    (Symbol::Version, "VV", 0),
    (Symbol::Parameters, "PP", 0),
    (Symbol::Status, "II", 0),
    (Symbol::LaserOn, "BM", 0),
    (Symbol::LaserOff, "QT", 0),
    (Symbol::Reset, "RS", 0),
    (Symbol::Time, "TM", 1),
    (Symbol::Once(Encoding::Long), "GD", 10),
    (Symbol::Once(Encoding::Short), "GS", 10),
    (Symbol::Stream(Encoding::Long), "MD", 13),
    (Symbol::Stream(Encoding::Short), "MS", 13),
];

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SYMBOLS.iter().find(|it| it.0 == *self).map_or("?", |it| it.1))
    }
}

impl Command {
    /// Symbol of the command.
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        match *self {
            Self::Scip2 => Symbol::Scip2,
            Self::Version => Symbol::Version,
            Self::Parameters => Symbol::Parameters,
            Self::Status => Symbol::Status,
            Self::LaserOn => Symbol::LaserOn,
            Self::LaserOff => Symbol::LaserOff,
            Self::Reset => Symbol::Reset,
            Self::Time(_) => Symbol::Time,
            Self::Once(_, encoding) => Symbol::Once(encoding),
            Self::Stream { encoding, .. } => Symbol::Stream(encoding),
        }
    }

    /// Appends the command line. A `tag`, up to 9 999, is repeated in the reply and distinguishes
    /// it from older ones; SCIP2.0 takes none.
    pub fn emit(&self, tag: Option<u16>, line: &mut Vec<u8>) {
        let sector = |line: &mut Vec<u8>, it: Sector| {
            let (first, last, cluster) = (it.first.min(9_999), it.last.min(9_999), it.cluster.min(99));
            write!(line, "{first:04}{last:04}{cluster:02}")
        };
        let symbol = self.symbol();
        // Writing to a vector cannot fail.
        let _ = write!(line, "{symbol}");
        let _ = match *self {
            Self::Time(control) => write!(line, "{}", control as u8),
            Self::Once(it, _) => sector(line, it),
            Self::Stream { sector: it, skip, scans, .. } => {
                sector(line, it).and_then(|()| write!(line, "{}{:02}", skip.min(9), scans.min(99)))
            }
            _ => Ok(()),
        };
        if let Some(tag) = tag.filter(|_| symbol != Symbol::Scip2) {
            let _ = write!(line, ";{:04}", tag.min(9_999));
        }
        line.push(b'\n');
    }
}

/// Echo of a command by the sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Symbol of the command.
    pub symbol: Symbol,
    /// Sector, for GD, GS, MD and MS.
    pub sector: Sector,
    /// Number of scans still to come, for MD and MS; also 0 for an endless stream.
    pub remaining: u8,
    /// Operation of TM, 0 to 2.
    pub control: u8,
    /// Tag, if there was one in our format.
    pub tag: Option<u16>,
}

impl Echo {
    /// Parses a whole line without its line feed; `None` if it is no echo.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (symbol, text, count) =
            SYMBOLS.iter().find(|(_, text, _)| line.starts_with(text.as_bytes())).copied()?;
        let rest = &line[text.len()..];
        let (parameters, tag) = rest.split_at_checked(count)?;
        let tag = match tag.split_first() {
            None => None,
            // A tag has up to 16 characters after the semicolon (7).
            Some((b';', tag)) if tag.len() <= 16 && tag.iter().all(u8::is_ascii_graphic) => number(tag),
            Some(_) => return None,
        };
        let mut echo = Self { symbol, sector: Sector::default(), remaining: 0, control: 0, tag };
        match symbol {
            Symbol::Time => echo.control = u8::try_from(number(parameters)?).ok()?,
            Symbol::Once(_) | Symbol::Stream(_) => {
                echo.sector = Sector {
                    first: number(&parameters[..4])?,
                    last: number(&parameters[4..8])?,
                    cluster: u8::try_from(number(&parameters[8..10])?).ok()?,
                };
                if matches!(symbol, Symbol::Stream(_)) {
                    number(&parameters[10..11])?;
                    echo.remaining = u8::try_from(number(&parameters[11..])?).ok()?;
                }
            }
            _ => {}
        }
        Some(echo)
    }
}

/// Parses up to four decimal digits.
fn number(digits: &[u8]) -> Option<u16> {
    let all = !digits.is_empty() && digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: Sector = Sector { first: 44, last: 725, cluster: 1 };

    fn line(command: Command, tag: Option<u16>) -> String {
        let mut line = Vec::new();
        command.emit(tag, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn commands_are_written_as_the_specification_has_them() {
        assert_eq!(line(Command::Version, None), "VV\n");
        assert_eq!(line(Command::Scip2, Some(3)), "SCIP2.0\n");
        assert_eq!(line(Command::Time(TimeControl::Ask), Some(12)), "TM1;0012\n");
        assert_eq!(line(Command::Once(SECTOR, Encoding::Long), None), "GD0044072501\n");
        assert_eq!(line(Command::Once(SECTOR, Encoding::Short), None), "GS0044072501\n");
        let stream = Command::Stream { sector: SECTOR, encoding: Encoding::Long, skip: 1, scans: 3 };
        assert_eq!(line(stream, None), "MD0044072501103\n");
    }

    #[test]
    fn a_number_too_large_for_its_digits_never_shifts_the_others() {
        let sector = Sector { first: 65_535, last: 65_535, cluster: 255 };
        let stream = Command::Stream { sector, encoding: Encoding::Short, skip: 255, scans: 255 };
        assert_eq!(line(stream, Some(u16::MAX)), "MS9999999999999;9999\n");
    }

    #[test]
    fn an_echo_is_read_back_and_anything_else_is_none() {
        let echo = Echo::parse(b"MD0044072501199;0042").unwrap();
        assert_eq!((echo.symbol, echo.sector), (Symbol::Stream(Encoding::Long), SECTOR));
        assert_eq!((echo.remaining, echo.tag), (99, Some(42)));
        assert_eq!(Echo::parse(b"TM1").unwrap().control, 1);
        assert_eq!(Echo::parse(b"VV;anybody").unwrap().tag, None);
        for wrong in
            ["", "V", "XX", "VVx", "MD004407250119", "GDxxxx072501", "MD00440725011999", "TM", "TMx"]
        {
            assert_eq!(Echo::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_sector_knows_how_many_ranges_it_gives() {
        assert_eq!(SECTOR.points(), 682);
        assert_eq!(Sector { first: 0, last: 1_080, cluster: 4 }.points(), 271);
        assert_eq!(Sector { first: 5, last: 5, cluster: 0 }.points(), 1);
    }
}
