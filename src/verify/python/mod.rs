//! Which Python environment a program would run in, and where that imports modules from. Found by names of files and
//! variables of the environment; no interpreter is started.

mod find;
mod own;
mod sites;
mod tool;

use std::env;
use std::path::{Path, PathBuf};

use super::machine::Python;
use own::Own;
pub use sites::{is_edited_in_place, search_path};

/// The names that people give to the folder of a project's environment.
const FOLDERS: [&str; 3] = [".venv", "venv", "env"];

/// An environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Its folder.
    pub prefix: PathBuf,
    /// Its interpreter.
    pub interpreter: Option<PathBuf>,
    /// What named it.
    pub found_by: &'static str,
}

/// The environments that are named, the one that counts first.
///
/// # Errors
/// If `asked`, the value of `--python`, is neither an interpreter nor an environment.
pub fn environments(asked: Option<&Path>, cwd: &Path) -> Result<Vec<Environment>, String> {
    let own = Own::find();
    let mut found: Vec<Environment> = Vec::new();
    let mut add = |environment: Option<Environment>| {
        if let Some(environment) = environment
            && !own.is_made_for_it(&environment.prefix)
            && !found.iter().any(|known| same(&known.prefix, &environment.prefix))
        {
            found.push(environment);
        }
    };
    if let Some(asked) = asked {
        add(Some(find::asked(asked, cwd)?));
    }
    add(own.meant());
    add(variable("VIRTUAL_ENV"));
    for environment in of_project(cwd) {
        add(Some(environment));
    }
    add(variable("CONDA_PREFIX"));
    add(find::first_on_path(cwd, &own));
    Ok(found)
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(a) == real(b)
}

fn variable(name: &'static str) -> Option<Environment> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    of_prefix(Path::new(&value), name).map(own::below)
}

/// The environments in the nearest folder, from this one upwards, that has any: those with PyTorch first.
fn of_project(cwd: &Path) -> Vec<Environment> {
    for folder in cwd.ancestors() {
        let named = FOLDERS.iter().map(|name| (folder.join(name), *name));
        let named = named.filter(|(prefix, _)| prefix.join("pyvenv.cfg").is_file());
        let mut found: Vec<Environment> =
            named.filter_map(|(prefix, name)| of_prefix(&prefix, name)).collect();
        found.extend(of_pixi(folder));
        if !found.is_empty() {
            found.sort_by_key(|environment| !holds_torch(environment));
            return found;
        }
    }
    Vec::new()
}

/// pixi's environments in this folder, the one called `default` first.
fn of_pixi(folder: &Path) -> Vec<Environment> {
    let entries = std::fs::read_dir(folder.join(".pixi").join("envs")).into_iter().flatten().flatten();
    let mut prefixes: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    prefixes.sort_by_key(|prefix| (!prefix.ends_with("default"), prefix.clone()));
    prefixes.retain(|prefix| prefix.join("conda-meta").is_dir());
    prefixes.iter().filter_map(|prefix| of_prefix(prefix, ".pixi/envs")).collect()
}

fn holds_torch(environment: &Environment) -> bool {
    search_path(environment).iter().any(|site| site.join("torch").is_dir())
}

/// The environment in this folder.
fn of_prefix(prefix: &Path, found_by: &'static str) -> Option<Environment> {
    let interpreter = ["bin/python", "bin/python3", "python.exe", r"Scripts\python.exe"]
        .into_iter()
        .map(|name| prefix.join(name))
        .find(|file| file.is_file());
    let is_one = interpreter.is_some()
        || prefix.join("pyvenv.cfg").is_file()
        || prefix.join("conda-meta").is_dir()
        || !sites::own_sites(prefix, None).is_empty();
    is_one.then(|| Environment { prefix: prefix.to_owned(), interpreter, found_by })
}

/// What the document says of the environment.
pub fn describe(environments: &[Environment], cwd: &Path) -> Python {
    let Some(first) = environments.first() else { return Python::default() };
    let sites = search_path(first);
    let other = find::first_on_path(cwd, &Own::find()).filter(|other| !same(&other.prefix, &first.prefix));
    let text = |path: &Path| path.display().to_string();
    Python {
        prefix: Some(text(&first.prefix)),
        interpreter: first.interpreter.as_deref().map(text),
        found_by: Some(first.found_by.to_owned()),
        search_path: sites.iter().map(|path| text(path)).collect(),
        on_path: other.and_then(|other| other.interpreter).as_deref().map(text),
        version: sites::version(first).or_else(|| sites.iter().find_map(|site| sites::version_of_site(site))),
        installer: Some(tool::of(first, &sites, cwd).name().to_owned()),
    }
}
