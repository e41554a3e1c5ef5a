//! The passes over a whole project. Each runs behind a shield: a bug in one pass must not lose the findings of the others.

use crate::shield::shielded_with_threads;

/// A pass over the whole project that panicked because of a bug in `samedevice`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedPass {
    /// The name of the pass, in a few words.
    pub name: &'static str,
    /// The panic's message and place.
    pub panic: String,
}

/// Runs passes and notes those that fail.
#[derive(Default)]
pub(super) struct Passes {
    failed: Vec<FailedPass>,
    /// The name of the pass that panics on purpose.
    #[cfg(test)]
    broken: Option<String>,
}

impl Passes {
    /// Runs a pass on the state and returns the new state. If the pass panics, the state stays as it was.
    pub(super) fn on<T: Clone>(&mut self, name: &'static str, state: T, pass: impl FnOnce(T) -> T) -> T {
        let before = state.clone();
        self.made(name, || pass(state)).unwrap_or(before)
    }

    /// Runs a pass and returns its result; `None` if it panics.
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

    /// A runner in which this pass panics on purpose.
    #[cfg(test)]
    pub(super) fn with_broken(pass: Option<&str>) -> Self {
        Self { broken: pass.map(str::to_owned), ..Self::default() }
    }

    /// The passes that panicked, each once, in the order in which they ran.
    pub(super) fn into_failed(self) -> Vec<FailedPass> {
        self.failed
    }
}
