//! The least a round trip can cost: a frame out, its reply in, one comparison; by a packet socket, by AF_XDP, by Onbeat's links.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use std::{io, mem};

use onbeat_ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_ethercat_linux::link::Link;

/// Way of a frame out, and of its reply in.
pub trait Wire {
    /// Sends a frame and takes the reply, which is there at once: the working counter at this place of it.
    ///
    /// # Errors
    /// The operating system's error, or no reply.
    fn round_trip(&mut self, frame: &[u8], counter_at: usize) -> Result<u16, String>;
}

/// A packet socket, used as simply as can be.
pub struct RawSocket {
    descriptor: OwnedFd,
    reply: [u8; 1514],
}

/// One of Onbeat's links.
pub struct OnbeatLink<L> {
    link: L,
    reply: [u8; 1514],
}

/// A prebuilt frame and its way.
pub struct Floor<W> {
    wire: W,
    frame: Vec<u8>,
    counter_at: usize,
    expected: u16,
}

impl<W: Wire> Floor<W> {
    /// Builds the frame that `sub_devices` drives with `bytes` of outputs and as many of inputs would share; with
    /// `riders` also the datagrams that Onbeat sends besides process data, so that the reflector has as much to do.
    ///
    /// # Errors
    /// The bytes do not fit one frame.
    pub fn new(wire: W, sub_devices: usize, bytes: usize, riders: bool) -> Result<Self, String> {
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
            wire,
            frame: buffer[..frame_length].to_vec(),
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
        let counter = self.wire.round_trip(&self.frame, self.counter_at)?;
        if counter == self.expected {
            return Ok(());
        }
        Err(format!("working counter {counter}, expected {}", self.expected))
    }
}

impl RawSocket {
    /// Opens `interface`.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(interface: &str) -> Result<Self, String> {
        let descriptor = packet_socket(interface).map_err(|error| format!("{interface}: {error}"))?;
        Ok(Self { descriptor, reply: [0; 1514] })
    }
}

impl Wire for RawSocket {
    fn round_trip(&mut self, frame: &[u8], counter_at: usize) -> Result<u16, String> {
        let (socket, reply) = (self.descriptor.as_raw_fd(), &mut self.reply);
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
        Ok(counter(reply, counter_at))
    }
}

impl<L: Link> OnbeatLink<L> {
    /// The link, to be measured.
    pub fn of(link: L) -> Self {
        Self { link, reply: [0; 1514] }
    }
}

impl<L: Link> Wire for OnbeatLink<L> {
    fn round_trip(&mut self, frame: &[u8], counter_at: usize) -> Result<u16, String> {
        let Self { link, reply } = self;
        link.transmit(frame).map_err(|error| error.to_string())?;
        let mut found = None;
        let mut take = |reply: &[u8]| found = Some(counter(reply, counter_at));
        if !link.receive_in_place(reply, &mut take).map_err(|error| error.to_string())? {
            let length = link.receive(reply, Duration::from_secs(1)).map_err(|error| error.to_string())?;
            length.inspect(|&length| take(&reply[..length]));
        }
        found.ok_or_else(|| "no reply".into())
    }
}

fn counter(reply: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([reply[at], reply[at + 1]])
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
