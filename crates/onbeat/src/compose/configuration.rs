//! Configurations of the MainDevice for a robot's bus, and of the cycle.

use control::cycle::CycleConfiguration;
use ethercat::al::AlState;
use ethercat::cia402::ModeOfOperation;
use ethercat::cia402::object::{
    HOME_OFFSET, HOMING_ACCELERATION, HOMING_METHOD, HOMING_SPEEDS, MODES_OF_OPERATION, PROFILE_VELOCITY,
    TORQUE_SLOPE, of_axis,
};
use ethercat::main_device::{Configuration, MainDevice, StartupSdo};
use motion::supervision::DriveProfile;
use robot::{Axis, BarrierSource, DriveBarrier, RobotConfig, SubDevice, profile_objects};
use rt::clock::MonotonicClock;
use rustix::rand::GetRandomFlags;
use types::CycleClock;

use crate::Error;

/// A MainDevice for a bus that others may reach: its frames are distinguished from theirs by
/// generation numbers that start at random.
///
/// # Errors
/// The system gives no random number, or the configuration contradicts itself.
pub fn main_device(configuration: Configuration) -> Result<MainDevice, Error> {
    let mut random = [0; 4];
    rustix::rand::getrandom(&mut random, GetRandomFlags::empty()).map_err(std::io::Error::from)?;
    let first_generation = u32::from_le_bytes(random);
    Ok(MainDevice::new(Configuration { first_generation, ..configuration })?)
}

/// The bus of `robot`, to be brought to `target`.
pub fn configuration(robot: &RobotConfig, target: AlState) -> Configuration {
    let mut sub_devices: Vec<_> = robot.bus.sub_devices.iter().map(SubDevice::configuration).collect();
    for axis in &robot.axes {
        let sub_device = &robot.bus.sub_devices[axis.sub_device];
        if !maps_modes_of_operation(sub_device, axis) {
            sub_devices[axis.sub_device].startup.push(StartupSdo {
                index: of_axis(MODES_OF_OPERATION, axis.drive_axis),
                sub_index: 0,
                complete_access: false,
                data: vec![ModeOfOperation::from(axis.mode).number() as u8],
            });
        }
        // The file's own start-up takes precedence: a drive may have other units.
        let written = |sdo: &StartupSdo| {
            sub_device.startup.iter().any(|it| (it.index, it.sub_index) == (sdo.index, sdo.sub_index))
        };
        sub_devices[axis.sub_device].startup.extend(homing(axis).into_iter().filter(|sdo| !written(sdo)));
        sub_devices[axis.sub_device].startup.extend(profile(axis));
    }
    for DriveBarrier { axis, source, .. } in robot.drive_barriers() {
        if let BarrierSource::Limits(_, barrier) = source {
            sub_devices[robot.axes[axis].sub_device].barriers.push(barrier);
        }
    }
    Configuration {
        sub_devices: Some(sub_devices),
        target,
        period: robot.cycle.period,
        distributed_clocks: robot.bus.distributed_clocks,
        replies: robot.bus.replies,
        recovery: robot.bus.recovery,
        packed: robot.bus.packed,
        steers_reference: robot.cycle.clock == CycleClock::Host,
        system_time_at_epoch: MonotonicClock::system_time_at_epoch(),
        ..Configuration::default()
    }
}

/// The cycle of `robot`, which ends after so many cycles: it counts them in its own thread, so that
/// no delayed thread can delay its end.
pub(crate) fn cycle(robot: &RobotConfig, cycles: Option<u64>) -> CycleConfiguration {
    CycleConfiguration {
        period: robot.cycle.period,
        order: robot.cycle.frame_order,
        cycles,
        loss: robot.cycle.loss_time,
        overrun: robot.cycle.overrun,
        clock: robot.cycle.clock,
    }
}

