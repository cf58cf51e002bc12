//! A bus for commands that look at it: one of their own in PreOp, or that of a running cycle.

mod diagnosis;
pub(crate) mod dictionary;
mod entry;
mod found;
mod listing;
mod objects;
pub(crate) mod running;
mod sii;

use std::path::Path;

use clap::Args;
use ethercat::al::AlState;
use ethercat::main_device::{Configuration, MainDevice};
use ethercat_linux::bring_up::Pump;
use ipc::client::Client;
use ipc::description::Description;
use onbeat::compose::configuration;
use onbeat::compose::link::{self, RobotLink};
use onbeat::sub_devices::{Described, described};
use onbeat::{BringUpError, Error, Notice, OpenError};
use robot::{Overrides, RobotConfig};
use rt::clock::MonotonicClock;

use crate::arguments::Wire;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::target::{Which, running_cycles};
use running::RunningBus;
use sii::Eeprom;

/// A bus to look at.
pub(crate) enum ToolBus {
    /// In PreOp, for this command.
    Own(Box<OwnBus>),
    /// Of a running cycle.
    Running(RunningBus),
}

/// A bus in PreOp.
pub(crate) struct OwnBus {
    main_device: MainDevice,
    link: RobotLink,
    stop: Stop,
}

/// Arguments that need exclusive use of a bus.
const OF_OWN: [&str; 8] =
    ["iface", "segment", "capture", "loss", "late", "duplicate", "reorder", "corrupt"];

/// Bus that a command looks at.
#[derive(Args, Debug)]
pub(crate) struct Where {
    /// Look at the bus of this running cycle instead: its name, or the path of its socket
    #[arg(long, value_name = "NAME|SOCKET", conflicts_with_all = OF_OWN)]
    cycle: Option<String>,

    #[command(flatten)]
    wire: Wire,
}

impl Where {
    /// True for a bus on an interface.
    pub(crate) fn is_on_a_wire(&self) -> bool {
        self.wire.iface.is_some()
    }

    /// Arguments of `onbeat run` for the same bus; `None` if neither a robot file nor an interface
    /// is given.
    pub(crate) fn run_arguments(&self) -> Option<String> {
        let Self { cycle, wire } = self;
        let interface = wire.iface.as_ref().map(|name| match &wire.second_iface {
            None => format!("--iface {name}"),
            Some(second) => format!("--iface {name} --second-iface {second}"),
        });
        let segment = wire.segment.as_ref().map(|path| format!("--segment {}", path.display()));
        interface.or(segment).or(cycle.as_ref().map(|_| String::new()))
    }
}

impl ToolBus {
    /// Brings a bus to PreOp, runs `work` with it, and takes it back to Init, also after an error.
    /// The bus is described by `robot`; without a file it is the built-in robot, or the bus found
    /// at `place`. Other programs that want the interface see that it is in use for `doing` this.
    /// The bus of a running cycle, named or found on the interface, is left as it is.
    pub(crate) fn with<T>(
        doing: &str,
        robot: Option<&Path>,
        place: &Where,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut bus = Self::open(doing, robot, place)?;
        let outcome = work(&mut bus);
        let closed = match bus {
            Self::Own(bus) => bus.close(),
            Self::Running(_) => Ok(()),
        };
        // The first failure is the one to report.
        outcome.and_then(|done| closed.map(|()| done))
    }

