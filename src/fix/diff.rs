//! Diffs of fixes, for people and for `patch`.

use similar::{ChangeTag, TextDiff};

/// A unified diff of one file, with `name` on both sides.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).header(name, name).to_string()
}

/// The removed and the added lines, each with its sign and without its line end.
pub fn lines(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let sign = |tag| match tag {
        ChangeTag::Delete => Some('-'),
        ChangeTag::Insert => Some('+'),
        ChangeTag::Equal => None,
    };
    diff.iter_all_changes()
        .filter_map(|c| Some(format!("{} {}", sign(c.tag())?, c.value().trim_end_matches(['\n', '\r']))))
        .collect()
}
