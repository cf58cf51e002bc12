//! `onbeat doctor`: can this machine hold a real-time cycle?

mod mend;
mod probe;
mod table;
mod verdict;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use machine::check::{self, Finding, Severity, Subject};
use machine::conditions;
use machine::cpus::Cpus;
use machine::ethtool::Ethtool;
use machine::root::Root;
use onbeat::LinkKind;
use robot::{Overrides, Profile, RobotConfig};
use rt::profile::{RealTimeProfile, Residency, Scheduling};
use serde::Serialize;

use self::mend::Mended;
use self::probe::Probed;
use self::verdict::Verdict;
use crate::arguments::{link_kind, time};
use crate::failure::Failure;
use crate::left_behind;
use crate::output;

/// The machine is looked at, not touched, but with `--fix`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Doctor {
    /// CPU of the cycle; by default the first isolated one, or else the last
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<usize>,

    /// Priority of the cycle under SCHED_FIFO
    #[arg(long, value_name = "1-99", default_value_t = Profile::PRIORITY, value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: u8,

    /// Check the network interface of the bus, too
    #[arg(long, value_name = "NIC")]
    iface: Option<String>,

    /// Check the computer for a cycle with the simulated bus of this robot file, as
    /// `run --segment`: no network interface is checked
    #[arg(long, value_name = "ROBOT.toml", conflicts_with = "iface")]
    segment: Option<PathBuf>,

    /// The interface's way to its frames, as `run --link`: what it polls needs other settings
    #[arg(long, value_name = "KIND", requires = "iface", value_parser = link_kind())]
    link: Option<LinkKind>,

    /// CPU for the interface's interrupts; without it, any single CPU is accepted
    #[arg(long, value_name = "NUMBER", requires = "iface")]
    nic_cpu: Option<usize>,

    /// Probe the machine and say whether it holds a cycle of this period
    #[arg(long = "for", value_name = "PERIOD", value_parser = period)]
    period: Option<Duration>,

    /// Time to probe for
    #[arg(long, value_name = "TIME", value_parser = probe_time, default_value = "1min", requires = "period")]
    probe_time: Duration,

    /// Requests of the probe to the system, as `run --profile`
    #[arg(long, value_name = "PMCS|none", default_value = "PM", requires = "period")]
    profile: Profile,

    /// Apply the fixes that can be undone with --restore; needs root
    #[arg(long)]
    fix: bool,

    /// Undo what --fix did, and what a crashed run left behind
    #[arg(long, conflicts_with_all = ["fix", "period", "iface", "segment", "cpu", "all"])]
    restore: bool,

    /// Say why and how for checks that are fine, too
    #[arg(long, conflicts_with = "json")]
    all: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Sentence for a computer that does not hold a cycle of this period, as a short probe shows.
pub(crate) fn does_not_hold(period: Duration) -> Result<Option<String>, Failure> {
    let subject = Subject::new(Root::machine(), None);
    let scheduling = Some(Scheduling::Fifo { priority: Profile::PRIORITY });
    let profile = RealTimeProfile {
        scheduling,
        memory: Some(Residency::default()),
        cpu: Some(subject.cpu()),
        ..RealTimeProfile::default()
    };
    let probed = probe::run(period, SHORT_PROBE, profile)?;
    Ok(Verdict::new(&probed, &check::all(&subject)).warning(period))
}

/// Time of the probe of `new`.
const SHORT_PROBE: Duration = Duration::from_secs(2);

