//! Classes: their bases throughout the project, and what is known about them.

use rustc_hash::FxHashMap;

use super::{ClassKey, Program, Resolved, index};
use crate::ir::{ArgKind, ClassId};
use crate::sym::Sym;

/// A base class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// In the project.
    Class(ClassKey),
    /// A dotted name outside.
    External(Sym),
    /// Not known.
    Unknown,
}

/// The static facts about a class.
#[derive(Clone, Hash, Debug, Default)]
pub struct ClassInfo {
    /// The direct bases.
    pub bases: Vec<Base>,
    /// The class and its bases in the project, nearest first.
    pub mro: Vec<ClassKey>,
    /// The bases outside the project, of the class and of all its bases.
    pub externals: Vec<Sym>,
    /// Whether a base of the class, or of one of its bases, is not known.
    pub unknown_base: bool,
}

/// Longest chain of bases that is followed.
const MAX_DEPTH: usize = 24;
/// The longest list of bases that is put into method resolution order. A base counts once for each class that has it.
const MAX_ORDERED: usize = 128;

/// Fills in every module's `classes`.
pub fn resolve(program: &mut Program) {
    let direct: Vec<Vec<Vec<Base>>> = (0..program.modules.len()).map(|i| direct_bases(program, i)).collect();
    let mut known = FxHashMap::default();
    let all: Vec<Vec<ClassInfo>> = direct
        .iter()
        .enumerate()
        .map(|(i, classes)| {
            (0..classes.len())
                .map(|c| {
                    let key = ClassKey { module: index(i), class: class_id(c) };
                    let mut info = ClassInfo { bases: classes[c].clone(), ..ClassInfo::default() };
                    collect(&direct, key, &mut info, 0);
                    // If each class has at most one base, the list is already in order.
                    if info.mro.iter().any(|&k| parents(&direct, k).nth(1).is_some()) {
                        info.mro = in_order(&direct, key, &mut known, 0).unwrap_or(info.mro);
                    }
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

/// The direct bases in the project.
fn parents(direct: &[Vec<Vec<Base>>], key: ClassKey) -> impl Iterator<Item = ClassKey> {
    direct[key.module.0 as usize][key.class.0 as usize].iter().filter_map(|base| match *base {
        Base::Class(k) => Some(k),
        _ => None,
    })
}

/// The class and its bases in Python's method resolution order (C3): a base that two of them share comes after both. `None` if there are
/// more bases than [`MAX_ORDERED`], or more levels than [`MAX_DEPTH`].
fn in_order(
    direct: &[Vec<Vec<Base>>],
    key: ClassKey,
    known: &mut FxHashMap<ClassKey, Option<Vec<ClassKey>>>,
    depth: usize,
) -> Option<Vec<ClassKey>> {
    if let Some(order) = known.get(&key) {
        return order.clone();
    }
    if depth > MAX_DEPTH {
        return None;
    }
    // Ends the recursion for a class that is its own base; Python accepts no such class.
    known.insert(key, Some(vec![key]));
    let bases: Vec<ClassKey> = parents(direct, key).collect();
    let above: Option<Vec<_>> = bases.iter().map(|&base| in_order(direct, base, known, depth + 1)).collect();
    let Some(mut lists) = above else {
        // The chain from another class may be shorter, so the failure is not cached.
        known.remove(&key);
        return None;
    };
    lists.push(bases);
    if lists.iter().map(Vec::len).sum::<usize>() > MAX_ORDERED {
        known.insert(key, None);
        return None;
    }
    let mut order = vec![key];
    while let Some(next) = next_in_order(&lists) {
        order.push(next);
        lists.iter_mut().for_each(|list| list.retain(|&k| k != next));
    }
    known.insert(key, Some(order.clone()));
    Some(order)
}

/// The first class that comes after no other remaining class.
fn next_in_order(lists: &[Vec<ClassKey>]) -> Option<ClassKey> {
    let mut heads = lists.iter().filter_map(|list| list.first().copied());
    let waits = |&k: &ClassKey| lists.iter().any(|list| list.iter().skip(1).any(|&later| later == k));
    heads.clone().find(|k| !waits(k)).or_else(|| heads.next())
}
