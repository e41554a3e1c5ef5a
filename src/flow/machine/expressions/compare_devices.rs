//! Comparisons of devices, and of values that show a tensor's device.

use crate::flow::domain::atom::{Atom, AtomId, backend, gpus_at_least};
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::DeviceName;
use crate::flow::domain::value::{Device, NO_ORIGIN, OuterId, Value};
use crate::flow::machine::expressions::truth::constant;
use crate::flow::machine::{Interp, Test};
use crate::flow::models::devices::from_values::parse_device;
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    pub(crate) fn outer_equal(&mut self, o: OuterId, v: Value, e: ExprId) -> Cond {
        if o == self.known.device_count
            && let Value::Int(n) = v
        {
            let n = u32::try_from(n).unwrap_or(0);
            let at_least = if n == 0 { TRUE } else { self.d.atom(gpus_at_least(n)) };
            let more = self.d.atom(gpus_at_least(n + 1));
            let not_more = self.d.not(more);
            return self.d.and(at_least, not_more);
        }
        // `device == torch.device("cuda")` asks the same as `device == "cuda"`.
        let v = match v {
            Value::Device(d) => self.text_of_device(d).unwrap_or(v),
            v => v,
        };
        let suffix = match v {
            Value::None => " is None".to_owned(),
            Value::Str(s, _) => format!(" == {:?}", s.as_str()),
            Value::Int(i) => format!(" == {i}"),
            Value::External(path) => format!(" == {path}"),
            Value::Bool(c) if c == TRUE => return self.flag(Test::Truth(Value::Outer(o)), o, "", e),
            Value::Bool(c) if c == FALSE => {
                let c = self.flag(Test::Truth(Value::Outer(o)), o, "", e);
                return self.d.not(c);
            }
            _ => String::new(),
        };
        if suffix.is_empty() {
            return self.same_given(o, v, e);
        }
        let key = match v {
            Value::Str(s, _) => Value::Str(s, NO_ORIGIN),
            v => v,
        };
        self.flag(Test::Compare(0, Value::Outer(o), key), o, &suffix, e)
    }

    /// The text that names this device, if it is one known device.
    fn text_of_device(&self, d: Dd) -> Option<Value> {
        let (device, _) = *self.t.places.get(self.d.as_leaf(d)?);
        let known = device.is_accelerator() || matches!(device, Device::Cpu | Device::Meta);
        match self.name_of_device(device) {
            DeviceName::Known(name) if known && device != Device::CudaSome => {
                Some(Value::Str(Sym::new(&name), NO_ORIGIN))
            }
            _ => None,
        }
    }

    /// The condition that two outside values are equal. `world_size == args.ngpu` is a user's decision about GPUs, like
    /// a test of one side.
    fn same_given(&mut self, a: OuterId, b: Value, e: ExprId) -> Cond {
        let test = Test::Compare(0, Value::Outer(a), b);
        let left = self.t.get_outer(a).text.as_str();
        let right = if let Value::Outer(b) = b { self.t.get_outer(b).text.as_str() } else { "…" };
        if !self.tests.atoms.contains_key(&test) && [left, right].into_iter().any(speaks_of_devices) {
            let text = format!("{left} == {right}");
            let atom =
                self.atoms.add(Atom::Flag { text, about_devices: true, settable: false, default: None });
            self.note_test(test, atom);
        }
        self.named_test(test, e)
    }

    /// The condition that a device, or its type, equals a device name.
    pub(crate) fn device_equal(&mut self, device: Value, other: Value, e: ExprId) -> Option<Cond> {
        let Value::Device(d) = device else { return None };
        let wanted = match other {
            Value::Str(s, _) => match s.as_str() {
                // The full name that `x.type()` gives.
                t if t.starts_with("torch.cuda.") && t.ends_with("Tensor") => Device::Cuda(None),
                t if t.starts_with("torch.") && t.ends_with("Tensor") => Device::Cpu,
                t => parse_device(t)?,
            },
            Value::Device(o) => match self.d.as_leaf(o) {
                Some(payload) => self.t.places.get(payload).0,
                None => return self.both_choices(d, o, e),
            },
            // `x.device != device`, with a parameter `device`.
            Value::Outer(o) if self.t.get_outer(o).device && self.is_cpu_somewhere(d) => Device::Named(o),
            _ => return None,
        };
        let same = self.is_device(d, wanted, e);
        if matches!(other, Value::Device(_)) {
            let mut atoms = Vec::new();
            self.d.support(same, &mut atoms);
            self.tests.places_asked.extend(atoms);
        }
        Some(same)
    }

    /// Whether the device is the CPU in some world or on some path.
    fn is_cpu_somewhere(&self, d: Dd) -> bool {
        self.device_leaves(d).into_iter().any(|(_, device, _)| device == Device::Cpu)
    }

    /// The condition that two devices are the same, if both depend on conditions.
    fn both_choices(&mut self, a: Dd, b: Dd, e: ExprId) -> Option<Cond> {
        if self.is_text(a) || self.is_text(b) || self.d.as_leaf(a).is_some() {
            return None;
        }
        let (mut same, mut leaves) = (FALSE, Vec::new());
        self.d.leaves(b, &mut leaves);
        for leaf in leaves {
            let wanted = self.t.places.get(leaf).0;
            let there = self.d.where_leaf(b, &mut |p| p == leaf);
            let it = self.is_device(a, wanted, e);
            let both = self.d.ite(there, it, FALSE)?;
            same = self.d.ite(same, TRUE, both)?;
        }
        let mut atoms = Vec::new();
        self.d.support(same, &mut atoms);
        self.tests.places_asked.extend(atoms);
        Some(same)
    }

    /// The condition under which a device has the wanted type, and the wanted index if both have one.
    pub(crate) fn is_device(&mut self, d: Dd, wanted: Device, e: ExprId) -> Cond {
        if let Some(payload) = self.d.as_leaf(d) {
            let (device, _) = *self.t.places.get(payload);
            return self.leaf_is(device, wanted, e);
        }
        let (atom, hi, lo) = self.d.root(d);
        let cond = self.d.atom(atom);
        let (a, b) = (self.is_device(hi, wanted, e), self.is_device(lo, wanted, e));
        self.d.ite(cond, a, b).unwrap_or_else(|| self.unknown_on(wanted, e))
    }

    /// The condition that an unknown value is on this device. It implies that the device exists, and that the program
    /// considers other devices.
    pub(crate) fn unknown_on(&mut self, wanted: Device, e: ExprId) -> Cond {
        let (there, name) = match wanted {
            Device::Cuda(_) | Device::CudaSome => (self.d.atom(gpus_at_least(1)), "cuda"),
            Device::Other(b) => (self.d.atom(backend(b)), b.name()),
            _ => return self.unknown_test(e),
        };
        let test = crate::flow::machine::Test::Expr(self.here().module, e, self.frame, self.run.pass);
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let atom = self.atoms.add(Atom::On { text: format!("it is {name}"), accelerator: true });
                self.note_test(test, atom);
                atom
            }
        };
        let test = self.d.atom(atom);
        self.d.and(test, there)
    }

    pub(crate) fn leaf_is(&mut self, device: Device, wanted: Device, e: ExprId) -> Cond {
        use Device::{Cpu, Cuda, CudaSome, Meta, Named, Of, Other, Unknown};
        match (device, wanted) {
            (Cuda(a), Cuda(b)) => match (a, b) {
                (Some(a), Some(b)) => constant(a == b),
                _ => TRUE,
            },
            (CudaSome, Cuda(None)) => TRUE,
            (CudaSome, Cuda(Some(_))) | (Cuda(_) | CudaSome, CudaSome) => self.unknown_test(e),
            (Other(a), Other(b)) => constant(a == b),
            (Cpu, Cpu) | (Meta, Meta) => TRUE,
            (Named(o) | Of(o), w) => {
                let text = match w {
                    Cuda(_) | CudaSome => "cuda",
                    Cpu => "cpu",
                    Meta => "meta",
                    Other(b) => b.name(),
                    _ => return self.unknown_test(e),
                };
                let flag = self.outer_is_on(o, text);
                let there = match w {
                    Cuda(_) | CudaSome => self.d.atom(gpus_at_least(1)),
                    Other(b) => self.d.atom(backend(b)),
                    _ => TRUE,
                };
                self.d.and(flag, there)
            }
            // The same test with its operands swapped.
            (Cpu, Named(_) | Of(_)) => self.leaf_is(wanted, device, e),
            (Unknown, _) | (_, Unknown | Named(_) | Of(_)) => self.unknown_on(wanted, e),
            _ => FALSE,
        }
    }

    /// The condition that an outside value is on a device of this type.
    pub(crate) fn outer_is_on(&mut self, o: OuterId, device: &'static str) -> Cond {
        let test = on_test(o, device);
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let text = format!("{} is {device}", self.t.get_outer(o).text);
                let atom = self.atoms.add(Atom::On { text, accelerator: !matches!(device, "cpu" | "meta") });
                self.note_test(test, atom);
                if let (Some(home), "cpu") = (self.t.get_outer(o).with, device) {
                    self.tests.asked_on_cpu.entry(home).or_default().push(atom);
                }
                atom
            }
        };
        self.d.atom(atom)
    }

    /// The program's tests whether an outside value is on a device or names it: `x.device.type == "mps"`,
    /// `device == "mps"`, `"mps" in device`.
    pub(crate) fn asked_whether_on(&self, o: OuterId, device: &str) -> Vec<AtomId> {
        let name = Value::Str(Sym::new(device), NO_ORIGIN);
        let by_name = [0, 9].map(|kind| Test::Compare(kind, Value::Outer(o), name));
        let tests = std::iter::once(on_test(o, device)).chain(by_name);
        tests.filter_map(|test| self.tests.atoms.get(&test).copied()).collect()
    }

    /// The outcomes of the program's device tests on an outside value, or on the value whose device it shares, if it is
    /// on CUDA.
    pub(crate) fn if_on_cuda(&mut self, o: OuterId) -> Cond {
        let with = self.t.get_outer(o).with.filter(|&with| with != o);
        let mut c = with.map_or(TRUE, |with| self.if_on_cuda(with));
        for (device, there) in [("cuda", true), ("cpu", false), ("meta", false)] {
            for atom in self.asked_whether_on(o, device) {
                let mut test = self.d.atom(atom);
                if !there {
                    test = self.d.not(test);
                }
                c = self.d.and(c, test);
            }
        }
        // If an input of `forward` is on the CPU, the module is there.
        for atom in self.tests.asked_on_cpu.get(&o).cloned().unwrap_or_default() {
            let cpu = self.d.atom(atom);
            let elsewhere = self.d.not(cpu);
            c = self.d.and(c, elsewhere);
        }
        c
    }
}

pub(crate) fn on_test(o: OuterId, device: &str) -> Test {
    Test::Compare(1, Value::Outer(o), Value::Str(Sym::new(device), NO_ORIGIN))
}
