//! Paths on the floor, and bases that follow them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

use motion::base::{Pose, Twist};
use motion::{
    Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, OmniBase, Radians,
    RadiansPerSecond, Seconds,
};
use onbeat_experiments::convolution::{ConvolutionProfile, PathLimits};
use onbeat_experiments::path::{Heading, Path, PathError, PathMotion, Place, velocity_for_wheels};
use proptest::prelude::*;
use rsruckig::prelude::*;
use testkit::CountingAllocator;
use testkit::allocations::{self, calls_of};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

fn place(x: f64, y: f64) -> Place {
    [Metres(x), Metres(y)]
}

fn limits(velocity: f64, acceleration: f64, jerk: f64) -> PathLimits {
    PathLimits {
        velocity: MetresPerSecond(velocity),
        acceleration: MetresPerSecondSquared(acceleration),
        jerk: MetresPerSecondCubed(jerk),
    }
}

/// The path of the papers' omnidirectional robot begins and ends at these places.
fn sweep() -> Path {
    Path::bezier([place(0.0, 0.0), place(1.5, 0.0), place(1.5, 1.5), place(3.0, 1.5)]).unwrap()
}

#[test]
fn a_polyline_has_the_length_of_its_lines_and_arcs() {
    let places = [place(0.0, 0.0), place(2.0, 0.0), place(2.0, 1.0)];
    let sharp = Path::polyline(&places, Metres::ZERO).unwrap();
    assert!((sharp.length().0 - 3.0).abs() < 1e-12);
    let round = Path::polyline(&places, Metres(0.5)).unwrap();
    assert!((round.length().0 - (2.0 + 0.5 * FRAC_PI_2)).abs() < 1e-12);
    assert_eq!(round.tightest(), 2.0);
    let corner = round.at(Metres(1.5 + 0.25 * FRAC_PI_2));
    assert!((corner.pose.yaw.0 - FRAC_PI_4).abs() < 1e-12 && corner.curvature == 2.0);
    assert!((corner.pose.x.0 - (1.5 + 0.5 * FRAC_PI_4.sin())).abs() < 1e-12, "{corner:?}");
    let end = round.at(Metres(100.0)).pose;
    assert!(end.distance_to(Pose { x: Metres(2.0), y: Metres(1.0), yaw: Radians::ZERO }).0 < 1e-12);
}

#[test]
fn an_arc_ends_where_geometry_says() {
    let from = Pose { x: Metres(1.0), y: Metres(1.0), yaw: Radians(FRAC_PI_2) };
    let right = Path::arc(from, Metres(2.0), Radians(-FRAC_PI_2)).unwrap();
    let end = right.at(right.length());
    assert!((end.pose.x.0 - 3.0).abs() < 1e-12 && (end.pose.y.0 - 3.0).abs() < 1e-12, "{end:?}");
    assert_eq!(end.curvature, -0.5);
    let line = Path::line(place(3.0, 3.0), place(4.0, 3.0)).unwrap();
    let both = right.clone().then(line.clone()).unwrap();
    assert!((both.length() - right.length() - line.length()).abs().0 < 1e-12);
    assert!(matches!(line.then(right), Err(PathError::Gap(_))));
}

#[test]
fn paths_that_mean_nothing_are_refused() {
    let nan = place(f64::NAN, 0.0);
    assert_eq!(Path::line(nan, place(1.0, 0.0)), Err(PathError::NotFinite));
    assert_eq!(Path::spline(&[place(0.0, 0.0), nan]), Err(PathError::NotFinite));
    assert_eq!(Path::spline(&[place(0.0, 0.0)]), Err(PathError::Empty));
    assert_eq!(Path::spline(&[]), Err(PathError::Empty));
    assert_eq!(Path::line(place(1.0, 1.0), place(1.0, 1.0)), Err(PathError::Twice { place: 0 }));
    let narrow = [place(0.0, 0.0), place(1.0, 0.0), place(1.0, 1.0)];
    let found = Path::polyline(&narrow, Metres(1.5));
    assert_eq!(found, Err(PathError::NoRoom { corner: 1, radius: 1.5 }));
    let back = [place(0.0, 0.0), place(1.0, 0.0), place(0.0, 0.0)];
    assert!(matches!(Path::polyline(&back, Metres(0.1)), Err(PathError::NoRoom { .. })));
    assert!(matches!(Path::polyline(&narrow, Metres(-1.0)), Err(PathError::Radius(_))));
    assert!(matches!(Path::arc(Pose::ORIGIN, Metres(0.0), Radians(1.0)), Err(PathError::Radius(_))));
    assert_eq!(Path::bezier([place(1.0, 1.0); 4]), Err(PathError::Cusp { piece: 0 }));
    let cusp = [place(0.0, 0.0), place(1.0, 1.0), place(0.0, 1.0), place(1.0, 0.0)];
    assert_eq!(Path::bezier(cusp), Err(PathError::Cusp { piece: 0 }));
    let found = PathMotion::new(sweep(), limits(0.0, 1.0, 1.0), Heading::Along);
    assert!(matches!(found, Err(PathError::Limits(_))));
}

