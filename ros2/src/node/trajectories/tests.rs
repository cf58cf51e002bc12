use super::*;
use crate::messages::basic::Duration;
use crate::messages::trajectory::JointTrajectoryPoint;
use crate::node::bench::{Bench, POSITION, TRAJECTORY};

fn goal() -> FollowGoal {
    let point = JointTrajectoryPoint {
        positions: vec![0.5],
        time_from_start: Duration { sec: 1, nanosec: 0 },
        ..JointTrajectoryPoint::default()
    };
    let joint_names = vec!["right".to_owned()];
    orders::bare(JointTrajectory { joint_names, points: vec![point], ..JointTrajectory::default() })
}

/// Result of a goal for `addressee` while controller `active` is active.
fn given(active: u16, addressee: Addressee) -> Result<Vec<usize>, String> {
    let mut bench = Bench::new(active);
    let Bench { robot, settings, voice, lifecycle, node, .. } = &mut bench;
    let moment = &mut Moment { robot: Some(robot), settings, voice, lifecycle, node };
    let given = give(&mut Orders::default(), &goal(), addressee, None, moment);
    given.map(|(_, axes)| axes).map_err(|invalid| invalid.why)
}

#[test]
fn a_trajectory_needs_its_own_controller_active() {
    let follow = Some(usize::from(TRAJECTORY));
    assert_eq!(given(TRAJECTORY, None), Ok(vec![1]));
    assert_eq!(given(TRAJECTORY, follow), Ok(vec![1]));
    assert_eq!(given(POSITION, follow), Err("controller `follow` is not active".into()));
    let nobody = Err("the active controller follows no trajectories".into());
    assert_eq!(given(POSITION, None), nobody);
    assert_eq!(given(TRAJECTORY, Some(usize::from(POSITION))), nobody);
}

#[test]
fn a_stamp_before_boot_is_too_old_and_zero_means_now() {
    assert_eq!(start(Time::default()), Ok(None));
    let old = start(Time { sec: 1, nanosec: 0 }).unwrap_err();
    assert_eq!(old.code, error_code::OLD_HEADER_TIMESTAMP);
    let soon = start(now()).unwrap().unwrap();
    assert!(soon.abs_diff(crate::clock::monotonic_ns()) < 60_000_000_000, "{soon}");
}
