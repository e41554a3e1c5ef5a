//! Classes: their bases through the project, and what they are.

use super::{ClassKey, Program, Resolved, index};
use crate::ir::{ArgKind, ClassId};
use crate::sym::Sym;

/// A base class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// In the project.
    Class(ClassKey),
    /// A dotted name outside.
    External(Sym),
    /// Not known.
    Unknown,
}

/// What is known of a class without running anything.
#[derive(Clone, Debug, Default)]
pub struct ClassInfo {
    /// The direct bases.
    pub bases: Vec<Base>,
    /// The class and its bases in the project, nearest first.
    pub mro: Vec<ClassKey>,
    /// The bases outside the project, of it and of all its bases.
    pub externals: Vec<Sym>,
    /// Is one of the bases, here or further up, not known?
    pub unknown_base: bool,
}

/// Longest chain of bases that is followed.
const MAX_DEPTH: usize = 24;

/// Fills in every module's `classes`.
pub fn resolve(program: &mut Program) {
    let direct: Vec<Vec<Vec<Base>>> = (0..program.modules.len()).map(|i| direct_bases(program, i)).collect();
    let all: Vec<Vec<ClassInfo>> = direct
        .iter()
        .enumerate()
        .map(|(i, classes)| {
            (0..classes.len())
                .map(|c| {
                    let key = ClassKey { module: index(i), class: class_id(c) };
                    let mut info = ClassInfo { bases: classes[c].clone(), ..ClassInfo::default() };
                    collect(&direct, key, &mut info, 0);
                    info
                })
                .collect()
        })
        .collect();
    for (linked, classes) in program.modules.iter_mut().zip(all) {
        linked.classes = classes;
    }
}

fn class_id(c: usize) -> ClassId {
    ClassId(u32::try_from(c).unwrap_or(u32::MAX))
}

fn direct_bases(program: &Program, module: usize) -> Vec<Vec<Base>> {
    let linked = &program.modules[module];
    let base = |arg: &crate::ir::Arg| match program.resolve_expr(index(module), arg.value) {
        Some(Resolved::Class(key)) => Base::Class(key),
        Some(Resolved::External(path)) => Base::External(path),
        _ => Base::Unknown,
    };
    linked
        .ir
        .classes
        .iter()
        .map(|class| {
            linked.ir.args(class.bases).iter().filter(|a| a.kind == ArgKind::Positional).map(base).collect()
        })
        .collect()
}

fn collect(direct: &[Vec<Vec<Base>>], key: ClassKey, info: &mut ClassInfo, depth: usize) {
    if depth > MAX_DEPTH || info.mro.contains(&key) {
        return;
    }
    info.mro.push(key);
    for base in &direct[key.module.0 as usize][key.class.0 as usize] {
        match *base {
            Base::Class(k) => collect(direct, k, info, depth + 1),
            Base::External(path) if !info.externals.contains(&path) => info.externals.push(path),
            Base::External(_) => {}
            Base::Unknown => info.unknown_base = true,
        }
    }
}
