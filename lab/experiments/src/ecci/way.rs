//! Ways to share the cycle's state and to pass its commands: our shared-memory interface, and a
//! cache behind a mutex.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipc::client::Client;
use ipc::command::{AxisTarget, Command};
use ipc::description::{AxisDescription, Description, SignalDescription};
use ipc::state::{Axis, State};
use ipc::units::Radians;
use ipc::{command, controller, server, state};

use crate::sys::cache::Cache;
use crate::sys::mutex::Protocol;
use types::CyclicMode;

/// Way to share the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Our shared-memory interface.
    Ipc,
    /// Our interface next to readers of another one: the same load on the machine, without readers
    /// of ours.
    IpcUnread,
    /// Cache behind a mutex with priority inheritance, as in the humanoid paper.
    Inheriting,
    /// Cache behind a plain mutex.
    Plain,
}

impl Way {
    /// Name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ipc => "our IPC",
            Self::IpcUnread => "our IPC, unread",
            Self::Inheriting => "mutex cache with priority inheritance",
            Self::Plain => "plain mutex cache",
        }
    }

    /// Name in file names.
    pub(super) const fn slug(self) -> &'static str {
        match self {
            Self::Ipc => "ipc",
            Self::IpcUnread => "ipc-unread",
            Self::Inheriting => "inheriting-mutex",
            Self::Plain => "plain-mutex",
        }
    }

    /// Creates its ends: the cycle's, the commanding one, and this many readers.
    ///
    /// # Errors
    /// A system call fails.
    pub(super) fn open(self, axes: usize, readers: usize) -> io::Result<Ends> {
        match self {
            Self::Ipc => of_ipc(axes, readers, false),
            Self::IpcUnread => of_ipc(axes, readers, true),
            Self::Inheriting => of_cache(Protocol::Inherit, axes, readers),
            Self::Plain => of_cache(Protocol::Plain, axes, readers),
        }
    }
}

/// All ends of one way.
pub(super) struct Ends {
    pub(super) cycle: Box<dyn CycleEnd>,
    pub(super) commander: Box<dyn CommandEnd>,
    pub(super) readers: Vec<Box<dyn ReadEnd>>,
    /// Resources that must live as long as the ends.
    pub(super) keep: Vec<Box<dyn Send>>,
}

/// The cycle's end: one request a cycle.
pub(super) trait CycleEnd: Send {
    /// Shares the state, and takes the newest command if it is newer than `command`; false if it
    /// could not be read as a whole.
    fn request(&mut self, state: &State, command: &mut Command) -> io::Result<bool>;
}

/// The commanding thread's end.
pub(super) trait CommandEnd: Send {
    fn send(&mut self, command: &Command) -> io::Result<()>;
}

/// A reader's end.
pub(super) trait ReadEnd: Send {
    /// Reads the newest state; false if there is none yet.
    fn read(&mut self, state: &mut State) -> io::Result<bool>;
}

/// Stamps the number of the cycle into every axis of a state.
pub(super) fn stamped(state: &mut State, cycle: u64) {
    state.cycle = cycle;
    state.release_ns = cycle;
    let mark = cycle as f64;
    for axis in &mut state.axes {
        *axis = Axis { position: mark, velocity: mark, effort: mark, target_position: mark, ..*axis };
        (axis.target_velocity, axis.target_effort) = (mark, mark);
    }
}

/// True if all parts are of one cycle.
pub(super) fn is_whole(state: &State) -> bool {
    let mark = state.cycle as f64;
    state.release_ns == state.cycle
        && state.axes.iter().all(|axis| {
            [
                axis.position,
                axis.velocity,
                axis.effort,
                axis.target_position,
                axis.target_velocity,
                axis.target_effort,
            ] == [mark; 6]
        })
}

/// State of this many axes.
pub(crate) fn state_of(axes: usize) -> State {
    State { axes: vec![Axis { drive_state: 5, fresh: true, ..Axis::default() }; axes], ..State::default() }
}

/// Command with this mark in every axis.
pub(super) fn command_of(axes: usize, mark: u64) -> Command {
    let target = AxisTarget::Position(Radians(mark as f64));
    Command { time_to_live_ns: u64::MAX, axes: vec![Some(target); axes], ..Command::default() }
}

/// True if all parts of a command have the same mark.
pub(super) fn is_whole_command(command: &Command) -> bool {
    command.axes.windows(2).all(|pair| pair[0] == pair[1])
}

fn of_ipc(axes: usize, readers: usize, beside: bool) -> io::Result<Ends> {
    let (ends, server, folder) = open_ipc(axes)?;
    let attached = Client::open(server.path()).map_err(io::Error::other)?;
    let commander = attached.command().map_err(io::Error::other)?;
    let mut keep: Vec<Box<dyn Send>> = Vec::new();
    let read_path = if beside {
        let (mut other, other_door, other_folder) = open_ipc(axes)?;
        let mut state = state_of(axes);
        stamped(&mut state, 1);
        other.state.publish(&state);
        let path = other_door.path().to_owned();
        keep.push(Box::new((other, other_door, other_folder)));
        path
    } else {
        server.path().to_owned()
    };
    // Each reader attaches separately with a separate mapping, as a process would.
    let reader = |_| -> io::Result<Box<dyn ReadEnd>> {
        Ok(Box::new(IpcReader(Client::open(&read_path).map_err(io::Error::other)?.state())))
    };
    let readers = (0..readers).map(reader).collect::<io::Result<_>>()?;
    keep.push(Box::new((attached, server, folder)));
    Ok(Ends { cycle: Box::new(IpcEnd(ends)), commander: Box::new(IpcCommander(commander)), readers, keep })
}

