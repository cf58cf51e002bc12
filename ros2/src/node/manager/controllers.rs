//! The controllers of the robot file, and the broadcasters behind them, as ros2_control's
//! controller manager has them: loaded or not, unconfigured, inactive or active, and which of them
//! a request may change.

use ipc::description::{ControllerDescription, Description};
use types::{BaseKind, ControllerKind};

use super::hardware;
use super::hardware::{Broadcaster, State, command_interfaces, update_rate};
use crate::messages::controller_manager::{ControllerState, SwitchControllerRequest};

/// Controllers by their places in the description, then the broadcasters, and their states; `None`
/// where one is not loaded.
pub(super) struct Controllers {
    names: Vec<String>,
    states: Vec<Option<State>>,
    broadcasters: Vec<Broadcaster>,
}

/// Changes that a request asks for: of the cycle, the first before the second, then of the
/// broadcasters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) deactivate: bool,
    pub(super) activate: Option<u32>,
    pub(super) broadcasters: Broadcasters,
}

/// Places of broadcasters, and the states that they are to have.
pub(super) type Broadcasters = Vec<(usize, State)>;

/// controller_manager_msgs/SwitchController, `strictness`: anything wrong and nothing is done.
const STRICT: i32 = 2;
/// Controllers in the way are deactivated.
const FORCE_AUTO: i32 = 4;

impl Controllers {
    /// Controllers of the robot, all loaded and configured: the robot file is their whole
    /// configuration.
    pub(super) fn new(robot: &Description) -> Self {
        let mut names: Vec<String> = robot.controllers.iter().map(|it| it.name.clone()).collect();
        let mut states = vec![Some(State::Inactive); names.len()];
        let broadcasters = hardware::broadcasters(robot);
        names.extend(broadcasters.iter().map(|it| it.name.clone()));
        states.resize(names.len(), Some(State::Active));
        Self { names, states, broadcasters }
    }

    /// Number of controllers in the cycle: broadcasters have the places behind them.
    fn in_cycle(&self) -> usize {
        self.names.len() - self.broadcasters.len()
    }

    /// True if what a broadcaster of this name would publish is to be published.
    pub(super) fn broadcasts(&self, name: &str) -> bool {
        let place = self.names.iter().position(|it| it == name);
        place.is_none_or(|it| it < self.in_cycle() || self.states[it] == Some(State::Active))
    }

    /// Changes broadcasters, once the cycle has done its part.
    pub(super) fn change(&mut self, broadcasters: &Broadcasters) {
        for &(place, state) in broadcasters {
            self.states[place] = self.states[place].map(|_| state);
        }
    }

    /// Takes over which one is active.
    pub(super) fn refresh(&mut self, active: usize) {
        let in_cycle = self.in_cycle();
        for (index, state) in self.states.iter_mut().take(in_cycle).enumerate() {
            if index == active {
                *state = Some(State::Active);
            } else if *state == Some(State::Active) {
                *state = Some(State::Inactive);
            }
        }
    }

    /// Names and states of the loaded controllers.
    pub(super) fn loaded(&self) -> impl Iterator<Item = (&str, State)> {
        self.names.iter().zip(&self.states).filter_map(|(name, state)| Some((name.as_str(), (*state)?)))
    }

    pub(super) fn load(&mut self, name: &str) -> Result<(), String> {
        let index = self.names.iter().position(|it| it == name).ok_or_else(|| {
            format!(
                "there is no controller `{name}` by the robot file; there are {}",
                self.names.join(", ")
            )
        })?;
        match self.states[index] {
            Some(_) => Err(format!("controller `{name}` is loaded already")),
            None => {
                self.states[index] = Some(State::Unconfigured);
                Ok(())
            }
        }
    }

    /// Configures a controller. An active one is already configured by the robot file, and stays
    /// active: a spawner may come late.
    pub(super) fn configure(&mut self, name: &str) -> Result<(), String> {
        let state = self.state_mut(name)?;
        if *state != State::Active {
            *state = State::Inactive;
        }
        Ok(())
    }

