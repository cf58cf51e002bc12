use super::*;

fn robot() -> Description {
    let controller = |name: &str| ControllerDescription {
        name: name.into(),
        kind: Some(ControllerKind::JointTrajectory),
        axes: vec![],
    };
    Description { controllers: ["a", "b", "c"].map(controller).to_vec(), ..Description::default() }
}

/// Three controllers; `a` is active, `c` not configured.
fn controllers() -> Controllers {
    let mut controllers = Controllers::new(&robot());
    controllers.refresh(0);
    controllers.cleanup("c").unwrap();
    controllers
}

fn states(controllers: &Controllers) -> Vec<(&str, State)> {
    controllers.loaded().collect()
}

// feature(ros2): controllers are loaded, configured, activated, deactivated and unloaded as ros2_control does it, with its refusals
#[test]
fn a_controller_goes_through_the_states_of_ros2_control_one_by_one() {
    let mut all = controllers();
    assert_eq!(states(&all), [("a", State::Active), ("b", State::Inactive), ("c", State::Unconfigured)]);
    assert_eq!(all.load("b").unwrap_err(), "controller `b` is loaded already");
    assert_eq!(all.load("d").unwrap_err(), "the robot file has no controller `d`; it has a, b, c");
    assert_eq!(all.unload("a").unwrap_err(), "controller `a` is active; deactivate it first");
    assert_eq!(all.cleanup("a").unwrap_err(), "controller `a` is active; deactivate it first");
    all.configure("a").unwrap();
    all.unload("b").unwrap();
    for refused in [all.unload("b"), all.configure("b"), all.cleanup("b"), all.unload("d")] {
        assert!(refused.unwrap_err().ends_with("is loaded"));
    }
    assert_eq!(states(&all), [("a", State::Active), ("c", State::Unconfigured)]);
    all.load("b").unwrap();
    all.configure("c").unwrap();
    all.refresh(usize::MAX);
    let now = [("a", State::Inactive), ("b", State::Unconfigured), ("c", State::Inactive)];
    assert_eq!(states(&all), now, "none is active");
    all.unload("a").unwrap();
    all.refresh(0);
    assert_eq!(states(&all)[0], ("a", State::Active), "another program has activated it");
}

#[test]
fn a_switch_is_refused_as_its_strictness_says() {
    let all = controllers();
    let switch = |on: &[&str], off: &[&str], strictness: i32| {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        all.switch(&SwitchControllerRequest {
            activate_controllers: names(on),
            deactivate_controllers: names(off),
            strictness,
            ..SwitchControllerRequest::default()
        })
    };
    let (best_effort, strict, force) = (1, STRICT, FORCE_AUTO);
    let nothing = Ok(Switch::default());
    let to_b = Ok(Switch { deactivate: true, activate: Some(1) });
    for strictness in [0, best_effort, strict, 3, force] {
        assert_eq!(switch(&["b"], &["a"], strictness), to_b);
        assert_eq!(switch(&[], &["a"], strictness), Ok(Switch { deactivate: true, activate: None }));
        assert_eq!(switch(&["a"], &[], strictness), nothing, "it is active");
        assert_eq!(switch(&[], &[], strictness), nothing);
        assert!(switch(&["d"], &[], strictness).is_err() && switch(&[], &["d"], strictness).is_err());
    }
    assert!(switch(&["b"], &[], strict).unwrap_err().starts_with("controller `a` is active"));
    assert!(switch(&["b"], &[], best_effort).is_err(), "nothing of it can be");
    assert_eq!(switch(&["b"], &[], force), to_b, "what is in the way goes");
    // Wrong in a part: all of it, or that part.
    assert_eq!(switch(&["b"], &["a", "d"], strict).unwrap_err(), "no controller `d` is loaded");
    assert_eq!(switch(&["b"], &["a", "d"], best_effort), to_b);
    assert_eq!(switch(&["b"], &["a", "b"], strict).unwrap_err(), "controller `b` is not active");
    assert_eq!(switch(&["b"], &["a", "b"], best_effort), to_b);
    assert_eq!(switch(&["c"], &[], strict).unwrap_err(), "controller `c` is not configured");
    assert_eq!(switch(&["c"], &[], best_effort), nothing);
    assert!(switch(&["a"], &["a"], strict).unwrap_err().contains("at once"));
    assert_eq!(switch(&["a"], &["a"], best_effort), Ok(Switch { deactivate: true, activate: None }));
    assert_eq!(switch(&["b", "a"], &[], strict).unwrap_err(), "one controller at a time can be active");
}
