//! `onbeat measure tasks`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use onbeat_experiments::tasks::{self, Busy, Lines, Toggle};

use super::{Cells, Cpu, lasting};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    /// A task set as `onbeat analyse` reads them (TOML), or one of the papers': controllers, service-robot
    #[arg(value_name = "TASKS.toml|NAME", default_value = "controllers")]
    set: String,

    /// Time the tasks run, in each way to be busy
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "20s")]
    duration: Duration,

    /// Way in which jobs are busy
    #[arg(long, value_name = "HOW", default_value = "both")]
    busy: How,

    /// Toggle an output with each job, up from its start to its end: "frames" over a private cable, or a GPIO line for each
    /// task, as gpiochip0:17,gpiochip0:18
    #[arg(long, value_name = "frames|LINES", value_parser = outputs)]
    toggle: Option<Toggle>,

    /// Look at the toggled GPIO lines by these, wired to them
    #[arg(long, value_name = "LINES", requires = "toggle")]
    observe: Option<Lines>,

    #[command(flatten)]
    cpu: Cpu,

    #[command(flatten)]
    cells: Cells,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// In blocks of elapsed time, as the paper spins
    Blocks,
    /// Until their own thread has used so much processor time
    ProcessorTime,
    /// One after the other
    Both,
}

impl Tasks {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let toggle = observed(self.toggle.unwrap_or_default(), self.observe)?;
        let named = tasks::Tasks::named(&self.set).map_err(|error| Failure::new(error.to_string()))?;
        let experiment = tasks::Tasks {
            duration: self.duration,
            cpu: self.cpu.number(),
            busy: match self.busy {
                How::Blocks => vec![Busy::Blocks],
                How::ProcessorTime => vec![Busy::ProcessorTime],
                How::Both => Busy::ALL.to_vec(),
            },
            toggle,
            ..named
        };
        self.cells.conduct("tasks", |context| experiment.run(context))
    }
}

fn outputs(text: &str) -> Result<Toggle, String> {
    if text == "frames" {
        return Ok(Toggle::Frames);
    }
    let Lines(outputs) = text.parse().map_err(|error| format!("{error}, or \"frames\""))?;
    Ok(Toggle::Lines { outputs, inputs: Vec::new() })
}

fn observed(toggle: Toggle, observe: Option<Lines>) -> Result<Toggle, Failure> {
    match (toggle, observe) {
        (Toggle::Lines { outputs, .. }, Some(Lines(inputs))) => Ok(Toggle::Lines { outputs, inputs }),
        (Toggle::Frames, Some(_)) => Err(Failure::new(
            "--observe with --toggle frames, expected GPIO lines to be toggled: the kernel stamps frames by itself",
        )),
        (toggle, _) => Ok(toggle),
    }
}
