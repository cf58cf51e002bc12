//! The node `controller_manager`: services and topic of ros2_control's controller manager, for
//! `ros2 control`, `spawner` and MoveIt.
//!
//! The active controller is the cycle's; that one is loaded or configured is this node's, as in
//! ros2_control.

mod broadcasters;
mod controllers;
mod hardware;
mod parameters;

use ipc::description::Description;
use ipc::message::control::Action;
use ipc::state::NO_CONTROLLER;
use types::{BaseKind, ControllerKind};

pub(crate) use self::broadcasters::JOINT_STATES;
use self::controllers::{Broadcasters, Controllers, Switch};
use self::hardware::State;
use self::parameters::Values;
use super::parameters::{ParameterServices, answer};
use super::{Endpoints, Moment};
use crate::clock::{WallClock, monotonic_ns};
use crate::dds::service::{Origin, Service};
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::Header;
use crate::messages::controller_manager::{
    ControllerManagerActivity, EmptyRequest, ListControllerTypesResponse, ListControllersResponse,
    ListHardwareComponentsResponse, ListHardwareInterfacesResponse, NameRequest, NamedLifecycleState,
    OkResponse, SetHardwareComponentStateRequest, SetHardwareComponentStateResponse,
    SwitchControllerRequest, SwitchControllerResponse,
};

/// Name of this node, in addition to the main node of this program.
pub(crate) const NODE: &str = "controller_manager";

/// Services, topic, parameters, and the states of the controllers.
pub(crate) struct Manager {
    node: String,
    robot: Description,
    controllers: Controllers,
    /// Active controller and enabled drives, as the cycle says.
    active: u16,
    enabled: bool,
    list: Service,
    list_types: Service,
    list_components: Service,
    list_interfaces: Service,
    load: Service,
    configure: Service,
    cleanup: Service,
    unload: Service,
    reload: Service,
    switch: Service,
    set_component: Service,
    parameters: ParameterServices,
    values: Values,
    activity: Writer,
    /// States that were published last.
    published: Option<(Vec<NamedLifecycleState>, Vec<NamedLifecycleState>)>,
}

/// A call that waits for the cycle.
#[derive(Debug)]
pub(crate) enum Call {
    /// The controller that is to be switched to next, and the broadcasters that change with it.
    Switch(Origin, Option<u32>, Broadcasters),
    /// The state that the component is to have.
    SetComponent(Origin, State),
}

/// Base class that ros2_control knows for controllers that are no link of a chain.
const BASE_CLASS: &str = "controller_interface::ControllerInterface";

