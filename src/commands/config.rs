//! `samedevice config`: the keys of the configuration.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anstyle::Style;
use serde_json::{Value, json};

use super::{Failure, terminal};
use crate::cli::{Color, KeyArgs, PageFormat};
use crate::config::file::unknown_key;
use crate::config::keys::{Default, KEYS, Key, find};

/// Prints one key, or the list of all.
///
/// # Errors
/// If there is no such key, or nothing can be written.
pub fn run(args: &KeyArgs, color: Color) -> Result<ExitCode, Failure> {
    let key = args.key.as_deref().map(|name| find(name).ok_or_else(|| unknown_key(name))).transpose()?;
    let stdout = io::stdout();
    let bold = if terminal::color(color, &stdout) { Style::new().bold() } else { Style::new() };
    let mut out = BufWriter::new(stdout.lock());
    match (args.output_format, key) {
        (PageFormat::Json, Some(key)) => json(&as_json(key), &mut out)?,
        (PageFormat::Json, None) => json(&KEYS.iter().map(as_json).collect(), &mut out)?,
        (PageFormat::Text, Some(key)) => page(key, bold, &mut out)?,
        (PageFormat::Text, None) => list(bold, &mut out)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn json(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// A key with a row of its own for each thing there is to say.
fn page(key: &Key, bold: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{bold}{}{bold:#}: {}", key.name, key.help)?;
    writeln!(out)?;
    writeln!(out, "Type:     {}", key.kind.in_words())?;
    writeln!(out, "Default:  {}", default(key))?;
    writeln!(out, "Example:  {}", key.example)
}

fn list(bold: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = KEYS.iter().map(|key| key.name.len()).max().unwrap_or(0);
    for key in &KEYS {
        let name = key.name;
        writeln!(out, "{bold}{name:<width$}{bold:#}  {}", key.help)?;
    }
    writeln!(out, "\nRun `samedevice config KEY` for details of a key.")
}

/// What counts where no file has the key, as it would be written there, or in words.
fn default(key: &Key) -> String {
    match key.default {
        Default::Toml(text) | Default::Words(text) => text.to_owned(),
        Default::List(names) => {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            format!("[{}]", quoted.join(", "))
        }
    }
}

fn as_json(key: &Key) -> Value {
    json!({
        "name": key.name,
        "help": key.help,
        "type": key.kind.in_words(),
        "default": default(key),
        "example": key.example,
    })
}
