//! What installs packages into an environment, by the files in it and around it.

use std::path::{Path, PathBuf};

use super::Environment;
use crate::verify::install::Tool;

/// What installs packages there; `sites` are the folders that modules are imported from.
pub fn of(environment: &Environment, sites: &[PathBuf], cwd: &Path) -> Tool {
    let prefix = &environment.prefix;
    if prefix.components().any(|part| part.as_os_str() == ".pixi") {
        return Tool::Pixi;
    }
    if prefix.join("conda-meta").is_dir() {
        return Tool::Conda;
    }
    let has_pip = sites.is_empty() || sites.iter().any(|site| site.join("pip").is_dir());
    let Some(config) = super::sites::Config::of(prefix) else {
        return match (externally_managed(prefix), has_pip) {
            (true, _) => Tool::Venv,
            (false, true) => Tool::Pip,
            (false, false) => Tool::EnsurePip,
        };
    };
    let project = prefix.parent();
    let locked = |name: &str| project.is_some_and(|project| project.join(name).is_file());
    if locked("uv.lock") {
        return Tool::UvProject;
    }
    // Poetry keeps environments in a folder of its own, unless it is told otherwise.
    let poetrys = prefix.components().any(|part| part.as_os_str() == "pypoetry");
    if locked("poetry.lock")
        || (poetrys && cwd.ancestors().any(|folder| folder.join("poetry.lock").is_file()))
    {
        return Tool::Poetry;
    }
    match (has_pip, config.get("uv").is_some()) {
        (true, _) => Tool::Pip,
        (false, true) => Tool::Uv,
        (false, false) => Tool::EnsurePip,
    }
}

/// Does pip refuse to install into this Python? PEP 668: a file beside the standard library says so.
fn externally_managed(prefix: &Path) -> bool {
    let libraries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let pythons = libraries.map(|entry| entry.path()).filter(|folder| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    });
    pythons.chain([prefix.join("Lib")]).any(|library| library.join("EXTERNALLY-MANAGED").is_file())
}
