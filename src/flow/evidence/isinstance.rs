//! `isinstance`: what is known of a value, and what the answer says of it.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{BoundId, Host, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    /// `vars(self).items()` and `self.__dict__.values()`, of what is no module: the attributes that it has by now.
    pub(crate) fn own_attributes(&mut self, bound: BoundId, method: Sym) -> Option<Vec<Value>> {
        let bound = *self.t.bounds.get(bound.0);
        let Value::Object(id) = bound.receiver else { return None };
        let instance = matches!(self.obj(id).kind, ObjKind::Instance) && bound.name.as_str() == "__dict__";
        if !instance || !matches!(method.as_str(), "items" | "values") {
            return None;
        }
        let fields: Vec<(Sym, Value)> =
            self.obj(id).attrs.iter().map(|&(name, cell)| (name, self.store.get(cell))).collect();
        let there = fields.into_iter().filter(|&(_, v)| v != Value::Absent);
        if method.as_str() == "values" {
            return Some(there.map(|(_, v)| v).collect());
        }
        let pairs: Vec<(Sym, Value)> = there.collect();
        Some(
            pairs
                .into_iter()
                .map(|(name, v)| self.seq(&[Value::Str(name, crate::flow::domain::value::NO_ORIGIN), v]))
                .collect(),
        )
    }

    pub(crate) fn is_instance(&mut self, v: Value, at: ExprId, args: &Args, e: ExprId) -> Value {
        let Some(&(class, _)) = args.positional.get(1) else { return self.result_of(e) };
        if let Value::Object(id) = v
            && let Some(wrapped) = self.is_wrapper(id, class, e)
        {
            return Value::Bool(wrapped);
        }
        if let Some(known) = self.known_instance(v, class) {
            return Value::Bool(if known { TRUE } else { FALSE });
        }
        if let Value::Choice(_) = v {
            return self.each(v, &mut |i, v| i.is_instance(v, at, args, e));
        }
        let cond = match (v, class) {
            // Its annotation says so, and so do the callers, as far as they are checked.
            (Value::Outer(o), Value::External(path))
                if path.as_str() == "torch.Tensor" && self.is_given_a_tensor(o) =>
            {
                TRUE
            }
            // One of CUDA's is there, and only where that is.
            (v, Value::External(path)) if is_cuda_class(path) => {
                let (kind, there) = (self.instance_flag(v, class, at, e), self.is_on_cuda(v, e));
                self.d.and(kind, there)
            }
            (Value::Outer(o), Value::External(path)) if is_tensor_class(path) => {
                // In the branch where it is one, it is one.
                self.evidence.tensor_proofs.insert(o);
                let is = self.named_flag(o, Value::External(path), at);
                if path.as_str() == "torch.Tensor" {
                    let not = self.d.not(is);
                    self.is_no_tensor(o, not);
                    let outer = self.t.get_outer(o);
                    if !outer.varies && outer.with.is_none() {
                        self.tests.tensor_or_not.insert(self.d.root(is).0);
                    }
                }
                is
            }
            (Value::Tensor(t), Value::External(path)) if self.get_tensor(t).certain => {
                if path.as_str() == "torch.Tensor" { TRUE } else { self.unknown_test(e) }
            }
            // Nothing is known of it, or not enough.
            (Value::Unknown | Value::Host(Host::Other) | Value::Tensor(_), Value::External(path))
                if path.as_str() == "torch.Tensor" =>
            {
                let is = self.unknown_test(e);
                self.tests.tensor_or_not.insert(self.d.root(is).0);
                is
            }
            (Value::Str(..) | Value::Host(Host::Text), Value::External(p))
                if p.as_str() == "builtins.str" =>
            {
                TRUE
            }
            (Value::Device(_), Value::External(_)) => self.unknown_test(e),
            (Value::Object(id), Value::Class(key)) => match self.obj(id).class {
                Some(k) => {
                    let info = self.program.class(k);
                    if info.mro.contains(&key) {
                        TRUE
                    } else if info.unknown_base {
                        self.unknown_test(e)
                    } else {
                        FALSE
                    }
                }
                // `[Layer(), Layer()]` is a list, and of no class of the project.
                None if self.is_plain_collection(id) && !self.is_collection(key) => FALSE,
                None => self.unknown_test(e),
            },
            (Value::Outer(o), class) => {
                let is = self.named_flag(o, class, at);
                self.is_of_another_library(Value::Outer(o), class, is);
                if self.classes_of_the_host(class) {
                    self.is_no_tensor(o, is);
                }
                if self.classes_of_numbers(class) {
                    let before = self.evidence.numbers.get(&o).copied().unwrap_or(FALSE);
                    let number = self.d.or(before, is);
                    self.evidence.numbers.insert(o, number);
                }
                if self.leaves_a_tensor(o, class) {
                    self.evidence.tensor_proofs.insert(o);
                }
                if self.classes_of_others(class) {
                    let before = self.evidence.other_kinds.get(&o).copied().unwrap_or(FALSE);
                    let other = self.d.or(before, is);
                    self.evidence.other_kinds.insert(o, other);
                }
                is
            }
            _ => {
                let is = self.unknown_test(e);
                self.is_of_another_library(v, class, is);
                is
            }
        };
        Value::Bool(cond)
    }

    fn is_plain_collection(&self, id: crate::flow::domain::value::ObjId) -> bool {
        matches!(self.obj(id).kind, ObjKind::List { module: false } | ObjKind::Dict { module: false })
    }

    /// May a class of the project be one of Python's collections?
    fn is_collection(&self, key: crate::link::ClassKey) -> bool {
        let info = self.program.class(key);
        info.unknown_base || !self.is_module_class(key) && !info.externals.is_empty()
    }

    /// Whether the value is of the class, apart from where it is.
    fn instance_flag(
        &mut self,
        v: Value,
        class: Value,
        at: ExprId,
        e: ExprId,
    ) -> crate::flow::domain::diagram::Cond {
        match v {
            Value::Outer(o) => {
                self.evidence.tensor_proofs.insert(o);
                self.named_flag(o, class, at)
            }
            _ => self.unknown_test(e),
        }
    }

    /// `x.is_cuda`
    fn is_on_cuda(&mut self, v: Value, e: ExprId) -> crate::flow::domain::diagram::Cond {
        let cuda = crate::flow::domain::value::Device::Cuda(None);
        let device = match v {
            Value::Outer(o) => {
                self.at(crate::flow::domain::value::Device::Of(o), crate::flow::domain::value::NO_ORIGIN)
            }
            Value::Tensor(t) => self.get_tensor(t).device,
            _ => return self.unknown_on(cuda, e),
        };
        self.is_device(device, cuda, e)
    }

    /// Is the module one of these wrappers for several devices? The wrapper stands for what it wraps, so one that may have been
    /// wrapped may be either; nothing if the class is none of them, or where others may have made it.
    fn is_wrapper(
        &mut self,
        id: crate::flow::domain::value::ObjId,
        class: Value,
        e: ExprId,
    ) -> Option<crate::flow::domain::diagram::Cond> {
        let wrappers = match class {
            Value::External(path) => is_wrapper_class(path),
            Value::Seq(classes) => {
                let classes = self.t.seqs.get(classes.0);
                !classes.is_empty()
                    && classes.iter().all(|&c| matches!(c, Value::External(path) if is_wrapper_class(path)))
            }
            _ => false,
        };
        let plain = match self.obj(id).kind {
            ObjKind::ForeignModule(Some(_))
            | ObjKind::List { module: true }
            | ObjKind::Dict { module: true } => true,
            ObjKind::Module => self.obj(id).class.is_some_and(|k| !self.program.class(k).unknown_base),
            _ => false,
        };
        if !wrappers || !plain || self.obj(id).outer.is_some() {
            return None;
        }
        let [threads, processes] = self.modules.wraps.get(&id).copied().unwrap_or([FALSE; 2]);
        let when = self.d.or(threads, processes);
        if when == FALSE {
            return Some(FALSE);
        }
        let either = self.unknown_test(e);
        Some(self.d.and(when, either))
    }

    /// The module is wrapped here: in `DistributedDataParallel` if it says `processes`, else in `DataParallel`.
    pub(crate) fn wrap(&mut self, args: &Args, processes: bool) {
        if let Some((Value::Object(id), _)) = args.get(0, "module") {
            let path = self.path;
            let wraps = self.modules.wraps.entry(id).or_insert([FALSE; 2]);
            let when = &mut wraps[usize::from(processes)];
            *when = self.d.or(*when, path);
        }
    }

    /// Tensors, containers and plain values tell their classes; a class's instances may be of another one.
    fn known_instance(&self, v: Value, class: Value) -> Option<bool> {
        let path = match class {
            Value::External(path) => path.as_str(),
            Value::Seq(classes) => {
                let known: Vec<_> =
                    self.t.seqs.get(classes.0).iter().map(|&c| self.known_instance(v, c)).collect();
                // Whatever can be gone over like this one, it is one or the other.
                let either = |name| {
                    let path = Value::External(Sym::new(name));
                    self.t.seqs.get(classes.0).contains(&path)
                };
                let sequence =
                    matches!(v, Value::Seq(_)) && either("builtins.list") && either("builtins.tuple");
                return if sequence || known.contains(&Some(true)) {
                    Some(true)
                } else if known.iter().all(|k| *k == Some(false)) {
                    Some(false)
                } else {
                    None
                };
            }
            _ => return None,
        };
        if let Some(is) = literal_is(v, path) {
            return Some(is);
        }
        // Devices and their names are no numbers.
        if path == "builtins.int"
            && self
                .values_of(v)
                .iter()
                .all(|v| matches!(v, Value::Str(..) | Value::Device(_) | Value::None | Value::Tensor(_)))
        {
            return Some(false);
        }
        if let (Value::Tensor(t), true) = (v, no_tensor_class(path))
            && self.get_tensor(t).certain
        {
            return Some(false);
        }
        // What is kept as a device has been made by `torch.device`, or does as well as one.
        if let (Value::Device(_), "torch.device") = (v, path) {
            return Some(true);
        }
        if let (Value::Object(id), Value::External(path)) = (v, class)
            && let Some(is) = self.is_layer(id, path)
        {
            return Some(is);
        }
        // What NumPy gives is mostly one; numbers are rarely asked.
        if path == "numpy.ndarray" {
            return match v {
                Value::Host(Host::Array | Host::Doubles) => Some(true),
                Value::Tensor(t) if self.get_tensor(t).certain => Some(false),
                Value::Int(_) | Value::Str(..) | Value::None | Value::Bool(_) | Value::Object(_) => {
                    Some(false)
                }
                _ => None,
            };
        }
        let plain = matches!(
            path,
            "builtins.dict" | "builtins.list" | "builtins.tuple" | "builtins.str" | "torch.Tensor"
        );
        if !plain {
            return None;
        }
        match v {
            Value::Object(id) => match self.obj(id).kind {
                ObjKind::Dict { module: false } => Some(path == "builtins.dict"),
                // Sets are kept like lists.
                ObjKind::List { module: false } if path != "builtins.list" => Some(false),
                ObjKind::List { module: false } if self.heap.true_lists.contains(&id) => Some(true),
                _ => None,
            },
            Value::Seq(_) | Value::Many(_)
                if matches!(path, "builtins.dict" | "builtins.str" | "torch.Tensor") =>
            {
                Some(false)
            }
            Value::Tensor(t) if self.get_tensor(t).certain => Some(path == "torch.Tensor"),
            Value::Str(..) => Some(path == "builtins.str"),
            Value::Device(_) => Some(false),
            // Who asks whether a number is a tensor is given tensors as well: both ways are gone.
            Value::Int(_) if path != "torch.Tensor" => Some(false),
            _ => None,
        }
    }

    /// A parameter with a plain annotation `Tensor`, and nothing that it is otherwise.
    fn is_given_a_tensor(&self, o: crate::flow::domain::value::OuterId) -> bool {
        let crate::flow::domain::value::OuterKey::Param { module, func, index } = self.t.get_outer(o).key
        else {
            return false;
        };
        let ir = &self.program.get(module).ir;
        ir.function(func).params.get(usize::from(index)).is_some_and(|p| {
            p.default.is_none()
                && p.annotation.is_some_and(|a| crate::flow::machine::calls::args::says_tensor_alone(ir, a))
        })
    }

    /// A parameter that is a tensor by its annotation unless it is of the class that is asked for: `Union[str, Tensor]`.
    fn leaves_a_tensor(&self, o: crate::flow::domain::value::OuterId, class: Value) -> bool {
        let crate::flow::domain::value::OuterKey::Param { module, func, index } = self.t.get_outer(o).key
        else {
            return false;
        };
        let classes = match class {
            Value::Seq(classes) => self.seq_items(classes).to_vec(),
            one => vec![one],
        };
        let name = |v: &Value| match *v {
            Value::External(path) => path.as_str().strip_prefix("builtins."),
            _ => None,
        };
        let others: Vec<&str> = classes.iter().filter_map(name).collect();
        let ir = &self.program.get(module).ir;
        let annotation = ir.function(func).params.get(usize::from(index)).and_then(|p| p.annotation);
        !others.is_empty()
            && annotation
                .is_some_and(|a| crate::flow::machine::calls::args::says_tensor_apart_from(ir, a, &others))
    }

    /// Where this holds the value is of a class that is neither PyTorch's nor the project's: nobody here knows its methods.
    fn is_of_another_library(&mut self, v: Value, class: Value, when: crate::flow::domain::diagram::Cond) {
        let foreign = |path: Sym| {
            let text = path.as_str();
            text.contains('.') && !["torch.", "builtins.", "numpy."].iter().any(|p| text.starts_with(p))
        };
        if matches!(class, Value::External(path) if foreign(path) && !is_module_path(path)) {
            let before = self.evidence.foreign_kinds.get(&v).copied().unwrap_or(FALSE);
            let when = self.d.or(before, when);
            self.evidence.foreign_kinds.insert(v, when);
        }
    }

    /// Is this reached only if the value is of such a class?
    pub(crate) fn is_foreign_here(&mut self, v: Value) -> bool {
        match self.evidence.foreign_kinds.get(&v) {
            Some(&when) => self.d.implies(self.path, when),
            None => false,
        }
    }

    /// Where this holds the outside thing is no tensor.
    fn is_no_tensor(
        &mut self,
        o: crate::flow::domain::value::OuterId,
        when: crate::flow::domain::diagram::Cond,
    ) {
        let before = self.evidence.no_tensors.get(&o).copied().unwrap_or(FALSE);
        let when = self.d.or(before, when);
        self.evidence.no_tensors.insert(o, when);
    }

    /// Is this reached only if the outside thing is of a class that no tensor has, or not a tensor?
    pub(crate) fn is_asked_otherwise(&mut self, o: crate::flow::domain::value::OuterId) -> bool {
        let known = [self.evidence.no_tensors.get(&o).copied(), self.evidence.other_kinds.get(&o).copied()];
        known.into_iter().flatten().any(|other| self.d.implies(self.path, other))
    }

    /// Is this reached only if something of which nothing is known is no tensor? What tensors meet here is then a guess:
    /// of two arguments the one often decides what the other is.
    pub(crate) fn for_no_tensors(&mut self) -> bool {
        let asked: Vec<_> = self.tests.tensor_or_not.iter().copied().collect();
        asked.into_iter().any(|atom| self.implied(self.path, atom, false))
    }

    /// A class, or several, whose instances hold numbers and are no tensors.
    fn classes_of_the_host(&self, class: Value) -> bool {
        match class {
            Value::External(path) => matches!(
                path.as_str(),
                "builtins.list" | "builtins.tuple" | "builtins.int" | "builtins.float" | "builtins.bool"
            ),
            Value::Seq(classes) => self.t.seqs.get(classes.0).iter().all(|&c| self.classes_of_the_host(c)),
            _ => false,
        }
    }

    /// A class of numbers, or several: a tensor of one has no dimensions.
    fn classes_of_numbers(&self, class: Value) -> bool {
        match class {
            Value::External(path) => matches!(
                path.as_str(),
                "builtins.int"
                    | "builtins.float"
                    | "builtins.bool"
                    | "builtins.complex"
                    | "numbers.Number"
                    | "numbers.Real"
                    | "numbers.Integral"
            ),
            Value::Seq(classes) => {
                let classes = self.t.seqs.get(classes.0);
                !classes.is_empty() && classes.iter().all(|&c| self.classes_of_numbers(c))
            }
            _ => false,
        }
    }

    /// Is this reached only if the outside thing is a number?
    pub(crate) fn is_number_here(&mut self, v: Value) -> bool {
        let Value::Outer(o) = v else { return false };
        let Some(&when) = self.evidence.numbers.get(&o) else { return false };
        self.d.implies(self.path, when)
    }

    /// A class, or several, that no tensor is of.
    fn classes_of_others(&self, class: Value) -> bool {
        match class {
            Value::External(path) => {
                let text = path.as_str();
                text.starts_with("numpy.")
                    || is_module_path(path)
                    || text.strip_prefix("builtins.").is_some_and(|name| name != "object")
            }
            Value::Class(key) => self.is_module_class(key),
            Value::Seq(classes) => self.t.seqs.get(classes.0).iter().all(|&c| self.classes_of_others(c)),
            _ => false,
        }
    }

    pub(crate) fn named_flag(
        &mut self,
        o: crate::flow::domain::value::OuterId,
        key: Value,
        at: ExprId,
    ) -> crate::flow::domain::diagram::Cond {
        let test = crate::flow::machine::Test::Compare(20, Value::Outer(o), key);
        self.keyed_test(test, at)
    }
}

