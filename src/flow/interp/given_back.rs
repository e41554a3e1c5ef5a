//! What a function gives: on one way a tensor where its argument is, on another one that it has made on the CPU.

use super::super::atom::{Atom, AtomId};
use super::super::diagram::{FALSE, TRUE};
use super::super::event::{Bite, DeviceName, Kind, Meeting, Operand};
use super::super::value::{Device, OriginId, OuterId, OuterKey, Reason, Value};
use super::{Interp, NO_ORIGIN, Test};
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;
use crate::span::Place;
use crate::world::World;

impl Interp<'_> {
    /// Tells of a function whose results are in two places. Which way it goes says nothing of where its caller's tensors are.
    pub(super) fn check_given_back(&mut self, (module, func): (ModIdx, FuncId), given: Value) {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        if self.muted > 0 || self.exhausted || function.is_generator || function.name == self.known.init {
            return;
        }
        let Some((device, dims)) = self.tensor_place(given, ExprId(function.exprs.start)) else { return };
        if !dims.some() {
            return;
        }
        let leaves = self.device_leaves(device);
        let follows = leaves.iter().find_map(|&(_, d, origin)| match d {
            Device::Of(o) if self.is_given_to(o, module, func) => Some((o, origin)),
            _ => None,
        });
        let made = leaves.iter().find(|&&(_, d, origin)| d == Device::Cpu && self.is_made_there(origin));
        let (Some((o, from)), Some(&(leaf, _, origin))) = (follows, made) else { return };
        let there = self.d.where_leaf(device, &mut |l| l == leaf);
        let there = self.d.and(there, self.path);
        if there == FALSE || there == TRUE || !self.says_nothing_of_places(there) {
            return;
        }
        let place = Place { file: ir.file, span: function.name_span };
        let name = self.t.get_outer(o).text.clone();
        let side = |device, origin| Operand { place, device, chain: self.chain(origin), of_module: false };
        let kind = Kind::Mismatch {
            meeting: Meeting::Returned,
            what: function.name.to_string(),
            stray: Box::new(side(DeviceName::Known("cpu".into()), origin)),
            other: Box::new(side(DeviceName::Varies(name), from)),
        };
        self.emit(kind, place, Bite::in_world(World::Cuda), vec![o]);
        if let Some(pending) = self.events.last_mut() {
            pending.about = vec![o];
        }
    }

    /// Is it a parameter of the function, or a part of one?
    fn is_given_to(&self, o: OuterId, module: ModIdx, func: FuncId) -> bool {
        let mut at = o;
        loop {
            match self.t.get_outer(at).key {
                OuterKey::Item { base, .. } | OuterKey::Attr { base, .. } => at = base,
                OuterKey::Param { module: m, func: f, .. } => return (m, f) == (module, func),
                _ => return false,
            }
        }
    }

    /// Was it made on the CPU, and not sent there?
    fn is_made_there(&self, origin: OriginId) -> bool {
        let mut at = origin;
        let mut made = false;
        while at != NO_ORIGIN {
            let o = *self.t.origins.get(at.0);
            if matches!(o.reason, Reason::Moved | Reason::Given | Reason::Loaded | Reason::Kept) {
                return false;
            }
            made |= matches!(o.reason, Reason::Default | Reason::Made | Reason::Host | Reason::Typed);
            at = o.from;
        }
        made
    }

    /// Does it hang on tests alone that ask neither for devices, nor whether something is there at all, or of which class it is?
    fn says_nothing_of_places(&self, there: super::Cond) -> bool {
        let mut atoms = Vec::new();
        self.d.support(there, &mut atoms);
        let kind = |atom: AtomId| {
            self.tests.iter().any(|(test, &a)| {
                a == atom && matches!(test, Test::Compare(0, _, Value::None) | Test::Compare(20 | 21, ..))
            })
        };
        atoms.iter().all(|&a| {
            let plain = match self.atoms.get(a) {
                Atom::Opaque { .. } => !self.tensor_or_not.contains(&a),
                Atom::Flag { about_devices, .. } => !about_devices,
                _ => false,
            };
            !a.is_hardware() && plain && !kind(a)
        })
    }
}
