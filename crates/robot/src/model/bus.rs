use std::path::PathBuf;
use std::time::Duration;

use ethercat::main_device::{
    ExpectedIdentity, LatchMode, MAXIMUM_SUB_DEVICES, Oversampling, Presence, ProcessDataSource, Replies,
    StartupSdo, SubDeviceConfiguration, Sync0, Sync1, Watchdog,
};
use ethercat::pdo::PdoMapping;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use types::{ApplicationKind, EscKind, TerminalModel};

use super::mapping::process_data;
use super::mapping::startup;
use super::usual;
use crate::error::{KEY, refused};
use crate::field::{Number, drift, finite, jitter, not_negative, positive, time, time_or, two, whole};

/// `[bus]`: SubDevices, and their common settings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// True if the distributed clocks are set up and kept synchronised.
    #[serde(default)]
    pub distributed_clocks: bool,
    /// True if the last SubDevice's OUT leads back to a second interface of the MainDevice.
    #[serde(default)]
    pub ring: bool,
    #[serde(default, deserialize_with = "watchdog")]
    process_data_watchdog: Option<Watchdog>,
    #[serde(default, deserialize_with = "watchdog")]
    pdi_watchdog: Option<Watchdog>,
    /// True if SubDevices that leave Op, or vanish and come back, are brought to Op again while the
    /// others stay there.
    #[serde(default = "yes")]
    pub recovery: bool,
    /// True if outputs or inputs of a few bits share bytes of the datagrams.
    #[serde(default)]
    pub packed: bool,
    /// Property that distinguishes replies from outgoing frames.
    #[serde(default, with = "RepliesName")]
    pub replies: Replies,
    /// SubDevices in the order of the cable.
    #[serde(default, rename = "sub_device")]
    pub sub_devices: Vec<SubDevice>,
}

fn yes() -> bool {
    true
}

fn once() -> u16 {
    1
}

/// Most samples of a channel in one exchange of process data, by the known terminals.
const MOST_SAMPLES: i64 = 100;

/// Largest number of cycles from one exchange to the next.
const SLOWEST: i64 = 1000;

/// Names of [`Replies`].
#[derive(Deserialize)]
#[serde(remote = "Replies", rename_all = "snake_case")]
enum RepliesName {
    ProcessedSource,
    UnchangedSource,
}

/// `[[bus.sub_device]]`: one SubDevice. Missing keys are taken from its `[device.NAME]`, or from
/// the bus.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubDevice {
    /// Name; unique on the bus.
    pub name: String,
    #[serde(default, deserialize_with = "whole::<_, _, 1, MOST_SUB_DEVICES>")]
    pub(crate) count: Option<u16>,
    #[serde(default, deserialize_with = "whole::<_, _, 0, LARGEST_FIRST>")]
    pub(crate) first: Option<u16>,
    pub(crate) device: Option<String>,
    /// Expected configured station alias (ETG.1000.4, 6.2, register 0x0012).
    #[serde(default, deserialize_with = "alias")]
    pub alias: Option<u16>,
    #[serde(rename = "parent")]
    pub(crate) parents_name: Option<String>,
    pub(crate) port: Option<i64>,
    /// Expected identity of the SubDevice at this position; `None` accepts any.
    #[serde(default, deserialize_with = "identity")]
    pub identity: Option<ExpectedIdentity>,
    /// Source of its process data mapping.
    #[serde(default, rename = "pdos", deserialize_with = "process_data")]
    pub process_data: ProcessDataSource,
    /// Objects written in PreOp, in this order.
    #[serde(default, deserialize_with = "startup")]
    pub startup: Vec<StartupSdo>,
    #[serde(rename = "dc")]
    pub(crate) clock: Option<DistributedClock>,
    /// Cycles from one exchange of its process data to the next.
    #[serde(default = "once", deserialize_with = "whole::<_, _, 1, SLOWEST>")]
    pub every: u16,
    /// False if outputs and inputs use separate datagrams (LWR and LRD) instead of one (LRW).
    #[serde(default = "yes")]
    pub lrw: bool,
    /// Edges that its latch inputs hold; `None` leaves them as they are.
    #[serde(default, deserialize_with = "latches")]
    pub latches: Option<[LatchMode; 2]>,
    /// Process data watchdog: time without outputs before it leaves Op by itself.
    #[serde(default, deserialize_with = "watchdog")]
    pub process_data_watchdog: Watchdog,
    /// PDI watchdog: time without access by its application; `None` leaves the ESC's default.
    #[serde(default, deserialize_with = "watchdog")]
    pub pdi_watchdog: Option<Watchdog>,
    /// Simulation; `None` where the file has none.
    #[serde(rename = "simulate")]
    pub simulation: Option<Simulation>,
    /// Group, if any, with at least one other SubDevice. Its members count as missing together.
    pub group: Option<String>,
    /// True if the bus may be without it.
    #[serde(default, with = "PresenceName")]
    pub presence: Presence,
    /// Attachment; `None` for the first.
    #[serde(skip)]
    pub parent: Option<Parent>,
    /// SYNC0, if the SubDevice uses it.
    #[serde(skip)]
    pub sync0: Option<Sync0>,
    /// SYNC1, if it uses that too.
    #[serde(skip)]
    pub sync1: Option<Sync1>,
    /// Samples of a channel in one exchange of its process data, if there are several.
    #[serde(skip)]
    pub oversampling: Option<Oversampling>,
}