#[test]
fn a_base_slows_down_for_a_bend() {
    let bend = Path::arc(Pose::ORIGIN, Metres(0.25), Radians(2.0)).unwrap();
    let motion = PathMotion::new(bend, limits(2.0, 1.0, 10.0), Heading::Along).unwrap();
    // v^2 / r = a: 0.5 m/s.
    assert!(motion.profile().peak_velocity().0 <= 0.5 + 1e-12);
    let middle = motion.at(motion.duration() / 2.0);
    assert!((middle.twist.yaw.0 - middle.twist.x.0 / 0.25).abs() < 1e-12 && middle.twist.y.0 == 0.0);
}

#[test]
fn an_omnidirectional_base_may_look_where_it_likes() {
    let to = Radians(FRAC_PI_2);
    for heading in [Heading::Fixed(Radians(0.3)), Heading::Turning { from: Radians::ZERO, to }] {
        let motion = PathMotion::new(sweep(), limits(0.8, 0.5, 2.0), heading).unwrap();
        let mut pose = motion.at(Seconds::ZERO).pose;
        let (steps, duration) = (20_000, motion.duration());
        for step in 0..steps {
            let time = duration * ((f64::from(step) + 0.5) / f64::from(steps));
            pose = pose.after(motion.at(time).twist, duration / f64::from(steps));
        }
        let end = motion.at(duration).pose;
        assert!(pose.distance_to(end).0 < 1e-6 && (pose.yaw - end.yaw).abs().0 < 1e-6, "{pose:?} {end:?}");
        assert!((end.x.0 - 3.0).abs() < 1e-9 && (end.y.0 - 1.5).abs() < 1e-9, "{end:?}");
    }
}

#[test]
fn central_velocity_can_be_lowered_to_keep_wheels_in_limits() {
    let base = OmniBase::mecanum(Metres(0.1), Metres(0.5), Metres(0.4), Radians(FRAC_PI_4)).unwrap();
    let limit = RadiansPerSecond(6.0);
    let heading = Heading::Turning { from: Radians::ZERO, to: Radians(FRAC_PI_2) };
    let velocity = velocity_for_wheels(&sweep(), heading, |twist| base.wheels(twist), limit);
    let motion = PathMotion::new(sweep(), limits(velocity.0, 50.0, 1000.0), heading).unwrap();
    let fastest = (0..=5000)
        .flat_map(|step| base.wheels(motion.at(motion.duration() * (f64::from(step) / 5000.0)).twist))
        .map(|wheel| wheel.0.abs())
        .fold(0.0, f64::max);
    assert!(fastest <= 6.0 * 1.0001 && fastest > 6.0 * 0.99, "{fastest}");
}

/// Part left of the largest change of direction and bend, relative to the bend, when the way
/// between is halved again and again: nothing, unless the path jumps there. (In a sharp bend a step
/// alone shows much change: the bend's own.)
fn jump_between(path: &Path, mut from: Metres, mut to: Metres) -> f64 {
    let change = |from: Metres, to: Metres| {
        let (from, to) = (path.at(from), path.at(to));
        let turned = (to.pose.yaw - from.pose.yaw).abs().0;
        turned.max(
            (to.curvature - from.curvature).abs() / (1.0 + from.curvature.abs().max(to.curvature.abs())),
        )
    };
    let mut halvings = 0;
    while halvings < 20 && change(from, to) > 1e-3 {
        halvings += 1;
        let middle = from + (to - from) / 2.0;
        if change(from, middle) < change(middle, to) {
            from = middle;
        } else {
            to = middle;
        }
    }
    change(from, to)
}

fn any_places() -> impl Strategy<Value = Vec<Place>> {
    prop::collection::vec((0.3..1.5, -0.8..0.8), 2..8).prop_map(|steps| {
        let mut x = 0.0;
        steps
            .into_iter()
            .map(|(ahead, y)| {
                x += ahead;
                place(x, y)
            })
            .collect()
    })
}

