//! Planner over DDS: `onbeat-ros2`, and a Python program that uses DDS alone, or is a node of ROS
//! 2.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ipc::client::Client;
use ipc::state::{CommandState, Reader};
use serde_json::{Value, json};

use super::course::Course;
use crate::child::ChildProcess;
use crate::onbeat_run::Running;
use crate::{Context, Error};

/// The two processes; dropping it kills them.
#[derive(Debug)]
pub(super) struct Ros2 {
    ipc: ChildProcess,
    planner: ChildProcess,
    state: Reader,
    last: CommandState,
    commands: Commands,
}

/// Commands of the planner, as the cycle took them over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Commands {
    /// From the start of the planner's processes to the first command.
    pub(super) first_after: Duration,
    /// Release of the cycle that was seen to have it.
    pub(super) begin_ns: u64,
    /// Commands since, the first among them.
    pub(super) count: u64,
    /// Longest time between two of them.
    pub(super) longest_pause: Duration,
}

impl Ros2 {
    pub(super) fn start(
        context: &Context,
        python: &Path,
        as_node: bool,
        ipc: &str,
        course: &Course,
    ) -> Result<Self, Error> {
        let program = context.programs.onbeat.with_file_name("onbeat-ros2");
        if !program.exists() {
            return Err(Error::other(format_args!(
                "{} is not there: build it with `cargo xtask ros2 build` (and --release where onbeat is), or plan \
                 with --planner IPC",
                program.display()
            )));
        }
        let script = context.directory.join("dynamic_window.py");
        fs::write(&script, SCRIPT).map_err(|error| Error::file(&script, error))?;
        // A dedicated domain, so that no other robot of the network is moved.
        let domain = (std::process::id() % 100 + 1).to_string();
        let client = Client::named(ipc).map_err(Error::other)?;
        let state = client.state();
        let mut ipc = Command::new(program);
        ipc.env("ROS_DOMAIN_ID", &domain).env(ipc::client::VARIABLE, client.path());
        let mut planner = Command::new(python);
        planner.env("ROS_DOMAIN_ID", &domain).arg(&script);
        planner.arg("--course").arg(serde_json::to_string(course).map_err(Error::other)?);
        planner.args(as_node.then_some("--ros"));
        Ok(Self {
            ipc: ChildProcess::start(ipc)?,
            planner: ChildProcess::start(planner)?,
            state,
            last: CommandState::default(),
            commands: Commands::default(),
        })
    }

    /// Waits until the cycle has the planner's first command: both processes are up, and have found
    /// each other. False if the user stops it before.
    pub(super) fn wait_for_command(
        &mut self,
        context: &Context,
        running: &mut Running,
    ) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            self.look()?;
            if self.commands.count > 0 {
                self.commands.first_after = begin.elapsed();
                return Ok(true);
            }
            if begin.elapsed() > FIRST_COMMAND || running.is_over() {
                let waited = begin.elapsed().as_secs();
                return Err(self.planner.error(format!(
                    "sent no command within {waited} s: expected /cmd_vel of it at onbeat-ros2, from its answer to the first \
                     /odom; is the machine busy, or its discovery kept from loopback (RMW_IMPLEMENTATION, \
                     FASTRTPS_DEFAULT_PROFILES_FILE, CYCLONEDDS_URI)?"
                )));
            }
            if !context.wait(Duration::from_millis(20)) {
                return Ok(false);
            }
        }
    }

    /// Records the commands received since the last look.
    ///
    /// # Errors
    /// One of the two processes has ended.
    pub(super) fn look(&mut self) -> Result<(), Error> {
        self.ipc.still_goes_on()?;
        self.planner.still_goes_on()?;
        // An ended cycle has no state to read; the waiting code sees its end.
        if let Ok(state) = self.state.read() {
            self.commands.take(&self.last, &state.command, state.release_ns);
            self.last = state.command;
        }
        Ok(())
    }

    /// Ends both processes.
    pub(super) fn end(self) -> Commands {
        self.commands
    }
}

