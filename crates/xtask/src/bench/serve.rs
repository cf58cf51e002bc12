//! `cargo xtask bench serve`: cost of pages of `onbeat serve` for the cycle of the humanoid.
//!
//! One run, recorded. No client, a program with sixty channels, and a browser that draws them take
//! turns, so that disturbances of the machine affect all alike. The browser shares the cycle's
//! machine here, which it need not do.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::conditions;
use super::recorded::Recorded;
use super::statistics::Sorted;
use crate::command;
use crate::report::{Outcome, Report};

/// Time of one turn; half a second at both its ends is left out.
const TURN: Duration = Duration::from_secs(8);

/// Channels taken.
const CHANNELS: usize = 60;

/// Measures this many rounds of all.
pub(crate) fn measure(root: &Path, rounds: usize, report: &mut Report) {
    report.step("bench serve", || match compare(root, rounds) {
        Ok(table) => {
            println!("{}{table}", conditions::describe());
            conditions::doubts().iter().for_each(|doubt| println!("warning: {doubt}"));
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

/// A client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    Nobody,
    Program,
    Browser,
}

impl Looks {
    fn words(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Program => "60 channels",
            Self::Browser => "a browser",
        }
    }
}

/// A turn: kind of client, start and end in ns of the monotonic clock, and CPU time of the server
/// in it, in hundredths of a second.
struct Turn {
    who: Looks,
    from: u64,
    to: u64,
    ticks: u64,
}

fn compare(root: &Path, rounds: usize) -> Result<String, String> {
    command::run(&mut command::cargo(root, &["build", "--release", "--quiet", "--package", "onbeat-cli"]))?;
    let now = std::process::id();
    let folder = root.join(format!("bench-results/serve-{now}"));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (recording, name) = (folder.join("run.mcap"), format!("bench-serve-{now}"));
    let mut everybody = vec![Looks::Nobody, Looks::Program];
    if command::works("chromium", &["--version"]) {
        everybody.push(Looks::Browser);
    } else {
        println!("without a browser: there is no chromium (Debian: chromium)");
    }
    let program = root.join("target/release/onbeat");
    let mut run = Command::new(&program);
    run.current_dir(root).args([
        "run",
        "examples/humanoid-59.toml",
        "--ipc",
        &name,
        "--json",
        "--signals",
        "none",
    ]);
    run.args(["--cpu", &last_cpu(), "--record"]).arg(&recording).stdout(Stdio::null());
    let mut run = Process::start(run)?;
    let mut serve = Command::new(&program);
    serve.args(["serve", "--ipc", &name, "--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut serve = Process::start(serve)?;
    let mut line = String::new();
    let said = serve.0.stderr.take().ok_or("no standard error")?;
    BufReader::new(said).read_line(&mut line).map_err(|error| error.to_string())?;
    let address = line.strip_prefix("http://").and_then(|it| it.split('/').next()?.parse().ok());
    let address: SocketAddr =
        address.ok_or_else(|| format!("onbeat serve: expected its address, found {line}"))?;
    // The bus comes up, and its axes begin to move.
    thread::sleep(Duration::from_secs(5));
    let mut turns = Vec::new();
    for round in 0..rounds {
        for turn in 0..everybody.len() {
            // The order alternates, too.
            let who = everybody[(round + turn) % everybody.len()];
            let looks = look(who, address, &folder)?;
            thread::sleep(Duration::from_millis(if who == Looks::Browser { 3000 } else { 500 }));
            let (from, ticks) = (monotonic()?, ticks(serve.0.id())?);
            thread::sleep(TURN);
            let turn = Turn { who, from, to: monotonic()?, ticks: self::ticks(serve.0.id())? - ticks };
            drop(looks);
            turns.push(turn);
            thread::sleep(Duration::from_millis(500));
        }
    }
    run.ask_to_end()?;
    table(root, &turns, &everybody, &recording)
        .map(|table| format!("{table}every single number: {}\n", folder.display()))
}

fn look(who: Looks, address: SocketAddr, folder: &Path) -> Result<Option<Box<dyn Looking>>, String> {
    Ok(match who {
        Looks::Nobody => None,
        Looks::Program => Some(Box::new(Taker::start(address).map_err(|error| error.to_string())?)),
        Looks::Browser => {
            let mut browser = Command::new("chromium");
            browser.args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--window-size=1280,800",
            ]);
            browser.arg(format!("--user-data-dir={}", folder.join("browser").display()));
            // Without its protocol's port a browser without a window ends at once.
            browser
                .args(["--remote-debugging-port=0", &format!("http://{address}/#channels=*%20position")]);
            browser.stdout(Stdio::null()).stderr(Stdio::null());
            Some(Box::new(Process::start(browser)?))
        }
    })
}

/// A client that is connected until it is dropped.
trait Looking {}

/// A process that ends with its value.
struct Process(Child);

impl Looking for Process {}

impl Process {
    fn start(mut command: Command) -> Result<Self, String> {
        testkit::end_with_parent(&mut command);
        let child = command.stdin(Stdio::null()).spawn();
        child.map(Self).map_err(|error| format!("{:?} does not start: {error}", command.get_program()))
    }

    /// Asks a run to stop, and waits until it has.
    fn ask_to_end(&mut self) -> Result<(), String> {
        command::run(Command::new("kill").args(["-INT", &self.0.id().to_string()]))?;
        self.0.wait().map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connection that takes rows until it is dropped.
struct Taker(TcpStream);

impl Looking for Taker {}

impl Taker {
    fn start(address: SocketAddr) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        let scope: Vec<String> = (0..CHANNELS).map(|it| it.to_string()).collect();
        let wish = format!("{{\"attached\":1,\"wish\":1,\"scope\":[{}]}}", scope.join(","));
        // RFC 6455: a text frame with a length of 16 bits, and a mask of zeros.
        let length = u16::try_from(wish.len()).unwrap_or(u16::MAX).to_be_bytes();
        let frame = [&[0x81, 0xFE, length[0], length[1], 0, 0, 0, 0], wish.as_bytes()].concat();
        write!(
            stream,
            "GET /socket HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )?;
        stream.write_all(&frame)?;
        let mut taken = stream.try_clone()?;
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while matches!(taken.read(&mut buffer), Ok(1..)) {}
        });
        Ok(Self(stream))
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn table(root: &Path, turns: &[Turn], everybody: &[Looks], recording: &Path) -> Result<String, String> {
    let cycles = cycles(root, recording)?;
    let mut table = String::from(
        "\nhumanoid-59, 1 ms    clients         cycles  median us    99 % us  99.9 % us     most \
         us   CPU of serve\n",
    );
    for (place, what) in ["wakeup latency", "period jitter", "response time"].into_iter().enumerate() {
        for &who in everybody {
            let of = || turns.iter().filter(|turn| turn.who == who);
            let within = |release: u64| of().any(|turn| (turn.from..turn.to).contains(&release));
            let times = cycles.iter().filter(|cycle| within(cycle.release)).map(|cycle| cycle.times[place]);
            let sorted = Sorted::new(times.collect());
            let us = |share| sorted.quantile(share) as f64 / 1e3;
            let seconds = of().map(|turn| turn.to - turn.from).sum::<u64>() as f64 / 1e9;
            let share = of().map(|turn| turn.ticks).sum::<u64>() as f64 / seconds;
            let _ = writeln!(
                table,
                "{what:<21}{:<13}{:>9}{:>11.1}{:>11.1}{:>11.1}{:>12.1}{share:>13.1} %",
                who.words(),
                sorted.len(),
                us(0.5),
                us(0.99),
                us(0.999),
                us(1.0)
            );
        }
    }
    Ok(table)
}

struct Cycle {
    release: u64,
    /// Wake-up latency, period jitter, response time.
    times: [u64; 3],
}

fn cycles(root: &Path, recording: &Path) -> Result<Vec<Cycle>, String> {
    let recorded = Recorded::read(root, recording)?;
    let mut before = None;
    let cycle = |[release, start, end]: [u64; 3]| {
        let jitter = before.map_or(0, |before: u64| start.saturating_sub(before).abs_diff(1_000_000));
        before = Some(start);
        Cycle { release, times: [start.saturating_sub(release), jitter, end.saturating_sub(release)] }
    };
    Ok(recorded.values(["release_ns", "start_ns", "end_ns"])?.map(cycle).collect())
}

fn last_cpu() -> String {
    (thread::available_parallelism().map_or(1, usize::from) - 1).to_string()
}

/// The monotonic clock to a hundredth of a second, ns; it is the time since the machine was
/// started, if it has never been suspended.
fn monotonic() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/uptime").map_err(|error| error.to_string())?;
    let seconds: f64 = text.split(' ').next().and_then(|it| it.parse().ok()).ok_or("/proc/uptime")?;
    Ok((seconds * 1e9) as u64)
}

/// CPU time of a process, in hundredths of a second.
fn ticks(process: u32) -> Result<u64, String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).map_err(|error| error.to_string())?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let time = |place: usize| fields.get(place).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    Ok(time(11) + time(12))
}
