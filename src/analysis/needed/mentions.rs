//! What a needed name of a file needs in turn: the names that its definition mentions, and the bases of classes.

use rustc_hash::FxHashSet;

use super::{Attributes, MAX_HOPS, MAX_STARS, Want, What};
use crate::analysis::intake::Intake;
use crate::analysis::outline::{Bound, Mention, Outline};
use crate::span::{FileId, Span};
use crate::sym::Sym;

impl Intake {
    pub(super) fn look_at(&mut self, file: FileId, want: Want, hops: u32) {
        if self.is_known(file) {
            return;
        }
        match want.what {
            What::Name(name, attributes) => self.look_at_name(file, name, &attributes, hops),
            What::Own(name, attributes) => {
                if self.outline(file).bound.contains_key(&name) {
                    self.look_at_name(file, name, &attributes, hops);
                }
            }
            What::Names(names) => {
                if self.passed(file, None, &names) {
                    return;
                }
                let outline = self.outline(file);
                for &name in names.iter() {
                    if outline.bound.contains_key(&name) {
                        self.look_at_name(file, name, &names, hops);
                    }
                }
                self.look_through_stars(file, &outline, &What::Names(names), hops);
            }
            What::Bases(name) => self.look_at_bases(file, name, hops),
        }
    }

    fn look_at_name(&mut self, file: FileId, name: Sym, attributes: &Attributes, hops: u32) {
        if self.is_known(file) || self.passed(file, Some(name), attributes) {
            return;
        }
        let outline = self.outline(file);
        let Some(bound) = outline.bound.get(&name) else {
            self.look_through_stars(file, &outline, &What::Name(name, attributes.clone()), hops);
            return;
        };
        let before = self.needed.parts.get(&(file, name)).copied();
        let again = before.is_some_and(|before| before <= hops);
        if !again {
            self.needed.parts.insert((file, name), hops);
        }
        for &bound in bound {
            match bound {
                Bound::Import(n) => {
                    let import = self.import(file, n);
                    if let Some(import) = import {
                        self.need_import(file, &import, attributes, hops);
                    }
                }
                _ if again => {}
                Bound::Part(_) | Bound::Class(_) if hops <= MAX_HOPS => {
                    self.look_through(file, &outline, bound, hops)
                }
                Bound::Class(_) => self.look_at_bases(file, name, hops),
                Bound::Part(_) => {}
            }
        }
    }

    /// Requests `what` from the files that `file` imports with `import *`.
    fn look_through_stars(&mut self, file: FileId, outline: &Outline, what: &What, hops: u32) {
        let Some(importer) = self.importers[file.0 as usize] else { return };
        if outline.stars.len() > MAX_STARS {
            return;
        }
        for &n in &outline.stars {
            let Some(import) = self.import(file, n) else { continue };
            let Some(path) = self.finder.find(importer, import.level, import.module) else { continue };
            let root = self.roots[file.0 as usize].clone();
            self.wanted_roots.entry(path).or_insert(root);
            let what = match what {
                What::Name(name, attributes) | What::Own(name, attributes) => {
                    What::Name(*name, attributes.clone())
                }
                What::Names(names) => What::Names(names.clone()),
                What::Bases(name) => What::Bases(*name),
            };
            self.want(hops, Want { file: path, what });
        }
    }

    /// Requests everything that a part of the file mentions.
    fn look_through(&mut self, file: FileId, outline: &Outline, part: Bound, hops: u32) {
        let Some(ir) = self.module(file) else { return };
        let span = match part {
            Bound::Part(span) => span,
            Bound::Class(class) => ir.class(class).span,
            Bound::Import(_) => return,
        };
        let mentions = outline.within(span);
        let names = |m: &(u32, Mention)| if let Mention::Attribute(name) = m.1 { Some(name) } else { None };
        let attributes: FxHashSet<Sym> = mentions.iter().filter_map(names).collect();
        let attributes: Attributes = attributes.into_iter().collect();
        for &(_, mention) in mentions {
            match mention {
                Mention::Name(name) if outline.bound.contains_key(&name) || !outline.stars.is_empty() => {
                    // The name is one hop further away, whether this file or another one defines it.
                    let Some(importer) = self.path_of(file) else { continue };
                    self.want(hops + 1, Want { file: importer, what: What::Name(name, attributes.clone()) });
                }
                Mention::Import(n) => {
                    let import = self.import(file, n);
                    if let Some(import) = import {
                        self.need_import(file, &import, &attributes, hops + 1);
                    }
                }
                Mention::Name(_) | Mention::Attribute(_) => {}
            }
        }
        if let Bound::Class(class) = part {
            let name = self.module(file).map(|ir| ir.class(class).name);
            if let Some(name) = name {
                self.look_at_bases(file, name, hops);
            }
        }
    }

    /// Follows the bases of a class through all files.
    fn look_at_bases(&mut self, file: FileId, name: Sym, hops: u32) {
        if !self.needed.bases.insert((file, name)) {
            return;
        }
        let outline = self.outline(file);
        let Some(bound) = outline.bound.get(&name) else {
            self.look_through_stars(file, &outline, &What::Bases(name), hops);
            return;
        };
        for &bound in bound {
            match bound {
                Bound::Class(class) => {
                    let Some(ir) = self.module(file) else { continue };
                    let bases: Vec<Span> = ir.args(ir.class(class).bases).iter().map(|a| a.span).collect();
                    let names = bases.iter().flat_map(|&at| outline.within(at));
                    let names: Vec<Mention> = names.map(|&(_, mention)| mention).collect();
                    for mention in names {
                        let (Mention::Name(name) | Mention::Attribute(name)) = mention else { continue };
                        self.look_at_bases(file, name, hops);
                    }
                }
                Bound::Import(n) => {
                    let import = self.import(file, n);
                    let Some((import, importer)) = import.zip(self.importers[file.0 as usize]) else {
                        continue;
                    };
                    let whole = self.finder.find(importer, import.level, import.whole());
                    let holder = self.finder.find(importer, import.level, import.module);
                    let root = self.roots[file.0 as usize].clone();
                    for path in whole.into_iter().chain(holder) {
                        self.wanted_roots.entry(path).or_insert_with(|| root.clone());
                        let name = import.name.unwrap_or(name);
                        self.want(hops, Want { file: path, what: What::Bases(name) });
                    }
                }
                Bound::Part(_) => {}
            }
        }
    }
}
