//! Recordings as MCAP files: written, read, read by the library of MCAP, cut off and damaged.

use std::io;

use proptest::prelude::*;
use types::Value;

use super::*;
use crate::process_data::{FORCED, of_force};
use crate::{CycleRecord, cycles, process_data};

fn header() -> Header {
    let signals = [process_data::of_signal("pressure"), of_force("pressure")];
    let process_data = [FORCED.to_owned()].into_iter().chain(signals);
    let columns = cycles::COLUMNS.map(str::to_owned).into_iter().chain(process_data);
    let facts = serde_json::json!({
        REALTIME_OFFSET: 5_000, "robot": "press", "signals": [{ "name": "pressure", "unit": "bar" }],
    });
    Header {
        what: cycles::WHAT.to_owned(),
        columns: columns.chain(process_data::of_axis("x")).collect(),
        facts: facts.as_object().unwrap().clone(),
    }
}

fn row(release: u64) -> [i64; cycles::COLUMNS.len()] {
    cycles::row(&CycleRecord::begin(release / 100, release, release + 7))
}

/// Little-endian numbers behind the encapsulation.
fn words(data: &[u8]) -> Vec<[u8; 8]> {
    assert_eq!(data[..4], CDR_LITTLE_ENDIAN);
    data[4..].chunks_exact(8).map(|word| word.try_into().unwrap()).collect()
}

// feature(measure): recordings as MCAP (CDR, ros2msg): cycles, axes, signals with their units, facts
#[test]
fn rows_are_messages_at_their_wall_time() {
    let mut writer = RecordingWriter::begin(Vec::new(), &header()).unwrap();
    let real = |value| Some(Value::Real(value));
    let state = [Some(Value::Unsigned(8)), Some(Value::Unsigned(0)), None];
    let numbers = [real(0.5), None, None, real(1.0), real(2.0), real(3.0)];
    let axis = numbers.into_iter().chain(state);
    let forced = |is| Some(Value::Unsigned(is));
    let all = [forced(1), real(2.5), forced(1)].into_iter().chain(axis.clone());
    writer.row_with(&row(1_000), all).unwrap();
    let without = [forced(0), None, forced(0)].into_iter().chain(axis.clone());
    writer.row_with(&row(1_100), without).unwrap();
    writer.row_with(&row(1_200), vec![None; 12]).unwrap();
    let free = [forced(0), real(2.75), forced(0)].into_iter().chain(axis);
    writer.row_with(&row(1_300), free).unwrap();
    let event = |sentence: &str| Mark::Event {
        cycle: 11,
        at_ns: 1_150,
        severity: "error".into(),
        sentence: sentence.into(),
    };
    writer.mark(&event("drive-1 is lost")).unwrap();
    let sentence = "cycle 12 started 9 us late".to_owned();
    writer.mark(&Mark::Late { cycle: 12, at_ns: 1_200, late_ns: 9_000, sentence }).unwrap();
    let file = writer.finish(serde_json::json!({ "cycles": 3 }).as_object().unwrap()).unwrap();

    let messages: Vec<mcap::Message<'_>> =
        mcap::MessageStream::new(&file).unwrap().collect::<Result<_, _>>().unwrap();
    let told: Vec<(&str, u64)> =
        messages.iter().map(|it| (it.channel.topic.as_str(), it.log_time)).collect();
    let expected = [
        ("/cycle", 6_000),
        ("/axes/x", 6_000),
        ("/signals/pressure", 6_000),
        ("/cycle", 6_100),
        ("/axes/x", 6_100),
        ("/cycle", 6_200),
        ("/cycle", 6_300),
        ("/axes/x", 6_300),
        ("/signals/pressure", 6_300),
        ("/events", 6_150),
        ("/late", 6_200),
    ];
    assert_eq!(told, expected);
    let cycle = words(&messages[3].data);
    assert_eq!(cycle.len(), cycles::COLUMNS.len() + 3);
    let behind = &cycle[cycles::COLUMNS.len()..];
    assert_eq!(behind.iter().map(|it| i64::from_le_bytes(*it)).collect::<Vec<_>>(), [7, 100, 0]);
    let last = words(&messages[5].data);
    assert_eq!(i64::from_le_bytes(last[last.len() - 1]), -1, "its process data was dropped");
    let numbers: Vec<f64> = words(&messages[1].data).into_iter().map(f64::from_le_bytes).collect();
    assert!(numbers[1].is_nan() && numbers[2].is_nan());
    assert_eq!([numbers[0], numbers[3], numbers[4], numbers[5]], [0.5, 1.0, 2.0, 3.0]);
    let state = words(&messages[1].data)[6..].iter().map(|it| i64::from_le_bytes(*it)).collect::<Vec<_>>();
    assert_eq!(state, [8, 0, -1]);
    let event = [
        &11_i64.to_le_bytes()[..],
        &[6, 0, 0, 0],
        b"error\0",
        &[0, 0],
        &[16, 0, 0, 0],
        b"drive-1 is lost\0",
    ]
    .concat();
    assert_eq!(messages[9].data[4..], event);
    assert_eq!(messages[10].data[4 + 8..][..8], 9_000_i64.to_le_bytes());
    assert!(messages[10].data.ends_with(b"cycle 12 started 9 us late\0"));
    let pressure = &messages[2];
    assert_eq!(pressure.channel.metadata["unit"], "bar");
    let of_signal = |data: &[u8]| (f64::from_le_bytes(words(data)[0]), data[12..].to_vec());
    assert_eq!(of_signal(&pressure.data), (2.5, vec![1]), "forced");
    assert_eq!(of_signal(&messages[8].data), (2.75, vec![0]), "not forced");
    let schema = messages[1].channel.schema.as_ref().unwrap();
    assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("onbeat/msg/Axis", "ros2msg"));
    assert!(schema.data.starts_with(b"float64 position  # rad\n"));

    let summary = mcap::Summary::read(&file).unwrap().unwrap();
    assert_eq!((summary.stats.unwrap().message_count, summary.metadata_indexes.len()), (11, 3));
}

