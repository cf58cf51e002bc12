//! Machines that programs are built for: statically, so that they need no library of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::report::Outcome;
use crate::ros2;

/// Kind of machine.
#[derive(Debug)]
pub(super) struct Target {
    /// Name of rustc's.
    pub(super) triple: &'static str,
    /// Name of Debian's.
    pub(super) debian: &'static str,
    /// First part of the triple as this machine would have it.
    processor: &'static str,
    /// Program that runs its programs on another machine (Debian: qemu-user-static).
    emulator: &'static str,
}

pub(super) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        processor: "x86_64",
        emulator: "qemu-x86_64-static",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        processor: "aarch64",
        emulator: "qemu-aarch64-static",
    },
    Target {
        triple: "armv7-unknown-linux-musleabihf",
        debian: "armhf",
        processor: "arm",
        emulator: "qemu-arm-static",
    },
];

/// Programs of a release, ready to be packed.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) onbeat: PathBuf,
    pub(super) ros2: PathBuf,
    pub(super) measure: PathBuf,
}

impl Programs {
    /// Programs in one folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        let [onbeat, ros2, measure] =
            ["onbeat", "onbeat-ros2", "onbeat-measure"].map(|name| folder.join(name));
        Self { onbeat, ros2, measure }
    }

    /// All of them.
    pub(super) fn each(&self) -> [&Path; 3] {
        [&self.onbeat, &self.ros2, &self.measure]
    }
}

/// Functions of the same instructions are kept once, and relocations packed.
const SMALLER: &str = "-C link-arg=--icf=all -C link-arg=-zpack-relative-relocs";

/// Packages that the programs are in.
pub(super) const PACKAGES: [&str; 3] = ["onbeat-cli", "onbeat-experiments", "onbeat-ros2"];

/// Packages of the main workspace.
const MAIN_PACKAGES: &[&str] = PACKAGES.split_at(2).0;

impl Target {
    /// True if its programs run here without help.
    pub(super) fn is_this_machine(&self) -> bool {
        std::env::consts::ARCH == self.processor
    }

    /// Builds the programs.
    ///
    /// # Errors
    /// The outcome of the step: skipped without the target's standard library.
    pub(super) fn build(&self, root: &Path) -> Result<Programs, Outcome> {
        self.install(root).map_err(Outcome::Skipped)?;
        ros2::prepare(root).map_err(Outcome::Failed)?;
        let words = ["build", "--profile=static", "--locked", "--bins", "--quiet", "--target", self.triple];
        let variable =
            |part| format!("CARGO_TARGET_{}_{part}", self.triple.to_uppercase().replace('-', "_"));
        let mut main = command::cargo(root, &words);
        main.args(MAIN_PACKAGES.iter().flat_map(|name| ["--package", name]));
        for mut cargo in [main, ros2::cargo(root, &words)] {
            // rustc brings the linker, and all else that a static program is linked with: no C
            // compiler for that machine is needed.
            cargo.env(variable("LINKER"), "rust-lld").env(variable("RUSTFLAGS"), SMALLER);
            command::run(&mut cargo).map_err(Outcome::Failed)?;
        }
        Ok(Programs::in_folder(&root.join("target").join(self.triple).join("static")))
    }

    /// Has rustup install the standard library, unless it is there.
    fn install(&self, root: &Path) -> Result<(), String> {
        let folder = command::output(
            Command::new("rustc")
                .args(["--print", "target-libdir", "--target", self.triple])
                .current_dir(root),
        )?;
        if Path::new(folder.trim()).exists() {
            return Ok(());
        }
        println!("installing the target {} (rustup)", self.triple);
        command::output(Command::new("rustup").args(["target", "add", self.triple]).current_dir(root))
            .map(drop)
            .map_err(|why| {
                let why = why.lines().take(3).collect::<Vec<_>>().join(" ");
                format!("needs rustup and the network, for the target {}: {why}", self.triple)
            })
    }

    /// Checks a robot file and runs a hundred cycles, emulated if need be.
    pub(super) fn run(&self, root: &Path, programs: &Programs) -> Outcome {
        let native = self.is_this_machine();
        if !native && !command::works(self.emulator, &["--version"]) {
            return Outcome::Skipped(format!("no {} (Debian: qemu-user-static)", self.emulator));
        }
        let run = |arguments: &[&str]| {
            let mut command =
                Command::new(if native { programs.onbeat.as_os_str() } else { self.emulator.as_ref() });
            command.args((!native).then_some(&programs.onbeat)).args(arguments).current_dir(root);
            command::output(&mut command)
        };
        let found = run(&["--version"]).and_then(|version| {
            run(&["check", "examples/first-drive.toml"])?;
            let table = run(&["run", "--cycles", "100", "--period", "10ms", "--no-ipc"])?;
            Ok((version, table))
        });
        match found {
            Ok((version, table)) if table.contains("100 samples") => {
                print!("{version}");
                Outcome::Passed
            }
            Ok((_, table)) => Outcome::Failed(format!("expected a table of 100 cycles, found {table}")),
            Err(why) => Outcome::Failed(why),
        }
    }
}

/// Target of machines with this processor.
pub(super) fn of_processor(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.processor == name)
}

/// Has rustup install the standard library for static programs of this processor, unless it is
/// there.
///
/// # Errors
/// No release is made for it, or rustup cannot.
pub(crate) fn install(root: &Path, processor: &str) -> Result<(), String> {
    let target = of_processor(processor).ok_or_else(|| format!("no release is made for {processor}"))?;
    target.install(root)
}

/// Builds the programs for this machine.
///
/// # Errors
/// The build failed, or programs for this machine are no part of a release.
pub(super) fn of_this_machine(root: &Path) -> Result<Programs, String> {
    let processor = std::env::consts::ARCH;
    let target = TARGETS.iter().find(|target| target.processor == processor);
    let target =
        target.ok_or_else(|| format!("no release is made for {processor}, which this machine is"))?;
    target.build(root).map_err(|outcome| match outcome {
        Outcome::Failed(why) | Outcome::Skipped(why) => why,
        Outcome::Passed => String::new(),
    })
}

/// Checks that the program compiles with musl's library and on a machine of 32 bits, which is one
/// target.
pub(crate) fn check(root: &Path) -> Outcome {
    let Some(target) = of_processor("arm") else {
        return Outcome::Failed("no target has 32 bits".to_owned());
    };
    if let Err(lack) = target.install(root) {
        return Outcome::Skipped(lack);
    }
    let words = ["check", "--locked", "--quiet", "--package", PACKAGES[0], "--target", target.triple];
    Outcome::of(&mut command::cargo(root, &words))
}
