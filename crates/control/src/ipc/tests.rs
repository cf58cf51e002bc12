use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ethercat::cia402;
use ethercat::main_device::BringUpPhase;
use ethercat::time::Instant;
use ipc::client::Client;
use ipc::command::Command;
use ipc::description::{AxisDescription, Description};
use ipc::server::{Builder, Server};
use ipc::service::protocol::Request;
use ipc::state::{Clamped, Control, Limit, ProcessState, Refusal, State, TrajectoryStatus};
use motion::base::Pose;
use motion::kinematics::ToolPose;
use motion::supervision::StopReason;
use motion::{AxisFeedback, AxisPhase, AxisSetpoint, Metres, NewtonMetres, Radians, RadiansPerSecond};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use record::CycleRecord;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType,
};

use super::*;
use crate::axis::Gates;
use crate::controller::{AxisReport, AxisTarget, Freshness};
use crate::publication::Publication;
use crate::status::Status;
use rt::clock::{Clock, MonotonicClock};
use types::CyclicMode;

/// The cycle's end of an IPC for one axis and a base, in a folder of the test's own.
struct Bench {
    folder: PathBuf,
    ipc: Ipc,
    publication: Publication,
    server: Server,
}

impl Bench {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-ipc-{test}-{}", std::process::id()));
        let axis = AxisDescription::new("axis", CyclicMode::Position, 1.0, 1.0);
        let description = Description { axes: vec![axis], ..Description::default() };
        let mut builder = Builder::new("robot", &description);
        builder.folder(&folder);
        let (ends, server) = builder.open().unwrap();
        let takes = Takes { position: true, velocity: true, effort: true };
        let rules = Rules {
            axes: vec![takes],
            base: Some(BaseRules { sideways: true }),
            pose: true,
            controllers: vec![],
            signals: vec![],
            longest_time_to_live: Duration::from_secs(3600),
        };
        let mut ipc = Ipc::new(ends, rules);
        let mut publication = Publication::new(Duration::from_millis(1), 1);
        publication.set_region(ipc.take_region());
        Self { folder, ipc, publication, server }
    }

    fn attach(&self) -> Client {
        Client::open(self.server.path()).unwrap()
    }

    /// State a reader sees after a cycle with this axis and this output of the controller.
    fn shown(&mut self, report: AxisReport, output: &ControllerOutput) -> State {
        let sent = AxisSetpoint::default();
        let status = Status::initial(0, 1);
        self.publication.show_cycle(&status, Instant::EPOCH, Some(&mut self.ipc), output);
        self.publication.show_axes([(&report, sent)].into_iter());
        self.publication.encode();
        self.attach().state().read().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn now() -> Instant {
    MonotonicClock.now()
}

#[test]
fn twist_arrives_unchanged() {
    let mut bench = Bench::new("twist");
    let mut writer = bench.attach().command().unwrap();
    let twist = Some(motion::base::Twist::new(1.0, -2.0, 3.0));
    let asked = Command { time_to_live_ns: 3_600_000_000_000, twist, ..Command::default() };
    writer.send(&asked).unwrap();
    bench.ipc.commands.read(now, &Gates::default());
    let heard = bench.ipc.commands.external();
    assert_eq!((heard.twist, heard.freshness), (twist, Freshness::Fresh));
    // The next one requests nothing of the base: the previous request has ended.
    let axes = vec![Some(AxisTarget::Velocity(RadiansPerSecond(0.5)))];
    writer.send(&Command { twist: None, axes, ..asked }).unwrap();
    bench.ipc.commands.read(now, &Gates::default());
    let heard = bench.ipc.commands.external();
    let target = Some(AxisTarget::Velocity(RadiansPerSecond(0.5)));
    assert_eq!((heard.twist, &heard.axes[..]), (None, &[target][..]));
}

#[test]
fn pose_arrives_unchanged_and_refusals_are_counted() {
    let mut bench = Bench::new("pose");
    let mut writer = bench.attach().command().unwrap();
    let (position, orientation) = ([1.0, -2.0, 3.0], [0.0, 0.6, 0.0, 0.8]);
    let pose = Some(ToolPose { position: position.map(Metres), orientation });
    writer.send(&Command { time_to_live_ns: 3_600_000_000_000, pose, ..Command::default() }).unwrap();
    bench.ipc.commands.read(now, &Gates::default());
    assert_eq!(bench.ipc.commands.external().pose, pose);
    let state = bench.shown(AxisReport::default(), &ControllerOutput::default());
    assert_eq!((state.command.accepted, state.command.refused), (1, 0));
    let output = ControllerOutput { refused: Some(Refusal::OutOfReach), ..ControllerOutput::default() };
    let state = bench.shown(AxisReport::default(), &output);
    assert_eq!((state.command.refused, state.command.last_refusal), (1, Refusal::OutOfReach as u8));
    let state = bench.shown(AxisReport::default(), &ControllerOutput::default());
    assert_eq!(state.command.refused, 1, "once");
}

// feature(ipc): targets beyond a limit are clamped by the controller, counted once a command, with limit and axis
#[test]
fn a_clamped_command_is_counted_once_with_its_limit_and_axis() {
    let mut bench = Bench::new("clamped");
    let mut writer = bench.attach().command().unwrap();
    let output = |limit, axis| ControllerOutput {
        clamped: Some(Clamped { limit, axis }),
        ..ControllerOutput::default()
    };
    let none = bench.shown(AxisReport::default(), &ControllerOutput::default()).command;
    assert_eq!((none.clamped, none.last_clamp, none.last_clamped_axis), (0, 0, u16::MAX));
    let rows =
        [(Limit::Velocity, None, u16::MAX), (Limit::Effort, Some(0), 0), (Limit::Position, Some(0), 0)];
    for (number, (limit, axis, place)) in rows.into_iter().enumerate() {
        writer.send(&Command { time_to_live_ns: HOUR, ..Command::default() }).unwrap();
        bench.ipc.commands.read(now, &Gates::default());
        for _ in 0..3 {
            let command = bench.shown(AxisReport::default(), &output(limit, axis)).command;
            assert_eq!((command.clamped, command.refused), (number as u64 + 1, 0));
            assert_eq!((command.last_clamp, command.last_clamped_axis), (limit as u8, place));
        }
    }
}

/// The descriptor that the server gives to the holder of the lease, and the connection that holds
/// it.
fn lease(path: &Path) -> (OwnedFd, OwnedFd) {
    let line = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&line, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::send(&line, &Request::Lease.emit(), SendFlags::empty()).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut reply = [0; 2048];
    let mut slices = [IoSliceMut::new(&mut reply)];
    rustix::net::recvmsg(&line, &mut slices, &mut control, RecvFlags::empty()).unwrap();
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next().unwrap();
    (file, line)
}

#[test]
fn a_region_without_a_whole_command_is_refused_and_counted_once() {
    let mut bench = Bench::new("torn");
    let (file, _line) = lease(bench.server.path());
    // The word of the newest publication, behind the region's header: a first one that its slot has
    // not.
    rustix::io::pwrite(&file, &1_u64.to_ne_bytes(), 64).unwrap();
    for _ in 0..3 {
        bench.ipc.commands.read(now, &Gates::default());
    }
    let command = bench.shown(AxisReport::default(), &ControllerOutput::default()).command;
    assert_eq!((command.refused, command.accepted), (1, 0));
    assert_eq!((command.last_refusal, command.last_refused_axis), (Refusal::Torn as u8, u16::MAX));
    assert_eq!(command.freshness, Freshness::Never);
}

#[test]
fn state_shows_reports_of_axes_and_controller() {
    let mut bench = Bench::new("shown");
    let control = Control {
        active: 3,
        enabled: true,
        process: ProcessState::Answering,
        trajectory: 7,
        trajectory_status: TrajectoryStatus::Executing,
        trajectory_elapsed_ns: 9,
    };
    let output = ControllerOutput {
        control,
        pose: Pose { x: Metres(1.0), y: Metres(2.0), yaw: Radians(3.0) },
        twist: motion::base::Twist::new(4.0, 5.0, 6.0),
        commanded: true,
        refused: None,
        clamped: None,
        lost: false,
        left_in_use: false,
        request: None,
        rests: false,
    };
    let feedback = AxisFeedback {
        position: Radians(0.1),
        velocity: RadiansPerSecond(0.2),
        torque: NewtonMetres(0.3),
        phase: AxisPhase::HoldingAt(Radians(0.1)),
        fresh: true,
    };
    let report = AxisReport {
        state: Some(cia402::State::OperationEnabled),
        feedback,
        homing: false,
        homed: true,
        stop: Some(StopReason::Step),
        ..AxisReport::default()
    };
    let state = bench.shown(report, &output);
    assert_eq!(state.control, control);
    assert_eq!((state.base.pose, state.base.twist), ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]));
    let axis = state.axes[0];
    assert!(axis.homed && axis.fresh);
    assert_eq!((axis.drive_state, axis.phase, axis.stop), (5, 1, StopReason::Step as u8));
    assert_eq!((axis.position, axis.velocity, axis.effort), (0.1, 0.2, 0.3));
}