/// Messages of a file that was cut off.
fn messages(file: &[u8]) -> usize {
    let options = mcap::read::Options::IgnoreEndMagic.into();
    mcap::MessageStream::new_with_options(file, options).unwrap().map_while(Result::ok).count()
}

#[test]
fn truncated_file_of_one_second_has_header_and_data() {
    let mut file = Vec::new();
    let writer = RecordingWriter::begin(&mut file, &header()).unwrap();
    // As of a process that is killed: nothing is finished.
    std::mem::forget(writer);
    let options = mcap::read::Options::IgnoreEndMagic.into();
    let records = mcap::read::ChunkFlattener::new_with_options(&file, options).unwrap();
    let channels =
        records.map_while(Result::ok).filter(|it| matches!(it, mcap::records::Record::Channel(_)));
    assert_eq!(channels.count(), 5);

    // Rows each millisecond. Checks the rows of the first second in a file cut off then.
    let mut kept = Vec::new();
    for cut in [70, 200, 500, 999] {
        let mut file = Vec::new();
        let mut writer = RecordingWriter::begin(&mut file, &header()).unwrap();
        for number in 0..cut {
            writer.row_with(&row(1_000_000 * number), vec![None; 12]).unwrap();
        }
        std::mem::forget(writer);
        kept.push(messages(&file));
    }
    assert!(kept.iter().zip([70, 200, 500, 999]).all(|(kept, cut)| kept * 2 + 10 >= cut), "{kept:?}");
    assert!(kept.is_sorted() && kept[0] > 60, "{kept:?}");
}

