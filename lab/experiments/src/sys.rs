//! Operating system interface: every unsafe block of this crate, each with its argument. Safe
//! wrappers of libraries (pipes, futexes, timers) are used from there.
//!
//! | module | system calls for |
//! |---|---|
//! | [`cache`] | value behind a mutex |
//! | [`cuda`] | graphics driver, loaded at run time |
//! | [`semaphore`] | POSIX semaphores within a process |
//! | [`mutex`] | mutexes, plain and with priority inheritance |
//! | [`message_queue`] | POSIX message queues |
//! | [`network`] | network namespaces |
//! | [`posix_timer`] | timer that sends a signal to one thread |
//! | [`stamped`] | Ethernet frames with the kernel's receive time stamps |
//! | [`usage`] | context switches of the calling thread |
#![allow(unsafe_code)]

pub(crate) mod cache;
pub(crate) mod cuda;
pub(crate) mod message_queue;
pub(crate) mod mutex;
pub(crate) mod network;
pub(crate) mod posix_timer;
pub(crate) mod semaphore;
pub(crate) mod stamped;
pub(crate) mod usage;
