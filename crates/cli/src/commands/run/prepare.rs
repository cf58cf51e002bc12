//! Before the first beat: the seam, the bus in PreOp, the devices beside it, and the cycle made.

use std::sync::Arc;

use blame::Explainer;
use bridge::controller::Counters;
use bridge::seam::Door;
use ethercat::main_device::{MainDevice, SubDevice};
use robot::Robot;
use runtime::bring_up::Pump;
use runtime::clock::MonotonicClock;
use runtime::controller::Controller;
use runtime::cycle::{Cycle, CycleConfiguration, FrameOrder};
use runtime::observer::Observer;
use runtime::seam::Seam;
use runtime::{axis, beat_number, interlock};
use types::Signal;

use super::beside::Beside;
use super::door::{self, Open};
use super::outcome::{Bus, SIMULATED};
use super::{Own, Run};
use crate::bus;
use crate::compose::link::RobotLink;
use crate::compose::seam::Mover;
use crate::compose::{axes, controller, peripherals, profile, signals};
use crate::failure::Failure;
use crate::stop::Stop;
use crate::words::live_line::LiveLine;
use crate::words::sub_devices::unwatched;

/// A cycle ready to run, and what stands around it.
pub(super) struct Prepared {
    pub(super) cycle: Cycle<RobotLink, MonotonicClock>,
    pub(super) observer: Observer,
    pub(super) explainer: Option<Explainer>,
    pub(super) door: Option<Door>,
    /// Answers of the controller process, if there is to be one.
    pub(super) external: Option<Arc<Counters>>,
    pub(super) beside: Option<Beside>,
    pub(super) bus: Bus,
}

impl Run {
    /// Brings the bus up to PreOp and makes the cycle. A bus that cannot be used is left in Init.
    pub(super) fn prepare(
        &self,
        robot: &Robot,
        own: Option<Own<'_>>,
        mut main_device: MainDevice,
        mut link: RobotLink,
        stop: &Stop,
        live: &LiveLine,
    ) -> Result<Prepared, Failure> {
        let explainer = self.explain.start(robot)?;
        if let Some(why) = explainer.as_ref().and_then(Explainer::trace_is_missing) {
            live.say(&format!("late beats are explained by counters only: {why}"));
        }
        self.bring_up(robot, &mut main_device, &mut link, stop, live)?;
        // The signals of a seam are known in PreOp.
        let around = match self.around(robot, own, &main_device) {
            Ok(around) => around,
            Err(failure) => {
                take_down(&mut main_device, &mut link, stop)?;
                return Err(failure);
            }
        };
        let Around { seam, door, devices, controller, external, signals } = around;
        match &door {
            Ok(door) => live.say(&format!("seam {}", door.path().display())),
            Err(Some(why)) => live.say(&format!("no other program can attach: {why}")),
            Err(None) => {}
        }
        let door = door.ok();
        let beside = start_devices(robot, devices, door.as_ref(), live)?;
        let bus = Bus::of(&main_device, self.link());
        let configuration = self.cycle_configuration(robot);
        let (cycle, observer) =
            Cycle::new(main_device, link, MonotonicClock, &axes::axes(robot), controller, configuration)?;
        let cycle = cycle.with_beat_numbers(&axes::beat_numbers(robot))?;
        let mut cycle = cycle.with_interlocks(&axes::interlocks(robot))?;
        if let Err(error) = cycle.set_signals(signals) {
            let (mut main_device, mut link) = cycle.abandon();
            take_down(&mut main_device, &mut link, stop)?;
            return Err(Failure::new(error));
        }
        let cycle = match seam {
            Some(seam) => cycle.with_seam(seam),
            None => cycle,
        };
        Ok(Prepared { cycle, observer, explainer, door, external, beside, bus })
    }

    /// To PreOp; every axis, beat number and interlock finds its objects there.
    fn bring_up(
        &self,
        robot: &Robot,
        main_device: &mut MainDevice,
        link: &mut RobotLink,
        stop: &Stop,
        live: &LiveLine,
    ) -> Result<(), Failure> {
        let mut pump = Pump { main_device, link, clock: &MonotonicClock, stop: stop.flag() };
        bus::bring_up(&mut pump, &self.wire, |told| live.say(told))?;
        let sub_devices = pump.main_device.sub_devices();
        unwatched(sub_devices).iter().for_each(|line| live.say(line));
        sub_devices.iter().flat_map(SubDevice::remarks).for_each(|remark| live.say(&remark));
        let checked = check(robot, pump.main_device);
        if checked.is_err() {
            pump.take_down()?;
        }
        checked
    }

