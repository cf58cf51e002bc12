//! Cost of communication between threads (controllers paper, Tables 4 and 5).

mod cell;
mod mechanism;
mod port;
mod round_trip;
mod sender;
mod tables;
mod within;

use std::io;
use std::time::Duration;

use report::{Report, Row, Section, Table};
use serde::{Deserialize, Serialize};

use self::mechanism::{Mechanism, Parties};
use self::port::WakingPort;
use self::round_trip::{Taken, Turns, call_batches, take_turns};
use self::sender::{Sending, Sent};
use self::tables::{calls_table, halved, values};
use self::within::Within;
use crate::distribution::{self, Durations};
use crate::paper::Paper;
use crate::peers::hand_over::{HandOver, HandedOver};
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::sys::mutex::Protocol;
use crate::thread::{default_cpu, real_time};
use crate::{Context, Error};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipc {
    /// Round trips of each mechanism at each priority.
    pub samples: usize,
    /// Time between two round trips.
    pub interval: Duration,
    /// Parts of each measurement; ours and the peers' alternate part by part.
    pub rounds: usize,
    /// `SCHED_FIFO` priority of the calling thread, and of both if they are equal.
    pub priority: u8,
    /// Higher priority of the answering thread.
    pub higher: u8,
    /// Time for which the two tasks run with each means that they share.
    pub within: Duration,
    /// Messages of the periodic sender by each mechanism.
    pub messages: usize,
    /// CPU of all threads.
    pub cpu: usize,
}

impl Default for Ipc {
    fn default() -> Self {
        Self {
            samples: 6_000,
            interval: Duration::from_micros(200),
            rounds: 3,
            priority: 80,
            higher: 90,
            within: Duration::from_secs(5),
            messages: 3_000,
            cpu: default_cpu(),
        }
    }
}

/// Period of the sender, as in the paper.
const PERIOD: Duration = Duration::from_millis(1);

/// Calls in one timed batch: reading the clock twice costs more than one call of the cheapest
/// mechanism.
const BATCH: u32 = 64;

