//! Source of pictures: the shared-memory interface of a running cycle, only read.

use std::path::Path;
use std::time::{Duration, Instant};

use ipc::client::{AttachError, Client, FindError};
use ipc::state::{self, ReadError, State};
use rt::clock::now_ns;

use super::picture::{Picture, Standing};
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
    pub(super) fn wait(self, stop: &Stop) -> Result<Option<Client>, Failure> {
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
pub(super) const FIRST_CYCLE: Duration = Duration::from_secs(5);

/// True if the cycle may still start.
pub(super) fn is_absence(error: &FindError) -> bool {
    matches!(error, FindError::NoServer { .. } | FindError::Attach(AttachError::NoServer { .. }))
}

/// A cycle that pictures are taken of.
#[derive(Debug)]
pub(super) struct Source {
    ipc: Client,
    reader: state::Reader,
    heartbeat: u64,
    /// When that last changed, or when it was first seen.
    beating: Instant,
    ended: Option<Instant>,
}

impl Source {
    pub(super) fn new(ipc: Client) -> Self {
        let reader = ipc.state();
        Self { heartbeat: reader.heartbeat(), reader, ipc, beating: Instant::now(), ended: None }
    }

    /// A first picture: what never changes.
    pub(super) fn picture(&self) -> Picture {
        Picture { description: self.ipc.description().clone(), ..Picture::default() }
    }

    /// True if anything can be seen of it.
    pub(super) fn has_state(&self) -> bool {
        self.reader.heartbeat() > 0
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() || self.ipc.has_ended()
    }

    /// Takes what is newest into the picture. After the end the last state stays.
    pub(super) fn look(&mut self, picture: &mut Picture) -> Result<(), Failure> {
        self.look_at_its_end(picture);
        // Otherwise looked at again soon.
        if let Ok(state) = self.reader.read() {
            picture.take(state, now_ns());
        }
        if let Ok(document) = self.ipc.diagnostics() {
            // What cannot be read is shown as it is.
            let value = serde_json::from_str(&document).unwrap_or(serde_json::Value::String(document));
            picture.diagnostics = Some(value);
        }
        Ok(())
    }

    /// Checks whether the cycle has ended; all else stays in the picture.
    pub(super) fn look_at_its_end(&mut self, picture: &mut Picture) {
        let now = Instant::now();
        if self.ended.is_none() && self.ipc.has_ended() {
            self.ended = Some(now);
        }
        let heartbeat = self.reader.heartbeat();
        if heartbeat != self.heartbeat {
            (self.heartbeat, self.beating) = (heartbeat, now);
        }
        let still = now.duration_since(self.beating);
        picture.standing = match self.ended {
            Some(ended) => {
                let why = format!("ended: process {} has ended or closed its IPC", self.ipc.process());
                Standing::Ended(why, now.duration_since(ended))
            }
            None if still > STILL => Standing::Still(still),
            None => Standing::Live,
        };
    }
}

/// Time without a new cycle after which the run counts as stalled.
pub(crate) const STILL: Duration = Duration::from_millis(500);

/// Interval of looks for one that does not run yet.
pub(super) const LOOK_FOR_ONE: Duration = Duration::from_millis(200);
