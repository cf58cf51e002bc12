//! Checks of the SubDevices.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ethercat::main_device::{ExpectedIdentity, ProcessDataSource, Replies, StartupSdo, Sync0, Watchdog};
use toml::Spanned;

use super::repeat::{MOST_SUB_DEVICES, Repetition, repetitions};
use super::topology::Topology;
use super::{Checked, clock, mapping, simulation, startup, watchdog};
use crate::description::{Bus, Cycle, Simulation, SubDevice};
use crate::error::Problem;
use crate::file;
use crate::nearest::nearest;

pub(super) fn bus(
    bus: Spanned<file::Bus>,
    devices: &BTreeMap<String, file::Device>,
    cycle: &Cycle,
) -> Checked<Bus> {
    let span = bus.span();
    let bus = bus.into_inner();
    let mut sub_devices = SubDevices::default();
    for entry in &bus.sub_device {
        let kind = Kind::of(entry.get_ref(), devices, &bus, cycle)?;
        sub_devices.add(entry, &kind)?;
    }
    if sub_devices.list.is_empty() {
        let remedy = "add a [[bus.sub_device]] for each SubDevice, in the order of the cable";
        return Err(Problem::new(span, "a bus without SubDevices", "at least one", remedy));
    }
    sub_devices.check_groups()?;
    for entry in &bus.sub_device {
        let device = entry.get_ref().device.as_ref().and_then(|name| devices.get(name.get_ref()));
        let own = entry.get_ref().simulate.as_ref();
        let simulate = own.or(device.and_then(|device| device.simulate.as_ref()));
        simulate.map(|simulate| simulation::follows(simulate, &sub_devices.list)).transpose()?;
    }
    let replies = match bus.replies {
        file::Replies::ProcessedSource => Replies::ProcessedSource,
        file::Replies::UnchangedSource => Replies::UnchangedSource,
    };
    Ok(Bus { distributed_clocks: bus.distributed_clocks, replies, sub_devices: sub_devices.list })
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
}

impl SubDevices {
    /// Adds the SubDevice, or SubDevices, of `entry`.
    fn add(&mut self, entry: &Spanned<file::SubDevice>, kind: &Kind) -> Checked<()> {
        let sub_device = entry.get_ref();
        let repeated = file::Repeated {
            name: &sub_device.name,
            count: sub_device.count.as_ref(),
            first: sub_device.first.as_ref(),
        };
        for (step, repetition) in repetitions(&repeated)?.enumerate() {
            let position = self.list.len();
            if position >= MOST_SUB_DEVICES as usize {
                let found = format!("more than {MOST_SUB_DEVICES} SubDevices");
                return Err(Problem::new(entry.span(), found, "no more than that", "describe fewer"));
            }
            let Repetition { name, .. } = &repetition;
            if let Some(earlier) = self.positions.insert(name.clone(), position) {
                let found = format!("a second SubDevice \"{name}\"; position {earlier} has that name");
                return Err(Problem::new(sub_device.name.span(), found, "every name once", "rename one"));
            }
            let alias = self.alias(sub_device.alias.as_ref(), step, position)?;
            let wanted = sub_device.parent.as_ref().filter(|_| step == 0);
            let port = sub_device.port.as_ref().filter(|_| step == 0);
            let parent = self.topology.attach(wanted, port, &self.positions, position)?;
            if let Some(group) = &kind.group {
                let (members, _) = self.groups.entry(group.get_ref().clone()).or_insert((0, group.span()));
                *members += 1;
            }
            self.list.push(SubDevice {
                name: repetition.name,
                identity: kind.identity,
                alias,
                process_data: kind.process_data.clone(),
                startup: kind.startup.clone(),
                sync0: kind.sync0,
                process_data_watchdog: kind.process_data_watchdog,
                pdi_watchdog: kind.pdi_watchdog,
                parent,
                simulation: kind.simulation.clone(),
                group: kind.group.as_ref().map(|group| group.get_ref().clone()),
            });
        }
        Ok(())
    }

