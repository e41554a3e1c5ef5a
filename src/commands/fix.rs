//! `--fix`, `--diff` and `--fix-only`.

use std::io::{self, Write};

use super::{Failure, say};
use crate::cli::{CheckArgs, FixArgs};
use crate::discover::Input;
use crate::fix::rounds::{self, ChangedFile, Fixed};
use crate::fix::{diff, write};
use crate::refine::Refined;
use crate::source::read;

/// What fixes change.
pub(super) struct Made {
    /// The files.
    pub(super) files: Vec<ChangedFile>,
    /// How many findings are gone.
    pub(super) count: usize,
}

/// Makes the fixes in memory. Gives what is left, what they change, and whether something went wrong.
pub(super) fn make(inputs: &mut [Input], lint: &dyn Fn(&[Input]) -> Refined) -> (Refined, Made, bool) {
    rounds::read_all(inputs);
    let Fixed { refined, files, count, problems } = rounds::run(inputs, lint);
    problems.iter().for_each(|problem| say(&format!("error: {problem}")));
    (refined, Made { files, count }, !problems.is_empty())
}

/// Writes the files, or shows what would be written. `stdin`: what was read from there, whose new text goes to standard output.
/// Says whether a file could not be written.
///
/// # Errors
/// If the output cannot be written.
pub(super) fn carry_out(
    made: &Made,
    inputs: &[Input],
    stdin: Option<&[u8]>,
    args: &FixArgs,
) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    let mut failed = false;
    for file in &made.files {
        let input = &inputs[file.input];
        if args.diff {
            let text = |bytes: &[u8]| read::decode(bytes.to_vec()).unwrap_or_default();
            let diff = diff::unified(&input.name, &text(&file.before), &text(&file.after));
            out.write_all(diff.as_bytes())?;
        } else if stdin.is_none()
            && let Err(reason) = write::replace(&input.path, &file.before, &file.after)
        {
            say(&format!("error: cannot write `{}`: {reason}", input.name));
            failed = true;
        }
    }
    if let Some(bytes) = stdin.filter(|_| !args.diff) {
        // Whoever pipes a file through wants it back, changed or not.
        out.write_all(made.files.first().map_or(bytes, |file| &file.after))?;
    }
    out.flush()?;
    Ok(failed)
}

/// Says on standard error how much has been fixed.
pub(super) fn tell(made: &Made, args: &CheckArgs) {
    if args.output.quiet {
        return;
    }
    let findings = if made.count == 1 { "1 finding".to_owned() } else { format!("{} findings", made.count) };
    match (made.count, args.fixes.diff) {
        (0, true) => say("No fixes to make."),
        (0, false) => {}
        (_, true) => say(&format!("Would fix {findings}.")),
        (_, false) => say(&format!("Fixed {findings}.")),
    }
}
