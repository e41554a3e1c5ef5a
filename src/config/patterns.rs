//! Globs of the configuration, as Ruff has them: one without a slash matches a file or folder of that name
//! anywhere, one with a slash is a path from the configuration's folder; `*` crosses slashes.

use std::path::{MAIN_SEPARATOR, Path};

use globset::{Glob, GlobSet, GlobSetBuilder};

/// A list of globs.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    paths: GlobSet,
    names: GlobSet,
    texts: Vec<String>,
}

/// A glob that is none.
#[derive(Debug)]
pub struct BadPattern {
    /// Its index in the list.
    pub index: usize,
    /// Why.
    pub reason: String,
}

impl Patterns {
    /// Compiles globs; relative ones start at the absolute path `root`.
    ///
    /// # Errors
    /// [`BadPattern`] for the first that is malformed.
    pub fn new<S: AsRef<str>>(root: &Path, texts: &[S]) -> Result<Self, BadPattern> {
        let (mut paths, mut names) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        // The folder's own name may hold brackets or stars.
        let root = globset::escape(&root.to_string_lossy().replace(MAIN_SEPARATOR, "/"));
        for (index, text) in texts.iter().enumerate() {
            let bad = |error: globset::Error| BadPattern { index, reason: error.kind().to_string() };
            let text = text.as_ref();
            let text = text.strip_prefix("./").unwrap_or(text);
            if !text.contains('/') {
                names.add(Glob::new(text).map_err(bad)?);
                continue;
            }
            let text = text.strip_suffix('/').unwrap_or(text);
            let absolute = if Path::new(text).is_absolute() {
                text.to_owned()
            } else {
                format!("{}/{text}", root.trim_end_matches('/'))
            };
            paths.add(Glob::new(&absolute).map_err(bad)?);
        }
        let bad = |error: globset::Error| BadPattern { index: 0, reason: error.to_string() };
        Ok(Self {
            paths: paths.build().map_err(bad)?,
            names: names.build().map_err(bad)?,
            texts: texts.iter().map(|text| text.as_ref().to_owned()).collect(),
        })
    }

    /// Does a glob match this absolute path? Its parents do not matter.
    pub fn matches(&self, path: &Path) -> bool {
        self.paths.is_match(path) || path.file_name().is_some_and(|name| self.names.is_match(name))
    }

    /// The globs as they were written.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Patterns;

    fn matches(glob: &str, path: &str) -> bool {
        Patterns::new(Path::new("/a [b]/c"), &[glob]).is_ok_and(|p| p.matches(Path::new(path)))
    }

    #[test]
    fn names_match_anywhere_and_paths_from_the_root() {
        assert!(matches("*_pb2.py", "/a [b]/c/d/x_pb2.py"));
        assert!(matches("build", "/a [b]/c/d/build"));
        assert!(!matches("build", "/a [b]/c/d/builder"));
        assert!(matches("d/*.py", "/a [b]/c/d/e/x.py"));
        assert!(matches("./d/", "/a [b]/c/d"));
        assert!(matches("**/d/x.py", "/a [b]/c/e/d/x.py"));
        assert!(!matches("d/x.py", "/a [b]/c/e/d/x.py"));
        assert!(matches("/e/*.py", "/e/x.py"));
    }

    #[test]
    fn a_malformed_glob_is_named() {
        let error = Patterns::new(Path::new("/"), &["ok", "a/[b"]).expect_err("unclosed");
        assert_eq!(error.index, 1);
    }
}
