//! The process that asked the driver did not come to its end.

use super::{Case, Draft};
use crate::verify::machine::Outcome;

pub(super) fn not_probed(case: &Case) -> Option<Draft> {
    let Outcome::NotProbed { reason } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("not-probed", "the probe could not be started")
            .seen(reason.clone())
            .remedy("let this program start itself: it needs its own file and a free process"),
    )
}

pub(super) fn crashed(case: &Case) -> Option<Draft> {
    let Outcome::Crashed { during, how } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("driver-crashed", "the driver brings down the process that asks it")
            .seen(format!("{how} while {during}"))
            .remedy("reboot; if it comes again, install the driver again"),
    )
}

pub(super) fn hangs(case: &Case) -> Option<Draft> {
    let Outcome::TimedOut { during, seconds } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("driver-hangs", "the driver does not answer")
            .seen(format!("no answer within {seconds} seconds while {during}"))
            .remedy("look for the GPU's last words in the kernel's log (Xid), and reboot")
            .command("sudo dmesg | grep -iE 'nvrm|xid'"),
    )
}
