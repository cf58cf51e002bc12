//! AF_XDP, used as simply as can be: one queue, one place to send from, one frame on its way.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::floor::Wire;

/// Places of frames: the first to send from, the others to receive in.
const PLACES: u32 = 128;
const PLACE: u64 = 2048;

/// A socket of an interface's first queue, and the program that gives it the EtherCAT frames.
pub struct RawXdp {
    socket: OwnedFd,
    _program: [OwnedFd; 2],
    memory: *mut u8,
    free: Ring,
    completed: Ring,
    sent: Ring,
    received: Ring,
}

/// A ring in memory that the kernel shares.
struct Ring {
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    entries: *mut u8,
}

impl RawXdp {
    /// Opens `interface`.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(interface: &str) -> Result<Self, String> {
        Self::try_open(interface).map_err(|error| format!("{interface}: {error}"))
    }

    fn try_open(interface: &str) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: each call gets pointers to live values of the sizes it is told; descriptors are owned at once; mappings
        // are made where the kernel likes, and live as long as the process.
        unsafe {
            let index = libc::if_nametoindex(name.as_ptr());
            let socket = owned(libc::socket(libc::AF_XDP, libc::SOCK_RAW, 0))?;
            let bytes = u64::from(PLACES) * PLACE;
            let shared = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            let memory = mapped(bytes as usize, shared, -1, 0)?;
            option(&socket, libc::XDP_UMEM_REG, &[memory as u64, bytes, PLACE, 0])?;
            for ring in [
                libc::XDP_UMEM_FILL_RING,
                libc::XDP_UMEM_COMPLETION_RING,
                libc::XDP_TX_RING,
                libc::XDP_RX_RING,
            ] {
                option(&socket, ring, &PLACES)?;
            }
            let mut offsets: libc::xdp_mmap_offsets = std::mem::zeroed();
            let mut size = size_of_val(&offsets) as u32;
            let offsets_at = (&raw mut offsets).cast();
            checked(libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_XDP,
                libc::XDP_MMAP_OFFSETS,
                offsets_at,
                &mut size,
            ))?;
            let ring = |at: &libc::xdp_ring_offset, page: i64, entry: usize| {
                let bytes = at.desc as usize + PLACES as usize * entry;
                let start = mapped(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), page)?;
                Ok::<_, io::Error>(Ring {
                    producer: start.add(at.producer as usize).cast(),
                    consumer: start.add(at.consumer as usize).cast(),
                    entries: start.add(at.desc as usize),
                })
            };
            let free = ring(&offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64, 8)?;
            let completed = ring(&offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, 8)?;
            let sent = ring(&offsets.tx, libc::XDP_PGOFF_TX_RING, 16)?;
            let received = ring(&offsets.rx, libc::XDP_PGOFF_RX_RING, 16)?;
            for place in 1..PLACES {
                free.entries.cast::<u64>().add(place as usize - 1).write(u64::from(place) * PLACE);
            }
            (*free.producer).store(PLACES - 1, Ordering::Release);
            let mut address: libc::sockaddr_xdp = std::mem::zeroed();
            address.sxdp_family = libc::AF_XDP as u16;
            address.sxdp_flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP;
            address.sxdp_ifindex = index;
            let size = size_of_val(&address) as u32;
            checked(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size))?;
            let program = attach(&socket, index)?;
            Ok(Self { socket, _program: program, memory, free, completed, sent, received })
        }
    }
}