/// Homing method of the drive, in counts and seconds. The home itself is 0 for the drive, whatever
/// sign it gives a home offset; the axis adds the position of the home.
fn homing(axis: &Axis) -> Vec<StartupSdo> {
    let Some(settings) = &axis.homing_settings else { return Vec::new() };
    let Some(method) = settings.method else { return Vec::new() };
    let sdo = |index, sub_index, data: &[u8]| StartupSdo {
        index: of_axis(index, axis.drive_axis),
        sub_index,
        complete_access: false,
        data: data.to_vec(),
    };
    let counts = |radians: f64| {
        let counts = (radians * axis.scale.counts_per_radian()).abs().round();
        (counts as u32).max(1).to_le_bytes()
    };
    let mut sdos =
        vec![sdo(HOMING_METHOD, 0, &method.to_le_bytes()), sdo(HOME_OFFSET, 0, &0_i32.to_le_bytes())];
    // The other methods take its present position.
    if !matches!(method, 35 | 37) {
        sdos.extend([
            sdo(HOMING_SPEEDS, 1, &counts(settings.switch_velocity.0)),
            sdo(HOMING_SPEEDS, 2, &counts(settings.zero_velocity.0)),
            sdo(HOMING_ACCELERATION, 0, &counts(settings.acceleration.0)),
        ]);
    }
    sdos
}

/// Speed and ramps of a drive that generates its own profile: the limits of its axis, and no
/// others.
fn profile(axis: &Axis) -> Vec<StartupSdo> {
    let profile = DriveProfile::within(&axis.limits, &axis.scale);
    let sdo = |&(index, _): &(u16, &str)| {
        let value = match index {
            PROFILE_VELOCITY => profile.velocity,
            TORQUE_SLOPE => profile.torque_slope,
            _ => profile.acceleration,
        };
        StartupSdo {
            index: of_axis(index, axis.drive_axis),
            sub_index: 0,
            complete_access: false,
            data: value.to_le_bytes().to_vec(),
        }
    };
    let mut objects: Vec<_> =
        std::iter::once(&axis.mode).chain(&axis.modes).flat_map(|&mode| profile_objects(mode)).collect();
    objects.sort_unstable();
    objects.dedup();
    objects.into_iter().map(sdo).collect()
}

