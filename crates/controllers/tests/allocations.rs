//! A counting allocator sees a controller manager with every controller: commands, trajectories,
//! requests, switching, stopping.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use control::controller::{
    AxisCommand, AxisReport, AxisTarget, Controller, CycleInfo, ExternalCommand, Freshness, Io,
};
use control::signal::Signals;
use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::time::Instant;
use ipc::channel::Full;
use ipc::message::control::{Action, Reply, Request as Asking};
use ipc::message::trajectory::{AxisTolerances, Begin, GoalTime, Order, Point, Report};
use ipc::message::{MOST_AXES, Rows, trajectory};
use motion::base::Twist;
use motion::kinematics::{DifferentialDrive, JointLimits, Line, LineSpeed, OmniBase, SerialArm, ToolPose};
use motion::{
    AxisLimits, AxisPhase, Hertz, Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared,
    NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
    SmoothSinusoid, TwistLimits,
};
use onbeat_controllers::{
    AxisSettings, BaseController, Cartesian, ControllerManager, Hold, HomedBy, JointEffort, JointPosition,
    JointTrajectory, JointVelocity, ManagedAxis, Member, MemberKind, Port, Sinusoid, SwingSettings,
    TrajectorySettings,
};
use testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// Delivers each message in its cycle, and keeps the replies.
struct Planned {
    messages: Vec<(u64, Vec<u8>)>,
    next: usize,
    cycle: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
}

impl Port for Planned {
    fn bind(&mut self) {}

    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let (cycle, message) = self.messages.get(self.next)?;
        if *cycle > self.cycle.load(Ordering::Relaxed) {
            return None;
        }
        self.next += 1;
        buffer[..message.len()].copy_from_slice(message);
        Some(message.len())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let good = Reply::decode(bytes).is_ok_and(|reply| reply.outcome.is_ok());
        // Accepted or succeeded.
        let good =
            good || Report::decode(bytes).is_ok_and(|report| matches!(bytes[0], 17 | 19) && report.id > 0);
        self.sent.fetch_add(u64::from(good), Ordering::Relaxed);
        Ok(())
    }
}

const AXES: usize = 6;
const CYCLES: u64 = 16_000;

fn settings(axis: usize) -> AxisSettings {
    AxisSettings {
        axis,
        profile: false,
        position_limits: None,
        velocity_limit: RadiansPerSecond(4.0),
        acceleration_limit: RadiansPerSecondSquared(40.0),
        jerk_limit: RadiansPerSecondCubed(800.0),
    }
}

/// A tool that two joints slide along x and y.
const GANTRY: &str = r#"<robot name="gantry"><link name="base"/><link name="cross"/><link name="tool"/>
    <joint name="x" type="prismatic"><parent link="base"/><child link="cross"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" velocity="4" effort="1"/></joint>
    <joint name="y" type="prismatic"><parent link="cross"/><child link="tool"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="4" effort="1"/></joint></robot>"#;

fn cartesian() -> Cartesian {
    let motion = AxisLimits {
        velocity: RadiansPerSecond(4.0),
        acceleration: RadiansPerSecondSquared(40.0),
        jerk: RadiansPerSecondCubed(800.0),
    };
    let speed = LineSpeed { linear: MetresPerSecond(1.0), angular: RadiansPerSecond(1.0) };
    let arm = SerialArm::from_urdf(GANTRY, None, None).unwrap();
    let line = Line::new(arm, &[JointLimits { position: None, motion }; 2], speed).unwrap();
    Cartesian::new(&[0, 1], line).unwrap()
}

