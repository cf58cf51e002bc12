//! One program that is measured: it gets ready on a cable of its own, then answers rounds.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use testbed::{Side, Testbed};

use super::reflector::Reflector;
use super::wire::Load;
use crate::judges::simulate::Simulate;

/// A measured program on its own cable: its packets wake nobody else's socket.
#[derive(Debug)]
pub(crate) struct Contestant {
    /// How the table calls it.
    pub(crate) name: &'static str,
    /// Bytes of the frame it sends each cycle, as it says.
    pub(crate) frame_bytes: usize,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _testbed: Testbed,
}

/// What one round took, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Round {
    /// CPU time of the whole process over the round.
    pub(crate) cpu: u64,
    /// Each cycle.
    pub(crate) cycles: Vec<u64>,
}

impl Contestant {
    /// Starts `program`, which is told the interface and the load. One that needs a bus to start is first
    /// brought up against `onbeat simulate`; then the far end becomes the reflector.
    ///
    /// # Errors
    /// What is missing, or what it said instead of `ready`.
    pub(crate) fn start(
        name: &'static str,
        program: Command,
        load: &Load,
        simulate: Option<(&Path, &Path)>,
        reflector: &Reflector,
    ) -> Result<Self, String> {
        let testbed = Testbed::new().map_err(|skip| skip.to_string())?;
        let simulated = match simulate {
            Some((onbeat, robot)) => Some(Simulate::start(&testbed, onbeat, robot)?),
            None => None,
        };
        let mut pinned = Command::new("chrt");
        pinned.args(["-f", "80", "taskset", "-c", &last_cpu().to_string()]).arg(program.get_program());
        pinned.args(program.get_args()).arg(Side::Near.interface());
        pinned.args([load.sub_devices.to_string(), load.bytes_each.to_string()]);
        let mut command = testbed.run_in(Side::Near, pinned);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("{name} has no standard input and output"));
        };
        let output = BufReader::new(output);
        let mut contestant = Self { name, frame_bytes: 0, process, input, output, _testbed: testbed };
        let answer = contestant.answer()?;
        let frame_bytes = answer.strip_prefix("ready ").and_then(|bytes| bytes.parse().ok());
        contestant.frame_bytes =
            frame_bytes.ok_or(format!("{name} said `{answer}`, expected `ready BYTES`"))?;
        drop(simulated);
        reflector.attach(&contestant._testbed)?;
        Ok(contestant)
    }

    /// Runs `cycles` cycles.
    ///
    /// # Errors
    /// That it ended, or what it said instead of numbers.
    pub(crate) fn round(&mut self, cycles: usize) -> Result<Round, String> {
        writeln!(self.input, "{cycles}").map_err(|error| format!("{}: {error}", self.name))?;
        let answer = self.answer()?;
        let numbers: Result<Vec<u64>, _> = answer.split(' ').map(str::parse).collect();
        let mut numbers = numbers.map_err(|error| format!("{}: {error}", self.name))?;
        if numbers.len() != cycles + 1 {
            return Err(format!("{} gave {} numbers, expected {}", self.name, numbers.len(), cycles + 1));
        }
        let cpu = numbers.remove(0);
        Ok(Round { cpu, cycles: numbers })
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(format!("{} ended (its reason stands above)", self.name)),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn last_cpu() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) - 1
}
