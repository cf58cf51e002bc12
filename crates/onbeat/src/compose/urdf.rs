//! An arm's URDF, checked before it is handed on: clients get one that can be read and names the
//! axes' joints.
//!
//! Frames that are fixed to each other: the axles of a base's wheels, and the frames of the robot
//! file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use ipc::description::FrameDescription;
use motion::SerialArm;
use robot::{Arm, Axis, Base, BaseKind, ControllerKind, RobotConfig};
use roxmltree::{Document, Node, ParsingOptions};

use crate::{UrdfError, UrdfFileError};

/// Bytes of a URDF at most: a hundred times what large robots have. Meshes are files of their own.
const LARGEST: u64 = 16 << 20;

/// Elements and texts of a URDF at most.
const MOST_NODES: u32 = 1_000_000;

/// Attributes of an element of a URDF at most: they are compared with each other.
const MOST_ATTRIBUTES: usize = 1_000;

/// Joints named where another was expected.
const NAMES_LISTED: usize = 12;

/// The text of `arm`'s URDF.
pub(super) fn urdf(arm: &Arm, axes: &[Axis]) -> Result<String, UrdfError> {
    let path = &arm.urdf;
    let text = read(path).and_then(|text| check(&text, arm, axes).map(|()| text));
    text.map_err(|source| UrdfError::File { path: path.clone(), source })
}

/// The joints from base to tool; `None` for a robot without a controller of the tool.
pub(super) fn tool(robot: &RobotConfig) -> Result<Option<SerialArm>, UrdfError> {
    let moves = robot.controllers.iter().any(|it| it.kind == ControllerKind::Cartesian);
    let Some(arm) = robot.arm.as_ref().filter(|_| moves) else { return Ok(None) };
    let read = SerialArm::from_urdf(&urdf(arm, &robot.axes)?, arm.base.as_deref(), arm.tool.as_deref());
    read.map(Some).map_err(|source| UrdfError::Tool { path: arm.urdf.clone(), source })
}

fn read(path: &Path) -> Result<String, UrdfFileError> {
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(UrdfFileError::NotRegular);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let found = about.len().max(bytes.len() as u64);
        return Err(UrdfFileError::TooLong { found, most: LARGEST });
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| UrdfFileError::NotText { at: error.utf8_error().valid_up_to() })?;
    if text.trim().is_empty() { Err(UrdfFileError::Empty) } else { Ok(text) }
}

/// Checks that the text is a URDF with a joint for each axis of the arm.
fn check(text: &str, arm: &Arm, axes: &[Axis]) -> Result<(), UrdfFileError> {
    check_attributes(text)?;
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(UrdfFileError::Xml)?;
    let root = document.root_element();
    if !root.has_tag_name("robot") {
        return Err(UrdfFileError::Root { found: root.tag_name().name().to_owned() });
    }
    let mut joints = BTreeMap::new();
    for joint in root.children().filter(|node| node.has_tag_name("joint")) {
        let name = joint.attribute("name").unwrap_or_default();
        if joints.insert(name, joint).is_some() {
            return Err(UrdfFileError::TwoJoints { line: line(joint), joint: name.to_owned() });
        }
    }
    for (axis, joint) in axes.iter().zip(&arm.joints) {
        let Some(joint) = joint else { continue };
        let (joint, axis) = (joint.clone(), axis.name.clone());
        let Some(node) = joints.get(joint.as_str()) else {
            let known: Vec<_> = joints.keys().take(NAMES_LISTED).copied().collect();
            let more = if joints.len() > NAMES_LISTED { ", ..." } else { "" };
            let known = if joints.is_empty() {
                "its joints, of which there is none".into()
            } else {
                known.join(", ") + more
            };
            return Err(UrdfFileError::NoJoint { joint, axis, known });
        };
        if node.attribute("type") == Some("fixed") {
            return Err(UrdfFileError::Fixed { line: line(*node), joint, axis });
        }
    }
    joints.iter().try_for_each(|(name, joint)| limits(name, *joint))
}

/// Checks that no element has an excessive number of attributes. Everything from one `<` to the
/// next, which no value may contain, counts: also text after the element, and a comment.
fn check_attributes(text: &str) -> Result<(), UrdfFileError> {
    let mut line = 1;
    for part in text.split('<') {
        // Most texts and comments have none.
        let values = part.matches(['"', '\'']).count() / 2;
        if values > MOST_ATTRIBUTES && part.matches('=').count() > MOST_ATTRIBUTES {
            return Err(UrdfFileError::Attributes { line, most: MOST_ATTRIBUTES });
        }
        line += part.matches('\n').count();
    }
    Ok(())
}

/// Limits that are numbers, the lower one first.
fn limits(name: &str, joint: Node<'_, '_>) -> Result<(), UrdfFileError> {
    let Some(limit) = joint.children().find(|node| node.has_tag_name("limit")) else { return Ok(()) };
    let (line, name) = (line(limit), name.to_owned());
    let number = |key| {
        let Some(text) = limit.attribute(key) else { return Ok(None) };
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let (joint, found) = (name.clone(), text.to_owned());
        number.map(Some).ok_or(UrdfFileError::Limit { line, joint, key, found })
    };
    let (lower, upper) = (number("lower")?.unwrap_or(0.0), number("upper")?.unwrap_or(0.0));
    number("velocity")?;
    number("effort")?;
    if lower <= upper {
        return Ok(());
    }
    Err(UrdfFileError::Limits { line, joint: name, lower, upper })
}

