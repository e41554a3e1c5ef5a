//! Files that Git and similar tools ignore: `.ignore`, `.gitignore`, `.git/info/exclude`, `core.excludesFile`.
//!
//! The precedence is the same as in ripgrep and Ruff: `.ignore`, then `.gitignore`, then `.git/info/exclude`, then the user's global file.
//! Of several files of one kind, the nearest decides. A `.gitignore` also counts outside a repository, but never beyond the root of a
//! repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustc_hash::FxHashMap;

use crate::source::read::text;

/// The rules in one folder. `parent` has the rules of the folders above.
#[derive(Debug)]
pub struct Folder {
    parent: Option<Arc<Folder>>,
    /// Whether this is the root of a repository.
    repository: bool,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
}

/// A cache of the rules of folders. It reads each file once.
#[derive(Debug)]
pub struct Rules {
    global: Gitignore,
    folders: FxHashMap<PathBuf, Arc<Folder>>,
}

impl Rules {
    /// `cwd` is the absolute working directory.
    pub fn new(cwd: &Path) -> Self {
        // The patterns of the global file are relative to each repository. Patterns without a leading slash match anywhere. Patterns with
        // one are rare, so they are relative to the working directory, as in ripgrep.
        let (global, _) = GitignoreBuilder::new(cwd).build_global();
        Self { global, folders: FxHashMap::default() }
    }

    /// The rules for the contents of this absolute folder.
    pub fn folder(&mut self, path: &Path) -> Arc<Folder> {
        if let Some(folder) = self.folders.get(path) {
            return Arc::clone(folder);
        }
        let parent = path.parent().map(|parent| self.folder(parent));
        let git = path.join(".git");
        let repository = git.exists();
        let folder = Arc::new(Folder {
            parent,
            repository,
            ignore: read(path, &path.join(".ignore")),
            gitignore: read(path, &path.join(".gitignore")),
            exclude: if repository { read(path, &exclude_file(&git)) } else { Gitignore::empty() },
        });
        self.folders.insert(path.to_owned(), Arc::clone(&folder));
        folder
    }

    /// Is this absolute path, directly in `folder`, ignored?
    pub fn ignores(&self, folder: &Folder, path: &Path, is_dir: bool) -> bool {
        let ask = |known: Option<bool>, list: &Gitignore| {
            known.or_else(|| match list.matched(path, is_dir) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            })
        };
        let (mut ignore, mut gitignore, mut exclude) = (None, None, None);
        let mut in_repository = true;
        for folder in std::iter::successors(Some(folder), |folder| folder.parent.as_deref()) {
            ignore = ask(ignore, &folder.ignore);
            if in_repository {
                gitignore = ask(gitignore, &folder.gitignore);
                exclude = ask(exclude, &folder.exclude);
            }
            in_repository &= !folder.repository;
        }
        ask(ignore.or(gitignore).or(exclude), &self.global).unwrap_or(false)
    }
}

/// The path of a repository's own `info/exclude`, from its `.git`. In a worktree, `.git` is a file (`gitdir: …/.git/worktrees/name`), and
/// the file `commondir` in that folder leads to the repository.
fn exclude_file(git: &Path) -> PathBuf {
    let common = || {
        let pointer = text(git).ok()?;
        let own = git.parent()?.join(pointer.strip_prefix("gitdir:")?.trim());
        let common = text(&own.join("commondir")).ok()?;
        Some(own.join(common.trim()))
    };
    common().unwrap_or_else(|| git.to_owned()).join("info/exclude")
}

/// The patterns of a file, relative to `root`. Skips invalid lines, like Git.
fn read(root: &Path, file: &Path) -> Gitignore {
    if !file.is_file() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(root);
    builder.add(file);
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
