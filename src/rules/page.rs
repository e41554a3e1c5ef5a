//! A rule's page: `rules/SDnnn-name.md`, compiled in. It is the only text about a rule; the terminal, the
//! editor, SARIF and the tests all use it.

use crate::finding::{Code, Severity};

/// Does a fix exist, and may it be applied without a look?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FixKind {
    None,
    Sometimes,
    Safe,
    Unsafe,
}

/// A parsed page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The number.
    pub code: Code,
    /// The name in kebab case ("mixed-device-operation").
    pub name: &'static str,
    /// The world as the page gives it ("no-cuda", "gpus<N", "always").
    pub world: &'static str,
    /// How bad it is unless configured otherwise.
    pub severity: Severity,
    /// Is it on unless selected otherwise?
    pub default_on: bool,
    /// What `--fix` can do.
    pub fix: FixKind,
    /// The version that brought it.
    pub since: &'static str,
    /// The first paragraph.
    pub summary: &'static str,
    /// Everything after the front matter, in Markdown.
    pub body: &'static str,
}