impl Manager {
    /// Makes the node.
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let node = endpoints.participant.begin_node(NODE);
        let mut serve = |name: &str, kind: &str| {
            endpoints.serve(&format!("~/{name}"), &format!("controller_manager_msgs/{kind}"))
        };
        let manager = Self {
            node,
            robot: robot.clone(),
            controllers: Controllers::new(robot),
            active: NO_CONTROLLER,
            enabled: false,
            list: serve("list_controllers", "ListControllers")?,
            list_types: serve("list_controller_types", "ListControllerTypes")?,
            list_components: serve("list_hardware_components", "ListHardwareComponents")?,
            list_interfaces: serve("list_hardware_interfaces", "ListHardwareInterfaces")?,
            load: serve("load_controller", "LoadController")?,
            configure: serve("configure_controller", "ConfigureController")?,
            cleanup: serve("cleanup_controller", "CleanupController")?,
            unload: serve("unload_controller", "UnloadController")?,
            reload: serve("reload_controller_libraries", "ReloadControllerLibraries")?,
            switch: serve("switch_controller", "SwitchController")?,
            set_component: serve("set_hardware_component_state", "SetHardwareComponentState")?,
            parameters: ParameterServices::new(endpoints)?,
            values: Values::new(robot),
            activity: endpoints.publish(
                "~/activity",
                "controller_manager_msgs/ControllerManagerActivity",
                Quality::Latched,
            )?,
            published: None,
        };
        endpoints.participant.end_node();
        Ok(manager)
    }

    /// Answers calls that need no cycle; returns the calls that need a request to it.
    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) -> Vec<(Call, Action)> {
        let attached = moment.robot.as_deref_mut().is_some_and(|robot| {
            robot.refresh();
            let control = robot.state().control;
            (self.active, self.enabled) = (control.active, control.enabled);
            true
        });
        if attached {
            self.controllers.refresh(self.active.into());
        }
        self.change_states(moment);
        self.answer_lists(attached);
        self.parameters.poll(&mut self.values, &self.node);
        let mut calls = self.switches(moment, attached);
        calls.extend(self.components(moment, attached));
        if attached {
            self.tell_activity();
        }
        calls
    }

    fn change_states(&mut self, moment: &Moment<'_>) {
        let all = &mut self.controllers;
        let say = |what: &'static str, outcome: Result<(), String>| {
            if let Err(why) = &outcome {
                moment.voice.warn(what, format_args!("{what}: refused: {why}"));
            }
            OkResponse { ok: outcome.is_ok() }
        };
        answer(&self.load, |it: NameRequest| say("load_controller", all.load(&it.name)));
        answer(&self.configure, |it: NameRequest| say("configure_controller", all.configure(&it.name)));
        answer(&self.cleanup, |it: NameRequest| say("cleanup_controller", all.cleanup(&it.name)));
        answer(&self.unload, |it: NameRequest| say("unload_controller", all.unload(&it.name)));
        // `bool force_kill`, which changes nothing.
        answer(&self.reload, |_: bool| {
            let why = "controllers are part of the cycle: there is no library to load again";
            say("reload_controller_libraries", Err(why.to_owned()))
        });
    }

    fn answer_lists(&self, attached: bool) {
        let robot = &self.robot;
        answer(&self.list, |_: EmptyRequest| ListControllersResponse {
            controller: if attached { controllers::list(&self.controllers, robot) } else { Vec::new() },
        });
        answer(&self.list_types, |_: EmptyRequest| {
            let base = robot.base.as_ref().map(|base| base.kind);
            let types = known_types(base);
            let base_classes = vec![BASE_CLASS.to_owned(); types.len()];
            ListControllerTypesResponse { types, base_classes }
        });
        answer(&self.list_components, |_: EmptyRequest| ListHardwareComponentsResponse {
            component: attached
                .then(|| hardware::component(robot, self.active, self.enabled))
                .into_iter()
                .collect(),
        });
        answer(&self.list_interfaces, |_: EmptyRequest| {
            if !attached {
                return ListHardwareInterfacesResponse::default();
            }
            let command_interfaces = hardware::commands(robot, self.active);
            ListHardwareInterfacesResponse { command_interfaces, state_interfaces: hardware::states(robot) }
        });
    }

    fn switches(&mut self, moment: &Moment<'_>, attached: bool) -> Vec<(Call, Action)> {
        let mut calls = Vec::new();
        while let Some(request) = self.switch.take() {
            let wanted = request.decode::<SwitchControllerRequest>().and_then(|asked| {
                if !attached {
                    return Err("no cycle is running".to_owned());
                }
                self.controllers.switch(&asked)
            });
            let origin = request.origin();
            match wanted {
                Ok(Switch { deactivate, activate, broadcasters }) => match (deactivate, activate) {
                    (true, next) => {
                        calls.push((Call::Switch(origin, next, broadcasters), Action::Deactivate));
                    }
                    (false, Some(next)) => {
                        let call = Call::Switch(origin, None, broadcasters);
                        calls.push((call, Action::SwitchController(next)));
                    }
                    (false, None) => {
                        self.controllers.change(&broadcasters);
                        self.end_switch(origin, Ok(()));
                    }
                },
                Err(why) => {
                    moment
                        .voice
                        .warn("controller_manager", format_args!("switch_controller: refused: {why}"));
                    self.end_switch(origin, Err(why));
                }
            }
        }
        calls
    }

    fn components(&mut self, moment: &Moment<'_>, attached: bool) -> Vec<(Call, Action)> {
        let mut calls = Vec::new();
        while let Some(request) = self.set_component.take() {
            let wanted = request.decode::<SetHardwareComponentStateRequest>().and_then(|asked| {
                if !attached {
                    return Err("no cycle is running".to_owned());
                }
                hardware::target(&asked.name, &asked.target_state, &self.robot)
            });
            match wanted {
                Ok(state) => {
                    let action = if state == State::Active { Action::Enable } else { Action::Disable };
                    calls.push((Call::SetComponent(request.origin(), state), action));
                }
                Err(why) => {
                    let what = "set_hardware_component_state";
                    moment.voice.warn(what, format_args!("{what}: refused: {why}"));
                    self.end_component(request.origin(), false);
                }
            }
        }
        calls
    }

    /// True if what a broadcaster of this name would publish is to be published.
    pub(crate) fn broadcasts(&self, name: &str) -> bool {
        self.controllers.broadcasts(name)
    }

    /// Continues a call when the cycle has answered: with the next request, or with the answer to
    /// the client.
    pub(crate) fn answered(&mut self, call: Call, outcome: Result<(), String>) -> Option<(Call, Action)> {
        match (call, outcome) {
            (Call::Switch(origin, Some(next), broadcasters), Ok(())) => {
                let call = Call::Switch(origin, None, broadcasters);
                return Some((call, Action::SwitchController(next)));
            }
            (Call::Switch(origin, _, broadcasters), outcome) => {
                if outcome.is_ok() {
                    self.controllers.change(&broadcasters);
                }
                self.end_switch(origin, outcome);
            }
            (Call::SetComponent(origin, state), outcome) => {
                if outcome.is_ok() {
                    self.enabled = state == State::Active;
                }
                self.end_component(origin, outcome.is_ok());
            }
        }
        None
    }

    fn end_switch(&self, origin: Origin, outcome: Result<(), String>) {
        let ok = outcome.is_ok();
        self.switch
            .reply(origin, &SwitchControllerResponse { ok, message: outcome.err().unwrap_or_default() });
    }

    fn end_component(&self, origin: Origin, ok: bool) {
        let state = hardware::state(self.enabled).message();
        self.set_component.reply(origin, &SetHardwareComponentStateResponse { ok, state });
    }

    /// Publishes the states when one has changed.
    fn tell_activity(&mut self) {
        let controllers = self.controllers.loaded();
        let controllers: Vec<_> = controllers
            .map(|(name, state)| NamedLifecycleState { name: name.to_owned(), state: state.message() })
            .collect();
        let now = (controllers, vec![hardware::activity(&self.robot, self.enabled)]);
        if self.published.as_ref() == Some(&now) {
            return;
        }
        let stamp = WallClock::now().stamp(monotonic_ns());
        let (controllers, hardware_components) = now.clone();
        let header = Header { stamp, ..Header::default() };
        self.activity.send(&ControllerManagerActivity { header, controllers, hardware_components });
        self.published = Some(now);
    }

    pub(crate) fn services(&mut self) -> Vec<&mut Service> {
        let mut services = vec![
            &mut self.list,
            &mut self.list_types,
            &mut self.list_components,
            &mut self.list_interfaces,
            &mut self.load,
            &mut self.configure,
            &mut self.cleanup,
            &mut self.unload,
            &mut self.reload,
            &mut self.switch,
            &mut self.set_component,
        ];
        services.extend(self.parameters.services());
        services
    }
}

/// Types of controllers that a robot file can name.
fn known_types(base: Option<BaseKind>) -> Vec<String> {
    let mut types: Vec<String> = ControllerKind::ALL
        .iter()
        .map(|&kind| controllers::types(Some(kind), base).swap_remove(0))
        .chain(broadcasters::known_types())
        .collect();
    types.sort();
    types
}
