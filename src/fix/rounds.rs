//! Applies fixes in memory and lints the files again, until nothing changes.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::apply::{Change, changed, moved, together};
use crate::discover::Input;
use crate::finding::{Code, Finding, Fix};
use crate::lower::{self, Kind};
use crate::notebook::write_back;
use crate::refine::Refined;
use crate::source::{Content, Source, encoding, read};
use crate::span::FileId;

/// The maximum number of rounds. A correct set of fixes needs fewer.
const MAX_ROUNDS: usize = 100;
/// How many fixes of one finding are tried at one place. A finding that is still there after them is not fixed.
const MAX_TRIES: usize = 3;
/// How often everything starts again without the fixes that had no effect.
const MAX_STARTS: usize = 4;

/// The result of [`run`].
#[derive(Debug)]
pub struct Fixed {
    /// The remaining findings, in the changed files.
    pub refined: Refined,
    /// The changed files.
    pub files: Vec<ChangedFile>,
    /// How many findings were fixed.
    pub count: usize,
    /// Error messages, one sentence each.
    pub problems: Vec<String>,
}

/// A file that fixes change.
#[derive(Debug)]
pub struct ChangedFile {
    /// Its index among the inputs.
    pub input: usize,
    /// Its bytes as they were read.
    pub before: Vec<u8>,
    /// Its bytes with the fixes.
    pub after: Vec<u8>,
}

/// An applied fix, and the place where its finding would be if the fix had no effect.
struct Made {
    id: Id,
    code: Code,
    file: usize,
    at: u32,
    title: String,
    /// Whether the edits are in another file than the finding, in code that a call leads to. Another bug may follow there.
    on_the_way: bool,
}

/// Identifies a fix although offsets move: fixes with equal changes to equal lines are the same.
type Id = (Code, usize, String, Vec<String>);

/// Reads the files, so that the fixed text is the linted text. If a file cannot be read, the linter reports why.
pub fn read_all(inputs: &mut [Input]) {
    for input in inputs.iter_mut().filter(|input| input.bytes.is_none()) {
        input.bytes = read::bytes(&input.path).ok();
    }
}

/// Applies the fixes that the settings allow to `inputs`, whose bytes have been read. `lint` returns the findings in files.
pub fn run(inputs: &[Input], lint: &dyn Fn(&[Input]) -> Refined) -> Fixed {
    let mut useless: FxHashSet<Id> = FxHashSet::default();
    let mut problems = Vec::new();
    loop {
        let mut attempt = Attempt {
            inputs: inputs.to_vec(),
            made: Vec::new(),
            useless: &useless,
            broken: FxHashSet::default(),
            problems: Vec::new(),
        };
        let refined = attempt.run(lint);
        let Attempt { inputs: new, made, problems: found, .. } = attempt;
        problems.extend(found);
        let stayed = |m: &&Made| {
            let same = |f: &Finding| {
                f.code == m.code
                    && index(f.primary.place.file) == m.file
                    && f.primary.place.span.start == m.at
            };
            refined.findings.iter().any(same)
        };
        let failed: Vec<&Made> = made.iter().filter(stayed).collect();
        if failed.is_empty() || problems.len() > MAX_STARTS {
            let files = (0..inputs.len()).filter_map(|n| difference(n, &inputs[n], &new[n])).collect();
            return Fixed { refined, files, count: made.len(), problems };
        }
        for m in failed {
            if useless.insert(m.id.clone()) && !m.on_the_way {
                problems.push(format!(
                    "internal error: the fix \"{}\" in {} does not remove {}, so it was not applied; please report this",
                    m.title, inputs[m.file].name, m.code
                ));
            }
        }
    }
}

fn index(file: FileId) -> usize {
    file.0 as usize
}

fn difference(n: usize, old: &Input, new: &Input) -> Option<ChangedFile> {
    let (before, after) = (old.bytes.clone()?, new.bytes.clone()?);
    (before != after).then_some(ChangedFile { input: n, before, after })
}

/// Why changes cannot be applied.
enum Refusal {
    /// The result has syntax errors.
    NotPython,
    /// The result cannot be written, for this reason.
    Unwritable(String),
}

/// The bytes of the file whose bytes were `old`, after these changes of its text.
fn rewritten(source: &Source, old: &[u8], changes: &[Change]) -> Result<Vec<u8>, Refusal> {
    let unwritable = |reason: &dyn std::fmt::Display| Refusal::Unwritable(reason.to_string());
    let text = changed(source.text(), changes).ok_or(Refusal::NotPython)?;
    if source.notebook().is_none() {
        let is_python = lower::syntax(&text, Kind::of(source)).is_some();
        return match encoding::encode(old, &text) {
            Ok(bytes) if is_python => Ok(bytes),
            Ok(_) => Err(Refusal::NotPython),
            Err(reason) => Err(unwritable(&reason)),
        };
    }
    let range = |c: &Change| (c.span.start as usize..c.span.end as usize, c.content.clone());
    let edits: Vec<_> = changes.iter().map(range).collect();
    let bytes = write_back(old, &edits).map_err(|reason| unwritable(&reason))?;
    let Ok(new) = Content::decode(&source.path, bytes.clone()) else { return Err(Refusal::NotPython) };
    let kind = Kind::named(&source.path, new.notebook.as_deref());
    // A change at the end of a cell must stay in that cell.
    let same = new.text == text;
    if same && lower::syntax(&new.text, kind).is_some() { Ok(bytes) } else { Err(Refusal::NotPython) }
}

/// One attempt: all rounds from the original text.
struct Attempt<'a> {
    inputs: Vec<Input>,
    made: Vec<Made>,
    useless: &'a FxHashSet<Id>,
    /// Fixes that cannot be applied.
    broken: FxHashSet<Id>,
    problems: Vec<String>,
}

