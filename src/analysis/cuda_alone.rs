//! Projects in which several files name CUDA. Their users know that they need CUDA, so findings that only occur on a machine without these
//! GPUs are not certain.
//!
//! If no code of such a project chooses another device (`flow/project/device_choice.rs`), the project is for CUDA alone. Then it gets one
//! finding, not one for each function.
//!
//! The cause of that finding is the first place in the project's files that names CUDA; a run over any of the files finds this place. Each
//! file reports the finding at its own first use. `refine/cause.rs` then merges the findings of several files, as for any other cause.

use rustc_hash::FxHashMap;

use super::project::{Project, Reading, projects_of, too_large};
use super::refuters::LOAD;
use crate::finding::{Code, Confidence, Finding, Label, Role};
use crate::flow::leave_choice;
use crate::source::{Content, is_test};
use crate::span::{FileId, Place, Span};
use crate::words::Words;
use crate::world::World;

/// The rules whose findings are merged: those that say that code needs CUDA.
const NEEDS: [Code; 4] = [Code(101), Code(106), Code(108), Code(305)];

/// The rules about a literal device index, and about a literal list of them.
const INDEX: [Code; 2] = [Code(401), Code(402)];

static NAMES: Words = Words::of("text that names CUDA");

/// In how many files a project must name CUDA before its users are assumed to know that it needs CUDA.
const MANY_FILES: usize = 3;

/// How many places a merged finding shows at most.
const SHOWN: usize = 3;

/// In projects that often name CUDA, lowers the confidence of findings that need a machine without these GPUs: the project may never run on
/// one. In projects for CUDA alone, merges these findings into one per file and rule.
pub(super) fn told_once(findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let open = |f: &Finding| assumed(f).is_some() && !f.is_silenced();
    let mut findings = findings;
    // Nobody can tell how often a project names CUDA that is too large to be read.
    let large = too_large(&findings, reading);
    let unread = |f: &Finding| {
        let input = inputs.get(f.primary.place.file.0 as usize);
        input.is_some_and(|input| large.iter().any(|project| project.root == input.root))
    };
    for f in findings.iter_mut().filter(|f| open(f) && unread(f)) {
        if let Some(assumed) = assumed(f) {
            f.doubt(Confidence::Likely, assumed);
        }
    }
    for project in projects_of(&findings, |f, _| open(f), reading) {
        let Some(cause) = cause(&project, reading) else { continue };
        let here = |f: &Finding| open(f) && project.holds(f.primary.place.file, inputs);
        for f in findings.iter_mut().filter(|f| here(f)) {
            if let Some(assumed) = assumed(f) {
                f.doubt(Confidence::Likely, assumed);
            }
        }
        let modules = project.modules(reading);
        if leave_choice(&reading.program, &modules) {
            continue;
        }
        let (mine, mut others): (Vec<Finding>, Vec<Finding>) =
            findings.into_iter().partition(|f| here(f) && needs(f));
        let mut groups: FxHashMap<(FileId, Code), Vec<Finding>> = FxHashMap::default();
        for f in mine {
            groups.entry((f.primary.place.file, f.code)).or_default().push(f);
        }
        others.extend(groups.into_values().filter_map(|group| summary(group, cause)));
        findings = others;
    }
    findings
}

/// Does the finding say that code needs CUDA?
fn needs(f: &Finding) -> bool {
    NEEDS.contains(&f.code) && f.world == World::NoCuda
}

/// What a finding assumes about the machines on which the project runs.
fn assumed(f: &Finding) -> Option<&'static str> {
    match f.code {
        _ if needs(f) => Some("this project is also run without CUDA"),
        LOAD => Some("the file holds tensors of a GPU and is loaded on a machine without one"),
        code if INDEX.contains(&code) => Some("this project is also run with fewer GPUs"),
        _ => None,
    }
}

/// Merges the findings of one file and rule.
fn summary(mut group: Vec<Finding>, cause: Place) -> Option<Finding> {
    group.sort_by_key(|f| f.primary.place.span.start);
    let count = group.len() + group.iter().map(|f| f.repeated().count()).sum::<usize>();
    let mut all = group.into_iter();
    let mut first = all.next()?;
    let file = first.primary.place.file;
    for other in all {
        first.as_sure_as(&other);
        let mut place = other.primary;
        place.role = Role::Repeated { through: other.related.iter().map(|label| label.place).collect() };
        let labels = if first.related.len() < SHOWN { &mut first.related } else { &mut first.unshown };
        labels.push(place);
    }
    first.message = "this project needs CUDA: none of its code chooses another device".to_owned();
    if count > 1 {
        first.primary.text = format!("the first of {count} places in this file that need CUDA");
    }
    if cause.file == file {
        let at = std::mem::replace(&mut first.primary.place, cause);
        if at != cause {
            first.related.insert(0, Label::new(at, "used here"));
        }
        first.roots.clear();
    } else {
        first.roots = vec![cause];
        first.related.insert(0, Label::new(cause, "the first use of CUDA in the project"));
    }
    Some(first)
}

/// The first place that names CUDA, if at least [`MANY_FILES`] files of the project do. In that case it also reads all files of the
/// project.
fn cause(project: &Project<'_>, reading: &mut Reading<'_>) -> Option<Place> {
    let root = project.root().clone();
    let files: Vec<_> = project.files().iter().filter(|path| !is_test(path, &root)).cloned().collect();
    let (mut first, mut named) = (None, 0);
    for path in &files {
        // A file that has been read may have been edited since, in memory.
        let read = reading.intake.file(path).map(|file| reading.analysis.sources.get(file).text().to_owned());
        let Some(text) = read.or_else(|| Content::read(path).ok().map(|content| content.text)) else {
            continue;
        };
        let (names, place) = first_name(&text);
        // Comments change nothing for other files, so a suppressed line counts as well.
        named += usize::from(names);
        first = first.or(place.map(|span| (path, span)));
        if named >= MANY_FILES && first.is_some() {
            break;
        }
    }
    let (path, span) = first.filter(|_| named >= MANY_FILES)?;
    project.complete(reading, &|_| true);
    let file = reading.intake.file(path)?;
    Some(Place { file, span })
}

/// Text in comments that suppress findings in a line, or in the file.
const SILENCED: [&str; 2] = ["samedevice: ignore", "noqa"];
const FILE_SILENCED: &str = "samedevice: file-ignore";

/// Whether code names CUDA, and the first place that does so and that no comment suppresses.
fn first_name(text: &str) -> (bool, Option<Span>) {
    let code = |at: usize| !text[..at].rsplit('\n').next().unwrap_or_default().contains('#');
    let open = |at: usize| {
        let line = text[at..].split('\n').next().unwrap_or_default();
        !SILENCED.iter().any(|word| line.contains(word))
    };
    let all = NAMES.all().iter().flat_map(|word| {
        text.match_indices(word).filter(|&(at, _)| code(at)).map(|(at, word)| (at, word.len()))
    });
    let (mut names, mut first) = (false, None::<(usize, usize)>);
    for found in all {
        names = true;
        if first.is_none_or(|first| found < first) && open(found.0) {
            first = Some(found);
        }
    }
    let number = |n: usize| u32::try_from(n).ok();
    let first = first.filter(|_| !text.contains(FILE_SILENCED));
    (names, first.and_then(|(at, len)| Some(Span::new(number(at)?, number(at + len)?))))
}

#[cfg(test)]
mod tests {
    use super::first_name;

    #[test]
    fn comments_name_nothing() {
        let text = "# x.cuda()\nx = y.cuda()\n";
        assert_eq!(first_name(text).1.map(|span| span.start), Some(16));
    }
}
