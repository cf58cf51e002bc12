//! apt, with this machine's lists or with the lists of another release of Debian.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

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
}
