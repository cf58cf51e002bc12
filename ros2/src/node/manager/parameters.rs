//! Parameters of the controller manager: `spawner` of ros2_control sets them, and clients read
//! them.

use ipc::description::Description;

use super::broadcasters;
use super::controllers::types;
use super::hardware::update_rate;
use crate::messages::parameter::{
    ListParametersResult, Parameter, ParameterDescriptor, ParameterValue, kind,
};
use crate::node::parameters::Store;

/// Values of the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    update_rate: i64,
    controllers: Vec<Controller>,
}

/// Parameters below the name of a controller.
#[derive(Clone, Debug, PartialEq)]
struct Controller {
    name: String,
    /// Accepted types; the first one is reported.
    types: Vec<String>,
    /// Files that a spawner has named.
    params_file: Vec<String>,
}

impl Values {
    pub(super) fn new(robot: &Description) -> Self {
        let base = robot.base.as_ref().map(|base| base.kind);
        let controllers = robot.controllers.iter().map(|it| Controller {
            name: it.name.clone(),
            types: types(it.kind, base),
            params_file: Vec::new(),
        });
        let broadcasters = broadcasters::of(robot).into_iter().map(|it| Controller {
            name: it.name,
            types: it.types,
            params_file: Vec::new(),
        });
        Self {
            update_rate: update_rate(robot).into(),
            controllers: controllers.chain(broadcasters).collect(),
        }
    }

    /// Controller and name of a parameter below its name.
    fn below<'a>(&self, name: &'a str) -> Option<(&Controller, &'a str)> {
        let (controller, rest) = name.rsplit_once('.')?;
        Some((self.controllers.iter().find(|it| it.name == controller)?, rest))
    }
}

/// Reason for which a value stays as it is.
const FIXED: &str = "it is that of the robot file";

impl Store for Values {
    fn get(&self, name: &str) -> ParameterValue {
        let nothing = ParameterValue::default;
        match name {
            "update_rate" => {
                ParameterValue { kind: kind::INTEGER, integer_value: self.update_rate, ..nothing() }
            }
            "use_sim_time" => ParameterValue { kind: kind::BOOL, ..nothing() },
            _ => match self.below(name) {
                Some((controller, "type")) => {
                    let string_value = controller.types.first().cloned().unwrap_or_default();
                    ParameterValue { kind: kind::STRING, string_value, ..nothing() }
                }
                Some((controller, "params_file")) => ParameterValue {
                    kind: kind::STRING_ARRAY,
                    string_array_value: controller.params_file.clone(),
                    ..nothing()
                },
                _ => nothing(),
            },
        }
    }

    fn describe(&self, name: &str) -> ParameterDescriptor {
        let value = self.get(name);
        let description = match name.rsplit('.').next().unwrap_or(name) {
            "update_rate" => "Cycles a second.",
            "use_sim_time" => "Always false: a cycle's time is that of the machine.",
            "type" => "Kind of the controller in the robot file.",
            "params_file" => {
                "Files named by a spawner. They are not read: the robot file has the controllers' settings."
            }
            _ => "",
        };
        ParameterDescriptor {
            name: name.to_owned(),
            kind: value.kind,
            description: if value.kind == kind::NOT_SET { String::new() } else { description.to_owned() },
            read_only: matches!(name, "update_rate" | "use_sim_time"),
            ..ParameterDescriptor::default()
        }
    }

    fn list(&self, prefixes: &[String]) -> ListParametersResult {
        let wanted = |name: &str| {
            let below =
                |prefix: &String| name.strip_prefix(prefix.as_str()).is_some_and(|it| it.starts_with('.'));
            prefixes.is_empty() || prefixes.iter().any(|prefix| prefix == name || below(prefix))
        };
        let mut names = vec!["update_rate".to_owned(), "use_sim_time".to_owned()];
        names.extend(
            self.controllers
                .iter()
                .flat_map(|it| ["params_file", "type"].map(|name| format!("{}.{name}", it.name))),
        );
        names.retain(|name| wanted(name));
        names.sort();
        let prefixes = self.controllers.iter().map(|it| it.name.clone());
        let prefixes = prefixes.filter(|it| names.iter().any(|name| name.starts_with(&format!("{it}."))));
        ListParametersResult { prefixes: prefixes.collect(), names }
    }

