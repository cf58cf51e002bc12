//! Services and topic of a managed node.
//!
//! Activation enables the drives and accepts commands; deactivation refuses commands, stops the
//! axes and disables the drives. A node that starts by itself (`autostart`) accepts commands and
//! leaves the drives as they are: a restarted node must not power drives that an operator has
//! switched off.

use ipc::message::control::Action;

use super::control::Control;
use super::{Endpoints, Moment};
use crate::clock::{WallClock, monotonic_ns};
use crate::dds::service::{Origin, Service};
use crate::dds::{DdsError, Quality, Writer};
use crate::lifecycle::{STATES, State, TRANSITIONS, Transition};
use crate::messages::controller_manager::{
    ChangeStateRequest, ChangeStateResponse, LifecycleState as StateMessage, TransitionDescription,
    TransitionEvent,
};
use crate::messages::parameter::ListResponse;

/// Services and topic, and the request that waits for the cycle.
pub(crate) struct Managed {
    get_state: Service,
    change_state: Service,
    states: Service,
    transitions: Service,
    graph: Service,
    events: Writer,
    waiting: Option<Origin>,
    /// The drives were enabled before that transition.
    was_enabled: bool,
}

impl Managed {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        let mut serve = |name: &str, kind: &str| {
            endpoints.serve(&format!("~/{name}"), &format!("lifecycle_msgs/srv/{kind}"))
        };
        Ok(Self {
            get_state: serve("get_state", "GetState")?,
            change_state: serve("change_state", "ChangeState")?,
            states: serve("get_available_states", "GetAvailableStates")?,
            transitions: serve("get_available_transitions", "GetAvailableTransitions")?,
            graph: serve("get_transition_graph", "GetAvailableTransitions")?,
            events: endpoints.publish(
                "~/transition_event",
                "lifecycle_msgs/TransitionEvent",
                Quality::Reliable,
            )?,
            waiting: None,
            was_enabled: false,
        })
    }

    /// Follows the cycle and the requests. True if the robot's states are published no longer.
    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>, control: &mut Control) -> bool {
        let was_configured = moment.lifecycle.is_configured();
        if moment.robot.is_some() {
            moment.lifecycle.rise();
        } else {
            moment.lifecycle.fall();
        }
        while let Some(outcome) = control.outcome_for_lifecycle() {
            if let Some(origin) = self.waiting.take() {
                // An inactive node offers no `deactivate`, so it leaves no torque behind.
                if outcome.is_err() && moment.lifecycle.state() == State::Activating && !self.was_enabled {
                    control.disable(moment);
                }
                self.end(origin, outcome, moment);
            }
        }
        while let Some(request) = self.change_state.take() {
            let asked = request.decode::<ChangeStateRequest>();
            if let Err(why) = asked.and_then(|asked| self.begin(&asked, request.origin(), moment, control))
            {
                moment.voice.warn("lifecycle", format_args!("change_state: refused: {why}"));
                self.change_state.reply(request.origin(), &ChangeStateResponse { success: false });
            }
        }
        self.tell(moment);
        was_configured && !moment.lifecycle.is_configured()
    }

    pub(crate) fn services(&mut self) -> [&mut Service; 5] {
        [
            &mut self.get_state,
            &mut self.change_state,
            &mut self.states,
            &mut self.transitions,
            &mut self.graph,
        ]
    }

    /// Begins a transition, and ends it unless the cycle has a part in it.
    fn begin(
        &mut self,
        asked: &ChangeStateRequest,
        origin: Origin,
        moment: &mut Moment<'_>,
        control: &mut Control,
    ) -> Result<(), String> {
        let was_active = moment.lifecycle.state() == State::Active;
        let into = moment.lifecycle.begin(asked.transition.id, &asked.transition.label)?;
        let action = match into {
            State::Activating => Some(Action::Enable),
            State::Deactivating => Some(Action::Disable),
            State::ShuttingDown if was_active => Some(Action::Disable),
            _ => None,
        };
        if let Some(action) = action {
            self.was_enabled = moment.robot.as_ref().is_some_and(|it| it.state().control.enabled);
            self.waiting = Some(origin);
            control.ask_for_lifecycle(action, moment);
            return Ok(());
        }
        let without_cycle = into == State::Configuring && moment.robot.is_none();
        let outcome = if without_cycle { Err("no cycle is running".to_owned()) } else { Ok(()) };
        self.end(origin, outcome, moment);
        Ok(())
    }

    fn end(&mut self, origin: Origin, outcome: Result<(), String>, moment: &mut Moment<'_>) {
        let success = outcome.is_ok();
        moment.lifecycle.end(success);
        if let Err(why) = outcome {
            moment.voice.warn("lifecycle", format_args!("change_state: failed: {why}"));
        } else {
            moment.lifecycle.keep();
        }
        let state = moment.lifecycle.state();
        if state != State::Active
            && let Some(robot) = moment.robot.as_deref_mut()
        {
            robot.release();
        }
        moment.voice.info(state.label(), format_args!("the node is {}", state.label()));
        self.change_state.reply(origin, &ChangeStateResponse { success });
    }

    /// Answers questions, and publishes the transitions that were made.
    fn tell(&self, moment: &mut Moment<'_>) {
        let life = &mut *moment.lifecycle;
        while let Some(request) = self.get_state.take() {
            self.get_state.reply(request.origin(), &state(life.state()));
        }
        while let Some(request) = self.states.take() {
            let values = STATES.iter().copied().map(state).collect();
            self.states.reply(request.origin(), &ListResponse { values });
        }
        while let Some(request) = self.transitions.take() {
            let values = life.available().map(described).collect();
            self.transitions.reply(request.origin(), &ListResponse { values });
        }
        while let Some(request) = self.graph.take() {
            let values = TRANSITIONS.iter().map(described).collect();
            self.graph.reply(request.origin(), &ListResponse { values });
        }
        while let Some(made) = life.next_made() {
            let TransitionDescription { transition, start_state, goal_state } = described(made);
            let timestamp = WallClock::now().stamp(monotonic_ns()).to_ns().unsigned_abs();
            self.events.send(&TransitionEvent { timestamp, transition, start_state, goal_state });
        }
    }
}

fn state(state: State) -> StateMessage {
    StateMessage::new(state as u8, state.label())
}

fn described(transition: &Transition) -> TransitionDescription {
    TransitionDescription {
        transition: StateMessage::new(transition.id, transition.label),
        start_state: state(transition.from),
        goal_state: state(transition.to),
    }
}