#[test]
fn the_timing_is_that_of_cycles_in_op() {
    let mut bench = Bench::new("op");
    let record = CycleRecord::begin(1, 1_000, 1_010);
    bench.publication.record(&record, BringUpPhase::SafeOp);
    assert_eq!(bench.shown(AxisReport::default(), &ControllerOutput::default()).timing.cycles, 0);
    bench.publication.record(&record, BringUpPhase::Op);
    assert_eq!(bench.shown(AxisReport::default(), &ControllerOutput::default()).timing.cycles, 1);
}

/// A whole command into the region of a lease, as any language writes it (`docs/ipc.md`).
fn publish(region: &OwnedFd, number: u64, words: &[u64]) {
    let store = |word: u64, words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        rustix::io::pwrite(region, &bytes, word * 8).unwrap();
    };
    let slot = 16 + (number % 4) * 24;
    store(slot, &[2 * number - 1]);
    store(slot + 1, words);
    store(slot, &[2 * number]);
    store(8, &[number]);
}

/// The words of a command for one axis.
fn whole(head: [u64; 3], twist: [u64; 4], pose: [u64; 8], axes: [u64; 4]) -> [u64; 19] {
    let all = head.into_iter().chain(twist).chain(pose).chain(axes).collect::<Vec<_>>();
    all.try_into().unwrap()
}

