//! All rules, from the pages in `rules/`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::PAGES;
use super::page::{Page, parse_code};
use crate::finding::Code;

/// The families, by the hundreds of the code.
const FAMILIES: [(u16, &str); 9] = [
    (0, "the file itself"),
    (1, "availability: code that needs a GPU and does not check for one"),
    (2, "mismatch: tensors and modules on different devices"),
    (3, "module state: tensors and submodules that `.to()` does not move"),
    (4, "device numbers, visible devices, processes"),
    (5, "memory"),
    (6, "transfers"),
    (7, "dtypes that a device does not support"),
    (8, "device strings, comparisons and attributes"),
];

/// Every rule, sorted by code. Skips pages that cannot be read; a test checks that there are none.
pub fn registry() -> &'static [Page] {
    static REGISTRY: LazyLock<Vec<Page>> = LazyLock::new(|| {
        let mut pages: Vec<_> = PAGES.iter().filter_map(|(_, text)| Page::read(text).ok()).collect();
        pages.sort_by_key(|p| p.code);
        pages
    });
    &REGISTRY
}

/// The page of the rule with this code.
pub fn page(code: Code) -> Option<&'static Page> {
    let pages = registry();
    pages.binary_search_by_key(&code, |p| p.code).ok().map(|at| &pages[at])
}

/// The page of the rule with this code or name, in any case: `SD203`, `sd203`, `discarded-transfer`.
pub fn find(selector: &str) -> Option<&'static Page> {
    let selector = selector.trim();
    match parse_code(selector) {
        Some(code) => page(code),
        None => registry().iter().find(|p| p.name.eq_ignore_ascii_case(selector)),
    }
}

/// `rules/README.md`: the catalogue as a table.
pub fn catalogue() -> String {
    let mut out = String::from(
        "# Rules\n\n\
         Every rule answers one question: on which machine does this line fail? The *world* is that machine.\n\
         A rule is on unless its default is `off`. `samedevice rule CODE` prints its page. The examples on the pages are tests.\n\n\
         One cause is one finding, whatever part of a project is linted. A finding in an imported file is not repeated\n\
         where the file is used. If the first comments of a file say that it is generated from another file in its folder,\n\
         the finding is in the generated file and names the source. A definition under a comment\n\
         `# Copied from lib.nets.Block.forward` has no findings that its source has too. Copies without such a comment\n\
         have their own findings.\n\n\
         [Findings](../docs/findings.md) explains severity and confidence.\n\n\
         <!-- Generated from the pages: `SAMEDEVICE_UPDATE=1 cargo test` writes it. -->\n",
    );
    for (family, title) in FAMILIES {
        let mut pages = registry().iter().filter(|p| p.code.0 / 100 == family).peekable();
        if pages.peek().is_none() {
            continue;
        }
        let _ = write!(
            out,
            "\n## SD{family} – {title}\n\n\
             | Code | Name | World | Severity | Default | Fix | |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n"
        );
        for page in pages {
            let default = if page.default_on { "on" } else { "off" };
            let severity = match page.likely {
                same if same == page.severity => same.name().to_owned(),
                likely => {
                    format!("{} if certain, else {}", page.severity.name(), likely.name())
                }
            };
            let _ = writeln!(
                out,
                "| [{}]({}.md) | {} | `{}` | {severity} | {default} | {} | {} |",
                page.code,
                page.slug(),
                page.name,
                page.world,
                page.fix.name(),
                page.summary.replace('|', "\\|"),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{catalogue, find, page, registry};
    use crate::finding::Code;
    use crate::rules::example::{self, Section};
    use crate::rules::page::{KEYS, Page};
    use crate::rules::{PAGES, checks};

    /// The maximum number of lines of a page.
    const LONGEST: usize = 120;

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/rules"))
    }

    #[test]
    fn every_page_can_be_read_and_is_named_after_its_rule() {
        let mut wrong = Vec::new();
        for (slug, text) in PAGES {
            match Page::parse(text) {
                Ok(page) if page.slug() == *slug => {}
                Ok(page) => wrong.push(format!("{slug}.md is about {}", page.slug())),
                Err(message) => wrong.push(format!("{slug}.md: {message}")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(registry().windows(2).all(|w| w[0].code < w[1].code), "a code is used twice");
    }

    #[test]
    fn every_file_is_registered() -> std::io::Result<()> {
        let mut files = BTreeSet::new();
        for entry in folder().read_dir()? {
            files.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        files.remove("README.md");
        let registered: BTreeSet<_> = PAGES.iter().map(|(slug, _)| format!("{slug}.md")).collect();
        assert_eq!(files, registered);
        Ok(())
    }

    #[test]
    fn every_rule_is_in_a_file_that_is_named_after_its_page() -> std::io::Result<()> {
        let found_by_reading = ["SD001", "SD002", "SD003"];
        let rules =
            PAGES.iter().filter(|(slug, _)| !found_by_reading.iter().any(|code| slug.starts_with(code)));
        let named: BTreeSet<String> =
            rules.map(|(slug, _)| format!("{}.rs", slug.to_lowercase().replace('-', "_"))).collect();
        let mut files = BTreeSet::new();
        for entry in Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules")).read_dir()? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with("sd") && name.ends_with(".rs") {
                files.insert(name);
            }
        }
        assert_eq!(files, named);
        assert_eq!(checks().len(), named.len());
        Ok(())
    }

    #[test]
    fn every_page_has_examples_that_can_be_run() {
        let mut wrong = Vec::new();
        for page in registry() {
            let mut fail = |message: String| wrong.push(format!("{}: {message}", page.slug()));
            let programs = match example::programs(page.body) {
                Ok(programs) => programs,
                Err(message) => {
                    fail(message);
                    continue;
                }
            };
            let at = |section| programs.iter().filter(move |p| Section::titled(&p.title) == Some(section));
            if at(Section::Example).next().is_none() || at(Section::Fix).next().is_none() {
                fail("an example or its fix is missing".to_owned());
            }
            if page.body.lines().count() + KEYS.len() + 2 > LONGEST {
                fail(format!("the page is longer than {LONGEST} lines: move programs to fixtures/rules"));
            }
            for program in &programs {
                let expected: Vec<Code> = program
                    .files
                    .iter()
                    .flat_map(|f| example::expectations(&f.text))
                    .map(|(_, c)| c)
                    .collect();
                if program.title != "Example" && !expected.is_empty() {
                    fail(format!("line {}: a finding is expected outside of ## Example", program.line));
                }
                if program.title == "Example" && !expected.contains(&page.code) {
                    fail(format!("line {}: no line is marked with {}", program.line, page.code));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_catalogue_is_current() -> std::io::Result<()> {
        let path = folder().join("README.md");
        if std::env::var_os("SAMEDEVICE_UPDATE").is_some() {
            std::fs::write(&path, catalogue())?;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == catalogue(), "rules/README.md is stale: run `SAMEDEVICE_UPDATE=1 cargo test`");
        Ok(())
    }

    #[test]
    fn rules_are_found_by_code_and_by_name() {
        for p in registry() {
            for selector in [p.code.to_string(), p.code.to_string().to_lowercase(), p.name.to_owned()] {
                assert_eq!(find(&selector).map(|f| f.code), Some(p.code), "{selector}");
            }
        }
        assert!(find("SD999").is_none() && find("no-such-rule").is_none() && find("").is_none());
        assert!(page(Code(999)).is_none());
    }
}
