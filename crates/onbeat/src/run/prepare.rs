//! Before the first cycle: the IPC, the bus in PreOp, the other devices, and the cycle.

use std::sync::Arc;

use control::controller::Controller;
use control::cycle::Cycle;
use control::ipc::Ipc;
use control::observer::Observer;
use control::{axis, interlock};
use ethercat::al::AlState;
use ethercat::main_device::{MainDevice, SubDevice};
use ipc::bus::Guests;
use ipc::controller::Counters;
use ipc::server::Server;
use onbeat_ethercat_linux::bring_up::Pump;
use robot::RobotConfig;
use rt::clock::BusClock;
use types::Signal;

use super::bus::{BusServer, RunServices};
use super::conditions::Bus;
use super::data_types::typed_mappings;
use super::diagnosis::Diagnostician;
use super::keeper::{KeptState, forget};
use super::recorder::NewFile;
use super::server::{self, Open};
use super::side_tasks::{Beside, Devices};
use super::start_faults;
use crate::compose::configuration::{configuration, cycle, main_device};
use crate::compose::ipc::InPreOp;
use crate::compose::link::{self, RobotLink};
use crate::compose::rules::MovedBy;
use crate::compose::{axes, barriers, controller, signals};
use crate::robot::{IpcPlace, Parts, Settings};
use crate::{Control, Error, Notice, Reporter};

/// A cycle ready to run, and its environment.
pub(super) struct Prepared {
    pub(super) cycle: Cycle<RobotLink, BusClock>,
    /// Clock of the cycle, and of its events.
    pub(super) clock: BusClock,
    pub(super) observer: Observer,
    pub(super) diagnosis: Diagnostician,
    pub(super) server: Option<Server>,
    /// Answers of the controller process, if there is to be one.
    pub(super) external: Option<Arc<Counters>>,
    pub(super) bus_server: Option<BusServer>,
    pub(super) beside: Option<Beside>,
    pub(super) bus: Bus,
    /// State of the robot over restarts, if it is kept.
    pub(super) kept: Option<KeptState>,
    /// File of the recording, if there is to be one.
    pub(super) file: Option<NewFile>,
}

impl Settings {
    /// Brings the simulated bus to PreOp and makes the cycle as a run does, alone; then lets all
    /// go.
    pub(crate) fn rehearse(&self, robot: &RobotConfig) -> Result<(), Error> {
        let settings = Self { ipc: IpcPlace::Nowhere, ..Self::default() };
        let main_device = main_device(configuration(robot, AlState::Op))?;
        let link::Opened { link, clock, name, .. } =
            link::open_with_faults(robot, &settings.wire, "check", &mut |_| ())?;
        let opened = (link, clock.clone(), name);
        let prepared = settings.prepare(robot, Control::AsDescribed, main_device, opened, None, &mut ())?;
        let (mut main_device, mut link) = prepared.cycle.abandon();
        settings.take_down(&mut main_device, &mut link, &clock)
    }

