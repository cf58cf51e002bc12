//! `onbeat control`: requests to a running cycle, and motions of its axes.

mod given;
mod jog;
mod position;
mod reasons;

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use ipc::channel::Channel;
use ipc::client::{Client, PortError};
use ipc::description::Description;
use ipc::message::control::{Action, Refusal, Reply, Request, SIZE};
use ipc::state::State;
use ipc::words;
use types::ControllerKind;
use types::near::Near;
use types::state::DriveState;

use crate::arguments::lasting;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::target::Which;
use reasons::Progress;

/// Sends a request to a running cycle, as a client that may command, and waits for the answer. The
/// cycle takes one request at a time; *stop*, *disable* and *deactivate* are always taken.
#[derive(Args, Debug)]
pub(crate) struct Control {
    #[command(subcommand)]
    wanted: Wanted,

    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(long, global = true, value_name = "NAME|SOCKET")]
    cycle: Option<String>,

    /// Longest wait for the answer; the request itself continues after it
    #[arg(long, global = true, value_name = "TIME", value_parser = lasting, default_value = "60s")]
    within: Duration,
}

#[derive(Subcommand, Debug)]
enum Wanted {
    /// Enable all drives
    Enable,
    /// Stop all axes, then disable all drives
    Disable,
    /// Reset faults of drives and stops of axes; the axes hold their positions until a new command
    /// or a controller moves them
    Reset,
    /// Stop the axes and drop their motion; drives stay enabled, and a controller that moves by
    /// itself is held until `enable`, `reset` or `switch`
    Stop,
    /// Stop the axes and deactivate every controller: commands have no effect until `switch`
    Deactivate,
    /// Home an axis: find its absolute position as the robot file says
    Home {
        /// Name of the axis
        axis: String,
    },
    /// Accept the position of an unreferenced axis, measured at the machine
    AcceptPosition(given::AcceptPosition),
    /// Set the position of an axis without homing, with its drive disabled
    SetPosition(given::SetPosition),
    /// Switch to another controller of the robot file, at standstill
    Switch {
        /// Name of the controller
        controller: String,
    },
    /// Bring axes to positions, slowly
    Move(position::Move),
    /// Move the base or an axis while a key is held
    Jog(jog::Jog),
}

impl Control {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let cycle = Which(self.cycle.as_deref()).find()?;
        let what = match self.wanted {
            Wanted::Move(it) => return it.execute(&cycle, self.within, &stop),
            Wanted::Jog(it) => return it.execute(&cycle, &stop),
            Wanted::AcceptPosition(it) => return it.execute(&cycle),
            Wanted::SetPosition(it) => return it.execute(&cycle),
            Wanted::Enable => Action::Enable,
            Wanted::Disable => Action::Disable,
            Wanted::Reset => Action::ResetFaults,
            Wanted::Stop => Action::Stop,
            Wanted::Deactivate => Action::Deactivate,
            Wanted::Home { axis } => {
                let names = cycle.description().axes.iter().map(|it| it.name.as_str());
                Action::Home(place("axis", &axis, names)?)
            }
            Wanted::Switch { controller } => {
                let names = cycle.description().controllers.iter().map(|it| it.name.as_str());
                Action::SwitchController(place("controller", &controller, names)?)
            }
        };
        let ignored = match what {
            Action::ResetFaults => reasons::ignored_quick_stops(&cycle),
            _ => Vec::new(),
        };
        match ask(&cycle, what, self.within, Some(&stop))? {
            Outcome::Done => {
                ignored.into_iter().for_each(output::say_or_give_up);
                reasons::remaining(&cycle, what)?;
                output::print("done\n")
            }
            Outcome::Ended if matches!(what, Action::Home(_)) => {
                rest(&cycle)?;
                Err(Failure::new("cancelled: the axes are at standstill, and the axis is not homed"))
            }
            Outcome::Ended => Err(Failure::new(
                "ended before the cycle finished the request, and the cycle may continue with it",
            )),
            Outcome::TooLate => Err(Failure::new(
                "no answer in time, and the cycle may continue with the request: `onbeat control \
                 stop` stops the axes",
            )),
        }
    }
}

/// Brings to rest what this program has set in motion, whatever another program asks meanwhile.
fn rest(cycle: &Client) -> Result<(), Failure> {
    match ask(cycle, Action::Stop, REST, None)? {
        Outcome::Done => Ok(()),
        Outcome::Ended | Outcome::TooLate => Err(Failure::new(
            "cancelled, but the cycle did not report that the axes are at standstill: check with \
             `onbeat top`",
        )),
    }
}

/// Outcome of a request.
enum Outcome {
    Done,
    /// The user has ended the wait.
    Ended,
    TooLate,
}

