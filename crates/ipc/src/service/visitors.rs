//! Clients of the server and their rights.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use rustix::time::Timespec;

use crate::channel::far::has_hung_up;
use crate::sys::groups::peer_groups;

/// Connection of a client.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) socket: OwnedFd,
    pub(super) process: u32,
    pub(super) user: u32,
    pub(super) standing: Standing,
    /// True once it was given the descriptors of an attach.
    pub(super) is_attached: bool,
}

/// Rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// May read only.
    Stranger,
    /// Member of the interface's group: may command.
    Member,
    /// Root, or the user that runs the cycle: may command.
    Owner,
}

impl Visitor {
    /// Identifies the connected user, by the kernel's `SO_PEERCRED`, and its rights.
    pub(super) fn of(socket: OwnedFd, group: Option<u32>) -> std::io::Result<Self> {
        let peer = socket_peercred(&socket)?;
        let user = peer.uid.as_raw();
        let in_group = group.is_some_and(|group| {
            peer.gid.as_raw() == group
                || peer_groups(socket.as_fd()).is_ok_and(|groups| groups.contains(&group))
        });
        let standing = match user {
            _ if user == 0 || user == geteuid().as_raw() => Standing::Owner,
            _ if in_group => Standing::Member,
            _ => Standing::Stranger,
        };
        let process = peer.pid.as_raw_nonzero().get() as u32;
        Ok(Self { socket, process, user, standing, is_attached: false })
    }

    /// True if its process has a controlling terminal (`tty_nr` in `/proc/PID/stat`): a person may
    /// be at it.
    pub(super) fn has_terminal(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process)).unwrap_or_default();
        // Behind the name, which may hold anything: state, parent, group, session, terminal.
        let terminal = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(4));
        terminal.and_then(|number| number.parse::<i32>().ok()).is_some_and(|number| number != 0)
    }

    pub(super) fn may_command(&self) -> bool {
        self.standing != Standing::Stranger
    }

    /// Text of a refusal for want of rights.
    pub(super) fn refusal(&self, group: Option<u32>) -> String {
        let group = group.map_or_else(String::new, |group| format!(" or a member of group {group}"));
        format!(
            "user {} may only look: commands, forces and ports are for user {}, root{group}; \
             `[ipc] group` in the robot file lets a group in",
            self.user,
            geteuid().as_raw()
        )
    }
}

/// Client that holds the lease.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) visitor: Visitor,
    /// Readable once the process has ended, which a connection inherited by a forked child does not
    /// show. `None` if the system does not support it.
    life: Option<OwnedFd>,
}

impl Holder {
    pub(super) fn new(visitor: Visitor) -> Self {
        let process = i32::try_from(visitor.process).ok().and_then(Pid::from_raw);
        let life = process.and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok());
        Self { visitor, life }
    }

    /// Descriptors to poll.
    pub(super) fn wait(&self) -> impl Iterator<Item = PollFd<'_>> {
        let life = self.life.iter().map(|life| PollFd::new(life, PollFlags::IN));
        life.chain([PollFd::new(&self.visitor.socket, PollFlags::IN)])
    }

    /// True if the holder sent more data: its connection takes no requests.
    pub(super) fn has_spoken(&self) -> bool {
        matches!(recv(&self.visitor.socket, &mut [0; 8], RecvFlags::DONTWAIT), Ok((1.., _)))
    }

    /// True if the holder has hung up, or its process has ended.
    pub(super) fn is_gone(&self) -> bool {
        let has_exited = |life: &OwnedFd| {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(life, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        };
        has_hung_up(&self.visitor.socket) || self.life.as_ref().is_some_and(has_exited)
    }
}
