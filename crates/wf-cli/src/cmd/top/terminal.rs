//! The terminal while `top` has it: keys, looks, and giving it back however the command ends.
//!
//! A panic gives it back by the hook that `ratatui` sets, SIGTERM and SIGHUP by ending the loop, everything else by
//! [`Screen`]'s drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::look::{Look, Looker};
use super::panes::{self, Pane};
use super::screen::View;
use crate::exit::Failure;
use crate::output;

/// How long the reader of keys waits before it sees that the command ended.
const KEYS_EVERY: Duration = Duration::from_millis(100);
/// Keys that wait to be acted on; more are dropped.
const KEYS_MAX: usize = 64;
/// Rows that a page has.
const PAGE: usize = 10;

/// The terminal, given back when dropped.
struct Screen(DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody can be told, and the terminal may be gone.
        let _ = ratatui::try_restore();
    }
}

/// Looks and draws until somebody ends it.
pub(super) async fn watch(looker: Looker, every: Duration) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    // The first look before the terminal is taken, so that what is wrong with the store is said in plain words.
    let mut shown = Shown::new(looker.look().await?, every);
    let taken = ratatui::try_init()
        .map_err(|error| Failure::failed("the terminal cannot be used").because(error))?;
    let mut screen = Screen(taken);
    let (_reading, mut keys) = read_keys();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        let panes = shown.panes();
        screen
            .0
            .draw(|frame| shown.view.draw(frame, &panes))
            .map_err(|error| Failure::failed("the terminal cannot be written").because(error))?;
        tokio::select! {
            () = signals.end() => break,
            key = keys.recv() => match key {
                None => break,
                Some(Event::Key(key)) => if shown.press(key, &panes) { break },
                Some(_) => {}
            },
            _ = ticks.tick(), if !shown.stopped => {
                // A key that ends it does not wait for a store that is slow.
                tokio::select! {
                    () = signals.end() => break,
                    looked = looker.look() => shown.take(looked),
                }
            }
        }
    }
    drop(screen);
    Ok(())
}

/// Ends the reader of keys when dropped.
struct Reading(Arc<AtomicBool>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads keys in a thread of its own: the terminal has no asynchronous way that all systems share.
fn read_keys() -> (Reading, mpsc::Receiver<Event>) {
    let (sender, receiver) = mpsc::channel(KEYS_MAX);
    let ended = Arc::new(AtomicBool::new(false));
    let reading = Reading(Arc::clone(&ended));
    std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            let event = match event::poll(KEYS_EVERY) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            // Without a terminal there is nobody to show anything to: the receiver sees the end.
            let Ok(event) = event else { break };
            if sender.is_closed() {
                break;
            }
            let _ = sender.try_send(event);
        }
    });
    (reading, receiver)
}

/// Signals that end it politely.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| Failure::failed("signals cannot be caught").because(error))
        };
        Ok(Self([
            catch(SignalKind::terminate())?,
            catch(SignalKind::interrupt())?,
            catch(SignalKind::hangup())?,
        ]))
    }

    async fn end(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// What is shown, and the look before, for what happens in a second.
struct Shown {
    look: Look,
    before: Option<Look>,
    looked: Instant,
    every: Duration,
    stopped: bool,
    view: View,
}

impl Shown {
    fn new(look: Look, every: Duration) -> Self {
        let view = View { colour: output::colours(true), ..View::default() };
        let mut shown =
            Self { look, before: None, looked: Instant::now(), every, stopped: false, view };
        shown.head();
        shown
    }

    fn head(&mut self) {
        let stopped = if self.stopped { "stopped" } else { "" };
        self.view.head = format!(
            "{}  {}  {} open  every {} s  {stopped}",
            self.look.store,
            self.look.at,
            self.look.stored.open,
            self.every.as_secs(),
        );
    }

    /// A look that failed leaves the last one on the screen, with what is wrong below.
    fn take(&mut self, looked: Result<Look, Failure>) {
        match looked {
            Ok(look) => {
                self.before = Some(std::mem::replace(&mut self.look, look));
                self.looked = Instant::now();
                self.view.trouble = None;
            }
            Err(failure) => {
                let ago = self.looked.elapsed().as_secs();
                let text = failure.text();
                let problem = text.lines().next().unwrap_or_default();
                self.view.trouble = Some(format!("{problem} (shown: {ago} s ago)"));
            }
        }
        self.head();
    }

    fn panes(&self) -> Vec<Pane> {
        panes::all(&self.look, self.before.as_ref())
    }

    /// Acts on a key; true when it ends the command.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a keyboard has many keys that do nothing here"
    )]
    fn press(&mut self, key: KeyEvent, panes: &[Pane]) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let help = std::mem::take(&mut self.view.help);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Char('c') && control {
            return true;
        }
        let places = panes.len() + 1;
        let place = self.view.chosen.map_or(0, |chosen| chosen + 1);
        let rows =
            self.view.chosen.and_then(|chosen| panes.get(chosen)).map_or(0, |p| p.rows.len());
        let scroll = self.view.scroll;
        let (place, scroll) = match key.code {
            KeyCode::Char('q') => return true,
            // The first one takes the explanation away.
            KeyCode::Esc if !help => return true,
            KeyCode::Char('?') => {
                self.view.help = !help;
                (place, scroll)
            }
            KeyCode::Char(' ') => {
                self.stopped = !self.stopped;
                self.head();
                (place, scroll)
            }
            KeyCode::Tab | KeyCode::Right => ((place + 1) % places, 0),
            KeyCode::BackTab | KeyCode::Left => ((place + places - 1) % places, 0),
            KeyCode::Char(digit) => {
                match digit.to_digit(10).and_then(|d| usize::try_from(d).ok()) {
                    Some(chosen) if chosen < places => (chosen, 0),
                    Some(_) | None => (place, scroll),
                }
            }
            KeyCode::Down => (place, scroll + 1),
            KeyCode::Up => (place, scroll.saturating_sub(1)),
            KeyCode::PageDown => (place, scroll + PAGE),
            KeyCode::PageUp => (place, scroll.saturating_sub(PAGE)),
            _ => (place, scroll),
        };
        self.view.chosen = place.checked_sub(1);
        self.view.scroll = scroll.min(rows.saturating_sub(1));
        false
    }
}
