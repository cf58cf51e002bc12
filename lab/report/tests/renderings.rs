//! One report, as text, Markdown, JSON and HTML.

use std::path::Path;

use onbeat_report::plots::{Samples, histogram, tail, trace};
use onbeat_report::{Report, Row, Section, Table, save};

fn row(name: &str, cells: &[&str], from_paper: bool) -> Row {
    Row { name: name.to_owned(), cells: cells.iter().map(|&it| it.to_owned()).collect(), from_paper }
}

fn sample() -> Report {
    let values: Vec<f64> = (0..5000).map(|index| 10.0 + f64::from(index % 100)).collect();
    let times: Vec<f64> = (0..5000).map(|index| f64::from(index) / 1000.0).collect();
    let samples = [Samples { name: "PM & co", values: &values }, Samples { name: "PMC", values: &values }];
    let mut report = Report {
        experiment: "example".into(),
        title: "An example <1>".into(),
        source: Some("a paper, Table 3".into()),
        measured: "how late each cycle starts".into(),
        good: "a small maximum".into(),
        ..Report::default()
    };
    report.condition("kernel", "Linux 6.12 PREEMPT_RT");
    report.condition("command", "a | b");
    report.warn("the machine was 40 % busy: stop what else runs");
    report.warn("the machine was 40 % busy: stop what else runs");
    report.sections = vec![
        Section::Text("Rows in italics are the paper's.".into()),
        Section::Table(Table {
            caption: "Latency, us".into(),
            columns: ["", "No tuning", "PM"].map(str::to_owned).to_vec(),
            rows: vec![
                row("maximum", &["512.250", "9.100"], false),
                row("maximum", &["600", "10"], true),
                row("minimum", &["1.000"], false),
            ],
        }),
        Section::Tail(tail("The tail", "us", &samples)),
        Section::Histogram(histogram("The histogram", "us", &samples)),
        Section::Trace(trace("Over time", "us", &times, &samples)),
    ];
    report.values.insert("maximum_ns".into(), 512_250.into());
    report
}

fn is_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, golden, "{} is not as found:\n{found}", path.display());
}

#[test]
fn as_text() {
    is_golden("example.txt", &sample().text());
}

#[test]
fn as_markdown() {
    is_golden("example.md", &sample().markdown());
}

#[test]
fn as_json_and_back() {
    let report = sample();
    assert!(Report::from_json(&report.json()).unwrap() == report, "{}", report.json().len());
    let values: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(values["values"]["maximum_ns"], 512_250);
}

// feature(measure): `report`: text, Markdown, JSON, HTML with plots
#[test]
fn as_one_page_that_is_well_formed_and_holds_every_plot() {
    let page = sample().html();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let named = |name: &str| document.descendants().filter(|it| it.tag_name().name() == name).count();
    assert_eq!((named("svg"), named("figcaption"), named("tr"), named("h1")), (3, 3, 2 + 4, 1));
    assert!(named("polyline") > 3, "lines in the plots");
    for text in ["An example <1>", "PM & co", "maximum (paper)", "how late each cycle starts."] {
        assert!(
            document
                .descendants()
                .any(|it| it.text() == Some(text) || it.text().is_some_and(|it| it.trim() == text)),
            "{text}"
        );
    }
    // No external resource.
    let names_only = "http://www.w3.org/2000/svg";
    assert!(!page.replace(names_only, "").contains("http") && !page.contains("src="));
    let plot = document.descendants().find(|it| it.tag_name().name() == "svg").unwrap();
    assert_eq!(plot.attribute("data-area"), Some("84 12 864 354"));
    assert!(plot.attribute("data-x").is_some_and(|scale| scale.split(' ').count() == 3));
}

#[test]
fn saved_in_a_folder_that_is_made() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved/deep");
    let saved = save(&sample(), &folder).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&saved.markdown), sample().markdown());
    assert!(Report::from_json(&read(&saved.json)).unwrap() == sample());
    assert!(read(&saved.html) == sample().html());
    let error = save(&sample(), &saved.html).unwrap_err().to_string();
    assert!(error.contains("report.html"), "{error}");
}