/// Names of [`Presence`].
#[derive(Deserialize)]
#[serde(remote = "Presence", rename_all = "snake_case")]
enum PresenceName {
    Required,
    Optional,
    HotConnect,
}

/// Keys of `[device.NAME]`: keys that several SubDevices may share.
pub(crate) const DEVICE_KEYS: [&str; 11] = [
    "identity",
    "pdos",
    "startup",
    "dc",
    "every",
    "lrw",
    "latches",
    "process_data_watchdog",
    "pdi_watchdog",
    "simulate",
    "group",
];

/// Keys of `[bus]` that its SubDevices may replace.
pub(crate) const BUS_KEYS: [&str; 2] = ["process_data_watchdog", "pdi_watchdog"];

/// Largest number of SubDevices on a bus: the address range of the MainDevice.
pub(crate) const MOST_SUB_DEVICES: i64 = MAXIMUM_SUB_DEVICES as i64;

/// Most axes of a drive.
const MOST_AXES: i64 = ethercat::cia402::object::MOST_AXES as i64;

/// Largest number in a name.
pub(crate) const LARGEST_FIRST: i64 = 65_535;

impl SubDevice {
    /// Mapping, if the robot file gives it.
    #[must_use]
    pub fn explicit_mapping(&self) -> Option<&PdoMapping> {
        match &self.process_data {
            ProcessDataSource::Sii => None,
            ProcessDataSource::Explicit(mapping) => Some(mapping),
        }
    }

    /// Settings of the MainDevice for it.
    #[must_use]
    pub fn configuration(&self) -> SubDeviceConfiguration {
        SubDeviceConfiguration {
            name: self.name.clone(),
            identity: self.identity,
            alias: self.alias,
            process_data: self.process_data.clone(),
            startup: self.startup.clone(),
            barriers: Vec::new(),
            sync0: self.sync0,
            sync1: self.sync1,
            oversampling: self.oversampling.clone(),
            latches: self.latches,
            every: self.every,
            lrw: self.lrw,
            group: self.group.clone(),
            presence: self.presence,
            process_data_watchdog: self.process_data_watchdog,
            pdi_watchdog: self.pdi_watchdog,
        }
    }

    /// Words for process data that is not exchanged in every cycle; `None` for others.
    pub(crate) fn slow(&self) -> Option<String> {
        let Self { name, every, .. } = self;
        (*every > 1).then(|| format!("\"{name}\" with process data every {every} cycles"))
    }

    /// Simulated application.
    pub(crate) fn simulated_as(&self) -> Option<ApplicationKind> {
        self.simulation.as_ref().map(|simulation| simulation.application)
    }
}

/// Attachment of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Position on the bus of the SubDevice it is attached to.
    pub position: usize,
    /// Port of that SubDevice, 1 to 3. A frame visits 3, then 1, then 2 (ETG.1000.4, 4.6).
    pub port: u8,
}

/// `dc`: SYNC0, by default with the period, and SYNC1 if one of its keys is given; both follow from
/// `oversampling` if that is given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DistributedClock {
    #[serde(default, deserialize_with = "time")]
    pub(crate) sync0: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    pub(crate) shift: Duration,
    #[serde(default, deserialize_with = "time")]
    pub(crate) sync1: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    pub(crate) sync1_delay: Option<Duration>,
    #[serde(default, deserialize_with = "whole::<_, _, 2, MOST_SAMPLES>")]
    pub(crate) oversampling: Option<u8>,
    #[serde(default)]
    pub(crate) samples: Vec<u16>,
}

