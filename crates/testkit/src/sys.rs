//! The only unsafe code of the testbed: an allocator that reports its calls, and processes that end
//! with the one that started them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// The system's allocator, which calls this function before every allocation, reallocation and
/// release.
///
/// The function runs inside the allocator: it allocates nothing, and uses no thread-local that
/// needs a destructor.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use testkit::CountingAllocator;
///
/// static CALLS: AtomicU64 = AtomicU64::new(0);
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator =
///     CountingAllocator(|| drop(CALLS.fetch_add(1, Ordering::Relaxed)));
///
/// let before = CALLS.load(Ordering::Relaxed);
/// drop(std::hint::black_box(Box::new(7)));
/// assert!(CALLS.load(Ordering::Relaxed) >= before + 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator(pub fn());

// SAFETY: every call goes to the system's allocator unchanged, after a function that does not
// allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Makes the process that `command` starts end (SIGKILL) with the thread that starts it, however
/// that ends: a test that is killed leaves no program behind. A test that calls this ends with its
/// `cargo test` from now on, too.
///
/// A program may ask for another signal itself, to end in order. Programs that change their user
/// forget it (prctl(2), PR_SET_PDEATHSIG).
pub fn end_with_parent(command: &mut Command) -> &mut Command {
    if is_run_by_cargo() {
        // Where the kernel refuses it nothing is lost but this.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the request.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: between fork and exec the closure makes two system calls, and neither allocates nor
    // locks.
    unsafe { command.pre_exec(ask) }
}

/// True for a child of `cargo`, as tests are. What `cargo run` starts takes its place, and is a
/// child of the shell, which may end before it.
fn is_run_by_cargo() -> bool {
    let name = getppid().map(|parent| std::fs::read_to_string(format!("/proc/{parent}/comm")));
    name.is_some_and(|name| name.is_ok_and(|name| name == "cargo\n"))
}
