//! `samedevice rule`: what a rule is about.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use super::{Failure, terminal};
use crate::cli::{Color, PageFormat, RuleArgs};
use crate::config::{Selector, file::unknown_rule};
use crate::rules::explain::{Format, Look, render};
use crate::rules::registry::registry;

/// The codes that a selector stands for.
fn codes(selector: &Selector) -> String {
    let codes = registry().iter().map(|page| page.code).filter(|code| selector.matches(*code));
    codes.map(|code| code.to_string()).collect::<Vec<_>>().join(", ")
}

/// Prints one rule's page, or the table of all rules.
///
/// # Errors
/// If there is no such rule, or nothing can be written.
pub fn run(args: &RuleArgs, color: Color) -> Result<ExitCode, Failure> {
    let selector = args.rule.as_deref();
    if let Some(rule) = selector {
        match Selector::parse(rule, registry()) {
            Ok(Selector::Rule(_)) => {}
            Ok(several) => {
                return Err(Failure::Other(format!(
                    "`{rule}` matches several rules; choose one: {}",
                    codes(&several)
                )));
            }
            Err(unknown) => return Err(unknown_rule(&unknown).into()),
        }
    }
    let format = match args.output_format {
        PageFormat::Text => Format::Text,
        PageFormat::Json => Format::Json,
    };
    let stdout = io::stdout();
    let look = Look { color: terminal::color(color, &stdout), width: terminal::width() };
    let mut out = BufWriter::new(stdout.lock());
    if !render(selector, format, look, &mut out)? {
        return Err(Failure::Other(format!("there is no rule `{}`", selector.unwrap_or_default())));
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
