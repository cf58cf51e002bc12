//! Services that change the state of the cycle, through the ports `control` and `stop`: enable, disable, stop, reset
//! faults, switch controllers. Each request is answered when the cycle has replied.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{ErrorKind, Read, Write};

use ipc::channel::Channel;
use ipc::description::Description;
use ipc::message::control::{Action, Reply, Request, SIZE};

use super::commands::attached;
use super::{Endpoints, Moment};
use crate::clock::monotonic_ns;
use crate::dds::DdsError;
use crate::dds::service::{self, Origin, Service};
use crate::messages::service::{
    ControllerState, Done, ListControllersResponse, SetBoolRequest, SwitchControllerRequest,
    SwitchControllerResponse,
};
use crate::robot::Robot;
use types::ControllerKind;

/// Services, and the requests that the cycle has not answered yet.
pub(crate) struct Control {
    triggers: Vec<(Service, Action)>,
    set_enabled: Service,
    switch: Service,
    list: Service,
    /// Ports by name, open while a request is pending: others may need them, too.
    channels: HashMap<&'static str, Channel>,
    waiting: HashMap<u64, Waiting>,
    last_id: u64,
}

struct Waiting {
    from: From,
    origin: Origin,
    until_ns: u64,
}

/// Service that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Trigger(usize),
    SetEnabled,
    Switch,
}

/// Timeout: a cycle answers all requests unless it hangs.
const LONGEST_NS: u64 = 30_000_000_000;

impl Control {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        let named = [
            ("enable", Action::Enable),
            ("disable", Action::Disable),
            ("stop", Action::Stop),
            ("reset_faults", Action::ResetFaults),
        ];
        let mut triggers = Vec::new();
        for (name, action) in named {
            triggers.push((endpoints.serve(&format!("~/{name}"), "std_srvs/Trigger")?, action));
        }
        let manager = |name: &str| format!("controller_manager/{name}");
        Ok(Self {
            triggers,
            set_enabled: endpoints.serve("~/set_enabled", "std_srvs/SetBool")?,
            switch: endpoints
                .serve(&manager("switch_controller"), "controller_manager_msgs/SwitchController")?,
            list: endpoints
                .serve(&manager("list_controllers"), "controller_manager_msgs/ListControllers")?,
            channels: HashMap::new(),
            waiting: HashMap::new(),
            last_id: 0,
        })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        for index in 0..self.triggers.len() {
            while let Some(request) = self.triggers[index].0.take() {
                let action = self.triggers[index].1;
                self.ask(From::Trigger(index), request.origin(), Ok(action), moment);
            }
        }
        while let Some(request) = self.set_enabled.take() {
            let asked = request.decode::<SetBoolRequest>();
            let action = asked.map(|asked| if asked.data { Action::Enable } else { Action::Disable });
            self.ask(From::SetEnabled, request.origin(), action, moment);
        }
        while let Some(request) = self.switch.take() {
            self.switch(&request, moment);
        }
        while let Some(request) = self.list.take() {
            let controller = moment.robot.as_deref_mut().map(list).unwrap_or_default();
            self.list.reply(request.origin(), &ListControllersResponse { controller });
        }
        self.receive(moment);
    }

    /// Drops the pending requests, after the end of the cycle.
    pub(crate) fn lost(&mut self, why: &str) {
        self.channels.clear();
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            self.answer(waiting.from, waiting.origin, Err(why.into()));
        }
    }

    /// Ports that are open.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values()
    }

    pub(crate) fn services(&mut self) -> Vec<&mut Service> {
        let mut services: Vec<_> = self.triggers.iter_mut().map(|(service, _)| service).collect();
        services.extend([&mut self.set_enabled, &mut self.switch, &mut self.list]);
        services
    }

    fn switch(&mut self, request: &service::Request, moment: &mut Moment<'_>) {
        let wanted = request.decode::<SwitchControllerRequest>().and_then(|asked| {
            let robot = attached(&mut moment.robot)?;
            robot.refresh();
            let active = usize::from(robot.state().control.active);
            controller_to_activate(&asked, robot.description(), active)
        });
        match wanted {
            Ok(None) => {
                self.answer(From::Switch, request.origin(), Ok(()));
            }
            Ok(Some(index)) => {
                self.ask(From::Switch, request.origin(), Ok(Action::SwitchController(index)), moment);
            }
            Err(why) => self.ask(From::Switch, request.origin(), Err(why), moment),
        }
    }

    /// Passes a request on; one that cannot be passed is answered at once.
    fn ask(&mut self, from: From, origin: Origin, action: Result<Action, String>, moment: &mut Moment<'_>) {
        let id = monotonic_ns().max(self.last_id + 1);
        self.last_id = id;
        match action.and_then(|what| self.send(Request { id, what }, moment)) {
            Ok(()) => {
                let until_ns = monotonic_ns() + LONGEST_NS;
                self.waiting.insert(id, Waiting { from, origin, until_ns });
            }
            Err(why) => {
                moment.voice.warn("service", format_args!("a service was called in vain: {why}"));
                self.answer(from, origin, Err(why));
            }
        }
    }

    fn send(&mut self, request: Request, moment: &mut Moment<'_>) -> Result<(), String> {
        let robot = attached(&mut moment.robot)?;
        let name = request.what.port();
        let channel = match self.channels.entry(name) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => closed.insert(robot.port(name)?),
        };
        let mut bytes = [0; SIZE];
        let length = request.encode(&mut bytes).map_err(|error| error.to_string())?;
        let sent = channel.write(&bytes[..length]);
        sent.map(|_| ()).map_err(|error| format!("the cycle does not take requests: {error}"))
    }

    /// Passes replies on.
    fn receive(&mut self, moment: &mut Moment<'_>) {
        let mut replies = Vec::new();
        for (name, channel) in &mut self.channels {
            match replies_of(channel, name, moment) {
                Some(more) => replies.extend(more),
                None => return self.lost("the cycle has ended"),
            }
        }
        for reply in replies {
            if let Some(waiting) = self.waiting.remove(&reply.id) {
                let outcome = reply.outcome.map_err(|refusal| refusal.to_string());
                self.answer(waiting.from, waiting.origin, outcome);
            }
        }
        let now = monotonic_ns();
        let late: Vec<u64> =
            self.waiting.iter().filter(|(_, waiting)| waiting.until_ns < now).map(|(&id, _)| id).collect();
        for id in late {
            if let Some(waiting) = self.waiting.remove(&id) {
                let why = format!("the cycle did not answer within {} s", LONGEST_NS / 1_000_000_000);
                self.answer(waiting.from, waiting.origin, Err(why));
            }
        }
        if self.waiting.is_empty() {
            self.channels.clear();
        }
    }

    fn answer(&self, from: From, origin: Origin, outcome: Result<(), String>) {
        let success = outcome.is_ok();
        let message = outcome.err().unwrap_or_default();
        let _ = match from {
            From::Trigger(index) => self.triggers[index].0.reply(origin, &Done { success, message }),
            From::SetEnabled => self.set_enabled.reply(origin, &Done { success, message }),
            From::Switch => self.switch.reply(origin, &SwitchControllerResponse { ok: success, message }),
        };
    }
}

