//! Checks of the SubDevices.
//!
//! Checks of the topology: a frame must reach the SubDevices in the order of the file.
//!
//! Checks of the watchdogs of the SubDevices.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::Range;
use std::time::Duration;

use ethercat::main_device::{Configuration, ConfigurationError, LONGEST_WATCHDOG, Presence, Watchdog};
use types::duration;
use types::near::nearest;

use super::repeat::repetitions;
use super::{Checked, cycle, presence, simulation, unknown_name};
use crate::error::Problem;
use crate::field::Place;
use crate::model::{Bus, Cycle, Devices, MOST_SUB_DEVICES, Parent, SubDevice};

/// Completes the SubDevices, and puts each repetition of an entry in its place.
pub(super) fn bus(bus: &mut Bus, devices: &Devices, cycle: &Cycle, place: Place<'_>) -> Checked<()> {
    let mut entries = mem::take(&mut bus.sub_devices);
    let mut sub_devices = SubDevices::default();
    for (index, entry) in entries.iter_mut().enumerate() {
        let place = place.key("sub_device").item(index);
        check_device(entry, devices, place)?;
        complete(entry, bus.distributed_clocks, cycle, place)?;
        sub_devices.add(entry, place)?;
    }
    if sub_devices.list.is_empty() {
        let remedy = "add a [[bus.sub_device]] for each SubDevice, in the order of the cable";
        return Err(Problem::new(place, "a bus without SubDevices", "at least one", remedy));
    }
    sub_devices.check_groups()?;
    bus.sub_devices = sub_devices.list;
    runnable(bus, cycle, &entries, place)?;
    for (index, entry) in entries.iter().enumerate() {
        let place = place.key("sub_device").item(index).key("simulate");
        entry.simulation.iter().try_for_each(|it| simulation::follows(it, &bus.sub_devices, place))?;
    }
    Ok(())
}

/// Has the MainDevice check its configuration: a refusal is reported at the entry of that
/// SubDevice.
fn runnable(bus: &Bus, cycle: &Cycle, entries: &[SubDevice], place: Place<'_>) -> Checked<()> {
    let sub_devices = bus.sub_devices.iter().map(SubDevice::configuration).collect();
    let configuration =
        Configuration { sub_devices: Some(sub_devices), period: cycle.period, ..Configuration::default() };
    let Err(refused) = configuration.check() else { return Ok(()) };
    let mut entry = place;
    let mut behind = 0;
    for (index, it) in entries.iter().enumerate() {
        behind += usize::from(it.count.unwrap_or(1));
        if refused.position().is_some_and(|position| position < behind) {
            entry = place.key("sub_device").item(index);
            break;
        }
    }
    let keys: &[&str] = match refused {
        ConfigurationError::Sync0 { .. } | ConfigurationError::Sync1 { .. } => &["dc"],
        ConfigurationError::Watchdog { .. } => &["process_data_watchdog", "pdi_watchdog"],
        ConfigurationError::MixedGroup { .. } | ConfigurationError::Unidentified { .. } => &["presence"],
        ConfigurationError::SplitGroup { .. } => &["group"],
        ConfigurationError::SameAlias { .. } => &["alias"],
        ConfigurationError::Pdo { .. } => &["pdos"],
        _ => &[],
    };
    let words = refused.to_string();
    let (found, expected) =
        words.split_once(", expected ").unwrap_or((&words, "what a MainDevice can run"));
    Err(Problem::new(entry.first_of(keys), found, expected, "correct this entry"))
}

/// Checks that the file has the device of an entry.
fn check_device(entry: &SubDevice, devices: &Devices, place: Place<'_>) -> Checked<()> {
    let Some(name) = entry.device.as_ref().filter(|name| !devices.contains_key(*name)) else {
        return Ok(());
    };
    let known: Vec<&str> = devices.keys().map(String::as_str).collect();
    let expected = if known.is_empty() { "a [device.NAME] table".to_owned() } else { known.join(", ") };
    let remedy = nearest(name, known).map_or_else(
        || format!("add a table [device.{name}] or correct the name"),
        |nearest| format!("did you mean \"{nearest}\"?"),
    );
    Err(Problem::new(place.key("device"), format!("unknown device \"{name}\""), expected, remedy))
}

/// Completes and checks what the SubDevices of an entry have in common.
fn complete(entry: &mut SubDevice, clocks: bool, cycle: &Cycle, place: Place<'_>) -> Checked<()> {
    if let Some(it) = &mut entry.simulation {
        simulation::simulation(it, place.key("simulate"))?;
    }
    let between = cycle.period * u32::from(entry.every);
    process_data(&mut entry.process_data_watchdog, between, place)?;
    pdi(entry.pdi_watchdog, place)?;
    let clock = entry.clock.as_ref();
    entry.sync0 =
        clock.map(|it| cycle::sync0(it, clocks, (cycle, between), place.key("dc"))).transpose()?;
    entry.sync1 = match clock.zip(entry.sync0) {
        Some((it, sync0)) => cycle::sync1(it, sync0, place.key("dc"))?,
        None => None,
    };
    entry.oversampling = match clock {
        Some(it) => cycle::oversampling(it, place.key("dc"))?,
        None => None,
    };
    simulation::samples(entry, place)?;
    if entry.latches.is_some() {
        cycle::kept("latches", clocks, place.key("latches"))?;
    }
    Ok(())
}