impl Ipc {
    /// Runs the experiment.
    ///
    /// # Errors
    /// A mechanism is missing on this system, or a file cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let mut found = IpcFound::default();
        let mechanisms = mechanisms().map_err(|error| Error::other(format_args!("ipc: {error}")))?;
        let mut cells: Vec<Cell> = mechanisms.iter().map(|(name, _)| Cell::named(name)).collect();
        let mut raws = cells.iter().map(|cell| self.begin(context, cell)).collect::<Result<Vec<_>, _>>()?;
        self.plan(mechanisms.len(), context);
        for round in 1..=self.rounds.max(1) {
            let measure = || self.round(&mechanisms, context);
            let Some((measured, more)) = context.cell(&format!("round-{round}"), measure)? else { break };
            for ((more, cell), raws) in measured.into_iter().zip(&mut cells).zip(&mut raws) {
                raws[0].append(&[&more.same.round_trips, &more.same.one_ways])?;
                raws[1].append(&[&more.higher.round_trips, &more.higher.one_ways])?;
                raws[2].append(&[&more.calls])?;
                cell.add(more);
            }
            found.add(more);
        }
        for raw in raws.into_iter().flatten() {
            raw.finish(facts([]))?;
        }
        let within = || within::conduct(self.within, self.cpu, context);
        if let Some((shared, doubts)) = context.cell("two-tasks", within)? {
            found.within = shared;
            found.refused(doubts);
        }
        self.send(&mechanisms, context, &mut found)?;
        let mut report = self.report(&cells, &found);
        surroundings.end(&mut report);
        report.warnings.extend(found.refusals);
        report.warnings.extend(found.no_peers);
        Ok(report)
    }

    /// Prints how long it takes.
    fn plan(&self, mechanisms: usize, context: &Context) {
        let turns = self.interval * u32::try_from(2 * self.share() * (mechanisms + 1)).unwrap_or(u32::MAX);
        let mut cells = vec![turns; self.rounds.max(1)];
        cells.push(self.within * 5);
        cells.extend(vec![PERIOD * u32::try_from(self.messages).unwrap_or(u32::MAX); mechanisms - 1]);
        context.progress.plan("ipc", cells);
    }

    /// Measures one round of all.
    fn round(&self, mechanisms: &[Named], context: &Context) -> Result<(Vec<Cell>, IpcFound), Error> {
        let mut found = IpcFound::default();
        let measured = mechanisms.iter().map(|(name, mechanism)| {
            let cell = self.measure(&**mechanism, context, &mut found);
            cell.map_err(|error| Error::other(format_args!("ipc, {name}: {error}")))
        });
        let measured = measured.collect::<Result<Vec<_>, _>>()?;
        self.ipc(context, &mut found)?;
        self.peers(context, &mut found);
        Ok((measured, found))
    }

    /// Measures one round of a mechanism.
    fn measure(
        &self,
        mechanism: &dyn Mechanism,
        context: &Context,
        found: &mut IpcFound,
    ) -> io::Result<Cell> {
        let caller = real_time(Some(self.priority), self.cpu);
        let mut calls = |times| mechanism.calls(times);
        let (calls, refusals) = call_batches(&mut calls, &caller, self.share(), BATCH, context.stop)?;
        found.refused(refusals);
        let mut turns = |priority| {
            let callee = real_time(Some(priority), self.cpu);
            let turns = Turns { rounds: self.share(), interval: self.interval, caller, callee };
            let mut taken = take_turns(mechanism, &turns, context.stop)?;
            found.refused(std::mem::take(&mut taken.refusals));
            io::Result::Ok(taken)
        };
        Ok(Cell { name: String::new(), calls, same: turns(self.priority)?, higher: turns(self.higher)? })
    }

    /// Sends messages periodically by each mechanism that a sender need not wait for, and by our
    /// port.
    fn send(&self, mechanisms: &[Named], context: &Context, found: &mut IpcFound) -> Result<(), Error> {
        let sending = Sending {
            messages: self.messages,
            period: PERIOD,
            sender: real_time(Some(self.higher), self.cpu),
            receiver: real_time(Some(self.priority), self.cpu),
        };
        let port = WakingPort::open()?;
        let ours: (&str, &dyn Parties) = ("our port, waking by an event", &port);
        let others = mechanisms.iter().filter(|(name, _)| !name.starts_with(MUTEX));
        let others = others.map(|(name, it)| (*name, &**it as &dyn Parties));
        for (name, parties) in others.chain([ours]) {
            let file = format!("{}-sender", name.replace([' ', ','], "-"));
            let measure = || {
                let sent = sending.run(name, parties, context.stop);
                sent.map_err(|error| Error::other(format_args!("ipc, {name}: {error}")))
            };
            let Some(mut sent) = context.cell(&file, measure)? else { break };
            let settings =
                facts([("mechanism", name.into()), ("period_ns", (PERIOD.as_nanos() as u64).into())]);
            let mut raw = Raw::begin(context, &file, "message", &["message_ns"], settings)?;
            raw.append(&[&sent.messages])?;
            raw.finish(facts([]))?;
            found.refused(std::mem::take(&mut sent.refusals));
            found.sent.push(sent);
        }
        Ok(())
    }

    fn ipc(&self, context: &Context, found: &mut IpcFound) -> Result<(), Error> {
        let profile = real_time(Some(self.priority), self.cpu);
        let ours = cell::ours().map_err(|error| Error::other(format_args!("ipc, our IPC: {error}")))?;
        for (name, mut calls) in ours {
            let (batches, refusals) =
                call_batches(&mut *calls, &profile, self.share(), BATCH, context.stop)
                    .map_err(|error| Error::other(format_args!("ipc, {name}: {error}")))?;
            found.refused(refusals);
            found.ipc.push(Durations::new(name, batches));
        }
        Ok(())
    }

    fn peers(&self, context: &Context, found: &mut IpcFound) {
        for program in PEERS {
            if context.stopped() {
                return;
            }
            let peer = HandOver {
                program,
                priority: self.priority,
                cpu: self.cpu,
                interval: self.interval,
                rounds: self.share() as u64,
            };
            match peer.run(context.stop) {
                Ok(handed) => found.peers.push((program.to_owned(), handed)),
                Err(why) => found.no_peer(why.to_string()),
            }
        }
    }

    /// Number of samples in each round.
    fn share(&self) -> usize {
        self.samples.div_ceil(self.rounds.max(1))
    }

    /// Begins the recordings of a mechanism: round trips at equal priorities and with a higher
    /// answering thread, calls.
    fn begin(&self, context: &Context, cell: &Cell) -> Result<[Raw; 3], Error> {
        let slug = cell.name.replace(' ', "-");
        let begin = |suffix: &str, what: &str, columns: &[&str], callee: u8| {
            let settings = facts([
                ("mechanism", cell.name.as_str().into()),
                ("caller_priority", self.priority.into()),
                ("callee_priority", callee.into()),
                ("cpu", self.cpu.into()),
                ("interval_ns", (self.interval.as_nanos() as u64).into()),
                ("calls_in_a_batch", BATCH.into()),
            ]);
            Raw::begin(context, &format!("{slug}-{suffix}"), what, columns, settings)
        };
        let round_trip = ["round_trip_ns", "one_way_ns"];
        Ok([
            begin("same-priority", "round_trip", &round_trip, self.priority)?,
            begin("higher-priority", "round_trip", &round_trip, self.higher)?,
            begin("calls", "calls", &["batch_ns"], self.priority)?,
        ])
    }

    fn report(&self, cells: &[Cell], found: &IpcFound) -> Report {
        let mut report = Report {
            experiment: "ipc".into(),
            title: "Cost of communication between threads".into(),
            source: Some("the controllers paper, Tables 4 and 5".into()),
            measured: "the cost of a call without a waiting thread, and the time from one thread's \
                call to the other thread's running: there and back again, halved"
                .into(),
            good: "a call of a microsecond at most, a wake-up of a few, and maxima not far above the medians; our own \
                   IPC needs no system call, so that its calls must cost tens of nanoseconds"
                .into(),
            found: Some(
                "a mutex a little dearer than a semaphore (29 to 40 us against 27 to 35), and a message of 14 to 19 us on average"
                    .into(),
            ),
            ..Report::default()
        };
        report.condition("CPU of all threads", self.cpu.to_string());
        report.condition("priorities", format!("SCHED_FIFO {} and {}", self.priority, self.higher));
        report.condition("interval between round trips", format!("{} us", self.interval.as_micros()));
        let samples = cells.first().map_or(0, |cell| cell.same.round_trips.len());
        report
            .condition("samples", format!("{samples} round trips a row, in {} rounds", self.rounds.max(1)));
        self.tables(cells, found, &mut report);
        report.values.extend(values(cells, found));
        report
    }

    fn tables(&self, cells: &[Cell], found: &IpcFound, report: &mut Report) {
        let calls: Vec<Durations> = cells
            .iter()
            .map(|cell| Durations::new(&cell.name, cell.calls.clone()))
            .chain(found.ipc.iter().cloned())
            .collect();
        report.sections.push(calls_table(&calls));
        let halves = |of: fn(&Cell) -> &Taken| -> Vec<Durations> {
            cells.iter().map(|cell| Durations::new(&cell.name, halved(&of(cell).round_trips))).collect()
        };
        let (same, higher) = (halves(|cell| &cell.same), halves(|cell| &cell.higher));
        let caption = format!("Round trip / 2, us: both threads at priority {}", self.priority);
        report.sections.push(distribution::table(&caption, "mechanism", &same));
        let caption = format!("Round trip / 2, us: {} asks, {} answers", self.priority, self.higher);
        report.sections.push(distribution::table(&caption, "mechanism", &higher));
        report.sections.push(self.peer_table(cells, found));
        report.sections.push(Section::Text(CALLS.into()));
        report.sections.push(within::table(&found.within));
        report.sections.push(Section::Text(within::REMARK.into()));
        let priorities = format!("priorities {} and {}", self.higher, self.priority);
        report.sections.push(sender::table(&found.sent, &priorities));
        Paper::Controllers.append(&["Table 4", "Table 5"], report);
        report.sections.extend(distribution::plots("Round trip / 2 at the same priority", &same));
        report.sections.extend(distribution::plots("Round trip / 2 with a higher answering", &higher));
    }

    /// Table of ours and the peers' results, in the format of the peers.
    fn peer_table(&self, cells: &[Cell], found: &IpcFound) -> Section {
        let ours = |name: &str, shown: &str| {
            let cell = cells.iter().find(|cell| cell.name == name)?;
            let it = Durations::new(shown, cell.same.one_ways.clone()).statistics().summary();
            let whole = |ns: Option<u64>| report::numbers::microseconds(ns.map(|ns| ns as f64));
            let average = report::numbers::microseconds(it.average);
            let cells = vec![whole(it.minimum), average, whole(it.maximum), it.count.to_string()];
            Some(Row { name: shown.into(), cells, from_paper: false })
        };
        let peer = |program: &str| {
            let all = found.peers.iter().filter(|(name, _)| *name == program).map(|(_, handed)| *handed);
            let it = all.reduce(HandedOver::and)?;
            let cells = [it.minimum, it.average, it.maximum, it.rounds].map(|it| it.to_string()).into();
            Some(Row { name: format!("{program} (rt-tests)"), cells, from_paper: false })
        };
        let rows = [
            ours(MUTEX, "our plain mutex, as ptsematest's"),
            peer(PEERS[0]),
            ours(QUEUE, "our message queue, as pmqtest's"),
            peer(PEERS[1]),
        ];
        Section::Table(Table {
            caption: format!(
                "One way, us, both threads at priority {}, next to rt-tests in the same run (it \
                 prints whole microseconds, rounded down)",
                self.priority
            ),
            columns: distribution::heads("", &["minimum", "average", "maximum", "samples"]),
            rows: rows.into_iter().flatten().collect(),
        })
    }
}

