use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::Deserializer;
use types::{DacChip, ImuOutput, ImuUnit, LedChip, PeripheralKind, PortKind};

use super::{HIGHEST_CPU, usual};
use crate::error::{KEY, refused};
use crate::field::{positive, readable, time_within, two, whole};

/// `[[peripheral]]`: a device that is not on the bus, with a real-time task and an ordinary one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peripheral {
    /// Kind.
    pub kind: PeripheralKind,
    /// Name; unique; its kind by default.
    #[serde(default, deserialize_with = "readable")]
    pub name: String,
    /// Port of its messages; unique; its kind by default.
    #[serde(default, deserialize_with = "readable")]
    pub port: String,
    /// Period of its real-time task; the default depends on its kind.
    #[serde(default, deserialize_with = "period")]
    pub period: Duration,
    /// SCHED_FIFO priority of its real-time task; by default it follows from the periods, below the
    /// cycle's.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 98>")]
    pub priority: Option<u8>,
    /// CPU of its real-time task.
    #[serde(default, deserialize_with = "whole::<_, _, 0, HIGHEST_CPU>")]
    pub cpu: Option<usize>,
    /// Device file; `None` simulates the device.
    #[serde(default, deserialize_with = "device")]
    pub device: Option<PathBuf>,
    /// Baud rate of a range finder, bits per second.
    #[serde(default = "usual_baud", deserialize_with = "whole::<_, _, 1_200, 4_000_000>")]
    pub baud: u32,
    /// Angle to both sides of a range finder's front within which obstacles count, rad.
    #[serde(default = "usual_watched", deserialize_with = "positive")]
    pub watched: f64,
    /// Trigger line of a sonar.
    #[serde(default, deserialize_with = "whole::<_, _, 0, 1_023>")]
    pub trigger: u32,
    /// Echo line of a sonar.
    #[serde(default, deserialize_with = "whole::<_, _, 0, 1_023>")]
    pub echo: u32,
    /// Temperature of a sonar's air, K.
    #[serde(default = "usual_temperature", deserialize_with = "positive")]
    pub temperature: f64,
    /// Unit of an IMU.
    #[serde(default)]
    pub unit: ImuUnit,
    /// Output of a myAHRS+ that the orientation comes from.
    #[serde(default)]
    pub output: ImuOutput,
    /// I2C address of an IMU; the default depends on its unit.
    #[serde(default, deserialize_with = "whole::<_, _, 0x08, 0x77>")]
    pub address: u16,
    /// Chip of a strip's LEDs.
    #[serde(default)]
    pub chip: LedChip,
    /// Number of LEDs.
    #[serde(default = "usual_leds", deserialize_with = "whole::<_, _, 1, 512>")]
    pub leds: usize,
    /// Brightness of LEDs, 0 to 31.
    #[serde(default = "usual_brightness", deserialize_with = "whole::<_, _, 0, 31>")]
    pub brightness: u8,
    /// Names of the left and the right axis of actuators; `None`, and no converter, simulates the
    /// drives.
    #[serde(default, deserialize_with = "names")]
    pub axes: Option<[String; 2]>,
    /// Converter before the amplifiers of two DC motors, its SPI device in `device`.
    #[serde(default)]
    pub dac: Option<DacChip>,
    /// SPI devices of the encoders on the left and the right wheel.
    #[serde(default, deserialize_with = "devices")]
    pub encoders: Option<[PathBuf; 2]>,
    /// Velocity of a wheel at the end of the converter's range, without load, rad/s.
    #[serde(default, deserialize_with = "positive")]
    pub full_scale: f64,
    /// Motors that turn the other way round, left and right.
    #[serde(default, deserialize_with = "sides")]
    pub motors_reversed: [bool; 2],
    /// Encoders that count the other way round, left and right.
    #[serde(default, deserialize_with = "sides")]
    pub encoders_reversed: [bool; 2],
    /// Highest speed of actuators, rad/s.
    #[serde(default = "usual_velocity", deserialize_with = "positive")]
    pub velocity: f64,
    /// Highest acceleration of actuators, rad/s^2.
    #[serde(default = "usual_acceleration", deserialize_with = "positive")]
    pub acceleration: f64,
}

