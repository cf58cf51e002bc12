//! Whoever holds the command lease, in any language, may write anything into its region at any time: the cycle's side never
//! panics, waits or reads elsewhere, and what it takes for a command has no more axes than the robot.
//!
//! The input is a row of stores: an offset in words, how many bytes, the bytes; after each the cycle looks.
#![no_main]

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use bridge::command::Read;
use bridge::description::{AxisDescription, Description};
use bridge::door::protocol::Request;
use bridge::seam::{Builder, Door, RealTimeEnds};
use libfuzzer_sys::fuzz_target;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType,
};

const AXES: usize = 3;

static SEAM: OnceLock<Mutex<(RealTimeEnds, Door)>> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let mut seam = SEAM.get_or_init(|| Mutex::new(open())).lock().unwrap();
    let (ends, door) = &mut *seam;
    let Some((_lease, region)) = lease(door.path().to_owned()) else { return };
    let mut command = ends.command.blank();
    // Goes over to the new holder's region: nothing is there yet.
    assert!(matches!(ends.command.newest(&mut command), Read::Nothing | Read::Same));
    let length = rustix::fs::fstat(&region).unwrap().st_size as u64;
    let mut rest = bytes;
    while let [word, count, behind @ ..] = rest {
        let (data, after) = behind.split_at(behind.len().min(usize::from(*count)));
        rest = after;
        // Past the header; what reaches beyond the end is refused by the seal.
        let offset = (64 + u64::from(*word) * 8).min(length);
        let room = usize::try_from(length - offset).unwrap();
        rustix::io::pwrite(&region, &data[..data.len().min(room)], offset).unwrap();
        let before = command.clone();
        let read = ends.command.newest(&mut command);
        assert!(command.axes.len() <= AXES);
        if read != Read::New {
            // Compared as text: NaN is no equal of itself.
            assert_eq!(format!("{command:?}"), format!("{before:?}"), "{read:?} changed the command");
        }
        // What was looked at once is not told again.
        assert!(matches!(ends.command.newest(&mut command), Read::Nothing | Read::Same));
    }
});

fn open() -> (RealTimeEnds, Door) {
    let axis = AxisDescription {
        name: "axis".into(),
        mode: "csp".into(),
        position_limits: None,
        velocity_limit: 1.0,
        effort_limit: 1.0,
    };
    let description = Description { axes: vec![axis; AXES], ..Description::default() };
    let folder = std::env::temp_dir().join(format!("onbeat-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut seam = Builder::new("fuzz", &description);
    seam.folder(folder);
    seam.open().unwrap()
}

/// The lease as another language would take it: the connection, and the region's file.
fn lease(path: PathBuf) -> Option<(OwnedFd, OwnedFd)> {
    let line = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&line, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::send(&line, &Request::Lease.emit(), SendFlags::empty()).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut reply = [0; 2048];
    // The fuzzer's own timer interrupts.
    while let Err(error) =
        rustix::net::recvmsg(&line, &mut [IoSliceMut::new(&mut reply)], &mut control, RecvFlags::empty())
    {
        assert_eq!(error, rustix::io::Errno::INTR);
    }
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.next()?.next()?;
    Some((line, file))
}
