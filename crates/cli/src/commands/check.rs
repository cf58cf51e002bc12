//! `onbeat check`: a robot file, read and doubted; nothing is started.

use std::path::PathBuf;

use clap::Args;
use onbeat::Robot;
use onbeat::compose::barriers;
use onbeat::compose::segment::check_images;
use robot::{Peripheral, Profile, RobotConfig};

use super::diag::FINDINGS;
use crate::failure::Failure;
use crate::output;

/// Reads a robot file and starts nothing. Reports all errors at once, doubtful values, and what a
/// run requires of the machine. Errors that only a bus shows are reported if all SubDevices are
/// simulated. Exit code 0 without findings, 1 on an error, 3 on a doubtful value.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Robot file
    #[arg(value_name = "ROBOT.toml", required_unless_present = "schema")]
    file: Option<PathBuf>,

    /// Print the JSON Schema of robot files instead, for an editor
    #[arg(long, conflicts_with = "file")]
    schema: bool,
}

impl Check {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let Some(file) = &self.file else { return output::print(robot::SCHEMA.to_owned()) };
        let text = robot::read_text(file, "a robot file in TOML")?;
        let mut problems = RobotConfig::problems(&text, &file.display().to_string());
        if !problems.is_empty() {
            problems.sort_by_key(|problem| problem.place);
            let sentences: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(Failure::new(sentences.join("\n")));
        }
        let robot = Robot::load(file)?;
        // What other files say, as a URDF, and what follows from all of it together.
        drop(robot.alone().controllers()?);
        let config = robot.config();
        let simulated = config.bus.sub_devices.iter().filter(|it| it.simulation.is_some()).count();
        if simulated == config.bus.sub_devices.len() {
            robot.rehearse()?;
        } else {
            check_images(config)?;
        }
        output::print(summary(config, simulated))?;
        let bounds = barriers::sentences(config, None);
        output::print(bounds.iter().map(|it| format!("{it}\n")).collect::<String>())?;
        let doubts = config.doubts();
        if doubts.is_empty() {
            return Ok(());
        }
        output::print(doubts.iter().map(|doubt| format!("doubtful: {doubt}\n")).collect::<String>())?;
        Err(Failure::silent(FINDINGS))
    }
}

fn summary(config: &RobotConfig, simulated: usize) -> String {
    let RobotConfig { name, cycle, bus, axes, controllers, .. } = config;
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    };
    let controllers: Vec<String> =
        controllers.iter().map(|it| format!("{} ({})", it.name, it.kind.name())).collect();
    let asked = match cycle.profile {
        None => "nothing but time".to_owned(),
        Some(profile) => format!(
            "profile {profile}{}{}",
            cycle.priority.map_or(String::new(), |it| format!(", priority {it}")),
            cycle.cpu.map_or(String::new(), |it| format!(", CPU {it}"))
        ),
    };
    format!(
        "{name}: {} ({simulated} can be simulated), {}, cycle of {}\ncontrollers: {}\nrequired of \
         the machine: {asked}; check it with `onbeat doctor`\nrights: {}\n",
        count(bus.sub_devices.len(), "SubDevice"),
        count(axes.len(), "axis").replace("axiss", "axes"),
        types::duration::format(cycle.period),
        if controllers.is_empty() { "none".to_owned() } else { controllers.join(", ") },
        rights(config).join(", "),
    )
}

/// Rights that a run with this file makes use of: root has them, the program by `setcap`, or the
/// user by a group.
fn rights(config: &RobotConfig) -> Vec<String> {
    let profile = config.cycle.profile.unwrap_or(Profile::NONE);
    let of_profile = [
        (profile.priority, "CAP_SYS_NICE for its priority"),
        (profile.memory, "CAP_IPC_LOCK for locked memory"),
        (profile.shield, "root for a dedicated CPU"),
        (true, "CAP_NET_RAW for --iface"),
    ];
    let of_profile = of_profile.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, it)| it.to_owned());
    let group = config
        .ipc
        .group
        .iter()
        .map(|group| format!("membership of group \"{group}\", which may command it"));
    let device = |it: &Peripheral| {
        let path = it.device.as_ref()?;
        Some(format!("reading and writing {} for \"{}\"", path.display(), it.name))
    };
    of_profile.chain(group).chain(config.peripherals.iter().filter_map(device)).collect()
}
