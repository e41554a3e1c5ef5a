//! Python's modules that PyTorch cannot do without.

use super::libraries::mend_libraries;
use super::{Case, Draft};

/// Python ends in the first lines of `torch/__init__.py`.
pub(super) fn missing(case: &Case) -> Option<Draft> {
    let packages = &case.installed.missing;
    let first = packages.first()?;
    let are = if packages.len() == 1 { "is" } else { "are" };
    Some(
        Draft::error(
            "module-missing",
            format!("{} {are} missing: PyTorch cannot be imported", packages.join(" and ")),
        )
        .says(format!("ModuleNotFoundError: No module named '{}'", first.replace('-', "_")))
        .seen_all(
            packages
                .iter()
                .map(|name| format!("PyTorch requires {name}, which is in no folder of the search path")),
        )
        .remedy("install the missing packages only")
        .command(mend_libraries(case, packages)),
    )
}
