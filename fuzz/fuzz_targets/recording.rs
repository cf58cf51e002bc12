//! Any bytes as a recording: no panic; a parsed recording is written and parsed again the same; its
//! report - as text, Markdown, JSON and HTML - is made or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::{Recording, RecordingWriter};
use report::Report;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::read(bytes) else { return };
    let mut writer = RecordingWriter::begin(Vec::new(), &recording.header).expect("memory");
    for (row, process_data) in recording.rows().zip(recording.process_data_rows()) {
        let values =
            process_data.iter().map(|&value| (!value.is_nan()).then_some(types::Value::Real(value)));
        writer.row_with(row, values).expect("as many values as columns");
    }
    recording.marks.iter().try_for_each(|mark| writer.mark(mark)).expect("memory");
    let written = writer.finish(&recording.end).expect("memory");
    let again = Recording::read(&written[..]).expect("what was written");
    // JSON keeps no number that needs more than 64 bits: of the facts the names are compared.
    let names = |it: &Recording| it.end.keys().cloned().collect::<Vec<_>>();
    assert_eq!((&again.header.columns, names(&again)), (&recording.header.columns, names(&recording)));
    assert!(again.rows().eq(recording.rows()));
    assert_eq!(again.marks, recording.marks);
    let bits = |it: &Recording| it.process_data_rows().flatten().map(|it| it.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&again), bits(&recording));
    let Ok(report) = Report::of_recording("fuzz.rec", &recording) else { return };
    let (text, markdown, html) = (report.text(), report.markdown(), report.html());
    assert!(text.contains("fuzz.rec") && markdown.contains("fuzz.rec") && html.contains("fuzz.rec"));
    assert!(Report::from_json(&report.json()).is_ok());
});