    pub(super) fn cleanup(&mut self, name: &str) -> Result<(), String> {
        *self.resting(name)? = State::Unconfigured;
        Ok(())
    }

    pub(super) fn unload(&mut self, name: &str) -> Result<(), String> {
        self.resting(name)?;
        let index = self.find(name)?;
        self.states[index] = None;
        Ok(())
    }

    /// State of one that is not active.
    fn resting(&mut self, name: &str) -> Result<&mut State, String> {
        match self.state_mut(name)? {
            State::Active => Err(format!("controller `{name}` is active; deactivate it first")),
            state => Ok(state),
        }
    }

    fn state_mut(&mut self, name: &str) -> Result<&mut State, String> {
        let index = self.find(name)?;
        self.states[index].as_mut().ok_or_else(|| not_loaded(name))
    }

    /// Place of one that is loaded.
    fn find(&self, name: &str) -> Result<usize, String> {
        let index = self.names.iter().position(|it| it == name);
        index.filter(|&index| self.states[index].is_some()).ok_or_else(|| not_loaded(name))
    }

    /// Changes for a request. One controller at a time is active, in addition to any broadcasters;
    /// activating an active one changes nothing.
    ///
    /// # Errors
    /// With strictness STRICT any impossible part; else only a list without any possible part.
    pub(super) fn switch(&self, asked: &SwitchControllerRequest) -> Result<Switch, String> {
        let strict = asked.strictness == STRICT;
        let off = self.select(&asked.deactivate_controllers, strict, |name, state| match state {
            State::Active => Ok(()),
            _ => Err(format!("controller `{name}` is not active")),
        })?;
        let on = self.select(&asked.activate_controllers, strict, |name, state| match state {
            State::Unconfigured => Err(format!("controller `{name}` is not configured")),
            State::Active if asked.deactivate_controllers.contains(name) => {
                Err(format!("controller `{name}` cannot be activated and deactivated at once"))
            }
            State::Inactive | State::Active => Ok(()),
        })?;
        let is_broadcaster = |place: &usize| *place >= self.in_cycle();
        let (sent_off, off): (Vec<usize>, Vec<usize>) = off.into_iter().partition(is_broadcaster);
        let (sent_on, on): (Vec<usize>, Vec<usize>) = on.into_iter().partition(is_broadcaster);
        let inactive = sent_off.into_iter().map(|place| (place, State::Inactive));
        let broadcasters: Broadcasters =
            inactive.chain(sent_on.into_iter().map(|place| (place, State::Active))).collect();
        if strict && on.len() > 1 {
            return Err("one controller at a time can be active".into());
        }
        let Some(&index) = on.first() else {
            return Ok(Switch { deactivate: !off.is_empty(), activate: None, broadcasters });
        };
        let in_cycle = self.states.iter().take(self.in_cycle());
        let active = in_cycle.into_iter().position(|state| *state == Some(State::Active));
        match active {
            Some(active) if active == index => Ok(Switch { broadcasters, ..Switch::default() }),
            Some(active) if off.is_empty() && asked.strictness != FORCE_AUTO => Err(format!(
                "controller `{}` is active, and one at a time can be: deactivate it in the same request",
                self.names[active]
            )),
            _ => Ok(Switch { deactivate: active.is_some(), activate: Some(index as u32), broadcasters }),
        }
    }

    /// Positions of the valid names; an error for other names if `strict`, and if no name is
    /// loaded.
    fn select(
        &self,
        names: &[String],
        strict: bool,
        check: impl Fn(&String, State) -> Result<(), String>,
    ) -> Result<Vec<usize>, String> {
        let mut found = Vec::new();
        let mut unknown = Vec::new();
        for name in names {
            match self.find(name) {
                Ok(index) => match check(name, self.states[index].unwrap_or(State::Unconfigured)) {
                    Ok(()) => found.push(index),
                    Err(why) if strict => return Err(why),
                    Err(_) => {}
                },
                Err(why) if strict => return Err(why),
                Err(why) => unknown.push(why),
            }
        }
        match unknown.into_iter().next() {
            Some(why) if found.is_empty() => Err(why),
            _ => Ok(found),
        }
    }
}

