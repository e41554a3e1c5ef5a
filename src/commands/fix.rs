//! `--fix`, `--diff` and `--fix-only`.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Failure, say};
use crate::cli::CheckArgs;
use crate::config::Settings;
use crate::discover::Input;
use crate::fix::rounds::{self, ChangedFile, Fixed};
use crate::fix::{diff, write};
use crate::refine::Refined;
use crate::source::encoding;

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

/// Writes the files, or shows what would be written (`as_diff`). `stdin`: what was read from there, whose new text goes to standard output.
/// Says whether a file could not be written.
///
/// # Errors
/// If the output cannot be written.
pub(super) fn carry_out(
    made: &Made,
    inputs: &[Input],
    stdin: Option<&[u8]>,
    as_diff: bool,
) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    let mut failed = false;
    for file in &made.files {
        let input = &inputs[file.input];
        if as_diff {
            let text = |bytes: &[u8]| encoding::decode(bytes.to_vec()).unwrap_or_default();
            let diff = diff::unified(&input.name, &text(&file.before), &text(&file.after));
            out.write_all(diff.as_bytes())?;
        } else if stdin.is_none()
            && let Err(reason) = write::replace(&input.path, &file.before, &file.after)
        {
            say(&format!("error: cannot write `{}`: {reason}", input.name));
            failed = true;
        }
    }
    if let Some(bytes) = stdin.filter(|_| !as_diff) {
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
        (0, true) => say("No fixes available."),
        (0, false) => {}
        (_, true) => say(&format!("Would fix {findings}.")),
        (_, false) => say(&format!("Fixed {findings}.")),
    }
}

/// Writes suppression comments for what `lint` finds, whose fixes they are. Gives what is left, and whether something went wrong.
///
/// # Errors
/// If the output cannot be written.
pub(super) fn add_ignores(
    inputs: &mut [Input],
    stdin: Option<&[u8]>,
    lint: &(dyn Fn(&[Input]) -> Refined + Sync),
) -> Result<(Refined, bool), Failure> {
    // Inputs with the same settings belong to the same project, so they share the new settings, too.
    let mut changed: Vec<(Arc<Settings>, Arc<Settings>)> = Vec::new();
    for input in inputs.iter_mut() {
        let known = changed.iter().find(|(old, _)| Arc::ptr_eq(old, &input.settings));
        let new = known.map(|(_, new)| Arc::clone(new)).unwrap_or_else(|| {
            let mut settings = Settings::clone(&input.settings);
            (settings.fix, settings.fixable, settings.unfixable) = (true, None, Vec::new());
            let new = Arc::new(settings);
            changed.push((Arc::clone(&input.settings), Arc::clone(&new)));
            new
        });
        input.settings = new;
    }
    let (refined, made, mut failed) = make(inputs, lint);
    failed |= carry_out(&made, inputs, stdin, false)?;
    let comments = if made.count == 1 { "comment" } else { "comments" };
    let files = if made.files.len() == 1 { "file" } else { "files" };
    say(&format!("Added {} suppression {comments} to {} {files}.", made.count, made.files.len()));
    Ok((refined, failed))
}
