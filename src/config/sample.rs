//! Rules for the tests of everything that selects rules: these do not change when a rule is added.

use std::sync::LazyLock;

use crate::finding::{Code, Severity};
use crate::rules::page::{FixKind, Page};

const RULES: [(u16, &str, bool); 11] = [
    (1, "syntax-error", true),
    (2, "unused-suppression", true),
    (3, "unreadable-file", true),
    (101, "unguarded-cuda", true),
    (102, "unguarded-accelerator", true),
    (103, "uncalled-availability-check", true),
    (201, "mixed-device-operation", true),
    (203, "discarded-transfer", true),
    (307, "stale-device-attribute", false),
    (501, "missing-oom-handling", true),
    (606, "sync-in-training-loop", false),
];

/// A few rules, sorted by code.
pub fn pages() -> &'static [Page] {
    static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
        let page = |&(code, name, default_on)| Page {
            code: Code(code),
            name,
            world: "always",
            severity: Severity::Error,
            likely: Severity::Error,
            default_on,
            fix: FixKind::None,
            since: "0.1.0",
            summary: "",
            body: "",
        };
        RULES.iter().map(page).collect()
    });
    &PAGES
}