const MUTEX: &str = "mutex";
const QUEUE: &str = "POSIX message queue";

/// Peers, in the order of the table: of the mutex, of the queue.
const PEERS: [&str; 2] = ["ptsematest", "pmqtest"];

const CALLS: &str = "A call is the pair of both halves: post and wait, lock and unlock, send and \
    receive, write and read; for the futex, a wake-up without a waiting thread, and taking the \
    word. The cycle reports to the rest of the program by the seqlock and the ring, and to other \
    processes by the IPC; their readers poll, so there is no wake-up to measure. The paper \
    measures within two tasks: the tables below have that form.";

type Named = (&'static str, Box<dyn Mechanism>);

fn mechanisms() -> io::Result<Vec<Named>> {
    Ok(vec![
        ("semaphore", Box::new(mechanism::semaphore()?)),
        (MUTEX, Box::new(mechanism::mutex(Protocol::Plain)?)),
        ("mutex (priority inheritance)", Box::new(mechanism::mutex(Protocol::Inherit)?)),
        (QUEUE, Box::new(mechanism::message_queue()?)),
        ("pipe", Box::new(mechanism::pipe()?)),
        ("futex", Box::new(mechanism::bare_futex())),
        ("eventfd", Box::new(mechanism::event()?)),
    ])
}

/// Measurements of one mechanism.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cell {
    name: String,
    /// Durations of batches of calls, ns.
    calls: Vec<u64>,
    same: Taken,
    higher: Taken,
}

