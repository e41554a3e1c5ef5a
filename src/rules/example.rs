//! The programs that show what a rule finds and what it does not find: a few on its page, all others in `fixtures/rules/SDnnn`.
//!
//! On a page, every `py` block in the sections `Example`, `Fix` and `Not reported` is a whole program. In a file of `fixtures/rules`, every
//! `## ` heading names the program below it. The tests run the linter on all of them. The info string may contain more, as `key=value` or
//! `key="a value"`:
//!
//! - `file=helpers.py`: this block is a file of the project that the next block without `file=` completes; that one is `main.py`. Blocks in
//!   other languages, such as a configuration, belong to a project only with `file=`.
//! - `options="--select SD206"`: options for `samedevice check`, on any block of the project.
//! - `encoding=latin-1`, `encoding=utf-8-sig`: the file is written in Latin-1, or in UTF-8 with a byte order mark.
//!
//! A line with a finding ends in a comment, `# error: [SD101]`; several findings are `# error: [SD101, SD203]`.

use std::collections::BTreeSet;

use super::page::parse_code;
use crate::finding::Code;

/// A section of a page with programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// Programs with the bug. Comments mark the findings.
    Example,
    /// The same programs without the bug.
    Fix,
    /// Correct programs that look similar.
    NotReported,
}

impl Section {
    /// The section with this heading.
    pub fn titled(title: &str) -> Option<Self> {
        match title {
            "Example" => Some(Self::Example),
            "Fix" => Some(Self::Fix),
            "Not reported" => Some(Self::NotReported),
            _ => None,
        }
    }
}

/// The encoding of a file on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Encoding {
    Utf8,
    Utf8WithMark,
    Latin1,
}

/// A file of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The path in the project, with `/`.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The encoding of the file.
    pub encoding: Encoding,
}

impl File {
    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        match self.encoding {
            Encoding::Utf8 => self.text.clone().into_bytes(),
            Encoding::Utf8WithMark => format!("\u{feff}{}", self.text).into_bytes(),
            Encoding::Latin1 => self.text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect(),
        }
    }
}

/// A program: one file or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its heading.
    pub title: String,
    /// The line of its first fence, from 1, counted in the text that was read.
    pub line: usize,
    /// The files; the last one is `main.py`.
    pub files: Vec<File>,
    /// Options for `samedevice check`.
    pub options: Vec<String>,
}

impl Program {
    /// Do the comments expect no finding?
    pub fn is_silent(&self) -> bool {
        self.files.iter().all(|file| expectations(&file.text).is_empty())
    }
}

/// The programs of a page, from its body. The error is a message for the author of the page.
pub fn programs(body: &str) -> Result<Vec<Program>, String> {
    let programs = read(body)?;
    match programs.iter().find(|program| Section::titled(&program.title).is_none()) {
        Some(Program { line, .. }) => {
            Err(format!("line {line}: a program belongs to Example, Fix or Not reported"))
        }
        None => Ok(programs),
    }
}

/// The programs of a file in `fixtures/rules`, each with a unique name. The error is a message for the author of the file.
pub fn cases(text: &str) -> Result<Vec<Program>, String> {
    let programs = read(text)?;
    let mut names = BTreeSet::new();
    for Program { title, line, .. } in &programs {
        if title.is_empty() {
            return Err(format!("line {line}: a program without a name"));
        }
        if !names.insert(title) {
            return Err(format!("line {line}: `{title}` is the name of two programs"));
        }
    }
    let headings = text.lines().filter(|line| line.starts_with("## ")).count();
    if headings > names.len() {
        return Err("a name without a program".to_owned());
    }
    Ok(programs)
}

/// All programs below second-level headings.
fn read(text: &str) -> Result<Vec<Program>, String> {
    let mut programs = Vec::new();
    let mut pending: Option<Program> = None;
    let mut title = String::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            if let Some(program) = &pending {
                return Err(format!("line {}: a project without a main.py", program.line));
            }
            heading.clone_into(&mut title);
            continue;
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let text = block(&mut lines).ok_or_else(|| format!("line {number}: the block does not end"))?;
        let info = Info::parse(info).map_err(|e| format!("line {number}: {e}"))?;
        if !info.is_program() {
            continue;
        }
        let program = pending.get_or_insert_with(|| Program {
            title: title.clone(),
            line: number,
            files: Vec::new(),
            options: Vec::new(),
        });
        program.options.extend(info.options.split_whitespace().map(str::to_owned));
        let name = info.file.clone().unwrap_or_else(|| "main.py".to_owned());
        if program.files.iter().any(|f| f.name == name) {
            return Err(format!("line {number}: {name} is there twice"));
        }
        program.files.push(File { name, text, encoding: info.encoding });
        if info.file.is_none() {
            programs.extend(pending.take());
        }
    }
    match pending {
        Some(program) => Err(format!("line {}: a project without a main.py", program.line)),
        None => Ok(programs),
    }
}

/// The lines up to the closing fence of a block; `None` if there is none.
fn block<'a>(lines: &mut impl Iterator<Item = (&'a str, usize)>) -> Option<String> {
    let mut text = String::new();
    loop {
        let (line, _) = lines.next()?;
        if line == "```" {
            return Some(text);
        }
        text.push_str(line);
        text.push('\n');
    }
}

