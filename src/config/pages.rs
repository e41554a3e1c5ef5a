//! MERGE: goes away. Until the rules' pages are there, the codes and names of `rules.md` without texts.
//! `crate::rules::registry::registry()` takes the place of [`registry`].

use std::sync::LazyLock;

use crate::finding::{Code, Severity};
use crate::rules::page::{FixKind, Page};

const RULES: &[(u16, &str, bool)] = &[
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

/// Every rule, sorted by code.
pub fn registry() -> &'static [Page] {
    static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
        let page = |&(code, name, default_on)| Page {
            code: Code(code),
            name,
            world: "always",
            severity: if code >= 600 { Severity::Warning } else { Severity::Error },
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
