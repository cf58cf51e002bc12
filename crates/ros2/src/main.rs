//! `onbeat-ros2`: ROS 2 without a ROS installation, for a cycle that runs in another process.
//!
//! | module | what it holds |
//! |---|---|
//! | [`options`] | the command line |
//! | [`settings`] | parameters |
//! | [`messages`] | the messages of ROS 2 that are spoken |
//! | [`dds`] | topics and services over DDS |
//! | [`robot`] | the seam: state, commands, ports |
//! | [`check`] | what a message must be before it goes through the seam |
//! | [`trajectory`] | trajectories as orders, and the goals of an action |
//! | [`node`] | everything that is published, subscribed and served |
//! | [`voice`], [`clock`] | what is said, and when |
//! | [`guard`] | what must not happen to the machine when DDS goes wrong |
#![forbid(unsafe_code)]

mod check;
mod clock;
mod dds;
mod guard;
mod messages;
mod node;
mod options;
mod robot;
mod settings;
mod trajectory;
mod voice;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    guard::end_with_any_thread();
    guard::bound_memory();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stop)) {
            eprintln!("onbeat-ros2: cannot wait for signal {signal}: {error}");
            return ExitCode::FAILURE;
        }
    }
    match node::turn::run(&options, &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onbeat-ros2: {error}");
            ExitCode::FAILURE
        }
    }
}
