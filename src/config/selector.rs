//! Which rules run: selectors as people write them, and how several lists of them add up.

use std::collections::BTreeSet;
use std::fmt;

use crate::finding::{Code, REVEAL};
use crate::rules::page::Page;
use crate::suggest::closest;

/// One entry of `select`, `ignore`, `per-file-ignores` or a suppression comment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    /// `ALL`.
    All,
    /// `SD2`: the digits that the code starts with, possibly none.
    Prefix(String),
    /// `SD201` or `mixed-device-operation`.
    Rule(Code),
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("ALL"),
            Self::Prefix(digits) => write!(f, "SD{digits}"),
            Self::Rule(code) => code.fmt(f),
        }
    }
}

/// There is no such rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownRule {
    /// What was written.
    pub text: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl Selector {
    /// Reads a code, a prefix of codes, a name or `ALL`, in any case.
    ///
    /// # Errors
    /// [`UnknownRule`] if it stands for none of the rules.
    pub fn parse(text: &str, pages: &[Page]) -> Result<Self, UnknownRule> {
        let text = text.trim();
        let upper = text.to_ascii_uppercase();
        let selector = if upper == "ALL" {
            Some(Self::All)
        } else if let Some(page) = pages.iter().find(|page| page.name.eq_ignore_ascii_case(text)) {
            Some(Self::Rule(page.code))
        } else {
            upper.strip_prefix("SD").and_then(|digits| Self::from_digits(digits, pages))
        };
        selector.ok_or_else(|| {
            let codes: Vec<_> = pages.iter().map(|page| page.code.to_string()).collect();
            let names = pages.iter().map(|page| page.name);
            // People leave the letters out.
            let number = if upper.starts_with(|c: char| c.is_ascii_digit()) { "SD" } else { "" };
            let meant = format!("{number}{text}");
            let suggestion = closest(&meant, codes.iter().map(String::as_str).chain(names).chain(["ALL"]));
            UnknownRule { text: text.to_owned(), suggestion: suggestion.map(str::to_owned) }
        })
    }

    fn from_digits(digits: &str, pages: &[Page]) -> Option<Self> {
        if digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let selector = match digits.len() {
            3 => Self::Rule(Code(digits.parse().ok()?)),
            _ => Self::Prefix(digits.to_owned()),
        };
        let mut known = pages.iter().map(|page| page.code).chain([REVEAL]);
        known.any(|code| selector.matches(code)).then_some(selector)
    }

    /// Does it stand for this rule?
    pub fn matches(&self, code: Code) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(digits) => format!("{:03}", code.0).starts_with(digits.as_str()),
            Self::Rule(rule) => *rule == code,
        }
    }

    /// A rule's own code outweighs a long prefix, that a short one, that `ALL`.
    pub fn specificity(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Prefix(digits) => 1 + digits.len(),
            Self::Rule(_) => usize::MAX,
        }
    }
}

/// The selecting lists of one configuration file or of the command line.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Selection {
    /// Replaces what is on so far. `None`: was not given.
    pub select: Option<Vec<Selector>>,
    /// Adds to it.
    pub extend_select: Vec<Selector>,
    /// Takes from it.
    pub ignore: Vec<Selector>,
}

/// Codes that are reported whatever is selected, unless they are ignored: a run that could not read a file
/// must not look clean.
const ALWAYS: [Code; 2] = [Code(1), Code(3)];

/// The rules that are on. Of all entries that match a rule, the most specific decides; among equals the
/// later layer, and within a layer `ignore`. A `select` replaces the selecting lists, but not the `ignore`,
/// of the layers before it.
pub fn enabled(pages: &[Page], layers: &[&Selection]) -> BTreeSet<Code> {
    let base = layers.iter().rposition(|layer| layer.select.is_some());
    let mut entries: Vec<(&Selector, bool)> = Vec::new();
    for (at, layer) in layers.iter().enumerate() {
        if base.is_none_or(|base| at >= base) {
            entries.extend(layer.select.iter().flatten().chain(&layer.extend_select).map(|s| (s, true)));
        }
        entries.extend(layer.ignore.iter().map(|s| (s, false)));
    }
    // Of equals, `max_by_key` returns the last, which is the one that counts.
    let decisive =
        |code| entries.iter().filter(|(s, _)| s.matches(code)).max_by_key(|(s, _)| s.specificity()).copied();
    let on = |page: &&Page| {
        let by_default = if base.is_some() { ALWAYS.contains(&page.code) } else { page.default_on };
        decisive(page.code).map_or(by_default, |(_, on)| on)
    };
    let revealed = decisive(REVEAL) == Some((&Selector::Rule(REVEAL), true));
    pages.iter().filter(on).map(|page| page.code).chain(revealed.then_some(REVEAL)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Selection, Selector, enabled};
    use crate::config::sample::pages;

    fn parse(list: &str) -> Vec<Selector> {
        let one = |s| Selector::parse(s, pages()).unwrap_or_else(|unknown| panic!("{unknown:?}"));
        list.split_whitespace().map(one).collect()
    }

    fn layer(select: Option<&str>, extend: &str, ignore: &str) -> Selection {
        Selection { select: select.map(parse), extend_select: parse(extend), ignore: parse(ignore) }
    }

    fn on(layers: &[Selection]) -> String {
        let codes = enabled(pages(), &layers.iter().collect::<Vec<_>>());
        codes.iter().map(|code| code.0.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn selectors_are_codes_prefixes_and_names_in_any_case() {
        assert_eq!(parse("sd101 Unguarded-Cuda SD all Sd2")[..2], parse("SD101 SD101")[..]);
        let unknown = Selector::parse("SD1O1", pages()).expect_err("no digit");
        assert_eq!(unknown.suggestion.as_deref(), Some("SD101"));
        let unknown = Selector::parse("201", pages()).expect_err("the letters are missing");
        assert_eq!(unknown.suggestion.as_deref(), Some("SD201"));
        for wrong in ["SD9", "SD999", "SD1011", "", "S", "SD-1", "E501"] {
            assert!(Selector::parse(wrong, pages()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_selected_is_the_default_and_select_replaces_it() {
        assert_eq!(on(&[]), "1 2 3 101 102 103 201 203 501");
        assert_eq!(on(&[layer(None, "SD307", "SD1")]), "1 2 3 201 203 307 501");
        assert_eq!(on(&[layer(Some("SD2"), "", "")]), "1 3 201 203");
        assert_eq!(on(&[layer(Some(""), "", "SD001")]), "3");
    }

    #[test]
    fn what_is_no_rule_is_selected_by_its_code_only() {
        assert_eq!(on(&[layer(Some("ALL SD0 SD00"), "", "SD1 SD2 SD5")]), "1 2 3 307 606");
        assert_eq!(on(&[layer(Some("SD000"), "", "SD001 SD003")]), "0");
        assert_eq!(on(&[layer(Some("SD000"), "", "SD000")]), "1 3");
    }

    #[test]
    fn the_more_specific_wins_then_the_later_layer_then_ignore() {
        assert_eq!(on(&[layer(Some("SD101 SD2"), "", "SD1 SD203")]), "1 3 101 201");
        assert_eq!(on(&[layer(Some("SD2"), "", "SD2")]), "1 3");
        assert_eq!(on(&[layer(None, "", "SD203"), layer(Some("SD2"), "", "")]), "1 3 201");
        assert_eq!(on(&[layer(None, "", "SD203"), layer(Some("SD203"), "", "")]), "1 3 203");
        assert_eq!(on(&[layer(Some("SD2"), "SD307", ""), layer(Some("SD1"), "", "SD102")]), "1 3 101 103");
    }
}
