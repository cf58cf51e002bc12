//! Frames: places on the robot, fixed to each other.
use onbeat_robot::RobotConfig;

const BASE: &str = include_str!("../../../examples/first-drive.toml");
const M4K: &str = include_str!("../../../examples/m4k.toml");

#[test]
fn a_frame_is_on_the_base_unless_it_says_where() {
    let text = format!(
        "{BASE}\n[[frame]]\nname = \"tool\"\nparent = \"plate\"\n[[frame]]\nname = \"plate\"\nxyz = [0, 0, 1]\n"
    );
    let robot = RobotConfig::parse(&text, "r.toml").unwrap();
    let [tool, plate] = robot.frames.as_slice() else { panic!("{:?}", robot.frames) };
    assert_eq!((tool.parent.as_str(), plate.parent.as_str()), ("plate", "base_link"));
    assert_eq!((tool.xyz, plate.xyz, plate.rpy), ([0.0; 3], [0.0, 0.0, 1.0], [0.0; 3]));
}

#[test]
fn a_frame_that_cannot_be_is_named_with_its_place() {
    for (keys, sentence) in [
        ("name = \"a b\"", "the frame \"a b\", expected letters, digits and signs without blanks"),
        ("name = \"/a\"", "the frame \"/a\", expected letters"),
        ("name = \"odom\"", "a second frame \"odom\", expected a name used once"),
        ("name = \"base_link\"", "a second frame \"base_link\""),
        ("name = \"left-wheel\"", "a second frame \"left-wheel\""),
        ("name = \"it\"\nxyz = [1, 2]", "xyz of 2 numbers, expected three finite numbers: correct xyz"),
        ("name = \"it\"\nrpy = [1, 2, inf]", "rpy with inf, expected three finite numbers: correct rpy"),
        (
            "name = \"it\"\nparent = \"base_lnk\"",
            "the frame \"it\" on the unknown frame \"base_lnk\", expected the name of a frame: did you mean \"base_link\"?",
        ),
        ("name = \"it\"\nparent = \"it\"", "the frame \"it\", which is fixed to itself"),
        (
            "name = \"it\"\nparent = \"other\"\n[[frame]]\nname = \"other\"\nparent = \"it\"",
            "the frame \"it\", which is fixed to itself",
        ),
    ] {
        let error =
            RobotConfig::parse(&format!("{M4K}\n[[frame]]\n{keys}\n"), "r.toml").unwrap_err().to_string();
        assert!(error.contains(sentence), "{keys}: {error}");
    }
}