impl Cell {
    fn named(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    fn add(&mut self, more: Self) {
        self.calls.extend(more.calls);
        for (taken, more) in [(&mut self.same, more.same), (&mut self.higher, more.higher)] {
            taken.round_trips.extend(more.round_trips);
            taken.one_ways.extend(more.one_ways);
        }
    }
}

/// Other results.
#[derive(Debug, Default, Serialize, Deserialize)]
struct IpcFound {
    ipc: Vec<Durations>,
    within: Vec<Within>,
    sent: Vec<Sent>,
    peers: Vec<(String, HandedOver)>,
    refusals: Vec<String>,
    no_peers: Vec<String>,
}

impl IpcFound {
    /// Adds the times of a further round.
    fn add(&mut self, more: Self) {
        for (place, it) in more.ipc.into_iter().enumerate() {
            match self.ipc.get_mut(place) {
                Some(all) => all.ns.extend(it.ns),
                None => self.ipc.push(it),
            }
        }
        self.peers.extend(more.peers);
        self.refused(more.refusals);
        more.no_peers.into_iter().for_each(|why| self.no_peer(why));
    }

    fn refused(&mut self, refusals: Vec<String>) {
        self.refusals.extend(refusals);
        self.refusals.sort();
        self.refusals.dedup();
    }

    fn no_peer(&mut self, why: String) {
        if !self.no_peers.contains(&why) {
            self.no_peers.push(why);
        }
    }
}
