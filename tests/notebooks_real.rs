//! Changes of real notebooks, written back: nothing else in them changes. For a folder of one's own:
//!
//!     SAMEDEVICE_NOTEBOOKS=FOLDER cargo test --test notebooks_real -- --ignored
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use samedevice::notebook::{Decoded, decode, is_notebook, write_back};
use serde_json::Value;

/// Rounds of random changes for each notebook.
const ROUNDS: usize = 3;

fn notebooks(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            notebooks(&path, found);
        } else if is_notebook(&path) {
            found.push(path);
        }
    }
}

/// The notebook without its code, and the code of its cells.
fn parts(raw: &str) -> (Value, Vec<Option<String>>) {
    let mut document: Value = serde_json::from_str(raw.trim_start_matches('\u{feff}')).unwrap_or_default();
    let mut codes = Vec::new();
    for cell in document["cells"].as_array_mut().into_iter().flatten() {
        if cell["cell_type"] == "code" {
            codes.push(match cell["source"].take() {
                Value::String(text) => Some(text),
                Value::Array(lines) => Some(lines.iter().filter_map(Value::as_str).collect()),
                _ => None,
            });
        }
    }
    (document, codes)
}

/// A comment at the beginnings of some lines.
fn comments(random: &mut fastrand::Rng, text: &str) -> Vec<(Range<usize>, String)> {
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    starts.retain(|&start| start < text.len());
    random.shuffle(&mut starts);
    starts.truncate(random.usize(1..4));
    starts.into_iter().map(|start| (start..start, "# \u{e9} \"x\" \\\n".to_owned())).collect()
}

#[test]
#[ignore = "needs a folder of notebooks"]
fn everything_else_stays() {
    let folder = std::env::var_os("SAMEDEVICE_NOTEBOOKS").unwrap();
    let mut paths = Vec::new();
    notebooks(Path::new(&folder), &mut paths);
    paths.sort();
    let mut random = fastrand::Rng::with_seed(38);
    let (mut read, mut rounds) = (0, 0);
    for path in &paths {
        let raw = String::from_utf8(fs::read(path).unwrap()).unwrap();
        let text = match decode(raw.clone()) {
            Ok(Decoded::Python(text, _)) => text,
            Ok(Decoded::Other(language)) => {
                println!("{}: {language}", path.display());
                continue;
            }
            Err((_, broken)) => {
                println!("{}: {}", path.display(), broken.message);
                continue;
            }
        };
        read += 1;
        let name = path.display();
        assert_eq!(write_back(raw.as_bytes(), &[]).unwrap(), raw.as_bytes(), "{name}");
        if text.is_empty() {
            continue;
        }
        let all = vec![(0..1, text[..1].to_owned())];
        assert!(
            !text.is_char_boundary(1) || write_back(raw.as_bytes(), &all).unwrap() == raw.as_bytes(),
            "{name}"
        );
        let before = parts(&raw);
        for _ in 0..ROUNDS {
            let edits = comments(&mut random, &text);
            let new = String::from_utf8(write_back(raw.as_bytes(), &edits).unwrap()).unwrap();
            let after = parts(&new);
            assert!(before.0 == after.0, "{name}: {edits:?}");
            let changed = before.1.iter().zip(&after.1).filter(|(a, b)| a != b).count();
            assert!(changed >= 1 && changed <= edits.len(), "{name}: {edits:?}");
            // The lines that were put in are all that differs.
            let old: Vec<&str> = raw.split('\n').collect();
            let rest: HashSet<&str> = new.split('\n').collect();
            let same = old.iter().filter(|line| rest.contains(*line)).count();
            assert!(same + edits.len() >= old.len(), "{name}: {edits:?}");
            let mut joined = text.clone();
            let mut sorted = edits.clone();
            sorted.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
            sorted.iter().for_each(|(range, content)| joined.replace_range(range.clone(), content));
            let Ok(Decoded::Python(again, _)) = decode(new) else { panic!("{name}: {edits:?}") };
            // What is put above `%%time` makes another cell of it.
            assert!(again == joined || text.contains("%%"), "{name}: {edits:?}");
            rounds += 1;
        }
    }
    println!("{} notebooks, {read} in Python, {rounds} changes", paths.len());
}
