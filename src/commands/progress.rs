//! A bar on standard error for runs that take long, where a person watches.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Runs that are over sooner show none.
const DELAY: Duration = Duration::from_secs(1);

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(100);

/// The bar. It is gone when this is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// What shows it after a while, and what tells that this is no longer wanted.
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// A bar with so many steps. It is shown in terminals only, and neither to who wants quiet nor in continuous integration.
    pub fn new(steps: usize, quiet: bool) -> Self {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("Checking {wide_bar} {percent:>3} %") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let watched = io::stderr().is_terminal() && std::env::var_os("CI").is_none();
        let waiting = (watched && !quiet).then(|| {
            let (sender, receiver) = channel();
            let bar = bar.clone();
            let show = move || {
                if receiver.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            };
            (sender, std::thread::spawn(show))
        });
        Self { bar, waiting }
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.waiting.take() {
            drop(sender);
            // It does not panic, and would take nothing with it if it did.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
