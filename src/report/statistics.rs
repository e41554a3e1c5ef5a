//! `--statistics`: the number of findings of each rule, the most frequent first.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::finding::Code;

use super::{Format, Report};

#[derive(Serialize)]
struct Row<'a> {
    code: String,
    name: &'a str,
    count: usize,
}

/// Writes one line per rule: the count, the code and the name, separated by tabs. The JSON formats get an array.
pub fn write(format: Format, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let rows = rows(report);
    if matches!(format, Format::Json | Format::JsonLines) {
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        return writeln!(out);
    }
    let width = rows.first().map_or(0, |row| row.count.to_string().len());
    rows.iter().try_for_each(|row| writeln!(out, "{:>width$}\t{}\t{}", row.count, row.code, row.name))
}

fn rows<'a>(report: &Report<'a>) -> Vec<Row<'a>> {
    let mut counts: FxHashMap<Code, usize> = FxHashMap::default();
    for finding in report.findings {
        *counts.entry(finding.code).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(code, n)| (std::cmp::Reverse(n), code));
    let pages = report.page_index();
    let name = |code| pages.get(&code).map_or("", |page| page.name);
    counts.into_iter().map(|(code, count)| Row { code: code.to_string(), name: name(code), count }).collect()
}