    fn open(doing: &str, robot: Option<&Path>, place: &Where) -> Result<Self, Failure> {
        let Where { cycle, wire } = place;
        if let Some(cycle) = cycle {
            return Ok(Self::Running(RunningBus::of(&Which(Some(cycle)).find()?)?));
        }
        let described = robot.is_some() || (wire.iface.is_none() && wire.segment.is_none());
        let robot = RobotConfig::read_or_built_in(robot, Overrides::default())?;
        if wire.iface.is_none() {
            say_simulated(&robot, wire.segment.as_deref())?;
        }
        let configuration = if described {
            configuration::configuration(&robot, AlState::PreOp)
        } else {
            Configuration {
                target: AlState::PreOp,
                system_time_at_epoch: MonotonicClock::system_time_at_epoch(),
                ..Configuration::default()
            }
        };
        let main_device = configuration::main_device(configuration)?;
        let say = &mut |notice: &Notice| output::say(notice);
        let link = match link::open(&robot, &wire.on_link(), doing, say) {
            Ok(link) => link,
            Err(Error::Interface(OpenError::Held { owner, interface })) => {
                return match RunningBus::holding(wire, &owner) {
                    Some(running) => Ok(Self::Running(running)),
                    None => Err(Error::from(OpenError::Held { owner, interface }).into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let mut bus = OwnBus { main_device, link, stop: Stop::listen()? };
        link::bring_up(&mut bus.pump(), &wire.on_link(), say).map_err(or_take_over)?;
        Ok(Self::Own(Box::new(bus)))
    }

    /// Descriptions of the SubDevices, with their states as they are now.
    pub(crate) fn described(&mut self) -> Result<Vec<Described>, Failure> {
        match self {
            Self::Own(bus) => Ok(described(bus.main_device.sub_devices())),
            Self::Running(bus) => bus.described(),
        }
    }

    /// The EEPROM of a SubDevice, with the bus in Init from now on.
    pub(crate) fn eeprom(&mut self, position: u16) -> Result<Eeprom<'_>, Failure> {
        match self {
            Self::Own(bus) => {
                bus.pump().take_down()?;
                Eeprom::of(&mut bus.link, position)
            }
            Self::Running(_) => Err(Failure::new(
                "a running cycle uses the bus, expected no cycle: an SII is read and written in \
                 Init; end the cycle first",
            )),
        }
    }

    /// Names of the SubDevices, by position.
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Own(bus) => bus.main_device.sub_devices().iter().map(|it| it.name.as_str()).collect(),
            Self::Running(bus) => bus.names(),
        }
    }

    /// The position of the SubDevice that people call `wanted`: its position, or its name.
    pub(crate) fn position_of(&self, wanted: &str) -> Result<u16, Failure> {
        let names = self.names();
        let by_name = names.iter().position(|&name| name == wanted);
        let by_position = || wanted.parse::<usize>().ok().filter(|&position| position < names.len());
        let found = by_name.or_else(by_position).and_then(|position| u16::try_from(position).ok());
        found.ok_or_else(|| {
            let listed: Vec<&str> = names.iter().copied().take(NAMES_LISTED).collect();
            let more = if names.len() > NAMES_LISTED { ", ..." } else { "" };
            Failure::new(format!(
                "no SubDevice \"{wanted}\", expected a position from 0 to {} or one of {}{more}: correct it",
                names.len().saturating_sub(1),
                listed.join(", ")
            ))
        })
    }
}

impl OwnBus {
    /// Takes the bus back to Init and completes the capture.
    fn close(mut self) -> Result<(), Failure> {
        self.pump().take_down()?;
        if let Some(captured) = self.link.finish()? {
            output::say(captured);
        }
        Ok(())
    }

    fn pump(&mut self) -> Pump<'_, RobotLink, MonotonicClock> {
        Pump {
            main_device: &mut self.main_device,
            link: &mut self.link,
            clock: &MonotonicClock,
            stop: self.stop.flag(),
        }
    }
}

/// Says that the bus is simulated for this command alone, and how to ask a running one instead. A
/// chosen `segment` is said only if a cycle of its robot runs.
fn say_simulated(robot: &RobotConfig, segment: Option<&Path>) -> Result<(), Failure> {
    let running = running_cycles();
    let simulated = match segment {
        None => None,
        Some(_) if running.is_empty() => return Ok(()),
        Some(path) => Some(RobotConfig::read(path, Overrides::default())?),
    };
    let RobotConfig { name: robot, bus, .. } = simulated.as_ref().unwrap_or(robot);
    let same = running.iter().find(|it| it.description().robot == *robot);
    // A file drafted from this bus has another name for the robot.
    let is_alike =
        |it: &&Client| it.description().sub_devices.iter().eq(bus.sub_devices.iter().map(|it| &it.name));
    let alike = running.iter().find(is_alike);
    let instead = match (same.or(alike), &running[..]) {
        (Some(it), _) if it.description().robot == *robot => {
            format!("--cycle {} uses the bus of the running cycle of this robot", it.name())
        }
        (Some(it), _) => {
            let Description { robot: other, .. } = it.description();
            format!(
                "--cycle {} uses the bus of robot \"{other}\", which has SubDevices of these names",
                it.name()
            )
        }
        (None, _) if segment.is_some() => return Ok(()),
        (None, []) => "--iface NIC takes a real one".to_owned(),
        (None, running) => {
            let names: Vec<String> = running.iter().map(|it| format!("\"{}\"", it.name())).collect();
            format!("--cycle NAME uses the bus of a running cycle: {}", names.join(", "))
        }
    };
    output::say(format!("on a separate simulated bus, robot \"{robot}\"; {instead}"));
    Ok(())
}