/// The info string after the three backticks.
struct Info {
    language: String,
    file: Option<String>,
    options: String,
    encoding: Encoding,
}

impl Info {
    fn parse(text: &str) -> Result<Self, String> {
        let (language, mut rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut info = Self {
            language: language.to_owned(),
            file: None,
            options: String::new(),
            encoding: Encoding::Utf8,
        };
        while !rest.trim_start().is_empty() {
            let (key, value) =
                rest.trim_start().split_once('=').ok_or_else(|| format!("`{rest}` is no `key=value`"))?;
            let (value, after) = match value.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or("a quotation mark is missing")?,
                None => value.split_once(' ').unwrap_or((value, "")),
            };
            match (key, value) {
                ("file", name) => info.file = Some(name.to_owned()),
                ("options", options) => options.clone_into(&mut info.options),
                ("encoding", "utf-8-sig") => info.encoding = Encoding::Utf8WithMark,
                ("encoding", "latin-1") => info.encoding = Encoding::Latin1,
                _ => return Err(format!("unknown attribute `{key}={value}`")),
            }
            rest = after;
        }
        Ok(info)
    }

    fn is_program(&self) -> bool {
        matches!(self.language.as_str(), "py" | "python") || self.file.is_some()
    }
}

/// The findings that a program's comments expect: rows from 1 and codes, in the order of the text.
pub fn expectations(text: &str) -> Vec<(usize, Code)> {
    let mut expected = Vec::new();
    for (line, row) in text.lines().zip(1..) {
        let Some((_, comment)) = line.rsplit_once("# error: [") else { continue };
        let Some(codes) = comment.trim_end().strip_suffix(']') else { continue };
        expected.extend(codes.split(',').filter_map(|c| parse_code(c.trim())).map(|code| (row, code)));
    }
    expected
}

/// The texts that a program's `reveal_device(…)` and `reveal_world()` calls are expected to show, with rows from 1.
pub fn revelations(text: &str) -> Vec<(usize, &str)> {
    text.lines()
        .zip(1..)
        .filter_map(|(line, row)| Some((row, line.rsplit_once("# revealed: ")?.1.trim_end())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Encoding, cases, expectations, programs, revelations};
    use crate::finding::Code;

    const BODY: &str = r#"Summary.

## Why

```text
RuntimeError: no
```

## Example

```py
import torch
```

Two files:

```py file=pkg/helpers.py options="--select SD206"
a = 1
```
```toml file=samedevice.toml
select = []
```
```py encoding=latin-1
é = 1
```

## Configuration
"#;

    #[test]
    fn blocks_become_programs() -> Result<(), String> {
        let programs = programs(BODY)?;
        assert_eq!(programs.len(), 2);
        assert_eq!(programs[0].title, "Example");
        assert_eq!((programs[0].line, programs[0].files[0].text.as_str()), (11, "import torch\n"));
        let project = &programs[1];
        let names: Vec<_> = project.files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["pkg/helpers.py", "samedevice.toml", "main.py"]);
        assert_eq!(project.options, ["--select", "SD206"]);
        assert_eq!(project.files[2].encoding, Encoding::Latin1);
        assert_eq!(project.files[2].bytes(), b"\xe9 = 1\n");
        Ok(())
    }

    #[test]
    fn malformed_blocks_are_refused() {
        let error = |body: &str| programs(body).err().unwrap_or_default();
        assert_eq!(error("## Fix\n```py\n"), "line 2: the block does not end");
        assert_eq!(error("## Fix\n```py file=a.py\n```\n## Why"), "line 2: a project without a main.py");
        assert_eq!(error("## Fix\n```py fil=a.py\n```\n"), "line 2: unknown attribute `fil=a.py`");
        let elsewhere = "line 2: a program belongs to Example, Fix or Not reported";
        assert_eq!(error("## Why\n```py\n```\n"), elsewhere);
    }

    #[test]
    fn cases_have_names_of_their_own() {
        let error = |text: &str| cases(text).err().unwrap_or_default();
        let named = cases("# Loops\n\n## One\n```py\n```\n\n## Two\n```py\n```\n").unwrap_or_default();
        assert_eq!(named.iter().map(|p| p.title.as_str()).collect::<Vec<_>>(), ["One", "Two"]);
        assert_eq!(error("# Loops\n```py\n```\n"), "line 2: a program without a name");
        assert_eq!(
            error("## One\n```py\n```\n## One\n```py\n```\n"),
            "line 5: `One` is the name of two programs"
        );
        assert_eq!(error("## One\n## Two\n```py\n```\n"), "a name without a program");
    }

    #[test]
    fn comments_announce_findings() {
        let text = "x.cuda()  # error: [SD101]\ny = 1\nz.to(d)  # error: [SD203, SD101]  \n# error: none\n";
        assert_eq!(expectations(text), [(1, Code(101)), (3, Code(203)), (3, Code(101))]);
        assert_eq!(
            revelations("reveal_device(x)  # revealed: cuda if cuda, else cpu\n"),
            [(1, "cuda if cuda, else cpu")]
        );
    }
}
