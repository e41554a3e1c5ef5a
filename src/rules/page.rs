//! A rule's page: `rules/SDnnn-name.md`, compiled into the program. It is the only text about a rule. The terminal, the editor, SARIF and
//! the tests all use it.
//!
//! A page begins with front matter: one `key: value` per line between two `---` lines, with every key of [`KEYS`] exactly once. Then comes
//! the summary, one paragraph on one line, and then the sections of [`SECTIONS`], in that order.

use crate::finding::{Code, Confidence, Severity};

/// The keys of the front matter.
pub const KEYS: [&str; 7] = ["code", "name", "world", "severity", "default", "fix", "since"];

/// An optional key: the severity of findings that are not certain, if a sample of unseen code showed that too few of them are right
/// (`docs/precision.md`).
const LIKELY: &str = "likely";

/// The sections that every page has, in this order.
pub const SECTIONS: [&str; 5] = ["Why", "Example", "Fix", "Not reported", "Configuration"];

/// Whether a fix exists, and whether it is safe to apply without review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FixKind {
    None,
    Sometimes,
    Safe,
    Unsafe,
}

impl FixKind {
    /// The name in the front matter and in the machine formats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sometimes => "sometimes",
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
        }
    }
}

/// A parsed page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The code.
    pub code: Code,
    /// The name in kebab case ("mixed-device-operation").
    pub name: &'static str,
    /// The world as the page gives it ("no-cuda", "gpus<N", "always").
    pub world: &'static str,
    /// The default severity.
    pub severity: Severity,
    /// The default severity of findings that are not certain.
    pub likely: Severity,
    /// Whether the rule is on by default.
    pub default_on: bool,
    /// The kind of fix that `--fix` can apply.
    pub fix: FixKind,
    /// The version that introduced it.
    pub since: &'static str,
    /// The first paragraph.
    pub summary: &'static str,
    /// Everything after the front matter, in Markdown.
    pub body: &'static str,
}

impl Page {
    /// Reads a page, and checks that it has its sections. The error is a message for the author of the page.
    pub fn parse(text: &'static str) -> Result<Self, String> {
        let page = Self::read(text)?;
        let headings: Vec<_> = headings(page.body).collect();
        if headings != SECTIONS {
            return Err(format!("the sections are {headings:?}, not {SECTIONS:?}"));
        }
        Ok(page)
    }

    /// Reads a page's head and summary: all that a run needs of most pages.
    pub fn read(text: &'static str) -> Result<Self, String> {
        let rest = text.strip_prefix("---\n").ok_or("the page does not start with `---`")?;
        let (front, body) = rest.split_once("\n---\n").ok_or("the front matter does not end")?;
        let (front, likely) = front_matter(front)?;
        let body = body.trim_start();
        let summary = body.split("\n\n").next().unwrap_or_default().trim_end();
        if summary.is_empty() || summary.starts_with('#') {
            return Err("the summary is missing".to_owned());
        }
        if summary.contains('\n') {
            return Err("the summary must be one line".to_owned());
        }
        let [code, name, world, severity, default, fix, since] = front;
        let level = |word| {
            let levels = [Severity::Error, Severity::Warning, Severity::Info];
            one_of(word, &levels.map(|level| (level.name(), level)))
        };
        let severity = level(severity)?;
        let likely = likely.map_or(Ok(severity), level)?;
        Ok(Self {
            code: parse_code(code).ok_or_else(|| format!("`{code}` is no code"))?,
            name: kebab_case(name).ok_or_else(|| format!("`{name}` is not in kebab case"))?,
            world: known_world(world).ok_or_else(|| format!("`{world}` is no world"))?,
            severity,
            likely,
            default_on: one_of(default, &[("on", true), ("off", false)])?,
            fix: one_of(
                fix,
                &[
                    ("none", FixKind::None),
                    ("sometimes", FixKind::Sometimes),
                    ("safe", FixKind::Safe),
                    ("unsafe", FixKind::Unsafe),
                ],
            )?,
            since,
            summary,
            body,
        })
    }

    /// The severity of a finding with this confidence, if the settings do not change it.
    pub fn severity_of(&self, confidence: Confidence) -> Severity {
        if confidence == Confidence::Certain { self.severity } else { self.likely }
    }

    /// The stem of the page's file name, `SD203-discarded-transfer`.
    pub fn slug(&self) -> String {
        format!("{}-{}", self.code, self.name)
    }

    /// The page on the web.
    pub fn url(&self) -> String {
        format!("{}/blob/main/rules/{}.md", env!("CARGO_PKG_REPOSITORY"), self.slug())
    }

    /// The section "Why", in Markdown.
    pub fn why(&self) -> &'static str {
        let after = self.body.split_once("\n## Why\n").map_or("", |(_, after)| after);
        after.split("\n## ").next().unwrap_or_default().trim()
    }

    /// The sections after the summary, in Markdown.
    pub fn explanation(&self) -> &'static str {
        self.body[self.summary.len()..].trim()
    }
}

