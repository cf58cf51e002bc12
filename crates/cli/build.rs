//! Makes the program smaller where this machine's linker can, and its C library can load what that
//! makes: relocations packed (DT_RELR), and functions of the same instructions kept once. A program
//! for another machine is linked as usual.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let value = |name: &str| env::var(name).unwrap_or_default();
    if value("HOST") != value("TARGET") || value("PROFILE") != "release" {
        return;
    }
    for option in ["-Wl,-z,pack-relative-relocs", "-Wl,--icf=all"] {
        if can(Path::new(&value("OUT_DIR")), option) {
            println!("cargo::rustc-link-arg-bins={option}");
        }
    }
}

/// True if a program linked with this option, by the linker that links ours, runs.
fn can(folder: &Path, option: &str) -> bool {
    let (source, program) = (folder.join("probe.rs"), folder.join("probe"));
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", Path::new(&linker).display()));
    }
    rustc.arg(format!("-Clink-arg={option}")).arg(&source).arg("-o").arg(&program);
    fs::write(&source, "fn main() {}").is_ok()
        && rustc.output().is_ok_and(|output| output.status.success())
        && Command::new(&program).status().is_ok_and(|status| status.success())
}
