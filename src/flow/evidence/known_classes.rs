//! The classes that a value is known to have.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::{Host, SeqId, Value};
use crate::flow::evidence::isinstance::{is_module_path, literal_is};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::sym::Sym;
use crate::words::Words;

static PLAIN: Words = Words::of("plain classes in tests");
static NO_SEQUENCES: Words = Words::of("classes that are no sequences");
static FOLLOWED: Words = Words::of("prefixes of followed libraries");
static ON_HOST: Words = Words::of("classes on the host");
static NUMBERS: Words = Words::of("number classes");
static NO_TENSORS: Words = Words::of("collection and number classes without tensors");

impl Interp<'_> {
    /// Whether the value is an instance of the class, if known. Tensors, containers and plain values have known
    /// classes. An instance may be of a subclass.
    pub(crate) fn known_instance(&self, v: Value, class: Value) -> Option<bool> {
        let path = match class {
            Value::External(path) => path.as_str(),
            Value::Seq(classes) => return self.known_instance_of_any(v, classes),
            // `str | None`
            Value::None => return self.is_none(v),
            _ => return None,
        };
        if let Some(is) = literal_is(v, path) {
            return Some(is);
        }
        // Devices, device names, `None` and tensors are no integers.
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
        // `torch.device` made the value, or the value is equivalent to one.
        if let (Value::Device(_), "torch.device") = (v, path) {
            return Some(true);
        }
        if let (Value::Object(id), Value::External(path)) = (v, class)
            && let Some(is) = self.is_layer(id, path)
        {
            return Some(is);
        }
        // A result of NumPy is an array in most cases; programs rarely test numbers.
        if path == "numpy.ndarray" {
            return self.is_known_array(v);
        }
        let plain = PLAIN.has(path);
        if !plain {
            return None;
        }
        self.is_known_plain(v, path)
    }

    /// The same for a tuple of classes.
    fn known_instance_of_any(&self, v: Value, classes: SeqId) -> Option<bool> {
        let known: Vec<_> = self.t.seqs.get(classes.0).iter().map(|&c| self.known_instance(v, c)).collect();
        // The engine does not distinguish lists and tuples, but a sequence is one of the two.
        let either = |name| {
            let path = Value::External(Sym::new(name));
            self.t.seqs.get(classes.0).contains(&path)
        };
        let sequence = matches!(v, Value::Seq(_)) && either("builtins.list") && either("builtins.tuple");
        if sequence || known.contains(&Some(true)) {
            Some(true)
        } else if known.iter().all(|k| *k == Some(false)) {
            Some(false)
        } else {
            None
        }
    }

    /// Whether the value is `None`, if known.
    fn is_none(&self, v: Value) -> Option<bool> {
        match v {
            Value::None => Some(true),
            Value::Tensor(t) if !self.get_tensor(t).certain => None,
            Value::Outer(_) | Value::Unknown | Value::Absent | Value::Choice(_) | Value::External(_) => None,
            _ => Some(false),
        }
    }

    /// Whether the value is a NumPy array, if known.
    fn is_known_array(&self, v: Value) -> Option<bool> {
        match v {
            Value::Host(Host::Array | Host::Doubles) => Some(true),
            Value::Tensor(t) if self.get_tensor(t).certain => Some(false),
            Value::Int(_) | Value::Str(..) | Value::None | Value::Bool(_) | Value::Object(_) => Some(false),
            _ => None,
        }
    }

    /// Whether the value is of this class, a tensor class or a plain Python class, if known.
    fn is_known_plain(&self, v: Value, path: &str) -> Option<bool> {
        match v {
            Value::Object(id) => match self.obj(id).kind {
                ObjKind::Dict { module: false } => Some(path == "builtins.dict"),
                // The engine represents sets like lists.
                ObjKind::List { module: false } if path != "builtins.list" => Some(false),
                ObjKind::List { module: false } if self.heap.true_lists.contains(&id) => Some(true),
                _ => None,
            },
            Value::Seq(_) | Value::Many(_) if NO_SEQUENCES.has(path) => Some(false),
            Value::Tensor(t) if self.get_tensor(t).certain => Some(path == "torch.Tensor"),
            Value::Str(..) => Some(path == "builtins.str"),
            Value::Device(_) => Some(false),
            // A test whether a number is a tensor shows that tensors are passed as well: both branches are interpreted.
            Value::Int(_) if path != "torch.Tensor" => Some(false),
            _ => None,
        }
    }

    /// Whether the value is a parameter with the plain annotation `Tensor` and no default.
    pub(crate) fn is_given_a_tensor(&self, o: crate::flow::domain::value::OuterId) -> bool {
        let crate::flow::domain::value::OuterKey::Param { module, func, index } = self.t.get_outer(o).key
        else {
            return false;
        };
        let ir = &self.program.get(module).ir;
        ir.function(func).params.get(usize::from(index)).is_some_and(|p| {
            p.default.is_none()
                && p.annotation
                    .is_some_and(|a| crate::flow::machine::arguments::annotations::says_tensor_alone(ir, a))
        })
    }

    /// Whether the annotation of the parameter leaves only tensors if the value is not of the tested class:
    /// `Union[str, Tensor]`.
    pub(crate) fn leaves_a_tensor(&self, o: crate::flow::domain::value::OuterId, class: Value) -> bool {
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
            && annotation.is_some_and(|a| {
                crate::flow::machine::arguments::annotations::says_tensor_apart_from(ir, a, &others)
            })
    }

    /// Records that under this condition the value is of a class outside PyTorch and the project, whose methods are
    /// unknown.
    pub(crate) fn is_of_another_library(
        &mut self,
        v: Value,
        class: Value,
        when: crate::flow::domain::diagram::Cond,
    ) {
        let foreign = |path: Sym| {
            let text = path.as_str();
            text.contains('.') && !FOLLOWED.starts(text)
        };
        if matches!(class, Value::External(path) if foreign(path) && !is_module_path(path)) {
            let before = self.evidence.foreign_kinds.get(&v).copied().unwrap_or(FALSE);
            let when = self.d.or(before, when);
            self.evidence.foreign_kinds.insert(v, when);
        }
    }

    /// Whether the current path implies that the value is of such a class.
    pub(crate) fn is_foreign_here(&mut self, v: Value) -> bool {
        match self.evidence.foreign_kinds.get(&v) {
            Some(&when) => self.d.implies(self.path, when),
            None => false,
        }
    }

    /// Records that under this condition the outside value is no tensor.
    pub(crate) fn is_no_tensor(
        &mut self,
        o: crate::flow::domain::value::OuterId,
        when: crate::flow::domain::diagram::Cond,
    ) {
        let before = self.evidence.no_tensors.get(&o).copied().unwrap_or(FALSE);
        let when = self.d.or(before, when);
        self.evidence.no_tensors.insert(o, when);
    }

    /// Whether the current path implies that the outside value is no tensor, or is of a class that no tensor has.
    pub(crate) fn is_asked_otherwise(&mut self, o: crate::flow::domain::value::OuterId) -> bool {
        let known = [self.evidence.no_tensors.get(&o).copied(), self.evidence.other_kinds.get(&o).copied()];
        known.into_iter().flatten().any(|other| self.d.implies(self.path, other))
    }

    /// Whether the current path implies that some unknown value is no tensor. Then the uses of tensors here are
    /// uncertain: one argument often decides the type of another.
    pub(crate) fn for_no_tensors(&mut self) -> bool {
        let asked: Vec<_> = self.tests.tensor_or_not.iter().copied().collect();
        asked.into_iter().any(|atom| self.implied(self.path, atom, false))
    }

    /// Whether the class, or each of several, holds numbers on the host and is no tensor class.
    pub(crate) fn classes_of_the_host(&self, class: Value) -> bool {
        match class {
            Value::External(path) => ON_HOST.has(path.as_str()),
            Value::Seq(classes) => self.t.seqs.get(classes.0).iter().all(|&c| self.classes_of_the_host(c)),
            _ => false,
        }
    }

    /// Whether the class, or each of several, is a number class: a tensor made of such a value has no dimensions.
    pub(crate) fn classes_of_numbers(&self, class: Value) -> bool {
        match class {
            Value::External(path) => NUMBERS.has(path.as_str()),
            Value::Seq(classes) => {
                let classes = self.t.seqs.get(classes.0);
                !classes.is_empty() && classes.iter().all(|&c| self.classes_of_numbers(c))
            }
            _ => false,
        }
    }

    /// Whether the current path implies that the outside value is a number.
    pub(crate) fn is_number_here(&mut self, v: Value) -> bool {
        let Value::Outer(o) = v else { return false };
        let Some(&when) = self.evidence.numbers.get(&o) else { return false };
        self.d.implies(self.path, when)
    }

    /// Whether the class, or each of several, has no tensor as an instance.
    pub(crate) fn classes_of_others(&self, class: Value) -> bool {
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
}

/// Whether no tensor is an instance of this class.
fn no_tensor_class(path: &str) -> bool {
    let plain = path.strip_prefix("builtins.").is_some_and(|name| name != "object");
    // `torch.Tensor` is not registered with any abstract collection, and `Sequence` does not check for methods.
    let abstract_class = NO_TENSORS.has(path);
    plain || abstract_class || path.starts_with("numpy.")
}