/// A mode in the process data is written there on every cycle, not by SDO.
fn maps_modes_of_operation(sub_device: &SubDevice, axis: &Axis) -> bool {
    let mode = of_axis(MODES_OF_OPERATION, axis.drive_axis);
    sub_device.explicit_mapping().is_some_and(|mapping| mapping.output(mode, 0).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(program): generation numbers start at random
    #[test]
    fn every_start_has_different_generations() {
        let start = || main_device(Configuration::default()).unwrap().configuration().first_generation;
        let starts: std::collections::BTreeSet<u32> = (0..8).map(|_| start()).collect();
        assert!(starts.len() > 6, "{starts:?}");
    }

    #[test]
    fn an_axis_sets_its_mode_at_start_up() {
        let text = include_str!("../../../../examples/six-axis.toml");
        let robot = RobotConfig::parse(text, "six-axis.toml").unwrap();
        let configuration = configuration(&robot, AlState::Op);
        let modes: Vec<_> = configuration
            .sub_devices
            .unwrap()
            .iter()
            .map(|it| it.startup.iter().find(|sdo| sdo.index == 0x6060).unwrap().data.clone())
            .collect();
        assert_eq!(modes, [[8], [8], [8], [8], [9], [9]]);
        assert!(configuration.distributed_clocks);
    }

    #[test]
    fn each_axis_of_a_drive_sets_its_own_objects() {
        let text = include_str!("../../../../examples/xy-table.toml");
        let homed = "drive_axis = 2\nhoming = { method = 37 }";
        let text = text.replacen("drive_axis = 2", homed, 1);
        let y = "{ index = 0x687A, bits = 32, name = \"target position y\" },";
        let text = text.replacen(y, &format!("{y}\n{{ index = 0x6860, bits = 8, name = \"mode y\" }},"), 1);
        let y = "{ index = 0x6864, bits = 32, name = \"position y\" },";
        let text = text.replacen(y, &format!("{y}\n{{ index = 0x6861, bits = 8, name = \"mode y\" }},"), 1);
        let robot = RobotConfig::parse(&text, "xy-table.toml").unwrap();
        let sub_devices = configuration(&robot, AlState::Op).sub_devices.unwrap();
        let written = |position: usize| -> Vec<(u16, u8)> {
            sub_devices[position].startup.iter().map(|sdo| (sdo.index, sdo.data[0])).collect()
        };
        // The mode of y is in the process data; its drive homes it.
        assert_eq!(written(0), [(0x60FE, 0), (0x6060, 8), (0x6898, 37), (0x687C, 0)]);
        assert_eq!(written(1), [(0x60FE, 0), (0x6060, 8)]);
    }

    // feature(axes): a drive in a profile mode gets the limits of its axis as its profile
    #[test]
    fn profile_drive_gets_the_limits_of_its_axis() {
        let text = include_str!("../../../../examples/indexing-table.toml");
        let startup = |text: &str| {
            let robot = RobotConfig::parse(text, "indexing-table.toml").unwrap();
            let sub_devices = configuration(&robot, AlState::Op).sub_devices.unwrap();
            let number = |data: &[u8]| data.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
            sub_devices[0].startup.iter().map(|it| (it.index, number(&it.data))).collect::<Vec<_>>()
        };
        // 1310720 counts are 2 pi: 2 rad/s, 8 rad/s^2.
        let ramps = [(0x6083, 1_668_860), (0x6084, 1_668_860)];
        assert_eq!(
            startup(text),
            [&[(0x6081, 417_215)], &ramps[..]].concat(),
            "the mode is in the process data"
        );
        let velocity = text.replacen("\"pp\"", "\"pv\"", 1).replacen("0x607A", "0x60FF", 1);
        assert_eq!(startup(&velocity.replacen("joint_position", "joint_velocity", 1)), ramps);
        let torque =
            text.replacen("\"pp\"", "\"tq\"", 1).replacen("0x607A, bits = 32", "0x6071, bits = 16", 1);
        // 12 N m of 13 at the table, in a quarter of a second.
        assert_eq!(startup(&torque.replacen("joint_position", "joint_effort", 1)), [(0x6087, 3_692)]);
        assert_eq!(startup(&text.replacen("\"pp\"", "\"csp\"", 1)), []);
    }

    #[test]
    fn main_device_gets_the_group() {
        let text = include_str!("../../../../examples/six-axis.toml");
        let text = text.replace("[[bus.sub_device]]\n", "[[bus.sub_device]]\ngroup = \"gantry\"\n");
        let robot = RobotConfig::parse(&text, "six-axis.toml").unwrap();
        let sub_devices = configuration(&robot, AlState::Op).sub_devices.unwrap();
        assert!(sub_devices.iter().all(|it| it.group.as_deref() == Some("gantry")));
    }

    #[test]
    fn homing_drive_gets_parameters_in_its_units() {
        let text = include_str!("../../../../examples/six-axis.toml");
        let mut text = text.replacen("mode = \"csp\"", HOMING, 1);
        for (last, mode) in [("0x6071, bits = 16", "0x6060"), ("0x6077, bits = 16", "0x6061")] {
            text = text.replace(last, &format!("{last} }}, {{ index = {mode}, bits = 8"));
        }
        let startup = |text: &str| {
            let robot = RobotConfig::parse(text, "six-axis.toml").unwrap();
            let sub_devices = configuration(&robot, AlState::Op).sub_devices.unwrap();
            sub_devices.into_iter().map(|it| it.startup).collect::<Vec<_>>()
        };
        let written = |startup: &[StartupSdo]| {
            let number = |data: &[u8]| data.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
            let sdo = |sdo: &StartupSdo| (sdo.index, sdo.sub_index, number(&sdo.data));
            startup.iter().map(sdo).collect::<Vec<_>>()
        };
        // 1048576 counts are 2 pi.
        let expected = [
            (0x6098, 0, 34),
            (0x607C, 0, 0),
            (0x6099, 1, 83_443),
            (0x6099, 2, 16_689),
            (0x609A, 0, 333_772),
        ];
        let all = startup(&text);
        assert_eq!(written(&all[0]), expected, "the mode is in the process data");
        assert_eq!(written(&all[4]), [], "the axes in csv are not homed");
        // Start-up commands of the file stay.
        let own = "[device.servo.pdos]";
        let speed =
            "[[device.servo.startup]]\nindex = 0x6099\nsub_index = 1\ntype = \"uint32\"\nvalue = 7\n\n";
        let all = startup(&text.replacen(own, &format!("{speed}{own}"), 1));
        let expected =
            [(0x6099, 1, 7), (0x6098, 0, 34), (0x607C, 0, 0), (0x6099, 2, 16_689), (0x609A, 0, 333_772)];
        assert_eq!(written(&all[0]), expected);
        // Where nothing moves there is no speed.
        let here = text.replacen(HOMING, "mode = \"csp\"\nhoming = { method = 37 }", 1);
        assert_eq!(written(&startup(&here)[0]), [(0x6098, 0, 37), (0x607C, 0, 0)]);
    }

    const HOMING: &str = "mode = \"csp\"\nhoming = { method = 34, switch_velocity = 0.5, zero_velocity = 0.1, \
                          acceleration = 2.0 }";
}
