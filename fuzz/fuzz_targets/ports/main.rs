//! Any messages at the ports `control` and `trajectory`, any command that passed the checks, and
//! drives in any trouble: with the controllers behind them and supervision before the drives. Every
//! set-point is finite and within the axis's limits; every answer can be parsed.
//!
//! The input is a byte of settings and a row of events (`events.rs`).
#![no_main]

mod axis;
mod events;
#[path = "../../../crates/controllers/tests/rig/ports.rs"]
#[allow(dead_code)]
mod ports;

use core::time::Duration;

use control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, ExternalCommand, Io};
use control::signal::Signals;
use ethercat::cia402::CyclicMode;
use ethercat::time::Instant;
use libfuzzer_sys::fuzz_target;
use motion::kinematics::DifferentialDrive;
use motion::supervision::Ending;
use motion::{Metres, Radians, RadiansPerSecond, Seconds};
use onbeat_controllers::{
    BaseController, ControllerManager, Hold, HomedBy, JointPosition, JointTrajectory, JointVelocity,
    ManagedAxis, Member, MemberKind, TrajectorySettings,
};

use axis::{Axis, VELOCITY};
use events::{Event, Events};
use ports::Client;

pub(crate) const AXES: usize = 3;
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

fuzz_target!(|bytes: &[u8]| {
    let Some((&settings, events)) = bytes.split_first() else { return };
    let mode = if settings & 1 == 0 { CyclicMode::Position } else { CyclicMode::Velocity };
    let mut robot = Robot::new(mode, settings & 2 != 0);
    let mut events = Events::new(events);
    robot.run(50, 1);
    while let Some(event) = events.next() {
        match event {
            Event::Cycles(cycles) => robot.run(cycles, 1),
            Event::Late(periods) => robot.run(1, periods),
            Event::Control(message) => robot.client.raw_request(&message),
            Event::Trajectory(message) => robot.client.raw_order(&message),
            Event::Command(asked) => robot.asked = asked,
            Event::Trouble(axis, trouble) => robot.axes[axis].trouble = trouble,
            Event::Stopping => robot.stopping = true,
        }
    }
    robot.run(200, 1);
});

struct Robot {
    switch: ControllerManager,
    client: Client,
    asked: ExternalCommand,
    axes: Vec<Axis>,
    commands: Vec<AxisCommand>,
    cycle: u64,
    stopping: bool,
}

impl Robot {
    fn new(mode: CyclicMode, enable: bool) -> Self {
        let axis = ManagedAxis {
            mode: mode.into(),
            velocity_limit: RadiansPerSecond(VELOCITY),
            homing: HomedBy::Hand,
        };
        let client = Client::default();
        let (control, trajectory) = client.ports();
        let switch =
            ControllerManager::new(&[axis; AXES], members(mode), enable).with_ports(control, trajectory);
        Self {
            switch,
            client,
            asked: ExternalCommand { axes: vec![None; AXES], ..ExternalCommand::default() },
            axes: (0..AXES).map(|_| Axis::new(mode)).collect(),
            commands: vec![AxisCommand::default(); AXES],
            cycle: 0,
            stopping: false,
        }
    }

    fn run(&mut self, cycles: u32, periods: u64) {
        for _ in 0..cycles {
            self.cycle += periods;
            let reports: Vec<AxisReport> = self.axes.iter_mut().map(|axis| axis.report(periods)).collect();
            let release = 1_000_000_000_000 + self.cycle * PERIOD.as_nanos() as u64;
            let cycle = CycleInfo {
                cycle: self.cycle,
                release: Instant::from_nanos(release),
                bus_time: Instant::from_nanos(release),
                period: PERIOD,
                periods,
                stopping: self.stopping,
            };
            self.switch.command(&self.asked);
            self.switch.update(cycle, &mut Io::new(&mut Signals::default(), &reports, &mut self.commands));
            let elapsed = Seconds(PERIOD.as_secs_f64() * periods as f64);
            for (axis, command) in self.axes.iter_mut().zip(&self.commands) {
                axis.take(elapsed, command, if self.stopping { Ending::Asked } else { Ending::No });
            }
            // What cannot be read fails there.
            self.client.collect();
        }
    }
}

fn members(mode: CyclicMode) -> Vec<Member> {
    let all = [0, 1, 2];
    let settings = all.map(axis::settings);
    let hold = Member::new(MemberKind::Plain(Box::new(Hold)), &all);
    if mode == CyclicMode::Velocity {
        let base = DifferentialDrive::new(Metres(0.05), Metres(0.3)).expect("a base");
        let drive =
            BaseController::differential(base, [0, 1], RadiansPerSecond(VELOCITY), axis::twist_limits());
        let drive = drive.expect("limits");
        let velocity = JointVelocity::new(&settings.map(|it| (it, mode))).expect("limits");
        return vec![
            Member::new(MemberKind::Base(Box::new(drive)), &[0, 1]),
            Member::new(MemberKind::Plain(Box::new(velocity)), &all),
            hold,
        ];
    }
    let trajectory = TrajectorySettings {
        axes: settings.to_vec(),
        robot_axes: AXES,
        points: 50,
        path_tolerance: Some(Radians(0.1)),
        goal_tolerance: Some(Radians(0.005)),
        goal_time: Some(Seconds(0.5)),
    };
    let trajectory = JointTrajectory::new(trajectory).expect("settings");
    let position = JointPosition::new(&settings).expect("limits");
    vec![
        Member::new(MemberKind::Trajectory(Box::new(trajectory)), &all),
        Member::new(MemberKind::Plain(Box::new(position)), &all),
        hold,
    ]
}
