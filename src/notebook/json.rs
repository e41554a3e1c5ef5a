//! The part of a notebook's JSON that matters, with the places of it in the file.
//!
//! The format: <https://nbformat.readthedocs.io/en/latest/format_description.html>.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Broken;

/// The versions of the format from this one on have their cells at the top.
const OLDEST: u64 = 4;

/// A notebook.
pub(super) struct Document {
    /// The language of its kernel, if it says so.
    pub language: Option<String>,
    /// Is it one of Databricks?
    pub databricks: bool,
    /// The code cells in another language than the kernel's are not among them.
    pub cells: Vec<Code>,
}

/// A code cell.
pub(super) struct Code {
    /// Which of all cells it is, from 1.
    pub number: usize,
    /// Where its text is written, brackets or quotes included.
    pub source: Range<usize>,
    /// The strings that make it up, quotes included.
    pub literals: Vec<Range<usize>>,
    /// Are they in a list?
    pub listed: bool,
}

#[derive(Deserialize)]
struct RawDocument<'a> {
    #[serde(borrow)]
    nbformat: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<RawMetadata<'a>>,
    #[serde(borrow)]
    cells: Option<Vec<RawCell<'a>>>,
}

#[derive(Deserialize)]
struct RawMetadata<'a> {
    #[serde(borrow)]
    kernelspec: Option<&'a RawValue>,
    #[serde(borrow)]
    language_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "application/vnd.databricks.v1+notebook")]
    databricks: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawCell<'a> {
    #[serde(borrow)]
    cell_type: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
}

/// Reads a notebook. Places count from the beginning of `file`, in bytes.
///
/// # Errors
/// What is wrong, and where: it is no JSON, or no notebook of today's format.
pub(super) fn read(file: &str) -> Result<Document, Broken> {
    // Windows' editors write it.
    let mark = if file.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = &file[mark..];
    let blank = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
    if blank == text.len() {
        // Nobody has written to it yet.
        return Ok(Document { language: None, databricks: false, cells: Vec::new() });
    }
    if !text[blank..].starts_with('{') {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text);
        let wrong = |error: &serde_json::Error| syntax(file, mark, error);
        return Err(is_json.as_ref().map_or_else(wrong, |_| {
            let message = "a notebook must be a JSON object (`{…}`)".to_owned();
            Broken { at: mark + blank, message }
        }));
    }
    match serde_json::from_str::<RawDocument>(text) {
        Ok(document) => read_document(&document, &Places { text, mark }),
        Err(error) => {
            // Python's `json` writes numbers that JSON does not have.
            let Cow::Owned(plain) = finite(text) else { return Err(syntax(file, mark, &error)) };
            let document = serde_json::from_str::<RawDocument>(&plain);
            let document = document.map_err(|error| syntax(file, mark, &error))?;
            read_document(&document, &Places { text: &plain, mark })
        }
    }
}

/// Where the pieces of a text are in the file.
struct Places<'a> {
    text: &'a str,
    /// The bytes before the text.
    mark: usize,
}

impl Places<'_> {
    fn of(&self, value: &RawValue) -> Range<usize> {
        let start = value.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr()) + self.mark;
        start..start + value.get().len()
    }
}

fn read_document(document: &RawDocument, places: &Places) -> Result<Document, Broken> {
    if let Some(value) = document.nbformat {
        let version = value.get().parse::<u64>().ok();
        if version.is_none_or(|version| version < OLDEST) {
            let message = format!(
                "its notebook format is version {}, and samedevice reads version 4 and later; \
                 `jupyter nbconvert --to notebook --inplace` converts it",
                value.get()
            );
            return Err(Broken { at: places.of(value).start, message });
        }
    }
    let Some(cells) = &document.cells else {
        let at = places.mark + places.text.find('{').unwrap_or(0);
        return Err(Broken { at, message: "it has no `cells`, so it is not a notebook".to_owned() });
    };
    let metadata = document.metadata.as_ref();
    let named = |value: Option<&RawValue>, key: &str| {
        let value: Value = serde_json::from_str(value?.get()).ok()?;
        Some(value.get(key)?.as_str()?.to_owned())
    };
    // The running kernel wrote the first one, whoever made the file the other.
    let language = metadata.and_then(|metadata| {
        let running = named(metadata.language_info, "name");
        running.or_else(|| named(metadata.kernelspec, "language"))
    });
    let mut found = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        if cell.cell_type.is_some_and(|kind| kind.get() == "\"code\"") && !has_own_language(cell) {
            found.extend(code(i + 1, cell, places)?);
        }
    }
    let databricks = metadata.is_some_and(|metadata| metadata.databricks.is_some());
    Ok(Document { language, databricks, cells: found })
}

/// Does VS Code keep another language for the cell?
fn has_own_language(cell: &RawCell) -> bool {
    let metadata = cell.metadata.and_then(|metadata| serde_json::from_str::<Value>(metadata.get()).ok());
    let language = metadata.as_ref().and_then(|metadata| {
        let code = metadata.get("vscode")?;
        code.get("languageId").or_else(|| code.get("language"))?.as_str()
    });
    language.is_some_and(|language| !is_python(language))
}

fn code(number: usize, cell: &RawCell, places: &Places) -> Result<Option<Code>, Broken> {
    let Some(source) = cell.source else { return Ok(None) };
    let place = places.of(source);
    let wrong = |at: usize| {
        let message = format!("the `source` of cell {number} is neither a string nor a list of strings");
        Broken { at, message }
    };
    let (literals, listed) = match source.get().as_bytes().first() {
        Some(b'"') => (vec![place.clone()], false),
        Some(b'[') => {
            let lines: Vec<&RawValue> = serde_json::from_str(source.get()).map_err(|_| wrong(place.start))?;
            if let Some(other) = lines.iter().find(|line| !line.get().starts_with('"')) {
                return Err(wrong(places.of(other).start));
            }
            (lines.into_iter().map(|line| places.of(line)).collect(), true)
        }
        _ => return Err(wrong(place.start)),
    };
    Ok(Some(Code { number, source: place, literals, listed }))
}

/// Is this the name of Python, as kernels and editors give it?
pub(super) fn is_python(language: &str) -> bool {
    let name = language.to_ascii_lowercase();
    name.starts_with("python") || name.starts_with("ipython")
}

/// What is wrong with the JSON. `mark`: the bytes before it in the file.
fn syntax(file: &str, mark: usize, error: &serde_json::Error) -> Broken {
    let text = &file[mark..];
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let line: usize = lines.map(str::len).sum();
    let at = (line + error.column().saturating_sub(1)).min(text.len());
    let words = error.to_string();
    let reason = words.split(" at line ").next().unwrap_or(&words);
    Broken {
        at: mark + text.floor_char_boundary(at),
        message: format!("it is not a valid JSON notebook: {reason}"),
    }
}

/// The text with a number of the same length in place of each `NaN` and `Infinity` outside of strings.
fn finite(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'N' | b'I' if !quoted => {
                for (word, number) in [("NaN", "0.0"), ("Infinity", "0.000000")] {
                    if text[at..].starts_with(word) {
                        plain.to_mut().replace_range(at..at + word.len(), number);
                    }
                }
            }
            _ => {}
        }
    }
    plain
}