/// The values of [`KEYS`], in their order, and the value of [`LIKELY`].
fn front_matter(text: &'static str) -> Result<([&'static str; KEYS.len()], Option<&'static str>), String> {
    let (mut values, mut likely) = ([""; KEYS.len()], None);
    for line in text.lines() {
        let (key, value) = line.split_once(": ").ok_or_else(|| format!("`{line}` is no `key: value`"))?;
        if key == LIKELY && likely.is_none() {
            likely = Some(value.trim());
            continue;
        }
        let at = KEYS.iter().position(|&k| k == key).ok_or_else(|| format!("unknown key `{key}`"))?;
        if !values[at].is_empty() {
            return Err(format!("`{key}` is given twice"));
        }
        values[at] = value.trim();
    }
    match KEYS.iter().zip(values).find(|(_, v)| v.is_empty()) {
        Some((key, _)) => Err(format!("`{key}` is missing")),
        None => Ok((values, likely)),
    }
}

/// The titles of the second-level headings outside code blocks.
fn headings(body: &'static str) -> impl Iterator<Item = &'static str> {
    let mut in_code = false;
    body.lines().filter_map(move |line| {
        in_code ^= line.starts_with("```");
        line.strip_prefix("## ").filter(|_| !in_code)
    })
}

/// Reads `SD203`; three digits, upper or lower case.
pub fn parse_code(text: &str) -> Option<Code> {
    let (family, digits) = text.split_at_checked(2)?;
    let well_formed =
        family.eq_ignore_ascii_case("SD") && digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit());
    if well_formed { digits.parse().ok().map(Code) } else { None }
}

fn kebab_case(name: &'static str) -> Option<&'static str> {
    let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.split('-').all(word).then_some(name)
}

fn known_world(world: &'static str) -> Option<&'static str> {
    const WORLDS: [&str; 8] = ["always", "no-cuda", "cuda", "gpus<N", "free<N", "cc<X.Y", "no-mps", "mps"];
    WORLDS.contains(&world).then_some(world)
}

fn one_of<T: Copy>(word: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices.iter().find(|(w, _)| *w == word).map(|&(_, t)| t).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(w, _)| *w).collect();
        format!("`{word}` is none of {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::{FixKind, Page, parse_code};
    use crate::finding::{Code, Severity};

    const SECTIONS: &str =
        "## Why\n## Example\n```py\n## a comment\n```\n## Fix\n## Not reported\n## Configuration\n";

    fn page(front: &str, body: &str) -> Result<Page, String> {
        Page::parse(Box::leak(format!("---\n{front}\n---\n{body}").into_boxed_str()))
    }

    const FRONT: &str = "code: SD203\nname: discarded-transfer\nworld: cuda\nseverity: error\ndefault: on\n\
                         fix: none\nsince: 0.1.0";

    #[test]
    fn a_page_is_read() -> Result<(), String> {
        let page = page(FRONT, &format!("It does not move.\n\n{SECTIONS}"))?;
        assert_eq!((page.code, page.name, page.world), (Code(203), "discarded-transfer", "cuda"));
        assert_eq!((page.severity, page.default_on, page.fix), (Severity::Error, true, FixKind::None));
        assert_eq!((page.summary, page.since), ("It does not move.", "0.1.0"));
        assert_eq!(page.slug(), "SD203-discarded-transfer");
        assert!(page.explanation().starts_with("## Why"));
        Ok(())
    }

    #[test]
    fn what_is_wrong_with_a_page_is_said() {
        let body = format!("Summary.\n\n{SECTIONS}");
        let message = |front: &str, body: &str| page(front, body).err().unwrap_or_default();
        assert_eq!(message(&FRONT.replace("fix: none\n", ""), &body), "`fix` is missing");
        assert_eq!(
            message(&FRONT.replace("fix: none", "fix: no"), &body),
            "`no` is none of none, sometimes, safe, unsafe"
        );
        assert_eq!(message(&FRONT.replace("code: SD203", "code: SD3"), &body), "`SD3` is no code");
        assert_eq!(message(&format!("{FRONT}\nfix: safe"), &body), "`fix` is given twice");
        assert_eq!(message(&FRONT.replace("cuda", "cude"), &body), "`cude` is no world");
        assert_eq!(message(FRONT, SECTIONS), "the summary is missing");
        assert_eq!(message(FRONT, &format!("Two\nlines.\n\n{SECTIONS}")), "the summary must be one line");
        assert!(message(FRONT, &body.replace("## Configuration\n", "")).starts_with("the sections are"));
        assert_eq!(
            Page::parse("no front matter").err().unwrap_or_default(),
            "the page does not start with `---`"
        );
    }

    #[test]
    fn codes_have_three_digits() {
        assert_eq!(parse_code("SD001"), Some(Code(1)));
        assert_eq!(parse_code("sd203"), Some(Code(203)));
        for wrong in ["SD1", "SD2033", "SDx03", "E501", "", "é"] {
            assert_eq!(parse_code(wrong), None, "{wrong}");
        }
    }
}
