//! Program under measurement: it starts on a separate cable, then runs rounds on request.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use testkit::{Side, Testbed};

use super::reflector::Reflector;
use super::statistics::Sorted;
use crate::judges::simulate::Simulate;

/// Program under measurement on its own cable, so that its packets wake no other program's socket.
#[derive(Debug)]
pub(crate) struct Contestant {
    /// Name in the table.
    pub(crate) name: &'static str,
    /// Bytes of the frame it sends each cycle, as it reports.
    pub(crate) frame_bytes: usize,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _testbed: Testbed,
}

/// Times of one round, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Round {
    /// CPU time of the whole process over the round.
    pub(crate) cpu: u64,
    /// Times of the cycles.
    pub(crate) cycles: Vec<u64>,
}

impl Round {
    /// Median of the times of the cycles.
    pub(crate) fn median(&self) -> u64 {
        Sorted::new(self.cycles.clone()).quantile(0.5)
    }
}

impl Contestant {
    /// Starts `program`, which gets interface and load as arguments. A program that needs a bus to
    /// start is first brought up against `onbeat simulate`; then the reflector takes over the far
    /// end. `by_xdp` has an XDP program on the near end.
    ///
    /// # Errors
    /// The missing part, or the program's answer instead of `ready`.
    pub(crate) fn start(
        name: &'static str,
        program: Command,
        by_xdp: bool,
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
        let frame_bytes = frame_bytes.filter(|&bytes: &usize| bytes > 0);
        contestant.frame_bytes =
            frame_bytes.ok_or(format!("{name} said `{answer}`, expected `ready BYTES`"))?;
        drop(simulated);
        reflector.attach(&contestant._testbed, by_xdp)?;
        Ok(contestant)
    }

    /// Runs `cycles` cycles.
    ///
    /// # Errors
    /// It ended, or answered with anything but numbers.
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
            Ok(0) => Err(format!("{} ended (see its reason above)", self.name)),
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

/// Contents of the frames.
#[derive(Debug)]
pub(crate) struct Load {
    /// Length of a frame with one LRW datagram over all process data.
    pub(crate) frame_bytes: usize,
    /// SubDevices on the cable.
    pub(crate) sub_devices: usize,
    /// Bytes of outputs of each, equal to its inputs.
    pub(crate) bytes_each: usize,
}