/// SubDevices found so far.
#[derive(Default)]
struct SubDevices {
    list: Vec<SubDevice>,
    positions: HashMap<String, usize>,
    aliases: HashMap<u16, usize>,
    topology: Topology,
    /// Members of each group, and the place of its name in the file.
    groups: BTreeMap<String, (usize, Range<usize>)>,
    /// One of them may be connected in operation.
    any_hot_connect: bool,
}

impl SubDevices {
    /// Adds the SubDevice, or SubDevices, of `entry`.
    fn add(&mut self, entry: &SubDevice, place: Place<'_>) -> Checked<()> {
        for (step, repetition) in repetitions(&entry.name, entry.count, entry.first, place)?.enumerate() {
            let position = self.list.len();
            if position >= MOST_SUB_DEVICES as usize {
                let found = format!("more than {MOST_SUB_DEVICES} SubDevices");
                return Err(Problem::new(place, found, "no more than that", "describe fewer"));
            }
            let name = repetition.name;
            if let Some(earlier) = self.positions.insert(name.clone(), position) {
                let found = format!("a second SubDevice \"{name}\"; position {earlier} has that name");
                return Err(Problem::new(place.key("name"), found, "every name once", "rename one"));
            }
            let alias = self.alias(entry.alias, step, position, place)?;
            let wanted = entry.parents_name.as_ref().filter(|_| step == 0);
            let port = entry.port.filter(|_| step == 0);
            let parent = self.topology.attach(wanted, port, &self.positions, position, place)?;
            if let Some(group) = &entry.group {
                let place = place.key("group").into();
                self.groups.entry(group.clone()).or_insert((0, place)).0 += 1;
            }
            let it = SubDevice { name, alias, parent, ..entry.clone() };
            self.any_hot_connect |= it.presence == Presence::HotConnect;
            if self.any_hot_connect {
                presence::told_apart(&it, &self.list, place)?;
            }
            presence::sub_device(&it, &self.list, place)?;
            self.list.push(it);
        }
        Ok(())
    }

    /// Checks that no group has only one member, as with a misspelt name.
    fn check_groups(&self) -> Checked<()> {
        let Some((name, (_, place))) = self.groups.iter().find(|(_, (members, _))| *members == 1) else {
            return Ok(());
        };
        let others = self.groups.keys().filter(|&other| other != name).map(String::as_str);
        let remedy = match nearest(name, others) {
            Some(nearest) => format!("did you mean \"{nearest}\"?"),
            None => "name it at the others too, or remove it".to_owned(),
        };
        let found = format!("group \"{name}\" of one SubDevice");
        Err(Problem::new(place.clone(), found, "two or more SubDevices", remedy))
    }

    /// Alias of the `step`-th repetition: aliases count up.
    fn alias(
        &mut self,
        first: Option<u16>,
        step: usize,
        position: usize,
        place: Place<'_>,
    ) -> Checked<Option<u16>> {
        let Some(first) = first else { return Ok(None) };
        let alias = u16::try_from(step).ok().and_then(|step| first.checked_add(step));
        let Some(alias) = alias else {
            let found = format!("alias = {first}, counted up to {}", usize::from(first) + step);
            let expected = "1 to 65535 for each of count";
            return Err(Problem::new(place.key("alias"), found, expected, "begin with a lower one"));
        };
        if let Some(earlier) = self.aliases.insert(alias, position) {
            let found = format!("alias {alias} again; position {earlier} has it");
            return Err(Problem::new(place.key("alias"), found, "every alias once", "choose another"));
        }
        Ok(Some(alias))
    }
}

/// Ports by which a frame that arrives at port 0 leaves, in this order (ETG.1000.4, 4.6).
const PORTS_IN_ORDER: [u8; 3] = [3, 1, 2];

/// Port of the next SubDevice of a line.
const PORT_OF_A_LINE: u8 = 1;

/// Ports in use, along the path from the first SubDevice to the newest.
///
/// SubDevices are numbered in the order a frame reaches them. So a new one can only be attached to
/// the path from the first to the newest, and only after the ones already there.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// Position, and number of its [`PORTS_IN_ORDER`] that the frame has already left by.
    way: Vec<(usize, usize)>,
}

