//! A thread that reads the state of every cycle while a page is open: waits for a cycle, follows it
//! to its end, waits for the next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ipc::client::Client;
use ipc::state::{Reader, State};
use rt::clock::now_ns;
use serde_json::{Value, json};

use super::bus;
use super::channels::Channels;
use super::hub::{Hub, Slot};
use super::picture::{self, Times};
use crate::failure::Failure;
use crate::target::{STILL, Which};

/// Time from one message with rows to the next.
const ROWS: Duration = Duration::from_millis(33);

/// Time from one picture to the next.
const PICTURES: Duration = Duration::from_millis(200);

/// The same for histograms.
const TIMING: Duration = Duration::from_secs(1);

/// Time from one look for a cycle, or for an open page, to the next.
const IDLE: Duration = Duration::from_millis(100);

/// Newest cycles with places on the scope's axis.
const RECENT: usize = 16;

/// Starts the thread; it ends with the process.
pub(super) fn start(hub: Arc<Hub>, which: Option<String>) -> Result<(), Failure> {
    let follow = move || {
        let start_ns = now_ns();
        for attached in 1.. {
            let client = found(&hub, which.as_deref());
            Followed::new(&hub, attached, start_ns, client).until_its_end();
        }
    };
    thread::Builder::new().name("follow".to_owned()).spawn(follow)?;
    Ok(())
}

/// The cycle, as soon as it runs. The description of one that has ended stays.
fn found(hub: &Hub, which: Option<&str>) -> Client {
    let mut told = String::new();
    loop {
        match Which(which).find() {
            Ok(client) => return client,
            Err(error) => {
                let why = error.to_string();
                if told != why && !hub.has_attached() {
                    hub.set(0, Slot::State, &picture::waiting(&why));
                    told = why;
                }
            }
        }
        hub.send(0);
        thread::sleep(IDLE);
    }
}

/// A cycle that is followed.
struct Followed<'h> {
    hub: &'h Arc<Hub>,
    attached: u64,
    /// Zero of the scope's axis, CLOCK_MONOTONIC.
    start_ns: u64,
    client: Client,
    channels: Channels,
    reader: Reader,
    state: State,
    /// Numbers and places on the scope's axis of the newest cycles, the newest first.
    recent: VecDeque<(u64, f64)>,
    /// Number of the last state read.
    last: u64,
    /// Cycles that were overwritten before they were read.
    missed: u64,
    /// When the last new state came.
    newest: Instant,
    times: Times,
    overruns: u64,
}

impl<'h> Followed<'h> {
    fn new(hub: &'h Arc<Hub>, attached: u64, start_ns: u64, client: Client) -> Self {
        let channels = Channels::of(client.description());
        hub.attach(attached, channels.len());
        hub.set(attached, Slot::State, &picture::attached(attached, &client, &channels));
        bus::start(hub, attached, start_ns, &client);
        let reader = client.state();
        Self {
            hub,
            attached,
            start_ns,
            channels,
            last: 0,
            reader,
            state: State::default(),
            recent: VecDeque::new(),
            client,
            missed: 0,
            newest: Instant::now(),
            times: Times::new(),
            overruns: u64::MAX,
        }
    }

    fn until_its_end(mut self) {
        // The writer comes round to a slot after as many cycles as are kept.
        let period = Duration::from_nanos(self.client.description().period_ns);
        let look = (period * self.reader.kept() as u32 / 3)
            .clamp(Duration::from_micros(100), Duration::from_millis(10));
        let (mut rows, mut pictures, mut timing) =
            (Every(ROWS, None), Every(PICTURES, None), Every(TIMING, None));
        let mut watched = false;
        loop {
            let ended = self.client.has_ended();
            if !ended && !self.hub.is_watched() {
                watched = false;
                thread::sleep(IDLE);
                continue;
            }
            if !std::mem::replace(&mut watched, true) {
                // Cycles before the first reader are not missed.
                self.last = self.last.max(self.reader.heartbeat().saturating_sub(1));
            }
            self.read();
            if ended || pictures.is_due() {
                self.picture();
            }
            if ended || timing.is_due() {
                self.timing();
            }
            if ended {
                let why = format!("process {} has ended or closed its IPC", self.client.process());
                self.hub.set(
                    self.attached,
                    Slot::State,
                    &picture::ended(self.attached, &self.client, &why),
                );
            }
            if ended || rows.is_due() {
                self.hub.send(self.missed);
            }
            if ended {
                return;
            }
            thread::sleep(look);
        }
    }

    /// Takes all states that have come, in order.
    fn read(&mut self) {
        // A cycle that is faster than this thread is left after what is kept.
        for _ in 0..2 * self.reader.kept() {
            let Some(number) = self.reader.read_next(self.last, &mut self.state) else { return };
            if self.last > 0 {
                self.missed += number.saturating_sub(self.last + 1);
            }
            self.last = number;
            self.newest = Instant::now();
            self.times.take(&self.state);
            self.recent.truncate(RECENT - 1);
            self.recent.push_front((self.state.cycle, self.time()));
            self.overrun();
            let (state, time) = (&self.state, self.time());
            let (channels, description) = (&self.channels, self.client.description());
            let value = |channel| channels.value(channel, state, description);
            self.hub.row(state.cycle, time, self.missed, value);
        }
    }

    /// Marks a cycle that ran past the next release, with its place on the scope's axis.
    fn overrun(&mut self) {
        let timing = &self.state.timing;
        if std::mem::replace(&mut self.overruns, timing.overruns) < timing.overruns {
            let since = self.state.cycle.saturating_sub(timing.last_overrun);
            // Cycles of a simulated bus may be farther apart than a period.
            let known = self.recent.iter().find(|(cycle, _)| *cycle == timing.last_overrun);
            let period = self.client.description().period_ns as f64 / 1e9;
            let time = known.map_or_else(|| self.time() - since as f64 * period, |(_, time)| *time);
            self.hub.event(&json!({ "kind": "overrun", "cycle": timing.last_overrun, "time": time }));
        }
    }

    /// Release of the state in seconds on the scope's axis.
    fn time(&self) -> f64 {
        self.state.release_ns as i64 as f64 / 1e9 - self.start_ns as f64 / 1e9
    }

    fn picture(&self) {
        if self.last == 0 {
            return;
        }
        let still = Some(self.newest.elapsed()).filter(|&still| still > STILL).unwrap_or_default();
        let description = self.client.description();
        let still_ms = still.as_millis() as u64;
        let it =
            picture::picture(self.attached, description, &self.state, self.time(), still_ms, self.missed);
        self.hub.set(self.attached, Slot::Picture, &it);
    }

    fn timing(&self) {
        let document = self.client.diagnostics().ok();
        let diagnostics: Option<Value> = document.and_then(|it| serde_json::from_str(&it).ok());
        let it = self.times.json(self.attached, self.start_ns, diagnostics);
        self.hub.set(self.attached, Slot::Timing, &it);
    }
}

/// Work that is done every so often.
struct Every(Duration, Option<Instant>);

impl Every {
    fn is_due(&mut self) -> bool {
        let due = self.1.is_none_or(|last| last.elapsed() >= self.0);
        if due {
            self.1 = Some(Instant::now());
        }
        due
    }
}
