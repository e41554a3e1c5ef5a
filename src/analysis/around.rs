//! The project around another one. Examples with a `setup.py` of their own are made for the framework whose repository contains them, and
//! the framework's programs run them.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use super::project::{Project, Reading, is_installed_from};
use crate::source::is_test;
use crate::sym::Sym;
use crate::words::Words;

static PACKAGES_IN: Words = Words::of("folders of packages");

/// The files of the project that contains this one, without its tests. Empty unless the outer project is made to be installed and this one
/// imports a package of it.
pub(super) fn files_around(project: &Project<'_>, reading: &mut Reading<'_>) -> Vec<PathBuf> {
    let around = project.root().parent().map(|parent| reading.places.root_of(parent));
    let Some(root) = around.filter(|root| is_installed_from(root)) else { return Vec::new() };
    if !imports_package_of(project, reading, &root) {
        return Vec::new();
    }
    let files = reading.places.files(&root, project.settings());
    files.iter().flat_map(|files| files.iter()).filter(|path| !is_test(path, &root)).cloned().collect()
}

/// Does a file of the project import a package that is under `root` and that the project itself does not have?
fn imports_package_of(project: &Project<'_>, reading: &mut Reading<'_>, root: &Path) -> bool {
    // The imports of a project must not depend on which of its files are linted.
    project.complete(reading, &|_| true);
    let files = project.modules(reading);
    let mut seen: FxHashSet<Sym> = FxHashSet::default();
    files.into_iter().any(|m| {
        let Reading { program, intake, .. } = &mut *reading;
        let ir = &program.get(m).ir;
        let absolute = ir.imports.iter().filter(|import| import.level == 0);
        let firsts = absolute.filter_map(|import| import.module.as_str().split('.').next()).map(Sym::new);
        firsts.into_iter().any(|first| {
            seen.insert(first) && is_kept(root, first.as_str()) && intake.imported(ir.file, first).is_none()
        })
    })
}

/// Does a project at `root` have a package of this name, other than tests, in one of the usual places?
fn is_kept(root: &Path, name: &str) -> bool {
    let mut inits = PACKAGES_IN.all().iter().map(|folder| root.join(folder).join(name).join("__init__.py"));
    inits.any(|init| init.is_file() && !is_test(&init, root))
}
