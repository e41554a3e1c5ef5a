use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{DATA, GROUPS, Words};

/// The source files of the engine and the rules.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn every_group_has_a_reason_and_words_and_is_used() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let text: String = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let used: BTreeSet<&str> =
        text.split("Words::of(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let heads = DATA.lines().filter_map(|line| line.strip_prefix('[')?.split_once(']'));
    for (name, reason) in heads {
        assert!(reason.trim().len() > 10, "[{name}] needs a reason");
        assert!(used.contains(name), "nothing uses [{name}]");
        let words = &GROUPS[name];
        let different: BTreeSet<_> = words.iter().collect();
        assert!(words.len() == different.len() && words.len() > 2, "[{name}] has {words:?}");
    }
    for name in used.into_iter().filter(|name| !name.starts_with("test ")) {
        assert!(GROUPS.contains_key(name), "data/words.txt has no group [{name}]");
    }
}

#[test]
fn a_group_that_is_missing_has_no_words() {
    assert!(!Words::of("test missing").has("to"));
    assert!(Words::of("grow a list").has("append") && Words::of("grow a list").is_part_of("x.append"));
}
