//! `samedevice rule`: a page, or the table of all rules, for people and for machines.

use std::io::{self, Write};

use serde::Serialize;

use super::page::Page;
use super::registry;

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// People at a terminal.
    Text,
    /// Machines: an object for one rule, an array for all.
    Json,
}

/// The appearance of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// May escape sequences be written?
    pub color: bool,
    /// Columns to fill.
    pub width: usize,
}

/// Writes the page of the rule with this code or name, or the table of all rules when there is no selector.
/// `false`: no rule has that code or name, and nothing was written.
pub fn render(selector: Option<&str>, format: Format, look: Look, out: &mut dyn Write) -> io::Result<bool> {
    let page = match selector {
        None => None,
        Some(selector) => match registry::find(selector) {
            None => return Ok(false),
            page => page,
        },
    };
    match (page, format) {
        (Some(page), Format::Text) => write_page(page, look, out)?,
        (None, Format::Text) => write_table(registry::registry(), look, out)?,
        (Some(page), Format::Json) => write_json(&Json::from(page), out)?,
        (None, Format::Json) => {
            write_json(&registry::registry().iter().map(Json::from).collect::<Vec<_>>(), out)?;
        }
    }
    Ok(true)
}

#[derive(Serialize)]
struct Json {
    code: String,
    name: &'static str,
    world: &'static str,
    severity: &'static str,
    /// The severity of findings that are not certain.
    likely: &'static str,
    default: bool,
    fix: &'static str,
    since: &'static str,
    summary: &'static str,
    explanation: &'static str,
}

impl From<&Page> for Json {
    fn from(page: &Page) -> Self {
        Self {
            code: page.code.to_string(),
            name: page.name,
            world: page.world,
            severity: page.severity.name(),
            likely: page.likely.name(),
            default: page.default_on,
            fix: page.fix.name(),
            since: page.since,
            summary: page.summary,
            explanation: page.explanation(),
        }
    }
}

