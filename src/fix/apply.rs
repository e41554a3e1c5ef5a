//! From the fixes of one file to its new text.

use crate::finding::Edit;
use crate::span::Span;

/// An edit of one file's text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Change {
    /// The bytes to replace; an empty range inserts.
    pub span: Span,
    /// The new text.
    pub content: String,
}

impl From<&Edit> for Change {
    fn from(edit: &Edit) -> Self {
        Self { span: edit.place.span, content: edit.content.clone() }
    }
}

impl Change {
    /// Does it insert whole lines, such as an import? Two fixes may share such a change.
    fn inserts_lines(&self) -> bool {
        self.span.start == self.span.end && self.content.ends_with(['\n', '\r'])
    }

    /// Do the two changes exclude each other?
    fn hinders(&self, other: &Self) -> bool {
        self.span.start <= other.span.end && other.span.start <= self.span.end
    }
}

/// Selects the fixes that can be applied together, each completely or not at all. Of fixes that exclude each other, the first by place is
/// selected. Returns their indices and all their changes, in order.
pub fn together(fixes: &[Vec<Change>]) -> (Vec<usize>, Vec<Change>) {
    let mut order: Vec<usize> = (0..fixes.len()).filter(|&n| !fixes[n].is_empty()).collect();
    order.sort_by_key(|&n| (fixes[n].iter().map(|c| c.span.start).max(), n));
    let (mut taken, mut changes): (Vec<usize>, Vec<Change>) = (Vec::new(), Vec::new());
    for n in order {
        let fix = &fixes[n];
        // Two findings may have the same fix.
        let again = taken.iter().any(|&t| fixes[t] == *fix);
        let fits = |c: &Change| changes.iter().all(|x| !x.hinders(c) || x == c && c.inserts_lines());
        if again || fix.iter().all(fits) {
            taken.push(n);
            changes.extend(fix.iter().filter(|c| !changes.contains(c)).cloned().collect::<Vec<_>>());
        }
    }
    taken.sort_unstable();
    changes.sort();
    (taken, changes)
}

/// The text with these changes, which are in order and do not overlap. `None` if a change is outside the text.
pub fn changed(text: &str, changes: &[Change]) -> Option<String> {
    let mut new = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for Change { span, content } in changes {
        new.push_str(text.get(at..span.start as usize)?);
        new.push_str(content);
        at = span.end as usize;
    }
    new.push_str(text.get(at..)?);
    Some(new)
}

/// The position in the new text of an offset in the old one. If text is inserted at the offset, the position is after the inserted text.
pub fn moved(offset: u32, changes: &[Change]) -> u32 {
    let mut new = i64::from(offset);
    for Change { span, content } in changes {
        let length = i64::try_from(content.len()).unwrap_or(0);
        if span.end <= offset {
            new += length - i64::from(span.end - span.start);
        } else if span.start < offset {
            new -= i64::from(offset - span.start);
        }
    }
    u32::try_from(new).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Change, changed, moved, together};
    use crate::span::Span;

    fn change(start: u32, end: u32, content: &str) -> Change {
        Change { span: Span::new(start, end), content: content.to_owned() }
    }

    #[test]
    fn a_fix_that_overlaps_an_earlier_one_waits_as_a_whole() {
        let fixes = [vec![change(0, 1, "x"), change(8, 8, "y")], vec![change(8, 9, "z"), change(4, 4, "w")]];
        let (taken, changes) = together(&fixes);
        assert_eq!(taken, [0]);
        assert_eq!(changed("abcdefghij", &changes).as_deref(), Some("xbcdefghyij"));
    }

    #[test]
    fn the_same_import_is_inserted_once() {
        let import = change(0, 0, "import torch\n");
        let fixes = [
            vec![import.clone(), change(2, 3, "x")],
            vec![import, change(5, 6, "y")],
            vec![change(0, 0, "from torch import nn\n"), change(8, 9, "z")],
        ];
        let (taken, changes) = together(&fixes);
        assert_eq!(taken, [0, 1]);
        assert_eq!(changed("abcdefghij", &changes).as_deref(), Some("import torch\nabxdeyghij"));
    }

    #[test]
    fn the_same_fix_of_two_findings_is_made_once() {
        let fix = vec![change(1, 1, "("), change(3, 3, ")")];
        let (taken, changes) = together(&[fix.clone(), fix, vec![change(2, 2, "("), change(3, 3, ")")]]);
        assert_eq!(taken, [0, 1]);
        assert_eq!(changed("abcd", &changes).as_deref(), Some("a(bc)d"));
    }

    #[test]
    fn offsets_move_with_what_is_before_them() {
        let changes = [change(2, 2, "xx"), change(4, 6, "")];
        assert_eq!([0, 2, 3, 4, 5, 6, 8].map(|at| moved(at, &changes)), [0, 4, 5, 6, 6, 6, 8]);
    }
}