/// Opens an interface in a separate folder, where a search for cycles does not find it.
pub(crate) fn open_ipc(axes: usize) -> io::Result<(server::Endpoints, server::Server, Folder)> {
    let (ipc, folder) = builder(axes, Vec::new())?;
    let (ends, server) = ipc.open().map_err(io::Error::other)?;
    Ok((ends, server, folder))
}

/// Opens such an interface with these signals, for a cycle with its controller in another process.
pub(super) fn controlled(
    axes: usize,
    signals: Vec<SignalDescription>,
) -> io::Result<(controller::CycleEnd, Door)> {
    let (mut builder, folder) = builder(axes, signals)?;
    let end = builder.controller();
    let (ends, server) = builder.open().map_err(io::Error::other)?;
    Ok((end, Door { server, _ends: ends, _folder: folder }))
}

/// An open interface; dropping it reports the end of the cycle to its processes.
pub(super) struct Door {
    server: server::Server,
    _ends: server::Endpoints,
    _folder: Folder,
}

impl Door {
    /// Its socket.
    pub(super) fn path(&self) -> &Path {
        self.server.path()
    }
}

fn builder(axes: usize, signals: Vec<SignalDescription>) -> io::Result<(server::Builder, Folder)> {
    let axis =
        |number: usize| AxisDescription::new(format!("axis {number}"), CyclicMode::Position, 1.0, 1.0);
    let description =
        Description { axes: (0..axes).map(axis).collect(), signals, ..Description::default() };
    let folder = Folder::new()?;
    let mut ipc = server::Builder::new("ecci", &description);
    ipc.folder(&folder.0);
    Ok((ipc, folder))
}

/// Folder that is removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!(
            "onbeat-ecci-{}-{:08x}",
            std::process::id(),
            fastrand::u32(..)
        ));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct IpcEnd(server::Endpoints);

impl CycleEnd for IpcEnd {
    fn request(&mut self, state: &State, command: &mut Command) -> io::Result<bool> {
        self.0.state.publish(state);
        Ok(self.0.command.newest(command) != command::Read::Torn)
    }
}

struct IpcCommander(command::Writer);

impl CommandEnd for IpcCommander {
    fn send(&mut self, command: &Command) -> io::Result<()> {
        self.0.send(command).map(drop).map_err(io::Error::other)
    }
}

struct IpcReader(state::Reader);

impl ReadEnd for IpcReader {
    fn read(&mut self, state: &mut State) -> io::Result<bool> {
        match self.0.read_into(state) {
            Ok(()) => Ok(true),
            // Lapped while it was not running; it tries again.
            Err(_) => Ok(false),
        }
    }
}

/// Contents of the cache.
struct WayState {
    state: State,
    command: Command,
}

fn of_cache(protocol: Protocol, axes: usize, readers: usize) -> io::Result<Ends> {
    let shared = WayState { state: state_of(axes), command: command_of(axes, 0) };
    let cache = Arc::new(Cache::new(protocol, shared)?);
    let readers = (0..readers).map(|_| Box::new(CacheEnd(cache.clone())) as Box<dyn ReadEnd>).collect();
    Ok(Ends {
        cycle: Box::new(CacheEnd(cache.clone())),
        commander: Box::new(CacheEnd(cache)),
        readers,
        keep: Vec::new(),
    })
}

/// End of any kind: all of them lock, copy, and unlock.
struct CacheEnd(Arc<Cache<WayState>>);

impl CycleEnd for CacheEnd {
    fn request(&mut self, state: &State, command: &mut Command) -> io::Result<bool> {
        self.0.with(|shared| {
            copy(state, &mut shared.state);
            if shared.command.sequence != command.sequence {
                command.axes.clone_from(&shared.command.axes);
                command.sequence = shared.command.sequence;
            }
            true
        })
    }
}

impl CommandEnd for CacheEnd {
    fn send(&mut self, command: &Command) -> io::Result<()> {
        self.0.with(|shared| {
            let sequence = shared.command.sequence + 1;
            shared.command.axes.clone_from(&command.axes);
            shared.command.sequence = sequence;
        })
    }
}

impl ReadEnd for CacheEnd {
    fn read(&mut self, state: &mut State) -> io::Result<bool> {
        self.0.with(|shared| copy(&shared.state, state))?;
        Ok(state.cycle > 0)
    }
}

/// Copies a state into one with as many axes, signals and interlocks, without allocation.
fn copy(from: &State, to: &mut State) {
    let mut axes = std::mem::take(&mut to.axes);
    axes.clone_from(&from.axes);
    let mut signals = std::mem::take(&mut to.signals);
    signals.clone_from(&from.signals);
    let mut interlocks = std::mem::take(&mut to.interlocks);
    interlocks.clone_from(&from.interlocks);
    *to = State { axes, signals, interlocks, ..*from };
}
