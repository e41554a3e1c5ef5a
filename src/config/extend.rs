//! A configuration file and those that it extends → [`Layer`]s.

use std::path::{Path, PathBuf};

use super::ConfigError;
use super::file::{Layer, Written, parse};
use super::resolve::PYPROJECT;
use crate::rules::page::Page;
use crate::source::{display_name, read};

/// The layers of a `--config 'key = value'`, the least important first. Its globs and paths start at the absolute working
/// directory `cwd`.
///
/// # Errors
/// If it is wrong; the place is in what was written.
pub fn inline(text: &str, cwd: &Path, pages: &[Page]) -> Result<Vec<Layer>, ConfigError> {
    let name = "--config";
    let layer = parse(text, false, cwd, pages).map_err(|error| error.in_file(name, text))?;
    let from = Text { name, text, folder: cwd };
    Reader { cwd, pages }.with_bases(layer.unwrap_or_default(), from, &mut Vec::new())
}

/// Reads configurations.
pub(super) struct Reader<'a> {
    /// The absolute working directory: paths are shown from there.
    pub(super) cwd: &'a Path,
    pub(super) pages: &'a [Page],
}

/// A text that says something, for the places of mistakes.
#[derive(Clone, Copy)]
struct Text<'a> {
    /// As it is shown.
    name: &'a str,
    text: &'a str,
    /// The folder from which its paths count.
    folder: &'a Path,
}

impl Reader<'_> {
    /// The layers of a file, the least important first; its own is the last one. `None`: it is a `pyproject.toml` that says
    /// nothing to us. Its globs start at `root`, those of the files that it extends at their own folders.
    ///
    /// # Errors
    /// If one of the files cannot be read or is wrong, or they extend each other.
    pub(super) fn load(&self, path: &Path, root: &Path) -> Result<Option<Vec<Layer>>, ConfigError> {
        self.below(path, root, &mut Vec::new())
    }

    /// `open`: the files that are being read, whose way leads here.
    fn below(
        &self,
        path: &Path,
        root: &Path,
        open: &mut Vec<PathBuf>,
    ) -> Result<Option<Vec<Layer>>, ConfigError> {
        let text = read::text(path).map_err(|reason| ConfigError::unreadable(path, reason))?;
        let pyproject = path.file_name().is_some_and(|name| name == PYPROJECT);
        // Other tools' broken files are not ours to complain about.
        if pyproject && !text.contains("samedevice") {
            return Ok(None);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let name = display_name(path, self.cwd);
        let layer = parse(text, pyproject, root, self.pages).map_err(|error| error.in_file(&name, text))?;
        let Some(mut layer) = layer else { return Ok(None) };
        layer.file = Some(path.to_owned());
        open.push(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let folder = path.parent().unwrap_or(root);
        let layers = self.with_bases(layer, Text { name: &name, text, folder }, open)?;
        open.pop();
        Ok(Some(layers))
    }

    /// The layer above those of the file that it extends. Paths become absolute.
    fn with_bases(
        &self,
        mut layer: Layer,
        from: Text<'_>,
        open: &mut Vec<PathBuf>,
    ) -> Result<Vec<Layer>, ConfigError> {
        if let Some(baseline) = &mut layer.baseline {
            baseline.value = from.folder.join(&baseline.value);
        }
        let Some(Written { value, span }) = layer.extend.take() else { return Ok(vec![layer]) };
        let path = from.folder.join(&value);
        let shown = value.display();
        let mistake =
            |message: String| ConfigError::new(message).at(span.clone()).in_file(from.name, from.text);
        if !path.is_file() {
            return Err(mistake(format!("`extend`: the file `{shown}` does not exist"))
                .help(Some("the path is relative to the file that contains `extend`".to_owned())));
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if let Some(first) = open.iter().position(|file| *file == real) {
            let names: Vec<String> =
                open.iter().skip(first).chain([&real]).map(|file| display_name(file, self.cwd)).collect();
            return Err(mistake(format!("`extend` forms a cycle: {}", names.join(" → "))));
        }
        let root = real.parent().unwrap_or(from.folder);
        let Some(mut layers) = self.below(&real, root, open)? else {
            return Err(mistake(format!("`extend`: `{shown}` has no table `[tool.samedevice]`")));
        };
        layers.push(layer);
        Ok(layers)
    }
}
