//! Life of a managed node (design.ros2.org, "Managed nodes"): its states, and the transitions
//! between them, with the numbers and labels of lifecycle_msgs and rcl_lifecycle.
//!
//! | state | of this node |
//! |---|---|
//! | unconfigured | no cycle, or its state is not published |
//! | inactive | the robot's states are published; nothing moves it from here |
//! | active | commands and goals are passed on |
//! | finalized | as unconfigured, for good |
//!
//! Services that stop the robot, or take its power, are answered in every state.

use std::collections::VecDeque;

/// State of a node, with the numbers of lifecycle_msgs/State.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Unknown = 0,
    Unconfigured = 1,
    Inactive = 2,
    Active = 3,
    Finalized = 4,
    Configuring = 10,
    CleaningUp = 11,
    ShuttingDown = 12,
    Activating = 13,
    Deactivating = 14,
    ErrorProcessing = 15,
}

use State::{
    Activating, Active, CleaningUp, Configuring, Deactivating, ErrorProcessing, Finalized, Inactive,
    ShuttingDown, Unconfigured, Unknown,
};

/// Every state, as `~/get_available_states` lists them.
pub(crate) const STATES: [State; 11] = [
    Unknown,
    Unconfigured,
    Inactive,
    Active,
    Finalized,
    Configuring,
    CleaningUp,
    ShuttingDown,
    Activating,
    Deactivating,
    ErrorProcessing,
];

impl State {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Unknown => "unknown",
            Unconfigured => "unconfigured",
            Inactive => "inactive",
            Active => "active",
            Finalized => "finalized",
            Configuring => "configuring",
            CleaningUp => "cleaningup",
            ShuttingDown => "shuttingdown",
            Activating => "activating",
            Deactivating => "deactivating",
            ErrorProcessing => "errorprocessing",
        }
    }
}

/// Transition between two states.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    /// Number of lifecycle_msgs/Transition.
    pub(crate) id: u8,
    pub(crate) label: &'static str,
    pub(crate) from: State,
    pub(crate) to: State,
}

const fn row(id: u8, label: &'static str, from: State, to: State) -> Transition {
    Transition { id, label, from, to }
}

const SUCCESS: &str = "transition_success";
const FAILURE: &str = "transition_failure";
const ERROR: &str = "transition_error";

/// Every transition, as `~/get_transition_graph` lists them.
pub(crate) static TRANSITIONS: [Transition; 25] = [
    row(1, "configure", Unconfigured, Configuring),
    row(10, SUCCESS, Configuring, Inactive),
    row(11, FAILURE, Configuring, Unconfigured),
    row(12, ERROR, Configuring, ErrorProcessing),
    row(2, "cleanup", Inactive, CleaningUp),
    row(20, SUCCESS, CleaningUp, Unconfigured),
    row(21, FAILURE, CleaningUp, Inactive),
    row(22, ERROR, CleaningUp, ErrorProcessing),
    row(3, "activate", Inactive, Activating),
    row(30, SUCCESS, Activating, Active),
    row(31, FAILURE, Activating, Inactive),
    row(32, ERROR, Activating, ErrorProcessing),
    row(4, "deactivate", Active, Deactivating),
    row(40, SUCCESS, Deactivating, Inactive),
    row(41, FAILURE, Deactivating, Active),
    row(42, ERROR, Deactivating, ErrorProcessing),
    row(5, "shutdown", Unconfigured, ShuttingDown),
    row(6, "shutdown", Inactive, ShuttingDown),
    row(7, "shutdown", Active, ShuttingDown),
    row(50, SUCCESS, ShuttingDown, Finalized),
    row(51, FAILURE, ShuttingDown, Finalized),
    row(52, ERROR, ShuttingDown, ErrorProcessing),
    row(60, SUCCESS, ErrorProcessing, Unconfigured),
    row(61, FAILURE, ErrorProcessing, Finalized),
    row(62, ERROR, ErrorProcessing, Finalized),
];

/// The node's life.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    state: State,
    /// State that the node brings itself to when a cycle comes: the last one it was brought to.
    sought: State,
    /// Transitions that have not been published yet.
    made: VecDeque<&'static Transition>,
}

impl Lifecycle {
    /// A node without a cycle. With `autostart` it becomes active without a transition request.
    pub(crate) fn new(autostart: bool) -> Self {
        let sought = if autostart { Active } else { Unconfigured };
        Self { state: Unconfigured, sought, made: VecDeque::new() }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// True if the robot's states are published.
    pub(crate) fn is_configured(&self) -> bool {
        matches!(self.state, Inactive | Active | Activating | Deactivating)
    }

    /// Checks that the robot may be moved from here.
    ///
    /// # Errors
    /// The node is not active.
    pub(crate) fn may_move(&self) -> Result<(), String> {
        let label = self.state.label();
        (self.state == Active).then_some(()).ok_or_else(|| {
            format!("the node is {label}, expected active: `ros2 lifecycle set` its transitions")
        })
    }

    /// Transitions that can be requested now.
    pub(crate) fn available(&self) -> impl Iterator<Item = &'static Transition> + use<> {
        let state = self.state;
        TRANSITIONS.iter().filter(move |it| it.from == state)
    }

