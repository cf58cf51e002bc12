//! Periodic tasks: `onbeat measure devices` and `tasks`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cli::failure::Failure;
use devices::Kind;
use devices::driver::range_finder::BAUD;
use onbeat_experiments::tasks;
use onbeat_experiments::tasks::{Busy, Lines, Toggle};
use types::{ImuOutput, ImuUnit, LedChip};

use super::{Cells, Common, Cpu, lasting};

#[derive(Args, Debug)]
pub(crate) struct Devices {
    /// Time the tasks run
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "20s")]
    duration: Duration,

    /// Time of each run in which tasks wait for their devices: each device alone, then all together
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "5s")]
    waiting: Duration,

    /// Also call the drivers from the real-time tasks themselves, each for this long: calls that
    /// block, time lost
    #[arg(long, value_name = "TIME", value_parser = lasting, num_args = 0..=1, default_missing_value = "5s", require_equals = true)]
    direct: Option<Duration>,

    /// CPU of the real-time tasks; without it the last one this process may use
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// A laser range finder with SCIP 2.0 on this serial port, instead of the simulated one
    #[arg(long, value_name = "PORT")]
    range_finder: Option<PathBuf>,

    /// An IMU on this I2C bus, as /dev/i2c-1 or mpu6050:/dev/i2c-1, instead of the simulated one;
    /// without a name a myAHRS+
    #[arg(long, value_name = "[UNIT:]BUS", value_parser = imu)]
    imu: Option<(ImuUnit, PathBuf)>,

    /// An HC-SR04 on these GPIO lines instead of the simulated one
    #[arg(long, value_name = "CHIP:TRIGGER:ECHO", value_parser = lines)]
    sonar: Option<(PathBuf, u32, u32)>,

    /// A strip of 60 LEDs on this SPI bus, as /dev/spidev0.0 or apa102:/dev/spidev0.0, instead of
    /// the simulated one; without a name of WS2812
    #[arg(long, value_name = "[CHIP:]BUS", value_parser = strip)]
    led_strip: Option<(LedChip, PathBuf)>,

    #[command(flatten)]
    common: Common,
}

impl Devices {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let mut experiment = onbeat_experiments::devices::Devices {
            duration: self.duration,
            waiting: self.waiting,
            direct: self.direct,
            ..onbeat_experiments::devices::Devices::default()
        };
        if let Some(cpu) = self.cpu {
            experiment.on_cpu(cpu);
        }
        let given = [
            self.range_finder.map(|port| Kind::RangeFinder { serial: Some((port, BAUD)), watched: 0.5 }),
            self.imu.map(|(unit, bus)| Kind::Imu {
                unit,
                output: ImuOutput::default(),
                i2c: Some((bus, unit.address())),
            }),
            self.sonar.map(|lines| Kind::Sonar { gpio: Some(lines), temperature: 293.15 }),
            self.led_strip.map(|(chip, bus)| Kind::LedStrip {
                spi: Some(bus),
                chip,
                leds: 60,
                brightness: 8,
            }),
        ];
        given.into_iter().flatten().for_each(|kind| experiment.replace(kind));
        self.common.conduct("devices", |context| experiment.run(context))
    }
}

/// `/dev/i2c-1`, or with the unit before it.
fn imu(text: &str) -> Result<(ImuUnit, PathBuf), String> {
    part(text, ImuUnit::MyAhrs, &ImuUnit::ALL, ImuUnit::name)
}

/// `/dev/spidev0.0`, or with the chip before it.
fn strip(text: &str) -> Result<(LedChip, PathBuf), String> {
    part(text, LedChip::Ws2812, &LedChip::ALL, LedChip::name)
}

/// Path of a bus, with the name of a part before it or without.
fn part<T: Copy>(
    text: &str,
    usual: T,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<(T, PathBuf), String> {
    let Some((named, bus)) = text.split_once(':').filter(|(named, _)| !named.contains('/')) else {
        return Ok((usual, text.into()));
    };
    let names = || all.iter().map(|it| name(*it)).collect::<Vec<_>>().join(" or ");
    let it = all.iter().find(|it| name(**it) == named);
    it.map(|it| (*it, bus.into()))
        .ok_or_else(|| format!("found \"{named}\", expected {} before the bus", names()))
}

/// `gpiochip0:17:27`, or with the whole path.
fn lines(text: &str) -> Result<(PathBuf, u32, u32), String> {
    let wrong = || format!("found \"{text}\", expected a chip and its lines as gpiochip0:17:27");
    let mut parts = text.rsplitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong);
    let (echo, trigger) = (number()?, number()?);
    let chip = parts.next().filter(|chip| !chip.is_empty()).ok_or_else(wrong)?;
    let chip = if chip.starts_with('/') { chip.into() } else { PathBuf::from("/dev").join(chip) };
    Ok((chip, trigger, echo))
}

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    /// A task set as `onbeat analyse` reads them (TOML), or one of the papers': controllers,
    /// service-robot
    #[arg(value_name = "TASKS.toml|NAME", default_value = "controllers")]
    set: String,

    /// Time the tasks run, in each way to be busy
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "20s")]
    duration: Duration,

    /// Way in which jobs are busy
    #[arg(long, value_name = "HOW", default_value = "both")]
    busy: How,

    /// Toggle an output with each job, up from its start to its end: "frames" over a private cable,
    /// or a GPIO line for each task, as gpiochip0:17,gpiochip0:18
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_before_its_bus_or_is_the_papers() {
        assert_eq!(imu("/dev/i2c-1"), Ok((ImuUnit::MyAhrs, "/dev/i2c-1".into())));
        assert_eq!(imu("mpu6050:/dev/i2c-1"), Ok((ImuUnit::Mpu6050, "/dev/i2c-1".into())));
        assert_eq!(strip("/dev/spi:0"), Ok((LedChip::Ws2812, "/dev/spi:0".into())));
        assert_eq!(strip("apa102:spi"), Ok((LedChip::Apa102, "spi".into())));
        let refused = imu("bno055:/dev/i2c-1").unwrap_err();
        assert_eq!(refused, "found \"bno055\", expected mpu6050 or myahrs before the bus");
    }

    #[test]
    fn gpio_lines_are_read_and_what_is_none_is_refused() {
        assert_eq!(lines("gpiochip0:17:27"), Ok(("/dev/gpiochip0".into(), 17, 27)));
        assert_eq!(lines("/dev/gpiochip4:0:1"), Ok(("/dev/gpiochip4".into(), 0, 1)));
        for wrong in ["", "17:27", "gpiochip0:17", ":1:2", "gpiochip0:x:2", "gpiochip0:1:-2"] {
            assert!(lines(wrong).unwrap_err().contains("expected a chip"), "{wrong}");
        }
    }
}
