//! Two tensors meet: may they, by PyTorch's rules, and if not, where?

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, Dd, FALSE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::{Kind, Meeting};
use crate::flow::domain::value::{Device, OriginId, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::models::devices::current_gpu::with_index;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{ArgRule, Elsewhere, Share};
use crate::world::Backend;

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
const MAX_CLASHES: usize = 6;

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
        for d in [da, db] {
            // Who names no device means the default one.
            if let Device::Named(o) = d
                && let Some(&none) = self.tests.atoms.get(&crate::flow::machine::Test::Compare(
                    0,
                    Value::Outer(o),
                    Value::None,
                ))
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
        // What the program knows of where these are holds, and is no coincidence.
        let before = self.path;
        for (d, origin) in [(da, oa), (db, ob)] {
            if let Device::Of(o) | Device::Named(o) = d {
                let there = match clash.difference {
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
        if let Some(part) = clash.part {
            let there = self.may_be_a_tensor(part);
            self.path = self.d.and(self.path, there);
        }
        // Nor is what a parameter is that a tensor hangs on which nobody has moved: `if mask is None: mask = torch.ones(n)`.
        if [a.device, b.device].into_iter().all(|d| self.is_unmoved(d)) && self.asks_parameters(clash.here) {
            self.path = self.d.and(self.path, clash.here);
        }
        let guess = [da, db].into_iter().any(|d| self.is_one_of_two_kinds(d, bad));
        let tensors = !guess && !self.for_no_tensors();
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
            i.tests.atoms.contains_key(&crate::flow::machine::compare::has_test(Value::Outer(o), device))
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

    /// Is it on the CPU, or where something is that a caller gives, and nowhere else?
    fn is_unmoved(&self, device: Dd) -> bool {
        let moved = |p: u32| match self.t.places.get(p).0 {
            Device::Cpu => false,
            Device::Of(o) => !is_given(self.t.get_outer(o)),
            _ => true,
        };
        !self.d.any_leaf(device, &moved)
    }

    /// Does the condition hang on parameters alone, whatever else the function does?
    fn asks_parameters(&self, cond: Cond) -> bool {
        let mut atoms = Vec::new();
        self.d.support(cond, &mut atoms);
        let parameter = |v: Value| matches!(v, Value::Outer(o) if matches!(self.t.get_outer(o).key, OuterKey::Param { .. }));
        // Of what kind its numbers are is as much the caller's business as what it is.
        let kind = |v: Value| match v {
            Value::Outer(o) => match self.t.get_outer(o).key {
                OuterKey::Attr { base, name } => name.as_str() == "dtype" && parameter(Value::Outer(base)),
                _ => false,
            },
            _ => false,
        };
        let of_parameter = |test: &crate::flow::machine::Test| match *test {
            crate::flow::machine::Test::Truth(v) | crate::flow::machine::Test::Compare(_, v, _) => {
                parameter(v) || kind(v)
            }
            crate::flow::machine::Test::Expr(..) => false,
        };
        let asked = |atom| self.tests.atoms.iter().any(|(test, &of)| of == atom && of_parameter(test));
        atoms.into_iter().all(asked)
    }

    /// What would only be reached by a coincidence is not told, and raises all the same: nothing after it is reached that
    /// way, and a test that asks for the same machine again makes it no less of one.
    fn raises_unsaid(&mut self, bad: Cond) {
        if self.run.muted > 0 || self.run.exhausted {
            return;
        }
        if self.caught_around() {
            self.survive(bad, FALSE);
            return;
        }
        let fine = self.d.not(bad);
        self.path = self.d.and(self.path, fine);
    }

    /// What the program has asked about an outside thing, answered as for a tensor: it is not `None`, no text, no list.
    pub(crate) fn may_be_a_tensor(&mut self, o: OuterId) -> Cond {
        let other = self.evidence.other_kinds.get(&o).copied().unwrap_or(FALSE);
        let tensor = self.d.not(other);
        let device = self.may_have_a_device(o);
        self.d.and(tensor, device)
    }

    /// The same for anything that has a device: it is not `None`, and `hasattr(x, "device")` holds.
    fn may_have_a_device(&mut self, o: OuterId) -> Cond {
        let mut there = crate::flow::domain::diagram::TRUE;
        if let Some(&none) =
            self.tests.atoms.get(&crate::flow::machine::Test::Compare(0, Value::Outer(o), Value::None))
        {
            let none = self.d.atom(none);
            there = self.d.not(none);
        }
        for name in ["device", "dtype", "shape", "is_cuda", "to"] {
            if let Some(&has) = self
                .tests
                .atoms
                .get(&crate::flow::machine::compare::has_test(Value::Outer(o), Sym::new(name)))
            {
                let has = self.d.atom(has);
                there = self.d.and(there, has);
            }
        }
        there
    }

    /// Is the tensor on the CPU since the user has said so, and on an accelerator otherwise? Then what lives wherever
    /// somebody wants it is on the CPU, too.
    fn flag_decides(&mut self, device: Dd, there: Cond) -> bool {
        let mut atoms = Vec::new();
        self.d.support(device, &mut atoms);
        atoms.retain(|&a| matches!(self.atoms.get(a), Atom::Flag { about_devices: true, .. }));
        if atoms.is_empty() {
            return false;
        }
        let places = &self.t.places;
        let outers = &self.t;
        let accelerator = |p: u32| match places.get(p).0 {
            Device::Cuda(_) | Device::CudaSome | Device::Other(_) => true,
            // `x.to(device)` where a device is given.
            Device::Named(o) => outers.get_outer(o).device,
            _ => false,
        };
        let moved = self.d.where_leaf(device, &mut |p| accelerator(p));
        let moved = self.d.and(moved, there);
        // Another operand may be looked at one way after the other, of which this is one.
        let path = self.d.forget(self.path, &|a| !atoms.contains(&a));
        self.d.and(moved, path) != FALSE
    }

    /// An entry of a dict of weights, `state["encoder.weight"]`: who edits those has loaded them to the host.
    pub(crate) fn is_saved_weight(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Item { base, key } => {
                let dotted = matches!(key, Some(Value::Str(s, _)) if s.as_str().contains('.'));
                dotted || self.t.get_outer(base).text.contains("state_dict") || self.is_saved_weight(base)
            }
            _ => false,
        }
    }

    /// Was it made with `device=x.device`? Then it is there whatever `x` is.
    pub(crate) fn was_made_there(&self, o: OriginId) -> bool {
        o != crate::flow::domain::value::NO_ORIGIN
            && self.t.origins.get(o.0).reason == crate::flow::domain::value::Reason::Made
    }

    /// The same of what was moved: `y.to(x.device)`.
    pub(crate) fn was_put_there(&self, o: OriginId) -> bool {
        self.was_made_there(o)
            || o != crate::flow::domain::value::NO_ORIGIN
                && self.t.origins.get(o.0).reason == crate::flow::domain::value::Reason::Moved
    }

    /// The outside thing that must turn out to be a tensor for this device to count.
    pub(crate) fn needs_proof(&self, d: Device) -> Option<OuterId> {
        match d {
            Device::Of(o) if self.t.get_outer(o).tensor => None,
            Device::Of(o) => match self.t.get_outer(o).key {
                OuterKey::Receiver { .. } => None,
                // What `forward` must be given is a tensor where it is used like one.
                OuterKey::Param { module, func, index } if self.t.get_outer(o).with.is_some() => {
                    let params = &self.program.get(module).ir.function(func).params;
                    params.get(usize::from(index)).is_none_or(|p| p.default.is_some()).then_some(o)
                }
                _ => Some(o),
            },
            _ => None,
        }
    }

    /// The condition that the accelerators among the two devices are there.
    pub(crate) fn accelerator_condition(&mut self, a: Device, b: Device) -> Cond {
        let backend = |d: Device| match d {
            Device::Other(b) => Some(Some(b)),
            Device::Cuda(_) | Device::CudaSome | Device::Named(_) | Device::Of(_) => Some(None::<Backend>),
            _ => None,
        };
        // The two are on one machine, so it has them both. `cuda` is the current one.
        let index = |d: Device| match d {
            Device::Cuda(index) => Some(index.unwrap_or(0)),
            _ => None,
        };
        if let (Some(x), Some(y)) = (index(a), index(b))
            && x != y
        {
            return self.d.atom(crate::flow::domain::atom::gpus_at_least(x.max(y) + 1));
        }
        match backend(a).or_else(|| backend(b)) {
            Some(b) => self.available(b),
            None => crate::flow::domain::diagram::TRUE,
        }
    }

    /// Where the result lives of tensors that do not go together everywhere: unknown where they do not.
    pub(crate) fn unless_refused(&mut self, parties: &[Party], device: Dd) -> Dd {
        let (mut bad, mut host) = (FALSE, None);
        for (i, a) in parties.iter().enumerate() {
            for b in &parties[i + 1..] {
                if let Some(clash) = self.clashes(a, b).first() {
                    bad = self.d.or(bad, clash.bad);
                    let (da, oa, db, ob) = clash.pair;
                    host = match (da, db) {
                        (Device::Cpu, other) if self.inside_constructor(other) => Some(oa),
                        (other, Device::Cpu) if self.inside_constructor(other) => Some(ob),
                        _ => host,
                    };
                }
            }
        }
        // What a module is made of is as new as the module: the result is where the other one was made.
        if let Some(origin) = host {
            let cpu = self.at(Device::Cpu, origin);
            return self.ite_device(bad, cpu, device);
        }
        let unknown = match self.events.last().map(|p| (&p.event.kind, p.event.place)) {
            Some((Kind::Mismatch { .. }, place)) => {
                let told = self.origin(
                    place,
                    crate::flow::domain::value::Reason::Refused,
                    crate::flow::domain::value::NO_ORIGIN,
                );
                self.at(Device::Unknown, told)
            }
            _ => self.unknown_device(),
        };
        self.ite_device(bad, unknown, device)
    }

    /// Do two devices differ in some way that a strict operation refuses?
    pub(crate) fn may_clash(&mut self, a: Dd, b: Dd) -> bool {
        let (places, outers) = (&self.t.places, &self.t.outers);
        let differ = |x: u32, y: u32| {
            difference(places.get(x).0, places.get(y).0, Sides::default(), outers) != Difference::None
        };
        self.d.zip(a, b, &mut |x, y| u32::from(differ(x, y))).is_some_and(|bad| bad != FALSE)
    }

    /// When two parties differ, with each pair of devices that the path allows.
    pub(crate) fn clashes(&mut self, a: &Party, b: &Party) -> Vec<Clash> {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let first = self.have_bare_and_other(a.device, b.device) && self.first_is_current();
        let chosen = Sides {
            on_cuda: (self.chosen_here(a.device, b.device), self.chosen_here(b.device, a.device)),
            on_this_gpu: (self.on_this_gpu(a.device, b.device), self.on_this_gpu(b.device, a.device)),
        };
        let zipped = {
            let places = &self.t.places;
            let outers = &self.t.outers;
            let differ = |x: u32, y: u32| {
                let ((da, _), (db, _)) = (*places.get(x), *places.get(y));
                refused(difference(with_index(da, first), with_index(db, first), chosen, outers), a, b)
            };
            self.d.zip(a.device, b.device, &mut |x, y| {
                let bad = differ(x, y);
                if bad {
                    pairs.push((x, y));
                }
                u32::from(bad)
            })
        };
        let mut clashes: Vec<Clash> = Vec::new();
        let Some(bad) = zipped.filter(|&bad| bad != FALSE) else { return clashes };
        for (x, y) in pairs {
            let here = self.d.zip(a.device, b.device, &mut |p, q| u32::from(p == x && q == y));
            let here = here.filter(|&here| self.d.and(self.path, here) != FALSE);
            if let Some(here) = here {
                let ((da, oa), (db, ob)) = (*self.t.places.get(x), *self.t.places.get(y));
                let difference =
                    difference(with_index(da, first), with_index(db, first), chosen, &self.t.outers);
                let first_is_stray = matches!(
                    difference,
                    Difference::Cpu { first: true } | Difference::Chosen { first: true }
                ) || difference == Difference::Accelerators
                    && matches!(db, Device::Of(_));
                let pair = (da, oa, db, ob);
                clashes.push(Clash { bad, here, pair, first_is_stray, difference, part: None });
                if clashes.len() == MAX_CLASHES {
                    break;
                }
            }
        }
        clashes
    }
}

/// A device that the program itself names, not somebody else.
const fn is_fixed(d: Device) -> bool {
    matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome | Device::Other(_))
}

pub(crate) fn refused(difference: Difference, a: &Party, b: &Party) -> bool {
    let pair = |cpu: &Party, cuda: &Party| {
        let (x, y) = (cpu.dims.none(), cuda.dims.none());
        // A number that is read from wherever it is, the values of a copy.
        if cuda.rule.cuda_ok.accepts(y, x) {
            return false;
        }
        match (cpu.rule.cpu_ok, cuda.rule.cuda_ok) {
            (Elsewhere::Unknown, Elsewhere::Unknown) => {
                cpu.rule.share == Share::Must && cuda.rule.share == Share::Must && x == Some(false)
            }
            (Elsewhere::Unknown, cuda_ok) => cuda_ok.refuses(y, x),
            (cpu_ok, _) => cpu_ok.refuses(x, y),
        }
    };
    let must = |p: &Party| p.rule.share == Share::Must;
    let never_elsewhere = |p: &Party, other: &Party| {
        p.rule.share == Share::Free && p.rule.cuda_ok.refuses(p.dims.none(), other.dims.none())
    };
    match difference {
        Difference::None => false,
        Difference::Cpu { first: true } => pair(a, b),
        Difference::Cpu { first: false } => pair(b, a),
        Difference::Chosen { .. } => must(a) && must(b),
        // An index may be on the CPU, and not on another GPU.
        Difference::Accelerators => must(a) && must(b) || never_elsewhere(a, b) || never_elsewhere(b, a),
    }
}

/// What is known of the two sides of a meeting besides their devices: each is true of the first, or of the second.
#[derive(Clone, Copy, Default)]
struct Sides {
    /// It is on CUDA since there is CUDA, by the function's own choice.
    on_cuda: (bool, bool),
    /// The function has sent it to one GPU, for the other side is on one.
    on_this_gpu: (bool, bool),
}

/// Does a caller decide where it is? What lives with a module is where that is, and what a module fixes has a rule of its own.
fn is_given(outer: &crate::flow::domain::value::Outer) -> bool {
    outer.varies && outer.with.is_none() && !matches!(outer.key, OuterKey::Receiver { .. })
}

fn difference(
    a: Device,
    b: Device,
    chosen: Sides,
    outers: &[crate::flow::domain::value::Outer],
) -> Difference {
    use Device::{Cpu, Cuda, CudaSome, Meta, Named, Of, Other, Unknown};
    let varies = |d: Device| match d {
        Named(o) => outers[o.0 as usize].device,
        Of(o) => outers[o.0 as usize].varies,
        _ => false,
    };
    let given = |o: OuterId| is_given(&outers[o.0 as usize]);
    match (a, b) {
        (Unknown | Meta, _) | (_, Unknown | Meta) | (Cpu, Cpu) => Difference::None,
        (Cpu, Cuda(_) | CudaSome | Other(_)) => Difference::Cpu { first: true },
        (Cuda(_) | CudaSome | Other(_), Cpu) => Difference::Cpu { first: false },
        (Cpu, d) if varies(d) => Difference::Cpu { first: true },
        (d, Cpu) if varies(d) => Difference::Cpu { first: false },
        (Cuda(Some(x)), Cuda(Some(y))) if x != y => Difference::Accelerators,
        (Other(x), Other(y)) if x != y => Difference::Accelerators,
        (Other(_), Cuda(_) | CudaSome) | (Cuda(_) | CudaSome, Other(_)) => Difference::Accelerators,
        (Cuda(None), Of(o)) if chosen.on_cuda.0 && given(o) => Difference::Chosen { first: true },
        (Of(o), Cuda(None)) if chosen.on_cuda.1 && given(o) => Difference::Chosen { first: false },
        (Cuda(_), Of(o)) if chosen.on_this_gpu.0 && given(o) => Difference::Accelerators,
        (Of(o), Cuda(_)) if chosen.on_this_gpu.1 && given(o) => Difference::Accelerators,
        _ => Difference::None,
    }
}
