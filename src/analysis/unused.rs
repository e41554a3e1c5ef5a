//! Findings that take for granted that somebody uses a function or class which nobody in an application does.

use std::path::Path;

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use super::project::{Project, Reading, projects_of};
use crate::discover::project_texts;
use crate::finding::{Code, Finding};
use crate::flow::{Definition, LookedUp, Target, function_at};
use crate::link::Program;
use crate::source::read;
use crate::span::{FileId, Place, Span};
use crate::sym::Sym;

/// A device that whoever calls gives, and that is not looked at; and what only goes wrong with what callers give.
const ABOUT_CALLERS: [Code; 4] = [Code(206), Code(207), Code(210), Code(305)];

/// A project of fewer files is a sample of code, whose users are elsewhere.
const LEAST_FILES: usize = 8;

/// More functions than this that lead to one another are not followed.
const MAX_KNOWN: usize = 40;

/// The findings without those about what somebody would have to give to functions, or do with classes, that nobody in the
/// project names.
pub(super) fn used_by_somebody(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    for project in projects_of(&findings, needs_users, inputs) {
        // A library has its users elsewhere.
        if project.is_library()
            || project.files().len() < LEAST_FILES
            || !project.complete(reading, &|_| true)
        {
            continue;
        }
        let Some(texts) = Texts::of(&project, reading) else { continue };
        let files = project.modules(reading);
        let program = &reading.program;
        let looked_up = LookedUp::of(program, &files);
        findings.retain(|f| {
            let idle = |target| texts.are_idle(program, &looked_up, target, &mut FxHashMap::default());
            let here = needs_users(f) && project.holds(f.primary.place.file, inputs);
            !here || !targets(f, program).is_some_and(|targets| targets.into_iter().all(idle))
        });
    }
    findings
}

/// Does it say what would happen if somebody gave this, or moved that?
fn needs_users(f: &Finding) -> bool {
    !f.given.is_empty()
        || !f.on_module.is_empty()
        || f.by_default.is_some()
        || ABOUT_CALLERS.contains(&f.code)
}

/// The functions that somebody would have to use.
fn targets(f: &Finding, program: &Program) -> Option<Vec<Target>> {
    let given = f.given.iter().map(|g| Some((program.module_of(g.file)?, g.func)));
    let moved = f.on_module.iter().map(|spot| Some((program.module_of(spot.file)?, spot.entry)));
    let targets: Vec<Target> = given.chain(moved).collect::<Option<_>>()?;
    match targets.is_empty() {
        true => function_at(program, f.primary.place).map(|target| vec![target]),
        false => Some(targets),
    }
}

/// What a project's files say: its Python files, and those that may name what is in them.
struct Texts {
    own: FxHashMap<FileId, String>,
    others: Vec<String>,
}

impl Texts {
    /// Nothing if it is too large.
    fn of(project: &Project<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let text = |path: &Path| read::read(path).unwrap_or_default();
        let others = project_texts(project.root(), project.settings())?;
        let mut own = FxHashMap::default();
        let mut unknown = Vec::new();
        for path in project.files() {
            match reading.intake.file(path) {
                Some(file) => drop(own.insert(file, text(path))),
                None => unknown.push(text(path)),
            }
        }
        let others = others.iter().map(|path| text(path)).chain(unknown).collect();
        Some(Self { own, others })
    }

    /// Does nobody use the function? What only such functions name, nobody does either; `known` is what was found of others, and taken for
    /// granted of those that are being looked at.
    fn are_idle(
        &self,
        program: &Program,
        looked_up: &LookedUp,
        target: Target,
        known: &mut FxHashMap<Target, bool>,
    ) -> bool {
        let Some(needed) = looked_up.definitions(program, target) else { return false };
        if let Some(&idle) = known.get(&target) {
            return idle;
        }
        if known.len() > MAX_KNOWN {
            return false;
        }
        known.insert(target, true);
        let mut used = |file: FileId, at: usize| {
            let around = span_at(at).and_then(|span| function_at(program, Place { file, span }));
            around.is_none_or(|around| !self.are_idle(program, looked_up, around, known))
        };
        let idle = needed.iter().any(|d| !self.mention(d, &mut used));
        known.insert(target, idle);
        idle
    }

    /// Does the name stand anywhere besides in its own definition, where something is `used`?
    fn mention(&self, definition: &Definition, used: &mut dyn FnMut(FileId, usize) -> bool) -> bool {
        let word = Finder::new(definition.name.as_str());
        let inside = |file: FileId, at: usize| {
            let span = definition.own.span;
            file == definition.own.file && (span.start as usize..span.end as usize).contains(&at)
        };
        let stands = |text: &str, but: &mut dyn FnMut(usize) -> bool| {
            let is_word = |at: usize| is_apart(text, at, definition.name);
            word.find_iter(text.as_bytes()).any(|at| is_word(at) && !but(at))
        };
        self.others.iter().any(|text| stands(text, &mut |_| false))
            || self.own.iter().any(|(&file, text)| {
                stands(text, &mut |at| inside(file, at) || is_no_use(text, at) || !used(file, at))
            })
    }
}

/// The place of a word in a file.
fn span_at(at: usize) -> Option<Span> {
    let at = u32::try_from(at).ok()?;
    Some(Span::new(at, at))
}

/// Is it in a comment, or where something else of that name is defined?
fn is_no_use(text: &str, at: usize) -> bool {
    let line = text.get(..at).map_or("", |before| before.rsplit('\n').next().unwrap_or_default());
    line.contains('#') || matches!(line.trim(), "def" | "class" | "async def")
}

/// Is the name at this place no part of a longer one?
fn is_apart(text: &str, at: usize, name: Sym) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    let before = at.checked_sub(1).and_then(|n| bytes.get(n));
    !part(before) && !part(bytes.get(at + name.as_str().len()))
}
