//! Controller of an arm's tool: straight lines to poses.

use control::controller::{
    AxisReport, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness, Io,
};
use ethercat::cia402::Request;
use ipc::state::Refusal;
use motion::kinematics::{Line, LineError, ToolPose};
use motion::online::Progress;
use motion::{AxisPhase, Radians, TrajectoryPoint};

use crate::axis::elapsed;

/// Moves the axes of an arm, in mode CSP, so that its tool reaches the commanded pose on a straight
/// line.
///
/// A line is planned before it begins, some cycles long ([`Line`]), and then followed with bounded
/// velocity, acceleration and jerk of every joint. An unreachable target is refused once, and the
/// arm stays. Another target, a stop, or a drive that drops out stops the tool on the line; it
/// continues from there.
#[derive(Clone, Debug)]
pub struct Cartesian {
    /// Index of the axis of each joint, from base to tool.
    axes: Vec<usize>,
    line: Line,
    progress: Progress,
    stage: CartesianStage,
    /// Set-point of each joint.
    points: Vec<TrajectoryPoint>,
    /// True for a joint with a set-point that ignores the line, because its drive has not followed
    /// all along.
    left: Vec<bool>,
    commanded: Option<ToolPose>,
    /// Target taken up, or refused, last.
    aim: Option<ToolPose>,
    refused: Option<Refusal>,
}

/// Progress towards a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CartesianStage {
    Rest,
    Planning,
    Moving,
    /// Stopping on the line.
    Braking,
}

/// State of the joints' drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drives {
    /// None follows.
    Off,
    /// Some follow.
    Some,
    /// All follow.
    All,
}

impl Cartesian {
    /// A controller of these axes, in the order of the joints of the line's arm.
    ///
    /// # Errors
    /// Another number of axes than joints.
    pub fn new(axes: &[usize], line: Line) -> Result<Self, LineError> {
        let joints = line.arm().joints().len();
        if axes.len() != joints {
            return Err(LineError::Joints { expected: joints, found: axes.len() });
        }
        Ok(Self {
            axes: axes.to_vec(),
            line,
            progress: Progress::default(),
            stage: CartesianStage::Rest,
            points: vec![TrajectoryPoint::default(); joints],
            left: vec![true; joints],
            commanded: None,
            aim: None,
            refused: None,
        })
    }

    /// Takes the phases of the drives. Set-points of drives that do not follow begin at their
    /// positions.
    fn look(&mut self, reports: &[AxisReport]) -> Drives {
        let mut following = 0;
        for ((axis, point), left) in self.axes.iter().zip(&mut self.points).zip(&mut self.left) {
            let Some(report) = reports.get(*axis) else { continue };
            let place = match report.feedback.phase {
                AxisPhase::Following => {
                    following += 1;
                    continue;
                }
                AxisPhase::NotEnabled => report.feedback.position,
                AxisPhase::HoldingAt(position) => position,
            };
            *point = at_rest(place);
            *left = true;
        }
        match following {
            0 => Drives::Off,
            some if some < self.axes.len() => Drives::Some,
            _ => Drives::All,
        }
    }

    /// Plans, begins and ends lines. `free`: the arm may move.
    fn decide(&mut self, free: bool) {
        let turned_away = !free || self.commanded.is_some_and(|pose| !self.is_aim(pose));
        match self.stage {
            CartesianStage::Rest if free => {
                let Some(pose) = self.commanded.filter(|pose| !self.is_aim(*pose)) else { return };
                self.aim = Some(pose);
                match self.line.aim(self.points.iter().map(|point| point.position), pose) {
                    Ok(()) => self.stage = CartesianStage::Planning,
                    Err(why) => self.refuse(&why),
                }
            }
            CartesianStage::Planning if turned_away => self.rest(),
            CartesianStage::Planning => match self.line.plan() {
                Ok(None) => {}
                Ok(Some(limits)) if self.progress.begin(limits).is_ok() => {
                    self.stage = CartesianStage::Moving
                }
                Ok(Some(_)) => self.refuse(&LineError::Singular),
                Err(why) => self.refuse(&why),
            },
            CartesianStage::Moving if turned_away && self.progress.stop().is_ok() => {
                self.stage = CartesianStage::Braking
            }
            CartesianStage::Rest | CartesianStage::Moving | CartesianStage::Braking => {}
        }
    }

    /// True for the target taken up last. Compared bit by bit, so that a NaN equals itself.
    fn is_aim(&self, pose: ToolPose) -> bool {
        let bits =
            |pose: ToolPose| (pose.position.map(|it| it.0.to_bits()), pose.orientation.map(f64::to_bits));
        self.aim.is_some_and(|aim| bits(aim) == bits(pose))
    }

    /// Rests: a target that is still commanded is taken up again.
    fn rest(&mut self) {
        self.stage = CartesianStage::Rest;
        self.aim = None;
    }

    /// The target is refused, and not tried again.
    fn refuse(&mut self, why: &LineError) {
        self.stage = CartesianStage::Rest;
        self.refused = Some(match why {
            LineError::NotFinite => Refusal::NotFinite,
            LineError::Orientation => Refusal::Orientation,
            LineError::Singular => Refusal::Singular,
            _ => Refusal::OutOfReach,
        });
    }

    /// Continues along the line.
    fn follow(&mut self, info: &CycleInfo) {
        if !matches!(self.stage, CartesianStage::Moving | CartesianStage::Braking) {
            return;
        }
        let place = self.progress.advance(elapsed(info));
        let arrived = self.progress.arrived();
        for (joint, (point, left)) in self.points.iter_mut().zip(&self.left).enumerate() {
            if !left {
                *point = self.line.joint(joint, place);
            }
        }
        match self.stage {
            CartesianStage::Braking if arrived => self.rest(),
            CartesianStage::Moving if arrived => self.stage = CartesianStage::Rest,
            _ => {}
        }
    }
}

impl Controller for Cartesian {
    fn command(&mut self, command: &ExternalCommand) {
        self.commanded = command.pose.filter(|_| command.freshness == Freshness::Fresh);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.refused = None;
        let drives = self.look(reports);
        if drives == Drives::Off {
            self.rest();
        }
        if drives == Drives::All && matches!(self.stage, CartesianStage::Rest) {
            // All begin from where they stand.
            self.left.fill(false);
        }
        self.follow(&info);
        self.decide(drives == Drives::All && !info.stopping);
        for (axis, point) in self.axes.iter().zip(&self.points) {
            if let Some(command) = commands.get_mut(*axis) {
                command.request = Request::Enable;
                command.setpoint = (*point).into();
            }
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, refused: self.refused, ..ControllerOutput::default() }
    }
}

fn at_rest(position: Radians) -> TrajectoryPoint {
    TrajectoryPoint { position, ..TrajectoryPoint::default() }
}
