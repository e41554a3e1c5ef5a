//! The passes over a whole project, each behind a shield: a bug in one of them must not lose what the others have found.

use crate::shield::shielded_with_threads;

/// A pass over the whole project that panicked: a bug of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedPass {
    /// What the pass does, in a few words.
    pub name: &'static str,
    /// The panic's message and place.
    pub panic: String,
}

/// Runs passes and notes those that fail.
#[derive(Default)]
pub(super) struct Passes {
    failed: Vec<FailedPass>,
    /// The pass that is to panic.
    #[cfg(test)]
    broken: Option<String>,
}

impl Passes {
    /// What the pass makes of the state. If it panics, the state is as it was before.
    pub(super) fn on<T: Clone>(&mut self, name: &'static str, state: T, pass: impl FnOnce(T) -> T) -> T {
        let before = state.clone();
        self.made(name, || pass(state)).unwrap_or(before)
    }

    /// What the pass makes; `None` if it panics.
    pub(super) fn made<T>(&mut self, name: &'static str, pass: impl FnOnce() -> T) -> Option<T> {
        #[cfg(test)]
        let broken = self.broken.as_deref() == Some(name);
        let made = shielded_with_threads(|| {
            #[cfg(test)]
            assert!(!broken, "broken for a test");
            pass()
        });
        made.map_err(|panic| self.failed.push(FailedPass { name, panic })).ok()
    }

    /// With a pass that is to panic.
    #[cfg(test)]
    pub(super) fn with_broken(pass: Option<&str>) -> Self {
        Self { broken: pass.map(str::to_owned), ..Self::default() }
    }

    /// Those that panicked, each once, in the order in which they ran.
    pub(super) fn into_failed(self) -> Vec<FailedPass> {
        self.failed
    }
}