/// A clock of the rows that is set back, and rows without one.
// feature(measure): rows are in the file after a second, whatever their clock does
#[test]
fn chunks_end_by_the_clock_of_this_computer_too() {
    let of = |instant: &str| Header { what: "bus".into(), columns: vec![instant.into()], ..plain() };
    let mut writer = RecordingWriter::begin(Vec::new(), &of("arrival_ns")).unwrap();
    for hour in [5, 4] {
        writer.row(&[hour * 3_600_000_000_000]).unwrap();
    }
    assert_eq!(writer.flushed_rows(), 2, "set back");
    let mut writer = RecordingWriter::begin(Vec::new(), &of("number")).unwrap();
    writer.row(&[1]).unwrap();
    // More than the time of the first chunk.
    std::thread::sleep(std::time::Duration::from_millis(70));
    assert!(writer.is_due());
    writer.row(&[2]).unwrap();
    assert_eq!(writer.flushed_rows(), 2, "without a clock");
    assert!(!writer.is_due(), "nothing is in memory");
}

/// A row of wrong width, and a full disk.
#[test]
fn wrong_rows_and_full_disks_are_errors() {
    let mut disk = [0_u8; 4096];
    let mut writer = RecordingWriter::begin(&mut disk[..], &header()).unwrap();
    (0..100).for_each(|number| writer.row_with(&row(number * 100), vec![None; 12]).unwrap());
    assert_eq!(writer.finish(&Facts::new()).unwrap_err().kind(), io::ErrorKind::WriteZero);
    let mut writer = RecordingWriter::begin(Vec::new(), &header()).unwrap();
    let error = writer.row_with(&[1, 2], []).unwrap_err().to_string();
    assert_eq!(error, "a row of 2 + 0 values, expected 16 + 12");
    for wrong in [
        &["signal:pressure"][..],
        &["cycle", "signal:pressure"],
        &["cycle", "cycle"],
        &["a", FORCED, "a:b"],
    ] {
        let columns = wrong.iter().map(|&it| it.to_owned()).collect();
        let error = RecordingWriter::begin(Vec::new(), &Header { columns, ..header() }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong:?}");
    }
}

fn plain() -> Header {
    let facts = [("period_ns".to_owned(), serde_json::Value::from(1_000_000))].into_iter().collect();
    Header { what: "cycle".into(), columns: vec!["cycle".into(), "latency_ns".into()], facts }
}

#[test]
fn written_rows_are_read() {
    let mut writer = RecordingWriter::begin(Vec::new(), &plain()).unwrap();
    writer.row(&[1, 2000]).unwrap();
    writer.row(&[2, -5]).unwrap();
    let end = [("steal_ns".to_owned(), serde_json::Value::from(7))].into_iter().collect();
    let recording = Recording::read(&writer.finish(&end).unwrap()[..]).unwrap();
    assert_eq!(recording.header, plain());
    assert_eq!(recording.column("latency_ns").unwrap().collect::<Vec<_>>(), [2000, -5]);
    assert!(recording.column("none").is_none());
    assert!(recording.complete && recording.len() == 2 && recording.end["steal_ns"] == 7);
}

/// Header of a signal with this type, and an axis.
fn with_process_data(of: &str) -> Header {
    let facts = serde_json::json!({ "signals": [{ "name": "force", "type": of }] });
    let columns = ["cycle", FORCED, "signal:force", "forced:force", "axis:x.position", "axis:x.stop"];
    let columns = columns.map(str::to_owned).to_vec();
    Header { columns, facts: facts.as_object().unwrap().clone(), ..plain() }
}

