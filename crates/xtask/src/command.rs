//! Execution of other programs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// `cargo` with `arguments`, run in `directory`. It ends with this process, and the tests that it
/// runs with it.
pub(crate) fn cargo(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    testkit::end_with_parent(&mut command).args(arguments).current_dir(directory);
    // This process runs under `cargo run`: its variables would make every build script look
    // changed.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    // Whole runs do not come back to half-built crates: no gigabytes of incremental state.
    if std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Has this thread, and the programs that it starts from now on, run only when no other wants the
/// processor.
pub(crate) fn only_when_idle() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let mut chrt = Command::new("chrt");
    chrt.args(["--idle", "--pid", "0"]).arg(thread.file_name().unwrap_or_default());
    // Without the right, the work runs at ordinary priority.
    let _ = output(&mut chrt);
}

/// Runs a command with its output shown.
///
/// # Errors
/// It did not start, or its exit status.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    println!("$ {}", words(command));
    let status = command.stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("`{}` does not start: {error}", words(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", words(command))) }
}

/// Runs a command with its output shown, for at most `longest`.
///
/// # Errors
/// It did not start, its exit status, or that it was killed.
pub(crate) fn run_within(command: &mut Command, longest: Duration) -> Result<(), String> {
    println!("$ {}", words(command));
    let child = command.stdin(Stdio::null()).spawn();
    let mut child = child.map_err(|error| format!("`{}` does not start: {error}", words(command)))?;
    let deadline = Instant::now() + longest;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{}` ended with {status}", words(command))),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{}` was killed after {} s", words(command), longest.as_secs()));
            }
        }
    }
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// It did not start, or its exit status and standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{}` does not start: {error}", words(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}` ended with {}: {}", words(command), output.status, said.trim()))
}

/// True if a program starts and succeeds with these arguments, such as for its version.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let command = &mut Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Command line as typed in a shell.
pub(crate) fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
