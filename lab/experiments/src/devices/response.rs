//! Response as the paper's Table 1 has it: the real-time task sends its command through the channel
//! and waits for the driver's answer in every period.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ::devices::Peripheral;
use ::devices::pair::Moment;
use ipc::channel::{Channel, Kind, Port, Wake};
use ipc::client::Client;
use ipc::description::Description;
use ipc::server::Builder;
use rt::clock::{Clock, MonotonicClock, now_ns};
use rt::task::{Periods, Settings};
use types::time::nanoseconds;

use super::subject::{Compute, Drive, Subject};
use crate::child::SocketFolder;
use crate::{Context, Error};

/// Instants of one command: its begin, computed, sent, read by the ordinary task, carried out by
/// the driver, back, taken.
pub(super) type Stamps = [u64; 7];

/// Commands of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Answered {
    pub(super) commands: Vec<Stamps>,
    /// Commands without an answer in time.
    pub(super) lost: u64,
    /// Connection and description of the device, or why it cannot be opened.
    pub(super) device: String,
    pub(super) refusals: Vec<String>,
}

impl Answered {
    /// Responses, ns.
    pub(super) fn responses(&self) -> Vec<u64> {
        self.commands.iter().map(|it| it[6] - it[0]).collect()
    }

    /// Periods: begin to begin.
    pub(super) fn periods(&self) -> Vec<u64> {
        self.commands.windows(2).map(|pair| pair[1][0] - pair[0][0]).collect()
    }

    /// One of the instants of all commands.
    pub(super) fn column(&self, place: usize) -> Vec<u64> {
        self.commands.iter().map(|it| it[place]).collect()
    }

    /// Averages of C, S, r, D, R, w, ns.
    pub(super) fn parts(&self) -> Option<[f64; 6]> {
        let count = Some(self.commands.len()).filter(|&count| count > 0)? as f64;
        let part = |place: usize| {
            let all = self.commands.iter().map(|it| it[place + 1].saturating_sub(it[place]));
            all.sum::<u64>() as f64 / count
        };
        Some([0, 1, 2, 3, 4, 5].map(part))
    }
}

/// Runs these devices for `duration`, all released together.
///
/// # Errors
/// The shared-memory interface or a thread cannot be made.
pub(super) fn conduct(
    peripherals: &[Peripheral],
    duration: Duration,
    context: &Context,
) -> Result<Vec<Answered>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::other(format_args!("devices: {error}"));
    let folder = SocketFolder::new("responses")?;
    let mut builder = Builder::new("responses", &Description::default());
    builder.folder(&folder.0);
    let mut subjects = Vec::new();
    for it in peripherals {
        let subject = Subject::new(it)?;
        let kind = Kind::Message { size: HEAD + subject.longest, depth: 4 };
        let port = builder.port_waking(&it.port, kind, Wake::Event).map_err(|error| failed(&error))?;
        subjects.push((it, subject, port));
    }
    let (_ends, server) = builder.open().map_err(|error| failed(&error))?;
    let mut pairs = Vec::new();
    for (it, subject, port) in subjects {
        let Subject { compute, drive, longest, fake } = subject;
        let jobs = jobs(duration, it.period);
        let settings = Settings::every(it.name.as_str(), it.period).with_profile(it.profile);
        let body = move |periods: &mut Periods| command(port, compute, longest, periods, jobs);
        let (task, _records) = settings.create_loop(body).map_err(|error| failed(&error))?;
        if !task.wait_until_ready(READY) {
            return Err(failed(&format_args!("the task of {} is not ready after 30 s", it.name)));
        }
        pairs.push((it, task, drive, fake));
    }
    let client = Client::open(server.path()).map_err(|error| failed(&error))?;
    let over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let over = &over;
        let result = (|| {
            let mut ends = Vec::new();
            for (it, task, drive, fake) in pairs {
                let channel = client.port(&it.port).map_err(|error| failed(&error))?;
                let (open, opened) = mpsc::channel();
                let thread = thread::Builder::new().name(format!("{} device", it.name));
                let driving = thread.spawn_scoped(scope, move || {
                    let _fake = fake;
                    drive_it(drive, &channel, &open, over);
                });
                driving.map_err(|error| failed(&error))?;
                ends.push((task, opened));
            }
            let devices: Vec<String> =
                ends.iter().map(|(_, opened)| opened.recv().unwrap_or_default()).collect();
            let first = MonotonicClock.now() + LEAD;
            ends.iter().for_each(|(task, _)| task.start_at(first));
            context.wait(duration + LEAD);
            ends.iter().for_each(|(task, _)| task.stop());
            let answered = ends.into_iter().zip(devices).map(|((task, _), device)| {
                let refusals = task.grants().refusals().collect();
                let answered = task.join().map_err(|error| failed(&error))?.value;
                Ok(Answered { device, refusals, ..answered })
            });
            answered.collect()
        })();
        // The ordinary tasks end.
        over.store(true, Ordering::Relaxed);
        result
    });
    drop(server);
    result
}

