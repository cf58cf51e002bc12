//! `onbeat measure interference`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onbeat_experiments::interference::{self, Length};
use onbeat_experiments::load::Load;

use super::Cells;
use super::{lasting, time};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Interference {
    /// Evaluate this recording of `onbeat simulate --record` instead of making one: of any
    /// MainDevice, on any machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["robot", "samples", "duration", "iface"])]
    recording: Option<PathBuf>,

    /// Robot file; default: a coupler, an output terminal with an output that changes every cycle,
    /// and an input terminal
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Periods, one after the other
    #[arg(long, value_name = "TIME,...", value_parser = time, value_delimiter = ',', default_value = "1000us,500us,250us")]
    period: Vec<Duration>,

    /// Loads, one after the other: none, cpu, k-lock, irq, memory, gpu, gpu-pinned, gpu-pageable;
    /// dd, hackbench, ping, du; memory-sweep: bandwidth from little to all; gpu-sweep: copies of
    /// 0.5 to 2.6 MB, pinned and not
    #[arg(
        long,
        value_name = "LOAD,...",
        value_parser = load_or_none,
        value_delimiter = ',',
        default_value = "none,cpu,k-lock,irq,memory,gpu"
    )]
    load: Vec<Named>,

    /// Cycles of each period and load
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,

    /// Instead of --samples, how long each is; above 5 million cycles histograms are kept instead
    /// of rows
    #[arg(long, value_name = "TIME", value_parser = lasting)]
    duration: Option<Duration>,

    /// Cycles above which rows are not kept
    #[arg(long, hide = true, value_name = "N", default_value = "5000000")]
    most_rows: u64,

    /// Processes of each load; without it one for each CPU
    #[arg(long, value_name = "N")]
    load_processes: Option<usize>,

    /// Interface of the cycle, joined by a cable to --observer-iface; without them a veth pair is
    /// made (needs root)
    #[arg(long, value_name = "NIC", requires = "observer_iface")]
    iface: Option<String>,

    /// Interface of the observer
    #[arg(long, value_name = "NIC", requires = "iface")]
    observer_iface: Option<String>,

    /// CPU of the cycle; without it the last one
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// CPU of the observer; without it the first one
    #[arg(long, value_name = "CPU")]
    observer_cpu: Option<usize>,

    /// SCHED_FIFO priority of the cycle instead of the robot file's
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// Reply that a cycle works with: with wait_for_reply frames leave at the release, before
    /// anything is computed
    #[arg(long, value_name = "ORDER", value_parser = ["reply_of_last_cycle", "wait_for_reply"])]
    frame_order: Option<String>,

    /// More options of `onbeat run`, for the cycle: profile and the like
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<OsString>,

    #[command(flatten)]
    cells: Cells,
}

/// Loads of one name.
#[derive(Clone, Debug)]
struct Named(Vec<Option<Load>>);

fn load_or_none(name: &str) -> Result<Named, String> {
    Ok(Named(match name {
        "none" => vec![None],
        "memory-sweep" => Load::MEMORY_SWEEP.map(Some).into(),
        "gpu-sweep" => Load::gpu_sweep().map(Some).collect(),
        name => {
            let load = Load::named(name).ok_or_else(|| {
                let known: Vec<&str> = Load::all().into_iter().map(Load::name).collect();
                format!("found \"{name}\", expected none, memory-sweep, gpu-sweep, {}", known.join(", "))
            })?;
            vec![Some(load)]
        }
    }))
}

impl Interference {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if let Some(path) = &self.recording {
            return self.cells.conduct("interference", |_| interference::judge(path));
        }
        let mut options = self.options;
        if let Some(priority) = self.priority {
            options.extend(["--priority".into(), priority.to_string().into()]);
        }
        if let Some(order) = self.frame_order {
            options.extend(["--frame-order".into(), order.into()]);
        }
        let (first, last) = interference::cpus();
        let experiment = interference::Interference {
            robot: self.robot,
            periods: self.period,
            loads: self.load.into_iter().flat_map(|load| load.0).collect(),
            length: self.duration.map_or(Length::Samples(self.samples), Length::Duration),
            most_rows: self.most_rows,
            load_processes: self.load_processes,
            interfaces: self.iface.zip(self.observer_iface),
            cpu: Some(self.cpu.unwrap_or(last)),
            observer_cpu: Some(self.observer_cpu.unwrap_or(first)),
            options,
        };
        self.cells.conduct("interference", |context| experiment.run(context))
    }
}