// feature(measure): recordings with signals and axes, cycle by cycle
#[test]
fn process_data_comes_back_as_it_was() {
    let (real, count) = (|value| Some(Value::Real(value)), |count| Some(Value::Unsigned(count)));
    let mut writer = RecordingWriter::begin(Vec::new(), &with_process_data("uint64")).unwrap();
    let rows = [
        [count(0), Some(Value::Bool(true)), count(0), real(0.1), count(3)],
        [count(1), None, count(1), real(-1e-300), None],
        [count(0), count(u64::MAX), count(0), real(f64::NAN), count(0)],
        [None, None, None, None, None],
        [count(0), Some(Value::Signed(5)), count(0), None, None],
    ];
    (0..).zip(rows).for_each(|(cycle, values)| writer.row_with(&[cycle], values).unwrap());
    let file = writer.finish(&Facts::new()).unwrap();
    let recording = Recording::read(&file[..]).unwrap();
    assert_eq!(recording.column("cycle").unwrap().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let bits = |name| recording.process_data(name).unwrap().map(f64::to_bits).collect::<Vec<_>>();
    let expected = |values: [f64; 5]| values.map(f64::to_bits).to_vec();
    let none = f64::NAN;
    assert_eq!(bits(FORCED), expected([0.0, 1.0, 0.0, none, 0.0]));
    assert_eq!(bits("signal:force"), expected([1.0, none, u64::MAX as f64, none, 5.0]));
    assert_eq!(bits("forced:force"), expected([0.0, 1.0, 0.0, none, 0.0]));
    assert_eq!(bits("axis:x.position"), expected([0.1, -1e-300, none, none, none]));
    assert_eq!(bits("axis:x.stop"), expected([3.0, none, 0.0, none, none]));
    assert!(recording.column("signal:force").is_none() && recording.process_data("cycle").is_none());
    let mut reader = RecordingReader::open(&file[..]).unwrap();
    let mut exact = Vec::new();
    while reader.next_row().unwrap().is_some() {
        exact.push([2, 4].map(|column| reader.exact(column)));
    }
    let max = Some(i128::from(u64::MAX));
    assert_eq!(exact, [[Some(1), None], [None; 2], [max, None], [None; 2], [Some(5), None]]);
}

#[test]
fn marks_come_back_as_they_were() {
    let marks = [
        Mark::Late { cycle: 1, at_ns: 5, late_ns: 9, sentence: "by \"x\",\nand more".to_owned() },
        Mark::Event { cycle: 2, at_ns: 6, severity: "ok".to_owned(), sentence: "it is back".to_owned() },
    ];
    for offset in [0, 7_000_000_000_000_000_000_i64, -3] {
        let mut header = plain();
        header.facts.insert(REALTIME_OFFSET.to_owned(), offset.into());
        let mut writer = RecordingWriter::begin(Vec::new(), &header).unwrap();
        writer.mark(&marks[0]).unwrap();
        writer.row(&[1, 2000]).unwrap();
        writer.mark(&marks[1]).unwrap();
        writer.row(&[2, 7]).unwrap();
        let recording = Recording::read(&writer.finish(&Facts::new()).unwrap()[..]).unwrap();
        assert_eq!((&recording.marks[..], recording.len(), recording.complete), (&marks[..], 2, true));
    }
}

/// A recording of 12 rows with process data, in several chunks, with two marks.
fn some_rows() -> Vec<u8> {
    let mut writer = RecordingWriter::begin(Vec::new(), &header()).unwrap();
    for cycle in 0..12_u64 {
        let value = Some(Value::Real(cycle as f64));
        let values = [Some(Value::Unsigned(0)), value, Some(Value::Unsigned(0))];
        writer.row_with(&row(cycle * 100), values.into_iter().chain([value; 9])).unwrap();
        if cycle % 5 == 2 {
            let sentence = "it was late".to_owned();
            writer.mark(&Mark::Late { cycle, at_ns: cycle * 100, late_ns: 9, sentence }).unwrap();
            writer.flush().unwrap();
        }
    }
    writer.finish(&Facts::new()).unwrap()
}

// feature(measure): damaged recordings
#[test]
fn a_changed_byte_of_the_data_is_never_a_whole_recording() {
    let file = some_rows();
    let whole = Recording::read(&file[..]).unwrap();
    let heads = heads(&file);
    let data_end = *heads.last().unwrap();
    for at in (0..file.len()).step_by(17).chain(heads) {
        let mut changed = file.clone();
        changed[at] ^= 0x41;
        if let Ok(read) = Recording::read(&changed[..]) {
            assert!(at >= data_end && (read.len(), &read.end) == (whole.len(), &whole.end), "{at}");
        }
    }
}

// feature(measure): recordings that end in zeros, as after a power loss, read as cut off
#[test]
fn zeros_at_the_end_read_as_cut_off() {
    let finished = some_rows();
    let heads = heads(&finished);
    let data_end = *heads.last().unwrap();
    for file in [&finished[..data_end], &finished] {
        // The first chunk, in front of heads[4], has the channels.
        for place in (heads[4]..=file.len()).step_by(5).chain(heads.clone()) {
            for zeros in [0, 1, 600] {
                let mut file = file.to_vec();
                file[place..].fill(0);
                file.resize(file.len() + zeros, 0);
                let read = Recording::read(&file[..]).map_err(|it| it.to_string());
                if place < heads[4] {
                    assert!(read.is_err() || read.is_ok_and(|it| it.is_empty()), "{place}");
                    continue;
                }
                let chunks = heads.windows(2).filter(|it| file[it[0]] == CHUNK && it[1] <= place).count();
                let rows = [0, 0, 3, 8, 12][chunks];
                assert!(read.as_ref().is_ok_and(|it| it.len() >= rows), "{place} {zeros} {read:?}");
                // The record in front of the end of the data, without facts, ends in four zeros.
                assert!(place + 4 > data_end || read.is_ok_and(|it| !it.complete), "{place}");
            }
        }
    }
}

// feature(measure): zeros in the middle of a recording are damage, with their place
#[test]
fn zeros_before_further_data_are_damage() {
    let finished = some_rows();
    let data_end = *heads(&finished).last().unwrap();
    for file in [&finished[..], &finished[..data_end]] {
        for at in (mcap::MAGIC.len()..data_end - 200).step_by(13) {
            let mut changed = file.to_vec();
            changed[at..at + 150].fill(0);
            let error = Recording::read(&changed[..]).map(|it| it.len()).unwrap_err();
            assert!(
                matches!(error, RecordingError::Damaged { .. } | RecordingError::Foreign),
                "{at} {error}"
            );
        }
    }
}

const CHUNK: u8 = 6;

/// Places of the records, up to the end of the data.
fn heads(file: &[u8]) -> Vec<usize> {
    const DATA_END: u8 = 15;
    let mut heads = vec![mcap::MAGIC.len()];
    while let Some(&at) = heads.last().filter(|&&at| file[at] != DATA_END) {
        let length = u64::from_le_bytes(file[at + 1..at + 9].try_into().unwrap());
        heads.push(at + 9 + length as usize);
    }
    heads
}

// Found by fuzzing: a text that claims to be 2.7 GB long was given its memory.
#[test]
fn a_text_longer_than_its_record_is_damage() {
    let mut file = some_rows();
    let name = file.windows(6).position(|it| it == b"onbeat").unwrap();
    let metadata = file[name..].windows(10).position(|it| it == b"onbeat_row").unwrap() + name;
    file[metadata - 4..metadata].copy_from_slice(&2_741_137_007_u32.to_le_bytes());
    let before = most_memory();
    let error = Recording::read(&file[..]).unwrap_err().to_string();
    assert!(error.contains("expected metadata"), "{error}");
    assert!(most_memory() - before < 1 << 20, "{before} kB");
}

/// Most memory that this process has had mapped, kB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Another magic, record or library, and a profile that is longer than the file.
#[test]
fn only_the_header_of_a_recording_is_one() {
    let file = some_rows();
    let begin = &file[..64];
    assert!(is_recording(begin));
    let library = begin.windows(7).position(|it| it == b"onbeat ").unwrap();
    let profile = mcap::MAGIC.len() + 9;
    for (place, byte) in [(1, b'X'), (mcap::MAGIC.len(), 3), (library, b'0'), (profile + 3, 0xFF)] {
        let mut other = begin.to_vec();
        other[place] = byte;
        assert!(!is_recording(&other), "{place}");
    }
    assert!((0..library + 7).all(|length| !is_recording(&begin[..length])));
}

// feature(measure): a recording has 16384 columns at most
#[test]
fn too_many_columns_are_refused_with_their_number() {
    let header = |count: usize| Header {
        columns: (0..count).map(|number| format!("column_{number}")).collect(),
        ..plain()
    };
    let most = RecordingWriter::begin(Vec::new(), &header(16_384)).unwrap();
    let file = most.finish(&Facts::new()).unwrap();
    assert_eq!(Recording::read(&file[..]).unwrap().header.columns.len(), 16_384);
    let expected = "expected 16384 columns at most (`--signals named` records fewer), found";
    let error = RecordingWriter::begin(Vec::new(), &header(16_385)).unwrap_err().to_string();
    assert_eq!(error, format!("{expected} 16385 columns"));
    let mut hostile = mcap::Writer::new(io::Cursor::new(Vec::new())).unwrap();
    hostile.write_metadata(&facts::rows(&header(100_000))).unwrap();
    hostile.finish().unwrap();
    let error = Recording::read(&hostile.into_inner().into_inner()[..]).unwrap_err().to_string();
    assert_eq!(error, format!("{expected} \"100000 columns\""));
}

#[test]
fn other_files_are_named() {
    let error = |file: &[u8]| Recording::read(file).unwrap_err().to_string();
    assert!(error(b"hello\nyou").ends_with("found \"hello\""));
    assert!(error(b"").ends_with("found \"\""));
    assert!(
        error(b"# onbeat recording 1\n# {}\n").starts_with("found a text recording of an earlier Onbeat")
    );
    let other = mcap::Writer::new(io::Cursor::new(Vec::new())).unwrap();
    let mut other = {
        let mut it = other;
        it.finish().unwrap();
        it.into_inner().into_inner()
    };
    assert!(error(&other).starts_with("found an MCAP file without the metadata `onbeat_rows`"));
    other.truncate(20);
    assert!(error(&other).starts_with("the file ends before its first row"));
    let mut file = some_rows();
    let at = file.windows(12).position(|it| it == b"it was late\0").unwrap();
    file[at] ^= 1;
    assert!(error(&file).contains("expected a chunk with the right checksum"), "{}", error(&file));
}

/// The file without the checksums of its chunks.
fn without_checksums(mut file: Vec<u8>) -> Vec<u8> {
    const FOOTER: u8 = 2;
    let mut at = mcap::MAGIC.len();
    while file[at] != FOOTER {
        let length = u64::from_le_bytes(file[at + 1..at + 9].try_into().unwrap());
        if file[at] == CHUNK {
            file[at + 9 + 24..at + 9 + 28].fill(0);
        }
        at += 9 + usize::try_from(length).unwrap();
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // feature(measure): damaged recordings
    #[test]
    fn changed_files_are_errors_or_are_written_again_the_same(
        changes in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 1..4), cut in 0.0..2.0_f64,
    ) {
        let mut file = without_checksums(some_rows());
        for (place, byte) in changes {
            let at = (place * file.len() as f64) as usize;
            file[at] = byte;
        }
        file.truncate((cut * file.len() as f64) as usize);
        let Ok(recording) = Recording::read(&file[..]) else { return Ok(()) };
        let mut writer = RecordingWriter::begin(Vec::new(), &recording.header).unwrap();
        for (row, process_data) in recording.rows().zip(recording.process_data_rows()) {
            let values = process_data.iter().map(|&it| (!it.is_nan()).then_some(Value::Real(it)));
            writer.row_with(row, values).unwrap();
        }
        recording.marks.iter().try_for_each(|mark| writer.mark(mark)).unwrap();
        let again = Recording::read(&writer.finish(&recording.end).unwrap()[..]).unwrap();
        let bits = |it: &Recording| it.process_data_rows().flatten().map(|it| it.to_bits()).collect::<Vec<_>>();
        prop_assert!(again.rows().eq(recording.rows()));
        prop_assert_eq!(bits(&again), bits(&recording));
        prop_assert_eq!(&again.marks, &recording.marks);
        prop_assert_eq!(&again.end, &recording.end);
    }
}