/// Line of an element.
fn line(node: Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

/// Frames in the description for clients. A wheel's frame has the name of its axis, and does not
/// turn with the wheel.
pub(crate) fn frames(robot: &RobotConfig) -> Vec<FrameDescription> {
    let wheel = |base: &Base, index: usize, axis: usize| FrameDescription {
        name: robot.axes[axis].name.clone(),
        parent: base.base_frame.clone(),
        translation: axle(base, index),
        rotation: quaternion([0.0; 3]),
    };
    let wheels = robot.base.iter().flat_map(|base| {
        base.wheels.iter().enumerate().map(move |(index, &axis)| wheel(base, index, axis))
    });
    let named = robot.frames.iter().map(|frame| FrameDescription {
        name: frame.name.clone(),
        parent: frame.parent.clone(),
        translation: frame.xyz,
        rotation: quaternion(frame.rpy),
    });
    wheels.chain(named).collect()
}

/// Place of a wheel's axle in the base's frame, which is on the floor in the middle of the wheels.
fn axle(base: &Base, index: usize) -> [f64; 3] {
    let left = if index % 2 == 0 { 1.0 } else { -1.0 };
    let ahead = match base.kind {
        BaseKind::Differential => 0.0,
        BaseKind::Mecanum | BaseKind::Omni if index < 2 => 1.0,
        BaseKind::Mecanum | BaseKind::Omni => -1.0,
    };
    [ahead * base.wheelbase / 2.0, left * base.track / 2.0, base.wheel_radius]
}

/// Roll, pitch and yaw, about fixed axes in this order, as a unit quaternion x, y, z, w.
fn quaternion(rpy: [f64; 3]) -> [f64; 4] {
    let [(sr, cr), (sp, cp), (sy, cy)] = rpy.map(|angle| (angle / 2.0).sin_cos());
    [
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    ]
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use super::*;

    const GOOD: &str = r#"<?xml version="1.0"?>
<robot name="arm">
  <joint name="shoulder" type="revolute"><limit lower="-1" upper="1" velocity="2" effort="3"/></joint>
  <joint name="axis-3" type="continuous"/>
  <joint name="flange" type="fixed"/>
</robot>
"#;

    fn arm(joints: &str) -> (Arm, Vec<Axis>) {
        let text = include_str!("../../../../examples/six-axis.toml").to_owned();
        let text = text + &format!("\n[arm]\nurdf = \"arm.urdf\"\njoints = {{ {joints} }}\n");
        let robot = RobotConfig::parse(&text, "six-axis.toml").unwrap();
        (robot.arm.unwrap(), robot.axes)
    }

    fn checked(text: &str) -> Result<(), UrdfFileError> {
        let (arm, axes) = arm("axis-2 = \"shoulder\", axis-3 = \"axis-3\"");
        check(text, &arm, &axes)
    }

    #[test]
    fn a_urdf_that_names_the_joints_is_one() {
        checked(GOOD).unwrap();
        let example = include_str!("../../../../examples/arm.urdf");
        let robot = RobotConfig::parse(include_str!("../../../../examples/arm.toml"), "arm.toml").unwrap();
        check(example, &robot.arm.unwrap(), &robot.axes).unwrap();
    }

    // feature(program): URDFs that are none, or name other joints
    #[test]
    fn invalid_urdf_is_reported() {
        for (good, bad, expected) in [
            (GOOD, "not xml", "expected XML"),
            ("</robot>", "", "expected XML"),
            ("robot", "sdf", "its outermost element is <sdf>, expected <robot>"),
            (
                "\"shoulder\"",
                "\"elbow\"",
                "no joint \"shoulder\" for axis \"axis-2\", expected one of axis-3, elbow, flange: correct [arm.joints]",
            ),
            ("\"flange\"", "\"shoulder\"", "line 5, two joints \"shoulder\""),
            ("continuous", "fixed", "joint \"axis-3\" of axis \"axis-3\" is fixed"),
            ("upper=\"1\"", "upper=\"nan\"", "line 3, joint \"shoulder\" has upper=\"nan\" as a limit"),
            ("effort=\"3\"", "effort=\"inf\"", "effort=\"inf\" as a limit, expected a number"),
            ("velocity=\"2\"", "velocity=\"fast\"", "velocity=\"fast\""),
            ("lower=\"-1\"", "lower=\"2\"", "limits from 2 to 1, expected the lower one first"),
        ] {
            assert!(GOOD.contains(good));
            let found = checked(&GOOD.replace(good, bad)).unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
        }
        let found = checked("<robot name=\"arm\"/>").unwrap_err().to_string();
        assert!(found.contains("expected one of its joints, of which there is none"), "{found}");
    }

    // feature(axes): `cartesian`: links of base and tool that the URDF does not have are refused
    #[test]
    fn the_tool_hangs_on_links_of_the_urdf() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut robot =
            RobotConfig::parse(include_str!("../../../../examples/arm.toml"), "arm.toml").unwrap();
        let described = robot.arm.as_mut().unwrap();
        described.urdf = folder.join("arm.urdf");
        let arm = tool(&robot).unwrap().unwrap();
        assert_eq!((arm.base_link(), arm.tip_link(), arm.joints().len()), ("base", "tool", 6));
        for (base, link, wanted) in [
            ("base", "grip", "the URDF has no link named \"grip\": correct base and tool"),
            ("wrist", "forearm", "no row of joints leads from link \"wrist\" to link \"forearm\""),
            ("hand", "tool", "no joint moves between link \"hand\" and link \"tool\""),
        ] {
            let described = robot.arm.as_mut().unwrap();
            (described.base, described.tool) = (Some(base.into()), Some(link.into()));
            let found = tool(&robot).unwrap_err().to_string();
            assert!(found.contains(wanted), "{found}");
        }
        robot.controllers.retain(|it| it.kind.name() != "cartesian");
        assert!(tool(&robot).unwrap().is_none(), "nobody asks for its tool");
    }

    #[test]
    fn endless_elements_and_growing_entities_are_refused() {
        let deep = format!("<robot>{}", "<a>".repeat(1_000_000));
        assert!(checked(&deep).unwrap_err().to_string().contains("expected XML"));
        let wide = format!("<robot>{}</robot>", "<a/>".repeat(1_000_001));
        assert!(checked(&wide).unwrap_err().to_string().contains("nodes limit reached"));
        let entities =
            "<!DOCTYPE robot [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><robot>&b;</robot>";
        assert!(checked(entities).unwrap_err().to_string().contains("expected XML"));
        let attributes: String = (0..200_000).map(|number| format!("a{number}='1'\n")).collect();
        let found = checked(&format!("<robot>\n<link {attributes}/></robot>")).unwrap_err().to_string();
        assert_eq!(found, "line 2, an element with more than 1000 attributes, expected a URDF");
    }

    /// Fault of a file of these bytes, made longer to `length`.
    fn read_of(name: &str, bytes: &[u8], length: u64) -> String {
        let path = std::env::temp_dir().join(format!("onbeat-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let found = read(&path).unwrap_err().to_string();
        fs::remove_file(path).unwrap();
        found
    }

    #[test]
    fn missing_and_invalid_files_differ() {
        assert!(read_of("empty.urdf", b" \n", 2).contains("it is empty, expected a URDF"));
        assert!(read_of("bytes.urdf", &[b'a', 0xFF], 2).contains("byte 1 is no UTF-8"));
        assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("no regular file"));
        let found = read_of("large.urdf", b"", 300 << 20);
        assert!(found.contains("314572800 bytes, expected a URDF of at most 16777216"), "{found}");
    }

    // feature(ros2): `[[frame]]`: places on the robot, fixed to each other; the axles of a base by its sizes
    #[test]
    fn wheels_follow_the_base_and_frames_the_file() {
        let text = include_str!("../../../../examples/omni.toml").to_owned();
        let text =
            text + "\n[[frame]]\nname = \"laser\"\nxyz = [0.1, 0, 0.2]\nrpy = [0, 0, 3.141592653589793]\n";
        let frames = frames(&RobotConfig::parse(&text, "omni.toml").unwrap());
        let names: Vec<_> = frames.iter().map(|it| (it.name.as_str(), it.parent.as_str())).collect();
        assert_eq!(names[..2], [("wheel-1", "base_link"), ("wheel-2", "base_link")]);
        let places: Vec<_> = frames.iter().map(|it| it.translation).collect();
        let (front, left, up) = (0.17, 0.19, 0.0762);
        assert_eq!(places[..2], [[front, left, up], [front, -left, up]]);
        assert_eq!(places[2..4], [[-front, left, up], [-front, -left, up]]);
        assert_eq!((names[4], places[4]), (("laser", "base_link"), [0.1, 0.0, 0.2]));
        assert!(near(frames[4].rotation, [0.0, 0.0, 1.0, 0.0]), "{frames:?}");
    }

    #[test]
    fn angles_match_a_urdf() {
        let half = FRAC_PI_2.sin() / 2_f64.sqrt();
        assert!(near(quaternion([FRAC_PI_2, 0.0, 0.0]), [half, 0.0, 0.0, half]));
        assert!(near(quaternion([0.0, FRAC_PI_2, 0.0]), [0.0, half, 0.0, half]));
        // About x, then about the fixed z: (0, 0, half, half) * (half, 0, 0, half).
        assert!(near(quaternion([FRAC_PI_2, 0.0, FRAC_PI_2]), [0.5, 0.5, 0.5, 0.5]));
        assert!(near(quaternion([PI, 0.0, 0.0]), [1.0, 0.0, 0.0, 0.0]));
    }

    fn near(found: [f64; 4], expected: [f64; 4]) -> bool {
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12)
    }
}
