//! Two tensors meet: may they, by PyTorch's rules, and if not, where?

use crate::flow::domain::diagram::{Cond, Dd, FALSE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::{Kind, Meeting};
use crate::flow::domain::value::{Device, OriginId, OuterId, Value};
use crate::flow::machine::{Interp, Test};
use crate::flow::observers::mismatch::clash::is_fixed;
use crate::ir::ExprId;
use crate::torch::{ArgRule, Elsewhere, Share};

/// A tensor (or module) at a meeting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    pub(crate) expr: ExprId,
    pub(crate) device: Dd,
    pub(crate) dims: Dims,
    /// The rule for it; the table's for functions.
    pub(crate) rule: Rule,
}

/// What is asked of a party.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) share: Share,
    pub(crate) cpu_ok: Elsewhere,
    pub(crate) cuda_ok: Elsewhere,
}

impl From<&ArgRule> for Rule {
    fn from(a: &ArgRule) -> Self {
        Self { share: a.share, cpu_ok: a.cpu_ok, cuda_ok: a.cuda_ok }
    }
}

impl Rule {
    /// The same device as the others, no exceptions.
    pub(crate) const STRICT: Self =
        Self { share: Share::Must, cpu_ok: Elsewhere::No, cuda_ok: Elsewhere::No };
    /// As in arithmetic: a zero-dimensional CPU tensor may join CUDA ones.
    pub(crate) const ARITHMETIC: Self =
        Self { share: Share::Must, cpu_ok: Elsewhere::ZeroDim, cuda_ok: Elsewhere::Unknown };
}

/// A pair of devices that differ for certain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// They may be the same.
    None,
    /// One is the CPU (the first if `first`), the other an accelerator or meant to vary.
    Cpu { first: bool },
    /// Two accelerators, or two GPUs.
    Accelerators,
    /// One (the first if `first`) is on CUDA since there is CUDA, the other wherever somebody wants it.
    Chosen { first: bool },
}

/// What comes of two parties.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pair {
    Fine,
    /// They differ, but not where this point is known to be reached.
    Unreached,
    Refused,
}

/// More pairs of devices than these are not looked at.
pub(crate) const MAX_CLASHES: usize = 6;

/// Two devices that do not go together, and when the two parties differ at all.
pub(crate) struct Clash {
    pub(crate) bad: Cond,
    /// When it is these two.
    pub(crate) here: Cond,
    pub(crate) pair: (Device, OriginId, Device, OriginId),
    /// The first is the one that is in the wrong place.
    pub(crate) first_is_stray: bool,
    pub(crate) difference: Difference,
    /// The part of a batch that was left on the host, if it turns out to be a tensor.
    pub(crate) part: Option<OuterId>,
}

