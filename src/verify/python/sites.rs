//! Where an environment imports modules from: what `site.main` in Python's `site.py` puts on the search path.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Environment, same};
use crate::source::read;

/// Where modules are imported from, in order, without the standard library.
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
    let mut sites: Vec<PathBuf> = Vec::new();
    if isolated {
        sites.extend(own_sites(prefix, version));
    }
    if !isolated || with_system {
        sites.extend(user_site(version));
        match setting("home").map(Path::new) {
            Some(home) if isolated => {
                sites.extend(own_sites(home.parent().unwrap_or(home), version));
            }
            _ => sites.extend(own_sites(prefix, version)),
        }
    }
    for site in sites {
        let added = added_by_files(&site);
        folders.push(site);
        for folder in added {
            // What is added as a `site-packages` may add others, and so on; once is as far as people go.
            let more = added_by_files(&folder);
            folders.push(folder);
            folders.extend(more);
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

/// What the `*.pth` files of this folder add, in the order of their names: `site.addpackage`. Of lines that are programs only
/// those are understood by which setuptools puts packages in that are edited in place, and uv one environment over another.
fn added_by_files(site: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(site).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = names
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pth"))
        .filter(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')))
        .collect();
    files.sort_unstable();
    let mut added = Vec::new();
    for file in files {
        let text = read::text(&file).unwrap_or_default();
        for line in text.trim_start_matches('\u{feff}').lines().map(str::trim_end) {
            match line.strip_prefix("import ").or_else(|| line.strip_prefix("import\t")) {
                Some(program) => added.extend(added_by_program(site, program)),
                None if line.trim().is_empty() || line.starts_with('#') => {}
                None => added.push(site.join(line)),
            }
        }
    }
    added
}

/// `__editable___torch_2_9_0_finder; …`: the module of this name has a table of packages and their folders, `MAPPING: dict[str,
/// str] = {'torch': '/home/ada/pytorch/torch'}`, as `_EditableFinder` in setuptools' `editable_wheel.py` writes it.
fn added_by_program(site: &Path, program: &str) -> Vec<PathBuf> {
    let module = program.split([';', ' ']).next().unwrap_or_default();
    if module == "site" && program.contains("addsitedir(") {
        // import site; site.addsitedir(__import__("os").fsdecode(b"/home/ada/train/.venv/lib/python3.11/site-packages"))
        let texts = program.split(['\'', '"']).skip(1).step_by(2).map(PathBuf::from);
        return texts.filter(|path| path.is_absolute()).collect();
    }
    if !module.starts_with("__editable__") {
        return Vec::new();
    }
    let text = read::text(&site.join(format!("{module}.py"))).unwrap_or_default();
    let table = text.lines().find(|line| line.starts_with("MAPPING")).unwrap_or_default();
    let words: Vec<&str> = table.split(['\'', '"']).skip(1).step_by(2).collect();
    let folders = words.chunks_exact(2).map(|pair| (pair[0], Path::new(pair[1])));
    folders
        .filter(|(name, folder)| folder.file_name().is_some_and(|last| last == *name))
        .filter_map(|(_, folder)| folder.parent().map(Path::to_owned))
        .collect()
}

/// Is this record (`*.dist-info`) that of a package that is edited in place? PEP 610: `direct_url.json`.
pub fn is_edited_in_place(record: &Path) -> bool {
    let text = read::text(&record.join("direct_url.json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    value.pointer("/dir_info/editable").and_then(serde_json::Value::as_bool) == Some(true)
}

/// `pyvenv.cfg`: what a virtual environment says of itself.
pub struct Config(String);

impl Config {
    /// That of the environment in this folder, if it is a virtual one.
    pub fn of(prefix: &Path) -> Option<Self> {
        read::text(&prefix.join("pyvenv.cfg")).ok().map(Self)
    }

    /// The value of a key.
    pub fn get(&self, wanted: &str) -> Option<&str> {
        let mut pairs = self.0.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    }
}

/// The version of Python, by `pyvenv.cfg` or the interpreter's name.
pub fn version(environment: &Environment) -> Option<String> {
    let config = Config::of(&environment.prefix);
    let written = config.as_ref().and_then(|config| config.get("version_info").or(config.get("version")));
    let written = written.map(str::to_owned);
    written.or_else(|| environment.interpreter.as_deref().and_then(version_in_name))
}

/// "3.11" of `lib/python3.11/site-packages`.
pub fn version_of_site(site: &Path) -> Option<String> {
    let name = site.parent()?.file_name()?.to_str()?;
    // Free-threaded ones have a `t` at the end.
    let version = name.strip_prefix("python").filter(|version| version.starts_with("3."))?;
    Some(version.trim_end_matches('t').to_owned())
}

/// "3.11" of `python3.11`, following links.
fn version_in_name(interpreter: &Path) -> Option<String> {
    let real = interpreter.canonicalize().ok()?;
    let name = if cfg!(windows) { real.file_stem()? } else { real.file_name()? };
    let version = name.to_str()?.strip_prefix("python")?.to_owned();
    version.contains('.').then_some(version)
}

/// The environment's own `site-packages`; of this version of Python, if it is known.
pub fn own_sites(prefix: &Path, version: Option<&str>) -> Vec<PathBuf> {
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
                (Some(minor), Some(rest)) => rest.trim_end_matches('t') == minor.trim_end_matches('t'),
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
