//! The operating system: every unsafe block of this crate, each with its argument. What libraries wrap safely
//! (pipes, futexes, timers) is used from there.
//!
//! | module | what it asks Linux for |
//! |---|---|
//! | [`cache`] | a value behind a mutex |
//! | [`cuda`] | the graphics driver, loaded at run time |
//! | [`semaphore`] | POSIX semaphores within a process |
//! | [`mutex`] | mutexes, plain and with priority inheritance |
//! | [`message_queue`] | POSIX message queues |
//! | [`network`] | network namespaces |
//! | [`posix_timer`] | a timer that ends with a signal to one thread |
//! | [`stamped`] | Ethernet frames, each with the instant at which the kernel took it in |
#![allow(unsafe_code)]

pub(crate) mod cache;
pub(crate) mod cuda;
pub(crate) mod message_queue;
pub(crate) mod mutex;
pub(crate) mod network;
pub(crate) mod posix_timer;
pub(crate) mod semaphore;
pub(crate) mod stamped;
