//! The number of dimensions of the results of PyTorch's functions (documented at <https://docs.pytorch.org>).

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Host, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::tensors::functions::last_part;
use crate::flow::models::tensors::sizes::given_size;
use crate::flow::observers::mismatch::meet::Party;
use crate::ir::{BinOp, Expr, ExprId};
use crate::torch::{Op, ResultRule};

impl Interp<'_> {
    /// The dimensions of a tensor from `torch.zeros(2, 3)`, `torch.tensor([1, 2])` and similar functions. `otherwise` is for functions
    /// whose result has the shape of another tensor.
    pub(crate) fn factory_dims(&mut self, name: &str, args: &Args, otherwise: Dims) -> Dims {
        match name {
            // `torch.sparse.FloatTensor(indices, values, size)`.
            _ if name.ends_with("Tensor")
                && args.positional.len() == 3
                && matches!(args.positional[0].0, Value::Tensor(_)) =>
            {
                return Dims::SOME;
            }
            "eye" | "tril_indices" | "triu_indices" => return Dims::exactly(2),
            "arange" | "linspace" | "logspace" | "randperm" | "range" | "hann_window" | "hamming_window"
            | "blackman_window" | "bartlett_window" | "kaiser_window" | "fftfreq" | "rfftfreq" => {
                return Dims::exactly(1);
            }
            _ => {}
        }
        if let Some((v, _)) = args.keyword("size") {
            return self.length(v).map_or(Dims::SOME, Dims::exactly);
        }
        let Some(&(first, _)) = args.positional.first() else {
            // Without a size, factories raise, and old constructors make an empty vector. `*sizes` has at least one element.
            let sized = args.open
                && (matches!(name, "zeros" | "ones" | "empty" | "rand" | "randn")
                    || name.ends_with("Tensor"));
            return if sized { Dims::SOME } else { Dims::ANY };
        };
        match name {
            "tensor" | "as_tensor" | "asarray" | "scalar_tensor" | "new_tensor" => {
                let dims = if self.is_number_here(first) { Dims::ZERO } else { self.data_dims(first, 0) };
                match self.length(first) {
                    Some(n) if dims.known() == Some(1) => dims.of_size(n),
                    _ => dims,
                }
            }
            "from_numpy" | "frombuffer" => Dims::SOME,
            "zeros" | "ones" | "empty" | "rand" | "randn" | "new_zeros" | "new_ones" | "new_empty" => {
                let dims = self.size_dims(args, 0);
                given_size(self, name, args)
                    .and_then(|sizes| same_size(&sizes))
                    .map_or(dims, |n| dims.of_size(n))
            }
            "full" | "new_full" => self.length(first).map_or(Dims::SOME, Dims::exactly),
            "randint" => {
                let at = args.positional.iter().position(|&(v, _)| self.length(v).is_some());
                at.map_or(Dims::SOME, |at| self.size_dims(args, at))
            }
            "normal" => Dims::ANY,
            _ if name.ends_with("Tensor") => match first {
                Value::Tensor(t) if self.get_tensor(t).certain => Dims::ANY,
                // The argument is a list or a size, so the result has dimensions.
                Value::Outer(_) | Value::Unknown | Value::Tensor(_) => Dims::SOME,
                // An array, or a result of arithmetic with arrays. These functions refuse NumPy scalars.
                Value::Host(_) if args.positional.len() == 1 => Dims::SOME,
                Value::Seq(_) | Value::Object(_) => self.data_dims(first, 0),
                _ => self.size_dims(args, 0),
            },
            _ => otherwise,
        }
    }

    /// The dimensions of a tensor whose sizes start at this argument, one by one or as a sequence.
    fn size_dims(&self, args: &Args, at: usize) -> Dims {
        match args.positional.get(at) {
            Some(&(v @ (Value::Seq(_) | Value::Object(_)), _)) => {
                self.length(v).map_or(Dims::SOME, Dims::exactly)
            }
            Some((Value::Int(_) | Value::Host(Host::Number), _)) if args.open => Dims::SOME,
            Some((Value::Int(_) | Value::Host(Host::Number), _)) => Dims::exactly(args.positional.len() - at),
            // Several sizes of any value.
            Some(_) if args.positional.len() - at > 1 && !args.open => {
                Dims::exactly(args.positional.len() - at)
            }
            // A number, or a `torch.Size` of unknown length.
            _ => Dims::SOME,
        }
    }

    /// The number of elements of a list or tuple with known elements.
    fn length(&self, v: Value) -> Option<usize> {
        match v {
            Value::Seq(id) => Some(self.seq_items(id).len()),
            Value::Object(id) => match self.own(id) {
                Value::Seq(s)
                    if matches!(self.obj(id).kind, crate::flow::machine::frame::ObjKind::List { .. }) =>
                {
                    Some(self.seq_items(s).len())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The minimum number of elements of a sum of sequences: those of its literals.
    fn least_length(&self, e: ExprId) -> usize {
        let ir = &self.linked().ir;
        let starred = |&e: &ExprId| matches!(ir.expr(e), Expr::Star(_));
        match ir.expr(e) {
            Expr::Binary { op: BinOp::Add, left, right } => [left, right]
                .into_iter()
                .map(|part| match ir.expr(part) {
                    Expr::Tuple(list) | Expr::List(list) => {
                        ir.list(list).iter().filter(|e| !starred(e)).count()
                    }
                    _ => self.least_length(part),
                })
                .sum(),
            _ => 0,
        }
    }

    /// The dimensions of `torch.tensor(data)`: the nesting depth of the lists.
    fn data_dims(&self, v: Value, depth: u8) -> Dims {
        let inner = match v {
            Value::Int(_) | Value::Host(Host::Number) | Value::Bool(_) => return Dims::ZERO,
            Value::Tensor(_) => return self.dims(v),
            Value::Host(Host::Array) => return Dims::SOME,
            // The program tests whether it is a list, so it is one, or a tensor with dimensions. A number has no length.
            Value::Outer(o) if self.evidence.no_tensors.contains_key(&o) || self.is_sized(o) => {
                return Dims::SOME;
            }
            Value::Many(m) => Some(*self.t.values.get(m)),
            Value::Seq(id) => self.seq_items(id).first().copied(),
            Value::Object(id) => match self.own(id) {
                Value::Seq(s) => self.seq_items(s).first().copied(),
                Value::Many(m) => Some(*self.t.values.get(m)),
                _ => None,
            },
            _ => return Dims::ANY,
        };
        match inner {
            Some(v) if depth < 8 => self.data_dims(v, depth + 1).plus(1),
            _ => Dims::SOME,
        }
    }

    /// The dimensions of a function's or method's result. It may have any number of rows.
    pub(crate) fn result_dims(&self, op: &Op, parties: &[Party], args: &Args, name: &str) -> Dims {
        self.as_many_dims(op, parties, args, name).of_any_size()
    }

    fn as_many_dims(&self, op: &Op, parties: &[Party], args: &Args, name: &str) -> Dims {
        let method = op.name.as_str().starts_with("torch.Tensor.");
        let name = last_part(name);
        let name = name.strip_suffix('_').filter(|n| !n.ends_with('_')).unwrap_or(name);
        let first = parties.first().map_or(Dims::ANY, |p| p.dims);
        let all = || parties.iter().map(|p| p.dims).reduce(Dims::broadcast).unwrap_or(Dims::ANY);
        // The position of the first argument after the tensor.
        let at = usize::from(!method);
        match name {
            // An operation that moves a tensor to the device of another one keeps the shape.
            _ if op.result == ResultRule::OtherArgument => first,
            "sum" | "mean" | "prod" | "std" | "var" | "argmax" | "argmin" | "any" | "all" | "logsumexp"
            | "amax" | "amin" | "nansum" | "nanmean" | "count_nonzero" => {
                self.reduced(first, args, args.get(at, "dim"), args.positional.len() <= at)
            }
            "norm" | "vector_norm" => {
                self.reduced(first, args, args.get(at + 1, "dim"), args.positional.len() <= at + 1)
            }
            // With two tensors, the larger number of dimensions. With a dimension, the result is a pair of values and indices.
            "max" | "min" | "median" | "nanmedian" => match args.get(at, "dim") {
                Some((Value::Tensor(_) | Value::Outer(_), _)) => all(),
                dim @ Some((Value::Int(_) | Value::Host(Host::Number), _)) => {
                    self.reduced(first, args, dim, false)
                }
                dim @ Some(_) => self.reduced(first, args, dim, false).join(first.minus(2)),
                None => self.reduced(first, args, None, args.positional.len() <= at),
            },
            "tile" => Dims::at_least(first.least()),
            "view" | "reshape" => self.sized_dims(args, at, 0),
            // The result has at least as many dimensions as before.
            "expand" | "repeat" => self.sized_dims(args, at, first.least()),
            "einsum" => equation_dims(args),
            "stack" | "pad_sequence" => all().plus(1),
            "unsqueeze" | "one_hot" => first.plus(1),
            "nonzero" | "argwhere" | "mm" | "addmm" | "outer" | "ger" | "vander" => Dims::exactly(2),
            "bmm" | "baddbmm" => Dims::exactly(3),
            "mv" | "addmv" | "ravel" | "bincount" | "histc" | "masked_select" => Dims::exactly(1),
            "bucketize" | "isin" => first,
            "cosine_similarity" | "pairwise_distance" | "svdvals" | "eigvals" | "eigvalsh" => all().minus(1),
            "flatten" if args.values().nth(at).is_none() => Dims::exactly(1),
            "squeeze" => match args.values().nth(at) {
                Some((Value::Int(number), _)) => {
                    let first = first.with_dimension(number);
                    first.join(first.minus(1))
                }
                _ => first.join(Dims::ZERO),
            },
            "select" | "unbind" => match args.get(at, "dim") {
                Some((Value::Int(number), _)) => first.with_dimension(number).minus(1),
                _ => first.minus(1),
            },
            "softmax" | "log_softmax" | "cumsum" | "cumprod" | "sort" | "argsort" | "flip"
            | "index_select" | "gather" | "transpose" | "size" => match args.get(at, "dim") {
                Some((Value::Int(number), _)) => all().with_dimension(number),
                _ => all(),
            },
            "det" => first.minus(2),
            "diagonal" => first.with_dimension(1).minus(1),
            "dot" | "vdot" | "trace" | "dist" => Dims::ZERO,
            "matmul" => match parties {
                [a, b] => a.dims.matmul(b.dims),
                _ => Dims::ANY,
            },
            "atleast_1d" | "flatten" | "hstack" | "cat" | "concat" | "diag" | "embedding" => Dims::SOME,
            "atleast_2d" | "vstack" | "row_stack" | "column_stack" => Dims::at_least(2),
            "atleast_3d" | "dstack" => Dims::at_least(3),
            "__getitem__" | "take" | "item" | "inner" | "get" | "logdet" | "slogdet" | "matrix_rank"
            | "cond" | "multi_dot" | "vecdot" | "tensordot" | "kthvalue" | "mode" | "quantile"
            | "nanquantile" | "searchsorted" | "cov" | "corrcoef" | "trapz" | "trapezoid" | "view_as"
            | "reshape_as" | "kl_div" => Dims::ANY,
            _ if name.ends_with("_loss") || name.contains("cross_entropy") => loss_dims(method, args),
            _ => all(),
        }
    }

    /// The dimensions after `view` and similar methods, whose sizes start at this argument. The result has at least `least` dimensions.
    fn sized_dims(&self, args: &Args, at: usize, least: usize) -> Dims {
        let count = args.positional.len().saturating_sub(at);
        match args.positional.get(at) {
            Some(&(v @ (Value::Seq(_) | Value::Object(_)), _)) => {
                self.length(v).map_or(Dims::at_least(least), Dims::exactly)
            }
            // One dimension for each size.
            Some((Value::Int(_) | Value::Host(Host::Number), _)) if args.open => Dims::SOME,
            _ if args.open => Dims::at_least(least),
            // `x.shape[:-2] + (1, 1)`
            Some(&(_, e)) if count == 1 && self.least_length(e) > 0 => {
                Dims::at_least(least.max(self.least_length(e)))
            }
            Some((Value::Int(_) | Value::Host(Host::Number), _)) => Dims::exactly(count),
            Some(_) if count > 1 => Dims::exactly(count),
            _ => Dims::at_least(least),
        }
    }

    /// The dimensions after a reduction over one, several or all dimensions.
    fn reduced(&self, whole: Dims, args: &Args, dim: Option<(Value, ExprId)>, nothing_more: bool) -> Dims {
        if args.open || args.open_names {
            return Dims::ANY;
        }
        let kept = match args.keyword("keepdim") {
            Some((Value::Bool(crate::flow::domain::diagram::FALSE), _)) | None => false,
            Some((Value::Bool(crate::flow::domain::diagram::TRUE), _)) => return whole,
            Some(_) => true,
        };
        // PyTorch also accepts NumPy's name for the argument.
        let less = match dim.or_else(|| args.keyword("axis")) {
            Some((Value::Int(number), _)) => whole.with_dimension(number).minus(1),
            Some((Value::None, _)) => Dims::ZERO,
            // For some functions `()` means all dimensions, for others none.
            Some((v, _)) => match self.exact_elements(v).map(|items| (u8::try_from(items.len()), items)) {
                Some((Ok(n), items)) if n > 0 => items
                    .iter()
                    .fold(whole, |dims, &item| match item {
                        Value::Int(number) => dims.with_dimension(number),
                        _ => dims,
                    })
                    .minus(n),
                _ => Dims::ANY,
            },
            None if nothing_more => Dims::ZERO,
            None => Dims::ANY,
        };
        // A Boolean by position may be `keepdim`.
        let positional = args.positional.iter().any(|(v, _)| matches!(v, Value::Bool(_)));
        if kept || positional { less.join(whole) } else { less }
    }

    /// The dimensions of `x[index]`. `whole` is the number of dimensions of `x`.
    pub(crate) fn indexed_dims(&self, whole: Dims, i: Value, index: ExprId) -> Dims {
        let ir = &self.linked().ir;
        let mut dims = whole.of_any_size();
        let parts: Vec<(ExprId, Value)> = match (ir.expr(index), i) {
            (Expr::Tuple(list), Value::Seq(s)) => {
                let values = self.seq_items(s);
                ir.list(list).iter().copied().zip(values.iter().copied()).collect()
            }
            (Expr::Tuple(list), _) => ir.list(list).iter().map(|&e| (e, Value::Unknown)).collect(),
            _ => vec![(index, i)],
        };
        let mut kept = false;
        for (e, v) in parts {
            match (ir.expr(e), v) {
                (Expr::Slice(_), _) | (_, Value::Slice) => kept = true,
                (Expr::None, _) => {
                    dims = dims.plus(1);
                    kept = true;
                }
                // `...`
                (Expr::Ellipsis, _) => {}
                (_, Value::Tensor(t)) if self.get_tensor(t).dims.some() => {
                    // A mask replaces all its dimensions by one. A tensor of indices replaces one dimension by all its own.
                    return Dims::SOME;
                }
                (_, Value::Int(_) | Value::Host(Host::Number)) => dims = dims.picked(),
                (_, Value::Tensor(t)) if self.get_tensor(t).dims == Dims::ZERO => dims = dims.picked(),
                // A number removes one dimension. Any other index keeps at least as many.
                _ => dims = Dims::at_least(dims.minus(1).least()),
            }
        }
        if kept && !dims.some() { dims.broadcast(Dims::SOME) } else { dims }
    }
}

/// The size of each dimension, if all are the same number.
fn same_size(sizes: &[Value]) -> Option<usize> {
    let (&Value::Int(first), rest) = sizes.split_first()? else { return None };
    rest.iter().all(|&size| size == Value::Int(first)).then(|| usize::try_from(first).ok()).flatten()
}

/// The dimensions of a loss: zero for the mean, unless the call chooses another reduction.
fn loss_dims(method: bool, args: &Args) -> Dims {
    let told = ["reduction", "reduce", "size_average"].iter().any(|name| args.keyword(name).is_some());
    // The first three arguments are input, target and weights.
    let plain = !told && !method && !args.open && !args.open_names && args.positional.len() < 4;
    if plain { Dims::ZERO } else { Dims::ANY }
}

/// The dimensions of `torch.einsum("ij,jk->ik", …)`, from the equation.
fn equation_dims(args: &Args) -> Dims {
    let Some(&(Value::Str(equation, _), _)) = args.positional.first() else { return Dims::ANY };
    let Some((_, result)) = equation.as_str().split_once("->") else { return Dims::ANY };
    let letters = result.chars().filter(|c| c.is_alphabetic()).count();
    if result.contains('.') { Dims::at_least(letters) } else { Dims::exactly(letters) }
}
