//! cpio archive in the format the kernel unpacks as its initial root: "newc" of
//! Documentation/driver-api/early-userspace/buffer-format.rst.

/// Bits of `st_mode`: regular file, directory.
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory; its parent must have been added before.
    pub(super) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, &[]);
    }

    /// Adds the parent folders of a path; existing ones stay as they are.
    pub(super) fn folders_of(&mut self, path: &str) {
        path.match_indices('/').for_each(|(end, _)| self.directory(&path[..end]));
    }

    /// Adds a file that may be read and executed.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o755, content);
    }

    /// Adds a file.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o644, content);
    }

    /// Completes the archive and returns it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    /// Adds an entry: a header of magic and thirteen hexadecimal fields, the name with its zero,
    /// the content; each padded to four bytes.
    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (size, name_size) = (content.len() as u32, path.len() as u32 + 1);
        // Fields: inode, mode, owner, group, links, time, size, device (two), special device (two),
        // name, checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn headers_names_and_contents_stand_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.file("bin/a", b"12345");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| text.find(what).expect(what);
        assert_eq!(text.matches("070701").count(), 3);
        assert_eq!((at("bin\0") % 4, at("bin/a\0") % 4, at("12345") % 4), (2, 2, 0));
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&text[at("bin/a\0") - 110..at("bin/a\0") - 88], "07070100000002000081a4");
    }

    #[test]
    fn cpio_reads_it() {
        let mut cpio = Command::new("cpio");
        cpio.args(["--list", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut cpio) = cpio.spawn() else { return eprintln!("skipped: needs cpio (Debian: cpio)") };
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.program("bin/a", &[7; 1001]);
        archive.file("etc", b"");
        cpio.stdin.take().expect("a pipe").write_all(&archive.finish()).expect("cpio reads");
        let listed = cpio.wait_with_output().expect("cpio ends");
        assert!(listed.status.success());
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "bin\nbin/a\netc\n");
    }
}