    /// Brings the bus up to PreOp and makes the cycle, on a link with a display name. A bus that
    /// cannot be used is left in Init.
    pub(super) fn prepare(
        &self,
        robot: &RobotConfig,
        control: Control<'_>,
        mut main_device: MainDevice,
        (mut link, clock, name): (RobotLink, BusClock, String),
        mut file: Option<NewFile>,
        reporter: &mut dyn Reporter,
    ) -> Result<Prepared, Error> {
        let diagnosis = Diagnostician::start(self, robot, self.may_be_asked(), reporter);
        let chains = match &control {
            Control::AsDescribed => controller::chains(robot),
            Control::Own(_) => Vec::new(),
        };
        self.bring_up(robot, &mut main_device, &mut link, &clock, reporter)?;
        // The signals of an IPC are known in PreOp.
        let in_pre_op = self.in_pre_op(robot, &mut main_device, &mut link, &clock);
        let around = match in_pre_op.and_then(|in_pre_op| self.around(robot, control, in_pre_op)) {
            Ok(around) => around,
            Err(error) => {
                self.take_down(&mut main_device, &mut link, &clock)?;
                return Err(error);
            }
        };
        let Around { ipc, server, devices, guests, external, controller, signals } = around;
        match &server {
            Ok(server) => {
                if let Some(why) = server.passed_over() {
                    reporter.notice(&Notice::IpcElsewhere(why.to_string()));
                }
                reporter.notice(&Notice::IpcOpen(server.path().to_owned()));
            }
            Err(Some(why)) => reporter.notice(&Notice::NoIpc(why.clone())),
            Err(None) => {}
        }
        let server = server.ok();
        let beside = start_devices(robot, devices, server.as_ref(), reporter)?;
        let bus = Bus::of(&main_device, name);
        let configuration = cycle(robot, self.cycles(robot));
        let is_fast = self.wire.is_fast();
        let mut axes = axes::axes_of(robot, main_device.sub_devices());
        let mut kept = self.open_state(robot, reporter);
        // A simulated robot forgets its state with its run, unless told to keep it.
        let is_kept = self.state.is_some() || self.wire.interface.is_some();
        match &mut kept {
            Some(kept) => kept.remember(robot, &main_device, &mut axes, reporter),
            None if is_kept && !is_fast => forget(robot, &mut axes),
            None => {}
        }
        let mut pump =
            Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: self.stop.flag() };
        let is_real = self.wire.interface.is_some();
        let looked = start_faults::allow(robot, &mut pump, kept.as_mut(), is_real, &mut axes, reporter);
        if let Err(error) = looked {
            self.take_down(&mut main_device, &mut link, &clock)?;
            return Err(error.into());
        }
        let of_cycle = if is_fast { clock.clone() } else { BusClock::Host };
        let (cycle, observer) =
            Cycle::new(main_device, link, of_cycle.clone(), &axes, controller, configuration)?;
        let cycle = match &clock {
            BusClock::Simulated(_) if is_fast => cycle.with_patience(),
            BusClock::Simulated(clock) => cycle.with_bus_time(clock.clone()),
            BusClock::Host => cycle,
        };
        let mut cycle = cycle.with_interlocks(&robot.interlocks)?.with_chains(chains);
        let chosen = file.iter_mut().try_for_each(|file| file.choose(robot, &signals));
        let set = chosen.and_then(|()| Ok(cycle.set_signals(signals)?));
        if let Err(error) = set {
            let (mut main_device, mut link) = cycle.abandon();
            self.take_down(&mut main_device, &mut link, &clock)?;
            return Err(error);
        }
        let mut cycle = match ipc {
            Some(ipc) => cycle.with_ipc(ipc),
            None => cycle,
        };
        file.iter_mut().for_each(|file| file.sample(&mut cycle));
        let mut bus_server = None;
        if let Some(guests) = guests {
            let record = file.as_ref().and_then(NewFile::ask);
            let services = RunServices { record, late: diagnosis.recent() };
            (cycle, bus_server) =
                BusServer::start(robot, self.wire.interface.clone(), cycle, &observer, guests, services);
        }
        Ok(Prepared {
            cycle,
            clock: of_cycle,
            observer,
            diagnosis,
            server,
            external,
            bus_server,
            beside,
            bus,
            kept,
            file,
        })
    }

    /// To PreOp; every axis and interlock finds its objects there.
    fn bring_up(
        &self,
        robot: &RobotConfig,
        main_device: &mut MainDevice,
        link: &mut RobotLink,
        clock: &BusClock,
        reporter: &mut dyn Reporter,
    ) -> Result<(), Error> {
        let mut pump = Pump { main_device, link, clock, stop: self.stop.flag() };
        link::bring_up(&mut pump, &self.wire, &mut |notice| reporter.notice(notice))?;
        let sub_devices = pump.main_device.sub_devices();
        for it in sub_devices.iter().filter(|it| it.has_unwatched_outputs()) {
            reporter.notice(&Notice::NoWatchdog { position: it.position, name: it.name.clone() });
        }
        let remarks = sub_devices.iter().flat_map(SubDevice::remarks);
        remarks.for_each(|remark| reporter.notice(&Notice::Remark(remark)));
        for weak in barriers::remarks(robot, sub_devices) {
            reporter.notice(&Notice::WeakDrive(weak));
        }
        for sentence in barriers::sentences(robot, Some(sub_devices)) {
            reporter.notice(&Notice::Detail(sentence));
        }
        let checked = check(robot, pump.main_device);
        if checked.is_err() {
            pump.take_down()?;
        }
        checked
    }

    /// Process data of a bus in PreOp.
    fn in_pre_op(
        &self,
        robot: &RobotConfig,
        main_device: &mut MainDevice,
        link: &mut RobotLink,
        clock: &BusClock,
    ) -> Result<InPreOp, Error> {
        let measures_torque = axis::measure_torque(&axes::axes(robot), main_device);
        let mut pump = Pump { main_device, link, clock, stop: self.stop.flag() };
        let signals = signals::signals(robot, &typed_mappings(&mut pump)?)?;
        Ok(InPreOp { signals, measures_torque })
    }

    /// IPC and controller of a robot with this process data.
    fn around(
        &self,
        robot: &RobotConfig,
        control: Control<'_>,
        in_pre_op: InPreOp,
    ) -> Result<Around, Error> {
        let (ipc, server, ports, devices, guests) = match self.open_ipc(robot, &control, &in_pre_op)? {
            Opened::Open(open) => {
                let Open { ipc, server, ports, devices, guests } = *open;
                (Some(ipc), Ok(server), Some(ports), Some(devices), Some(guests))
            }
            Opened::Closed(why) => (None, Err(why), None, None, None),
        };
        let external = ports.as_ref().and_then(|ports| ports.external.as_ref());
        let external = external.map(|end| Arc::clone(end.counters()));
        let controller: Box<dyn Controller> = match control {
            Control::Own(make) => make(&mut Parts { ports }),
            Control::AsDescribed => Box::new(controller::controllers(robot, ports)?),
        };
        Ok(Around { ipc, server, devices, guests, external, controller, signals: in_pre_op.signals })
    }

    /// True if other programs may attach.
    fn may_be_asked(&self) -> bool {
        !self.wire.is_fast() && !matches!(self.ipc, IpcPlace::Nowhere)
    }

    /// Opens the IPC, unless there is to be none.
    fn open_ipc(
        &self,
        robot: &RobotConfig,
        control: &Control<'_>,
        in_pre_op: &InPreOp,
    ) -> Result<Opened, Error> {
        let name = match &self.ipc {
            // Commands of others have no time on a bus that does not wait.
            _ if !self.may_be_asked() => return Ok(Opened::Closed(None)),
            IpcPlace::Nowhere => return Ok(Opened::Closed(None)),
            IpcPlace::Named(name) => Some(name.as_str()),
            IpcPlace::AsDescribed => None,
        };
        let moved_by = match control {
            Control::Own(_) => MovedBy::Own,
            Control::AsDescribed => MovedBy::Controllers,
        };
        let opened = server::open(robot, name, moved_by, in_pre_op, self.wire.interface.is_none())?;
        Ok(opened.map_or_else(|why| Opened::Closed(Some(why)), |open| Opened::Open(Box::new(open))))
    }

    /// Leaves a bus that is not to run in Init.
    pub(super) fn take_down(
        &self,
        main_device: &mut MainDevice,
        link: &mut RobotLink,
        clock: &BusClock,
    ) -> Result<(), Error> {
        let mut pump = Pump { main_device, link, clock, stop: self.stop.flag() };
        Ok(pump.take_down()?)
    }
}

