//! Client that reads the ports of all devices and drives the wheels, as a ROS node would.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use ::devices::{Kind, Peripheral};
use ipc::channel::Channel;
use ipc::client::Client;
use ipc::sensor::WheelRequest;
use report::{Row, Section, Table};
use schedulability::utilisation::{hyperbolic_product, liu_layland_bound, utilisation};
use schedulability::{ResponseTime, Task, TaskSet, fixed_priority};
use serde_json::{Value, json};

use super::{nanoseconds, statistics};
use crate::distribution::heads;

/// Reading threads, one for each device.
pub(super) struct World {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<[u64; 2]>>,
}

impl World {
    pub(super) fn listen(
        peripherals: &[Peripheral],
        ipc: &Path,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let client = Client::open(ipc)?;
        let mut world = Self { stop: Arc::default(), threads: Vec::new() };
        for it in peripherals {
            let channel = client.port(&it.port)?;
            let stop = Arc::clone(&world.stop);
            let drives = matches!(it.kind, Kind::Actuators { .. });
            let thread = thread::Builder::new().name(format!("{} world", it.name));
            world.threads.push(thread.spawn(move || receive(&channel, drives, &stop))?);
        }
        Ok(world)
    }

    /// Ends the threads; returns messages and stale ones, by device.
    pub(super) fn end(mut self) -> Vec<[u64; 2]> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|thread| thread.join().unwrap_or_default()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn receive(channel: &Channel, drives: bool, stop: &AtomicBool) -> [u64; 2] {
    let mut bytes = vec![0; 65_536];
    let (mut count, mut turn) = ([0; 2], 0.0_f64);
    while !stop.load(Ordering::Relaxed) {
        match channel.recv_timeout(&mut bytes, Duration::from_millis(50)) {
            Ok(Some(_)) => {
                count[0] += 1;
                // The flags are in the third byte of every message.
                count[1] += u64::from(bytes[2] & 1);
            }
            Ok(None) => {}
            Err(_) => break,
        }
        // Every fifth message of 10 ms: the planner's 50 ms.
        if drives && count[0] % 5 == 1 {
            turn += 0.05;
            let velocities = [3.0 + turn.sin(), 3.0 - turn.sin()];
            let mut request = [0; WheelRequest::SIZE];
            let request_made = WheelRequest { velocities, holds_ms: 200 }.encode(&mut request);
            if request_made.is_some() {
                let _ = channel.send_timeout(&request, Duration::from_millis(10));
            }
        }
    }
    count
}

/// Median and longest execution time of a task, ns.
pub(super) type Times = [u64; 2];

/// Their names.
const WHICH: [&str; 2] = ["median", "longest"];

/// Median and longest of these, if there are any.
pub(super) fn times(ns: &[u64]) -> Option<Times> {
    let statistics = statistics(ns);
    Some([statistics.percentile(0.5)?, statistics.maximum()?])
}

/// Task set with these execution times, rate-monotonic: the shorter the period, the higher the
/// priority.
fn set(peripherals: &[Peripheral], times: &[Times], which: usize) -> Vec<Task> {
    let mut order: Vec<usize> = (0..peripherals.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(peripherals[place].period));
    let task = |(place, (it, times)): (usize, (&Peripheral, &Times))| {
        let priority = order.iter().position(|&other| other == place).unwrap_or(0) as u32 + 1;
        Task::new(it.name.as_str(), priority, nanoseconds(it.period), times[which])
    };
    peripherals.iter().zip(times).enumerate().map(task).collect()
}

/// Tables of the tasks' utilisations and of the bounds; `what` says what the execution times are.
pub(super) fn sections(peripherals: &[Peripheral], times: &[Option<Times>], what: &str) -> Vec<Section> {
    let Some(times) = times.iter().copied().collect::<Option<Vec<Times>>>() else {
        return vec![Section::Text(format!("No bound is tested, {what}: a task ran no job."))];
    };
    let sets = [0, 1].map(|which| set(peripherals, &times, which));
    let responses: Vec<Vec<ResponseTime>> =
        sets.iter().map(|tasks| fixed_priority::response_times(&TaskSet::new(tasks.clone()))).collect();
    let micros = |ns: u64| report::numbers::microseconds(Some(ns as f64));
    let share = |task: &Task| format!("{:.4} %", 100.0 * utilisation([task]));
    let row = |place: usize| {
        let [median, longest] = [&sets[0][place], &sets[1][place]];
        let computed = responses[1][place].ns().map_or_else(|| "unbounded".to_owned(), micros);
        let cells =
            vec![micros(median.wcet_ns), share(median), micros(longest.wcet_ns), share(longest), computed];
        Row { name: median.name.clone(), cells, from_paper: false }
    };
    let shares = Section::Table(Table {
        caption: format!(
            "Execution times C, us, {what}; shares of the processor; and the worst response R that response-time analysis computes \
             from the longest, us"
        ),
        columns: heads("task", &["median C", "U", "longest C", "U of it", "R of longest"]),
        rows: (0..peripherals.len()).map(row).collect(),
    });
    let bound = liu_layland_bound(peripherals.len());
    let row = |(name, tasks): (&str, &Vec<Task>)| {
        let (sum, product) = (utilisation(tasks), hyperbolic_product(tasks));
        let verdict = |holds: bool| if holds { "yes" } else { "not proven" }.to_owned();
        let cells = vec![
            format!("{sum:.6}"),
            format!("{bound:.6}"),
            verdict(sum <= bound),
            format!("{product:.6}"),
            verdict(product <= 2.0),
        ];
        Row { name: format!("with the {name} C"), cells, from_paper: false }
    };
    let bounds = Section::Table(Table {
        caption: format!(
            "Utilisation bounds, {what}: schedulable by rate-monotonic priorities if U is at most n (2^(1/n) - 1) (Liu and \
             Layland), or the product of U + 1 at most 2 (hyperbolic)"
        ),
        columns: heads("utilisation", &["U", "Liu and Layland", "holds", "product of U + 1", "at most 2"]),
        rows: WHICH.into_iter().zip(&sets).map(row).collect(),
    });
    vec![shares, bounds]
}

/// The same as values for programs.
pub(super) fn values(peripherals: &[Peripheral], times: &[Option<Times>]) -> Value {
    let times = times.iter().copied().collect::<Option<Vec<Times>>>();
    let bound = liu_layland_bound(peripherals.len());
    let of = |which: usize| {
        let tasks = set(peripherals, times.as_deref()?, which);
        let (sum, product) = (utilisation(&tasks), hyperbolic_product(&tasks));
        Some(json!({
            "utilisation": sum,
            "liu_layland_bound": bound,
            "liu_layland_holds": sum <= bound,
            "hyperbolic_product": product,
            "hyperbolic_holds": product <= 2.0,
        }))
    };
    json!({ "median": of(0), "longest": of(1) })
}
