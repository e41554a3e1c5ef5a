//! `samedevice rule`: what a rule is about.

use std::io::{self, Write};
use std::process::ExitCode;

use super::Failure;
use crate::cli::{Color, PageFormat, RuleArgs};
use crate::config::pages::registry;
use crate::config::{Selector, file::unknown_rule};

/// Prints one rule's page, or the table of all rules.
///
/// # Errors
/// If there is no such rule, or nothing can be written.
pub fn run(args: &RuleArgs, color: Color) -> Result<ExitCode, Failure> {
    if let Some(rule) = &args.rule {
        match Selector::parse(rule, registry()) {
            Ok(Selector::Rule(_)) => {}
            Ok(_) => return Err(Failure::Other(format!("`{rule}` stands for several rules; name one"))),
            Err(unknown) => return Err(unknown_rule(&unknown).into()),
        }
    }
    render(args.rule.as_deref(), args.output_format, color, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// MERGE: `crate::rules::explain::render`.
fn render(rule: Option<&str>, _: PageFormat, _: Color, out: &mut dyn Write) -> io::Result<()> {
    for page in registry() {
        if rule.is_none_or(|rule| {
            rule.eq_ignore_ascii_case(page.name) || rule.to_uppercase() == page.code.to_string()
        }) {
            writeln!(out, "{} {}", page.code, page.name)?;
        }
    }
    Ok(())
}