/// Parts of a cycle that are made when its bus is in PreOp.
struct Around {
    ipc: Option<Ipc>,
    /// Reason that no other program can attach, if none can; `None` where none is wanted.
    server: Result<Server, Option<String>>,
    devices: Option<Devices>,
    guests: Option<Guests>,
    external: Option<Arc<Counters>>,
    controller: Box<dyn Controller>,
    signals: Vec<Signal>,
}

/// True if others can attach.
enum Opened {
    Open(Box<Open>),
    /// Reason; `None` where no client is wanted.
    Closed(Option<String>),
}

fn check(robot: &RobotConfig, main_device: &MainDevice) -> Result<(), Error> {
    axis::check(&axes::axes(robot), main_device)?;
    interlock::check(&robot.interlocks, main_device)?;
    Ok(())
}

/// The devices outside the bus: their tasks join over the IPC.
fn start_devices(
    robot: &RobotConfig,
    devices: Option<Devices>,
    server: Option<&Server>,
    reporter: &mut dyn Reporter,
) -> Result<Option<Beside>, Error> {
    if robot.peripherals.is_empty() {
        return Ok(None);
    }
    let beside =
        devices.zip(server).map(|(devices, server)| Beside::start(devices, server.path())).transpose()?;
    match &beside {
        Some(beside) => {
            beside.refusals().into_iter().for_each(|refusal| reporter.notice(&Notice::Device(refusal)))
        }
        None => {
            let told = "no devices other than the bus: their tasks need the IPC, which is off";
            reporter.notice(&Notice::Device(told.to_owned()));
        }
    }
    Ok(beside)
}
