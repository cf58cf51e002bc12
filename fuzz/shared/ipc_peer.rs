//! A peer of the shared-memory interface that speaks as another language would, and the robot it
//! attaches to.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use ipc::description::{AxisDescription, Description, SignalDescription};
use ipc::server::Builder;
use ipc::service::protocol::Request;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType,
};

/// An interface, not open yet, of a robot with so many axes, and these signals.
pub fn builder(name: &str, axes: usize, signals: Vec<SignalDescription>) -> Builder {
    let axis = AxisDescription::new("axis", types::CyclicMode::Position, 1.0, 1.0);
    let description = Description { axes: vec![axis; axes], signals, ..Description::default() };
    let folder = std::env::temp_dir().join(format!("onbeat-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut ipc = Builder::new(name, &description);
    ipc.folder(folder);
    ipc
}

/// Connects to the server.
pub fn connect(path: &Path) -> OwnedFd {
    let line = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&line, &SocketAddrUnix::new(path).unwrap()).unwrap();
    line
}

/// Sends a request; returns the connection and the received descriptors.
pub fn ask(path: &Path, request: Request<'_>) -> (OwnedFd, Vec<OwnedFd>) {
    let line = connect(path);
    send(&line, request);
    let files = receive(&line);
    (line, files)
}

/// Sends a request on this connection.
pub fn send(line: &OwnedFd, request: Request<'_>) {
    rustix::net::send(line, &request.emit(), SendFlags::empty()).unwrap();
}

/// Waits for a reply; returns the received descriptors.
pub fn receive(line: &OwnedFd) -> Vec<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // The kernel drops the rest of its text, which is not needed.
    let mut reply = [0; 64];
    // The fuzzer's own timer interrupts.
    while let Err(error) =
        rustix::net::recvmsg(line, &mut [IoSliceMut::new(&mut reply)], &mut control, RecvFlags::empty())
    {
        assert_eq!(error, rustix::io::Errno::INTR);
    }
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.flatten().collect()
}
