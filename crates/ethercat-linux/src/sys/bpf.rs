//! The XDP program that hands the EtherCAT frames of one interface to AF_XDP sockets, and its
//! attachment (bpf(2)).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::packet_socket::ETHERTYPE;

/// Sockets that take an interface's EtherCAT frames, one for each queue. The kernel's network stack
/// takes all other frames, and the frames of queues without a socket.
///
/// The program goes with its link's descriptor: the kernel detaches it however the process ends.
#[derive(Debug)]
pub(crate) struct Redirect {
    sockets: OwnedFd,
    _link: OwnedFd,
}

/// Place of an XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the driver, before a frame becomes a packet of the kernel's.
    Driver,
    /// Behind the driver, with any driver.
    Generic,
}

/// Step of an attachment that failed.
#[derive(Debug)]
pub(crate) enum Step {
    /// The map of the sockets, or the program: not yet on the interface.
    Load(io::Error),
    /// The program on the interface.
    Attach(io::Error),
}

/// `struct bpf_insn` of linux/bpf.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Operations, of linux/bpf.h and linux/bpf_common.h.
mod operation {
    pub(super) const LOAD_WORD: u8 = 0x61;
    pub(super) const LOAD_HALF: u8 = 0x69;
    pub(super) const LOAD_MAP: u8 = 0x18;
    pub(super) const MOVE: u8 = 0xBF;
    pub(super) const MOVE_NUMBER: u8 = 0xB7;
    pub(super) const ADD_NUMBER: u8 = 0x07;
    pub(super) const JUMP_IF_ABOVE: u8 = 0x2D;
    pub(super) const JUMP_IF_NOT_NUMBER: u8 = 0x55;
    pub(super) const CALL: u8 = 0x85;
    pub(super) const EXIT: u8 = 0x95;
}

/// Source register of [`operation::LOAD_MAP`] with a map's descriptor as its number.
const PSEUDO_MAP: u8 = 1;
const HELPER_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
const ETHERNET_HEADER: i32 = 14;

/// Fields of `struct xdp_md` of linux/bpf.h.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    // Bit fields: the first lies where the byte order begins.
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    Instruction { code, registers, offset, immediate }
}

/// Passes frames of EtherCAT's EtherType to the socket of their queue, and all others to the
/// kernel.
fn program(sockets: BorrowedFd<'_>) -> [Instruction; 15] {
    use operation::{
        ADD_NUMBER, CALL, EXIT, JUMP_IF_ABOVE, JUMP_IF_NOT_NUMBER, LOAD_HALF, LOAD_MAP, LOAD_WORD, MOVE,
        MOVE_NUMBER,
    };
    let ethertype = i32::from(ETHERTYPE.to_be());
    [
        instruction(LOAD_WORD, 2, 1, DATA, 0),
        instruction(LOAD_WORD, 3, 1, DATA_END, 0),
        instruction(MOVE, 4, 2, 0, 0),
        instruction(ADD_NUMBER, 4, 0, 0, ETHERNET_HEADER),
        instruction(JUMP_IF_ABOVE, 4, 3, 8, 0),
        instruction(LOAD_HALF, 4, 2, 12, 0),
        instruction(JUMP_IF_NOT_NUMBER, 4, 0, 6, ethertype),
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_MAP, 1, PSEUDO_MAP, 0, sockets.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        // What the helper returns for a queue without a socket.
        instruction(MOVE_NUMBER, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, HELPER_REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
        instruction(MOVE_NUMBER, 0, 0, 0, XDP_PASS),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

impl Redirect {
    /// Attaches the program to the interface with this index, for queues below `queues`, none of
    /// which has a socket yet.
    ///
    /// # Errors
    /// EPERM without CAP_BPF and CAP_NET_ADMIN; EBUSY or EEXIST if there is another program;
    /// EOPNOTSUPP and others if the driver takes none.
    pub(crate) fn attach(index: u32, queues: u32, place: Place) -> Result<Self, Step> {
        let sockets = socket_map(queues).map_err(Step::Load)?;
        let program = load(&program(sockets.as_fd())).map_err(Step::Load)?;
        let link = link(&program, index, place).map_err(Step::Attach)?;
        // The link keeps the program.
        Ok(Self { sockets, _link: link })
    }

    /// From now on EtherCAT frames of this queue go to this socket.
    pub(crate) fn give(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
        #[repr(C)]
        struct Update {
            map: u32,
            _padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let socket = socket.as_raw_fd();
        let (key, value) = (&raw const queue as u64, &raw const socket as u64);
        let mut update = Update { map: number(&self.sockets), _padding: 0, key, value, flags: 0 };
        // SAFETY: key and value are live integers of the sizes that the map was made with.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut update) }.map(drop)
    }
}

fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    const BPF_MAP_CREATE: libc::c_int = 0;
    const BPF_MAP_TYPE_XSKMAP: u32 = 17;
    #[repr(C)]
    struct Create {
        kind: u32,
        key_size: u32,
        value_size: u32,
        entries: u32,
    }
    let mut create = Create { kind: BPF_MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, entries: queues };
    // SAFETY: the command takes integers only, and returns a descriptor.
    unsafe { bpf_descriptor(BPF_MAP_CREATE, &mut create) }
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: libc::c_int = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    const LICENSE: &CStr = c"Dual MIT/GPL";
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
    }
    let mut load = Load {
        kind: BPF_PROG_TYPE_XDP,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
    };
    // SAFETY: `count` instructions and a terminated string, which all outlive the call; it returns
    // a descriptor.
    unsafe { bpf_descriptor(BPF_PROG_LOAD, &mut load) }
}

fn link(program: &OwnedFd, index: u32, place: Place) -> io::Result<OwnedFd> {
    const BPF_LINK_CREATE: libc::c_int = 28;
    const BPF_XDP: u32 = 37;
    const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
    const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
    #[repr(C)]
    struct Link {
        program: u32,
        interface: u32,
        attach_type: u32,
        flags: u32,
    }
    let flags = match place {
        Place::Driver => XDP_FLAGS_DRV_MODE,
        Place::Generic => XDP_FLAGS_SKB_MODE,
    };
    let mut link = Link { program: number(program), interface: index, attach_type: BPF_XDP, flags };
    // SAFETY: the command takes integers only, and returns a descriptor.
    unsafe { bpf_descriptor(BPF_LINK_CREATE, &mut link) }
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd() as u32
}

/// # Safety
/// `attributes` begin as the attributes of `command` in `union bpf_attr`, without an unwritten gap,
/// its pointers are live, and the command returns a descriptor.
unsafe fn bpf_descriptor<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: of the caller.
    let descriptor = unsafe { bpf(command, attributes)? };
    // SAFETY: the descriptor is open, owned by nothing else, and closed on exec as all of bpf(2)
    // are.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// # Safety
/// `attributes` begin as the attributes of `command` in `union bpf_attr`, without an unwritten gap,
/// and its pointers are live.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel accesses no more than the size of `attributes`, which is live; the caller
    // ensures the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}
