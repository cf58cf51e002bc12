//! Operating system interface: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Socket for the ioctl.
#[derive(Debug)]
pub(crate) struct EthtoolSocket(OwnedFd);

impl EthtoolSocket {
    /// Opens a socket; any kind will do.
    pub(crate) fn open() -> io::Result<Self> {
        // SAFETY: takes no pointer; the result is checked below.
        let number = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `number` is a file descriptor just opened, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// Executes the command in the first word of `block` on an interface; the driver writes its
    /// answer into the rest.
    ///
    /// `N` words must be at least as long as the command's structure: the constants in
    /// `crate::ethtool` are.
    pub(crate) fn ask<const N: usize>(&self, interface: &str, block: &mut [u32; N]) -> io::Result<()> {
        // SAFETY: all-zero bytes are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.is_empty() || interface.len() >= request.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = block.as_mut_ptr().cast();
        // SAFETY: `request` is a whole `ifreq` with a terminated name; its data points at `block`,
        // which lives past the call, is aligned for 32-bit words, and is as long as the structure
        // of its command at least, so the kernel reads and writes within it. No pointer is kept
        // after the call.
        match unsafe { libc::ioctl(self.0.as_fd().as_raw_fd(), SIOCETHTOOL as _, &raw mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// ioctl number of linux/sockios.h.
const SIOCETHTOOL: u32 = 0x8946;

/// Policy and real-time priority of a thread.
pub(crate) fn scheduler(tid: i32) -> io::Result<(i32, i32)> {
    // SAFETY: takes no pointer; the result is checked.
    let policy = check(unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) })?;
    // SAFETY: all-zero bytes are a valid `sched_param`: it holds integers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameters` is valid to write to and outlives the call; the kernel writes its one
    // integer.
    check(unsafe { libc::syscall(libc::SYS_sched_getparam, tid, &raw mut parameters) })?;
    Ok((policy as i32, parameters.sched_priority))
}

/// Schedules a thread by `policy`, at this real-time priority, 0 for the ordinary policies. The
/// nice value stays.
pub(crate) fn set_scheduler(tid: i32, policy: i32, priority: i32) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sched_param`: it holds integers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: `parameters` is valid and outlives the call, which only reads it.
    check(unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const parameters) })
        .map(drop)
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