    /// Begins a transition by its label, or where that is empty by its number.
    ///
    /// # Errors
    /// There is no such transition from this state.
    pub(crate) fn begin(&mut self, id: u8, label: &str) -> Result<State, String> {
        let wanted = |it: &&Transition| if label.is_empty() { it.id == id } else { it.label == label };
        let primary = matches!(self.state, Unconfigured | Inactive | Active);
        let found = self.available().find(wanted).filter(|_| primary).ok_or_else(|| {
            let asked = if label.is_empty() { format!("number {id}") } else { format!("`{label}`") };
            let known: Vec<&str> = self.available().filter(|_| primary).map(|it| it.label).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("transition {asked}: the node is {}, expected {known}", self.state.label())
        })?;
        self.make(found);
        Ok(self.state)
    }

    /// Ends the transition that was begun.
    pub(crate) fn end(&mut self, success: bool) {
        let outcome = if success { SUCCESS } else { FAILURE };
        if let Some(found) = self.available().find(|it| it.label == outcome) {
            self.make(found);
        }
    }

    /// Remembers the present state as the one to return to when a cycle comes.
    pub(crate) fn keep(&mut self) {
        self.sought = self.state;
    }

    /// Continues to the requested state, now that there is a cycle.
    pub(crate) fn rise(&mut self) {
        if self.state == Unconfigured
            && matches!(self.sought, Inactive | Active)
            && self.begin(1, "").is_ok()
        {
            self.end(true);
        }
        if self.state == Inactive && self.sought == Active && self.begin(3, "").is_ok() {
            self.end(true);
        }
    }

    /// Becomes unconfigured, after the end of the cycle.
    pub(crate) fn fall(&mut self) {
        match self.state {
            Activating => self.end(false),
            ShuttingDown => self.end(true),
            Deactivating => self.end(true),
            _ => {}
        }
        for id in [4, 2] {
            if self.begin(id, "").is_ok() {
                self.end(true);
            }
        }
    }

    /// Next transition to publish.
    pub(crate) fn next_made(&mut self) -> Option<&'static Transition> {
        self.made.pop_front()
    }

    fn make(&mut self, transition: &'static Transition) {
        self.state = transition.to;
        self.made.push_back(transition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(life: &mut Lifecycle) -> Vec<u8> {
        std::iter::from_fn(|| life.next_made()).map(|it| it.id).collect()
    }

    #[test]
    fn a_node_follows_its_cycle_and_returns_to_its_last_state() {
        let mut life = Lifecycle::new(true);
        life.rise();
        assert_eq!((life.state(), made(&mut life)), (Active, vec![1, 10, 3, 30]));
        life.fall();
        assert_eq!((life.state(), made(&mut life)), (Unconfigured, vec![4, 40, 2, 20]));
        life.rise();
        assert_eq!(life.begin(0, "deactivate"), Ok(Deactivating));
        assert!(life.may_move().is_err() && life.is_configured(), "from the first moment on");
        life.end(true);
        life.keep();
        life.fall();
        life.rise();
        assert_eq!(life.state(), Inactive);
        assert_eq!(life.begin(3, ""), Ok(Activating));
        life.end(false);
        assert_eq!(life.state(), Inactive, "refused");
    }

    #[test]
    fn a_node_without_autostart_waits_for_a_transition() {
        let mut life = Lifecycle::new(false);
        life.rise();
        assert_eq!((life.state(), made(&mut life)), (Unconfigured, vec![]));
        let why = life.begin(3, "").unwrap_err();
        assert_eq!(why, "transition number 3: the node is unconfigured, expected configure, shutdown");
        assert_eq!(life.begin(5, "shutdown"), Ok(ShuttingDown));
        assert!(life.begin(50, "").is_err(), "the end of a transition cannot be asked for");
        life.end(true);
        life.keep();
        life.rise();
        assert_eq!(life.state(), Finalized);
        assert!(life.begin(0, "configure").unwrap_err().contains("is finalized, expected none"));
    }

    #[test]
    fn a_cycle_that_ends_in_the_middle_of_a_transition_ends_it() {
        for (id, end) in [(4, Unconfigured), (7, Finalized)] {
            let mut life = Lifecycle::new(true);
            life.rise();
            life.begin(id, "").unwrap();
            life.fall();
            assert_eq!(life.state(), end);
        }
        let mut life = Lifecycle::new(true);
        life.rise();
        life.begin(4, "").unwrap();
        life.end(true);
        life.begin(3, "").unwrap();
        life.fall();
        assert_eq!(life.state(), Unconfigured);
    }
}
