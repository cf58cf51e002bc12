//! `onbeat report`: tables and plots of what was measured.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use onbeat_experiments::{beside, runner};
use record::Recording;
use report::compare::{self, Run};
use report::{Report as Found, Section};

use cli::failure::Failure;
use cli::output;

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A recording (`onbeat run --record`), a report.json, or the folder of an experiment; several
    /// of one experiment are set side by side
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,

    /// Names of several, in their order; without them their kernels where all differ, or else the
    /// files
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    labels: Vec<String>,

    /// Write a page with tables and plots to this file: nothing else is needed to read it
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    /// Print Markdown instead of text
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Report {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let reports: Vec<Found> = self.paths.iter().map(|it| of_path(it)).collect::<Result<_, _>>()?;
        let report = match <[Found; 1]>::try_from(reports) {
            Ok([report]) if self.labels.is_empty() => report,
            Ok(_) => return Err(Failure::new("--labels: found one run, expected several to tell apart")),
            Err(reports) => self.side_by_side(reports)?,
        };
        if let Some(page) = &self.html {
            write_page(page, &report.html())?;
            output::say(format_args!("tables and plots in {}", page.display()));
        }
        output::print(match (self.json, self.markdown) {
            (true, _) => report.json() + "\n",
            (false, true) => report.markdown(),
            (false, false) => report.text(),
        })
    }
}

impl Report {
    /// The runs side by side, with the paper's columns where these are known to be the same
    /// quantities.
    fn side_by_side(&self, reports: Vec<Found>) -> Result<Found, Failure> {
        let names = if self.labels.is_empty() {
            compare::names(&files(&self.paths), &reports)
        } else if self.labels.len() == reports.len() {
            self.labels.clone()
        } else {
            let (found, expected) = (self.labels.len(), reports.len());
            return Err(Failure::new(format!(
                "--labels: found {found} names, expected {expected}, one for each run"
            )));
        };
        let runs = names.into_iter().zip(reports).map(|(name, report)| Run { name, report });
        let runs: Vec<Run> = runs.collect();
        let mut report = compare::compare(&runs).map_err(Failure::new)?;
        report.sections.extend(beside::tables(&runs).into_iter().map(Section::Table));
        Ok(report)
    }
}

/// Writes the page whole or not at all, in the place of an earlier page and of no other file: it
/// may be the recording.
fn write_page(path: &Path, page: &str) -> Result<(), Failure> {
    let found = fs::metadata(path).ok();
    if found.as_ref().is_some_and(|it| !it.is_file()) {
        // A device, or a pipe.
        return fs::write(path, page).map_err(|error| at(path, error));
    }
    let start = page.split_inclusive('\n').next().unwrap_or_default().as_bytes();
    if found.is_some_and(|it| it.len() > 0) && !starts_with(path, start).map_err(|error| at(path, error))? {
        return Err(at(path, "there is a file that is no page, expected none: name another"));
    }
    // Of a link the file it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut part = path.clone().into_os_string();
    part.push(format!(".part-{}", std::process::id()));
    let written = File::create_new(&part)
        .and_then(|mut file| file.write_all(page.as_bytes()))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        at(path, format_args!("{error}; it is not written"))
    })
}

fn starts_with(path: &Path, start: &[u8]) -> io::Result<bool> {
    let mut found = Vec::new();
    File::open(path)?.take(start.len() as u64).read_to_end(&mut found)?;
    Ok(found == start)
}

/// Names of files: short ones where these differ.
fn files(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| match path.file_name().filter(|_| path.is_dir()) {
        Some(folder) => folder.to_string_lossy().into_owned(),
        None => name(path),
    };
    let short: Vec<String> = paths.iter().map(short).collect();
    let is_distinct = short.iter().enumerate().all(|(place, name)| !short[..place].contains(name));
    if is_distinct { short } else { paths.iter().map(|it| it.display().to_string()).collect() }
}

fn of_path(path: &Path) -> Result<Found, Failure> {
    if path.is_dir() { of_folder(path) } else { of_file(path) }
}

/// The report an experiment left in its folder; without one, its recordings one after the other.
fn of_folder(folder: &Path) -> Result<Found, Failure> {
    let whole = folder.join("report.json");
    if whole.exists() {
        return of_file(&whole);
    }
    let entries = fs::read_dir(folder).map_err(|error| at(folder, error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "mcap"));
    files.sort();
    if files.is_empty() {
        return Err(at(folder, "found no report.json and no recording (*.mcap), expected one"));
    }
    let mut all = Found { title: format!("Recordings in {}", folder.display()), ..Found::default() };
    for file in &files {
        let one = of_file(file)?;
        all.measured.clone_from(&one.measured);
        all.good.clone_from(&one.good);
        let name = name(file);
        one.warnings.iter().for_each(|warning| all.warn(format!("{name}: {warning}")));
        let facts: Vec<String> =
            one.conditions.iter().map(|it| format!("{} {}", it.name, it.value)).collect();
        all.sections.push(Section::Text(format!("{}. {}", one.title, facts.join(", "))));
        all.sections.extend(one.sections);
    }
    Ok(all)
}

fn of_file(path: &Path) -> Result<Found, Failure> {
    let mut file = runner::open(path).map_err(|error| at(path, error))?;
    let mut first = [0];
    let found = file.read(&mut first).map_err(|error| at(path, error))?;
    if found == 1 && first == *b"{" {
        let text = fs::read_to_string(path).map_err(|error| at(path, error))?;
        return Found::from_json(&text).map_err(|error| at(path, error));
    }
    let file = File::open(path).map_err(|error| at(path, error))?;
    let recording = Recording::read(BufReader::new(file)).map_err(|error| at(path, error))?;
    Found::of_recording(&name(path), &recording).map_err(|error| at(path, error))
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn at(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {what}", path.display()))
}