/// `torch.Tensor`, `torch.FloatTensor`, …
fn is_tensor_class(path: Sym) -> bool {
    path.as_str().starts_with("torch.") && path.as_str().ends_with("Tensor")
}

/// `DataParallel`, `DistributedDataParallel`
pub(crate) fn is_wrapper_class(path: Sym) -> bool {
    let path = crate::torch::canonical(path);
    matches!(path.as_str(), "torch.nn.DataParallel" | "torch.nn.parallel.DistributedDataParallel")
}

/// `torch.cuda.FloatTensor`
fn is_cuda_class(path: Sym) -> bool {
    path.as_str().starts_with("torch.cuda.") && path.as_str().ends_with("Tensor")
}

/// `torch.nn.Module`, or one of PyTorch's layers.
fn is_module_path(path: Sym) -> bool {
    let base = crate::torch::base_class(path).is_some_and(|b| b.kind == crate::torch::Base::Module);
    base || crate::torch::module(path).is_some()
}

/// Is no tensor an instance of this class?
fn no_tensor_class(path: &str) -> bool {
    let plain = path.strip_prefix("builtins.").is_some_and(|name| name != "object");
    // `torch.Tensor` is registered with none of the abstract collections, and `Sequence` looks at no methods.
    let sequence = matches!(
        path,
        "typing.Sequence"
            | "typing.List"
            | "typing.Tuple"
            | "typing.Mapping"
            | "typing.Dict"
            | "collections.abc.Sequence"
            | "collections.abc.MutableSequence"
            | "collections.abc.Mapping"
            | "collections.Sequence"
            | "collections.Mapping"
            | "numbers.Number"
    );
    plain || sequence || path.starts_with("numpy.")
}

/// Is a constant of the program of this class of Python's own or of PyTorch's?
fn literal_is(v: Value, path: &str) -> Option<bool> {
    let own: &[&str] = match v {
        Value::Bool(c) if c == TRUE || c == FALSE => &["builtins.bool", "builtins.int"],
        Value::None => &[],
        _ => return None,
    };
    const CLASSES: &[&str] = &[
        "builtins.bool",
        "builtins.bytes",
        "builtins.dict",
        "builtins.float",
        "builtins.int",
        "builtins.list",
        "builtins.set",
        "builtins.str",
        "builtins.tuple",
        "os.PathLike",
        "pathlib.Path",
        "pathlib.PurePath",
        "torch.device",
        "torch.nn.Module",
        "torch.Tensor",
    ];
    own.contains(&path).then_some(true).or_else(|| CLASSES.contains(&path).then_some(false))
}
