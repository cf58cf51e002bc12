//! apt, with this machine's lists or with the lists of another release of Debian; and the cpio
//! archive of an initial root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::command;

/// `apt-get` and `apt-cache`, which fetch packages and install none.
#[derive(Debug)]
pub(super) struct Apt {
    /// Configuration in the place of this machine's.
    configuration: Option<PathBuf>,
    /// Debian's name of the machines that the packages are for.
    pub(super) architecture: &'static str,
}

/// This machine's.
impl Default for Apt {
    fn default() -> Self {
        Self { configuration: None, architecture: AMD64 }
    }
}

pub(super) const AMD64: &str = "amd64";
pub(super) const ARM64: &str = "arm64";

impl Apt {
    /// Of `release` for machines of this architecture, below `folder`, as if nothing was installed.
    /// The way to the network is this machine's.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn of_release(
        release: &str,
        architecture: &'static str,
        folder: &Path,
    ) -> Result<Self, String> {
        let place = folder.display();
        let network = command::output(Command::new("apt-config").arg("dump")).unwrap_or_default();
        let network: Vec<&str> = network.lines().filter(|line| line.starts_with("Acquire::http")).collect();
        // Its own hooks and preferences would be this machine's: there are none of either.
        let configuration = format!(
            "Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"{place}/none\";\n\
             Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"{place}/none\";\n\
             Dir::Etc::sourcelist \"{place}/sources.list\";\nDir::Etc::sourceparts \"{place}/none\";\n\
             Dir::State \"{place}/state\";\nDir::State::status \"{place}/status\";\nDir::Cache \"{place}/cache\";\n\
             APT::Architecture \"{architecture}\";\nAPT::Sandbox::User \"root\";\nAPT::Update::Error-Mode \"any\";\n\
             Acquire::Languages \"none\";\n{}\n",
            network.join("\n")
        );
        let sources = format!("deb [signed-by={KEYS}] {MIRROR} {release} main\n");
        let file = folder.join("apt.conf");
        let written = || -> io::Result<()> {
            for made in ["none", "state/lists/partial", "cache/archives/partial"] {
                fs::create_dir_all(folder.join(made))?;
            }
            fs::write(folder.join("status"), "")?;
            fs::write(folder.join("sources.list"), sources)?;
            fs::write(&file, configuration)
        };
        written().map_err(|error| format!("{place}: {error}"))?;
        Ok(Self { configuration: Some(file), architecture })
    }

    /// `apt-get` or `apt-cache` with these lists.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(configuration) = &self.configuration {
            command.env("APT_CONFIG", configuration);
        }
        command
    }

    /// Fetches a package, and once more with new lists if it fails: there may be none yet, or they
    /// are outdated.
    ///
    /// # Errors
    /// Error of the second time, or of fetching the lists.
    pub(super) fn fetch<T>(&self, fetch: impl Fn(&Self) -> Result<T, String>) -> Result<T, String> {
        let update = || command::output(self.command("apt-get").args(["-q", "update"])).map(drop);
        again(|| fetch(self), update)
    }
}

fn again<T>(
    fetch: impl Fn() -> Result<T, String>,
    update: impl FnOnce() -> Result<(), String>,
) -> Result<T, String> {
    fetch().or_else(|_| update().and_then(|()| fetch()))
}

const MIRROR: &str = "http://deb.debian.org/debian";
/// Keys that Debian signs its releases with: package debian-archive-keyring.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Bits of `st_mode`: regular file, directory.
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory; its parent must have been added before.
    pub(super) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, &[]);
    }

    /// Adds the parent folders of a path; existing ones stay as they are.
    pub(super) fn folders_of(&mut self, path: &str) {
        path.match_indices('/').for_each(|(end, _)| self.directory(&path[..end]));
    }

    /// Adds a file that may be read and executed.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o755, content);
    }

    /// Adds a file.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o644, content);
    }

    /// Completes the archive and returns it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    /// Adds an entry: a header of magic and thirteen hexadecimal fields, the name with its zero,
    /// the content; each padded to four bytes.
    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (size, name_size) = (content.len() as u32, path.len() as u32 + 1);
        // Fields: inode, mode, owner, group, links, time, size, device (two), special device (two),
        // name, checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// apt reads the configuration: its lists are below the folder, and hooks of this machine are
    /// absent.
    #[test]
    fn a_release_has_separate_lists_and_no_local_hooks() {
        if !command::works("apt-config", &["dump"]) {
            return eprintln!("skipped: needs apt-config (Debian: apt)");
        }
        let folder = std::env::temp_dir().join(format!("onbeat-apt-{}", std::process::id()));
        let apt = Apt::of_release("trixie", AMD64, &folder).expect("a folder");
        let dump = command::output(apt.command("apt-config").arg("dump")).expect("a configuration");
        let _ = fs::remove_dir_all(&folder);
        for (key, value) in
            [("Dir::State", "state"), ("Dir::Cache", "cache"), ("Dir::Etc::sourcelist", "sources.list")]
        {
            let line = format!("{key} \"{}\";", folder.join(value).display());
            assert!(dump.lines().any(|it| it == line), "{line}: {dump}");
        }
        assert!(!dump.contains("-Invoke"), "{dump}");
    }

    #[test]
    fn lists_are_fetched_only_where_something_is_not_found() {
        let fetched = |works_at: u32, update: Result<(), String>| {
            let tries = Cell::new(0);
            let fetch = || {
                tries.set(tries.get() + 1);
                if tries.get() >= works_at { Ok(()) } else { Err("gone".to_owned()) }
            };
            (again(fetch, || update), tries.get())
        };
        let no = || Err("no network".to_owned());
        assert_eq!(fetched(1, no()), (Ok(()), 1));
        assert_eq!(fetched(2, Ok(())), (Ok(()), 2));
        assert_eq!(fetched(3, Ok(())), (Err("gone".to_owned()), 2));
        assert_eq!(fetched(2, no()), (no(), 1));
    }

    #[test]
    fn headers_names_and_contents_stand_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.file("bin/a", b"12345");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| text.find(what).expect(what);
        assert_eq!(text.matches("070701").count(), 3);
        assert_eq!((at("bin\0") % 4, at("bin/a\0") % 4, at("12345") % 4), (2, 2, 0));
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&text[at("bin/a\0") - 110..at("bin/a\0") - 88], "07070100000002000081a4");
    }

    #[test]
    fn cpio_reads_it() {
        let mut cpio = Command::new("cpio");
        cpio.args(["--list", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut cpio) = cpio.spawn() else { return eprintln!("skipped: needs cpio (Debian: cpio)") };
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.program("bin/a", &[7; 1001]);
        archive.file("etc", b"");
        cpio.stdin.take().expect("a pipe").write_all(&archive.finish()).expect("cpio reads");
        let listed = cpio.wait_with_output().expect("cpio ends");
        assert!(listed.status.success());
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "bin\nbin/a\netc\n");
    }
}
