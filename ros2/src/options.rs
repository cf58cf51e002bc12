//! Command line.

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{CommandFactory, Parser};

use crate::dds::Reach;
use crate::dds::service::Mapping;
use crate::ros_args::RosArguments;
use crate::ros_args::parameters::Assignment;

/// ROS 2 node for a running cycle: topics, services, actions and parameters, without a ROS
/// installation.
#[derive(Debug, Parser)]
#[command(name = "onbeat-ros2", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Shared-memory interface to attach to: its socket, or the name of the robot. By default the
    /// one running cycle.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) ipc: Option<PathBuf>,

    /// DDS domain.
    #[arg(long, env = "ROS_DOMAIN_ID", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=232))]
    pub(crate) domain: u16,

    /// Address of an interface over which other hosts may watch and command the robot; may be given
    /// more than once. By default only programs on this host can.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "all_interfaces")]
    pub(crate) network: Vec<IpAddr>,

    /// Use every interface of this machine: any host on one of its networks can then command the
    /// robot.
    #[arg(long)]
    pub(crate) all_interfaces: bool,

    /// Namespace of the node and its topics.
    #[arg(long, default_value = "/")]
    pub(crate) namespace: String,

    /// Name of the node.
    #[arg(long, default_value = "onbeat")]
    pub(crate) node_name: String,

    /// Mapping of service requests; `auto` serves Cyclone DDS and Fast DDS at once.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) service_mapping: Mapping,

    /// Initial value of a parameter: NAME:=VALUE; may be given more than once. See docs/ros2.md for
    /// their names.
    #[arg(short = 'p', long = "param", value_name = "NAME:=VALUE")]
    pub(crate) parameters: Vec<String>,

    /// Report only warnings and errors.
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print the manual page, for packages.
    #[arg(long, hide = true)]
    pub(crate) man: bool,

    /// Arguments of ROS 2.
    #[arg(skip)]
    pub(crate) ros: RosArguments,
}

const AFTER_HELP: &str = "\
After --ros-args, up to -- or the end, come the arguments that every ROS 2 node takes: -r [NODE:]FROM:=TO, -p [NODE:]NAME:=VALUE, \
--params-file FILE, --log-level [LOGGER:=]LEVEL, --enable-rosout-logs, --disable-rosout-logs, --disable-stdout-logs, \
-e ENCLAVE. See docs/ros2.md.";

impl Options {
    /// Reads a command line, the program's name first.
    ///
    /// # Errors
    /// An argument of ROS that is none. Others end the process, with help.
    pub(crate) fn from_line(line: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let (own, mut ros) = RosArguments::take(line)?;
        let mut options = Self::parse_from(own);
        let own = options.parameters.iter().map(|text| Assignment::parse(text));
        let own = own.collect::<Result<Vec<_>, _>>()?;
        ros.assignments.splice(..0, own);
        options.ros = ros;
        Ok(options)
    }

    /// Prints the manual page.
    ///
    /// # Errors
    /// Standard output takes nothing.
    pub(crate) fn print_manual() -> io::Result<()> {
        clap_mangen::Man::new(Self::command()).render(&mut io::stdout().lock())
    }

    /// Hosts with which to talk.
    pub(crate) fn reach(&self) -> Reach<'_> {
        if self.all_interfaces {
            Reach::All
        } else if self.network.is_empty() {
            Reach::ThisHost
        } else {
            Reach::Networks(&self.network)
        }
    }
}