/// `simulate`: simulation of a SubDevice.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    pub(crate) kind: Kind,
    /// Behaviour of the simulated SubDevice, by its kind.
    #[serde(skip)]
    pub application: ApplicationKind,
    /// Model that it is built as, by its kind.
    #[serde(skip)]
    pub terminal: Option<TerminalModel>,
    /// ESC; `None` takes it from the SII image if it shows one, else an ESC with everything a
    /// SubDevice may need.
    pub esc: Option<EscKind>,
    /// Rate error of its clock, in parts per million, above 0 if it runs fast; `None` gives each
    /// SubDevice another one, up to 20 ppm.
    #[serde(default, deserialize_with = "drift")]
    pub drift_ppm: Option<f64>,
    /// Greatest deviation, either way, of each pulse of SYNC0 and SYNC1 and of each time that its
    /// clock takes.
    #[serde(default, deserialize_with = "jitter")]
    pub jitter: Duration,
    /// SII image to start from; `None` makes one from the description.
    pub sii: Option<PathBuf>,
    /// Number of channels: 1 to 64 digital or 16 analogue ones, 1 or 2 encoders.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 64>")]
    pub channels: u8,
    /// Levels of digital inputs from the start, from the first channel on; the others have the
    /// level of the output of their number.
    #[serde(default)]
    pub initial: Vec<bool>,
    /// Axes of a servo drive, all alike.
    #[serde(default = "usual_axes", deserialize_with = "whole::<_, _, 1, MOST_AXES>")]
    pub axes: u8,
    /// Encoder counts per revolution of the motor, or of the shaft that an encoder follows.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 4_294_967_295>")]
    pub encoder_counts: u32,
    /// Inertia of rotor and load at the motor shaft, in kg m^2.
    #[serde(default = "usual_inertia", deserialize_with = "positive")]
    pub inertia: f64,
    /// Viscous friction, in N m s/rad.
    #[serde(default = "usual_viscous_friction", deserialize_with = "not_negative")]
    pub viscous_friction: f64,
    /// Coulomb friction, in N m.
    #[serde(default = "usual_coulomb_friction", deserialize_with = "not_negative")]
    pub coulomb_friction: f64,
    /// Torque of 1000 per mille, in N m.
    #[serde(default = "usual_rated_torque", deserialize_with = "positive")]
    pub rated_torque: f64,
    /// Largest torque of the motor, in N m; by default three times the rated one.
    #[serde(default, deserialize_with = "positive")]
    pub torque_limit: f64,
    /// Angles of the motor shaft at which the limit switches operate, in rad from its position at
    /// power-on: pressed up to the first and from the second on, the lower one first; `None`
    /// without limit switches.
    #[serde(default, deserialize_with = "limit_switches")]
    pub limit_switches: Option<(f64, f64)>,
    /// Angles of the motor shaft between which the home switch is pressed, in rad from its position
    /// at power-on, the lower one first; `None` without a home switch.
    #[serde(default, deserialize_with = "angles")]
    pub home_switch: Option<(f64, f64)>,
    /// Angles of the motor shaft between which the input of touch probe 1 is high, counted as for
    /// the home switch; `None` without one.
    #[serde(default, deserialize_with = "angles")]
    pub touch_probe: Option<(f64, f64)>,
    /// False for a servo drive without quick stop: it stays enabled and continues.
    #[serde(default = "usual_quick_stop")]
    pub quick_stop: bool,
    /// Measured quantity of analogue inputs.
    #[serde(default)]
    pub source: AnalogueSource,
    /// Largest distance of analogue inputs from `offset`, in digits; or largest force in N, and ten
    /// times the largest torque in N m.
    #[serde(default, deserialize_with = "finite")]
    pub amplitude: f64,
    /// Of the first channel, in Hz; each of the others is slower than the one before.
    #[serde(default, deserialize_with = "not_negative")]
    pub frequency: f64,
    /// Value in the middle of analogue inputs, in digits.
    #[serde(default, deserialize_with = "finite")]
    pub offset: f64,
    /// Counts a second of encoders that follow no shaft.
    #[serde(default = "usual_rate", deserialize_with = "finite")]
    pub rate: f64,
    /// Simulated servo drive with the shaft that encoders follow.
    pub follows: Option<String>,
}