    fn set(&mut self, parameter: &Parameter) -> Result<(), String> {
        let Parameter { name, value } = parameter;
        let old = self.get(name);
        if let Some((controller, "type")) = self.below(name) {
            let types = &controller.types;
            return if value.kind == kind::STRING && types.contains(&value.string_value) {
                Ok(())
            } else {
                let found = &value.string_value;
                let (expected, controller) = (types.join(" or "), &controller.name);
                Err(format!("controller `{controller}` is a {expected} by the robot file, found {found:?}"))
            };
        }
        if let Some((_, "params_file")) = self.below(name) {
            let files = match value.kind {
                kind::STRING => vec![value.string_value.clone()],
                kind::STRING_ARRAY => value.string_array_value.clone(),
                found => {
                    return Err(format!("`{name}`: expected names of files, found {}", kind::name(found)));
                }
            };
            let place =
                self.controllers.iter().position(|it| name.strip_suffix(".params_file") == Some(&it.name));
            if let Some(controller) = place.and_then(|place| self.controllers.get_mut(place)) {
                controller.params_file = files;
            }
            return Ok(());
        }
        match old.kind {
            kind::NOT_SET => {
                let there: Vec<&str> = self.controllers.iter().map(|it| it.name.as_str()).collect();
                Err(format!(
                    "there is no parameter `{name}`; there are update_rate, use_sim_time and, for each of the controllers \
                     {}, type and params_file",
                    there.join(", ")
                ))
            }
            _ if old == *value => Ok(()),
            _ => Err(format!("`{name}` cannot be changed: {FIXED}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::description::ControllerDescription;
    use types::ControllerKind;

    use super::*;

    fn values() -> Values {
        let controller = ControllerDescription {
            name: "arm".into(),
            kind: Some(ControllerKind::JointTrajectory),
            axes: vec![],
        };
        Values::new(&Description {
            period_ns: 1_000_000,
            controllers: vec![controller],
            ..Description::default()
        })
    }

    fn text(name: &str, string_value: &str) -> Parameter {
        let value =
            ParameterValue { kind: kind::STRING, string_value: string_value.into(), ..Default::default() };
        Parameter { name: name.into(), value }
    }

    // feature(ros2): the parameters that `spawner` sets: `NAME.type` as the robot file says, `NAME.params_file`
    #[test]
    fn a_spawners_value_is_accepted_if_the_robot_file_agrees() {
        let mut values = values();
        assert_eq!(values.list(&[]).names, ["arm.params_file", "arm.type", "update_rate", "use_sim_time"]);
        assert_eq!(values.list(&["arm".into()]).names, ["arm.params_file", "arm.type"]);
        assert_eq!(values.list(&[]).prefixes, ["arm"]);
        assert_eq!(values.get("update_rate").integer_value, 1000);
        let genuine = "joint_trajectory_controller/JointTrajectoryController";
        assert_eq!(values.get("arm.type").string_value, genuine);
        assert_eq!(values.set(&text("arm.type", genuine)), Ok(()));
        assert_eq!(values.set(&text("arm.type", "onbeat/joint_trajectory")), Ok(()));
        let other = values.set(&text("arm.type", "diff_drive_controller/DiffDriveController"));
        assert!(other.unwrap_err().contains("by the robot file"));
        let files = ParameterValue {
            kind: kind::STRING_ARRAY,
            string_array_value: vec!["a.yaml".into()],
            ..Default::default()
        };
        values.set(&Parameter { name: "arm.params_file".into(), value: files.clone() }).unwrap();
        assert_eq!(values.get("arm.params_file"), files);
        for refused in
            [text("leg.type", genuine), text("arm.node_options_args", "['-r']"), text("update_rate", "1")]
        {
            assert!(values.set(&refused).is_err(), "{refused:?}");
        }
        for name in values.list(&[]).names {
            let descriptor = values.describe(&name);
            assert_eq!(descriptor.kind, values.get(&name).kind, "{name}");
            assert!(!descriptor.description.is_empty(), "{name}");
        }
        assert_eq!(values.describe("leg.type").kind, kind::NOT_SET);
    }
}