impl Interp<'_> {
    /// The value as a party; nothing for values that are no tensors.
    pub(crate) fn party(&mut self, v: Value, e: ExprId, rule: Rule) -> Option<Party> {
        let (device, dims) = self.tensor_place(v, e)?;
        Some(Party { expr: e, device, dims, rule })
    }

    /// Where a value lives if it is a tensor, and whether it has no dimensions.
    pub(crate) fn tensor_place(&mut self, v: Value, e: ExprId) -> Option<(Dd, Dims)> {
        match v {
            Value::Tensor(id) => {
                let t = self.get_tensor(id);
                Some((t.device, t.dims))
            }
            Value::Outer(o) if o != self.known.device_count && !self.evidence.size_proofs.contains(&o) => {
                Some((self.device_of_outer(o, e), Dims::ANY))
            }
            Value::Choice(d) => {
                let mut dims = None;
                let device = self.choice_place(d, e, &mut dims);
                dims.map(|z| (device, z))
            }
            _ => None,
        }
    }

    fn choice_place(&mut self, d: Dd, e: ExprId, dims: &mut Option<Dims>) -> Dd {
        if let Some(payload) = self.d.as_leaf(d) {
            let v = *self.t.values.get(payload);
            return match self.tensor_place(v, e) {
                Some((device, z)) => {
                    *dims = Some(dims.map_or(z, |old| old.join(z)));
                    device
                }
                None => self.unknown_device(),
            };
        }
        let (atom, hi, lo) = self.d.root(d);
        let cond = self.d.atom(atom);
        let (a, b) = (self.choice_place(hi, e, dims), self.choice_place(lo, e, dims));
        self.ite_device(cond, a, b)
    }

    /// Tells of the first pair of parties that PyTorch refuses. True if there is one.
    pub(crate) fn meet(&mut self, meeting: Meeting, what: &str, at: ExprId, parties: &[Party]) -> bool {
        let mut refused = false;
        for (i, a) in parties.iter().enumerate() {
            for b in &parties[i + 1..] {
                if a.device == b.device {
                    continue;
                }
                if a.rule.share == Share::Must && b.rule.share == Share::Must {
                    self.note_module_met(a.device, b.device);
                }
                match self.meet_pair(meeting, what, at, a, b) {
                    Pair::Fine => {}
                    // Where this pair differs nobody gets; another one may elsewhere.
                    Pair::Unreached => refused = true,
                    Pair::Refused => return true,
                }
            }
        }
        refused
    }

    fn meet_pair(&mut self, meeting: Meeting, what: &str, at: ExprId, a: &Party, b: &Party) -> Pair {
        let mut result = Pair::Fine;
        let mut clashes = self.clashes(a, b);
        if clashes.is_empty() {
            clashes = self.left_of_batch(a, b);
        }
        for clash in clashes {
            match self.tell_clash(meeting, what, at, (a, b), &clash) {
                Pair::Fine => {}
                // With other accelerators other devices may meet.
                Pair::Unreached => result = Pair::Unreached,
                Pair::Refused => return Pair::Refused,
            }
        }
        result
    }

    fn tell_clash(
        &mut self,
        meeting: Meeting,
        what: &str,
        at: ExprId,
        (a, b): (&Party, &Party),
        clash: &Clash,
    ) -> Pair {
        let (da, oa, db, ob) = clash.pair;
        if self.by_convention(da, oa, db, ob) {
            return Pair::Refused;
        }
        let involved = match (clash.difference, da, db) {
            (Difference::Accelerators, Device::Of(_), _) | (Difference::Accelerators, _, Device::Of(_)) => {
                self.at_least(2)
            }
            _ => self.accelerator_condition(da, db),
        };
        let (host, other) = if clash.first_is_stray { (a.device, db) } else { (b.device, da) };
        if matches!(other, Device::Of(_) | Device::Named(_)) && self.flag_decides(host, involved) {
            return Pair::Unreached;
        }
        let mut bad = self.d.and(clash.bad, involved);
        bad = self.where_both_are_tensors([da, db], bad);
        // What the program knows of where these are holds, and is no coincidence.
        let before = self.path;
        self.assume_places(clash.difference, [(da, oa), (db, ob)]);
        if let Some(part) = clash.part {
            let there = self.may_be_a_tensor(part);
            self.path = self.d.and(self.path, there);
        }
        // Nor is what a parameter is that a tensor hangs on which nobody has moved: `if mask is None: mask = torch.ones(n)`.
        if [a.device, b.device].into_iter().all(|d| self.is_unmoved(d)) && self.asks_parameters(clash.here) {
            self.path = self.d.and(self.path, clash.here);
        }
        let tensors = !self.for_no_tensors();
        let bite = self.bite(bad, false).filter(|_| tensors);
        // The message is about one pair of devices; with other accelerators others may meet.
        let elsewhere = self.d.not(involved);
        let elsewhere = self.d.and(clash.bad, elsewhere);
        let mut also = if bite.is_some() { self.machines(elsewhere) } else { Vec::new() };
        // Without any accelerator everything is in one place.
        also.retain(|kind| kind.iter().any(|p| matches!(p, crate::world::Premise::With(_))));
        self.path = before;
        let Some(mut bite) = bite else {
            if tensors && [da, db].into_iter().all(is_fixed) {
                self.raises_unsaid(bad);
            }
            return Pair::Unreached;
        };
        bite.also.extend(also);
        // A handler has made another error of it, which is what a test waits for.
        if self.run.awaiting > 0 && self.caught_around() {
            self.survive(bad, FALSE);
            return Pair::Refused;
        }
        // What is no tensor and has fields of its own says by these where its parts are, unless it is asked for a device.
        let device = self.known.device;
        let asked = |i: &Self, o: OuterId| {
            i.tests
                .atoms
                .contains_key(&crate::flow::machine::expressions::compare::has_test(Value::Outer(o), device))
        };
        let plain = |i: &Self, d: Device| !matches!(d, Device::Of(o) if i.has_fields(o) && !asked(i, o));
        let needs =
            [(da, oa), (db, ob)].into_iter().filter(|&(d, o)| !(self.was_put_there(o) && plain(self, d)));
        let needs = needs.filter_map(|(d, _)| self.needs_proof(d));
        let part = clash.part.filter(|&o| !self.t.get_outer(o).tensor);
        let read = [oa, ob].into_iter().filter_map(|origin| self.file_part(origin));
        let read: Vec<OuterId> = read.collect();
        let needs = needs.chain(part).chain(read.iter().copied());
        let needs: Vec<OuterId> = needs.filter(|&o| !self.is_gradient(o)).collect();
        let about = [da, db].into_iter().filter_map(|d| if let Device::Of(o) = d { Some(o) } else { None });
        let about: Vec<OuterId> = about.chain(read).collect();
        let (x, y) = (self.operand(a.expr, da, oa), self.operand(b.expr, db, ob));
        let (stray, other) = if clash.first_is_stray { (x, y) } else { (y, x) };
        let place = self.place(at);
        let kind =
            Kind::Mismatch { meeting, what: what.to_owned(), stray: Box::new(stray), other: Box::new(other) };
        self.emit(kind, place, bite, needs);
        if let Some(pending) = self.events.last_mut() {
            pending.about = about;
        }
        // What raises does not go on, unless that is all there is: what comes after may have causes of its own.
        if self.caught_around() {
            self.survive(bad, FALSE);
            return Pair::Refused;
        }
        let past = self.atoms.add(crate::flow::domain::atom::Atom::Past);
        let (past, fine) = (self.d.atom(past), self.d.not(bad));
        let on = self.d.or(fine, past);
        self.path = self.d.and(self.path, on);
        Pair::Refused
    }
    /// Where it goes wrong without the cases in which one of the two names no device, or is no tensor.
    fn where_both_are_tensors(&mut self, devices: [Device; 2], mut bad: Cond) -> Cond {
        for d in devices {
            // Who names no device means the default one.
            if let Device::Named(o) = d
                && let Some(&none) = self.tests.atoms.get(&Test::Compare(0, Value::Outer(o), Value::None))
            {
                let none = self.d.atom(none);
                let named = self.d.not(none);
                bad = self.d.and(bad, named);
            }
            // Where the program knows that it is no tensor, none meets.
            if let Device::Of(o) = d
                && let Some(&other) = self.evidence.no_tensors.get(&o)
            {
                let tensor = self.d.not(other);
                bad = self.d.and(bad, tensor);
            }
        }
        bad
    }

    /// Goes on where these outside things are where the two parties have them.
    fn assume_places(&mut self, difference: Difference, devices: [(Device, OriginId); 2]) {
        for (d, origin) in devices {
            if let Device::Of(o) | Device::Named(o) = d {
                let there = match difference {
                    Difference::Chosen { .. } => self.outer_is_on(o, "cpu"),
                    _ => self.if_on_cuda(o),
                };
                self.path = self.d.and(self.path, there);
            }
            // Nor is that it is a tensor, of which this is the device, or whatever else has one.
            if let Device::Of(o) = d {
                let there = if self.was_put_there(origin) {
                    self.may_have_a_device(o)
                } else {
                    self.may_be_a_tensor(o)
                };
                self.path = self.d.and(self.path, there);
            }
        }
    }
}
