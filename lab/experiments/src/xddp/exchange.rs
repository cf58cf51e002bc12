//! Messages through one port: a real-time task sends and waits for the answer, an ordinary one
//! reads and answers.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ipc::channel::{Channel, Kind, Port, Wake};
use ipc::client::Client;
use ipc::description::Description;
use ipc::server::Builder;
use rt::clock::now_ns;
use rt::profile::RealTimeProfile;
use rt::task::{Periods, Settings};

use crate::Error;
use crate::child::SocketFolder;
use crate::distribution::resident;

/// Bytes of a message: its number, and when it was sent, read and answered.
pub(super) const MESSAGE: usize = 32;

/// Longest wait of the real-time task for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_millis(500);

/// A port, and its messages.
pub(super) struct Exchange {
    pub(super) kind: Kind,
    pub(super) wake: Wake,
    pub(super) samples: usize,
    pub(super) interval: Duration,
    pub(super) profile: RealTimeProfile,
}

/// Times of the messages that came back, ns, and calls of the real-time task.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) sends: Vec<u64>,
    pub(super) there: Vec<u64>,
    pub(super) back: Vec<u64>,
    pub(super) round_trips: Vec<u64>,
    /// Messages sent.
    pub(super) sent: u64,
    /// Messages without an answer.
    pub(super) lost: u64,
    /// Calls to wait for an answer.
    pub(super) waits: u64,
    /// Calls to wake the server.
    pub(super) woken: u64,
    pub(super) refusals: Vec<String>,
}

impl Exchange {
    /// Passes all messages, or fewer if `stop` is set before.
    ///
    /// # Errors
    /// The shared-memory interface or a thread cannot be made.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Passed, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::other(format_args!("xddp: {error}"));
        let folder = SocketFolder::new("xddp")?;
        let mut builder = Builder::new("xddp", &Description::default());
        builder.folder(&folder.0);
        let port = builder.port_waking(PORT, self.kind, self.wake).map_err(|error| failed(&error))?;
        let (_ends, server) = builder.open().map_err(|error| failed(&error))?;
        let samples = self.samples;
        let settings = Settings::every("xddp", self.interval).with_profile(self.profile);
        let (task, _records) = settings
            .create_loop(move |periods| send(port, periods, samples))
            .map_err(|error| failed(&error))?;
        if !task.wait_until_ready(READY) {
            return Err(failed(&"the real-time task is not ready after 30 s"));
        }
        let channel = open(server.path().to_owned()).map_err(|error| failed(&error))?;
        let over = AtomicBool::new(false);
        let answered = thread::scope(|scope| {
            let answering = thread::Builder::new()
                .name("ordinary".into())
                .spawn_scoped(scope, || answer(&channel, &over));
            task.start();
            while !task.is_over() && !stop.load(Ordering::Relaxed) && answering.is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
            task.stop();
            let begin = Instant::now();
            while !task.is_over() && begin.elapsed() < READY {
                thread::sleep(Duration::from_millis(5));
            }
            over.store(true, Ordering::Relaxed);
            answering?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        answered.map_err(|error| failed(&error))?;
        let refusals = task.grants().refusals().collect();
        let woken = server.counters().first().map_or(0, |port| port.woken);
        let passed = task.join().map_err(|error| failed(&error))?.value;
        Ok(Passed { refusals, woken, ..passed })
    }
}

const PORT: &str = "port";

/// Longest wait for the task.
const READY: Duration = Duration::from_secs(30);

fn open(path: PathBuf) -> Result<Channel, Box<dyn std::error::Error>> {
    Ok(Client::open(&path)?.port(PORT)?)
}

/// Real-time side.
fn send(mut port: Port, periods: &mut Periods, samples: usize) -> Passed {
    let [sends, there, back, round_trips] = [(); 4].map(|()| resident(samples));
    let mut passed = Passed { sends, there, back, round_trips, ..Passed::default() };
    let mut incoming = Incoming::default();
    port.bind();
    while periods.wait_period().is_some() {
        passed.sent += 1;
        let number = passed.sent;
        let begin = now_ns();
        let told = port.send(&words([number, begin, 0, 0]));
        let sent = now_ns();
        let answer =
            told.is_ok().then(|| incoming.wait_for(number, &mut port, &mut passed.waits)).flatten();
        match answer {
            Some([read, answered, arrived]) => {
                passed.sends.push(sent - begin);
                passed.there.push(read.saturating_sub(begin));
                passed.back.push(arrived.saturating_sub(answered));
                passed.round_trips.push(arrived - begin);
            }
            None => passed.lost += 1,
        }
        if passed.sent >= samples as u64 {
            break;
        }
    }
    passed
}

/// Bytes that have come, up to a whole message.
#[derive(Default)]
struct Incoming {
    bytes: [u8; MESSAGE],
    length: usize,
}

impl Incoming {
    /// Waits for the answer to this message: when it was read, answered, and has arrived. One to an
    /// earlier message is left out.
    fn wait_for(&mut self, number: u64, port: &mut Port, waits: &mut u64) -> Option<[u64; 3]> {
        let end = now_ns() + TIMEOUT.as_nanos() as u64;
        loop {
            while let Some(more) = port.receive(&mut self.bytes[self.length..]) {
                self.length += more;
                if self.length == MESSAGE {
                    self.length = 0;
                    let [of, _, read, answered] = numbers(&self.bytes);
                    if of == number {
                        return Some([read, answered, now_ns()]);
                    }
                }
            }
            let left = end.checked_sub(now_ns())?;
            *waits += 1;
            port.wait(Duration::from_nanos(left));
        }
    }
}

/// Ordinary side: answers until the exchange ends.
fn answer(mut channel: &Channel, over: &AtomicBool) -> io::Result<()> {
    let (mut bytes, mut length) = ([0; MESSAGE], 0);
    while !over.load(Ordering::Relaxed) {
        match channel.recv_timeout(&mut bytes[length..], Duration::from_millis(50)) {
            Ok(Some(more)) => length += more,
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        if length == MESSAGE {
            let read = now_ns();
            length = 0;
            let [number, sent, ..] = numbers(&bytes);
            channel.write_all(&words([number, sent, read, now_ns()]))?;
        }
    }
    Ok(())
}

fn words(numbers: [u64; 4]) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn numbers(bytes: &[u8; MESSAGE]) -> [u64; 4] {
    let mut words =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    [(); 4].map(|()| words.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        assert_eq!(numbers(&words([1, u64::MAX, 0, 7])), [1, u64::MAX, 0, 7]);
    }
}
