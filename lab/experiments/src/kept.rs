//! Completely measured cells: their facts are stored next to the raw data, so that an interrupted
//! experiment resumes with the missing ones.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Context, Error};

impl Context<'_> {
    /// Facts of the cell of this name, if the interrupted run measured it completely.
    ///
    /// # Errors
    /// The file is there, and cannot be read as such.
    pub(crate) fn kept<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let path = file(&self.directory, name);
        if !self.continues || !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(|error| Error::file(&path, error))?;
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Error::other(format_args!(
                "{}: {error}: expected the facts of a cell as they were written; remove the file to measure the cell again",
                path.display()
            ))
        })
    }

    /// Keeps the facts of a cell that is whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self, name: &str, facts: &impl Serialize) -> Result<(), Error> {
        let path = file(&self.directory, name);
        let unfinished = path.with_extension("unfinished");
        let write = || {
            let mut file = fs::File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec(facts)?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(|error| Error::file(&path, error))
    }

    /// The cell of this name, as the interrupted run kept it, or measured now and kept if complete;
    /// `None` once the user requests a stop.
    ///
    /// # Errors
    /// The file cannot be read or written, or the measurement failed.
    pub(crate) fn cell<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        measure: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        if let Some(kept) = self.kept(name)? {
            self.pass_over_cell(name);
            return Ok(Some(kept));
        }
        if self.stopped() {
            return Ok(None);
        }
        self.begin_cell(name);
        let cell = measure()?;
        if !self.stopped() {
            self.keep(name, &cell)?;
        }
        Ok(Some(cell))
    }

    /// Path of the recording of this name, for a cell that is measured again: a recording of the
    /// interrupted run is renamed.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub(crate) fn fresh_path(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        if self.continues && path.exists() {
            let free = |number: &usize| !self.path(&format!("{name}-interrupted-{number}")).exists();
            let number = (1_usize..).find(free).unwrap_or(1);
            let aside = self.path(&format!("{name}-interrupted-{number}"));
            fs::rename(&path, &aside).map_err(|error| Error::file(&path, error))?;
        }
        Ok(path)
    }
}

/// Forgets the cells of an earlier run in this folder: a new one begins.
///
/// # Errors
/// A file cannot be removed.
pub fn forget(directory: &Path) -> Result<(), Error> {
    files(directory).try_for_each(|path| fs::remove_file(&path).map_err(|error| Error::file(&path, error)))
}

/// True if cells are kept in this folder.
#[must_use]
pub fn any(directory: &Path) -> bool {
    files(directory).next().is_some()
}

fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING)))
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}{ENDING}"))
}

const ENDING: &str = ".cell.json";

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::Programs;

    // feature(measure): `--continue DIR`: complete cells are kept, interrupted ones are set aside and measured again
    #[test]
    fn cells_are_kept_for_a_resumed_run_and_cleared_by_a_new_one() {
        let directory = std::env::temp_dir().join(format!("onbeat-kept-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let stop = AtomicBool::new(false);
        let programs = Programs { onbeat: "onbeat".into(), measure: "onbeat-measure".into() };
        let mut context = Context {
            directory: directory.clone(),
            programs,
            stop: &stop,
            say: &|_| (),
            progress: crate::Progress::default(),
            continues: false,
        };
        context.keep("PM-none", &vec![1, 2, 3]).unwrap();
        assert_eq!(context.kept::<Vec<u8>>("PM-none").unwrap(), None, "a new run measures all");
        context.continues = true;
        assert_eq!(context.kept::<Vec<u8>>("PM-none").unwrap(), Some(vec![1, 2, 3]));
        assert_eq!(context.kept::<Vec<u8>>("P-none").unwrap(), None);
        let error = context.kept::<String>("PM-none").unwrap_err().to_string();
        assert!(error.contains("PM-none.cell.json: ") && error.contains("remove the file"), "{error}");

        for times in 1..=2 {
            fs::write(context.path("P-none"), "measured").unwrap();
            assert!(!context.fresh_path("P-none").unwrap().exists());
            assert!(context.path(&format!("P-none-interrupted-{times}")).exists());
        }
        assert!(any(&directory));
        forget(&directory).unwrap();
        assert!(!any(&directory));
        assert_eq!(context.kept::<Vec<u8>>("PM-none").unwrap(), None);
        assert!(context.path("P-none-interrupted-1").exists(), "what was measured stays");
        fs::remove_dir_all(&directory).unwrap();
    }
}
