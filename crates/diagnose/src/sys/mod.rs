//! The operating system: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

/// Subject of an event's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A tracepoint, by the number tracefs gives it.
    Tracepoint(u64),
    /// All page faults, as they begin.
    Faults,
    /// Page faults served without I/O, as they end.
    MinorFaults,
    /// Page faults that waited for I/O, as they end.
    MajorFaults,
    /// Nothing; it carries [`Wanted::switches`].
    Dummy,
}

/// Contents of each sample of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Registers, and this many bytes of the stack, a multiple of 8 below 64 KiB; 0 for neither.
    pub(crate) stack: u32,
    /// A record of each context switch.
    pub(crate) switches: bool,
    /// Events inside the kernel count as well: needs CAP_PERFMON or perf_event_paranoid 1.
    pub(crate) kernel: bool,
    /// The tracepoint's fields: needs CAP_PERFMON or perf_event_paranoid -1.
    pub(crate) fields: bool,
}

/// One event of one thread.
#[derive(Debug)]
pub(crate) struct Event {
    descriptor: OwnedFd,
    id: u64,
}

impl Event {
    /// Opens it, switched off. Every occurrence is one record, stamped with CLOCK_MONOTONIC: see
    /// [`SAMPLE`] for its parts.
    ///
    /// # Errors
    /// EACCES or EPERM if perf_event_paranoid forbids it; ENOENT or ENOSYS on a kernel without;
    /// ESRCH without the thread.
    pub(crate) fn open(tid: i32, source: Source, wanted: Wanted) -> io::Result<Self> {
        let mut attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            sample_period: 1,
            sample_type: SAMPLE,
            flags: DISABLED | EXCLUDE_HV | SAMPLE_ID_ALL | WATERMARK | USE_CLOCKID,
            // No wakeup, least of all by the real-time thread: the reader polls.
            wakeup_watermark: u32::MAX,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        (attributes.kind, attributes.config) = match source {
            Source::Tracepoint(number) => (PERF_TYPE_TRACEPOINT, number),
            Source::Faults => (PERF_TYPE_SOFTWARE, 2),
            Source::MinorFaults => (PERF_TYPE_SOFTWARE, 5),
            Source::MajorFaults => (PERF_TYPE_SOFTWARE, 6),
            Source::Dummy => (PERF_TYPE_SOFTWARE, 9),
        };
        attributes.flags |= if wanted.kernel { 0 } else { EXCLUDE_KERNEL };
        attributes.flags |= if wanted.switches { CONTEXT_SWITCH } else { 0 };
        attributes.sample_type |= if wanted.fields { SAMPLE_RAW } else { 0 };
        if wanted.stack > 0 {
            attributes.sample_type |= SAMPLE_REGS_USER | SAMPLE_STACK_USER;
            attributes.sample_regs_user = REGISTERS;
            attributes.sample_stack_user = wanted.stack;
        }
        let (any_cpu, no_group): (libc::c_int, libc::c_int) = (-1, -1);
        // SAFETY: `attributes` is valid, says its own size, and outlives the call, which only reads
        // it.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                tid,
                any_cpu,
                no_group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) };
        let mut event = Self { descriptor, id: 0 };
        let id = &raw mut event.id;
        // SAFETY: PERF_EVENT_IOC_ID writes 8 bytes, and `id` has them.
        check(unsafe { libc::ioctl(event.raw(), IOC_ID, id) })?;
        Ok(event)
    }

    /// The number that its records start with.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Lets it happen only where this holds, in the kernel's words about the tracepoint's fields.
    pub(crate) fn filter(&self, words: &str) -> io::Result<()> {
        let words = CString::new(words)?;
        // SAFETY: PERF_EVENT_IOC_SET_FILTER reads a terminated string, which outlives the call.
        check(unsafe { libc::ioctl(self.raw(), IOC_SET_FILTER, words.as_ptr()) })
    }

    /// Puts its records into the ring of `other`.
    pub(crate) fn redirect_to(&self, other: &Self) -> io::Result<()> {
        // SAFETY: takes a descriptor only.
        check(unsafe { libc::ioctl(self.raw(), IOC_SET_OUTPUT, other.raw()) })
    }

    /// Switches it on.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: takes no argument.
        check(unsafe { libc::ioctl(self.raw(), IOC_ENABLE, 0) })
    }

    /// Switches it on for `times` records; about then it switches itself off.
    pub(crate) fn enable_for(&self, times: libc::c_int) -> io::Result<()> {
        // SAFETY: takes a number only.
        check(unsafe { libc::ioctl(self.raw(), IOC_REFRESH, times) })
    }

    fn raw(&self) -> libc::c_int {
        self.descriptor.as_raw_fd()
    }
}

