//! Services that change the state of the cycle, through the ports `control` and `stop`: enable,
//! disable, stop, reset faults, and the services of the [`manager`] of controllers. Each request is
//! answered when the cycle has replied.

mod requests;

use std::collections::VecDeque;

use ipc::channel::Channel;
use ipc::description::Description;
use ipc::message::control::Action;

use self::requests::{Answered, Requests};
use super::manager::{self, Manager};
use super::{Endpoints, Moment};
use crate::dds::DdsError;
use crate::dds::service::{Origin, Service};
use crate::messages::service::{Done, SetBoolRequest};

/// Services, and the requests that the cycle has not answered yet.
pub(crate) struct Control {
    triggers: Vec<(Service, Action)>,
    set_enabled: Service,
    manager: Manager,
    requests: Requests<From>,
    /// Outcomes of requests by the node's own transitions.
    for_lifecycle: VecDeque<Result<(), String>>,
}

/// Service that was called.
#[derive(Debug)]
enum From {
    Trigger(usize, Origin),
    SetEnabled(Origin),
    Manager(manager::Call),
    Lifecycle,
    /// The node itself, which waits for no answer.
    Unanswered,
}

impl Control {
    /// The services of this node, and of the node of the manager.
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
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
        Ok(Self {
            triggers,
            set_enabled: endpoints.serve("~/set_enabled", "std_srvs/SetBool")?,
            manager: Manager::new(endpoints, robot)?,
            requests: Requests::default(),
            for_lifecycle: VecDeque::new(),
        })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        let mut calls = Vec::new();
        for (index, (service, action)) in self.triggers.iter().enumerate() {
            while let Some(request) = service.take() {
                calls.push((From::Trigger(index, request.origin()), Ok(*action)));
            }
        }
        while let Some(request) = self.set_enabled.take() {
            let asked = request.decode::<SetBoolRequest>();
            let action = asked.map(|asked| if asked.data { Action::Enable } else { Action::Disable });
            calls.push((From::SetEnabled(request.origin()), action));
        }
        for (call, action) in self.manager.poll(moment) {
            calls.push((From::Manager(call), Ok(action)));
        }
        self.ask(calls, moment);
        let answered = self.requests.answered(moment);
        self.answer(answered, moment);
        self.requests.rest();
    }

    fn ask(&mut self, calls: Vec<(From, Result<Action, String>)>, moment: &mut Moment<'_>) {
        for (from, action) in calls {
            let refused = self.requests.ask(from, action, moment);
            self.answer(refused, moment);
        }
    }

    fn answer(&mut self, answered: impl IntoIterator<Item = Answered<From>>, moment: &mut Moment<'_>) {
        let more: Vec<_> =
            answered.into_iter().filter_map(|(from, outcome)| self.reply(from, outcome)).collect();
        if !more.is_empty() {
            self.ask(more, moment);
        }
    }

    /// Answers a call, unless another request belongs to it.
    fn reply(
        &mut self,
        from: From,
        outcome: Result<String, String>,
    ) -> Option<(From, Result<Action, String>)> {
        match from {
            From::Trigger(index, origin) => done(&self.triggers[index].0, origin, outcome),
            From::SetEnabled(origin) => done(&self.set_enabled, origin, outcome),
            From::Lifecycle => self.for_lifecycle.push_back(outcome.map(drop)),
            From::Unanswered => {}
            From::Manager(call) => {
                let next = self.manager.answered(call, outcome.map(drop));
                return next.map(|(call, action)| (From::Manager(call), Ok(action)));
            }
        }
        None
    }

    /// Drops the pending requests, after the end of the cycle.
    pub(crate) fn lost(&mut self, why: &str) {
        for (from, outcome) in self.requests.lost(why) {
            // Nothing follows a refusal.
            let _ = self.reply(from, outcome);
        }
    }

    /// Asks the cycle for what a transition of the node means.
    pub(crate) fn ask_for_lifecycle(&mut self, action: Action, moment: &mut Moment<'_>) {
        self.ask(vec![(From::Lifecycle, Ok(action))], moment);
    }

    /// Disables the drives after an activation that failed.
    pub(crate) fn disable(&mut self, moment: &mut Moment<'_>) {
        self.ask(vec![(From::Unanswered, Ok(Action::Disable))], moment);
    }

    /// Outcome of the last one.
    pub(crate) fn outcome_for_lifecycle(&mut self) -> Option<Result<(), String>> {
        self.for_lifecycle.pop_front()
    }

    /// True if what a broadcaster of this name would publish is to be published.
    pub(crate) fn broadcasts(&self, name: &str) -> bool {
        self.manager.broadcasts(name)
    }

    /// Time at which a request needs a look, though no message arrives.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        self.requests.next(now)
    }

    /// Ports that are open.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.requests.channels()
    }

    pub(crate) fn services(&mut self) -> Vec<&mut Service> {
        let mut services: Vec<_> = self.triggers.iter_mut().map(|(service, _)| service).collect();
        services.push(&mut self.set_enabled);
        services.extend(self.manager.services());
        services
    }
}

fn done(service: &Service, origin: Origin, outcome: Result<String, String>) {
    let (success, message) = match outcome {
        Ok(note) => (true, note),
        Err(why) => (false, why),
    };
    service.reply(origin, &Done { success, message });
}
