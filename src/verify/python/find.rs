//! Interpreters by name and by file, and through pyenv's scripts.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::own::{self, Own};
use super::{Environment, of_prefix};
use crate::source::read;

/// What `--python` names: a folder, a file, the name of an interpreter on `PATH`, or a version of Python.
///
/// # Errors
/// In words, if it names none.
pub fn asked(asked: &Path, cwd: &Path) -> Result<Environment, String> {
    let (by, shown) = ("--python", asked.display());
    let path = cwd.join(asked);
    if path.is_dir() {
        let project =
            || format!("`--python {shown}` is a folder but not a Python environment{}", hint(&path));
        return of_prefix(&path, by).ok_or_else(project);
    }
    if path.is_file() {
        if !is_interpreter(&path) {
            return Err(format!(
                "`--python {shown}` is a file but not a Python interpreter (`python…` or `pypy…`)"
            ));
        }
        return of_interpreter(&path, by, cwd)
            .ok_or_else(|| format!("`--python {shown}` belongs to no Python environment"));
    }
    let name = asked.to_str().filter(|name| !name.contains(['/', '\\']) && !name.is_empty());
    let Some(name) = name else {
        return Err(format!("`--python {shown}` does not exist"));
    };
    let version = name.starts_with(|c: char| c.is_ascii_digit());
    let name = if version { format!("python{name}") } else { name.to_owned() };
    if is_interpreter(Path::new(&name)) {
        let file = format!(
            "{name}{}",
            if name.ends_with(env::consts::EXE_SUFFIX) { "" } else { env::consts::EXE_SUFFIX }
        );
        let found = on_path(&[&file], None).find_map(|file| of_interpreter(&file, by, cwd));
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(if is_interpreter(Path::new(&name)) {
        format!("`--python {shown}` does not exist, and no `{name}` is on `PATH`")
    } else {
        format!("`--python {shown}` is neither a Python interpreter nor a Python environment")
    })
}

/// Where an environment is that may have been meant.
fn hint(folder: &Path) -> String {
    let inside = super::FOLDERS.iter().find(|name| of_prefix(&folder.join(name), "").is_some());
    inside.map(|name| format!("; there is one in `{}`", folder.join(name).display())).unwrap_or_default()
}

/// Is it called like an interpreter?
fn is_interpreter(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let stem = name.strip_suffix(".exe").unwrap_or(&name);
    let rest = stem.strip_prefix("python").or_else(|| stem.strip_prefix("pypy"));
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || ".tdw-".contains(c)))
}

/// `python3` or `python`, whichever the shell would find first; not the one that came with this program.
pub fn first_on_path(cwd: &Path, own: &Own) -> Option<Environment> {
    let names: &[&str] = if cfg!(windows) { &["python.exe", "python3.exe"] } else { &["python3", "python"] };
    let mut found =
        on_path(names, None).filter_map(|file| of_interpreter(&file, "PATH", cwd)).map(own::below);
    found.find(|environment| !own.is_made_for_it(&environment.prefix))
}

/// The files of these names in the folders of `PATH`, in their order, without those in the folder `except`.
fn on_path<'a>(names: &'a [&str], except: Option<&'a Path>) -> impl Iterator<Item = PathBuf> + 'a {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        env::split_paths(&path).filter(|folder| Some(folder.as_path()) != except).collect();
    let files = folders.into_iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    files.filter(|file| file.is_file() && !is_placeholder(file))
}

/// Windows has files on `PATH` that only open its shop.
fn is_placeholder(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "WindowsApps")
        && fs::metadata(file).is_ok_and(|data| data.len() == 0)
}

/// The environment that this interpreter belongs to.
pub fn of_interpreter(file: &Path, found_by: &'static str, cwd: &Path) -> Option<Environment> {
    if !file.is_file() {
        return None;
    }
    if let Some(shims) = shims(file) {
        return behind_pyenv(file, shims, found_by, cwd);
    }
    let prefix_of = |file: &Path| {
        let folder = file.parent()?;
        let in_bin = folder.file_name().is_some_and(|name| name == "bin" || name == "Scripts");
        Some(if in_bin { folder.parent()?.to_owned() } else { folder.to_owned() })
    };
    let prefix = prefix_of(file)?;
    // In a virtual environment the interpreter is a link to the one that it was made with.
    let prefix = if prefix.join("pyvenv.cfg").is_file() || prefix.join("conda-meta").is_dir() {
        prefix
    } else {
        prefix_of(&file.canonicalize().ok()?)?
    };
    Some(Environment { prefix, interpreter: Some(file.to_owned()), found_by })
}

/// The folder of pyenv's scripts, if the file is one of them.
fn shims(file: &Path) -> Option<&Path> {
    file.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "shims"))
}

/// pyenv puts scripts on `PATH` that choose an interpreter by a variable or a file: the first of the versions named there that is
/// installed. `3.11` is the newest 3.11, `system` what is on `PATH` without the scripts.
fn behind_pyenv(file: &Path, shims: &Path, found_by: &'static str, cwd: &Path) -> Option<Environment> {
    let root = shims.parent()?;
    let names = |text: String| -> Vec<String> {
        let words =
            text.split([':', '\n']).map(str::trim).filter(|word| !word.is_empty() && !word.starts_with('#'));
        words.map(str::to_owned).collect()
    };
    let written = || {
        let files =
            cwd.ancestors().map(|folder| folder.join(".python-version")).chain([root.join("version")]);
        files.filter_map(|file| read::text(&file).ok()).map(names).find(|names| !names.is_empty())
    };
    let variable = env::var("PYENV_VERSION").ok().map(names).filter(|names| !names.is_empty());
    let chosen = variable.or_else(written).unwrap_or_else(|| vec!["system".to_owned()]);
    let name = file.file_name()?.to_str()?;
    chosen.iter().find_map(|version| match version.as_str() {
        "system" => on_path(&[name], Some(shims)).find_map(|file| of_interpreter(&file, found_by, cwd)),
        version => of_prefix(&installed(root, version)?, found_by),
    })
}

/// The folder of the version of this name: `3.11.7`, an environment, or the newest of `3.11`.
fn installed(root: &Path, version: &str) -> Option<PathBuf> {
    let versions = root.join("versions");
    let exact = versions.join(version);
    if exact.is_dir() {
        return Some(exact);
    }
    let begin = format!("{}.", version.strip_prefix("python-").unwrap_or(version));
    let number = |name: &str| -> Option<Vec<u32>> { name.split('.').map(|part| part.parse().ok()).collect() };
    let names =
        fs::read_dir(&versions).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let newest = names
        .filter(|name| name.starts_with(&begin))
        .filter_map(|name| Some((number(&name)?, name)))
        .max()?;
    Some(versions.join(newest.1))
}