/// Two axes in each mode: 0, 1 in CSP, 2 to 5 in CSV. Torques are sent to an axis with only a check
/// of the command.
fn members() -> Vec<Member> {
    let plain =
        |controller: Box<dyn Controller>, axes: &[usize]| Member::new(MemberKind::Plain(controller), axes);
    let limits = TwistLimits {
        velocity: MetresPerSecond(0.4),
        acceleration: MetresPerSecondSquared(1.0),
        jerk: MetresPerSecondCubed(10.0),
        yaw_velocity: RadiansPerSecond(1.0),
        yaw_acceleration: RadiansPerSecondSquared(4.0),
        yaw_jerk: RadiansPerSecondCubed(40.0),
    };
    let differential = DifferentialDrive::new(Metres(0.1), Metres(0.4)).unwrap();
    let differential =
        BaseController::differential(differential, [2, 3], RadiansPerSecond(4.0), limits).unwrap();
    let omni = OmniBase::mecanum(Metres(0.1), Metres(0.3), Metres(0.4), Radians(0.7)).unwrap();
    let omni = BaseController::omni(omni, [2, 3, 4, 5], RadiansPerSecond(4.0), limits).unwrap();
    let follow = TrajectorySettings {
        axes: vec![settings(0), settings(1)],
        robot_axes: AXES,
        points: 100,
        path_tolerance: Some(Radians(0.1)),
        goal_tolerance: Some(Radians(0.1)),
        goal_time: None,
    };
    let limited = AxisSettings { position_limits: Some((Radians(-0.3), Radians(0.3))), ..settings(3) };
    let velocities = [(settings(2), CyclicMode::Velocity), (limited, CyclicMode::Position)];
    let swing = SmoothSinusoid::new(Radians(0.0), Radians(0.2), Hertz(1.0), Seconds(1.0)).unwrap();
    let swing = SwingSettings { axis: settings(0), sinusoid: swing, delay: Seconds(0.0) };
    vec![
        Member::new(MemberKind::Trajectory(Box::new(JointTrajectory::new(follow).unwrap())), &[0, 1]),
        plain(Box::new(JointPosition::new(&[settings(0), settings(1)]).unwrap()), &[0, 1]),
        plain(Box::new(JointVelocity::new(&velocities).unwrap()), &[2, 3]),
        plain(Box::new(JointEffort::new(&[(settings(5), NewtonMetres(1.0))])), &[5]),
        Member::new(MemberKind::Base(Box::new(differential)), &[2, 3]),
        Member::new(MemberKind::Base(Box::new(omni)), &[2, 3, 4, 5]),
        plain(Box::new(Sinusoid::new(&[swing])), &[0]),
        plain(Box::new(Hold), &[0, 1, 2, 3, 4, 5]),
        plain(Box::new(cartesian()), &[0, 1]),
    ]
}

/// A switch every 1500 cycles, with a stop before it.
fn requests() -> Vec<(u64, Vec<u8>)> {
    let mut messages = Vec::new();
    let mut add = |cycle: u64, what| {
        let mut buffer = vec![0; 16];
        Asking { id: cycle, what }.encode(&mut buffer).unwrap();
        messages.push((cycle, buffer));
    };
    for member in 1..9 {
        let cycle = u64::from(member) * 1500;
        add(cycle, Action::Stop);
        add(cycle + 400, Action::SwitchController(member));
    }
    add(14_500, Action::ResetFaults);
    add(14_600, Action::Home(1));
    add(14_700, Action::Disable);
    add(15_000, Action::Enable);
    messages
}

/// One trajectory of fifty points, and another that replaces it.
fn orders() -> Vec<(u64, Vec<u8>)> {
    let mut messages = Vec::new();
    let mut add = |cycle: u64, order: Order| {
        let mut buffer = vec![0; trajectory::size(MOST_AXES)];
        let length = order.encode(&mut buffer).unwrap();
        buffer.truncate(length);
        messages.push((cycle, buffer));
    };
    for (id, cycle) in [(1, 100), (2, 600)] {
        let axes = [0, 1].map(|axis| AxisTolerances { axis, ..Default::default() });
        let axes = Rows::from_slice(&axes).unwrap();
        add(
            cycle,
            Order::Begin(Begin { id, points: 50, start_ns: None, goal_time: GoalTime::Default, axes }),
        );
        for index in 0..50_u32 {
            let place = (f64::from(index + 1) * 0.1).sin() * 0.2;
            let time_from_start_ns = 300_000_000 + u64::from(index) * 10_000_000;
            let positions = Rows::from_slice(&[place, -place]).unwrap();
            let (velocities, accelerations) = (Rows::new(), Rows::new());
            let point = Point { id, index, time_from_start_ns, positions, velocities, accelerations };
            add(cycle, Order::Point(point));
        }
        add(cycle, Order::Commit { id });
    }
    messages
}

