//! Emptying and removal of control groups.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use crate::task::Task;

/// Moves every thread listed in `from` to `to`, including threads started meanwhile. Returns the
/// threads that the kernel refuses to move, with its last reason.
pub(crate) fn move_all(from: &Path, to: &Path) -> io::Result<Option<Stuck>> {
    let mut stuck = None;
    for _ in 0..PASSES {
        stuck = None;
        let mut moved = false;
        // A thread of another PID namespace has the number 0, and a 0 that is written moves the
        // writer.
        for thread in fs::read_to_string(from)?.lines().filter(|&thread| thread != "0") {
            match fs::write(to, thread) {
                Ok(()) => moved = true,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(why) => stuck.get_or_insert_with(|| Stuck::for_(why)).add(thread),
            }
        }
        if !moved {
            break;
        }
    }
    Ok(stuck)
}

/// Returns the threads in `list` to `home`, or to the nearest group above it that exists and takes
/// them.
pub(super) fn return_all(list: &Path, home: &Path) -> io::Result<()> {
    let mut stuck = None;
    for home in lists_above(home) {
        stuck = move_all(list, &home)?;
        if stuck.is_none() {
            return Ok(());
        }
    }
    // No group to return to: the hierarchy is not mounted any more, and its groups are gone with
    // it.
    stuck.map_or(Ok(()), |stuck| Err(stuck.error()))
}

/// The list `home`, then the existing lists of the same name in the folders above.
fn lists_above(home: &Path) -> Vec<PathBuf> {
    let Some((folder, name)) = home.parent().zip(home.file_name()) else { return Vec::new() };
    folder.ancestors().map(|folder| folder.join(name)).filter(|list| list.is_file()).collect()
}

/// Removes a control group. Threads that are still in it go to the group above; where some cannot,
/// it stays, and gets the CPUs of the group above for them.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let Some(above) = path.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
    for _ in 0..PASSES {
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            done => return done,
        }
        for name in LISTS {
            let _ = move_all(&path.join(name), &above.join(name));
        }
        // It can be busy a moment longer with threads that are just ending.
        thread::sleep(Duration::from_millis(10));
    }
    let error = match fs::remove_dir(path) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => error,
        done => return done,
    };
    if let Ok(all) = fs::read_to_string(above.join(CPUS)) {
        let _ = fs::write(path.join(CPUS), all.trim());
    }
    let listed = LISTS.iter().find_map(|name| fs::read_to_string(path.join(name)).ok());
    let mut stuck = Stuck::for_(error);
    listed.unwrap_or_default().lines().for_each(|thread| stuck.add(thread));
    Err(stuck.error())
}

/// Threads that stay where they are.
#[derive(Debug)]
pub(crate) struct Stuck {
    threads: Vec<String>,
    why: io::Error,
    /// True while all of them are the kernel's own, bound where they are.
    bound: bool,
}

impl Stuck {
    fn for_(why: io::Error) -> Self {
        Self { threads: Vec::new(), why, bound: true }
    }

    fn add(&mut self, thread: &str) {
        let task = thread.parse().ok().and_then(Task::read);
        self.bound &= task.as_ref().is_some_and(|task| task.bound);
        self.threads.push(task.map_or(thread.to_owned(), |task| format!("{thread} ({})", task.name)));
    }

    /// The threads by name, as a reason that may pass if one of them may be moved later.
    fn error(self) -> io::Error {
        let Self { threads, why, bound } = self;
        let named = threads.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join(", ");
        let text = match threads.len() {
            0 => return why,
            1 => format!("thread {named} stays in it: {why}"),
            number if number > TOLD => format!("{number} threads stay in it, {named} among them: {why}"),
            _ => format!("threads {named} stay in it: {why}"),
        };
        let kind = if bound { io::ErrorKind::InvalidInput } else { io::ErrorKind::ResourceBusy };
        io::Error::new(kind, text)
    }
}

/// Files in which a control group lists its threads: of version 1, and of version 2.
pub(super) const LISTS: [&str; 2] = ["tasks", "cgroup.threads"];

/// File with the CPUs of a control group.
const CPUS: &str = "cpuset.cpus";

/// Threads may start others while they are moved.
const PASSES: usize = 16;

/// Most threads named.
const TOLD: usize = 5;

/// Mount point of the cgroup v1 hierarchy with this controller; `None` asks for cgroup v2.
pub(crate) fn mount(controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, place, kind, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let wanted = match controller {
            Some(name) => kind == "cgroup" && options.split(',').any(|option| option == name),
            None => kind == "cgroup2",
        };
        wanted.then(|| PathBuf::from(place))
    })
}

/// Control group of this process in a hierarchy; `controller` as for [`mount`].
pub(crate) fn own(controller: Option<&str>) -> Option<String> {
    find(Path::new("/proc/self/cgroup"), controller)
}

/// Control group of a thread.
pub(crate) fn of(tid: i32, controller: Option<&str>) -> Option<String> {
    find(Path::new(&format!("/proc/{tid}/cgroup")), controller)
}

fn find(path: &Path, controller: Option<&str>) -> Option<String> {
    let groups = fs::read_to_string(path).ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let wanted = match controller {
            Some(name) => controllers.split(',').any(|it| it == name),
            None => controllers.is_empty(),
        };
        wanted.then(|| path.to_owned())
    })
}
