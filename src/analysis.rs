//! MERGE: the middle of the way, from files to findings. Reads the files only, so far; parsing, linking and
//! the flow engine come here.

use rayon::prelude::*;

use crate::discover::Input;
use crate::finding::{Code, Finding, Label};
use crate::lower::Comment;
use crate::shield::shielded;
use crate::source::{Source, Sources, read};
use crate::span::{FileId, Place, Span};
use crate::world::World;

/// What is known of all files.
#[derive(Debug, Default)]
pub struct Analysis {
    /// The files that were asked for, in the order of the inputs; then those that they import.
    pub sources: Sources,
    /// Everything that was found, by whatever rule, in no particular order.
    pub findings: Vec<Finding>,
    /// The comments that may be suppressions, by file.
    pub comments: Vec<(FileId, Vec<Comment>)>,
}

/// Analyzes files on the current thread pool. Every input gets a source, an empty one if it has no text.
pub fn analyze(inputs: &[Input]) -> Analysis {
    let texts: Vec<Result<String, (Code, String)>> = inputs.par_iter().map(text).collect();
    let mut analysis = Analysis::default();
    for (input, text) in inputs.iter().zip(texts) {
        let (text, problem) = text.map_or_else(|problem| (String::new(), Some(problem)), |text| (text, None));
        let file = analysis.sources.add(Source::new(input.path.clone(), input.name.clone(), text));
        if let Some((code, message)) = problem {
            let place = Place { file, span: Span::default() };
            let label = Label { place, text: String::new() };
            analysis.findings.push(Finding::new(code, World::Always, message, label));
        }
    }
    analysis
}

fn text(input: &Input) -> Result<String, (Code, String)> {
    let decoded = shielded(|| match &input.bytes {
        Some(bytes) => read::decode(bytes.clone()),
        None => read::read(&input.path),
    });
    match decoded {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(reason)) => Err((Code(3), format!("cannot read this file: {reason}"))),
        Err(panic) => Err((Code(1), internal_error(&panic))),
    }
}

/// The message of the finding that a bug of ours becomes.
pub fn internal_error(panic: &str) -> String {
    format!("internal error, please report it with this file: {panic}")
}
