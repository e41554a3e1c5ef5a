//! MERGE: the report station's `crate::report::write` takes the place of this file.

use std::io::{self, Write};

use crate::cli::OutputFormat;
use crate::finding::Finding;
use crate::source::Sources;

/// Writes one line for each finding, whatever the format.
pub fn write(
    _: OutputFormat,
    findings: &[Finding],
    sources: &Sources,
    out: &mut dyn Write,
) -> io::Result<()> {
    for finding in findings {
        let place = finding.primary.place;
        let source = sources.get(place.file);
        let at = source.position(place.span.start);
        writeln!(out, "{}:{}:{}: {} {}", source.name, at.row, at.column, finding.code, finding.message)?;
    }
    Ok(())
}