fn not_loaded(name: &str) -> String {
    format!("no controller `{name}` is loaded")
}

/// Types under which a controller of this kind is known, that of ros2_controllers first if one is
/// driven alike.
pub(super) fn types(kind: Option<ControllerKind>, base: Option<BaseKind>) -> Vec<String> {
    let forward = "forward_command_controller/ForwardCommandController";
    let known: &[&str] = match kind {
        Some(ControllerKind::JointTrajectory) => &["joint_trajectory_controller/JointTrajectoryController"],
        Some(ControllerKind::JointPosition) => {
            &["position_controllers/JointGroupPositionController", forward]
        }
        Some(ControllerKind::JointVelocity) => {
            &["velocity_controllers/JointGroupVelocityController", forward]
        }
        Some(ControllerKind::JointEffort) => &["effort_controllers/JointGroupEffortController", forward],
        Some(ControllerKind::DiffDrive) => &["diff_drive_controller/DiffDriveController"],
        Some(ControllerKind::OmniDrive) if base == Some(BaseKind::Mecanum) => {
            &["mecanum_drive_controller/MecanumDriveController"]
        }
        Some(ControllerKind::OmniDrive) => &["omni_wheel_drive_controller/OmniWheelDriveController"],
        _ => &[],
    };
    let own = format!("onbeat/{}", kind.map_or("own", ControllerKind::name));
    known.iter().map(|&it| it.to_owned()).chain([own]).collect()
}

/// Type of a controller.
pub(super) fn type_of(controller: &ControllerDescription, robot: &Description) -> String {
    types(controller.kind, robot.base.as_ref().map(|base| base.kind)).swap_remove(0)
}

/// The loaded controllers, as `list_controllers` reports them.
pub(super) fn list(controllers: &Controllers, robot: &Description) -> Vec<ControllerState> {
    let update_rate = update_rate(robot);
    let states = robot.controllers.iter().zip(&controllers.states);
    let states = states.filter_map(|(controller, &state)| {
        let state = state?;
        let (mut commands, mut states) = (Vec::new(), Vec::new());
        if state != State::Unconfigured {
            commands = command_interfaces(controller, robot);
            let axes = controller.axes.iter().filter_map(|&axis| robot.axes.get(axis));
            states = axes
                .flat_map(|axis| ["position", "velocity"].map(|it| format!("{}/{it}", axis.name)))
                .collect();
        }
        Some(ControllerState {
            name: controller.name.clone(),
            state: state.label().to_owned(),
            kind: type_of(controller, robot),
            update_rate,
            claimed_interfaces: if state == State::Active { commands.clone() } else { Vec::new() },
            required_command_interfaces: commands,
            required_state_interfaces: states,
            ..ControllerState::default()
        })
    });
    let broadcasters = controllers.broadcasters.iter().zip(&controllers.states[controllers.in_cycle()..]);
    let broadcasters = broadcasters.filter_map(|(it, &state)| {
        let state = state?;
        let known = state != State::Unconfigured;
        Some(ControllerState {
            name: it.name.clone(),
            state: state.label().to_owned(),
            kind: it.types.first().cloned().unwrap_or_default(),
            update_rate,
            required_state_interfaces: if known { it.state_interfaces.clone() } else { Vec::new() },
            ..ControllerState::default()
        })
    });
    states.chain(broadcasters).collect()
}