#[test]
fn a_base_on_its_path_allocates_nothing() {
    let places = [place(0.0, 0.0), place(1.0, 0.2), place(2.0, 1.3), place(3.0, 1.5)];
    let motion =
        PathMotion::new(Path::spline(&places).unwrap(), limits(0.5, 0.5, 2.0), Heading::Along).unwrap();
    let made = calls_of(|| {
        for cycle in 0..5000 {
            std::hint::black_box(motion.at(Seconds(f64::from(cycle) * 0.002)));
        }
    });
    assert_eq!(made, 0);
}

proptest! {
    /// The fastest jerk-limited motion from rest to rest, by another's planner, takes as long.
    // feature(motion): convolution-based generator, paths
    #[test]
    fn the_convolution_is_as_fast_as_the_limits_allow(
        distance in 0.01..30.0, velocity in 0.1..3.0, acceleration in 0.1..5.0, jerk in 0.5..50.0,
    ) {
        let ours = ConvolutionProfile::new(Metres(distance), limits(velocity, acceleration, jerk)).unwrap();
        let mut input = InputParameter::<1>::new(None);
        input.target_position[0] = distance;
        (input.max_velocity[0], input.max_acceleration[0], input.max_jerk[0]) = (velocity, acceleration, jerk);
        let mut theirs = Trajectory::<1>::new(None);
        Ruckig::<1, ThrowErrorHandler>::new(None, 0.01).calculate(&input, &mut theirs).unwrap();
        let (ours, theirs) = (ours.duration().0, theirs.get_duration());
        prop_assert!((ours - theirs).abs() < 1e-6 * theirs, "{ours} {theirs}");
    }

    // feature(motion): convolution-based generator, paths
    #[test]
    fn a_spline_passes_its_places_smoothly(places in any_places()) {
        let path = Path::spline(&places).unwrap();
        let (steps, mut passed) = (1000, 0);
        let mut last = path.at(Metres::ZERO);
        let step = path.length() / f64::from(steps);
        for number in 0..=steps {
            let along = step * f64::from(number);
            let here = path.at(along);
            // As far on the floor as on the way, but for the bend.
            let moved = last.pose.distance_to(here.pose).0;
            if number > 0 {
                let turned = (here.pose.yaw - last.pose.yaw).0;
                prop_assert!((moved - step.0).abs() < (1e-3 + turned * turned) * step.0, "{moved} {step}");
                let jump = jump_between(&path, along - step, along);
                prop_assert!(jump < 1e-3, "{jump} {last:?} {here:?}");
            }
            if let Some(place) = places.get(passed) {
                let at = Pose { x: place[0], y: place[1], yaw: Radians::ZERO };
                passed += usize::from(here.pose.distance_to(at) <= step);
            }
            last = here;
        }
        prop_assert_eq!(passed, places.len());
        prop_assert!(path.tightest().is_finite());
    }

    #[test]
    fn distances_along_a_curve_are_lengths(at in 0.0..1.0_f64, ahead in 0.0..0.2_f64) {
        let path = sweep();
        let (from, to) = (path.length() * at, path.length() * (at + ahead).min(1.0));
        let steps = 2000;
        let point = |step: i32| path.at(from + (to - from) * (f64::from(step) / f64::from(steps))).pose;
        let length: f64 = (0..steps).map(|step| point(step).distance_to(point(step + 1)).0).sum();
        prop_assert!((length - (to - from).0).abs() < 1e-6, "{length}");
    }

    #[test]
    fn the_twist_is_the_motion_of_the_pose(at in 0.01..0.99, yaw in -3.0..3.0) {
        for heading in [Heading::Along, Heading::Fixed(Radians(yaw)), Heading::Turning { from: Radians(0.2), to: Radians(yaw) }] {
            let motion = PathMotion::new(sweep(), limits(0.8, 0.5, 2.0), heading).unwrap();
            let step = Seconds(1e-5);
            let time = motion.duration() * at;
            let [before, here, after] = [-1.0, 0.0, 1.0].map(|away| motion.at(time + step * away));
            let (sin, cos) = here.pose.yaw.0.sin_cos();
            let (x, y) = ((after.pose.x - before.pose.x).0 / 2e-5, (after.pose.y - before.pose.y).0 / 2e-5);
            let slope = Twist {
                x: MetresPerSecond(cos * x + sin * y),
                y: MetresPerSecond(cos * y - sin * x),
                yaw: RadiansPerSecond((after.pose.yaw - before.pose.yaw).0 / 2e-5),
            };
            prop_assert!((slope.x - here.twist.x).abs().0 < 1e-5, "{slope:?} {here:?}");
            prop_assert!((slope.y - here.twist.y).abs().0 < 1e-5, "{slope:?} {here:?}");
            prop_assert!((slope.yaw - here.twist.yaw).abs().0 < 1e-4, "{slope:?} {here:?}");
        }
    }
}
