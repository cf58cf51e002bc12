//! `onbeat-ros2`: a ROS 2 node for a running cycle, without a ROS installation.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | the command line |
//! | [`ros_args`] | arguments of ROS 2 on it |
//! | [`settings`] | parameters |
//! | [`lifecycle`] | states of a managed node |
//! | [`messages`] | the supported messages of ROS 2 |
//! | [`dds`] | topics and services over DDS |
//! | [`robot`] | the shared-memory interface: state, commands, ports |
//! | [`check`] | checks of messages before they are passed to the cycle |
//! | [`trajectory`] | trajectories as orders, and the goals of an action |
//! | [`node`] | all publishers, subscriptions and services |
//! | [`voice`], [`clock`] | log and time |
//! | [`guard`] | protection of the machine against a failing DDS |
//! | [`watchdog`] | restart of a node with a DDS that no longer receives |
#![forbid(unsafe_code)]

mod check;
mod clock;
mod dds;
mod guard;
mod lifecycle;
mod messages;
mod node;
mod options;
mod robot;
mod ros_args;
mod settings;
mod voice;
mod watchdog;

/// Trajectories: `orders` converts a JointTrajectory to orders of the port `trajectory`, `goals`
/// keeps the goals of an action as in ROS 2. Neither reads a clock or does I/O.
mod trajectory {
    pub(crate) mod goals;
    pub(crate) mod orders;
}

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::options::Options;

fn main() -> ExitCode {
    let options = match Options::from_line(std::env::args_os()) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("onbeat-ros2: {why}");
            return ExitCode::FAILURE;
        }
    };
    if options.man {
        return Options::print_manual().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    guard::end_with_any_thread();
    guard::bound_memory();
    let stop = Arc::new(AtomicBool::new(false));
    if let Err(error) = guard::end_when_told(Arc::clone(&stop)) {
        eprintln!("onbeat-ros2: cannot wait for signals: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = watchdog::start(Arc::clone(&stop)) {
        eprintln!("onbeat-ros2: no watchdog: {error}");
        return ExitCode::FAILURE;
    }
    match node::turn::run(&options, &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onbeat-ros2: {error}");
            ExitCode::FAILURE
        }
    }
}
