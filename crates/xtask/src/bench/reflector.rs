//! Far end of the cable: an XDP program that answers inside the kernel.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Side, Testbed};

use crate::{command, setup};

/// Compiled reflector for one number of SubDevices.
#[derive(Debug)]
pub(crate) struct Reflector {
    object: PathBuf,
}

impl Reflector {
    /// Compiles the reflector into `folder`.
    ///
    /// # Errors
    /// The missing part, or the compiler's error.
    pub(crate) fn compile(root: &Path, folder: &Path, sub_devices: usize) -> Result<Self, String> {
        setup::bench_packages()?;
        let clang = setup::clang().ok_or("no clang after installing it")?;
        let object = folder.join(format!("reflector-{sub_devices}.o"));
        let mut compile = Command::new(clang);
        compile.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf"]);
        // Debian keeps <asm/types.h> in an architecture-specific folder, which `-target bpf` does
        // not search.
        compile.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
        compile.arg(format!("-DSUB_DEVICES={sub_devices}"));
        compile.arg("-c").arg(root.join("peers/wire/reflector.bpf.c")).arg("-o").arg(&object);
        command::output(&mut compile)?;
        Ok(Self { object })
    }

    /// Attaches the reflector to the far end of `testbed`, in native mode, and its counterpart to
    /// the near end, unless the near end already has a program.
    ///
    /// # Errors
    /// The error of `ip`.
    pub(crate) fn attach(&self, testbed: &Testbed, near_has_one: bool) -> Result<(), String> {
        let ends = [(Side::Far, "xdp.reflect"), (Side::Near, "xdp.pass")];
        for (side, section) in ends.into_iter().take(if near_has_one { 1 } else { 2 }) {
            let namespace = testbed.namespace(side);
            let mut ip = Command::new("ip");
            ip.args(["-n", &namespace, "link", "set", "dev", side.interface(), "xdpdrv", "obj"]);
            command::output(ip.arg(&self.object).args(["sec", section]))?;
        }
        Ok(())
    }
}
