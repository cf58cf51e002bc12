//! SOEM's own loop, compiled from the sources included in pysoem.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{command, setup};

/// Fetches SOEM and compiles it with our loop around it, once.
///
/// # Errors
/// Fetching or compiling failed.
pub(crate) fn build(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("peers/soem/target");
    let program = folder.join("soem-wire");
    let source = root.join("peers/soem/wire.c");
    if is_newer(&program, &source) {
        return Ok(program);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let soem = folder.join(format!("{PYSOEM}/soem"));
    if !soem.exists() {
        fetch(root, &folder)?;
    }
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-w", "-DEC_VER2", "-o"]).arg(&program).arg(&source);
    for headers in ["soem", "osal", "osal/linux", "oshw/linux"] {
        compile.arg("-I").arg(soem.join(headers));
    }
    for sources in ["soem", "osal/linux", "oshw/linux"] {
        compile.args(c_files(&soem.join(sources))?);
    }
    command::output(compile.args(["-lpthread", "-lrt"]))?;
    Ok(program)
}

const PYSOEM: &str = "pysoem-1.1.13";

fn fetch(root: &Path, folder: &Path) -> Result<(), String> {
    println!("fetching the sources of {PYSOEM}, which hold SOEM's");
    let mut pip = Command::new(setup::python(root)?);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
    command::output(pip.arg(PYSOEM.replacen('-', "==", 1)).current_dir(folder))?;
    command::output(Command::new("tar").arg("xzf").arg(format!("{PYSOEM}.tar.gz")).current_dir(folder))
        .map(drop)
}

fn c_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect())
}

fn is_newer(program: &Path, source: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    changed(program).zip(changed(source)).is_some_and(|(program, source)| program > source)
}