/// Sends a request and waits for the answer. A request that needs stationary axes is repeated while
/// axes that have just reached their target settle.
fn ask(cycle: &Client, what: Action, within: Duration, stop: Option<&Stop>) -> Result<Outcome, Failure> {
    let begin = Instant::now();
    let mut port = open(cycle, what, within)?;
    // Others of this connection have numbers of their own.
    let id = u64::from(std::process::id());
    let (mut request, mut message) = ([0; SIZE], [0; SIZE]);
    let length = Request { id, what }.encode(&mut request).map_err(Failure::new)?;
    let request = &request[..length];
    let mut progress = Progress::of(cycle, what);
    port.write_all(request).map_err(Failure::new)?;
    loop {
        let length = port.recv_timeout(&mut message, LOOK).map_err(Failure::new)?;
        if let Some(length) = length {
            let reply = Reply::decode(&message[..length]).map_err(Failure::new)?;
            if reply.id == id {
                let settles =
                    reply.outcome == Err(Refusal::Moving) && begin.elapsed() < SETTLING.min(within);
                if !settles {
                    let refused = |refusal| reasons::refused(cycle, what, refusal);
                    return reply.outcome.map(|()| Outcome::Done).map_err(refused);
                }
                thread::sleep(LOOK);
                port.write_all(request).map_err(Failure::new)?;
            }
        }
        progress.look();
        if stop.is_some_and(Stop::is_requested) {
            return Ok(Outcome::Ended);
        }
        if begin.elapsed() >= within {
            return Ok(Outcome::TooLate);
        }
    }
}

/// Opens the port for a request. Where others bring the axes to rest, too, it is theirs for a
/// moment only.
fn open(cycle: &Client, what: Action, within: Duration) -> Result<Channel, Failure> {
    let begin = Instant::now();
    loop {
        match cycle.port(what.port()) {
            Err(PortError::Taken { .. }) if what.brings_to_rest() && begin.elapsed() < within => {
                thread::sleep(LOOK);
            }
            outcome => return outcome.map_err(Failure::new),
        }
    }
}

/// Index of a name in the description.
fn place<'a>(
    kind: &str,
    wanted: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<u32, Failure> {
    let found = names.clone().position(|name| name == wanted).and_then(|at| u32::try_from(at).ok());
    found.ok_or_else(|| {
        Failure::new(format!("\"{wanted}\": the robot has no such {kind}, {}", Near::to(wanted, names)))
    })
}

/// Sentence on the first of these axes with a drive that is not enabled.
fn powerless(axes: &[usize], description: &Description, state: &State) -> Option<String> {
    axes.iter().find_map(|&axis| {
        let (name, axis) = (&description.axes.get(axis)?.name, state.axes.get(axis)?);
        let silent_for = words::silent_for(axis, description);
        if let Some(time) = silent_for.filter(|&time| time >= SILENT) {
            let remedy = "check its power and cables";
            return Some(format!("axis \"{name}\": {}; {remedy}", words::silence(time)));
        }
        let found = words::drive_state(axis.drive_state);
        (axis.drive_state != DriveState::OperationEnabled as u8).then(|| {
            format!(
                "the drive of axis \"{name}\" is in {found}, expected Operation enabled: `onbeat control enable` or `reset`"
            )
        })
    })
}

/// Sentence on an axis of these that supervision holds, if one is.
fn held_axis(axes: &[usize], description: &Description, state: &State) -> Option<String> {
    let is_stopped = |place: &&usize| state.axes.get(**place).is_some_and(|it| it.stop != 0);
    axes.iter().filter(is_stopped).find_map(|&place| words::hindrance(place, state, description))
}

/// Checks that the active controller is of one of these kinds and moves these axes.
fn active(
    description: &Description,
    state: &State,
    kinds: &[ControllerKind],
    axes: &[usize],
) -> Result<(), Failure> {
    let fits = |it: &ipc::description::ControllerDescription| {
        it.kind.is_some_and(|kind| kinds.contains(&kind)) && axes.iter().all(|axis| it.axes.contains(axis))
    };
    let active = description.controllers.get(usize::from(state.control.active));
    if active.is_some_and(fits) {
        return Ok(());
    }
    let found = active.map_or("no controller is active".to_owned(), |it| {
        format!("controller \"{}\" ({}) is active", it.name, it.kind_name())
    });
    let moves = |mode| kinds.iter().any(|kind| kind.modes().contains(&mode));
    let unfit = axes.iter().filter_map(|&axis| description.axes.get(axis)).find(|it| !moves(it.mode));
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let expected = match axes {
        [] => kinds.join(" or "),
        _ => format!("{} of these axes", kinds.join(" or ")),
    };
    let remedy = match (description.controllers.iter().find(|it| fits(it)), unfit) {
        (Some(it), _) => format!("`onbeat control switch {}` makes it so", it.name),
        (None, Some(axis)) => format!(
            "the robot file has none: axis \"{}\" is in {}, which takes {}",
            axis.name,
            axis.mode.name(),
            axis.mode.cyclic().setpoint()
        ),
        (None, None) => "the robot file has none: add it as another [[controller]]".to_owned(),
    };
    Err(Failure::new(format!("{found}, expected {expected}; {remedy}")))
}

/// Time without process data that does not pass by itself.
const SILENT: Duration = Duration::from_secs(1);

/// Longest time for axes to stop.
const REST: Duration = Duration::from_secs(10);

/// Time that loops of axes are given to settle.
const SETTLING: Duration = Duration::from_secs(1);

/// Interval at which Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
