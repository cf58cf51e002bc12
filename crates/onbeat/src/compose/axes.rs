//! The axes as the cycle takes them.

use ethercat::cia402::CyclicMode;
use motion::brake::BrakeTimes;
use motion::homing::Homing;
use motion::supervision::{AfterOutage, FollowingErrorLimit, Limits, Mode, OnStale, Outage, Settings};
use motion::{
    NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};
use robot::Robot;
use runtime::axis::{AxisConfiguration, BrakeConfiguration, DigitalOutput};
use runtime::interlock::{InterlockConfiguration, InterlockKind};

/// The axes of `robot`, in their order.
pub fn axes(robot: &Robot) -> Vec<AxisConfiguration> {
    let axis = |axis: &robot::Axis| {
        // Supervision keeps to the step in radians; what the drive is sent is rounded to counts at both ends of it.
        let step = Radians(axis.limits.maximum_step + 2.0 / axis.scale.counts_per_radian().abs());
        AxisConfiguration {
            supervision: Some(supervision(axis, &robot.cycle)),
            homing: match axis.homing {
                robot::Homing::Never => Homing::Never,
                robot::Homing::Absolute { offset } => Homing::Absolute { offset: Radians(offset) },
                robot::Homing::CurrentPosition { position } => {
                    Homing::CurrentPosition { position: Radians(position) }
                }
                robot::Homing::Drive(homing) => Homing::Drive {
                    position: Radians(homing.position),
                    patience: Seconds(homing.time_out.as_secs_f64()),
                },
            },
            brake: axis.brake.map(|brake| BrakeConfiguration {
                times: BrakeTimes {
                    release: Seconds(brake.release.as_secs_f64()),
                    engage: Seconds(brake.engage.as_secs_f64()),
                },
                output: brake
                    .output
                    .map(|it| DigitalOutput { sub_device: it.sub_device, channel: it.channel }),
            }),
            ..AxisConfiguration::new(&axis.name, axis.sub_device, axis.mode, axis.scale, step)
        }
    };
    robot.axes.iter().map(axis).collect()
}

/// What stands between the controller and the drive of `axis`.
fn supervision(axis: &robot::Axis, cycle: &robot::Cycle) -> Settings {
    let robot::AxisLimits { position, velocity, acceleration, jerk, torque, maximum_step } = axis.limits;
    Settings {
        mode: match axis.mode {
            CyclicMode::Position => Mode::Position,
            CyclicMode::Velocity => Mode::Velocity,
            CyclicMode::Torque => Mode::Torque,
        },
        limits: Limits {
            position: position.map(|(lowest, highest)| (Radians(lowest), Radians(highest))),
            velocity: RadiansPerSecond(velocity),
            deceleration: RadiansPerSecondSquared(acceleration),
            jerk: RadiansPerSecondCubed(jerk),
            torque: NewtonMetres(torque),
            step: Radians(maximum_step),
        },
        following_error: axis.following_error.map(|error| FollowingErrorLimit {
            distance: Radians(error.window),
            patience: Seconds(error.time.as_secs_f64()),
        }),
        on_stale: match axis.on_stale {
            robot::OnStale::Hold => OnStale::Hold,
            robot::OnStale::Ramp => OnStale::RampToZero,
            robot::OnStale::QuickStop => OnStale::QuickStop,
            robot::OnStale::Disable => OnStale::Disable,
        },
        outage: Outage {
            time: cycle.outage_time.map(|time| Seconds(time.as_secs_f64())),
            after: match cycle.after_outage {
                robot::AfterOutage::Stay => AfterOutage::Stay,
                robot::AfterOutage::Resume => AfterOutage::Resume,
            },
        },
    }
}

/// What stops axes of `robot`, or permits them to be enabled.
pub fn interlocks(robot: &Robot) -> Vec<InterlockConfiguration> {
    let interlock = |it: &robot::Interlock| InterlockConfiguration {
        name: it.name.clone(),
        sub_device: it.sub_device,
        channel: it.channel,
        inverted: it.inverted,
        kind: match it.kind {
            robot::InterlockKind::Stop => InterlockKind::Stop,
            robot::InterlockKind::Enable => InterlockKind::Enable,
        },
        axes: it.axes.clone(),
    };
    robot.interlocks.iter().map(interlock).collect()
}

/// Places of the SubDevices whose outputs carry the number of the beat.
pub fn beat_numbers(robot: &Robot) -> Vec<usize> {
    let sub_devices = robot.bus.sub_devices.iter().enumerate();
    sub_devices.filter(|(_, it)| it.beat_number).map(|(position, _)| position).collect()
}
