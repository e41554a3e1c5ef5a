//! Which Python environment a program would run in, and where that imports modules from. Found by names of files and
//! variables of the environment; no interpreter is started.

mod tool;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::machine::Python;
use crate::source::read;

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
    let mut found: Vec<Environment> = Vec::new();
    let mut add = |environment: Option<Environment>| {
        if let Some(environment) = environment
            && !found.iter().any(|known| same(&known.prefix, &environment.prefix))
        {
            found.push(environment);
        }
    };
    if let Some(asked) = asked {
        let environment = if asked.is_dir() {
            of_prefix(&cwd.join(asked), "--python")
        } else {
            of_interpreter(&cwd.join(asked), "--python", cwd)
        };
        match environment {
            Some(environment) => add(Some(environment)),
            None => {
                let asked = asked.display();
                return Err(format!("`--python {asked}` is neither an interpreter nor a Python environment"));
            }
        }
    }
    add(variable("VIRTUAL_ENV"));
    for folder in cwd.ancestors() {
        let venv = folder.join(".venv");
        if venv.join("pyvenv.cfg").is_file() {
            add(of_prefix(&venv, ".venv"));
            break;
        }
    }
    add(variable("CONDA_PREFIX"));
    add(on_path(cwd));
    Ok(found)
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(a) == real(b)
}

fn variable(name: &'static str) -> Option<Environment> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    of_prefix(Path::new(&value), name)
}

/// `python3` or `python`, whichever the shell would find first.
pub fn on_path(cwd: &Path) -> Option<Environment> {
    let path = env::var_os("PATH")?;
    let names: &[&str] = if cfg!(windows) { &["python.exe", "python3.exe"] } else { &["python3", "python"] };
    let mut candidates = env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .filter(|file| file.is_file());
    candidates.find_map(|file| of_interpreter(&file, "PATH", cwd))
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
        || !own_sites(prefix, None).is_empty();
    is_one.then(|| Environment { prefix: prefix.to_owned(), interpreter, found_by })
}

