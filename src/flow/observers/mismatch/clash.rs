//! Clashes of two devices: in which worlds they differ, and what else must hold there.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, Dd, FALSE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, OriginId, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::models::devices::current_gpu::with_index;
use crate::flow::observers::mismatch::meet::{Clash, Difference, MAX_CLASHES, Party};
use crate::sym::Sym;
use crate::torch::{Elsewhere, Share};
use crate::words::Words;
use crate::world::Backend;

/// Attributes of all values with a device.
static WITH_DEVICE: Words = Words::of("attributes of values with a device");

/// Whether the program itself names the device, so that no caller decides it.
pub(crate) const fn is_fixed(d: Device) -> bool {
    matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome | Device::Other(_))
}

impl Interp<'_> {
    /// Is it only on the CPU, or on the device of a value that a caller passes?
    pub(crate) fn is_unmoved(&self, device: Dd) -> bool {
        let moved = |p: u32| match self.t.places.get(p).0 {
            Device::Cpu => false,
            Device::Of(o) => !is_given(self.t.get_outer(o)),
            _ => true,
        };
        !self.d.any_leaf(device, &moved)
    }

    /// Does the condition depend on nothing but parameters?
    pub(crate) fn asks_parameters(&self, cond: Cond) -> bool {
        let mut atoms = Vec::new();
        self.d.support(cond, &mut atoms);
        let parameter = |v: Value| matches!(v, Value::Outer(o) if matches!(self.t.get_outer(o).key, OuterKey::Param { .. }));
        // A test of a parameter's `dtype` counts as a test of the parameter.
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

    /// Excludes `bad` from the path without a report. A failure that only a guess reaches is not reported, but it raises all the same.
    /// So the code after it is not reached that way, and a second test of the same machine does not make the failure likelier.
    pub(crate) fn raises_unsaid(&mut self, bad: Cond) {
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

    /// The condition that the program's tests of an outside value allow it to be a tensor: it is not `None`, no text, no list.
    pub(crate) fn may_be_a_tensor(&mut self, o: OuterId) -> Cond {
        let other = self.evidence.other_kinds.get(&o).copied().unwrap_or(FALSE);
        let tensor = self.d.not(other);
        let device = self.may_have_a_device(o);
        self.d.and(tensor, device)
    }

    /// The same for any value with a device: it is not `None`, and `hasattr(x, "device")` holds.
    pub(crate) fn may_have_a_device(&mut self, o: OuterId) -> Cond {
        let mut there = crate::flow::domain::diagram::TRUE;
        if let Some(&none) =
            self.tests.atoms.get(&crate::flow::machine::Test::Compare(0, Value::Outer(o), Value::None))
        {
            let none = self.d.atom(none);
            there = self.d.not(none);
        }
        for name in WITH_DEVICE.all() {
            if let Some(&has) = self
                .tests
                .atoms
                .get(&crate::flow::machine::expressions::compare::has_test(Value::Outer(o), Sym::new(name)))
            {
                let has = self.d.atom(has);
                there = self.d.and(there, has);
            }
        }
        there
    }

    /// Is the tensor on the CPU because the user set a flag, and on an accelerator otherwise? Then a tensor whose device the caller
    /// decides is on the CPU, too.
    pub(crate) fn flag_decides(&mut self, device: Dd, there: Cond) -> bool {
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
            // `x.to(device)`, where `device` is an outside value.
            Device::Named(o) => outers.get_outer(o).device,
            _ => false,
        };
        let moved = self.d.where_leaf(device, &mut |p| accelerator(p));
        let moved = self.d.and(moved, there);
        // The path may be restricted to one of several alternatives of another operand, so drop all other atoms.
        let path = self.d.forget(self.path, &|a| !atoms.contains(&a));
        self.d.and(moved, path) != FALSE
    }

    /// Is it an entry of a dict of weights, `state["encoder.weight"]`? Code that edits such a dict has loaded it to the host.
    pub(crate) fn is_saved_weight(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Item { base, key } => {
                let dotted = matches!(key, Some(Value::Str(s, _)) if s.as_str().contains('.'));
                dotted || self.t.get_outer(base).text.contains("state_dict") || self.is_saved_weight(base)
            }
            _ => false,
        }
    }

    /// Was it made with `device=x.device`? Then it is on the device of `x`, whatever that is.
    pub(crate) fn was_made_there(&self, o: OriginId) -> bool {
        o != crate::flow::domain::value::NO_ORIGIN
            && self.t.origins.get(o.0).reason == crate::flow::domain::value::Reason::Made
    }

    /// The same, or was it moved there: `y.to(x.device)`?
    pub(crate) fn was_put_there(&self, o: OriginId) -> bool {
        self.was_made_there(o)
            || o != crate::flow::domain::value::NO_ORIGIN
                && self.t.origins.get(o.0).reason == crate::flow::domain::value::Reason::Moved
    }

    /// The outside value that must be a tensor for this device to count. `None` if that needs no proof.
    pub(crate) fn needs_proof(&self, d: Device) -> Option<OuterId> {
        match d {
            Device::Of(o) if self.t.get_outer(o).tensor => None,
            Device::Of(o) => match self.t.get_outer(o).key {
                OuterKey::Receiver { .. } => None,
                // A required parameter of `forward` counts as a tensor as soon as the code uses it as one.
                OuterKey::Param { module, func, index } if self.t.get_outer(o).with.is_some() => {
                    let params = &self.program.get(module).ir.function(func).params;
                    params.get(usize::from(index)).is_none_or(|p| p.default.is_some()).then_some(o)
                }
                _ => Some(o),
            },
            _ => None,
        }
    }

    /// The condition that the machine has the accelerators among the two devices.
    pub(crate) fn accelerator_condition(&mut self, a: Device, b: Device) -> Cond {
        let backend = |d: Device| match d {
            Device::Other(b) => Some(Some(b)),
            Device::Cuda(_) | Device::CudaSome | Device::Named(_) | Device::Of(_) => Some(None::<Backend>),
            _ => None,
        };
        // Both devices are on one machine, so it has both. `cuda` counts as the current GPU, which is number 0 here.
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

    /// The device of an operation's result. Where PyTorch refuses the devices of two operands, it is unknown.
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
        // The arguments of a module's constructor are as new as the module. So the result is where the other operand was made.
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

    /// May the two devices differ in a way that a strict operation refuses?
    pub(crate) fn may_clash(&mut self, a: Dd, b: Dd) -> bool {
        let (places, outers) = (&self.t.places, &self.t.outers);
        let differ = |x: u32, y: u32| {
            difference(places.get(x).0, places.get(y).0, Sides::default(), outers) != Difference::None
        };
        self.d.zip(a, b, &mut |x, y| u32::from(differ(x, y))).is_some_and(|bad| bad != FALSE)
    }

    /// The condition under which two parties clash, once for each clashing pair of devices that the path allows.
    pub(crate) fn clashes(&mut self, a: &Party, b: &Party) -> Vec<Clash> {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let first = self.have_bare_and_other(a.device, b.device) && self.first_is_current();
        let chosen =
            Sides { on_cuda: (self.chosen_here(a.device, b.device), self.chosen_here(b.device, a.device)) };
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

pub(crate) fn refused(difference: Difference, a: &Party, b: &Party) -> bool {
    let pair = |cpu: &Party, cuda: &Party| {
        let (x, y) = (cpu.dims.none(), cuda.dims.none());
        // Some operations read a number, or copy values, from any device.
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
        // An index may be on the CPU, but not on another GPU.
        Difference::Accelerators => must(a) && must(b) || never_elsewhere(a, b) || never_elsewhere(b, a),
    }
}

/// What else is known about the two sides of an operation, in addition to their devices: for the first and for the second side.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sides {
    /// The function itself puts this side on CUDA whenever CUDA is available.
    pub(crate) on_cuda: (bool, bool),
}

/// Does a caller decide the device? Not if the value is on the device of a module. A device that a module fixes has a rule of its own.
fn is_given(outer: &crate::flow::domain::value::Outer) -> bool {
    outer.varies && outer.with.is_none() && !matches!(outer.key, OuterKey::Receiver { .. })
}

pub(crate) fn difference(
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
        _ => Difference::None,
    }
}