/// `kind` of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Behaviour(ApplicationKind),
    Model(TerminalModel),
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let behaviours = ApplicationKind::ALL.map(|it| (it.name(), Self::Behaviour(it)));
        let models = TerminalModel::ALL.map(|it| (it.name(), Self::Model(it)));
        let all = || behaviours.iter().chain(&models);
        all().find(|(known, _)| *known == name).map(|&(_, kind)| kind).ok_or_else(|| {
            let known: Vec<_> = all().map(|(known, _)| format!("`{known}`")).collect();
            D::Error::custom(format_args!("unknown variant `{name}`, expected one of {}", known.join(", ")))
        })
    }
}

/// Measured quantity of simulated analogue inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnalogueSource {
    /// A sine on each.
    #[default]
    Sine,
    /// A ramp from one end to the other on each.
    Ramp,
    /// Analogue output of the same number, on the last output SubDevice before it.
    Outputs,
}

usual! {
    usual_axes: u8 = 1;
    usual_inertia: f64 = 5e-4;
    usual_viscous_friction: f64 = 1e-3;
    usual_coulomb_friction: f64 = 0.02;
    usual_rated_torque: f64 = 2.4;
    usual_rate: f64 = 1000.0;
    usual_quick_stop: bool = true;
}

fn watchdog<'de, D: Deserializer<'de>, T: From<Watchdog>>(deserializer: D) -> Result<T, D::Error> {
    let expected = "a duration in quotes, as in \"100ms\", or \"off\"";
    let time = time_or(deserializer, Some("off"), expected)?;
    Ok(time.map_or(Watchdog::Off, Watchdog::After).into())
}

/// Edges of latch inputs 0 and 1: the first one until its time is read, or the newest.
fn latches<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[LatchMode; 2]>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    let mode = |word: &String| match word.as_str() {
        "single" => Some(LatchMode::SINGLE),
        "continuous" => Some(LatchMode::default()),
        _ => None,
    };
    let modes: Option<Vec<LatchMode>> = words.iter().map(mode).collect();
    modes.and_then(|modes| modes.try_into().ok()).map(Some).ok_or_else(|| {
        let expected = "two of \"single\" and \"continuous\", of inputs 0 and 1";
        refused(format_args!("{words:?}"), expected, "correct latches")
    })
}

fn alias<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    match u16::try_from(number) {
        Ok(0) => {
            let expected = "1 to 65535: 0 is the alias of a SubDevice that has none";
            Err(refused(
                format_args!("{KEY} = 0"),
                expected,
                format_args!("leave {KEY} out, or give another"),
            ))
        }
        Ok(alias) => Ok(Some(alias)),
        Err(_) => {
            Err(refused(format_args!("{KEY} = {number}"), "1 to 65535", format_args!("correct {KEY}")))
        }
    }
}

fn identity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ExpectedIdentity>, D::Error> {
    #[derive(Deserialize)]
    #[serde(remote = "ExpectedIdentity", deny_unknown_fields)]
    struct Identity {
        vendor_id: u32,
        product_code: u32,
        revision: Option<u32>,
    }
    Identity::deserialize(deserializer).map(Some)
}

fn angles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(f64, f64)>, D::Error> {
    let (first, last) = two::<_, f64>(deserializer)?;
    if first.is_finite() && last.is_finite() && first < last {
        return Ok(Some((first, last)));
    }
    let found = format_args!("{KEY} = [{}, {}]", Number(first), Number(last));
    Err(refused(found, "two angles in rad, the lower one first", format_args!("correct {KEY}")))
}

/// The shaft is between the switches at the start.
fn limit_switches<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(f64, f64)>, D::Error> {
    let (lowest, highest) = two::<_, f64>(deserializer)?;
    if lowest.is_finite() && highest.is_finite() && lowest < 0.0 && highest > 0.0 {
        return Ok(Some((lowest, highest)));
    }
    let found = format_args!("limit_switches = [{}, {}]", Number(lowest), Number(highest));
    let expected = "an angle below 0 and one above 0, in rad: the shaft starts at 0";
    Err(refused(found, expected, "correct limit_switches"))
}
