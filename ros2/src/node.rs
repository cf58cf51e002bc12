//! The node: its publishers, subscriptions and services, and the event loop.
//!
//! | module | contents |
//! |---|---|
//! | [`turn`] | event loop: waits for samples, messages and timers; attaches and re-attaches |
//! | [`velocity`] | /cmd_vel |
//! | [`commands`] | joint commands, poses of a tool, values of outputs |
//! | [`trajectories`] | trajectories by topic and by action |
//! | [`bus`] | services that ask the bus: objects, their descriptions, AL states, counters |
//! | [`events`] | ~/events |
//! | [`control`] | services: enable, disable, stop, reset faults |
//! | [`manager`] | the node controller_manager |
//! | [`parameters`] | services of parameters |
//! | [`lifecycle`] | services of a managed node |
//! | [`states`] | /joint_states, /odom, /tf, /robot_description |
//! | [`sensors`] | /imu, /scan |
//! | [`signals`] | ~/gpio_states, and the signals that are a sensor's |
//! | [`diagnostics`] | /diagnostics |
//!
//! Each part is a struct with its readers and writers, made from [`Endpoints`], and a `poll` that
//! is called at every turn with the [`Moment`]. No part blocks: one thread runs all of them, and
//! DDS has its own.

#[cfg(test)]
mod bench;
pub(crate) mod bus;
pub(crate) mod commands;
pub(crate) mod control;
pub(crate) mod diagnostics;
pub(crate) mod events;
pub(crate) mod lifecycle;
pub(crate) mod manager;
pub(crate) mod parameters;
pub(crate) mod sensors;
pub(crate) mod signals;
pub(crate) mod states;
pub(crate) mod trajectories;
pub(crate) mod turn;
pub(crate) mod velocity;

use crate::dds::name::NodeName;
use crate::dds::service::{Mapping, Service};
use crate::dds::{DdsError, Participant, Quality, Reader, Writer};
use crate::lifecycle::Lifecycle;
use crate::robot::Robot;
use crate::ros_args::rule::Role;
use crate::settings::Settings;
use crate::voice::Voice;

/// Factory of readers, writers and services.
pub(crate) struct Endpoints<'a> {
    pub(crate) participant: &'a mut Participant,
    pub(crate) mapping: Mapping,
}

impl Endpoints<'_> {
    pub(crate) fn publish(
        &mut self,
        topic: &str,
        kind: &str,
        quality: Quality,
    ) -> Result<Writer, DdsError> {
        self.participant.publish(topic, kind, quality)
    }

    pub(crate) fn subscribe(
        &mut self,
        topic: &str,
        kind: &str,
        quality: Quality,
    ) -> Result<Reader, DdsError> {
        self.participant.subscribe(topic, kind, quality)
    }

    pub(crate) fn serve(&mut self, service: &str, kind: &str) -> Result<Service, DdsError> {
        self.participant.serve(service, kind, self.mapping)
    }

    /// Whole name of an action: a rule may name it, or one of the services and topics that it is
    /// made of.
    pub(crate) fn action(&self, name: &str) -> String {
        self.participant.node().resolve(name, Role::Service)
    }
}

/// Context of a part of the node at one turn.
pub(crate) struct Moment<'a> {
    /// Robot; `None` while no cycle runs, and for what is published and moved also while the node
    /// is not configured.
    pub(crate) robot: Option<&'a mut Robot>,
    pub(crate) settings: &'a mut Settings,
    pub(crate) voice: &'a Voice,
    pub(crate) lifecycle: &'a mut Lifecycle,
    pub(crate) node: &'a NodeName,
}

/// Periodic timer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer {
    due_ns: u64,
}

impl Timer {
    /// True if it is due, `rate` times a second. Missed periods are not made up for.
    pub(crate) fn due(&mut self, now_ns: u64, rate: f64) -> bool {
        if now_ns < self.due_ns {
            return false;
        }
        let period = (1e9 / rate) as u64;
        let next = self.due_ns + period;
        self.due_ns = if next > now_ns { next } else { now_ns + period };
        true
    }

    /// Makes it due at this time.
    pub(crate) fn again_at(&mut self, due_ns: u64) {
        self.due_ns = due_ns;
    }

    /// Time at which it is due next.
    pub(crate) fn next(self) -> u64 {
        self.due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_keeps_its_rate_and_makes_up_for_nothing() {
        let mut timer = Timer::default();
        let due: Vec<u64> = (0..50).map(|i| i * 4_000_000).filter(|&now| timer.due(now, 100.0)).collect();
        assert_eq!(due.len(), 20, "4 ms turns in 200 ms hold 20 periods of 10 ms: {due:?}");
        assert!(timer.due(10_000_000_000, 100.0));
        assert!(!timer.due(10_000_000_001, 100.0));
    }
}
