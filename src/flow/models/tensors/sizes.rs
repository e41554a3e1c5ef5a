//! Sizes in bytes of tensors and modules on an accelerator.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, OuterId, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::ExprId;

impl Interp<'_> {
    /// `tensor.size()` and `tensor.size(dim)`, if the source states the sizes.
    pub(crate) fn known_size(&mut self, t: Tensor, args: &Args) -> Option<Value> {
        match args.get(0, "dim") {
            Some((Value::Int(number), _)) => {
                t.dims.size(number).and_then(|n| i64::try_from(n).ok()).map(Value::Int)
            }
            Some(_) => None,
            None if args.open || args.open_names => None,
            None => self.known_sizes(t),
        }
    }

    /// `tensor.shape`, if the source states the sizes.
    pub(crate) fn known_sizes(&mut self, t: Tensor) -> Option<Value> {
        let size = i64::try_from(t.dims.size(0)?).ok()?;
        Some(self.seq(&vec![Value::Int(size); t.dims.least()]))
    }

    /// Reports a large allocation of known size.
    pub(crate) fn check_allocation(&mut self, device: Dd, bytes: Option<u64>, e: ExprId) {
        let Some(bytes) = bytes.filter(|&b| b >= 64 << 20) else { return };
        let on_gpu = self.d.map(device, &mut |p| p);
        let mut leaves = Vec::new();
        self.d.leaves(on_gpu, &mut leaves);
        let gpu: Vec<u32> = leaves
            .into_iter()
            .filter(|&p| {
                let (d, _) = *self.t.places.get(p);
                matches!(d, Device::Cuda(_) | Device::CudaSome)
                    || matches!(d, Device::Named(o) if self.t.get_outer(o).device)
            })
            .collect();
        if gpu.is_empty() {
            return;
        }
        let here = self.d.where_leaf(device, &mut |p| gpu.contains(&p));
        let there = self.at_least(1);
        let bad = self.d.and(here, there);
        let handled = self.oom_handled() || self.asked_for_memory();
        let Some(bite) = self.bite(bad, false) else { return };
        let place = self.place(e);
        self.emit(Kind::Allocation { bytes, handled }, place, bite, Vec::new());
    }

    /// Does the path depend on the amount of memory?
    pub(crate) fn asked_for_memory(&self) -> bool {
        let mut asked = false;
        self.d.cubes(self.path, &mut |literals| {
            asked |= literals
                .iter()
                .any(|&(a, _)| matches!(self.atoms.get(a), crate::flow::domain::atom::Atom::Memory));
        });
        asked
    }
}

/// The size in bytes up to which tensors share blocks of two mebibytes (`kSmallSize` in c10/cuda/CUDACachingAllocator.cpp). Code that
/// makes such a tensor tests something, and is not about to fill the memory.
pub(crate) const SMALL: u64 = 1 << 20;

/// The size in bytes of the tensor that a factory makes, if the source shows it.
pub(crate) fn size_in_bytes(i: &Interp<'_>, name: &str, args: &Args) -> Option<u64> {
    let shaped = matches!(name, "zeros" | "ones" | "empty" | "rand" | "randn" | "full" | "randint");
    if !shaped && name != "eye" {
        return None;
    }
    let dims = given_size(i, name, args)?;
    if dims.contains(&Value::Int(0)) {
        return Some(0);
    }
    let (mut count, mut by_default): (u64, bool) = (1, false);
    for &d in &dims {
        let n = match d {
            Value::Int(n) => n,
            Value::Outer(o) => {
                by_default = true;
                number_by_default(i, o)?
            }
            _ => return None,
        };
        count = count.checked_mul(u64::try_from(n).ok()?)?;
    }
    if name == "eye" && dims.len() == 1 {
        count = count.checked_mul(count)?;
    }
    let width = given_width(i, name, args)?;
    // The user may pass a larger value for the option, but then knows it.
    count.checked_mul(width).filter(|&bytes| !by_default || bytes > 0 && bytes <= SMALL)
}

/// The sizes that a factory receives, as a sequence or one by one.
pub(crate) fn given_size(i: &Interp<'_>, name: &str, args: &Args) -> Option<Vec<Value>> {
    if let Some((v, _)) = args.keyword("size") {
        return i.exact_elements(v);
    }
    let at = match name {
        "randint" => args.positional.iter().position(|&(v, _)| i.exact_elements(v).is_some())?,
        _ => 0,
    };
    match args.positional.get(at) {
        Some(&(v, _)) if let Some(elements) = i.exact_elements(v) => Some(elements),
        _ if name == "full" => None,
        _ => Some(args.positional.iter().map(|&(v, _)| v).collect()),
    }
}

/// The number of bytes of one element, by the factory's `dtype`.
fn given_width(i: &Interp<'_>, name: &str, args: &Args) -> Option<u64> {
    match args.keyword("dtype") {
        None if name == "randint" => Some(8),
        None => Some(4),
        Some((Value::External(path), _)) => dtype_width(path.as_str()),
        // One of several dtypes: use the smallest.
        Some((Value::Choice(d), _)) => {
            let mut leaves = Vec::new();
            i.d.leaves(d, &mut leaves);
            let width = |p: u32| match i.t.values.get(p) {
                Value::External(path) => dtype_width(path.as_str()),
                _ => None,
            };
            leaves.into_iter().map(width).collect::<Option<Vec<u64>>>()?.into_iter().min()
        }
        Some(_) => None,
    }
}

/// The default of an option of the command line, if that is a number.
fn number_by_default(i: &Interp<'_>, o: OuterId) -> Option<i64> {
    match i.t.get_outer(o).default {
        Some(Value::Int(n)) => Some(n),
        _ => None,
    }
}

/// The size in bytes of a module's weights, if the source shows it.
pub(crate) fn module_bytes(name: &str, args: &Args) -> Option<u64> {
    let size = |position: usize, keyword: &str| match args.get(position, keyword) {
        Some((Value::Int(n), _)) => u64::try_from(n).ok(),
        _ => None,
    };
    let count = match name {
        "Linear" => size(0, "in_features")?.checked_mul(size(1, "out_features")?)?,
        "Embedding" | "EmbeddingBag" => size(0, "num_embeddings")?.checked_mul(size(1, "embedding_dim")?)?,
        "Bilinear" => size(0, "in1_features")?
            .checked_mul(size(1, "in2_features")?)?
            .checked_mul(size(2, "out_features")?)?,
        _ => return None,
    };
    let width = match args.keyword("dtype") {
        None => 4,
        Some((Value::External(path), _)) => dtype_width(path.as_str())?,
        Some(_) => return None,
    };
    count.checked_mul(width)
}

pub(crate) fn dtype_width(path: &str) -> Option<u64> {
    Some(match path.strip_prefix("torch.")? {
        "float64" | "double" | "int64" | "long" | "complex64" => 8,
        "float32" | "float" | "int32" | "int" => 4,
        "float16" | "half" | "bfloat16" | "int16" | "short" => 2,
        "int8" | "uint8" | "bool" => 1,
        "complex128" => 16,
        _ => return None,
    })
}
