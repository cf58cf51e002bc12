//! The bus of a robot file: its frames, the shortest period, latencies.

mod words;

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ethercat::al::AlState;
use onbeat::compose::{configuration::configuration, segment::segment};
use onbeat_experiments::frames;
use robot::{Overrides, RobotConfig};
use schedulability::bus::{LinkRate, Network, Sampling, Way};
use types::time::nanoseconds;

use super::NOT_SCHEDULABLE;
use crate::commands::time;
use cli::failure::Failure;
use cli::output;

/// Heading the help lists them under.
const BUS: &str = "The bus of a robot file";

/// Facts of the bus that the robot file does not state.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Options {
    /// Analyse the file as a robot's, whatever it looks like
    #[arg(long, help_heading = BUS)]
    pub(super) bus: bool,

    /// Megabits a second on the wire: 100 (EtherCAT) or 1000 (EtherCAT G)
    #[arg(long, help_heading = BUS, value_name = "MBIT", default_value = "100")]
    link: Link,

    /// Delay of a frame in one SubDevice, there and back together
    #[arg(long, help_heading = BUS, value_name = "TIME", value_parser = time, default_value = "1us")]
    forward: Duration,

    /// Delay of all cables, there and back: some 5 ns a metre
    #[arg(long, help_heading = BUS, value_name = "TIME", value_parser = time, default_value = "0s")]
    cables: Duration,

    /// Computing time of the MainDevice in a cycle: the longest execution time measured
    #[arg(long, help_heading = BUS, value_name = "TIME", value_parser = time, default_value = "100us")]
    computing: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Link {
    #[value(name = "100")]
    Mbit100,
    #[value(name = "1000")]
    Gbit1,
}

/// Results computed of a bus.
struct BusFound {
    robot: RobotConfig,
    network: Network,
    /// The same with a SubDevice missing.
    spread: Network,
    rate: LinkRate,
    computing_ns: u64,
    /// Sampling of SubDevices, and the way of an event through them.
    ways: Vec<(&'static str, Way)>,
}

impl BusFound {
    fn period_ns(&self) -> u64 {
        nanoseconds(self.robot.cycle.period)
    }

    fn shortest_ns(&self) -> u64 {
        self.network.shortest_period_ns(self.computing_ns)
    }

    fn holds(&self) -> bool {
        self.shortest_ns() <= self.period_ns()
    }
}

/// Analyses the bus of the robot file at `path`.
pub(super) fn analyse(path: &Path, options: Options, json: bool) -> Result<(), Failure> {
    let robot = RobotConfig::read(path, Overrides::default())?;
    let rate = match options.link {
        Link::Mbit100 => LinkRate::Mbit100,
        Link::Gbit1 => LinkRate::Gbit1,
    };
    // A closed ring has a frame of the same length on each of its cables.
    let mut line = robot.clone();
    line.bus.ring = false;
    let frames = frames::of_a_cycle(segment(&line)?, configuration(&line, AlState::Op))?;
    let network = Network {
        rate,
        frames: frames.whole,
        sub_devices: robot.bus.sub_devices.len() as u32,
        forward_ns: nanoseconds(options.forward),
        cables_ns: nanoseconds(options.cables),
    };
    let spread = Network { frames: frames.spread, ..network.clone() };
    let computing_ns = nanoseconds(options.computing);
    let ways = ways(&robot, &network, computing_ns);
    let found = BusFound { robot, network, spread, rate, computing_ns, ways };
    if json {
        output::print(format_args!("{}\n", words::json(&found)))?;
    } else {
        output::print(words::text(&path.display().to_string(), &found))?;
    }
    if found.holds() { Ok(()) } else { Err(Failure::silent(NOT_SCHEDULABLE)) }
}

/// Path of an event through free-running SubDevices, and through SubDevices with SYNC0.
fn ways(robot: &RobotConfig, network: &Network, computing_ns: u64) -> Vec<(&'static str, Way)> {
    let period_ns = nanoseconds(robot.cycle.period);
    let way = |sampling| network.way(period_ns, robot.cycle.frame_order, computing_ns, sampling);
    let mut ways = vec![("at once", way(Sampling::Free { input_ns: 0, output_ns: 0 }))];
    if let Some(sync0) = robot.bus.sub_devices.iter().find_map(|sub_device| sub_device.sync0) {
        let shift_ns = nanoseconds(sync0.shift) % period_ns;
        ways.push(("at SYNC0", way(Sampling::Synchronised { shift_ns, output_periods: 0 })));
        ways.push((
            "at SYNC0, 1 period inside",
            way(Sampling::Synchronised { shift_ns, output_periods: 1 }),
        ));
    }
    ways
}