impl Attempt<'_> {
    fn run(&mut self, lint: &dyn Fn(&[Input]) -> Refined) -> Refined {
        let mut refined = lint(&self.inputs);
        for _ in 0..MAX_ROUNDS {
            if !self.round(&refined) {
                return refined;
            }
            refined = lint(&self.inputs);
        }
        self.problems
            .push(format!("internal error: fixes remain after {MAX_ROUNDS} rounds; please report this"));
        refined
    }

    /// Applies the fixes that can be applied now. Returns whether there were any.
    fn round(&mut self, refined: &Refined) -> bool {
        let mut by_file: BTreeMap<usize, Vec<(&Finding, Id)>> = BTreeMap::new();
        for finding in &refined.findings {
            let Some(fix) = &finding.fix else { continue };
            let Some(file) = fix.edits.first().map(|edit| index(edit.place.file)) else { continue };
            if file >= self.inputs.len() || !self.is_wanted(finding.code, fix, file) {
                continue;
            }
            let id = id(finding, file, refined);
            if !self.useless.contains(&id) && !self.broken.contains(&id) && !self.was_tried(finding) {
                by_file.entry(file).or_default().push((finding, id));
            }
        }
        // Findings that follow from another finding may disappear with it, so the causes are fixed first.
        if by_file.values().flatten().any(|(f, _)| is_cause(f.code)) {
            by_file.values_mut().for_each(|wanted| wanted.retain(|(f, _)| is_cause(f.code)));
        }
        let mut any = false;
        for (file, wanted) in by_file {
            any |= !wanted.is_empty() && self.fix_file(file, &wanted, refined);
        }
        any
    }

    /// Whether several fixes have been applied to the finding, and it is still at its place.
    fn was_tried(&self, finding: &Finding) -> bool {
        let place = finding.primary.place;
        let here =
            |m: &&Made| m.code == finding.code && m.file == index(place.file) && m.at == place.span.start;
        self.made.iter().filter(here).count() >= MAX_TRIES
    }

    fn is_wanted(&self, code: Code, fix: &Fix, file: usize) -> bool {
        let settings = &self.inputs[file].settings;
        let here = |edit: &crate::finding::Edit| index(edit.place.file) == file;
        !fix.edits.is_empty()
            && fix.edits.iter().all(here)
            && settings.fix
            && settings.may_fix(code)
            && fix.applicability.is_wanted(settings.unsafe_fixes)
    }

    fn fix_file(&mut self, file: usize, wanted: &[(&Finding, Id)], refined: &Refined) -> bool {
        let source = refined.sources.get(FileId(u32::try_from(file).unwrap_or(u32::MAX)));
        let Some(old) = self.inputs[file].bytes.clone() else { return false };
        let fixes: Vec<Vec<Change>> = wanted.iter().map(|(f, _)| changes(f)).collect();
        let (mut taken, mut all) = together(&fixes);
        let mut new = rewritten(source, &old, &all).ok();
        if new.is_none() {
            // Some of them cause the error. The first that causes none alone is applied, and the next round tries the others again.
            let mut good = Vec::new();
            for n in taken {
                match rewritten(source, &old, &fixes[n]) {
                    Ok(_) => good.push(n),
                    Err(Refusal::NotPython) => {
                        self.refuse(wanted, n, &source.name, "would leave a file that is not valid Python");
                    }
                    Err(Refusal::Unwritable(reason)) => {
                        self.refuse(wanted, n, &source.name, &format!("cannot be written: {reason}"));
                    }
                }
            }
            taken = good.into_iter().take(1).collect();
            let Some(&n) = taken.first() else { return false };
            all.clone_from(&fixes[n]);
            all.sort();
            new = rewritten(source, &old, &all).ok();
        }
        let Some(new) = new else { return false };
        self.inputs[file].bytes = Some(new);
        for m in self.made.iter_mut().filter(|m| m.file == file) {
            m.at = moved(m.at, &all);
        }
        for &n in &taken {
            let (finding, id) = &wanted[n];
            let home = index(finding.primary.place.file);
            let start = finding.primary.place.span.start;
            let at = if home == file { moved(start, &all) } else { start };
            let title = finding.fix.as_ref().map_or_else(String::new, |fix| fix.message.clone());
            self.made.push(Made {
                id: id.clone(),
                code: finding.code,
                file: home,
                at,
                title,
                on_the_way: home != file,
            });
        }
        true
    }

    fn refuse(&mut self, wanted: &[(&Finding, Id)], n: usize, name: &str, why: &str) {
        let (finding, id) = &wanted[n];
        let title = finding.fix.as_ref().map_or("", |fix| fix.message.as_str());
        if self.broken.insert(id.clone()) {
            self.problems.push(format!("the fix \"{title}\" of {} in {name} {why}", finding.code));
        }
    }
}

/// Can findings of other rules follow from findings of this rule? These are a check that is not called, a discarded transfer, and a part
/// that a module does not move.
fn is_cause(code: Code) -> bool {
    matches!(code, Code(103 | 203 | 204 | 301 | 302))
}

fn changes(finding: &Finding) -> Vec<Change> {
    let mut changes: Vec<Change> = finding.fix.iter().flat_map(|fix| &fix.edits).map(Change::from).collect();
    changes.sort();
    changes
}

fn id(finding: &Finding, file: usize, refined: &Refined) -> Id {
    let place = finding.primary.place;
    let source = refined.sources.get(place.file);
    let row = source.row_text(source.position(place.span.start).row).trim().to_owned();
    let contents = changes(finding).into_iter().map(|c| c.content).collect();
    (finding.code, file, row, contents)
}