/// At 1 m/s, for a second.
fn forward(number: u64, stamp: Instant) -> [u64; 19] {
    let no_pose = [0; 8];
    let twist = [1, 1.0_f64.to_bits(), 0, 0];
    whole([number, stamp.as_nanos(), 1_000_000_000], twist, no_pose, [1, 0, 0, 0])
}

// feature(ipc): commands of a former lease holder are ignored at any rate; its last command expires
#[test]
fn last_command_of_a_former_holder_goes_stale() {
    let mut bench = Bench::new("former");
    let (file, line) = lease(bench.server.path());
    let start = now();
    publish(&file, 1, &forward(1, start));
    bench.ipc.commands.read(|| start, &Gates::default());
    assert_eq!(
        (bench.ipc.commands.external().freshness, bench.ipc.commands.counts.accepted),
        (Freshness::Fresh, 1)
    );
    drop(line);
    // Once it has answered, the server has seen the earlier hangup.
    drop(bench.attach());
    for cycle in 1..=20 {
        let now = start + Duration::from_millis(100 * cycle);
        publish(&file, 1 + cycle, &forward(1 + cycle, now));
        bench.ipc.commands.read(|| now, &Gates::default());
        let expected = if cycle < 10 { Freshness::Fresh } else { Freshness::Stale };
        assert_eq!(
            (bench.ipc.commands.external().freshness, bench.ipc.commands.counts.accepted),
            (expected, 1)
        );
    }
}

/// A number as a peer might write it.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -1.2..1.2_f64,
        2 => prop_oneof![Just(1.0), Just(-1.0), Just(0.0), Just(-0.0)],
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), -1e9..1e9_f64],
    ]
}

/// A pose as a peer might write it: mostly turned by a unit quaternion.
fn pose() -> impl Strategy<Value = [u64; 8]> {
    let flag = prop_oneof![8 => 0..2_u64, 1 => any::<u64>()];
    let turn = prop_oneof![
        6 => (0.0..6.0_f64).prop_map(|angle| [angle.sin(), 0.0, 0.0, angle.cos()]),
        1 => [number(), number(), number(), number()],
    ];
    (flag, [number(), number(), number()], turn).prop_map(|(flag, [x, y, z], [i, j, k, w])| {
        let [x, y, z, i, j, k, w] = [x, y, z, i, j, k, w].map(f64::to_bits);
        [flag, x, y, z, i, j, k, w]
    })
}