/// The records of an event, and of the events [redirected](Event::redirect_to) to it, in
/// chronological order.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: NonNull<u8>,
    length: usize,
    page: usize,
    scratch: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone, and no method of it depends on the thread it is
// called on.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of 2^`order` pages; what finds no space is dropped, and counted by a record.
    ///
    /// # Errors
    /// EPERM past perf_event_mlock_kb and the limit of locked memory.
    pub(crate) fn of(event: &Event, order: u32) -> io::Result<Self> {
        // SAFETY: takes a constant, and cannot fail for this one.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let length = page * ((1 << order) + 1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, event.raw(), 0) };
        match NonNull::new(memory.cast::<u8>()) {
            Some(data) if memory != libc::MAP_FAILED => {
                Ok(Self { memory: data, length, page, scratch: Vec::new() })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes what is there, oldest first: kind and `misc` of each record's header, and what follows
    /// it.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(u32, u16, &[u8])) {
        let size = (self.length - self.page) as u64;
        // Partner: the kernel's barrier between the records and this number.
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        while tail < head {
            let mut header = [0; 8];
            self.copy(tail % size, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let whole = u16::from_ne_bytes([header[6], header[7]]);
            // The kernel's records have 8 bytes or more; anything else would turn this into a loop
            // without end.
            let Some(rest) = usize::from(whole).checked_sub(8) else {
                tail = head;
                break;
            };
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.resize(rest, 0);
            self.copy((tail + 8) % size, &mut scratch);
            each(kind, misc, &scratch);
            self.scratch = scratch;
            tail += u64::from(whole);
        }
        // Partner: the kernel reads it before it writes over what was read.
        self.word(DATA_TAIL).store(tail, Ordering::Release);
    }

    /// A number of the first page.
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `offset` is that of an aligned 64-bit number in the first page, which is mapped,
        // readable and writable as long as `self` lives; the kernel changes it as an atomic.
        unsafe { &*self.memory.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Bytes of the data, from `at`, round the end.
    fn copy(&self, at: u64, to: &mut [u8]) {
        let size = self.length - self.page;
        let at = at as usize % size;
        let first = to.len().min(size - at);
        let (one, two) = to.split_at_mut(first);
        let two_length = two.len().min(size);
        // SAFETY: both pieces lie in the data pages, behind the first page; the kernel writes none
        // of them until `data_tail` has passed them; `to` is ours.
        unsafe {
            let data = self.memory.as_ptr().add(self.page);
            ptr::copy_nonoverlapping(data.add(at), one.as_mut_ptr(), one.len());
            ptr::copy_nonoverlapping(data, two.as_mut_ptr(), two_length);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}

/// A record of an [`Event`] (PERF_RECORD_SAMPLE): its id, then [`SAMPLE`]'s parts.
pub(crate) const RECORD_SAMPLE: u32 = 9;
/// Records were dropped: id and how many.
pub(crate) const RECORD_LOST: u32 = 2;
/// The thread was switched in or out, as `misc` says.
pub(crate) const RECORD_SWITCH: u32 = 14;
/// Out.
pub(crate) const MISC_SWITCH_OUT: u16 = 1 << 13;
/// Out, though it could have run.
pub(crate) const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Fields of every sample, in this order: id, instruction pointer, process and thread, time,
/// address: 40 bytes.
const SAMPLE: u64 = SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR;
/// Bytes of these parts.
pub(crate) const SAMPLE_BYTES: usize = 40;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;

/// Instruction pointer, stack pointer and frame pointer, in the order in which they come: the
/// lowest bit first (arch/x86/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Frame pointer, link register, stack pointer, program counter
/// (arch/arm64/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: u64 = 0;

/// Number of registers that a stack comes with.
pub(crate) const REGISTER_COUNT: usize = REGISTERS.count_ones() as usize;

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

// Bits of `Attributes::flags`, from include/uapi/linux/perf_event.h.
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;

const IOC_ENABLE: libc::Ioctl = 0x2400 as libc::Ioctl;
const IOC_REFRESH: libc::Ioctl = 0x2402 as libc::Ioctl;
const IOC_SET_OUTPUT: libc::Ioctl = 0x2405 as libc::Ioctl;
const IOC_SET_FILTER: libc::Ioctl = 0x4008_2406 as libc::Ioctl;
const IOC_ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;

/// Offsets in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 0x400;
const DATA_TAIL: usize = 0x408;

/// `struct perf_event_attr`, version 5: since Linux 4.1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
