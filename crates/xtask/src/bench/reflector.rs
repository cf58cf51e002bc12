//! The far end of the cable: an XDP program that answers inside the kernel.

use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::{Side, Testbed};

use crate::{command, setup};

/// A compiled reflector for one number of SubDevices.
#[derive(Debug)]
pub(crate) struct Reflector {
    object: PathBuf,
}

impl Reflector {
    /// Compiles it into `folder`.
    ///
    /// # Errors
    /// What is missing, or what the compiler says.
    pub(crate) fn compile(root: &Path, folder: &Path, sub_devices: usize) -> Result<Self, String> {
        setup::bench_packages()?;
        let clang = setup::clang().ok_or("no clang after installing it")?;
        let object = folder.join(format!("reflector-{sub_devices}.o"));
        let mut compile = Command::new(clang);
        compile.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf"]);
        // Debian keeps <asm/types.h> in the machine's own folder, which `-target bpf` does not look into.
        compile.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
        compile.arg(format!("-DSUB_DEVICES={sub_devices}"));
        compile.arg("-c").arg(root.join("peers/wire/reflector.bpf.c")).arg("-o").arg(&object);
        command::output(&mut compile)?;
        Ok(Self { object })
    }

    /// Puts it on the far end of `testbed`, in native mode, with its counterpart on the near end.
    ///
    /// # Errors
    /// What `ip` says.
    pub(crate) fn attach(&self, testbed: &Testbed) -> Result<(), String> {
        for (side, section) in [(Side::Far, "xdp.reflect"), (Side::Near, "xdp.pass")] {
            let namespace = testbed.namespace(side);
            let mut ip = Command::new("ip");
            ip.args(["-n", &namespace, "link", "set", "dev", side.interface(), "xdpdrv", "obj"]);
            command::output(ip.arg(&self.object).args(["sec", section]))?;
        }
        Ok(())
    }
}