/// Room for the commands of a run.
pub(super) fn jobs(duration: Duration, period: Duration) -> usize {
    usize::try_from(duration.as_nanos() / period.as_nanos().max(1)).unwrap_or(usize::MAX).saturating_add(16)
}

/// Real-time task: it works, sends, waits for the answer, and takes it.
fn command(
    mut port: Port,
    mut compute: Box<dyn Compute>,
    longest: usize,
    periods: &mut Periods,
    jobs: usize,
) -> Answered {
    let mut commands: Vec<Stamps> = vec![[u64::MAX; 7]; jobs];
    std::hint::black_box(&mut commands).clear();
    let mut answered = Answered { commands, ..Answered::default() };
    let (mut outbox, mut inbox) = (vec![0xff; HEAD + longest], vec![0xff; HEAD + longest]);
    let period_ns = nanoseconds(periods.period());
    // Of a device that fails none is answered: the task waits for the next release at most.
    let longest_wait = periods.period();
    let mut number = 0_u64;
    port.bind();
    while let Some(release) = periods.wait_period() {
        let begin = now_ns();
        number += 1;
        let moment = Moment { release_ns: release.instant.as_nanos(), period_ns, stale: false };
        let length = compute.command(&moment, &mut outbox[HEAD..]);
        outbox[..8].copy_from_slice(&number.to_le_bytes());
        let computed = now_ns();
        let _ = port.send(&outbox[..HEAD + length]);
        let sent = now_ns();
        let end = begin + nanoseconds(longest_wait);
        let found = loop {
            match port.receive(&mut inbox) {
                Some(length) if number_at(&inbox, 0) == number => break Some((length, now_ns())),
                // An answer to an earlier command.
                Some(_) => {}
                None if now_ns() >= end => break None,
                None => drop(port.wait(Duration::from_nanos(end.saturating_sub(now_ns())))),
            }
        };
        match found {
            Some((length, back)) if length > HEAD && compute.answer(&inbox[HEAD..length]) => {
                // On another CPU it may have been carried out before the send has returned.
                let read = number_at(&inbox, 8).max(sent);
                let carried_out = number_at(&inbox, 16).max(read);
                if answered.commands.len() < jobs {
                    answered.commands.push([begin, computed, sent, read, carried_out, back, now_ns()]);
                }
            }
            _ => answered.lost += 1,
        }
    }
    answered
}

/// Number of a command, and when its answer's driver began and ended.
const HEAD: usize = 24;

fn number_at(bytes: &[u8], place: usize) -> u64 {
    bytes.get(place..place + 8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Ordinary task: it reads commands, has the driver carry them out, and writes the answers back.
fn drive_it(mut drive: Box<dyn Drive>, channel: &Channel, open: &mpsc::Sender<String>, over: &AtomicBool) {
    let opened = drive.open();
    let works = opened.is_ok();
    let outcome = opened.unwrap_or_else(|error| format!("fails: {error}"));
    let _ = open.send(format!("{}: {outcome}", drive.device()));
    let mut inbox = vec![0; 65_536];
    let mut outbox = vec![0; 65_536];
    while works && !over.load(Ordering::Relaxed) {
        let length = match channel.recv_timeout(&mut inbox, Duration::from_millis(50)) {
            Ok(Some(length)) => length,
            Ok(None) => continue,
            Err(error) if error.kind() == ErrorKind::InvalidInput => continue,
            Err(_) => break,
        };
        let read = now_ns();
        let Ok(answer) = drive.exchange(&inbox[HEAD.min(length)..length], &mut outbox[HEAD..]) else {
            // As `onbeat run` does; the command has no answer.
            drive.close();
            if drive.open().is_err() {
                break;
            }
            continue;
        };
        outbox[..8].copy_from_slice(&inbox[..8]);
        outbox[8..16].copy_from_slice(&read.to_le_bytes());
        outbox[16..24].copy_from_slice(&now_ns().to_le_bytes());
        let _ = channel.send_timeout(&outbox[..HEAD + answer.unwrap_or(0)], Duration::from_millis(50));
    }
    drive.close();
}

/// Longest wait for a task.
const READY: Duration = Duration::from_secs(30);

/// From all devices being open to the first release.
const LEAD: Duration = Duration::from_millis(20);
