//! Build options of the kernel: `/proc/config.gz`, or the file a distribution puts into `/boot`.

use std::collections::HashMap;

use crate::root::Root;

/// Options of the kernel that are set, if the machine provides them.
#[derive(Debug, Default)]
pub(super) struct KernelConfig(HashMap<String, String>);

impl KernelConfig {
    pub(super) fn read(root: &Root) -> Self {
        let built_in = root.bytes("/proc/config.gz").and_then(|bytes| unpacked(&bytes));
        let of_release = || {
            let release = root.text("/proc/sys/kernel/osrelease")?;
            root.text(format!("/boot/config-{release}"))
                .or_else(|| root.text(format!("/lib/modules/{release}/config")))
        };
        Self::parse(&built_in.or_else(of_release).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let options = text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
        Self(options.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect())
    }

    /// True if the options are known.
    pub(super) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// True if an option (without `CONFIG_`) is built in.
    pub(super) fn has(&self, option: &str) -> bool {
        self.0.get(option).is_some_and(|value| value == "y")
    }
}

/// Text that gzip has packed; a file that unpacks to more than the limit is no kernel
/// configuration.
#[cfg(feature = "check")]
fn unpacked(bytes: &[u8]) -> Option<String> {
    use std::io::Read;

    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).take(crate::root::LIMIT).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Without the feature the distribution's file is read.
#[cfg(not(feature = "check"))]
fn unpacked(_: &[u8]) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let config =
            KernelConfig::parse("# CONFIG_KASAN is not set\nCONFIG_PREEMPT_RT=y\nCONFIG_X=m\nrubbish");
        assert!(config.has("PREEMPT_RT") && config.is_known());
        assert!(!config.has("KASAN") && !config.has("X"));
        assert!(!KernelConfig::parse("").is_known());
    }
}
