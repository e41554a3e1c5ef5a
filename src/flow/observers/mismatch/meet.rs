//! An operation takes two tensors: does PyTorch allow their devices, and if not, on which machines?

use crate::flow::domain::diagram::{Cond, Dd, FALSE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::{Kind, Meeting};
use crate::flow::domain::value::{Device, OriginId, OuterId, Value};
use crate::flow::machine::{Interp, Test};
use crate::flow::observers::mismatch::clash::is_fixed;
use crate::ir::ExprId;
use crate::torch::{ArgRule, Elsewhere, Share};

/// A tensor or module that takes part in an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    pub(crate) expr: ExprId,
    pub(crate) device: Dd,
    pub(crate) dims: Dims,
    /// The device rule for this party. For functions it comes from the table.
    pub(crate) rule: Rule,
}

/// What an operation requires of the device of a party.
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
    /// The same device as the others, without exceptions.
    pub(crate) const STRICT: Self =
        Self { share: Share::Must, cpu_ok: Elsewhere::No, cuda_ok: Elsewhere::No };
    /// As in arithmetic: PyTorch accepts a zero-dimensional CPU tensor together with CUDA tensors.
    pub(crate) const ARITHMETIC: Self =
        Self { share: Share::Must, cpu_ok: Elsewhere::ZeroDim, cuda_ok: Elsewhere::Unknown };
}

/// How two devices differ for certain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// They may be equal.
    None,
    /// One is the CPU (the first if `first`). The other is an accelerator, or the caller decides it.
    Cpu { first: bool },
    /// Two accelerators, or two GPUs.
    Accelerators,
    /// The function puts one (the first if `first`) on CUDA whenever CUDA is available. The caller decides the other.
    Chosen { first: bool },
}

/// The result of a check of two parties.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pair {
    Fine,
    /// They differ, but the analysis does not know that the program reaches this point where they do.
    Unreached,
    Refused,
}

/// The maximum number of pairs of devices to check for two parties.
pub(crate) const MAX_CLASHES: usize = 6;

/// A pair of devices that PyTorch refuses together. `bad` is the condition that the two parties clash, with this or another pair.
pub(crate) struct Clash {
    pub(crate) bad: Cond,
    /// The condition that the parties have this pair of devices.
    pub(crate) here: Cond,
    pub(crate) pair: (Device, OriginId, Device, OriginId),
    /// Whether the first party is the one on the wrong device.
    pub(crate) first_is_stray: bool,
    pub(crate) difference: Difference,
    /// The part of a batch that stayed on the host. The clash is real only if that part is a tensor.
    pub(crate) part: Option<OuterId>,
}

impl Interp<'_> {
    /// The value as a party, or `None` for a value that is not a tensor.
    pub(crate) fn party(&mut self, v: Value, e: ExprId, rule: Rule) -> Option<Party> {
        let (device, dims) = self.tensor_place(v, e)?;
        Some(Party { expr: e, device, dims, rule })
    }

    /// The device of a value if it is a tensor, and whether it has zero dimensions.
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

    /// Reports the first pair of parties that PyTorch refuses. True if two parties differ, even where the program may not reach that.
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
                    // The program does not go on where this pair differs. Another pair may differ elsewhere.
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
                // On machines with other accelerators, another pair of devices may clash.
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
        // What the program knows about these devices holds, and needs no guess.
        let before = self.path;
        self.assume_places(clash.difference, [(da, oa), (db, ob)]);
        if let Some(part) = clash.part {
            let there = self.may_be_a_tensor(part);
            self.path = self.d.and(self.path, there);
        }
        // Neither does a test of a parameter that decides a tensor which no code has moved: `if mask is None: mask = torch.ones(n)`.
        if [a.device, b.device].into_iter().all(|d| self.is_unmoved(d)) && self.asks_parameters(clash.here) {
            self.path = self.d.and(self.path, clash.here);
        }
        let tensors = !self.for_no_tensors();
        let bite = self.bite(bad, false).filter(|_| tensors);
        // The message names one pair of devices. On machines with other accelerators, other pairs may clash.
        let elsewhere = self.d.not(involved);
        let elsewhere = self.d.and(clash.bad, elsewhere);
        let mut also = if bite.is_some() { self.machines(elsewhere) } else { Vec::new() };
        // On a machine without an accelerator, all tensors are on the CPU.
        also.retain(|kind| kind.iter().any(|p| matches!(p, crate::world::Premise::With(_))));
        self.path = before;
        let Some(mut bite) = bite else {
            if tensors && [da, db].into_iter().all(is_fixed) {
                self.raises_unsaid(bad);
            }
            return Pair::Unreached;
        };
        bite.also.extend(also);
        // A handler turns the error into another one, and a test that expects an error accepts that.
        if self.run.awaiting > 0 && self.caught_around() {
            self.survive(bad, FALSE);
            return Pair::Refused;
        }
        // An object with attributes that is not a tensor is on the device of its parts, unless the program tests whether it has `device`.
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
        self.after_failure(bad);
        Pair::Refused
    }

    /// After a reported failure, code is reached only through `Past` where `bad` holds: it may contain bugs with causes of their own.
    pub(crate) fn after_failure(&mut self, bad: Cond) {
        if self.caught_around() {
            self.survive(bad, FALSE);
            return;
        }
        let past = self.atoms.add(crate::flow::domain::atom::Atom::Past);
        let (past, fine) = (self.d.atom(past), self.d.not(bad));
        let on = self.d.or(fine, past);
        self.path = self.d.and(self.path, on);
    }

    /// Restricts `bad` to the cases in which both sides are tensors and name a device.
    fn where_both_are_tensors(&mut self, devices: [Device; 2], mut bad: Cond) -> Cond {
        for d in devices {
            // `None` as a device means the default device.
            if let Device::Named(o) = d
                && let Some(&none) = self.tests.atoms.get(&Test::Compare(0, Value::Outer(o), Value::None))
            {
                let none = self.d.atom(none);
                let named = self.d.not(none);
                bad = self.d.and(bad, named);
            }
            // Exclude the paths on which the program knows that the value is not a tensor.
            if let Device::Of(o) = d
                && let Some(&other) = self.evidence.no_tensors.get(&o)
            {
                let tensor = self.d.not(other);
                bad = self.d.and(bad, tensor);
            }
        }
        bad
    }

    /// Restricts the path to the cases in which these outside values are on the devices that the clash needs.
    fn assume_places(&mut self, difference: Difference, devices: [(Device, OriginId); 2]) {
        for (d, origin) in devices {
            if let Device::Of(o) | Device::Named(o) = d {
                let there = match difference {
                    Difference::Chosen { .. } => self.outer_is_on(o, "cpu"),
                    _ => self.if_on_cuda(o),
                };
                self.path = self.d.and(self.path, there);
            }
            // The clash also needs the value to be a tensor, or, for `x.device`, to have a device.
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