fn write_json<T: Serialize>(value: &T, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

impl Look {
    fn bold(self, text: &str) -> String {
        if self.color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn dim(self, text: &str) -> String {
        if self.color { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn write_table(pages: &[Page], look: Look, out: &mut dyn Write) -> io::Result<()> {
    let name_width = pages.iter().map(|p| p.name.len()).max().unwrap_or(0);
    let world_width = pages.iter().map(|p| p.world.len()).max().unwrap_or(0);
    for page in pages {
        let mark = if page.default_on { "  " } else { "○ " };
        let columns = format!("{:name_width$}  {:world_width$}  ", page.name, page.world);
        let room = look.width.saturating_sub("SD000  ○ ".len() + columns.len()).max(24);
        writeln!(
            out,
            "{}  {mark}{columns}{}",
            look.bold(&page.code.to_string()),
            look.dim(&cut(page.summary, room))
        )?;
    }
    if pages.iter().any(|p| !p.default_on) {
        writeln!(out, "\n○ off unless selected")?;
    }
    Ok(())
}

fn write_page(page: &Page, look: Look, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", look.bold(&format!("{} {}", page.code, page.name)))?;
    let likely = match page.likely {
        same if same == page.severity => String::new(),
        likely => format!(" ({} unless the finding is certain)", likely.name()),
    };
    let facts = format!(
        "{}{likely} · world: {} · {} · fix: {} · since {}",
        page.severity.name(),
        page.world,
        if page.default_on { "on by default" } else { "off unless selected" },
        page.fix.name(),
        page.since,
    );
    writeln!(out, "{}\n", look.dim(&facts))?;
    for block in blocks(page.body) {
        match block {
            Block::Heading(title) => writeln!(out, "\n{}\n", look.bold(title))?,
            Block::Code("") => writeln!(out)?,
            Block::Code(line) => writeln!(out, "    {line}")?,
            Block::Text { indent, text } => {
                let text = without_links(&text);
                for (i, line) in wrap(&text, look.width.saturating_sub(indent)).into_iter().enumerate() {
                    // A list item's own marker is part of its text; the lines below it are indented.
                    let indent = if i == 0 { 0 } else { indent };
                    writeln!(out, "{:indent$}{line}", "")?;
                }
            }
            Block::Gap => writeln!(out)?,
        }
    }
    Ok(())
}

/// A piece of a page, as a terminal shows it.
#[derive(PartialEq, Eq, Debug)]
enum Block<'a> {
    Heading(&'a str),
    /// A line of a code block.
    Code(&'a str),
    /// A paragraph or a list item, without its line breaks.
    Text {
        indent: usize,
        text: String,
    },
    /// An empty line between two other pieces.
    Gap,
}

/// Replaces `[SD201](SD201-….md)` by `SD201`, because a terminal cannot open the page. Links to other sites stay.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(shown, target)| Some((shown, target.split_once(')')?)));
        let Some((shown, (_, behind))) =
            link.filter(|(shown, (target, _))| !shown.contains(['[', ']']) && !target.contains("://"))
        else {
            plain.push_str(before);
            plain.push('[');
            rest = after;
            continue;
        };
        plain.push_str(before);
        plain.push_str(shown);
        rest = behind;
    }
    plain + rest
}

fn blocks(markdown: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut in_code = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            blocks.push(Block::Code(line));
        } else if let Some(title) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        {
            blocks.pop_if(|b| *b == Block::Gap);
            blocks.push(Block::Heading(title));
        } else if line.trim().is_empty() {
            if !matches!(blocks.last(), Some(Block::Gap | Block::Heading(_))) {
                blocks.push(Block::Gap);
            }
        } else {
            let item = line.starts_with("- ");
            match blocks.last_mut() {
                Some(Block::Text { text, .. }) if !item => {
                    text.push(' ');
                    text.push_str(line.trim());
                }
                _ => blocks
                    .push(Block::Text { indent: if item { 2 } else { 0 }, text: line.trim().to_owned() }),
            }
        }
    }
    blocks
}

/// Breaks a text into lines of at most `width` characters, except where a word is longer.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The text, cut to `room` characters with an ellipsis.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let head: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{Block, Format, Look, blocks, cut, render, wrap};
    use crate::rules::registry::registry;

    const PLAIN: Look = Look { color: false, width: 80 };

    fn rendered(selector: Option<&str>, format: Format, look: Look) -> std::io::Result<(bool, String)> {
        let mut out = Vec::new();
        let found = render(selector, format, look, &mut out)?;
        Ok((found, String::from_utf8_lossy(&out).into_owned()))
    }

    #[test]
    fn the_table_has_a_line_for_every_rule() -> std::io::Result<()> {
        let (_, text) = rendered(None, Format::Text, PLAIN)?;
        for page in registry() {
            assert_eq!(text.lines().filter(|l| l.starts_with(&page.code.to_string())).count(), 1);
        }
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        Ok(())
    }

    #[test]
    fn a_page_is_found_by_code_or_name_and_unknown_ones_write_nothing() -> std::io::Result<()> {
        for page in registry() {
            let (found, by_code) = rendered(Some(&page.code.to_string()), Format::Text, PLAIN)?;
            let (_, by_name) = rendered(Some(page.name), Format::Text, PLAIN)?;
            assert!(found && by_code == by_name && !by_code.contains("```") && !by_code.contains('\x1b'));
            let (_, colored) = rendered(Some(page.name), Format::Text, Look { color: true, ..PLAIN })?;
            assert!(colored.contains("\x1b[1mWhy\x1b[0m"));
        }
        assert_eq!(rendered(Some("SD999"), Format::Text, PLAIN)?, (false, String::new()));
        Ok(())
    }

    #[test]
    fn json_is_an_object_for_one_and_an_array_for_all() -> std::io::Result<()> {
        let all: serde_json::Value = serde_json::from_str(&rendered(None, Format::Json, PLAIN)?.1)?;
        assert_eq!(all.as_array().map(Vec::len), Some(registry().len()));
        for page in registry() {
            let one: serde_json::Value =
                serde_json::from_str(&rendered(Some(page.name), Format::Json, PLAIN)?.1)?;
            assert_eq!(one["code"], page.code.to_string());
            assert_eq!(one["default"], page.default_on);
            assert_eq!(one["summary"], page.summary);
        }
        Ok(())
    }

    #[test]
    fn markdown_becomes_blocks() {
        let text = |indent, text: &str| Block::Text { indent, text: text.to_owned() };
        assert_eq!(
            blocks("One\ntwo.\n\n## Why\n\n- a\n  b\n- c\n\n```py\nx = 1\n\n```\n"),
            [
                text(0, "One two."),
                Block::Heading("Why"),
                text(2, "- a b"),
                text(2, "- c"),
                Block::Gap,
                Block::Code("x = 1"),
                Block::Code(""),
            ]
        );
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc…".to_owned(), "abcd".to_owned()));
    }
}
