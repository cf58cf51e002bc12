//! Who is at the door, and what they may.

use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::sys::groups::peer_groups;

/// A connection.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) socket: OwnedFd,
    pub(super) process: u32,
    user: u32,
    /// May command.
    pub(super) trusted: bool,
}

impl Visitor {
    /// Who connected, as the kernel says (`SO_PEERCRED`), and whether they may command.
    pub(super) fn of(socket: OwnedFd, group: Option<u32>) -> std::io::Result<Self> {
        let peer = socket_peercred(&socket)?;
        let user = peer.uid.as_raw();
        let in_group = group.is_some_and(|group| {
            peer.gid.as_raw() == group
                || peer_groups(socket.as_fd()).is_ok_and(|groups| groups.contains(&group))
        });
        let trusted = user == 0 || user == geteuid().as_raw() || in_group;
        Ok(Self { socket, process: peer.pid.as_raw_nonzero().get() as u32, user, trusted })
    }

    /// What a visitor that may not is told.
    pub(super) fn refusal(&self, group: Option<u32>) -> String {
        let group = group.map_or_else(String::new, |group| format!(" or a member of group {group}"));
        format!(
            "user {} may only look: commands and ports are for user {}, root{group}; \
             `[seam] group` in the robot file lets a group in",
            self.user,
            geteuid().as_raw()
        )
    }
}
