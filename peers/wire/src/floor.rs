//! The least a round trip through a packet socket can cost: one `send`, one `recv`, one comparison.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{io, mem};

use onbeat_ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};

/// A packet socket and a prebuilt LRW frame.
pub struct Floor {
    socket: OwnedFd,
    frame: Vec<u8>,
    reply: [u8; 1514],
    counter_at: usize,
    expected: u16,
}

impl Floor {
    /// Opens `interface` and builds the frame that `sub_devices` drives with `bytes` of outputs and as many
    /// of inputs would share; with `riders` also the datagrams that Onbeat sends besides process data, so
    /// that the reflector has as much to do.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(interface: &str, sub_devices: usize, bytes: usize, riders: bool) -> Result<Self, String> {
        let socket = packet_socket(interface).map_err(|error| format!("{interface}: {error}"))?;
        let length = 2 * sub_devices * bytes;
        let mut buffer = [0; 1514];
        let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
        let station = Address::Station { station: 0x1001, register: 0x080D };
        let rider_headers = [
            DatagramHeader::new(Command::Nop, 1, Address::Logical(0), 4),
            DatagramHeader::new(Command::Brd, 1, Address::Broadcast { register: 0x0130 }, 2),
            DatagramHeader::new(Command::Fprd, 1, station, 1),
        ];
        for header in rider_headers.into_iter().filter(|_| riders) {
            builder.push(header).ok_or("the riders do not fit one frame")?;
        }
        let header = DatagramHeader::new(Command::Lrw, 1, Address::Logical(0), length as u16);
        let place = builder.push(header).ok_or_else(|| format!("{length} bytes do not fit one frame"))?;
        let frame_length = builder.finish();
        Ok(Self {
            socket,
            frame: buffer[..frame_length].to_vec(),
            reply: [0; 1514],
            counter_at: place.working_counter(),
            expected: 3 * sub_devices as u16,
        })
    }

    /// Bytes of the frame, without the frame check sequence.
    pub fn frame_length(&self) -> usize {
        self.frame.len()
    }

    /// One round trip.
    ///
    /// # Errors
    /// The operating system's error, or a working counter that is not the expected one.
    pub fn exchange(&mut self) -> Result<(), String> {
        let (socket, frame, reply) = (self.socket.as_raw_fd(), &self.frame, &mut self.reply);
        // SAFETY: the pointer and the length are those of one live buffer.
        let sent = unsafe { libc::send(socket, frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 {
            return Err(format!("send: {}", io::Error::last_os_error()));
        }
        // SAFETY: as above, and nobody else uses the buffer meanwhile.
        let received = unsafe { libc::recv(socket, reply.as_mut_ptr().cast(), reply.len(), 0) };
        if received < 0 {
            return Err(format!("recv: {}", io::Error::last_os_error()));
        }
        let counter = u16::from_le_bytes([reply[self.counter_at], reply[self.counter_at + 1]]);
        if counter == self.expected {
            return Ok(());
        }
        Err(format!("working counter {counter}, expected {}", self.expected))
    }
}

fn packet_socket(interface: &str) -> io::Result<OwnedFd> {
    let name = CString::new(interface)?;
    let protocol = 0x88A4_u16.to_be();
    // SAFETY: each call gets pointers to live values of the sizes it is told; the descriptor is owned at once.
    unsafe {
        let descriptor = checked(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(protocol)))?;
        let socket = OwnedFd::from_raw_fd(descriptor);
        let mut address: libc::sockaddr_ll = mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = checked(libc::if_nametoindex(name.as_ptr()) as i32)
            .and_then(|index| if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) })?;
        let size = mem::size_of::<libc::sockaddr_ll>() as u32;
        checked(libc::bind(descriptor, (&raw const address).cast(), size))?;
        let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
        let size = mem::size_of::<libc::timeval>() as u32;
        let option = (&raw const second).cast();
        checked(libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_RCVTIMEO, option, size))?;
        Ok(socket)
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