impl Topology {
    /// Attaches the SubDevice `position` to `port` of `parent`, or to the newest one.
    pub(super) fn attach(
        &mut self,
        parent: Option<&String>,
        port: Option<i64>,
        positions: &HashMap<String, usize>,
        position: usize,
        entry: Place<'_>,
    ) -> Checked<Option<Parent>> {
        let parent_position = match parent {
            Some(name) => Some(find(name, positions, position, entry)?),
            None => position.checked_sub(1),
        };
        let Some(parent_position) = parent_position else {
            self.way.push((position, 0));
            return match port {
                None => Ok(None),
                Some(_) => Err(Problem::new(
                    entry.key("port"),
                    "a port for the first SubDevice",
                    "none: it hangs on the MainDevice",
                    "remove port",
                )),
            };
        };
        let wanted = port.unwrap_or(i64::from(PORT_OF_A_LINE));
        let place = entry.first_of(&["port", "parent"]);
        let Some(order) = PORTS_IN_ORDER.iter().position(|&it| i64::from(it) == wanted) else {
            let expected = "1, 2 or 3: port 0 leads back to the MainDevice";
            return Err(Problem::new(place, format!("port {wanted}"), expected, "correct port"));
        };
        let on_the_way = self.way.iter().position(|&(it, _)| it == parent_position);
        let free = on_the_way.filter(|&depth| self.way[depth].1 <= order);
        let Some(depth) = free else {
            let found = format!("port {wanted} of SubDevice {parent_position} for SubDevice {position}");
            let expected = "the order in which a frame meets them: of each SubDevice port 3, then 1, then 2, \
                            each once and each with all that hangs on it";
            return Err(Problem::new(place, found, expected, "put the SubDevices into that order"));
        };
        self.way.truncate(depth + 1);
        self.way[depth].1 = order + 1;
        self.way.push((position, 0));
        Ok(Some(Parent { position: parent_position, port: PORTS_IN_ORDER[order] }))
    }
}

fn find(
    name: &str,
    positions: &HashMap<String, usize>,
    position: usize,
    entry: Place<'_>,
) -> Checked<usize> {
    if let Some(&found) = positions.get(name).filter(|&&found| found < position) {
        return Ok(found);
    }
    let earlier = positions.iter().filter(|&(_, &it)| it < position).map(|(name, _)| name.as_str());
    let expected = "a SubDevice described before this one";
    Err(unknown_name(entry.key("parent"), format!("parent \"{name}\""), expected, name, earlier, "parent"))
}

/// Least number of periods without outputs that a process data watchdog must tolerate: one frame is
/// lost now and then.
const FEWEST_PERIODS: u32 = 2;

/// Default number of periods where 100 ms hold fewer.
const PERIODS_BY_DEFAULT: u32 = 4;

/// Process data watchdog of a SubDevice that receives outputs `between` apart.
pub(super) fn process_data(watchdog: &mut Watchdog, between: Duration, entry: Place<'_>) -> Checked<()> {
    let key = "process_data_watchdog";
    if !entry.has(key) {
        let time = by_default(between);
        if time < between * FEWEST_PERIODS {
            let found = format!("outputs every {}", duration::format(between));
            let longest = duration::format(LONGEST_WATCHDOG / FEWEST_PERIODS);
            let expected = format!("every {longest} or more often, for a watchdog of two periods");
            let remedy = "lower every, or set process_data_watchdog = \"off\"";
            return Err(Problem::new(entry.key("every"), found, expected, remedy));
        }
        *watchdog = Watchdog::After(time);
        return Ok(());
    }
    let why = format!("two periods of {}", duration::format(between));
    check(key, *watchdog, between * FEWEST_PERIODS, &why, entry)
}

/// Process data watchdog of a SubDevice with outputs sent `between` apart, if the file has none.
pub(crate) fn by_default(between: Duration) -> Duration {
    let default = Watchdog::default().time().unwrap_or_default();
    default.max(between * PERIODS_BY_DEFAULT).min(LONGEST_WATCHDOG)
}

/// Checks that the drive of an axis has a process data watchdog: without one it continues without
/// frames.
pub(super) fn of_axis(axis: &str, drive: &SubDevice, place: Place<'_>) -> Checked<()> {
    if drive.process_data_watchdog.time().is_some() {
        return Ok(());
    }
    let found = format!("axis \"{axis}\" on \"{}\" with process_data_watchdog = \"off\"", drive.name);
    let expected = "a drive that stops by itself when this computer or the cable fails";
    let remedy = "give that SubDevice a time, as process_data_watchdog = \"100ms\"";
    Err(Problem::new(place, found, expected, remedy))
}

/// PDI watchdog of a SubDevice, if the file has one.
pub(super) fn pdi(watchdog: Option<Watchdog>, entry: Place<'_>) -> Checked<()> {
    let shortest = Duration::from_micros(1);
    let watchdog = watchdog.unwrap_or(Watchdog::Off);
    check("pdi_watchdog", watchdog, shortest, &duration::format(shortest), entry)
}

fn check(key: &str, watchdog: Watchdog, shortest: Duration, why: &str, entry: Place<'_>) -> Checked<()> {
    let Some(time) = watchdog.time().filter(|time| !(shortest..=LONGEST_WATCHDOG).contains(time)) else {
        return Ok(());
    };
    let found = format!("{key} = {}", duration::format(time));
    let expected = format!("{why} to {}, or \"off\"", duration::format(LONGEST_WATCHDOG));
    Err(Problem::new(entry.key(key), found, expected, "choose another time"))
}