// feature(axes): no controller allocates memory after it is made
#[test]
fn no_controller_asks_for_memory_once_it_is_made() {
    let cycle_now = Arc::new(AtomicU64::new(0));
    let sent = Arc::new(AtomicU64::new(0));
    let port =
        |messages| Planned { messages, next: 0, cycle: Arc::clone(&cycle_now), sent: Arc::clone(&sent) };
    let axis = |axis: usize| ManagedAxis {
        mode: if axis < 2 { CyclicMode::Position.into() } else { CyclicMode::Velocity.into() },
        velocity_limit: RadiansPerSecond(4.0),
        homing: HomedBy::Hand,
    };
    let axes: Vec<_> = (0..AXES).map(axis).collect();
    let mut manager = ControllerManager::new(&axes, members(), true)
        .with_ports(Box::new(port(requests())), Box::new(port(orders())));
    let mut reports = [AxisReport { homed: true, ..AxisReport::default() }; AXES];
    let mut commands = [AxisCommand::default(); AXES];
    let mut command = ExternalCommand { axes: vec![None; AXES], ..ExternalCommand::default() };
    let mut moved = [0.0_f64; AXES];
    let (mut slid, mut refused) = (0.0_f64, 0);
    for number in 0..CYCLES {
        cycle_now.store(number, Ordering::Relaxed);
        // Ideal drives: they follow at once.
        for (report, command) in reports.iter_mut().zip(&commands) {
            let enabled = command.request == Request::Enable;
            report.state = Some(if enabled { State::OperationEnabled } else { State::SwitchOnDisabled });
            report.feedback.phase = match (enabled, report.feedback.phase) {
                (false, _) => AxisPhase::NotEnabled,
                (true, AxisPhase::NotEnabled) => AxisPhase::HoldingAt(report.feedback.position),
                (true, _) => AxisPhase::Following,
            };
            report.feedback.fresh = true;
            report.homed_by_hand += u32::from(command.home);
        }
        for axis in 0..AXES {
            let feedback = &mut reports[axis].feedback;
            let setpoint = commands[axis].setpoint;
            let before = feedback.position;
            match (axes[axis].mode.cyclic(), feedback.phase) {
                (CyclicMode::Position, AxisPhase::Following) => feedback.position = setpoint.position,
                (_, AxisPhase::Following) => feedback.position += setpoint.velocity * Seconds(1e-3),
                _ => {}
            }
            feedback.velocity = (feedback.position - before) / Seconds(1e-3);
            moved[axis] += (feedback.position - before).0.abs();
            if (12_500..14_400).contains(&number) && axis < 2 {
                slid += (feedback.position - before).0.abs();
            }
        }
        // A new command every fifth of a second, except for some cycles after a stop, until the
        // last requests.
        if number % 200 == 0 && number < 13_700 && (number < 1500 || number % 1500 > 450) {
            let way = if number % 400 == 0 { 1.0 } else { -1.0 };
            command.freshness = if number % 1400 == 0 { Freshness::Stale } else { Freshness::Fresh };
            let (x, yaw) = (MetresPerSecond(0.2 * way), RadiansPerSecond(0.4));
            command.twist = Some(Twist { x, yaw, ..Twist::default() });
            // Every fourth one is out of reach.
            let far = if number % 800 == 600 { 9.0 } else { 0.2 };
            let position = [way * 0.1, far, 0.0].map(Metres);
            command.pose = Some(ToolPose { position, orientation: [0.0, 0.0, 0.0, 1.0] });
            for target in &mut command.axes[..2] {
                *target = Some(AxisTarget::Position(Radians(way * 0.3)));
            }
            for target in &mut command.axes[2..5] {
                *target = Some(AxisTarget::Velocity(RadiansPerSecond(way)));
            }
            command.axes[5] = Some(AxisTarget::Effort(NewtonMetres(0.1)));
        }
        let cycle = CycleInfo {
            cycle: number,
            release: Instant::from_nanos(1_000_000_000 + number * 1_000_000),
            bus_time: Instant::from_nanos(1_000_000_000 + number * 1_000_000),
            period: Duration::from_millis(1),
            periods: 1,
            stopping: number > CYCLES - 200,
        };
        allocations::watch(true);
        manager.command(&command);
        manager.update(cycle, &mut Io::new(&mut Signals::default(), &reports, &mut commands));
        let output = std::hint::black_box(manager.output());
        allocations::watch(false);
        refused += u32::from(output.refused.is_some());
    }
    assert!(slid > 0.2 && refused > 0, "{slid} {refused}");
    assert_eq!(allocations::calls(), 0, "calls of the allocator");
    // 8 stops, 8 switches, reset, home, disable, enable; two trajectories accepted, one of them
    // succeeded.
    assert_eq!(sent.load(Ordering::Relaxed), 20 + 3, "all of it happened");
    assert!(moved[..4].iter().all(|moved| *moved > 0.2), "{moved:?}");
    assert_eq!(manager.output().control.active, 8);
    allocations::watch(true);
    std::hint::black_box(Box::new(7));
    allocations::watch(false);
    assert!(allocations::calls() > 0, "the counter counts");
}