/// The environment that this interpreter belongs to.
fn of_interpreter(file: &Path, found_by: &'static str, cwd: &Path) -> Option<Environment> {
    if !file.is_file() {
        return None;
    }
    if let Some(prefix) = behind_pyenv(file, cwd) {
        let environment = of_prefix(&prefix, found_by)?;
        return Some(environment);
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

/// pyenv puts scripts on `PATH` that choose an interpreter by a variable or a file.
fn behind_pyenv(file: &Path, cwd: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    let root = folder.file_name().filter(|name| *name == "shims").and(folder.parent())?;
    let chosen =
        |text: String| text.split([':', '\n']).map(str::trim).find(|v| !v.is_empty()).map(str::to_owned);
    let version = env::var("PYENV_VERSION").ok().and_then(chosen).or_else(|| {
        let files =
            cwd.ancestors().map(|folder| folder.join(".python-version")).chain([root.join("version")]);
        files.filter_map(|file| read::text(&file).ok()).find_map(chosen)
    })?;
    Some(root.join("versions").join(version)).filter(|prefix| prefix.is_dir())
}

/// What the document says of the environment.
pub fn describe(environments: &[Environment], cwd: &Path) -> Python {
    let Some(first) = environments.first() else { return Python::default() };
    let sites = search_path(first);
    let other = on_path(cwd).filter(|other| !same(&other.prefix, &first.prefix));
    let text = |path: &Path| path.display().to_string();
    Python {
        prefix: Some(text(&first.prefix)),
        interpreter: first.interpreter.as_deref().map(text),
        found_by: Some(first.found_by.to_owned()),
        search_path: sites.iter().map(|path| text(path)).collect(),
        on_path: other.and_then(|other| other.interpreter).as_deref().map(text),
        version: version(first).or_else(|| sites.iter().find_map(|site| version_of_site(site))),
        installer: Some(tool::of(first, &sites, cwd).name().to_owned()),
    }
}

/// Where modules are imported from, in order, without the standard library: `site.main` in Python's `site.py`.
pub fn search_path(environment: &Environment) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    if let Some(paths) = env::var_os("PYTHONPATH") {
        folders.extend(env::split_paths(&paths).filter_map(|path| std::path::absolute(path).ok()));
    }
    let prefix = &environment.prefix;
    let config = Config::of(prefix);
    let setting = |wanted: &str| config.as_ref()?.get(wanted);
    let version = version(environment);
    let version = version.as_deref();
    let isolated = config.is_some();
    let with_system = setting("include-system-site-packages").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    if isolated {
        folders.extend(own_sites(prefix, version));
    }
    if !isolated || with_system {
        folders.extend(user_site(version));
        match setting("home").map(Path::new) {
            Some(home) if isolated => {
                folders.extend(own_sites(home.parent().unwrap_or(home), version));
            }
            _ => folders.extend(own_sites(prefix, version)),
        }
    }
    let mut unique: Vec<PathBuf> = Vec::new();
    for folder in folders {
        if folder.is_dir() && !unique.iter().any(|known| same(known, &folder)) {
            unique.push(folder);
        }
    }
    unique
}

/// `pyvenv.cfg`: what a virtual environment says of itself.
struct Config(String);

impl Config {
    /// That of the environment in this folder, if it is a virtual one.
    fn of(prefix: &Path) -> Option<Self> {
        read::text(&prefix.join("pyvenv.cfg")).ok().map(Self)
    }

    fn get(&self, wanted: &str) -> Option<&str> {
        let mut pairs = self.0.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    }
}

/// The version of Python, by `pyvenv.cfg` or the interpreter's name.
fn version(environment: &Environment) -> Option<String> {
    let config = Config::of(&environment.prefix);
    let written = config.as_ref().and_then(|config| config.get("version_info").or(config.get("version")));
    let written = written.map(str::to_owned);
    written.or_else(|| environment.interpreter.as_deref().and_then(version_in_name))
}

/// "3.11" of `lib/python3.11/site-packages`.
fn version_of_site(site: &Path) -> Option<String> {
    let name = site.parent()?.file_name()?.to_str()?;
    // Free-threaded ones have a `t` at the end.
    let version = name.strip_prefix("python").filter(|version| version.starts_with("3."))?;
    Some(version.trim_end_matches('t').to_owned())
}

/// "3.11" of `python3.11`, following links.
fn version_in_name(interpreter: &Path) -> Option<String> {
    let real = interpreter.canonicalize().ok()?;
    let version = real.file_stem()?.to_str()?.strip_prefix("python")?.to_owned();
    // `file_stem` takes ".11" of "python3.11" for an extension.
    let whole = real.file_name()?.to_str()?.strip_prefix("python")?.to_owned();
    let whole = if cfg!(windows) { version } else { whole };
    (whole.contains('.')).then_some(whole)
}

/// The environment's own `site-packages`; of this version of Python, if it is known.
fn own_sites(prefix: &Path, version: Option<&str>) -> Vec<PathBuf> {
    let minor = version.map(|v| v.split('.').take(2).collect::<Vec<_>>().join("."));
    let mut sites = vec![prefix.join("Lib").join("site-packages")];
    let mut folders = vec![prefix.join("lib"), prefix.join("lib64")];
    if prefix == Path::new("/usr") {
        // Debian: what pip installs goes there, and comes first.
        folders.insert(0, PathBuf::from("/usr/local/lib"));
    }
    for lib in folders {
        let mut pythons: Vec<_> = fs::read_dir(&lib)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| match (&minor, name.strip_prefix("python")) {
                (Some(minor), Some(rest)) => rest.trim_end_matches('t') == minor,
                (None, Some(rest)) => rest.starts_with("3."),
                (_, None) => false,
            })
            .collect();
        // Without a version the newest counts.
        pythons.sort_by_key(|name| std::cmp::Reverse((name.len(), name.clone())));
        pythons.truncate(1);
        for python in pythons {
            sites.push(lib.join(&python).join("site-packages"));
            sites.push(lib.join(&python).join("dist-packages"));
        }
    }
    if prefix == Path::new("/usr") {
        sites.push(prefix.join("lib/python3/dist-packages"));
    }
    sites.retain(|site| site.is_dir());
    sites
}

/// `~/.local/lib/python3.11/site-packages`: comes before the system's.
fn user_site(version: Option<&str>) -> Vec<PathBuf> {
    let no_user_site = env::var_os("PYTHONNOUSERSITE").is_some_and(|value| !value.is_empty());
    let base = env::var_os("PYTHONUSERBASE").map(PathBuf::from).or_else(|| {
        let home = env::home_dir()?;
        Some(if cfg!(target_os = "macos") { home.join("Library/Python") } else { home.join(".local") })
    });
    match base {
        Some(base) if !no_user_site => own_sites(&base, version),
        _ => Vec::new(),
    }
}
