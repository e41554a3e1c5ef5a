//! `isinstance`: what is known about a value, and what the result shows about it.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::{Device, Host, NO_ORIGIN, ObjId, OuterId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{BinOp, CmpOp, Expr, ExprId};
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::words::Words;

static NOT_OF_LITERALS: Words = Words::of("classes compared with literals");

impl Interp<'_> {
    pub(crate) fn is_instance(&mut self, v: Value, at: ExprId, args: &Args, e: ExprId) -> Value {
        let Some(&(class, class_at)) = args.positional.get(1) else { return self.result_of(e) };
        let class = self.union_of_classes(class_at).unwrap_or(class);
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
            // The annotation says that it is a tensor. So do the callers, as far as they are checked.
            (Value::Outer(o), Value::External(path))
                if path.as_str() == "torch.Tensor" && self.is_given_a_tensor(o) =>
            {
                TRUE
            }
            // A tensor of a CUDA class is on CUDA, and exists only if CUDA is available.
            (v, Value::External(path)) if is_cuda_class(path) => {
                let (kind, there) = (self.instance_flag(v, class, at, e), self.is_on_cuda(v, e));
                self.d.and(kind, there)
            }
            (Value::Outer(o), Value::External(path)) if is_tensor_class(path) => {
                self.outside_is_tensor(o, path, at)
            }
            (Value::Tensor(t), Value::External(path)) if self.get_tensor(t).certain => {
                if path.as_str() == "torch.Tensor" { TRUE } else { self.unknown_test(e) }
            }
            // Not enough is known about the value.
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
            (Value::Object(id), Value::Class(key)) => self.object_is_instance(id, key, e),
            (Value::Outer(o), class) => self.outside_is_instance(o, class, at),
            _ => {
                let is = self.unknown_test(e);
                self.is_of_another_library(v, class, is);
                is
            }
        };
        Value::Bool(cond)
    }

    /// `type(x) is float`, `type(x) in (int, float)`: what `isinstance` says of an outside value. `None` for any other comparison.
    pub(crate) fn type_compared(
        &mut self,
        op: CmpOp,
        left: ExprId,
        (right, at): (Value, ExprId),
    ) -> Option<Cond> {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(left) else { return None };
        let (func, [of]) = (ir.call(call).func, ir.call(call).args) else { return None };
        let of = of.value;
        if !ir.is_builtin(func, "type") {
            return None;
        }
        let (negated, class) = match op {
            CmpOp::Is | CmpOp::Eq => (false, right),
            CmpOp::IsNot | CmpOp::NotEq => (true, right),
            CmpOp::In | CmpOp::NotIn => {
                let classes = self.exact_elements(right)?;
                (op == CmpOp::NotIn, self.seq(&classes))
            }
            _ => return None,
        };
        if !matches!(class, Value::External(_) | Value::Class(_) | Value::Seq(_)) {
            return None;
        }
        self.run.muted += 1;
        let v = self.eval(of);
        self.run.muted -= 1;
        let Value::Outer(o) = v else { return None };
        let is = match class {
            Value::External(path) if is_tensor_class(path) => self.outside_is_tensor(o, path, at),
            class => self.outside_is_instance(o, class, at),
        };
        Some(if negated { self.d.not(is) } else { is })
    }

    /// The classes of `list | tuple`, as the tuple that means the same. `None` if the expression is no union.
    fn union_of_classes(&mut self, e: ExprId) -> Option<Value> {
        let union = |i: &Self, e| match i.linked().ir.expr(e) {
            Expr::Binary { op: BinOp::BitOr, left, right } => Some([left, right]),
            _ => None,
        };
        union(self, e)?;
        let (mut classes, mut open) = (Vec::new(), vec![e]);
        while let Some(e) = open.pop() {
            match union(self, e) {
                Some(sides) => open.extend(sides),
                None => classes.push(self.eval(e)),
            }
        }
        Some(self.seq(&classes))
    }

    /// The condition of `isinstance(x, torch.Tensor)` for an outside value.
    fn outside_is_tensor(&mut self, o: OuterId, path: Sym, at: ExprId) -> Cond {
        // In the true branch the value is a tensor.
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

    /// The condition of `isinstance(x, Net)` for an object and a class of the project.
    fn object_is_instance(&mut self, id: ObjId, key: ClassKey, e: ExprId) -> Cond {
        match self.obj(id).class {
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
            // `[Layer(), Layer()]` is a list, not an instance of a class of the project.
            None if self.is_plain_collection(id) && !self.is_collection(key) => FALSE,
            None => self.unknown_test(e),
        }
    }

    /// The condition under which an outside value is an instance of the class. Records what the value cannot be under
    /// that condition.
    fn outside_is_instance(&mut self, o: OuterId, class: Value, at: ExprId) -> Cond {
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

    fn is_plain_collection(&self, id: ObjId) -> bool {
        matches!(self.obj(id).kind, ObjKind::List { module: false } | ObjKind::Dict { module: false })
    }

    /// Whether a class of the project may be a subclass of one of Python's collections.
    fn is_collection(&self, key: ClassKey) -> bool {
        let info = self.program.class(key);
        info.unknown_base || !self.is_module_class(key) && !info.externals.is_empty()
    }

    /// The condition under which the value is of the class, apart from its device.
    fn instance_flag(&mut self, v: Value, class: Value, at: ExprId, e: ExprId) -> Cond {
        match v {
            Value::Outer(o) => {
                self.evidence.tensor_proofs.insert(o);
                self.named_flag(o, class, at)
            }
            _ => self.unknown_test(e),
        }
    }

    /// The condition of `x.is_cuda`.
    fn is_on_cuda(&mut self, v: Value, e: ExprId) -> Cond {
        let cuda = Device::Cuda(None);
        let device = match v {
            Value::Outer(o) => self.at(Device::Of(o), NO_ORIGIN),
            Value::Tensor(t) => self.get_tensor(t).device,
            _ => return self.unknown_on(cuda, e),
        };
        self.is_device(device, cuda, e)
    }

    /// Whether the module is one of the wrappers for several devices. The engine represents a wrapper by the module in
    /// it, so a module that may have been wrapped can be either. `None` if the class is no wrapper, or if other code
    /// may have made the module.
    fn is_wrapper(&mut self, id: ObjId, class: Value, e: ExprId) -> Option<Cond> {
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

    /// Records that the module is wrapped here, in `DistributedDataParallel` if `processes`, else in `DataParallel`.
    pub(crate) fn wrap(&mut self, args: &Args, processes: bool) {
        if let Some((Value::Object(id), _)) = args.get(0, "module") {
            let path = self.path;
            let wraps = self.modules.wraps.entry(id).or_insert([FALSE; 2]);
            let when = &mut wraps[usize::from(processes)];
            *when = self.d.or(*when, path);
        }
    }

    pub(crate) fn named_flag(&mut self, o: OuterId, key: Value, at: ExprId) -> Cond {
        let test = crate::flow::machine::Test::Compare(20, Value::Outer(o), key);
        self.keyed_test(test, at)
    }
}

/// Whether the path is a tensor class: `torch.Tensor`, `torch.FloatTensor`, ….
fn is_tensor_class(path: Sym) -> bool {
    path.as_str().starts_with("torch.") && path.as_str().ends_with("Tensor")
}

/// Whether the path is `DataParallel` or `DistributedDataParallel`.
pub(crate) fn is_wrapper_class(path: Sym) -> bool {
    let path = crate::torch::canonical(path);
    matches!(path.as_str(), "torch.nn.DataParallel" | "torch.nn.parallel.DistributedDataParallel")
}

/// Whether the path is a tensor class of CUDA: `torch.cuda.FloatTensor`.
fn is_cuda_class(path: Sym) -> bool {
    path.as_str().starts_with("torch.cuda.") && path.as_str().ends_with("Tensor")
}

/// Whether the path is `torch.nn.Module` or one of PyTorch's layers.
pub(crate) fn is_module_path(path: Sym) -> bool {
    let base = crate::torch::base_class(path).is_some_and(|b| b.kind == crate::torch::Base::Module);
    base || crate::torch::module(path).is_some()
}

/// Whether a constant of the program is of this class of Python or PyTorch.
pub(crate) fn literal_is(v: Value, path: &str) -> Option<bool> {
    let own: &[&str] = match v {
        Value::Bool(c) if c == TRUE || c == FALSE => &["builtins.bool", "builtins.int"],
        Value::None => &[],
        _ => return None,
    };
    own.contains(&path).then_some(true).or_else(|| NOT_OF_LITERALS.has(path).then_some(false))
}