    fn cycle_configuration(&self, robot: &Robot) -> CycleConfiguration {
        CycleConfiguration {
            period: robot.cycle.period,
            order: match robot.cycle.frame_order {
                robot::FrameOrder::ReplyOfLastBeat => FrameOrder::ReplyOfLastBeat,
                robot::FrameOrder::WaitForReply => FrameOrder::WaitForReply,
            },
            // The cycle counts them itself: nobody who is held up can hold up its end.
            beats: self.limit(robot),
            loss: robot.cycle.loss_time,
            overrun: profile::overrun(&robot.cycle),
        }
    }

    /// Signals, seam and controller, for a bus in PreOp.
    fn around(
        &self,
        robot: &Robot,
        own: Option<Own<'_>>,
        main_device: &MainDevice,
    ) -> Result<Around, Failure> {
        let signals = signals::signals(robot, main_device)?;
        let (seam, door, ports, devices) = match self.open_seam(robot, own.is_some(), &signals)? {
            Seamed::Open(open) => (Some(open.seam), Ok(open.door), Some(open.ports), Some(open.devices)),
            Seamed::Closed(why) => (None, Err(why), None, None),
        };
        let external = ports.as_ref().and_then(|ports| ports.external.as_ref());
        let external = external.map(|end| Arc::clone(end.counters()));
        let controller: Box<dyn Controller> = match own {
            Some(own) => own(robot, ports),
            None => Box::new(controller::controllers(robot, ports)?),
        };
        Ok(Around { seam, door, devices, controller, external, signals })
    }

    /// Opens the seam, unless nobody wants it.
    fn open_seam(&self, robot: &Robot, own: bool, signals: &[Signal]) -> Result<Seamed, Failure> {
        if self.no_seam {
            return Ok(Seamed::Closed(None));
        }
        let mover = if own { Mover::Own } else { Mover::Controllers };
        // Simulated where the bus is.
        let devices = peripherals::peripherals(robot, self.wire.iface.is_none());
        let opened = door::open(robot, self.seam.as_deref(), mover, signals, &devices)?;
        Ok(opened.map_or_else(|why| Seamed::Closed(Some(why)), |open| Seamed::Open(Box::new(open))))
    }

    /// The wire's name for people.
    fn link(&self) -> String {
        self.wire.iface.as_ref().map_or(SIMULATED.to_owned(), |nic| format!("{nic} (AF_PACKET)"))
    }
}

/// Parts of a cycle that are made when its bus is in PreOp.
struct Around {
    seam: Option<Seam>,
    /// Why no other program can attach, if none can; `None` where none is wanted.
    door: Result<Door, Option<String>>,
    devices: Option<devices::Prepared>,
    controller: Box<dyn Controller>,
    external: Option<Arc<Counters>>,
    signals: Vec<Signal>,
}

/// True if others can attach.
enum Seamed {
    Open(Box<Open>),
    /// Why not; `None` where nobody is wanted.
    Closed(Option<String>),
}

/// Leaves a bus that is not to run in Init.
fn take_down(main_device: &mut MainDevice, link: &mut RobotLink, stop: &Stop) -> Result<(), Failure> {
    let mut pump = Pump { main_device, link, clock: &MonotonicClock, stop: stop.flag() };
    Ok(pump.take_down()?)
}

fn check(robot: &Robot, main_device: &MainDevice) -> Result<(), Failure> {
    axis::check(&axes::axes(robot), main_device)?;
    beat_number::check(&axes::beat_numbers(robot), main_device)?;
    interlock::check(&axes::interlocks(robot), main_device)?;
    Ok(())
}

/// The devices beside the bus: their tasks join over the seam.
fn start_devices(
    robot: &Robot,
    devices: Option<devices::Prepared>,
    door: Option<&Door>,
    live: &LiveLine,
) -> Result<Option<Beside>, Failure> {
    if robot.peripherals.is_empty() {
        return Ok(None);
    }
    let beside =
        devices.zip(door).map(|(devices, door)| Beside::start(devices, door.path())).transpose()?;
    match &beside {
        Some(beside) => beside.refusals().iter().for_each(|refusal| live.say(refusal)),
        None => {
            live.say("no devices beside the bus: their tasks are joined over the seam, and there is none")
        }
    }
    Ok(beside)
}
