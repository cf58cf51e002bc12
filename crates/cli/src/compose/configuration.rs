//! What the MainDevice is told about a robot's bus.

use ethercat::al::AlState;
use ethercat::cia402::{ModeOfOperation, object::MODES_OF_OPERATION};
use ethercat::main_device::{Configuration, StartupSdo, SubDeviceConfiguration};
use robot::{Robot, SubDevice};

/// The bus of `robot`, to be brought to `target`.
pub(crate) fn configuration(robot: &Robot, target: AlState) -> Configuration {
    let mut sub_devices: Vec<_> = robot.bus.sub_devices.iter().map(sub_device).collect();
    for axis in &robot.axes {
        let sub_device = &robot.bus.sub_devices[axis.sub_device];
        if !maps_modes_of_operation(sub_device) {
            sub_devices[axis.sub_device].startup.push(StartupSdo {
                index: MODES_OF_OPERATION,
                sub_index: 0,
                complete_access: false,
                data: vec![ModeOfOperation::from(axis.mode).number() as u8],
            });
        }
    }
    Configuration {
        sub_devices: Some(sub_devices),
        target,
        period: robot.cycle.period,
        distributed_clocks: robot.bus.distributed_clocks,
        ..Configuration::default()
    }
}

fn sub_device(it: &SubDevice) -> SubDeviceConfiguration {
    SubDeviceConfiguration {
        name: it.name.clone(),
        identity: it.identity,
        alias: it.alias,
        process_data: it.process_data.clone(),
        startup: it.startup.clone(),
        sync0: it.sync0,
    }
}

/// A mode in the process data is written there on every beat, not by SDO.
fn maps_modes_of_operation(sub_device: &SubDevice) -> bool {
    let mapping = sub_device.explicit_mapping();
    mapping.is_some_and(|mapping| mapping.output(MODES_OF_OPERATION, 0).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_sets_its_mode_at_start_up() {
        let text = include_str!("../../../../examples/six-axis.toml");
        let robot = Robot::parse(text, "six-axis.toml").unwrap();
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
}
