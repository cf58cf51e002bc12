//! Control groups: mount points of their hierarchies, and the groups of a thread.

use std::fs;
use std::path::{Path, PathBuf};

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
