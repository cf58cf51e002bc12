//! Where the control groups are.

use std::fs;
use std::path::PathBuf;

/// Where a cgroup v1 hierarchy with this controller is mounted; `None` asks for cgroup v2.
pub(super) fn mount(controller: Option<&str>) -> Option<PathBuf> {
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

/// Control group of this process in a hierarchy, as `/proc/self/cgroup` says it.
pub(super) fn own(controller: Option<&str>) -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
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
