use super::*;

fn settings(assignments: &[Assignment], node: &str) -> Result<(Settings, Vec<String>), String> {
    let (namespace, base) = node.rsplit_once('/').unwrap();
    let node = NodeName::new(namespace, base).unwrap();
    let mut settings = Settings::default();
    let mut warnings = Vec::new();
    for assignment in assignments {
        warnings.extend(assignment.apply(&node, &mut settings)?);
    }
    Ok((settings, warnings))
}

// feature(ros2): `--ros-args -p`, `--params-file`: for nodes by name, by namespace and by wildcards
#[test]
fn parameters_of_a_file_are_for_the_nodes_that_it_names() {
    let text = "
/**:
  ros__parameters: {odom_rate: 5, controller_frequency: 20.0}
/cell/*:
  ros__parameters:
    odom_rate: 6.5
cell:
  onbeat:
    ros__parameters:
      odom_frame: map
      publish_tf: false
/cell/**/arm:
  ros__parameters:
    odom_rate: 7
other:
  ros__parameters:
    no_such: 1
";
    let assignments = parse(text, "cell.yaml").unwrap();
    let of = |node: &str| settings(&assignments, node).unwrap();
    let (onbeat, warnings) = of("/cell/onbeat");
    assert_eq!((onbeat.odom_rate, onbeat.odom_frame.as_str(), onbeat.publish_tf), (6.5, "map", false));
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(
        warning.starts_with("cell.yaml: /**: there is no parameter `controller_frequency`"),
        "{warning}"
    );
    assert_eq!(of("/onbeat").0.odom_rate, 5.0);
    assert_eq!((of("/cell/arm").0.odom_rate, of("/cell/left/arm").0.odom_rate), (7.0, 7.0));
    let why = settings(&assignments, "/other").unwrap_err();
    assert!(
        why.starts_with(
            "cell.yaml: /other: there is no parameter `no_such`; there are autostart, base_frame"
        ),
        "{why}"
    );
}

#[test]
fn a_command_line_assignment_is_for_this_or_the_named_node() {
    let assign = |texts: &[&str]| {
        let assignments: Vec<_> = texts.iter().map(|text| Assignment::parse(text).unwrap()).collect();
        settings(&assignments, "/onbeat").map(|(settings, _)| settings)
    };
    assert_eq!(assign(&["odom_rate:=20", "odom_rate:=30"]).unwrap().odom_rate, 30.0, "the later one");
    assert_eq!(assign(&["onbeat:odom_rate:=20", "arm:odom_rate:=30"]).unwrap().odom_rate, 20.0);
    assert_eq!(
        assign(&["scan_frame:='front laser'"]).unwrap_err(),
        "`scan_frame` is `front laser`; expected the name of a frame"
    );
    assert!(!assign(&["publish_tf:=false"]).unwrap().publish_tf);
    for (text, words) in [
        ("no:=1", "there is no parameter `no`; there are autostart, base_frame"),
        ("odom_rate:=fast", "expected a value of type double, found string"),
        ("odom_rate:=[1, 2]", "expected a value of type double, found integer array"),
        ("odom_rate:=-1", "expected 0.1 to 1000"),
        ("use_sim_time:=true", "cannot be changed"),
    ] {
        let why = assign(&[text]).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
    for (text, words) in [
        ("odom_rate=5", "expected NAME:=VALUE"),
        (":=5", "expected the name of a parameter"),
        ("a b:odom_rate:=5", "`a b`: expected the name of a node"),
        ("odom_rate:=", "expected a value, found none"),
        ("odom_rate:={a: 1}", "found names of several"),
        ("odom_rate:=[1", "`[1`: "),
    ] {
        let why = Assignment::parse(text).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
}

#[test]
fn a_file_without_parameters_is_reported_with_its_position() {
    for (text, words) in [
        ("- 1\n- 2\n", "/: expected names of nodes, then `ros__parameters`"),
        ("onbeat: 5\n", "/onbeat: expected names of nodes"),
        ("ros__parameters: {odom_rate: 5}\n", "`ros__parameters`: expected the name of a node above it"),
        ("onbeat:\n  ros__parameters: 5\n", "/onbeat: `ros__parameters`: expected names of parameters"),
        (
            "onbeat:\n  ros__parameters: {odom_rate: }\n",
            "/onbeat: `odom_rate`: expected a value, found none",
        ),
        ("on beat:\n  ros__parameters: {odom_rate: 5}\n", "`on beat`: expected the name of a node"),
        ("onbeat:\n  ros__parameters: {odom_rate: 5, odom_rate: 6}\n", "odom_rate"),
        ("onbeat:\n  ros__parameters: [\n", "line"),
    ] {
        let why = parse(text, "f.yaml").unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
    assert_eq!(parse("", "f.yaml"), Ok(vec![]));
    assert_eq!(parse("/**:\n  ros__parameters:\n", "f.yaml"), Ok(vec![]), "all of them commented out");
    let nested = parse("/**: {ros__parameters: {a: {b: 1}}}", "f.yaml").unwrap();
    assert_eq!(nested[0].parameter.name, "a.b");
}

proptest::proptest! {
    #[test]
    fn any_text_is_assignments_or_an_error(text in "(/\\*\\*|a|ros__parameters|odom_rate|[:{}\\[\\],&*!|>'\"#%@-]|\n| {1,4}|[0-9.]{1,4}){0,40}") {
        let _ = parse(&text, "f.yaml");
        let _ = Assignment::parse(&text);
        let _ = text.parse::<crate::ros_args::rule::Rule>();
    }
}
