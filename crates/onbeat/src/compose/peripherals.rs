//! The robot file's devices that are not on the bus.

use std::path::PathBuf;

use devices::task::actuators::WheelLimits;
use devices::{Kind, Peripheral, WheelDrives};
use robot::{PeripheralKind, RobotConfig};
use rt::profile::{RealTimeProfile, Scheduling};

/// The devices of `robot`; all of them simulated where its bus is.
pub(crate) fn peripherals(robot: &RobotConfig, simulated: bool) -> Vec<Peripheral> {
    robot.peripherals.iter().map(|it| peripheral(robot, it, simulated)).collect()
}

fn peripheral(robot: &RobotConfig, it: &robot::Peripheral, simulated: bool) -> Peripheral {
    let device = it.device.clone().filter(|_| !simulated);
    let kind = match it.kind {
        PeripheralKind::Sonar => Kind::Sonar {
            gpio: device.map(|chip| (chip, it.trigger, it.echo)),
            temperature: it.temperature,
        },
        PeripheralKind::RangeFinder => {
            Kind::RangeFinder { serial: device.map(|port| (port, it.baud)), watched: it.watched }
        }
        PeripheralKind::LedStrip => {
            Kind::LedStrip { spi: device, chip: it.chip, leds: it.leds, brightness: it.brightness }
        }
        PeripheralKind::Imu => {
            Kind::Imu { unit: it.unit, output: it.output, i2c: device.map(|bus| (bus, it.address)) }
        }
        PeripheralKind::Actuators => Kind::Actuators {
            drives: wheel_drives(it, device),
            limits: WheelLimits { velocity: it.velocity, acceleration: it.acceleration },
        },
    };
    let (name, port) = (it.name.clone(), it.port.clone());
    Peripheral { name, port, period: it.period, profile: task_profile(robot, it), kind }
}

fn wheel_drives(it: &robot::Peripheral, device: Option<PathBuf>) -> WheelDrives {
    match (it.dac, &it.axes) {
        (Some(dac), _) => WheelDrives::DcMotors {
            spi: device.zip(it.encoders.clone()).map(|(converter, [left, right])| [converter, left, right]),
            dac,
            full_scale: it.full_scale,
            motors_reversed: it.motors_reversed,
            encoders_reversed: it.encoders_reversed,
        },
        (None, Some(axes)) => WheelDrives::Axes(axes.clone()),
        (None, None) => WheelDrives::Simulated,
    }
}

/// As the cycle's, but below it: rate monotonic among themselves, unless the file says otherwise.
/// No shield and no spin: these are the cycle's.
fn task_profile(robot: &RobotConfig, it: &robot::Peripheral) -> RealTimeProfile {
    let cycle = robot.cycle.real_time_profile();
    let shorter = robot.peripherals.iter().filter(|other| other.period < it.period).count();
    let below = u8::try_from(shorter + BELOW_CYCLE).unwrap_or(u8::MAX);
    let usual = robot.cycle.priority().saturating_sub(below).max(1);
    let priority = it.priority.unwrap_or(usual);
    let asked = cycle.scheduling.is_some() || it.priority.is_some();
    RealTimeProfile {
        scheduling: asked.then_some(Scheduling::Fifo { priority }),
        memory: cycle.memory,
        cpu: it.cpu,
        ..RealTimeProfile::ORDINARY
    }
}

/// The simulated SubDevices of a robot stand right below its cycle.
const BELOW_CYCLE: usize = 5;

#[cfg(test)]
mod tests {
    use ::robot::{ImuOutput, ImuUnit};

    use super::*;

    fn robot(peripherals: &str) -> RobotConfig {
        let text = include_str!("../../../../examples/six-axis.toml").to_owned() + peripherals;
        RobotConfig::parse(&text, "six-axis.toml").unwrap()
    }

    #[test]
    fn simulated_robot_has_simulated_devices() {
        let robot = robot("\n[[peripheral]]\nkind = \"imu\"\ndevice = \"/dev/i2c-1\"\naddress = 0x69\n");
        let imu = |i2c| Kind::Imu { unit: ImuUnit::Mpu6050, output: ImuOutput::Quaternion, i2c };
        assert_eq!(peripherals(&robot, true)[0].kind, imu(None));
        assert_eq!(peripherals(&robot, false)[0].kind, imu(Some(("/dev/i2c-1".into(), 0x69))));
    }

    #[test]
    fn device_tasks_stand_below_the_cycle_by_their_periods() {
        let robot = robot(
            "\n[[peripheral]]\nkind = \"sonar\"\n[[peripheral]]\nkind = \"imu\"\n\
             [[peripheral]]\nkind = \"range_finder\"\npriority = 7\ncpu = 1\n",
        );
        let found = peripherals(&robot, true);
        let cycle = robot.cycle.fifo_priority();
        let priority = |it: &Peripheral| match it.profile.scheduling {
            Some(Scheduling::Fifo { priority }) => Some(priority),
            _ => None,
        };
        assert_eq!(priority(&found[1]), cycle.map(|it| it - 5));
        assert_eq!(priority(&found[0]), cycle.map(|it| it - 6));
        assert_eq!((priority(&found[2]), found[2].profile.cpu), (Some(7), Some(1)));
    }
}
