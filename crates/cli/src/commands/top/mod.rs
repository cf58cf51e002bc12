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
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use self::draw::Screen;
use self::keys::Pressed;
use self::picture::{Picture, View};
use self::source::Source;
pub(crate) use self::source::Which;
use crate::arguments::time;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;

/// Reads the cycle's state as any program may, without root: the cycle cannot notice it. Keys: q quit, arrows and page
/// keys scroll, tab axes, signals, or tasks and channels, p pause.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(value_name = "NAME|SOCKET")]
    cycle: Option<String>,

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
        let which = Which(self.cycle.as_deref());
        let found = if self.wait { which.wait(stop)? } else { Some(which.find()?) };
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
            if stop.asked() {
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
            let columns = crate::words::columns(&io::stdout()).clamp(80, 1000);
            let screen = Screen { picture: &picture, view: View::default(), keys: false };
            output::print(screen.text(columns as u16))
        }
    }

    /// Pictures until the user has seen enough.
    fn watch(&self, ipc: Client, stop: &Stop) -> Result<(), Failure> {
        let mut terminal = ratatui::try_init().map_err(|error| {
            Failure::new(format!("this terminal cannot be drawn on ({error}): use --once"))
        })?;
        let watched = self.show(&mut terminal, Source::new(ipc), stop);
        ratatui::restore();
        watched
    }

    fn show(&self, terminal: &mut DefaultTerminal, mut source: Source, stop: &Stop) -> Result<(), Failure> {
        let mut picture = source.picture();
        let mut view = View::default();
        let mut looked_for_next = Instant::now();
        while !stop.asked() {
            if !view.paused {
                source.look(&mut picture)?;
            }
            terminal.draw(|frame| frame.render_widget(screen(&picture, view), frame.area()))?;
            if keys_until(Instant::now() + self.every, &picture, &mut view, stop)? == Pressed::Quit {
                return Ok(());
            }
            if self.wait && source.has_ended() && looked_for_next.elapsed() >= source::LOOK_FOR_ONE {
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
            Err(error) if source::is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Takes keys until it is time for the next picture, or one has changed the view.
fn keys_until(next: Instant, picture: &Picture, view: &mut View, stop: &Stop) -> Result<Pressed, Failure> {
    loop {
        let left = next.saturating_duration_since(Instant::now());
        // A signal is looked for now and then.
        if !event::poll(left.min(Duration::from_millis(100)))? {
            if Instant::now() >= next || stop.asked() {
                return Ok(Pressed::Nothing);
            }
            continue;
        }
        match event::read()? {
            Event::Key(key) => return Ok(keys::press(view, key, screen(picture, *view).rows())),
            Event::Resize(..) => return Ok(Pressed::Nothing),
            _ => {}
        }
    }
}

fn screen(picture: &Picture, view: View) -> Screen<'_> {
    Screen { picture, view, keys: true }
}

/// A bus of many SubDevices takes its time before the first cycle.
const FIRST_CYCLE: Duration = Duration::from_secs(5);
