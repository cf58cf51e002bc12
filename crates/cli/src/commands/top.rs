//! `onbeat top`: a running cycle in another terminal.
//!
//! | module | part |
//! |---|---|
//! | [`source`] | the shared-memory interface of the cycle, only read |
//! | [`picture`] | knowledge at one instant, and a person's choice of the view |
//! | [`draw`] | a picture on a screen of any size |
//! | [`keys`] | meaning of keys |
//! | [`json`] | a picture for programs |

mod draw;
mod json;
mod keys;
mod picture;
mod source;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use clap::Args;
use ipc::client::Client;
use ratatui::Terminal;
use ratatui::backend::{Backend, TermionBackend};
use ratatui::termion::raw::IntoRawMode;
use ratatui::termion::screen::IntoAlternateScreen;

use self::draw::Screen;
pub(crate) use self::keys::Keyboard;
use self::keys::Pressed;
use self::picture::{Picture, View};
use self::source::Source;
use crate::arguments::time;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::target::{FIRST_CYCLE, LOOK_FOR_ONE, Which, is_absence};
use crate::words::{USUAL_COLUMNS, columns};

/// Reads the cycle's state without root and without effect on its timing. Keys: q quit, h help,
/// arrows and page keys scroll, tab the next page, p pause.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(value_name = "NAME|SOCKET")]
    cycle: Option<String>,

    /// The same, as the other commands have it
    #[arg(long = "cycle", value_name = "NAME|SOCKET", conflicts_with = "cycle")]
    named: Option<String>,

    /// Wait for a cycle if none runs, and for the next one when it ends
    #[arg(long)]
    wait: bool,

    /// Print one picture as text, and end
    #[arg(long, conflicts_with = "json")]
    once: bool,

    /// Print one picture as a JSON object, and end
    #[arg(long)]
    json: bool,

    /// Time from one picture to the next
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100ms")]
    every: Duration,
}

impl Top {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let live = !self.once && !self.json;
        if live && !io::stdout().is_terminal() {
            return Err(Failure::new(
                "standard output is not a terminal: run it in one, or use --once or --json to print one picture",
            ));
        }
        let Some(ipc) = self.attach(&stop)? else { return Ok(()) };
        if live { self.watch(ipc, &stop) } else { self.print(ipc, &stop) }
    }

    fn attach(&self, stop: &Stop) -> Result<Option<Client>, Failure> {
        let which = Which(self.cycle.as_deref().or(self.named.as_deref()));
        let found = if self.wait { which.wait(stop)? } else { Some(which.find_for("top")?) };
        let is_others = |ipc: &&Client| ![0, rustix::process::geteuid().as_raw()].contains(&ipc.user());
        if let Some(ipc) = found.as_ref().filter(is_others) {
            output::say(format_args!("a cycle of user {}: {}", ipc.user(), ipc.path().display()));
        }
        Ok(found)
    }

    /// One picture, of the first cycle there is.
    fn print(&self, ipc: Client, stop: &Stop) -> Result<(), Failure> {
        let mut source = Source::new(ipc);
        let begin = Instant::now();
        while !source.has_state() {
            if source.has_ended() {
                return Err(Failure::new("the cycle ended before its first cycle: start it again"));
            }
            if stop.is_requested() {
                return Ok(());
            }
            if begin.elapsed() > FIRST_CYCLE && !self.wait {
                return Err(Failure::new(format!(
                    "the cycle has made no cycle within {} s: it may still bring its bus up; --wait waits longer",
                    FIRST_CYCLE.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut picture = source.picture();
        source.look(&mut picture)?;
        if self.json {
            output::print(serde_json::to_string_pretty(&json::object(&picture))? + "\n")
        } else {
            let screen = Screen { picture: &picture, view: View::default(), keys: false };
            output::print(match columns(&io::stdout()) {
                Some(columns) => screen.text(columns.clamp(USUAL_COLUMNS, 1000) as u16),
                None => screen.whole(),
            })
        }
    }

    /// Pictures until the user has seen enough.
    fn watch(&self, ipc: Client, stop: &Stop) -> Result<(), Failure> {
        let no_screen =
            |error| Failure::new(format!("this terminal cannot be drawn on ({error}): use --once"));
        let keyboard = Keyboard::open().map_err(no_screen)?;
        // Both are undone when they are dropped: after an error and a panic, too.
        let screen =
            io::stdout().into_raw_mode().and_then(|raw| raw.into_alternate_screen()).map_err(no_screen)?;
        let mut terminal = Terminal::new(TermionBackend::new(screen)).map_err(no_screen)?;
        let watched = self.show(&mut terminal, &keyboard, Source::new(ipc), stop);
        let shown = terminal.show_cursor();
        watched.and_then(|()| Ok(shown?))
    }

    fn show(
        &self,
        terminal: &mut Terminal<impl Backend>,
        keyboard: &Keyboard,
        mut source: Source,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut picture = source.picture();
        let mut view = View::default();
        let mut looked_for_next = Instant::now();
        while !stop.is_requested() {
            match view.paused {
                true => source.look_at_its_end(&mut picture),
                false => source.look(&mut picture)?,
            }
            terminal.draw(|frame| frame.render_widget(screen(&picture, view), frame.area()))?;
            let (next, size) = (Instant::now() + self.every, terminal.size()?);
            while Instant::now() < next && !stop.is_requested() && terminal.size()? == size {
                // A signal and the terminal's size are looked at now and then.
                let left = next.saturating_duration_since(Instant::now()).min(Duration::from_millis(100));
                let Some(keys) = keyboard.keys(left)? else { return Ok(()) };
                let rows = screen(&picture, view).rows();
                if keys.iter().any(|key| keys::press(&mut view, *key, rows) == Pressed::Quit) {
                    return Ok(());
                }
                if !keys.is_empty() {
                    break;
                }
            }
            if self.wait && source.has_ended() && looked_for_next.elapsed() >= LOOK_FOR_ONE {
                looked_for_next = Instant::now();
                if let Some(next) = self.next()? {
                    source = Source::new(next);
                    picture = source.picture();
                }
            }
        }
        Ok(())
    }

    /// The cycle that follows one that has ended.
    fn next(&self) -> Result<Option<Client>, Failure> {
        match Which(self.cycle.as_deref()).find() {
            Ok(ipc) => Ok(Some(ipc)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn screen(picture: &Picture, view: View) -> Screen<'_> {
    Screen { picture, view, keys: true }
}
