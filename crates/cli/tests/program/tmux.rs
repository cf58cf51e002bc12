//! tmux, a common terminal that wraps long lines again when its size changes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A terminal with a command in it, of a dedicated server.
pub(crate) struct Tmux {
    folder: PathBuf,
    server: Child,
}

impl Tmux {
    /// A terminal of this size in which `sh` runs this; `None` without tmux, which is printed.
    pub(crate) fn start(name: &str, (columns, rows): (u16, u16), script: &str) -> Option<Self> {
        if !Command::new("tmux").arg("-V").output().is_ok_and(|it| it.status.success()) {
            testkit::skip!("it needs tmux (Debian: tmux)");
            return None;
        }
        // The path of a socket has a hundred letters at most.
        let folder = std::env::temp_dir().join(format!("onbeat-tmux-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut server = command(&folder);
        server.arg("-D").stdout(Stdio::null()).stderr(Stdio::null());
        testkit::end_with_parent(&mut server);
        let tmux = Self { server: server.spawn().expect("tmux"), folder };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let begin = Instant::now();
        while !tmux.tell(&["new-session", "-d", "-x", &columns, "-y", &rows, script]) {
            assert!(begin.elapsed() < Duration::from_secs(60), "no terminal within a minute");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(tmux)
    }

    /// Changes its size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        assert!(self.tell(&["resize-window", "-x", &columns, "-y", &rows]), "a size");
    }

    /// Presses a key, by tmux's name of it.
    pub(crate) fn press(&self, key: &str) {
        assert!(self.tell(&["send-keys", key]), "a key");
    }

    /// Lines on its screen down to the last that is not empty, without spaces at their ends.
    pub(crate) fn screen(&self) -> Vec<String> {
        let shown = command(&self.folder).args(["-N", "capture-pane", "-p"]).output().expect("tmux");
        let text = String::from_utf8(shown.stdout).expect("UTF-8");
        text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until its screen is so, and returns it.
    pub(crate) fn until(&self, what: &str, mut is: impl FnMut(&[String]) -> bool) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "not {what}:\n{}", screen.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn tell(&self, words: &[&str]) -> bool {
        let mut tmux = command(&self.folder);
        tmux.arg("-N").args(words).stdout(Stdio::null()).stderr(Stdio::null());
        tmux.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tell(&["kill-server"]);
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn command(folder: &std::path::Path) -> Command {
    let mut tmux = Command::new("tmux");
    tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(folder.join("tmux")).stdin(Stdio::null());
    tmux.env("LC_ALL", "C.UTF-8").env_remove("TMUX").env_remove("COLUMNS");
    tmux
}
