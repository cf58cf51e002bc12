//! The running cycle that a command means: by name, by socket, by process.

use std::path::Path;
use std::time::{Duration, Instant};

use ethercat_linux::link::Owner;
use ipc::client::{AttachError, Client, FindError};
use ipc::state::{ReadError, State};

use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;

/// Choice of a cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which<'a>(pub(crate) Option<&'a str>);

impl Which<'_> {
    /// Attaches to it.
    pub(crate) fn find(self) -> Result<Client, FindError> {
        match self.0 {
            None => Client::find(),
            Some(path) if path.contains('/') => Ok(Client::open(Path::new(path))?),
            Some(name) => Client::named(name),
        }
    }

    /// The same for `command`, which takes the name as its argument.
    pub(crate) fn find_for(self, command: &str) -> Result<Client, Failure> {
        self.find().map_err(|error| match error {
            FindError::Several { found } => {
                let list: String = found.iter().map(|it| format!("\n  {it}")).collect();
                Failure::new(format!(
                    "several cycles run; name one, as with `onbeat {command} NAME`:{list}"
                ))
            }
            other => other.into(),
        })
    }

    /// The same as [`Self::find`], but one that does not run yet is waited for; `None` if the user
    /// asks for a stop first.
    pub(crate) fn wait(self, stop: &Stop) -> Result<Option<Client>, Failure> {
        let mut said = false;
        while !stop.is_requested() {
            match self.find() {
                Ok(ipc) => return Ok(Some(ipc)),
                Err(error) if is_absence(&error) => {
                    if !said {
                        output::say("no cycle runs yet: waiting for one (Ctrl-C ends it)");
                        said = true;
                    }
                    std::thread::sleep(LOOK_FOR_ONE);
                }
                Err(_) => return self.find_for("top").map(Some),
            }
        }
        Ok(None)
    }
}

/// State of the first cycle there is; `None` if the user asks for a stop before.
pub(crate) fn first_state(cycle: &Client, stop: &Stop) -> Result<Option<State>, Failure> {
    let begin = Instant::now();
    while !stop.is_requested() {
        match cycle.state().read() {
            Ok(state) => return Ok(Some(state)),
            Err(ReadError::Nothing) if begin.elapsed() < FIRST_CYCLE => {}
            Err(ReadError::Torn) => {}
            Err(error) => return Err(Failure::new(error)),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(None)
}

/// Time the first cycle of one that has just started may take.
pub(crate) const FIRST_CYCLE: Duration = Duration::from_secs(5);

/// True if the cycle may still start.
pub(crate) fn is_absence(error: &FindError) -> bool {
    matches!(error, FindError::NoServer { .. } | FindError::Attach(AttachError::NoServer { .. }))
}

/// The running cycle of Onbeat in this process, if it admits this user.
pub(crate) fn cycle_of(owner: &Owner) -> Option<Client> {
    running_cycles().into_iter().find(|attached| owner.process == Some(attached.process()))
}

/// All running cycles of Onbeat that admit this user: the one of the environment first.
pub(crate) fn running_cycles() -> Vec<Client> {
    let here = std::env::var_os(ipc::client::VARIABLE).map(std::path::PathBuf::from);
    let named = here.and_then(|path| Client::open(&path).ok());
    let first = named.as_ref().map(|it| (it.process(), it.name().to_owned()));
    let is_first = |it: &Client| {
        first.as_ref().is_some_and(|(process, name)| *process == it.process() && name == it.name())
    };
    let others = Client::all().into_iter().filter(|it| !is_first(it));
    named.into_iter().chain(others).collect()
}

/// Says which cycle is asked, where the user named another thing.
pub(crate) fn say_whom(attached: &Client) {
    let (name, process) = (attached.name(), attached.process());
    output::say(format!("using the running cycle \"{name}\" (process {process}), which continues"));
}

/// Time without a new cycle after which the run counts as stalled.
pub(crate) const STILL: Duration = Duration::from_millis(500);

/// Interval of looks for one that does not run yet.
pub(crate) const LOOK_FOR_ONE: Duration = Duration::from_millis(200);