/// The words of a command: time of the stamp from now, time-to-live, pose, twist, axes.
fn words() -> impl Strategy<Value = (i64, u64, [u64; 8], [u64; 8])> {
    let stamp = prop_oneof![4 => -1_000_000_000..=0_i64, 1 => 1..1_000_000_000_i64];
    let time_to_live = prop_oneof![6 => 1..=HOUR, 1 => Just(0), 1 => HOUR + 1..=u64::MAX];
    let twist = (prop_oneof![8 => 0..2_u64, 1 => any::<u64>()], [number(), number(), number()]);
    let axes = (prop_oneof![8 => Just(1_u64), 1 => 0..4_u64, 1 => any::<u64>()], 0..5_u64, number());
    let bits = |((has_twist, [x, y, yaw]), (count, kind, target)): ((u64, [f64; 3]), (u64, u64, f64))| {
        // A base of this bench goes five times as fast as an axis.
        let [x, y, yaw] = [x, y, yaw].map(|it| (it * 5.0).to_bits());
        [has_twist, x, y, yaw, count, kind, target.to_bits(), 0]
    };
    (stamp, time_to_live, pose(), (twist, axes).prop_map(bits))
}

/// Nanoseconds that a command of this bench may hold at most.
const HOUR: u64 = 3_600_000_000_000;

/// Conditions on a command that moves anything, repeated from the documents.
fn may_be(stamp: i64, time_to_live: u64, pose: [u64; 8], words: [u64; 8]) -> bool {
    let [has_twist, x, y, yaw, count, kind, target, _] = words;
    let [x, y, yaw, target] = [x, y, yaw, target].map(f64::from_bits);
    let of_now = stamp <= 0 && (1..=HOUR).contains(&time_to_live);
    let finite = [x, y, yaw].iter().all(|it| it.is_finite());
    let twist = has_twist == 0 || has_twist == 1 && finite;
    let axis = kind == 0 || kind <= 3 && target.is_finite();
    let [has_pose, numbers @ ..] = pose;
    let numbers = numbers.map(f64::from_bits);
    let length = numbers[3..].iter().map(|it| it * it).sum::<f64>().sqrt();
    let turned = numbers.iter().all(|it| it.is_finite()) && (length - 1.0).abs() <= 1e-3;
    let pose = has_pose == 0 || has_pose == 1 && turned;
    of_now && twist && pose && count == 1 && axis
}

// feature(ipc): any bits in a command: only finite numbers are taken, of kinds that the robot follows
#[test]
fn invalid_command_changes_nothing() {
    let mut bench = Bench::new("any-words");
    let (file, _line) = lease(bench.server.path());
    let mut runner = TestRunner::default();
    let cases = runner.config().cases;
    let mut taken = 0;
    for cycle in 1..=u64::from(cases) {
        let (stamp, time_to_live, pose, rest) = words().new_tree(&mut runner).unwrap().current();
        let now = now();
        let before = (
            bench.ipc.commands.external().axes.clone(),
            format!("{:?} {:?}", bench.ipc.commands.external().twist, bench.ipc.commands.external().pose),
            bench.ipc.commands.holds_until,
        );
        let [has_twist, x, y, yaw, count, kind, target, _] = rest;
        let stamp_ns = now.as_nanos().saturating_add_signed(stamp);
        let head = [cycle, stamp_ns, time_to_live];
        publish(&file, cycle, &whole(head, [has_twist, x, y, yaw], pose, [count, 0, kind, target]));
        bench.ipc.commands.read(|| now, &Gates::default());
        let counted = (bench.ipc.commands.counts.accepted, bench.ipc.commands.counts.refused);
        if may_be(stamp, time_to_live, pose, rest) {
            taken += 1;
            assert_eq!(
                bench.ipc.commands.holds_until,
                Some(Instant::from_nanos(stamp_ns.saturating_add(time_to_live)))
            );
        } else {
            let after = (
                bench.ipc.commands.external().axes.clone(),
                format!(
                    "{:?} {:?}",
                    bench.ipc.commands.external().twist,
                    bench.ipc.commands.external().pose
                ),
                bench.ipc.commands.holds_until,
            );
            assert_eq!(after, before, "{rest:x?} stamped {stamp} for {time_to_live}");
        }
        assert_eq!(counted, (taken, cycle - taken), "{rest:x?} stamped {stamp} for {time_to_live}");
    }
    assert!(taken > u64::from(cases) / 50, "{taken}");
}
