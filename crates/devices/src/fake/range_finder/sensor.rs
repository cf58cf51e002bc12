//! Protocol and measurements of the simulated laser range finder.

use super::Settings;

/// Simulated sensor: bytes and time in, bytes out. Its encoder is written from the specification
/// and shares nothing with the decoder under test.
#[derive(Debug)]
pub struct Sensor {
    pub(super) settings: Settings,
    speaks_2_0: bool,
    laser: bool,
    tells_time: bool,
    /// Instant of power-on, host's clock.
    began_ns: u64,
    line: Vec<u8>,
    stream: Option<Stream>,
    out: Vec<u8>,
    scans: u32,
}

#[derive(Clone, Debug)]
struct Stream {
    /// `MD` or `MS` and its parameters up to the number of scans.
    command: String,
    tag: String,
    range: [u16; 3],
    width: usize,
    every: u32,
    left: Option<u32>,
    next_ns: u64,
}

impl Sensor {
    /// Creates a sensor that is powered on now.
    #[must_use]
    pub fn new(settings: Settings, now_ns: u64) -> Self {
        let mut sensor = Self {
            speaks_2_0: !settings.faults.old_protocol,
            laser: false,
            tells_time: false,
            began_ns: now_ns,
            line: Vec::new(),
            stream: None,
            out: Vec::new(),
            scans: 0,
            settings,
        };
        if sensor.settings.faults.streams_already {
            let [first, last, _] = sensor.settings.sector;
            sensor.command(&format!("MD{first:04}{last:04}01000"), now_ns);
            sensor.out.clear();
        }
        sensor
    }

