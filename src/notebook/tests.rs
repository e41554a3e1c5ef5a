#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::ops::Range;

use super::{Decoded, Notebook, WriteError, decode, write_back};

/// What Jupyter writes.
const PLAIN: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {},
   "source": [
    "# Title\n"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 1,
   "metadata": {},
   "outputs": [
    {
     "data": {"text/plain": ["1 < 2"]}
    }
   ],
   "source": [
    "import torch\n",
    "x = \"é\"  # \u00e9"
   ]
  },
  {
   "cell_type": "code",
   "metadata": {},
   "outputs": [],
   "source": []
  },
  {
   "cell_type": "code",
   "metadata": {},
   "outputs": [],
   "source": "y = x.cuda()\nz = y\n"
  }
 ],
 "metadata": {"language_info": {"name": "python"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn read(raw: &str) -> (String, Notebook) {
    match decode(raw.to_owned()) {
        Ok(Decoded::Python(text, notebook)) => (text, notebook),
        other => panic!("{other:?}"),
    }
}

/// A notebook with these JSON values for its cells' sources.
fn notebook(sources: &[&str]) -> String {
    let cell = |source: &&str| format!(r#"{{"cell_type": "code", "source": {source}}}"#);
    let cells: Vec<String> = sources.iter().map(cell).collect();
    format!(r#"{{"cells": [{}], "nbformat": 4}}"#, cells.join(", "))
}

fn written(raw: &str, edits: &[(Range<usize>, &str)]) -> Result<String, WriteError> {
    let edits: Vec<_> = edits.iter().map(|(range, content)| (range.clone(), (*content).to_owned())).collect();
    write_back(raw.as_bytes(), &edits).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The sources of [`notebook`] after these changes.
fn sources(before: &[&str], edits: &[(Range<usize>, &str)]) -> Vec<String> {
    let raw = written(&notebook(before), edits).unwrap();
    let document: serde_json::Value = serde_json::from_str(&raw).unwrap();
    let cells = document["cells"].as_array().unwrap();
    cells.iter().map(|cell| cell["source"].to_string()).collect()
}

fn broken(raw: &str) -> (usize, String) {
    match decode(raw.to_owned()) {
        Err((_, broken)) => (broken.at, broken.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_text_is_that_of_the_code_cells() {
    let (text, notebook) = read(PLAIN);
    assert_eq!(text, "import torch\nx = \"é\"  # é\ny = x.cuda()\nz = y\n");
    assert_eq!(notebook.starts(), [0, 28]);
    assert_eq!(notebook.cell(0), Some((2, 0..28)));
    assert_eq!(notebook.cell(28), Some((4, 28..text.len())));
    assert_eq!(notebook.cell(text.len()), Some((4, 28..text.len())));
}

#[test]
fn every_byte_has_a_place_in_the_file() {
    let (text, notebook) = read(PLAIN);
    let at = |needle: &str| text.find(needle).unwrap();
    let shown = |range: Range<usize>| &PLAIN[notebook.raw_range(range)];
    assert_eq!(shown(at("torch")..at("torch") + 5), "torch");
    assert_eq!(shown(at("\"é\"")..at("\"é\"") + 4), "\\\"é\\\"");
    assert_eq!(shown(at("# é")..at("# é") + 4), "# \\u00e9");
    assert_eq!(shown(0..13), "import torch\\n");
    assert_eq!(shown(27..28), "", "the line end that the cell does not have");
    assert_eq!(shown(at("y = x")..text.len()), "y = x.cuda()\\nz = y\\n");
    let place = |offset: usize| notebook.raw_position(notebook.raw_range(offset..offset).start);
    assert_eq!((place(0), place(7)), ((20, 6), (20, 13)));
    assert_eq!((place(at("# é")), place(at("z = y"))), ((21, 17), (34, 29)));
}

#[test]
fn cells_that_are_no_python_are_left_out() {
    let raw = notebook(&[
        r#""%%bash\nls""#,
        r#"["%%time\n", "a = 1"]"#,
        r#""pip install x""#,
        "[]",
        r#""""#,
        r#"["b = 1"]"#,
        r#"["%%html"]"#,
    ]);
    let (text, notebook) = read(&raw);
    assert_eq!(text, "%%time\na = 1\nb = 1\n");
    assert_eq!(notebook.cell(0).unwrap().0, 2);
    assert_eq!(notebook.cell(13).unwrap().0, 6);
}

#[test]
fn other_languages_are_told() {
    let language = |metadata: &str| {
        let raw = format!(r#"{{"cells": [], "metadata": {metadata}, "nbformat": 4}}"#);
        match decode(raw) {
            Ok(Decoded::Other(language)) => language,
            Ok(Decoded::Python(..)) => "Python".to_owned(),
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!(language(r#"{"language_info": {"name": "R"}}"#), "R");
    assert_eq!(language(r#"{"kernelspec": {"language": "julia"}}"#), "julia");
    assert_eq!(
        language(r#"{"kernelspec": {"language": "julia"}, "language_info": {"name": "python"}}"#),
        "Python"
    );
    for python in ["{}", "null", r#"{"kernelspec": 3}"#, r#"{"kernelspec": {"language": "Python 3"}}"#] {
        assert_eq!(language(python), "Python", "{python}");
    }
    let cell = r#"{"cells": [{"cell_type": "code", "metadata": {"vscode": {"languageId": "sql"}}, "source": "select 1"},
        {"cell_type": "code", "metadata": {"vscode": {"languageId": "python"}}, "source": "x"}], "nbformat": 4}"#;
    assert_eq!(read(cell).0, "x\n");
}

#[test]
fn what_is_no_notebook_says_why_and_where() {
    let (at, message) = broken("{\"cells\": [\n  {\"a\": }\n]}");
    assert_eq!((at, message.as_str()), (20, "it is not a valid JSON notebook: expected value"));
    let (at, message) = broken("{\"cells\": [");
    assert_eq!((at, message.contains("EOF")), (10, true));
    assert_eq!(broken(" [1]"), (1, "a notebook must be a JSON object (`{…}`)".to_owned()));
    assert!(broken("x = 1").1.contains("not a valid JSON"));
    let (at, message) = broken(r#"{"nbformat": 3, "worksheets": []}"#);
    assert!(at == 13 && message.contains("version 3") && message.contains("nbconvert"), "{message}");
    assert_eq!(broken(r#"{"nbformat": 4}"#).1, "it has no `cells`, so it is not a notebook");
    let raw = notebook(&[r#""x""#, "[1]"]);
    let (at, message) = broken(&raw);
    assert_eq!((&raw[at..=at], message.contains("cell 2")), ("1", true));
    assert!(broken("\u{feff}{\"cells\": 3}").0 >= 3);
}

#[test]
fn what_people_have_is_read() {
    for empty in ["", "\n", "\u{feff}", r#"{"cells": [], "nbformat": 4}"#] {
        assert_eq!(read(empty).0, "", "{empty:?}");
    }
    let numbers = r#"{"cells": [{"cell_type": "code", "outputs": [NaN, -Infinity, "NaN"], "source": ["x"]}], "nbformat": 4}"#;
    let (text, notebook) = read(numbers);
    assert_eq!((text.as_str(), &numbers[notebook.raw_range(0..1)]), ("x\n", "x"));
    let marked = format!("\u{feff}{}", notebook_of("x"));
    assert_eq!(written(&marked, &[(0..1, "y")]).unwrap(), format!("\u{feff}{}", notebook_of("y")));
}

fn notebook_of(text: &str) -> String {
    notebook(&[&format!("[\"{text}\"]")])
}

#[test]
fn only_what_changes_is_written() {
    let (text, _) = read(PLAIN);
    assert_eq!(written(PLAIN, &[]).unwrap(), PLAIN);
    assert_eq!(written(PLAIN, &[(0..6, "import")]).unwrap(), PLAIN);
    let at = text.find("x.cuda").unwrap();
    let expected = PLAIN.replace("x.cuda()", "x.to(\\\"cpu\\\")");
    assert_eq!(written(PLAIN, &[(at..at + 8, "x.to(\"cpu\")")]).unwrap(), expected);
    let expected =
        PLAIN.replace("    \"import torch\\n\",\n", "    \"import os\\n\",\n    \"import torch\\n\",\n");
    assert_eq!(written(PLAIN, &[(0..0, "import os\n")]).unwrap(), expected);
    let expected = PLAIN.replace("    \"import torch\\n\",\n", "");
    assert_eq!(written(PLAIN, &[(0..13, "")]).unwrap(), expected);
}

#[test]
fn lines_are_strings_of_their_own() {
    let two = [r#"["a\n","b"]"#];
    assert_eq!(sources(&two, &[(2..2, "x\ny\n")]), [r#"["a\n","x\n","y\n","b"]"#]);
    assert_eq!(sources(&two, &[(0..0, "x\n")]), [r#"["x\n","a\n","b"]"#]);
    assert_eq!(sources(&two, &[(4..4, "c\n")]), [r#"["a\n","b\n","c"]"#], "at the end");
    assert_eq!(sources(&two, &[(3..3, "\nc")]), [r#"["a\n","b\n","c"]"#]);
    assert_eq!(sources(&two, &[(0..2, "")]), [r#"["b"]"#]);
    assert_eq!(sources(&two, &[(2..4, "")]), [r#"["a\n"]"#]);
    assert_eq!(sources(&two, &[(1..2, "")]), [r#"["ab"]"#], "joined lines are one string");
    assert_eq!(sources(&two, &[(0..4, "")]), ["[]"]);
    assert_eq!(sources(&two, &[(1..3, "z")]), [r#"["az"]"#]);
    assert_eq!(sources(&two, &[(0..1, "x"), (2..3, "y"), (3..3, " # z")]), [r#"["x\n","y # z"]"#]);
    assert_eq!(sources(&[r#""a\nb""#], &[(2..2, "x\ny\n")]), [r#""a\nx\ny\nb""#]);
    assert_eq!(sources(&[r#""a\nb""#], &[(0..4, "")]), [r#""""#]);
    let cells = [r#"["a\n"]"#, r#"["b"]"#];
    assert_eq!(sources(&cells, &[(2..2, "x\n")]), [r#"["a\n"]"#, r#"["x\n","b"]"#], "at a cell's beginning");
    assert_eq!(sources(&cells, &[(0..0, "x\n"), (2..3, "c")]), [r#"["x\n","a\n"]"#, r#"["c"]"#]);
}

#[test]
fn escapes_are_those_of_the_notebook() {
    assert!(written(&notebook_of("\\u00e9"), &[(0..2, "ü")]).unwrap().contains(r#"["\u00fc"]"#));
    assert!(written(&notebook_of("é"), &[(0..2, "ü")]).unwrap().contains(r#"["ü"]"#));
    assert!(written(&notebook_of("a"), &[(0..1, "ü")]).unwrap().contains(r#"["ü"]"#));
    let elsewhere = notebook(&[r#""\u00e9""#, r#"["a"]"#]);
    assert!(written(&elsewhere, &[(3..4, "😀")]).unwrap().contains(r#"["\ud83d\ude00"]"#));
    assert!(written(&notebook_of("a\\/b"), &[(2..3, "c")]).unwrap().contains(r#"["a\/c"]"#));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let raw = notebook(&[r#""é""#, r#""b""#]);
    assert_eq!(written(&raw, &[(0..4, "")]), Err(WriteError::NotInOneCell(0..4)));
    assert_eq!(written(&raw, &[(1..2, "")]), Err(WriteError::WithinCharacter(1..2)));
    assert_eq!(written(&raw, &[(0..2, ""), (0..3, "")]), Err(WriteError::Overlap(0)));
    assert_eq!(written(&raw, &[(3..9, "")]), Err(WriteError::NotInOneCell(3..9)));
    assert!(matches!(written("{", &[]), Err(WriteError::NoNotebook(_))));
    assert_eq!(written(&notebook(&[]), &[(0..0, "x")]), Err(WriteError::NotInOneCell(0..0)));
}

/// A random string of characters that matter.
fn random_text(random: &mut fastrand::Rng, longest: usize) -> String {
    const CHARACTERS: [char; 14] =
        ['a', 'b', ' ', '\n', '\n', '\n', '"', '\\', 'é', '😀', '\t', '\r', '\u{1}', '/'];
    (0..random.usize(..=longest)).map(|_| CHARACTERS[random.usize(..CHARACTERS.len())]).collect()
}

/// A random way to write a string as JSON.
fn random_json(random: &mut fastrand::Rng, text: &str) -> String {
    let ascii = random.bool();
    let escaped = |c: char| match c {
        '/' if ascii => "\\/".to_owned(),
        c => super::literal::encoded(c, ascii),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// A random way to write a cell's source.
fn random_source(random: &mut fastrand::Rng) -> String {
    let text = random_text(random, 12);
    if random.u8(..4) == 0 {
        return random_json(random, &text);
    }
    let mut strings: Vec<String> = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        // Mostly lines, as Jupyter has it.
        let line = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let length =
            if random.u8(..8) == 0 { rest.floor_char_boundary(random.usize(..=rest.len())) } else { line };
        let (string, after) = rest.split_at(length);
        strings.push(random_json(random, string));
        rest = after;
    }
    let separator = [", ", ",\n    ", " , "][random.usize(..3)];
    format!("[{}]", strings.join(separator))
}

/// Random ranges in the text's cells, in order, and what to put there.
fn random_edits(random: &mut fastrand::Rng, text: &str, notebook: &Notebook) -> Vec<(Range<usize>, String)> {
    let (mut edits, mut at) = (Vec::new(), 0);
    while at <= text.len() && edits.len() < 4 && !text.is_empty() {
        let start = text.floor_char_boundary(at + random.usize(..=6)).max(at);
        if start > text.len() {
            break;
        }
        let (_, cell) = notebook.cell(start).unwrap();
        let end = text.floor_char_boundary((start + random.usize(..=6)).min(cell.end)).max(start);
        edits.push((start..end, random_text(random, 4)));
        at = end + usize::from(end == start);
        at = text.ceil_char_boundary(at);
    }
    edits
}

/// The texts of the cells after the changes, as [`decode`] gives them.
fn edited(text: &str, notebook: &Notebook, edits: &[(Range<usize>, String)]) -> Vec<String> {
    let mut cells = Vec::new();
    for cell in &notebook.cells {
        let is_last = cell.text.end == text.len();
        let mut own = text[cell.text.clone()].to_owned();
        for (range, content) in edits.iter().rev() {
            if cell.text.contains(&range.start) || (is_last && range.start == text.len()) {
                own.replace_range(range.start - cell.text.start..range.end - cell.text.start, content);
            }
        }
        if !own.is_empty() && !own.ends_with('\n') {
            own.push('\n');
        }
        // A line end of ours that is all that is left.
        let ours = own == "\n" && cell.closed;
        if !ours && !own.is_empty() {
            cells.push(own);
        }
    }
    cells
}

#[test]
fn random_changes_change_the_text_and_nothing_else() {
    let mut random = fastrand::Rng::with_seed(38);
    for round in 0..4_000 {
        let count = random.usize(1..4);
        let sources: Vec<String> = (0..count).map(|_| random_source(&mut random)).collect();
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let before = notebook(&sources);
        let (text, decoded) = read(&before);
        let edits = random_edits(&mut random, &text, &decoded);
        let after = String::from_utf8(write_back(before.as_bytes(), &edits).unwrap()).unwrap();
        let (new_text, new) = read(&after);
        let told = format!("round {round}\n{before}\n{edits:?}\n{after}");
        let cells: Vec<&str> = new.cells.iter().map(|cell| &new_text[cell.text.clone()]).collect();
        assert_eq!(cells, edited(&text, &decoded, &edits), "{told}");
        // What is around the sources stays, and so do cells without a change.
        let pieces = |raw: &str| {
            let document = super::json::read(raw).unwrap();
            let ranges: Vec<Range<usize>> = document.cells.into_iter().map(|cell| cell.source).collect();
            let mut at = 0;
            let around = ranges.iter().map(|range| std::mem::replace(&mut at, range.end)..range.start);
            let around: Vec<String> = around.map(|range| raw[range].to_owned()).collect();
            (around, raw[at..].to_owned())
        };
        assert_eq!(pieces(&before), pieces(&after), "{told}");
        assert_eq!(write_back(after.as_bytes(), &[]).unwrap(), after.as_bytes());
    }
}