    /// Checks that no group has only one member, as one with a misspelt name has.
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
        Err(Problem::new(place.clone(), found, "two or more that stand and fall together", remedy))
    }

    /// Alias of the `step`-th repetition: aliases count up.
    fn alias(
        &mut self,
        alias: Option<&Spanned<u16>>,
        step: usize,
        position: usize,
    ) -> Checked<Option<u16>> {
        let Some(first) = alias else { return Ok(None) };
        let alias = u16::try_from(step).ok().and_then(|step| first.get_ref().checked_add(step));
        let Some(alias) = alias.filter(|&alias| alias != 0) else {
            let found = format!("alias {} for {} SubDevices", first.get_ref(), step + 1);
            return Err(Problem::new(first.span(), found, "aliases from 1 to 65535", "choose another"));
        };
        if let Some(earlier) = self.aliases.insert(alias, position) {
            let found = format!("alias {alias:#06x} again; position {earlier} has it");
            return Err(Problem::new(first.span(), found, "every alias once", "choose another"));
        }
        Ok(Some(alias))
    }
}

/// Properties that the SubDevices of one entry share, checked once.
struct Kind {
    identity: Option<ExpectedIdentity>,
    process_data: ProcessDataSource,
    startup: Vec<StartupSdo>,
    sync0: Option<Sync0>,
    process_data_watchdog: Watchdog,
    pdi_watchdog: Option<Watchdog>,
    simulation: Option<Simulation>,
    group: Option<Spanned<String>>,
}

impl Kind {
    /// Properties of `entry`, completed by those of its device.
    fn of(
        entry: &file::SubDevice,
        devices: &BTreeMap<String, file::Device>,
        bus: &file::Bus,
        cycle: &Cycle,
    ) -> Checked<Self> {
        let device = entry.device.as_ref().map(|name| find_device(name, devices)).transpose()?;
        let identity = entry.identity.as_ref().or(device.and_then(|it| it.identity.as_ref()));
        let pdos = entry.pdos.as_ref().or(device.and_then(|it| it.pdos.as_ref()));
        let startup = entry.startup.as_ref().or(device.and_then(|it| it.startup.as_ref()));
        let clock = entry.dc.as_ref().or(device.and_then(|it| it.dc.as_ref()));
        let simulate = entry.simulate.as_ref().or(device.and_then(|it| it.simulate.as_ref()));
        let told = |own: Option<_>, of_kind: Option<_>, of_bus: Option<_>| own.or(of_kind).or(of_bus);
        let process_data_watchdog = told(
            entry.process_data_watchdog.as_ref(),
            device.and_then(|it| it.process_data_watchdog.as_ref()),
            bus.process_data_watchdog.as_ref(),
        );
        let pdi_watchdog = told(
            entry.pdi_watchdog.as_ref(),
            device.and_then(|it| it.pdi_watchdog.as_ref()),
            bus.pdi_watchdog.as_ref(),
        );
        Ok(Self {
            identity: identity.map(|it| ExpectedIdentity {
                vendor_id: it.vendor_id,
                product_code: it.product_code,
                revision: it.revision,
            }),
            process_data: pdos.map_or(Ok(ProcessDataSource::Sii), mapping::process_data)?,
            startup: startup.into_iter().flatten().map(startup::sdo).collect::<Checked<_>>()?,
            process_data_watchdog: watchdog::process_data(process_data_watchdog, cycle)?,
            pdi_watchdog: watchdog::pdi(pdi_watchdog)?,
            sync0: clock.map(|clock| clock::sync0(clock, bus.distributed_clocks, cycle)).transpose()?,
            simulation: simulate.map(simulation::simulation).transpose()?,
            group: entry.group.as_ref().or(device.and_then(|it| it.group.as_ref())).cloned(),
        })
    }
}

fn find_device<'a>(
    name: &Spanned<String>,
    devices: &'a BTreeMap<String, file::Device>,
) -> Checked<&'a file::Device> {
    devices.get(name.get_ref()).ok_or_else(|| {
        let known = devices.keys().map(String::as_str);
        let remedy = match nearest(name.get_ref(), known.clone()) {
            Some(nearest) => format!("did you mean \"{nearest}\"?"),
            None => format!("add a table [device.{}] or correct the name", name.get_ref()),
        };
        let known: Vec<_> = known.collect();
        let expected = if known.is_empty() { "a [device.NAME] table".to_owned() } else { known.join(", ") };
        Problem::new(name.span(), format!("unknown device \"{}\"", name.get_ref()), expected, remedy)
    })
}