    /// Handles bytes received from the host.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        for &byte in bytes {
            if byte == b'\n' || byte == b'\r' {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                if !line.is_empty() {
                    self.command(&line, now_ns);
                }
            } else if self.line.len() < 64 {
                self.line.push(byte);
            }
        }
    }

    /// Bytes the sensor has to send by now.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Vec<u8> {
        if let Some(mut stream) = self.stream.clone().filter(|it| it.next_ns <= now_ns) {
            // Scans due while it was still sending are left out.
            let turn_ns = self.settings.turn.as_nanos() as u64;
            stream.next_ns += (now_ns - stream.next_ns) / turn_ns.max(1) * turn_ns;
            self.scan_of(stream);
        }
        let said = std::mem::take(&mut self.out);
        if self.settings.faults.mute {
            return Vec::new();
        }
        if self.settings.faults.garbage {
            return said.iter().map(|&byte| byte.wrapping_mul(7) ^ 0x5a).collect();
        }
        said
    }

    fn command(&mut self, line: &str, now_ns: u64) {
        if !self.speaks_2_0 {
            // In SCIP 1.1 it accepts only the command that ends this mode.
            let known = line == "SCIP2.0";
            self.speaks_2_0 = known;
            let answer = if known { "SCIP2.0\n0\n\n".to_owned() } else { format!("{line}\nE\n\n") };
            return self.out.extend(answer.bytes());
        }
        let (order, tag) = line.split_at(line.find(';').unwrap_or(line.len()));
        let (order, tag) = (order.to_owned(), tag.to_owned());
        let (symbol, parameters) = order.split_at(order.len().min(2));
        match (symbol, parameters.len()) {
            ("QT", 0) => {
                (self.laser, self.stream) = (false, None);
                self.answer(line, "00", &[]);
            }
            ("RS", 0) => {
                (self.laser, self.stream, self.tells_time) = (false, None, false);
                self.began_ns = now_ns;
                self.answer(line, "00", &[]);
            }
            ("TM", 1) => self.time(line, parameters, now_ns),
            // In time mode it accepts no other command (8.6).
            _ if self.tells_time => self.answer(line, "0B", &[]),
            ("BM", 0) => {
                let status = match (self.settings.faults.broken_laser, self.laser) {
                    (true, _) => "01",
                    (false, true) => "02",
                    (false, false) => "00",
                };
                self.laser = status != "01";
                self.answer(line, status, &[]);
            }
            ("VV", 0) => self.values(line, &version()),
            ("PP", 0) => self.values(line, &self.parameters()),
            ("II", 0) => self.values(line, &self.status(now_ns)),
            ("GD" | "GS", 10) => self.once(line, symbol, parameters, now_ns),
            ("MD" | "MS", 13) => self.begin(line, &order, &tag, now_ns),
            ("GD" | "GS" | "MD" | "MS", _) => self.answer(line, "0C", &[]),
            _ => self.answer(line, "0E", &[]),
        }
    }

    fn time(&mut self, line: &str, control: &str, now_ns: u64) {
        let status = match (control, self.tells_time) {
            ("0", false) | ("1" | "2", true) => "00",
            ("0", true) => "02",
            ("2", false) => "03",
            ("1", false) => "04",
            _ => "01",
        };
        if status == "00" {
            self.tells_time = control != "2";
            (self.laser, self.stream) = (false, None);
        }
        let time = self.characters(self.time_ms(now_ns), 4);
        let told = if control == "1" && status == "00" { vec![time] } else { Vec::new() };
        self.answer(line, status, &told);
    }

    fn once(&mut self, line: &str, symbol: &str, parameters: &str, now_ns: u64) {
        match self.range(parameters) {
            Err(status) => self.answer(line, status, &[]),
            Ok(_) if !self.laser => self.answer(line, "10", &[]),
            Ok(range) => {
                let width = if symbol == "GD" { 3 } else { 2 };
                let scan = self.scan(range, width, now_ns);
                self.answer(line, "00", &scan);
            }
        }
    }

    fn begin(&mut self, line: &str, order: &str, tag: &str, now_ns: u64) {
        let parameters = &order[2..];
        let number = |text: &str| text.parse::<u32>().ok();
        let (skip, scans) = (number(&parameters[10..11]), number(&parameters[11..13]));
        match (self.range(&parameters[..10]), skip, scans) {
            (Err(status), ..) => self.answer(line, status, &[]),
            (_, None, _) => self.answer(line, "06", &[]),
            (_, _, None) => self.answer(line, "07", &[]),
            (Ok(range), Some(skip), Some(scans)) => {
                self.laser = true;
                self.answer(line, "00", &[]);
                self.stream = Some(Stream {
                    command: order[..13].to_owned(),
                    tag: tag.to_owned(),
                    range,
                    width: if order.starts_with("MD") { 3 } else { 2 },
                    every: skip + 1,
                    left: (scans > 0).then_some(scans),
                    next_ns: now_ns + self.settings.turn.as_nanos() as u64,
                });
            }
        }
    }

    /// First step, last step and cluster of a command; otherwise the status for a bad one.
    fn range(&self, parameters: &str) -> Result<[u16; 3], &'static str> {
        let number = |text: &str, status| text.parse::<u16>().map_err(|_| status);
        let first = number(&parameters[..4], "01")?;
        let last = number(&parameters[4..8], "02")?;
        let cluster = number(&parameters[8..10], "03")?;
        if last > self.settings.sector[1] {
            Err("04")
        } else if last < first {
            Err("05")
        } else {
            Ok([first, last, cluster.max(1)])
        }
    }

    fn scan_of(&mut self, stream: Stream) {
        self.scans += 1;
        let faults = self.settings.faults.clone();
        let number = self.scans;
        let nth = |every: u32| every > 0 && number % every == 0;
        let left = stream.left.map(|left| left - 1);
        let echo = format!("{}{:02}{}", stream.command, left.unwrap_or(0), stream.tag);
        let scan = self.scan(stream.range, stream.width, stream.next_ns);
        let silent = faults.silent_after > 0 && self.scans > faults.silent_after;
        let before = self.out.len();
        if !silent {
            self.answer(&echo, "99", &scan);
        }
        let said = self.out.len() - before;
        if said > 200 && nth(faults.wrong_sum_in) {
            self.out[before + 150] ^= 1;
        }
        if said > 200 && nth(faults.half_in) {
            self.out.truncate(before + said / 2);
        }
        let step = self.settings.turn.as_nanos() as u64 * u64::from(stream.every);
        let next_ns = stream.next_ns + step;
        self.stream = (left != Some(0)).then_some(Stream { left, next_ns, ..stream });
        self.laser &= self.stream.is_some();
    }

    /// Time stamp and ranges of a scan, as lines without sums.
    fn scan(&self, [first, last, cluster]: [u16; 3], width: usize, now_ns: u64) -> Vec<String> {
        let [_, _, front] = self.settings.sector;
        let [shortest, longest] = self.settings.reach;
        let largest = if width == 2 { 4_095 } else { 262_143 };
        let step = std::f64::consts::TAU / f64::from(self.settings.steps);
        let measured = |number: u16| {
            let angle = (f64::from(number) - f64::from(front)) * step;
            let metres = self.settings.scene.range(now_ns, self.settings.ahead, angle);
            let noise =
                f64::from(fastrand::u32(0..=2 * self.settings.noise)) - f64::from(self.settings.noise);
            let millimetres = metres * 1_000.0 + noise;
            // Beyond the longest range: 0; below the shortest: an error code.
            if millimetres > f64::from(longest) {
                0
            } else if millimetres < f64::from(shortest) {
                6.min(shortest)
            } else {
                (millimetres as u32).min(largest)
            }
        };
        let steps: Vec<u32> = (first..=last).map(measured).collect();
        // Nearest range of a cluster that is no error (8.1).
        let nearest = |cluster: &[u32]| {
            cluster.iter().copied().filter(|&it| it >= shortest).min().unwrap_or(cluster[0])
        };
        let text: String = steps
            .chunks(usize::from(cluster))
            .map(|cluster| self.characters(nearest(cluster), width))
            .collect();
        let mut lines = vec![self.characters(self.time_ms(now_ns), 4)];
        let characters: Vec<char> = text.chars().collect();
        lines.extend(characters.chunks(64).map(|line| line.iter().collect::<String>()));
        lines
    }

    fn time_ms(&self, now_ns: u64) -> u32 {
        (now_ns.saturating_sub(self.began_ns) / 1_000_000 % 16_777_216) as u32
    }

    fn values(&mut self, line: &str, values: &[String]) {
        self.out.extend(format!("{line}\n00P\n").bytes());
        for value in values {
            let sum = check(value);
            self.out.extend(format!("{value};{sum}\n").bytes());
        }
        self.out.push(b'\n');
    }

    fn answer(&mut self, line: &str, status: &str, lines: &[String]) {
        self.out.extend(format!("{line}\n{status}{}\n", check(status)).bytes());
        for line in lines {
            self.out.extend(format!("{line}{}\n", check(line)).bytes());
        }
        self.out.push(b'\n');
    }

    /// Encodes a number in `count` characters: base-64 digits, highest first, starting at '0' (6).
    fn characters(&self, number: u32, count: usize) -> String {
        let digit = |place: usize| number / 64_u32.pow((count - 1 - place) as u32) % 64;
        (0..count).filter_map(|place| char::from_u32(48 + digit(place))).collect()
    }

    fn parameters(&self) -> Vec<String> {
        let [first, last, front] = self.settings.sector;
        let [shortest, longest] = self.settings.reach;
        let turns = 60_000 / self.settings.turn.as_millis().max(1);
        vec![
            "MODL:Onbeat double of a URG-04LX".into(),
            format!("DMIN:{shortest}"),
            format!("DMAX:{longest}"),
            format!("ARES:{}", self.settings.steps),
            format!("AMIN:{first}"),
            format!("AMAX:{last}"),
            format!("AFRT:{front}"),
            format!("SCAN:{turns}"),
        ]
    }

    fn status(&self, now_ns: u64) -> Vec<String> {
        vec![
            "MODL:Onbeat double of a URG-04LX".into(),
            format!("LASR:{}", if self.laser { "ON" } else { "OFF" }),
            format!("TIME:{:06X}", self.time_ms(now_ns)),
            "STAT:Sensor works well.".into(),
        ]
    }
}

fn version() -> Vec<String> {
    ["VEND:Onbeat", "PROD:Double of a URG-04LX", "FIRM:1.0", "PROT:SCIP 2.0", "SERI:X0000001"]
        .map(str::to_owned)
        .into()
}

/// Check character of a line: the sum of its bytes modulo 64, starting at '0' (7).
fn check(line: &str) -> char {
    let total: u32 = line.bytes().map(u32::from).sum();
    char::from_u32(48 + total % 64).unwrap_or('0')
}