/// Says how to take the bus from another MainDevice.
pub(crate) fn or_take_over(error: Error) -> Failure {
    match error {
        Error::BringUp(BringUpError::OtherMainDevice { .. }) => {
            Failure::new(format!("{error} with --take-over"))
        }
        other => other.into(),
    }
}

/// Names shown where another was expected.
const NAMES_LISTED: usize = 12;

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use control::stop::StopHandle;
    use ethercat_linux::bring_up::BRING_UP_TIMEOUT;
    use ethercat_linux::link::Link;

    use super::*;
    use crate::object_address::ObjectAddress;

    /// A link that is cut when its flag is raised.
    struct Cut(Box<dyn Link + Send>, &'static AtomicBool);

    impl Link for Cut {
        fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
            self.0.transmit(frame)
        }

        fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
            if self.1.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            self.0.receive(buffer, timeout)
        }
    }

    /// The built-in robot's bus in PreOp, with its own flag to cut the cable.
    fn bus(cut: &'static AtomicBool) -> (ToolBus, StopHandle) {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let main_device = MainDevice::new(configuration::configuration(&robot, AlState::PreOp)).unwrap();
        let wire = Wire::default().on_link();
        let RobotLink::Plain(link) = link::open(&robot, &wire, "test", &mut |_| ()).unwrap() else {
            panic!("no capture")
        };
        let link = RobotLink::Plain(Box::new(Cut(link, cut)));
        let mut bus = OwnBus { main_device, link, stop: Stop::listen().unwrap() };
        bus.pump().bring_up(BRING_UP_TIMEOUT, |_| ()).unwrap();
        let stop = bus.stop.handle().clone();
        (ToolBus::Own(Box::new(bus)), stop)
    }

    const STATUSWORD: ObjectAddress = ObjectAddress { index: 0x6041, sub_index: 0 };

    // feature(program): an interrupted SDO and a lost interface are reported as such
    #[test]
    fn interrupted_sdo_is_reported() {
        static CUT: AtomicBool = AtomicBool::new(false);
        let (mut bus, stop) = bus(&CUT);
        assert_eq!(bus.upload(0, STATUSWORD).unwrap().len(), 2);
        stop.stop();
        let told = bus.upload(0, STATUSWORD).unwrap_err().to_string();
        for part in ["SubDevice 0 \"drive-1\"", "reading object 0x6041:00", "interrupted"] {
            assert!(told.contains(part), "{told}");
        }
        let told = bus.download(1, STATUSWORD, &[0, 0], false).unwrap_err().to_string();
        assert!(told.contains("\"drive-2\", writing object 0x6041:00: interrupted"), "{told}");
        let told = bus.list_objects(0, &mut Vec::new()).unwrap_err().to_string();
        assert!(told.contains("listing the objects: interrupted"), "{told}");
    }

    #[test]
    fn an_object_longer_than_any_is_refused_in_a_sentence() {
        static CUT: AtomicBool = AtomicBool::new(false);
        let (mut bus, _stop) = bus(&CUT);
        let told = bus.download(0, STATUSWORD, &[0; 65_537], false).unwrap_err().to_string();
        let why = "writing object 0x6041:00: 65537 bytes, expected at most 65536";
        assert!(told.contains(why), "{told}");
        let told = bus.download(0, STATUSWORD, &[0; 65_536], false).unwrap_err().to_string();
        assert!(!told.contains("expected at most"), "{told}");
    }

    // feature(program): an interrupted SDO and a lost interface are reported as such
    #[test]
    fn downed_interface_is_reported() {
        static CUT: AtomicBool = AtomicBool::new(false);
        let (mut bus, _stop) = bus(&CUT);
        CUT.store(true, Ordering::Relaxed);
        let told = bus.upload(0, STATUSWORD).unwrap_err().to_string();
        for part in ["SubDevice 0 \"drive-1\"", "0x6041:00", "the link failed", "interface"] {
            assert!(told.contains(part), "{told}");
        }
    }
}
