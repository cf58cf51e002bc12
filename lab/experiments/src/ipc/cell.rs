//! Our own mechanisms from the cycle to the rest of the program: they wake no thread and never
//! wait.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use control::status::{Status, status_cell};
use ipc::client::Client;
use ipc::state;
use record::{CycleRecord, Statistics};
use report::{Row, Section, Table};
use rtrb::RingBuffer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::distribution::{Durations, heads};
use crate::ecci::{open_ipc, state_of};
use crate::tasks::set::Run;
use crate::tasks::share::Share;
use crate::tasks::{Busy, Toggle, read};
use crate::{Context, Error};

/// Calls a mechanism this many times.
pub(super) type Calls = Box<dyn FnMut(u32) -> io::Result<()> + Send>;

/// All of them: the seqlock of the newest status, the cycle's side alone and with the reading side,
/// the ring of cycle records, and the shared-memory interface to other processes, as the status.
///
/// # Errors
/// The system refuses memory or a socket for the interface.
pub(super) fn ours() -> io::Result<Vec<(&'static str, Calls)>> {
    let status = Status::initial(0, AXES);
    let (mut alone, _) = status_cell(0, AXES);
    let (mut writer, reader) = status_cell(0, AXES);
    let (mut producer, mut consumer) = RingBuffer::new(64);
    let record = CycleRecord::begin(1, 2, 3);
    let published = status.clone();
    // Words of the axes, as a publication has them.
    let words = [0; AXES * state::AXIS];
    let (mut ipc, server, folder) = open_ipc(AXES)?;
    let seen = Client::open(server.path()).map_err(io::Error::other)?.state();
    let (mut unseen, unseen_door, unseen_folder) = open_ipc(AXES)?;
    let state = state_of(AXES);
    let (told, mut heard) = (state.clone(), state.clone());
    Ok(vec![
        (
            "our seqlock: publish a status of six axes",
            Box::new(move |times| {
                for _ in 0..times {
                    alone.publish(black_box(&published), black_box(&words));
                }
                Ok(())
            }),
        ),
        (
            "our seqlock: publish it and read it",
            Box::new(move |times| {
                for _ in 0..times {
                    writer.publish(black_box(&status), black_box(&words));
                    black_box(reader.read());
                }
                Ok(())
            }),
        ),
        (
            "our ring: push and pop a cycle record",
            Box::new(move |times| {
                for _ in 0..times {
                    let there = producer.push(black_box(record));
                    let back = consumer.pop();
                    if there.is_err() || back != Ok(record) {
                        return Err(io::Error::other(
                            "the ring lost a record that no other thread could take",
                        ));
                    }
                }
                Ok(())
            }),
        ),
        (
            "our IPC: publish a state of six axes",
            Box::new(move |times| {
                let _open = (&unseen_door, &unseen_folder);
                for _ in 0..times {
                    unseen.state.publish(black_box(&told));
                }
                Ok(())
            }),
        ),
        (
            "our IPC: publish it and read it",
            Box::new(move |times| {
                let _open = (&server, &folder);
                for _ in 0..times {
                    ipc.state.publish(black_box(&state));
                    seen.read_into(&mut heard).map_err(io::Error::other)?;
                    black_box(&heard);
                }
                Ok(())
            }),
        ),
    ])
}

/// Axes of the status, as many as the built-in robot has.
const AXES: usize = 6;

/// Responses of tau1 with one means in both tasks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Within {
    pub(super) share: Share,
    /// Responses of tau1, ns.
    pub(super) responses: Vec<u64>,
}

impl Within {
    fn statistics(&self) -> Statistics {
        Durations::new("", self.responses.clone()).statistics()
    }
}

/// Runs the paper's two tasks for `duration` with each means, and doubts.
///
/// # Errors
/// A task cannot be made.
pub(super) fn conduct(
    duration: Duration,
    cpu: usize,
    context: &Context,
) -> Result<(Vec<Within>, Vec<String>), Error> {
    let tasks = read("controllers")?;
    let (mut all, mut doubts) = (Vec::new(), Vec::new());
    for share in Share::ALL {
        if context.stopped() {
            break;
        }
        context.say(format_args!("ipc: two tasks that share {}", share.name()));
        let run = Run { tasks: &tasks, duration, cpu, busy: Busy::Blocks, share, toggle: &Toggle::Nothing };
        run.check()?;
        let (ran, more) = run.conduct(context.stop)?;
        doubts.extend(more);
        let responses = ran.first().into_iter().flatten().map(|job| job.end - job.release).collect();
        all.push(Within { share, responses });
    }
    Ok((all, doubts))
}

/// Response without a means, ns, on average.
fn alone(all: &[Within]) -> Option<f64> {
    let nothing = all.iter().find(|it| it.share == Share::Nothing)?;
    nothing.statistics().summary().average
}

/// Table in the form of the paper's.
pub(super) fn table(all: &[Within]) -> Section {
    let alone = alone(all);
    let row = |it: &Within| {
        let it_is = it.statistics().summary();
        let more = it_is.average.zip(alone).map(|(average, alone)| average - alone);
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let cells =
            [it_is.average, more, whole(it_is.maximum), whole(it_is.minimum), it_is.standard_deviation];
        let cells = cells.map(report::numbers::microseconds).into();
        Row { name: it.share.name().into(), cells, from_paper: false }
    };
    Section::Table(Table {
        caption: "Two tasks that share one means, us: tau1 (0.5 ms every 1 ms) holds it for its whole job, tau2 (1.5 ms every 5 ms) for each of its \
                  blocks of 0.1 ms; response R of tau1, and T = R - R0 with R0 of tasks that share nothing"
            .into(),
        columns: heads("means", &["R", "T", "R max", "R min", "R SD"]),
        rows: all.iter().map(row).collect(),
    })
}

/// The same as values for programs.
pub(super) fn values(all: &[Within]) -> Value {
    let alone = alone(all);
    let value = |it: &Within| {
        let statistics = it.statistics();
        let more = statistics.summary().average.zip(alone).map(|(average, alone)| average - alone);
        json!({ "means": it.share.name(), "response_ns": statistics, "more_ns": more })
    };
    all.iter().map(value).collect()
}

/// Comparison with the paper.
pub(super) const REMARK: &str = "Our text of the paper does not say where in tau1's job its calls \
    are. tau1 is released while tau2 is within a block as a rule, and waits for its end: that is \
    most of T here, and of a size that fits the paper's. The rings have no lock, so no thread \
    waits.";