#[cfg(test)]
mod tests {
    use ipc::description::{AxisDescription, SensorDescription, SignalDescription};
    use types::{CyclicMode, SensorKind};

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
    fn a_controller_passes_through_the_states_of_ros2_control() {
        let mut all = controllers();
        assert_eq!(
            states(&all),
            [("a", State::Active), ("b", State::Inactive), ("c", State::Unconfigured)]
        );
        assert_eq!(all.load("b").unwrap_err(), "controller `b` is loaded already");
        assert_eq!(
            all.load("d").unwrap_err(),
            "there is no controller `d` by the robot file; there are a, b, c"
        );
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
        let to = |deactivate, activate| Ok(Switch { deactivate, activate, broadcasters: vec![] });
        let to_b = to(true, Some(1));
        for strictness in [0, best_effort, strict, 3, force] {
            assert_eq!(switch(&["b"], &["a"], strictness), to_b);
            assert_eq!(switch(&[], &["a"], strictness), to(true, None));
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
        assert_eq!(switch(&["a"], &["a"], best_effort), to(true, None));
        assert_eq!(switch(&["b", "a"], &[], strict).unwrap_err(), "one controller at a time can be active");
    }

    /// A robot with a controller, a joint and an IMU.
    fn robot_with_sensor() -> Description {
        let mut robot = robot();
        robot.controllers.truncate(2);
        robot.axes = vec![AxisDescription {
            measures_effort: false,
            ..AxisDescription::new("joint", CyclicMode::Position, 2.0, 5.0)
        }];
        let signal = |name: &str| SignalDescription {
            name: name.into(),
            sub_device: "inertial".into(),
            ..SignalDescription::default()
        };
        robot.signals = ["x", "y", "z"].map(signal).to_vec();
        let sensor = |name: &str| SensorDescription {
            name: name.into(),
            kind: SensorKind::Imu,
            frame: String::new(),
            signals: vec![0, 1, 2],
        };
        robot.sensors = vec![sensor("imu_sensor_broadcaster"), sensor("a")];
        robot
    }

    // feature(ros2): `joint_state_broadcaster` and a broadcaster for each sensor by its name are among the controllers: spawned and unspawned next to another, they publish while they are active
    #[test]
    fn broadcasters_are_active_next_to_another_controller() {
        let robot = robot_with_sensor();
        let mut all = Controllers::new(&robot);
        all.refresh(0);
        let (joints, imu) = ("joint_state_broadcaster", "imu_sensor_broadcaster");
        let expected =
            [("a", State::Active), ("b", State::Inactive), (joints, State::Active), (imu, State::Active)];
        assert_eq!(states(&all), expected, "a controller keeps its name");
        let listed = list(&all, &robot);
        let of = |name: &str| listed.iter().find(|it| it.name == name).expect(name);
        assert_eq!(of(joints).kind, "joint_state_broadcaster/JointStateBroadcaster");
        assert_eq!(of(joints).required_state_interfaces, ["joint/position", "joint/velocity"]);
        assert_eq!(of(imu).kind, "imu_sensor_broadcaster/IMUSensorBroadcaster");
        assert_eq!(of(imu).required_state_interfaces, ["inertial/x", "inertial/y", "inertial/z"]);
        assert!(of(imu).claimed_interfaces.is_empty() && of(imu).required_command_interfaces.is_empty());
        let mut switch = |on: &[&str], off: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let switch = all.switch(&SwitchControllerRequest {
                activate_controllers: names(on),
                deactivate_controllers: names(off),
                strictness: STRICT,
                ..SwitchControllerRequest::default()
            })?;
            all.change(&switch.broadcasters);
            let sends = |name: &str| all.broadcasts(name);
            Ok::<_, String>(((switch.deactivate, switch.activate), (sends(joints), sends(imu))))
        };
        assert_eq!(
            switch(&[joints], &[]),
            Ok(((false, None), (true, true))),
            "as a spawner that comes late"
        );
        assert_eq!(switch(&[], &[joints]), Ok(((false, None), (false, true))));
        assert_eq!(switch(&["b", joints], &["a", imu]), Ok(((true, Some(1)), (true, false))));
        assert_eq!(
            switch(&["b"], &[imu]).unwrap_err(),
            "controller `imu_sensor_broadcaster` is not active"
        );
        assert!(all.broadcasts("a") && all.broadcasts("no broadcaster"));
        all.unload(imu).unwrap();
        all.change(&vec![(3, State::Active)]);
        assert!(!all.broadcasts(imu), "what is not loaded stays so");
        all.load(imu).unwrap();
        all.configure(imu).unwrap();
        assert_eq!(states(&all)[3], (imu, State::Inactive));
    }
}