/// Replies at a port; none where its cycle has ended.
fn replies_of(channel: &mut Channel, name: &str, moment: &mut Moment<'_>) -> Option<Vec<Reply>> {
    let (mut bytes, mut replies) = ([0; SIZE + 1], Vec::new());
    loop {
        match channel.read(&mut bytes) {
            Ok(0) => return None,
            Ok(length) => match Reply::decode(&bytes[..length]) {
                Ok(reply) => replies.push(reply),
                Err(why) => moment.voice.error("control", format_args!("port {name}: {why}")),
            },
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Some(replies);
            }
            Err(error) => {
                moment.voice.error("control", format_args!("port {name}: {error}"));
                return None;
            }
        }
    }
}

/// Index of the controller that a request activates; `None` if it is active already. Exactly one is active
/// at all times, so activating one deactivates the other, even if the request does not say so.
fn controller_to_activate(
    asked: &SwitchControllerRequest,
    robot: &Description,
    active: usize,
) -> Result<Option<u32>, String> {
    let find = |name: &String| {
        robot.controllers.iter().position(|controller| controller.name == *name).ok_or_else(|| {
            let known: Vec<&str> =
                robot.controllers.iter().map(|controller| controller.name.as_str()).collect();
            format!("there is no controller `{name}`; there are {}", known.join(", "))
        })
    };
    let off = asked.deactivate_controllers.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    match asked.activate_controllers.as_slice() {
        [name] => {
            let index = find(name)?;
            if off.contains(&index) {
                return Err(format!("`{name}` cannot be activated and deactivated at once"));
            }
            Ok((index != active).then_some(index as u32))
        }
        [] if !off.contains(&active) => Ok(None),
        [] => {
            Err("one controller is always active: say which one takes its place, or call `disable`".into())
        }
        _ => Err("one controller at a time can be active".into()),
    }
}

fn list(robot: &mut Robot) -> Vec<ControllerState> {
    robot.refresh();
    let description = robot.description();
    let active = usize::from(robot.state().control.active);
    let update_rate = (1_000_000_000 / description.period_ns.max(1)).min(u16::MAX.into()) as u16;
    let states = description.controllers.iter().enumerate().map(|(index, controller)| {
        let interface = match controller.kind {
            Some(ControllerKind::JointEffort) => "effort",
            Some(ControllerKind::JointVelocity | ControllerKind::DiffDrive | ControllerKind::OmniDrive) => {
                "velocity"
            }
            _ => "position",
        };
        let axes = controller.axes.iter().filter_map(|&axis| description.axes.get(axis));
        let interfaces: Vec<String> = axes.map(|axis| format!("{}/{interface}", axis.name)).collect();
        let is_active = index == active;
        ControllerState {
            name: controller.name.clone(),
            state: if is_active { "active" } else { "inactive" }.into(),
            kind: format!("onbeat/{}", controller.kind_name()),
            update_rate,
            claimed_interfaces: if is_active { interfaces.clone() } else { Vec::new() },
            required_command_interfaces: interfaces,
            ..ControllerState::default()
        }
    });
    states.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::description::ControllerDescription;

    #[test]
    fn switching_asks_for_the_one_controller_that_shall_be_active() {
        let controller = |name: &str| ControllerDescription {
            name: name.into(),
            kind: Some(ControllerKind::JointTrajectory),
            axes: vec![],
        };
        let robot =
            Description { controllers: vec![controller("a"), controller("b")], ..Description::default() };
        let switch = |on: &[&str], off: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let asked = SwitchControllerRequest {
                activate_controllers: names(on),
                deactivate_controllers: names(off),
                ..SwitchControllerRequest::default()
            };
            controller_to_activate(&asked, &robot, 0)
        };
        assert_eq!(switch(&["b"], &["a"]), Ok(Some(1)));
        assert_eq!(switch(&["b"], &[]), Ok(Some(1)), "the other one has to go in any case");
        assert_eq!(switch(&["a"], &["b"]), Ok(None));
        assert_eq!(switch(&[], &["b"]), Ok(None), "it is inactive");
        assert!(switch(&[], &["a"]).is_err());
        assert!(switch(&["a", "b"], &[]).is_err());
        assert!(switch(&["b"], &["b"]).is_err());
        assert!(switch(&["c"], &[]).unwrap_err().contains("there are a, b"));
    }
}
