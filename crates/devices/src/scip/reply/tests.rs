use super::*;
use crate::scip::command::{Encoding, Sector};

/// Recorded replies of real sensors: a GD scan of a URG-04LX; VV of a URG-04LX-UG01, PP and II of a
/// URG-04LX as shown on their maker's pages; and an MD scan of a UTM-30LX that lost one character
/// on its way through a web page.
const GD: &[u8] = include_bytes!("../recorded/gd-urg-04lx.txt");
const VV: &[u8] = include_bytes!("../recorded/vv-urg-04lx-ug01.txt");
const PP: &[u8] = include_bytes!("../recorded/pp-urg-04lx.txt");
const II: &[u8] = include_bytes!("../recorded/ii-urg-04lx.txt");
const MD_DAMAGED: &[u8] = include_bytes!("../recorded/md-utm-30lx-damaged.txt");

fn parse(reply: &[u8]) -> Result<Reply, ReplyError> {
    Reply::parse(reply.strip_suffix(b"\n\n").unwrap())
}

/// A reply with one byte changed.
fn with(reply: &[u8], place: usize, byte: u8) -> Vec<u8> {
    let mut reply = reply.to_vec();
    reply[place] = byte;
    reply
}

// feature(devices): SCIP 2.0 over a (pseudo-)terminal: recorded replies, damage, garbage, unplugging
#[test]
fn a_recorded_scan_is_read_range_by_range() {
    let reply = parse(GD).unwrap();
    assert_eq!(reply.echo.sector, Sector { first: 44, last: 725, cluster: 1 });
    let Content::Scan { time, ranges } = reply.content else { panic!("{reply:?}") };
    assert_eq!((time, ranges.len()), (513, 682));
    // Computed from the recording by another program.
    assert_eq!(ranges[..12], [34, 34, 34, 36, 39, 36, 33, 31, 25, 25, 25, 2855]);
    assert_eq!(ranges[340..345], [5239, 5232, 5229, 5226, 5226]);
    assert_eq!((ranges.iter().sum::<u32>(), ranges[681]), (1_322_861, 1_696));
}

#[test]
fn recorded_version_parameters_and_status_are_read() {
    let Content::Version(version) = parse(VV).unwrap().content else { panic!() };
    assert_eq!(version.product, "SOKUIKI Sensor URG-04LX-UG01(Simple-URG)");
    assert_eq!((version.protocol.as_str(), version.serial.as_str()), ("SCIP 2.0", "H1510998"));
    let Content::Parameters(parameters) = parse(PP).unwrap().content else { panic!() };
    assert_eq!((parameters.shortest, parameters.longest, parameters.steps_per_turn), (20, 5_600, 1_024));
    assert_eq!((parameters.first, parameters.last, parameters.front), (44, 725, 384));
    assert_eq!(parameters.turns_per_minute, 600);
    let Content::Status(status) = parse(II).unwrap().content else { panic!() };
    assert_eq!(status[1], ("LASR".to_owned(), "OFF".to_owned()));
    assert_eq!(of(&status, "SCSP"), Some("Initial(600[rpm])<-Default setting by user"));
}

#[test]
fn a_recorded_scan_that_was_damaged_is_refused_with_the_line() {
    let error = parse(MD_DAMAGED).unwrap_err();
    assert_eq!(error.to_string(), "MD: expected the sum '2' in line 5, found '1'");
}

/// The six-bit check character reveals every change of one byte that alters its lowest six bits.
// feature(devices): SCIP 2.0 over a (pseudo-)terminal: recorded replies, damage, garbage, unplugging
#[test]
fn every_changed_byte_of_a_scan_is_noticed() {
    for (place, byte) in GD.iter().enumerate().take(GD.len() - 2).skip(13) {
        let changed = with(GD, place, byte ^ 1);
        assert!(parse(&changed).is_err(), "byte {place}");
    }
}

#[test]
fn a_scan_cut_anywhere_is_refused() {
    let whole = GD.strip_suffix(b"\n\n").unwrap();
    for end in 0..whole.len() {
        assert!(Reply::parse(&whole[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected() {
    let error = |text: &[u8]| Reply::parse(text).unwrap_err().to_string();
    assert_eq!(error(b"hello\n00P"), "expected a command's echo, found \"hello\"");
    let status = "VV: expected a status of two characters and their sum, found \"00Q\"";
    assert_eq!(error(b"VV\n00Q\nVEND:x;0"), status);
    assert_eq!(error(b"BM\n00P\nmore"), "BM: expected a line of nothing more, found 4 bytes in line 3");
    assert_eq!(error(b"PP\n00P"), "PP: expected DMIN:NUMBER, found nothing");
    // Two ranges requested, three sent.
    let points = "GS: expected 4 characters of ranges, found 6";
    assert_eq!(error(b"GS0000000101\n00P\n00000\n000000P"), points);
    assert_eq!(
        error(b"GS0000000001\n00P\n00000\n0~^"),
        "GS: expected characters from '0' to 'o' in an encoded number, found '~'"
    );
    assert_eq!(error(b"VV\n00P\nVEND"), "VV: expected a line of NAME:VALUE;SUM, found 4 bytes in line 3");
}

#[test]
fn refusals_are_read_and_have_a_meaning() {
    let reply = Reply::parse(b"MD0000999901000\n04T").unwrap();
    assert_eq!((reply.content, reply.status.to_string()), (Content::Nothing, "04".to_owned()));
    assert_eq!(reply.status.meaning(reply.echo.symbol), "the last step is out of range");
    let laser = Reply::parse(b"BM\n02R").unwrap();
    assert_eq!(laser.status.meaning(Symbol::LaserOn), "its laser is on already");
    // A sensor that started in SCIP 1.1, and one without support for it.
    assert_eq!(Reply::parse(b"SCIP2.0\n0").unwrap().status, Status::DONE);
    let unknown = Reply::parse(b"SCIP2.0\n0Ee").unwrap();
    assert_eq!(unknown.status.meaning(Symbol::Scip2), "it does not know the command");
    assert_eq!(Status(*b"99").meaning(Symbol::Stream(Encoding::Long)), "a scan");
}
