use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{FILES, GROUPS, Words, words};

/// The Rust files below a folder, without tests.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        } else if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

fn below(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join(folder), &mut files);
    let text = |file: PathBuf| {
        Some((file.strip_prefix(root).ok()?.to_owned(), std::fs::read_to_string(&file).ok()?))
    };
    files.into_iter().filter_map(text).collect()
}

#[test]
fn every_group_has_a_reason_and_words_and_is_used() {
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (_, text) in below("src") {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let names = code.filter_map(|line| line.split_once("Words::of(\"")?.1.split('"').next());
        used.extend(names.map(str::to_owned));
    }
    let mut same: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
    let heads =
        FILES.iter().flat_map(|file| file.lines()).filter_map(|line| line.strip_prefix('[')?.split_once(']'));
    for (name, reason) in heads {
        assert!(reason.trim().len() > 10, "[{name}] needs a reason");
        assert!(used.remove(name), "nothing uses [{name}]");
        let mut words = GROUPS[name].words.clone();
        words.sort_unstable();
        words.dedup();
        assert!(words.len() == GROUPS[name].words.len() && words.len() > 2, "[{name}] has {words:?}");
        if let Some(other) = same.insert(words, name) {
            panic!("[{name}] and [{other}] have the same words: keep one");
        }
    }
    assert!(used.is_empty(), "data/words has no group for {used:?}");
}

#[test]
fn a_group_that_is_missing_has_no_words() {
    assert!(!Words::of("test missing").has("to"));
    assert!(Words::of("grow a list").has("append") && Words::of("grow a list").is_part_of("x.append"));
}

#[test]
fn quotes_keep_blanks() {
    let mut all = Vec::new();
    words(r#" a " + " "" b"#, &mut all);
    assert_eq!(all, ["a", " + ", "", "b"]);
}

/// The lists of three or more string literals in code: literals with nothing but one kind of separator between them.
fn lists(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut run, mut separator): (Vec<&str>, &str) = (Vec::new(), "");
    let mut rest = code;
    while let Some((before, after)) = rest.split_once('"') {
        let end = after.match_indices('"').map(|(at, _)| at).find(|&at| !after[..at].ends_with('\\'));
        let Some(end) = end else { break };
        let between = before.trim();
        if !matches!(between, "," | "|") || !separator.is_empty() && between != separator {
            run.clear();
            separator = "";
        } else if !run.is_empty() {
            separator = between;
        }
        run.push(&after[..end]);
        if run.len() == 3 {
            found.push(run.join(" "));
        }
        rest = &after[end + 1..];
    }
    found
}

#[test]
fn lists_of_words_are_data() {
    assert_eq!(lists(r#"matches!(x, "a" | "b" | "c") || ["d", "e", "f"].has(f("g"))"#), ["a b c", "d e f"]);
    assert_eq!(lists(r#"f("a", "b"); g("c" | "d", "e")"#), Vec::<String>::new());
    let mut wrong = Vec::new();
    for (file, text) in ["src/flow", "src/rules", "src/analysis"].into_iter().flat_map(below) {
        // Names are what a model of a library is about. A page is written in words.
        if file.starts_with("src/flow/models") || file.ends_with("rules/page.rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: Vec<&str> = lines.map(|line| line.split(" // ").next().unwrap_or_default()).collect();
        wrong.extend(lists(&code.join("\n")).into_iter().map(|list| format!("{}: {list}", file.display())));
    }
    assert!(wrong.is_empty(), "these lists belong to data/words (CONTRIBUTING.md):\n{}", wrong.join("\n"));
}
