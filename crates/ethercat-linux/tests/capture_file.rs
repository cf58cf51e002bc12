//! A capture is a file for other tools: tshark finds every frame, its direction and its time.

use std::io;
use std::process::Command as Process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_ethercat_linux::link::Link;
use onbeat_ethercat_linux::link::{Capture, CaptureSummary};

/// Gives the last frame back.
#[derive(Default)]
struct Loopback(Vec<u8>);

impl Link for Loopback {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.0 = frame.to_vec();
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
        buffer[..self.0.len()].copy_from_slice(&self.0);
        Ok(Some(self.0.len()))
    }
}

// feature(cycle): captures that tshark reads
#[test]
fn tshark_reads_every_frame_of_a_capture() {
    if Process::new("tshark").arg("--version").output().is_err() {
        testkit::skip!("needs tshark (Debian: tshark)");
        return;
    }
    let path = std::env::temp_dir().join(format!("onbeat-capture-{}.pcapng", std::process::id()));
    let mut capture = Capture::create(Loopback::default(), &path, "test0").unwrap();
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    for index in 0..50 {
        let mut frame = [0; MAXIMUM_FRAME_LENGTH];
        let mut builder = FrameBuilder::new(&mut frame, MacAddress::MAIN_DEVICE);
        let header = DatagramHeader::new(Command::Brd, index, Address::at_position(0, 0x0130), 2);
        builder.push(header).unwrap();
        let length = builder.finish();
        capture.transmit(&frame[..length]).unwrap();
        capture.receive(&mut buffer, Duration::ZERO).unwrap();
    }
    assert_eq!(capture.finish().unwrap(), CaptureSummary { written: 100, dropped: 0 });

    let fields = ["frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction", "ecat.idx"];
    let mut tshark = Process::new("tshark");
    tshark.args(["-n", "-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.arg("-r").arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 100);
    for (number, line) in lines.iter().enumerate() {
        let time: f64 = line[0].parse().unwrap_or_else(|_| panic!("{line:?} has no time"));
        assert!((now - 60.0..now + 60.0).contains(&time), "{line:?} at {now}");
        let way = if number % 2 == 0 { ["0x00000002", "2"] } else { ["0x00000001", "1"] };
        assert!(line[1] == "test0" && way.contains(&line[2]), "{line:?}");
        let index = number / 2;
        assert!([format!("{index:#04x}"), index.to_string()].contains(&line[3].to_owned()), "{line:?}");
    }
}