impl Commands {
    fn take(&mut self, before: &CommandState, now: &CommandState, release_ns: u64) {
        let new = now.accepted.saturating_sub(before.accepted);
        if new == 0 {
            return;
        }
        match self.count {
            0 => self.begin_ns = release_ns,
            _ => {
                let pause = Duration::from_nanos(now.stamp_ns.saturating_sub(before.stamp_ns) / new);
                self.longest_pause = self.longest_pause.max(pause);
            }
        }
        self.count += new;
    }

    /// True if fewer than half of the commands of a drive came, or none for ten plans.
    pub(super) fn starved(&self, duration: Duration) -> bool {
        let planned = duration.as_nanos() / PLAN_EVERY.as_nanos();
        2 * u128::from(self.count) < planned || self.longest_pause > 10 * PLAN_EVERY
    }

    pub(super) fn words(&self) -> String {
        format!(
            "the planner sent {} commands, one every {} ms expected, and none for {:.2} s at the longest",
            self.count,
            PLAN_EVERY.as_millis(),
            self.longest_pause.as_secs_f64()
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "first_command_after_s": self.first_after.as_secs_f64(),
            "commands": self.count,
            "longest_pause_s": self.longest_pause.as_secs_f64(),
        })
    }
}

/// Longest wait for the planner's first command, also on a machine under load.
pub(super) const FIRST_COMMAND: Duration = Duration::from_secs(120);

/// Interval of the planner's commands.
const PLAN_EVERY: Duration = Duration::from_millis(50);

/// Checks that a Python has what a node needs.
pub(super) fn check_rclpy(python: &Path) -> Result<(), Error> {
    let probe = Command::new(python).args(["-c", "import rclpy, nav_msgs.msg, geometry_msgs.msg"]).output();
    let why = match probe {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::other(format_args!(
        "{}: {why}; expected a Python with rclpy, nav_msgs and geometry_msgs: source ROS 2's setup file, name one with \
         --python, or plan with --planner ipc",
        python.display()
    )))
}

/// The planner as started by hand.
const SCRIPT: &str = include_str!("../../../../python/examples/dynamic_window.py");

#[cfg(test)]
mod tests {
    use super::*;

    // feature(papers): `measure navigation --planner ros`: counts the planner's commands, and reports a planner without processor time
    #[test]
    fn commands_are_counted_and_a_pause_is_the_time_between_two() {
        let mut commands = Commands::default();
        let mut before = CommandState::default();
        for (accepted, stamp_ms, release_ns) in
            [(0, 0, 1), (1, 100, 7), (1, 100, 9), (3, 200, 11), (4, 500, 12)]
        {
            let now = CommandState { accepted, stamp_ns: stamp_ms * 1_000_000, ..CommandState::default() };
            commands.take(&before, &now, release_ns);
            before = now;
        }
        let pause = Duration::from_millis(300);
        let expected = Commands { begin_ns: 7, count: 4, longest_pause: pause, ..Commands::default() };
        assert_eq!(commands, expected);
        let starved = |ms| commands.starved(Duration::from_millis(ms));
        assert!(!starved(400) && starved(450), "half of nine did not come");
        let late = Commands { longest_pause: Duration::from_millis(501), ..commands };
        assert!(late.starved(Duration::from_millis(400)), "{}", late.words());
        assert!(
            late.words().contains("4 commands") && late.words().contains("none for 0.50 s"),
            "{}",
            late.words()
        );
    }

    // feature(papers): `measure navigation --planner ros`: refused before it starts where there is no rclpy
    #[test]
    fn a_python_without_rclpy_is_refused_in_words() {
        for (python, words) in [("/no/such/python", "No such file"), ("false", "false: ")] {
            let why = check_rclpy(Path::new(python)).expect_err(python).to_string();
            assert!(why.contains(words) && why.contains("or plan with --planner ipc"), "{why}");
        }
    }
}
