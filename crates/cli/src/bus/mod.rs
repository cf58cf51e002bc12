//! A bus in PreOp, for commands that need no cycle.

mod listing;
mod objects;

use std::path::Path;

use ethercat::al::AlState;
use ethercat::main_device::{Configuration, MainDevice};
use onbeat::{BringUpError, Notice};
use runtime::bring_up::Pump;
use runtime::clock::MonotonicClock;

use crate::arguments::Wire;
use crate::compose::link::{self, RobotLink};
use crate::compose::{configuration, robot_file};
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;

/// A bus in PreOp.
pub(crate) struct ToolBus {
    main_device: MainDevice,
    link: RobotLink,
    stop: Stop,
}

impl ToolBus {
    /// Brings a bus to PreOp, does `work` with it, and takes it back to Init whether that went well or
    /// not. The bus is what `robot` describes; without it the built-in robot, or whatever is there where
    /// `wire` says where to look. Others who want the interface are told that it is for `doing` this.
    pub(crate) fn with<T>(
        doing: &str,
        robot: Option<&Path>,
        wire: &Wire,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut bus = Self::open(doing, robot, wire)?;
        let outcome = work(&mut bus);
        let closed = bus.close();
        // The first failure is the one to report.
        outcome.and_then(|done| closed.map(|()| done))
    }

    fn open(doing: &str, robot: Option<&Path>, wire: &Wire) -> Result<Self, Failure> {
        let described = robot.is_some() || (wire.iface.is_none() && wire.segment.is_none());
        let robot = robot_file::robot(robot, None)?;
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
        let link = link::open(&robot, &wire.on_link(), doing, say)?;
        let mut bus = Self { main_device, link, stop: Stop::listen()? };
        link::bring_up(&mut bus.pump(), &wire.on_link(), say).map_err(or_take_over)?;
        Ok(bus)
    }

    pub(crate) fn main_device(&self) -> &MainDevice {
        &self.main_device
    }

    /// The position of the SubDevice that people call `wanted`: its position, or its name.
    pub(crate) fn position_of(&self, wanted: &str) -> Result<u16, Failure> {
        let sub_devices = self.main_device.sub_devices();
        let by_name = sub_devices.iter().find(|it| it.name == wanted);
        let by_position =
            || wanted.parse::<u16>().ok().and_then(|position| sub_devices.get(usize::from(position)));
        by_name.or_else(by_position).map(|it| it.position).ok_or_else(|| {
            let names: Vec<&str> = sub_devices.iter().map(|it| it.name.as_str()).take(NAMES_LISTED).collect();
            let more = if sub_devices.len() > NAMES_LISTED { ", ..." } else { "" };
            Failure::new(format!(
                "no SubDevice \"{wanted}\", expected a position from 0 to {} or one of {}{more}: correct it",
                sub_devices.len().saturating_sub(1),
                names.join(", ")
            ))
        })
    }

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

/// Says how to take the bus from another MainDevice.
pub(crate) fn or_take_over(error: onbeat::Error) -> Failure {
    match error {
        onbeat::Error::BringUp(BringUpError::OtherMainDevice { .. }) => {
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

    use runtime::bring_up::BRING_UP_PATIENCE;
    use runtime::link::Link;

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
    fn bus(cut: &'static AtomicBool) -> ToolBus {
        let robot = robot_file::robot(None, None).unwrap();
        let main_device = MainDevice::new(configuration::configuration(&robot, AlState::PreOp)).unwrap();
        let wire = Wire::default().on_link();
        let RobotLink::Plain(link) = link::open(&robot, &wire, "test", &mut |_| ()).unwrap() else {
            panic!("no capture")
        };
        let link = RobotLink::Plain(Box::new(Cut(link, cut)));
        let mut bus = ToolBus { main_device, link, stop: Stop::listen().unwrap() };
        bus.pump().bring_up(BRING_UP_PATIENCE, |_| ()).unwrap();
        bus
    }

    const STATUSWORD: ObjectAddress = ObjectAddress { index: 0x6041, sub_index: 0 };

    #[test]
    fn who_interrupts_an_sdo_is_told_so() {
        static CUT: AtomicBool = AtomicBool::new(false);
        let mut bus = bus(&CUT);
        assert_eq!(bus.upload(0, STATUSWORD).unwrap().len(), 2);
        bus.stop.handle().stop();
        let told = bus.upload(0, STATUSWORD).unwrap_err().to_string();
        for part in ["SubDevice 0 \"drive-1\"", "reading object 0x6041:00", "interrupted"] {
            assert!(told.contains(part), "{told}");
        }
        let told = bus.download(1, STATUSWORD, &[0, 0]).unwrap_err().to_string();
        assert!(told.contains("\"drive-2\", writing object 0x6041:00: interrupted"), "{told}");
        let mut text = String::new();
        let told = bus.list_objects(0, &mut text).unwrap_err().to_string();
        assert!(told.contains("listing the objects: interrupted"), "{told}");
    }

    #[test]
    fn an_interface_that_goes_down_is_told_so() {
        static CUT: AtomicBool = AtomicBool::new(false);
        let mut bus = bus(&CUT);
        CUT.store(true, Ordering::Relaxed);
        let told = bus.upload(0, STATUSWORD).unwrap_err().to_string();
        for part in ["SubDevice 0 \"drive-1\"", "0x6041:00", "the link failed", "interface"] {
            assert!(told.contains(part), "{told}");
        }
    }
}