impl Wire for RawXdp {
    fn round_trip(&mut self, frame: &[u8], counter_at: usize) -> Result<u16, String> {
        let Self { memory, free, completed, sent, received, .. } = self;
        // SAFETY: places and entries lie in the mappings, whose sizes are powers of two of entries; each is ours when it is
        // written or read: the first place until it is sent, a received one until it is free again.
        unsafe {
            ptr::copy_nonoverlapping(frame.as_ptr(), *memory, frame.len());
            let number = (*sent.producer).load(Ordering::Relaxed);
            let entry = libc::xdp_desc { addr: 0, len: frame.len() as u32, options: 0 };
            sent.entries.cast::<libc::xdp_desc>().add((number % PLACES) as usize).write(entry);
            (*sent.producer).store(number.wrapping_add(1), Ordering::Release);
            let nothing = (ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0);
            let (data, length, flags, to, size) = nothing;
            if libc::sendto(self.socket.as_raw_fd(), data, length, flags, to, size) < 0 {
                return Err(format!("sendto: {}", io::Error::last_os_error()));
            }
            let number = (*received.consumer).load(Ordering::Relaxed);
            let mut looks = 0;
            while (*received.producer).load(Ordering::Acquire) == number {
                looks += 1;
                if looks > 1_000_000_000 {
                    return Err("no reply".into());
                }
            }
            let entry = received.entries.cast::<libc::xdp_desc>().add((number % PLACES) as usize).read();
            let counter = memory.add(entry.addr as usize + counter_at).cast::<u16>().read_unaligned();
            (*received.consumer).store(number.wrapping_add(1), Ordering::Release);
            let number = (*free.producer).load(Ordering::Relaxed);
            free.entries.cast::<u64>().add((number % PLACES) as usize).write(entry.addr & !(PLACE - 1));
            (*free.producer).store(number.wrapping_add(1), Ordering::Release);
            let left = (*completed.producer).load(Ordering::Acquire);
            (*completed.consumer).store(left, Ordering::Release);
            Ok(u16::from_le(counter))
        }
    }
}

/// Attaches a program that gives EtherCAT frames to the socket: what keeps it, and the map it looks into.
///
/// # Safety
/// None: it makes system calls with live values only.
unsafe fn attach(socket: &OwnedFd, index: u32) -> io::Result<[OwnedFd; 2]> {
    const MAP_CREATE: i64 = 0;
    const MAP_UPDATE: i64 = 2;
    const PROGRAM_LOAD: i64 = 5;
    const LINK_CREATE: i64 = 28;
    let instruction = |code: u64, to: u64, from: u64, offset: u64, number: u32| {
        code | to << 8 | from << 12 | offset << 16 | u64::from(number) << 32
    };
    // SAFETY: as in `try_open`; attributes are those of linux/bpf.h: XSKMAP 17, program type XDP 6, attach type XDP 37 in the
    // driver (4).
    unsafe {
        let map = owned(bpf(MAP_CREATE, &[17_u32, 4, 4, 1])?)?;
        let number = map.as_raw_fd() as u32;
        // if the frame is long enough, and of EtherCAT's EtherType: redirect(map, queue, PASS), else PASS
        let program = [
            instruction(0x61, 2, 1, 0, 0),
            instruction(0x61, 3, 1, 4, 0),
            instruction(0xBF, 4, 2, 0, 0),
            instruction(0x07, 4, 0, 0, 14),
            instruction(0x2D, 4, 3, 8, 0),
            instruction(0x69, 4, 2, 12, 0),
            instruction(0x55, 4, 0, 6, u32::from(0x88A4_u16.to_be())),
            instruction(0x61, 2, 1, 16, 0),
            instruction(0x18, 1, 1, 0, number),
            0,
            instruction(0xB7, 3, 0, 0, 2),
            instruction(0x85, 0, 0, 0, 51),
            instruction(0x95, 0, 0, 0, 0),
            instruction(0xB7, 0, 0, 0, 2),
            instruction(0x95, 0, 0, 0, 0),
        ];
        let kind_and_count = 6 | (program.len() as u64) << 32;
        let load = [kind_and_count, program.as_ptr() as u64, c"GPL".as_ptr() as u64];
        let loaded = owned(bpf(PROGRAM_LOAD, &load)?)?;
        let link = owned(bpf(LINK_CREATE, &[loaded.as_raw_fd() as u32, index, 37, 4])?)?;
        let (key, value) = (0_u32, socket.as_raw_fd());
        let update = [u64::from(number), &raw const key as u64, &raw const value as u64, 0];
        bpf(MAP_UPDATE, &update)?;
        Ok([map, link])
    }
}

unsafe fn bpf<T>(command: i64, attributes: &T) -> io::Result<i32> {
    // SAFETY: the attributes are live, and their pointers are the caller's.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(attributes), size_of::<T>()) };
    checked(result as i32)
}

unsafe fn option<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as u32;
    // SAFETY: the value is live, of the size told, and of the option's type, which is the caller's to see to.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, ptr::from_ref(value).cast(), size)
    };
    checked(result).map(drop)
}

unsafe fn mapped(bytes: usize, flags: i32, descriptor: i32, page: i64) -> io::Result<*mut u8> {
    // SAFETY: the kernel chooses a range that nothing else uses.
    let start = unsafe {
        libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, descriptor, page)
    };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

unsafe fn owned(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: one that is open is nobody else's: the caller has it from the kernel.
    checked(descriptor).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
