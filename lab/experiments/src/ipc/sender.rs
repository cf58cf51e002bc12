//! Messages from a periodic sender of high priority to a receiver of low priority that blocks
//! (controllers paper, Table 5).

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use record::Statistics;
use report::{Row, Section, Table};
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Pacer;
use rt::profile::{Granted, RealTimeProfile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::mechanism::{Parties, Role};
use crate::distribution::{Durations, heads, resident};

/// Settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) messages: usize,
    pub(super) period: Duration,
    pub(super) sender: RealTimeProfile,
    pub(super) receiver: RealTimeProfile,
}

/// Messages of one mechanism, ns.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) name: String,
    /// Start to start of the sender's jobs.
    pub(super) sender_periods: Vec<u64>,
    /// Reading to reading of the receiver's clock.
    pub(super) receiver_periods: Vec<u64>,
    /// From before the send to the receiver's first reading of the clock after it.
    pub(super) messages: Vec<u64>,
    pub(super) refusals: Vec<String>,
}

/// Instants of one side, and the settings refused.
type Side = io::Result<(Vec<u64>, Vec<u64>, Vec<String>)>;

impl Sending {
    /// Sends all messages, or fewer if `stop` is set before.
    ///
    /// # Errors
    /// The mechanism fails, or a thread cannot be started.
    pub(super) fn run(&self, name: &str, parties: &dyn Parties, stop: &AtomicBool) -> io::Result<Sent> {
        let (over, sent_ns, ready) = (AtomicBool::new(false), AtomicU64::new(0), Barrier::new(2));
        thread::scope(|scope| {
            let (over, sent_ns, ready) = (&over, &sent_ns, &ready);
            let receiving = thread::Builder::new().name("receiver".into());
            let receiving =
                receiving.spawn_scoped(scope, || self.receive(parties, (over, sent_ns, ready)))?;
            let sending = thread::Builder::new().name("sender".into());
            let sending = sending.spawn_scoped(scope, || self.send(parties, (over, sent_ns, ready), stop));
            let sending = sending.inspect_err(|_| {
                over.store(true, Ordering::Relaxed);
                ready.wait();
            });
            let received = join(receiving);
            let (starts, _, mut refusals) = join(sending?)?;
            let (readings, messages, theirs) = received?;
            refusals.extend(theirs);
            let periods =
                |all: &[u64]| all.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
            Ok(Sent {
                name: name.into(),
                sender_periods: periods(&starts),
                receiver_periods: periods(&readings),
                messages,
                refusals,
            })
        })
    }

    fn send(
        &self,
        parties: &dyn Parties,
        (over, sent_ns, ready): (&AtomicBool, &AtomicU64, &Barrier),
        stop: &AtomicBool,
    ) -> Side {
        let granted = Granted::ask(&self.sender);
        let party = parties.party(Role::Caller);
        if party.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        let mut starts = resident(self.messages);
        ready.wait();
        let mut party = party?;
        let mut pacer = Pacer::new(MonotonicClock, self.period);
        let mut failed = Ok(());
        while starts.len() < self.messages
            && failed.is_ok()
            && !stop.load(Ordering::Relaxed)
            && !over.load(Ordering::Relaxed)
        {
            pacer.wait();
            let now = MonotonicClock.now().as_nanos();
            starts.push(now);
            // Relaxed: the message orders it.
            sent_ns.store(now, Ordering::Relaxed);
            failed = party.give();
        }
        // Later than the receiver's work on the last message.
        pacer.wait();
        over.store(true, Ordering::Relaxed);
        party.give()?;
        failed.map(|()| (starts, Vec::new(), granted.refusals().collect()))
    }

    fn receive(
        &self,
        parties: &dyn Parties,
        (over, sent_ns, ready): (&AtomicBool, &AtomicU64, &Barrier),
    ) -> Side {
        let granted = Granted::ask(&self.receiver);
        let party = parties.party(Role::Callee);
        if party.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        let (mut readings, mut messages) = (resident(self.messages), resident(self.messages));
        ready.wait();
        let mut party = party?;
        loop {
            let taken = party.take();
            let now = MonotonicClock.now().as_nanos();
            if over.load(Ordering::Relaxed) {
                return taken.map(|()| (readings, messages, granted.refusals().collect()));
            }
            if let Err(error) = taken {
                over.store(true, Ordering::Relaxed);
                return Err(error);
            }
            if readings.len() < self.messages {
                readings.push(now);
                messages.push(now.saturating_sub(sent_ns.load(Ordering::Relaxed)));
            }
        }
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Table in the form of the paper's.
pub(super) fn table(all: &[Sent], settings: &str) -> Section {
    let statistics = |ns: &Vec<u64>| Durations::new("", ns.clone()).statistics();
    let rows = all.iter().flat_map(|it| {
        let of = [&it.sender_periods, &it.receiver_periods, &it.messages].map(statistics);
        let four = |it: &Statistics| report::numbers::four(it).map(|(_, ns)| ns);
        let [sender, receiver, message] = of.each_ref().map(four);
        ["avg", "max", "min", "SD"].into_iter().enumerate().map(move |(place, which)| {
            let periods = [sender[place], receiver[place]].map(report::numbers::milliseconds);
            let [sender, receiver] = periods;
            let cells = vec![sender, receiver, report::numbers::microseconds(message[place])];
            Row { name: format!("{}: {which}", it.name), cells, from_paper: false }
        })
    });
    Section::Table(Table {
        caption: format!(
            "A message from a periodic sender to a receiver of lower priority that blocks, {settings}: periods P1 of the sender and P2 of the \
             receiver, and T from before the send to the receiver's reading of the clock"
        ),
        columns: heads("mechanism", &["P1, ms", "P2, ms", "T, us"]),
        rows: rows.collect(),
    })
}

/// The same as values for programs.
pub(super) fn values(all: &[Sent]) -> Value {
    let statistics = |ns: &Vec<u64>| Durations::new("", ns.clone()).statistics();
    let value = |it: &Sent| {
        json!({
            "mechanism": it.name,
            "sender_period_ns": statistics(&it.sender_periods),
            "receiver_period_ns": statistics(&it.receiver_periods),
            "message_ns": statistics(&it.messages),
        })
    };
    all.iter().map(value).collect()
}
