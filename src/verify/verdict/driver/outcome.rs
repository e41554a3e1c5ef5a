//! The process that asked the driver did not come to its end.

use super::{Case, Draft};
use crate::verify::machine::Outcome;

pub(super) fn not_probed(case: &Case) -> Option<Draft> {
    let Outcome::NotProbed { reason } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("not-probed", "the probe could not be started")
            .seen(reason.clone())
            .remedy("allow samedevice to start a child process of its own program file"),
    )
}

pub(super) fn crashed(case: &Case) -> Option<Draft> {
    let Outcome::Crashed { during, how } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("driver-crashed", "the driver crashes the process that queries it")
            .seen(format!("{how} while {during}"))
            .remedy("reboot; if it happens again, reinstall the driver"),
    )
}

pub(super) fn hangs(case: &Case) -> Option<Draft> {
    let Outcome::TimedOut { during, seconds } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("driver-hangs", "the driver does not respond")
            .seen(format!("no answer within {seconds} seconds while {during}"))
            .remedy("look for Xid errors in the kernel log, then reboot")
            .command("sudo dmesg | grep -iE 'nvrm|xid'"),
    )
}
