//! `--statistics`: how often each rule was hit, the commonest first.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::finding::Code;

use super::Report;

/// Writes one line a rule: the count, the code and the name, with tabs between them.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut counts: FxHashMap<Code, usize> = FxHashMap::default();
    for finding in report.findings {
        *counts.entry(finding.code).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(code, n)| (std::cmp::Reverse(n), code));
    let width = counts.first().map_or(0, |(_, n)| n.to_string().len());
    let pages = report.page_index();
    for (code, n) in counts {
        let name = pages.get(&code).map_or("", |page| page.name);
        writeln!(out, "{n:>width$}\t{code}\t{name}")?;
    }
    Ok(())
}
