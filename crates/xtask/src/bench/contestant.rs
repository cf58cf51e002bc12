//! Program under measurement: it starts on a separate cable, then runs rounds on request;
//! the reflector at the far end, and SOEM.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use testkit::{Side, Testbed};

use super::recorded::Sorted;
use crate::judges::peers::Simulate;
use crate::{command, setup};

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

/// Fetches SOEM and compiles it with our loop around it, once.
///
/// # Errors
/// Fetching or compiling failed.
pub(crate) fn build(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("lab/peers/soem/target");
    let program = folder.join("soem-wire");
    let source = root.join("lab/peers/soem/wire.c");
    if is_newer(&program, &source) {
        return Ok(program);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let soem = folder.join(format!("{PYSOEM}/soem"));
    if !soem.exists() {
        fetch(root, &folder)?;
    }
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-w", "-DEC_VER2", "-o"]).arg(&program).arg(&source);
    for headers in ["soem", "osal", "osal/linux", "oshw/linux"] {
        compile.arg("-I").arg(soem.join(headers));
    }
    for sources in ["soem", "osal/linux", "oshw/linux"] {
        compile.args(c_files(&soem.join(sources))?);
    }
    command::output(compile.args(["-lpthread", "-lrt"]))?;
    Ok(program)
}

const PYSOEM: &str = "pysoem-1.1.13";

fn fetch(root: &Path, folder: &Path) -> Result<(), String> {
    println!("fetching the sources of {PYSOEM}, which hold SOEM's");
    let mut pip = Command::new(setup::python(root)?);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
    command::output(pip.arg(PYSOEM.replacen('-', "==", 1)).current_dir(folder))?;
    command::output(Command::new("tar").arg("xzf").arg(format!("{PYSOEM}.tar.gz")).current_dir(folder))
        .map(drop)
}

fn c_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect())
}

fn is_newer(program: &Path, source: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    changed(program).zip(changed(source)).is_some_and(|(program, source)| program > source)
}

/// Compiled reflector for one number of SubDevices.
#[derive(Debug)]
pub(crate) struct Reflector {
    object: PathBuf,
}

impl Reflector {
    /// Compiles the reflector into `folder`.
    ///
    /// # Errors
    /// The missing part, or the compiler's error.
    pub(crate) fn compile(root: &Path, folder: &Path, sub_devices: usize) -> Result<Self, String> {
        setup::bench_packages()?;
        let clang = setup::clang().ok_or("no clang after installing it")?;
        let object = folder.join(format!("reflector-{sub_devices}.o"));
        let mut compile = Command::new(clang);
        compile.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf"]);
        // Debian keeps <asm/types.h> in an architecture-specific folder, which `-target bpf` does
        // not search.
        compile.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
        compile.arg(format!("-DSUB_DEVICES={sub_devices}"));
        compile.arg("-c").arg(root.join("lab/peers/wire/reflector.bpf.c")).arg("-o").arg(&object);
        command::output(&mut compile)?;
        Ok(Self { object })
    }

    /// Attaches the reflector to the far end of `testbed`, in native mode, and its counterpart to
    /// the near end, unless the near end already has a program.
    ///
    /// # Errors
    /// The error of `ip`.
    pub(crate) fn attach(&self, testbed: &Testbed, near_has_one: bool) -> Result<(), String> {
        let ends = [(Side::Far, "xdp.reflect"), (Side::Near, "xdp.pass")];
        for (side, section) in ends.into_iter().take(if near_has_one { 1 } else { 2 }) {
            let namespace = testbed.namespace(side);
            let mut ip = Command::new("ip");
            ip.args(["-n", &namespace, "link", "set", "dev", side.interface(), "xdpdrv", "obj"]);
            command::output(ip.arg(&self.object).args(["sec", section]))?;
        }
        Ok(())
    }
}
