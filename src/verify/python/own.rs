//! The environment that this program itself is installed in. Under `uvx`, `pipx run` and the like that is one that was made for it
//! alone, in which nobody has put PyTorch.

use std::path::{Path, PathBuf};

use super::{Environment, holds_torch, of_prefix, same, sites::Config};

/// The environment that this program is in.
#[derive(Clone, Debug)]
pub struct Own {
    /// Its folder, if it is in one.
    prefix: Option<PathBuf>,
}

impl Own {
    /// By the place of this program's file.
    pub fn find() -> Self {
        let file = std::env::current_exe().ok();
        let folder = file.as_deref().and_then(Path::parent);
        let in_bin =
            folder.filter(|folder| folder.file_name().is_some_and(|name| name == "bin" || name == "Scripts"));
        let prefix = in_bin.and_then(Path::parent);
        Self { prefix: prefix.filter(|prefix| is_environment(prefix)).map(Path::to_owned) }
    }

    /// The environment that is meant by running this program, whatever else is named: its own if PyTorch is in it, or the one that its
    /// own only adds to.
    pub fn meant(&self) -> Option<Environment> {
        let prefix = self.prefix.as_deref()?;
        let own = of_prefix(prefix, "samedevice")?;
        let extends = extended(&own).is_some();
        let meant = below(own);
        (extends || holds_torch(&meant)).then_some(meant)
    }

    /// Is this the folder of an environment that was made for this program alone?
    pub fn is_made_for_it(&self, prefix: &Path) -> bool {
        self.prefix.as_deref().is_some_and(|own| made_for_a_tool(own) && same(own, prefix))
    }
}

/// The environment that this one only adds to: `uv run --with samedevice` makes such ones, and takes them away again.
fn extended(environment: &Environment) -> Option<Environment> {
    let config = Config::of(&environment.prefix)?;
    of_prefix(Path::new(config.get("extends-environment")?), environment.found_by)
}

/// The environment that stays, if this one only adds to it and PyTorch is not in what it adds.
pub fn below(environment: Environment) -> Environment {
    match extended(&environment) {
        Some(below) if holds_torch(&below) || !holds_torch(&environment) => below,
        _ => environment,
    }
}

fn is_environment(prefix: &Path) -> bool {
    let has_record = |site: &PathBuf| {
        let mut entries = std::fs::read_dir(site).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().starts_with("samedevice-"))
    };
    prefix.join("pyvenv.cfg").is_file()
        || prefix.join("conda-meta").is_dir()
        || super::sites::own_sites(prefix, None).iter().any(has_record)
}

/// uv and pipx leave a file in those that stay, and keep the others in folders of their caches.
fn made_for_a_tool(prefix: &Path) -> bool {
    let caches = ["archive-v0", "environments-v2", "builds-v0", "pipx"];
    prefix.join("uv-receipt.toml").is_file()
        || prefix.join("pipx_metadata.json").is_file()
        || prefix.components().any(|part| caches.iter().any(|name| part.as_os_str() == *name))
}