usual! {
    usual_baud: u32 = 115_200;
    usual_watched: f64 = 0.5;
    usual_temperature: f64 = 293.15;
    usual_leds: usize = 60;
    usual_brightness: u8 = 8;
    usual_velocity: f64 = 10.0;
    usual_acceleration: f64 = 20.0;
}

fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let range = Duration::from_millis(1)..=Duration::from_secs(10);
    time_within(deserializer, range, "a device is read once a period")
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[String; 2]>, D::Error> {
    two(deserializer).map(|(left, right)| Some([left, right]))
}

fn sides<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[bool; 2], D::Error> {
    two(deserializer).map(|(left, right)| [left, right])
}

fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    whole_path(PathBuf::deserialize(deserializer)?).map(Some)
}

fn devices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[PathBuf; 2]>, D::Error> {
    let (left, right) = two(deserializer)?;
    Ok(Some([whole_path(left)?, whole_path(right)?]))
}

fn whole_path<E: serde::de::Error>(path: PathBuf) -> Result<PathBuf, E> {
    if path.is_absolute() {
        return Ok(path);
    }
    let expected = "the whole path of a device, as \"/dev/ttyACM0\"";
    Err(refused(format_args!("{KEY} = {path:?}"), expected, "write it from / on"))
}

/// `[ipc]`: name, access and ports of the shared-memory interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ipc {
    /// Name of the interface; the robot's name by default.
    #[serde(deserialize_with = "ipcs_name")]
    pub name: String,
    /// Group with members that may attach in addition to the user that runs the cycle.
    #[serde(deserialize_with = "group")]
    pub group: Option<String>,
    /// True if the drives are enabled at the start; otherwise on request.
    pub enable: bool,
    /// True if signals may be forced.
    pub force: bool,
    /// Longest time to live of a command.
    #[serde(deserialize_with = "time_to_live")]
    pub longest_time_to_live: Duration,
    /// Ports in addition to `control` and `trajectory`.
    #[serde(rename = "port")]
    pub ports: Vec<IpcPort>,
}

impl Default for Ipc {
    fn default() -> Self {
        Self {
            name: String::new(),
            group: None,
            enable: true,
            force: true,
            longest_time_to_live: Duration::from_secs(1),
            ports: Vec::new(),
        }
    }
}

/// `[[ipc.port]]`: a port of a datagram channel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IpcPort {
    /// Name; unique.
    #[serde(deserialize_with = "ports_name")]
    pub name: String,
    /// Kind.
    pub kind: PortKind,
    /// Bytes of the longest message, or of the buffer of a stream each way.
    #[serde(deserialize_with = "whole::<_, _, 1, 1_048_576>")]
    pub size: usize,
    /// Depth of the queue each way, in messages.
    #[serde(default = "usual_depth", deserialize_with = "whole::<_, _, 1, 65_536>")]
    pub depth: usize,
}

usual! {
    usual_depth: usize = 64;
}

fn time_to_live<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let range = Duration::from_millis(1)..=Duration::from_secs(60);
    let remedy = "the axes follow a command for this long after its sender has ended";
    time_within(deserializer, range, remedy)
}

fn ipcs_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    file_name(deserializer, "the IPC's name")
}

fn ports_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    file_name(deserializer, "the port's name")
}

fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    file_name(deserializer, "the group").map(Some)
}

/// A name that is also part of a file's name.
fn file_name<'de, D: Deserializer<'de>>(deserializer: D, what: &str) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with(['.', '-']) {
        return Ok(text);
    }
    let expected = "1 to 64 letters, digits, '.', '_' or '-', the first one a letter, digit or '_'";
    Err(refused(format_args!("{what} {text:?}"), expected, "choose another"))
}

/// Robot's name, with other characters replaced.
pub(crate) fn made_of(robot: &str) -> String {
    let letters = robot.chars().map(|letter| if fits(letter) { letter } else { '-' });
    let name: String = letters.skip_while(|letter| matches!(letter, '.' | '-')).take(64).collect();
    if name.is_empty() { "robot".to_owned() } else { name }
}

const fn fits(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}
