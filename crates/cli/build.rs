//! Packs the relocations of the program (DT_RELR), which makes it a tenth smaller. The C library must read them: glibc
//! does from 2.36 on, and a linker of its age writes them. A program for another machine is linked as usual.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let value = |name: &str| env::var(name).unwrap_or_default();
    if value("HOST") == value("TARGET")
        && value("CARGO_CFG_TARGET_ENV") == "gnu"
        && glibc().is_some_and(|version| version >= (2, 36))
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Version of this machine's C library.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
