//! `onbeat new`: a robot file drafted from what is there.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ethercat::sii::Image;

use onbeat::compose::sii_files::{image_file, is_xml};
use robot::draft::{Found, Setting, draft, unknown_values};

use crate::arguments::time;
use crate::bus::{ToolBus, Where};
use crate::commands::diag::FINDINGS;
use crate::commands::doctor;
use crate::failure::Failure;
use crate::output;

/// Drafts a robot file: identities, PDOs, scales, modes and names of the SubDevices, low limits,
/// and a comment at each assumed or unknown value. The bus goes to PreOp and back to Init; a bus
/// that a running Onbeat cycle uses is read through that cycle. Exit code 0 if all SubDevices are
/// described, 3 if one has a defect, 1 without a file.
#[derive(Args, Debug)]
pub(crate) struct New {
    /// SII image (EEPROM contents) of a SubDevice instead of a bus; repeat in cable order
    #[arg(long, value_name = "IMAGE.bin", conflicts_with_all = ["iface", "segment", "cycle"])]
    sii: Vec<PathBuf>,

    /// Write the file there, whole or not at all, instead of to standard output
    #[arg(short, long, value_name = "ROBOT.toml")]
    output: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long, requires = "output")]
    force: bool,

    /// Name of the robot; that of the file without it
    #[arg(long)]
    name: Option<String>,

    /// Period of the cycle
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms")]
    period: Duration,

    #[command(flatten)]
    place: Where,
}

/// Name of a robot without one.
const UNNAMED: &str = "robot";

impl New {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if let Some(path) =
            self.output.as_ref().filter(|path| !self.force && fs::symlink_metadata(path).is_ok())
        {
            return Err(exists(path));
        }
        let (found, remarks, run) = match &self.sii[..] {
            [] => self.on_bus()?,
            images => (
                images.iter().map(|path| image(path)).collect::<Result<_, _>>()?,
                Vec::new(),
                String::new(),
            ),
        };
        let stem = self.output.as_ref().and_then(|path| path.file_stem()?.to_str());
        let images: String = self.sii.iter().map(|path| format!(" --sii {}", path.display())).collect();
        let from = if run.is_empty() { images } else { format!(" {run}") };
        let setting = Setting {
            name: self.name.as_deref().or(stem).unwrap_or(UNNAMED),
            file: &self.file(),
            made_by: &format!("`onbeat new{from}` (onbeat {})", env!("CARGO_PKG_VERSION")),
            run: if run.is_empty() { "--iface NIC" } else { &run },
            period: self.period,
        };
        let text = draft(&found, &setting)?;
        match &self.output {
            Some(path) => write(path, &text, self.force)?,
            None => output::print(&text)?,
        }
        output::say(self.summary(&text, found.len()));
        if remarks.is_empty() {
            return Ok(());
        }
        Err(Failure::new(remarks.join("\n")).or_code(FINDINGS))
    }

    /// SubDevices of a bus, what is wrong with them, and the arguments with which `run` finds them.
    fn on_bus(&self) -> Result<(Vec<Found>, Vec<String>, String), Failure> {
        let Some(run) = self.place.run_arguments() else {
            return Err(Failure::new(
                "nothing to describe, expected --iface NIC for the SubDevices on a network interface, --sii IMAGE.bin for an SII \
                 image, or --segment ROBOT.toml for simulated ones: give one of them",
            ));
        };
        let (found, mut remarks, is_running) = ToolBus::with("new", None, &self.place, |bus| {
            let (remarks, is_running) = match bus {
                ToolBus::Own(bus) => (bus.remarks(), false),
                ToolBus::Running(_) => (Vec::new(), true),
            };
            Ok((bus.found()?, remarks, is_running))
        })?;
        for (position, it) in found.iter().enumerate().filter(|(_, it)| it.identity.is_some()) {
            let problem =
                it.problem.iter().map(|problem| format!("SubDevice {position} \"{}\": {problem}", it.name));
            remarks.extend(problem);
        }
        if self.place.is_on_a_wire() && !is_running {
            // A running cycle shows by itself whether its computer holds it.
            doctor::does_not_hold(self.period)?.into_iter().for_each(output::say);
        }
        Ok((found, remarks, run))
    }

    /// Name of the file as in commands.
    fn file(&self) -> String {
        self.output.as_ref().map_or_else(|| format!("{UNNAMED}.toml"), |path| path.display().to_string())
    }

    fn summary(&self, text: &str, sub_devices: usize) -> String {
        let plural = |number: usize| if number == 1 { "" } else { "s" };
        let unknown = match unknown_values(text) {
            0 => "nothing is marked `unknown:`".to_owned(),
            number => format!("{number} value{} marked `unknown:`", plural(number)),
        };
        format!(
            "{sub_devices} SubDevice{} drafted, {unknown}; look at what is marked `assumed:`, then `onbeat check {}`",
            plural(sub_devices),
            self.file()
        )
    }
}

/// A SubDevice as the SII image at `path` has it.
fn image(path: &Path) -> Result<Found, Failure> {
    let refused = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let bytes = image_file(path).map_err(|error| {
        refused(format!("cannot be read, expected an SII image (EEPROM contents): {error}"))
    })?;
    if is_xml(&bytes) {
        return Err(refused(
            "an ESI file (XML), which is not read yet, expected an SII image (EEPROM contents), 128 bytes or more: take that, or the \
             device itself with --iface NIC"
                .to_owned(),
        ));
    }
    let image = Image::parse(&bytes).map_err(|error| refused(format!("{error}: read the image again")))?;
    Ok(Found::of_image(&image))
}

fn exists(path: &Path) -> Failure {
    Failure::new(format!(
        "{} is there already, expected no file: name another, or add --force",
        path.display()
    ))
}

/// Writes the file whole, or not at all; with `force` in place of another.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    // Of a link the file it leads to is replaced; a device is not.
    let led = if force { fs::canonicalize(path) } else { Err(ErrorKind::NotFound.into()) };
    if led.as_ref().is_ok_and(|it| !it.is_file()) {
        return Err(Failure::new(format!(
            "{} is no regular file, expected one to replace: name another",
            path.display()
        )));
    }
    let path = led.as_deref().unwrap_or(path);
    let failed = |error: std::io::Error| {
        Failure::new(format!("{} cannot be written: {error}; name another file", path.display()))
    };
    let Some(name) = path.file_name() else {
        return Err(Failure::new(format!("{} is no name of a file: name one", path.display())));
    };
    let unfinished = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        if force {
            return fs::rename(&unfinished, path);
        }
        // A link takes the place of nothing.
        match fs::hard_link(&unfinished, path) {
            Err(error)
                if error.kind() != ErrorKind::AlreadyExists && fs::symlink_metadata(path).is_err() =>
            {
                fs::rename(&unfinished, path)
            }
            linked => linked,
        }
    };
    let outcome = written();
    let _ = fs::remove_file(&unfinished);
    match outcome {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(path)),
        outcome => outcome.map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_is_distinguished_from_an_image_in_any_encoding() {
        let wide: Vec<u8> = b"\xFF\xFE<?xml".iter().flat_map(|&byte| [byte, 0]).collect();
        for text in [&b"<?xml version=\"1.0\"?>"[..], b"\xEF\xBB\xBF<EtherCATInfo>", b"  \n<!-- -->", &wide]
        {
            assert!(is_xml(text), "{text:?}");
        }
        for bytes in [&b""[..], b"<", b"< ", &[0x04, 0x01, 0, 0], &[0x3C, 0x01]] {
            assert!(!is_xml(bytes), "{bytes:?}");
        }
    }
}