impl Doctor {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        self.consult().map_err(|failure| failure.or_code(COULD_NOT_WORK))
    }

    fn consult(self) -> Result<(), Failure> {
        if self.restore {
            return mend::restore(self.json);
        }
        if let Some(path) = &self.segment {
            let robot = RobotConfig::read(path, Overrides::default())?.name;
            output::say(format_args!(
                "robot \"{robot}\" on a simulated bus: no network interface is checked"
            ));
        }
        // What is changed from here on is undone to the state before.
        match self.fix || (self.period.is_some() && self.profile.shield) {
            true => left_behind::put_back(|line| output::say(line)),
            false => left_behind::tell(|line| output::say(line)),
        }
        let subject = || self.subject();
        let look = || Ok::<_, Failure>(check::all(&subject()?));
        let mut findings = look()?;
        let mut mended = None;
        if self.fix {
            mended = Some(mend::mend(findings, look)?);
            findings = look()?;
        }
        let cpu = subject()?.cpu();
        let diagnosis = Diagnosis {
            cpu,
            priority: self.priority,
            interface: self.iface.clone(),
            conditions: conditions::read().to_string(),
            severity: severity(&findings),
            checks: findings,
            mended,
            probe: None,
            verdict: None,
        };
        self.conclude(diagnosis)
    }

    /// Prints the table, then runs the probe, then prints the verdict: the user can read the table
    /// during the probe, which takes a minute.
    fn conclude(&self, mut diagnosis: Diagnosis) -> Result<(), Failure> {
        if !self.json {
            output::print_drawn(&table::text(&diagnosis, self.all))?;
        }
        if let Some(period) = self.period {
            let probed = probe::run(period, self.probe_time, self.real_time_profile(diagnosis.cpu))?;
            let verdict = Verdict::new(&probed, &diagnosis.checks);
            if !self.json {
                output::print_drawn(&table::verdict(&probed, &verdict))?;
            }
            if !verdict.holds {
                diagnosis.severity = Severity::Critical;
            }
            diagnosis.verdict = Some(verdict.words);
            diagnosis.probe = Some(probed);
        }
        if self.json {
            output::print(serde_json::to_string_pretty(&diagnosis)? + "\n")?;
        }
        match diagnosis.severity {
            Severity::Ok | Severity::Note => Ok(()),
            Severity::Warning => Err(Failure::silent(1)),
            Severity::Critical => Err(Failure::silent(2)),
        }
    }

    fn real_time_profile(&self, cpu: usize) -> RealTimeProfile {
        RealTimeProfile {
            scheduling: self.profile.priority.then_some(Scheduling::Fifo { priority: self.priority }),
            memory: self.profile.memory.then(Residency::default),
            shield: self.profile.shield,
            spin: self.profile.spin.then_some(Profile::SPIN_MARGIN),
            cpu: Some(cpu),
        }
    }

    fn subject(&self) -> Result<Subject, Failure> {
        let root = Root::machine();
        let possible: Option<Cpus> =
            root.text("/sys/devices/system/cpu/possible").and_then(|text| text.parse().ok());
        for (option, cpu) in [("--cpu", self.cpu), ("--nic-cpu", self.nic_cpu)] {
            let Some((cpu, possible)) = cpu.zip(possible.as_ref()) else { continue };
            if !possible.contains(cpu) {
                return Err(Failure::new(format!(
                    "{option}: found {cpu}, expected one of this machine's CPUs: {possible}"
                )));
            }
        }
        let subject = Subject::new(root, self.cpu).with_priority(self.priority);
        let Some(name) = &self.iface else { return Ok(subject) };
        let ethtool = Ethtool::read(name).map_err(|error| {
            Failure::new(format!("interface \"{name}\": {error}; `ip link` lists the names"))
        })?;
        let mut subject = subject.with_interface(name, ethtool);
        if let Some(cpu) = self.nic_cpu {
            subject = subject.with_interrupt_cpu(cpu);
        }
        if self.link == Some(LinkKind::XdpPolled) {
            subject = subject.with_polling(self.period.unwrap_or(USUAL_PERIOD));
        }
        Ok(subject)
    }
}

const EXIT_CODES: &str = "Exit code: 0 nothing worse than a note; 1 a warning; 2 something critical, or the verdict \
                          is \"does not\"; 3 the doctor could not do its work.";

/// Default period of a cycle.
const USUAL_PERIOD: Duration = Duration::from_millis(1);

/// The exit code of a doctor that could not do its work, as monitoring plug-ins use it.
pub(crate) const COULD_NOT_WORK: u8 = 3;

/// Report of the doctor.
#[derive(Serialize)]
struct Diagnosis {
    cpu: usize,
    priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    conditions: String,
    /// The worst of all.
    severity: Severity,
    checks: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mended: Option<Vec<Mended>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Probed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
}

fn severity(findings: &[Finding]) -> Severity {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
}

/// The period of a cycle.
fn period(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_micros(20), Duration::from_secs(1), "20us to 1s")
}

/// Time that cycles are probed.
fn probe_time(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(168 * 3600), "100ms to 168h")
}

fn within(text: &str, least: Duration, most: Duration, range: &str) -> Result<Duration, String> {
    let duration = time(text)?;
    match (least..=most).contains(&duration) {
        true => Ok(duration),
        false => Err(format!("found \"{text}\", expected {range}")),
    }
}
