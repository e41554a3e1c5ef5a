//! The first version of Windows' subsystem for Linux, which has no GPU.

use super::{Case, Draft};

/// The identifier of this file's problem.
pub(super) const VERSION_1: &str = "wsl-version-1";

/// Is it that? Its kernel is Windows' own and calls itself `4.4.0-19041-Microsoft`; the second version's is
/// `5.15.90.1-microsoft-standard-WSL2` (microsoft/WSL#5554, #8174).
pub(super) fn version_1(case: &Case) -> Option<Draft> {
    let kernel = case.machine.system.kernel.as_deref()?;
    if !case.machine.system.wsl || !kernel.ends_with("-Microsoft") {
        return None;
    }
    let name = std::env::var("WSL_DISTRO_NAME").unwrap_or_else(|_| "DISTRIBUTION".to_owned());
    Some(
        Draft::error(VERSION_1, "this is WSL 1, which has no GPU")
            .seen(format!("the kernel is {kernel}; that of WSL 2 has `microsoft-standard` in its name"))
            .remedy("make it a distribution of WSL 2, in Windows")
            .command(format!("wsl --set-version {name} 2    # in Windows")),
    )
}
