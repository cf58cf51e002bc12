//! `onbeat measure`: the papers' experiments, one file each.

mod interference;
mod interrupt;
mod ipc;
mod servo;
mod tasks;
mod tuning;
mod wakeup;

use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use measure::{Context, Error};
use report::Report;

use crate::failure::Failure;
use crate::stop;

#[derive(Subcommand, Debug)]
pub(crate) enum Measure {
    /// What priority, memory lock, CPU shield and spinning sleep are each worth, unloaded and under load
    Tuning(tuning::Tuning),
    /// Period jitter of the bus under load, seen by an independent observer at the other end of the cable
    Interference(interference::Interference),
    /// Two periodic tasks on one CPU beside their computed response times
    Tasks(tasks::Tasks),
    /// Our pacer beside cyclictest: the same priority, CPU and period, in turns
    Wakeup(wakeup::Wakeup),
    /// From an interrupt to user code: timers, frames, a GPIO line
    Interrupt(interrupt::Interrupt),
    /// What semaphores, mutexes, queues, pipes, futexes, eventfds and our own seam cost
    Ipc(ipc::Ipc),
    /// Six servo drives for a minute: T_period, T_jitter, T_exec
    Servo(servo::Servo),
}

impl Measure {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Tuning(it) => it.execute(),
            Self::Interference(it) => it.execute(),
            Self::Tasks(it) => it.execute(),
            Self::Wakeup(it) => it.execute(),
            Self::Interrupt(it) => it.execute(),
            Self::Ipc(it) => it.execute(),
            Self::Servo(it) => it.execute(),
        }
    }
}

/// What every experiment has.
#[derive(Args, Clone, Debug)]
pub(super) struct Common {
    /// Where raw data and the report go; without it measurements/NAME-DATE-TIME
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the report as JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Common {
    /// Makes the folder, runs the experiment, saves its report, prints it.
    pub(super) fn conduct(
        &self,
        name: &str,
        experiment: impl FnOnce(&Context) -> Result<Report, Error>,
    ) -> Result<(), Failure> {
        stop::listen()?;
        let directory = self.out.clone().unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            Path::new("measurements").join(format!("{name}-{}", date_and_time(now)))
        });
        measure::runner::make_directory(&directory)
            .map_err(|error| Failure::new(format!("{error}; choose another folder with --out")))?;
        let context = Context {
            directory: directory.clone(),
            onbeat: env::current_exe()?,
            stop: stop::flag(),
            say: &|line| eprintln!("{line}"),
        };
        let mut report = experiment(&context)?;
        if context.stopped() {
            report.warn("stopped before its end: the numbers are of what had run by then");
        }
        report::save(&report, &directory)?;
        if self.json {
            println!("{}", report.json());
        } else {
            print!("{}", report.text());
        }
        eprintln!("raw data and report in {}", directory.display());
        Ok(())
    }
}

/// The UTC date and time of a folder's name, as `20261121-074027`.
fn date_and_time(since_1970: Duration) -> String {
    let (days, second) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The Gregorian date of a day counted from 1 January 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_utc() {
        for (seconds, name) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_868_800, "20000301-000000"),
            (1_795_246_827, "20261121-074027"),
            (1_830_297_599, "20271231-235959"),
        ] {
            assert_eq!(date_and_time(Duration::from_secs(seconds)), name);
        }
    }
}
