//! Execution of the run: ten tasks over an interface of their own, a client of their ports, and the
//! recorder.

use std::thread;
use std::time::{Duration, Instant};

use ::devices::{DeviceStatus, Prepared};
use ipc::description::Description;
use ipc::server::Builder;
use record::CycleRecord;
use rt::task::{Live, Task};

use super::Devices;
use super::world::World;
use crate::child::SocketFolder;
use crate::{Context, Error};

/// Results of one device's two tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    /// Jobs of the real-time task: release, start and end, ns.
    pub(super) jobs: Vec<[u64; 3]>,
    /// Number of lost records.
    pub(super) dropped: u64,
    pub(super) live: Live,
    /// Voluntary context switches of the real-time task but its sleeps.
    pub(super) blocked: u64,
    /// Real-time settings the system refused to the real-time task.
    pub(super) refusals: Vec<String>,
    /// Exchanges of the ordinary task with its device: begin and end, ns.
    pub(super) exchanges: Vec<[u64; 2]>,
    pub(super) status: DeviceStatus,
    /// Messages received by the client, and the stale ones among them.
    pub(super) messages: u64,
    pub(super) stale: u64,
}

impl Ran {
    /// Actual periods: start to start.
    pub(super) fn periods(&self) -> Vec<u64> {
        self.jobs.windows(2).map(|pair| pair[1][1].saturating_sub(pair[0][1])).collect()
    }

    /// Response times: release to end.
    pub(super) fn responses(&self) -> Vec<u64> {
        self.jobs.iter().map(|[release, _, end]| end.saturating_sub(*release)).collect()
    }

    /// Execution times: start to end, including interference.
    pub(super) fn executions(&self) -> Vec<u64> {
        self.jobs.iter().map(|[_, start, end]| end.saturating_sub(*start)).collect()
    }

    pub(super) fn exchange_times(&self) -> Vec<u64> {
        self.exchanges.iter().map(|[begin, end]| end.saturating_sub(*begin)).collect()
    }
}

/// Executes the run; `record` takes more rows of a task, given by index: releases, starts, ends.
pub(super) fn conduct(
    settings: &Devices,
    context: &Context,
    mut record: impl FnMut(usize, &[&[u64]]) -> Result<(), Error>,
) -> Result<Vec<Ran>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::other(format_args!("devices: {error}"));
    let folder = SocketFolder::new("devices")?;
    let description = Description { robot: "devices".into(), ..Description::default() };
    let mut ipc = Builder::new("devices", &description);
    ipc.folder(&folder.0);
    let prepared = Prepared::new(&settings.peripherals, &mut ipc).map_err(|error| failed(&error))?;
    let (_ends, server) = ipc.open().map_err(|error| failed(&error))?;
    // The lines come from other threads, and are printed by this one.
    let (said, saying) = std::sync::mpsc::channel::<String>();
    let running = prepared.measured().start(server.path(), move |line| {
        let _ = said.send(line.to_owned());
    });
    let mut running = running.map_err(|error| failed(&error))?;
    let world = World::listen(&settings.peripherals, server.path()).map_err(|error| failed(&error))?;
    let mut ran = vec![Ran::default(); settings.peripherals.len()];
    let begin = Instant::now();
    loop {
        let over = begin.elapsed() >= settings.duration || context.stopped();
        for (place, records) in running.records().iter_mut().enumerate() {
            let jobs: Vec<[u64; 3]> =
                std::iter::from_fn(|| records.next_record()).map(|it| job(&it)).collect();
            let column = |of: usize| jobs.iter().map(|job| job[of]).collect::<Vec<u64>>();
            record(place, &[&column(0), &column(1), &column(2)])?;
            ran[place].jobs.extend(jobs);
            ran[place].dropped = records.dropped();
        }
        saying.try_iter().for_each(|line| context.say(line));
        if over {
            break;
        }
        thread::sleep(LOOK);
    }
    let counts = world.end();
    let exchanges = running.exchanges();
    let status = running.status();
    for (place, ran) in ran.iter_mut().enumerate() {
        let task = &running.tasks()[place];
        ran.live = task.live();
        ran.blocked = blocked(task);
        ran.refusals = task.grants().refusals().collect();
        ran.exchanges.clone_from(&exchanges[place]);
        ran.status = status[place].clone();
        [ran.messages, ran.stale] = counts[place];
    }
    Ok(ran)
}

/// Voluntary context switches of a task since its first release, without its sleeps.
fn blocked(task: &Task) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/self/task/{}/status", task.tid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let now: u64 = line.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    let ([before, ..], waits) = task.subject().window.counted().unwrap_or_default();
    now.saturating_sub(before + waits)
}

fn job(record: &CycleRecord) -> [u64; 3] {
    [record.release_ns, record.start_ns, record.end_ns]
}

/// Interval at which records are taken out of their rings, which hold ten seconds.
const LOOK: Duration = Duration::from_millis(50);
