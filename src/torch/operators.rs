//! The types of the operator table: what one PyTorch callable asks of devices.

use crate::sym::Sym;
use crate::world::Backend;

/// One public function or method of PyTorch, or the constructor of a distribution.
#[derive(Clone, PartialEq, Debug)]
pub struct Op {
    /// The dotted name: `torch.add`, `torch.Tensor.add`.
    pub name: Sym,
    /// What it is, as far as devices go.
    pub kind: Kind,
    /// Its tensor arguments, in the order of the table.
    pub args: Box<[ArgRule]>,
    /// Where the result lives.
    pub result: ResultRule,
    /// Without `device=`, the default device decides (`torch.set_default_device`, `with torch.device(…)`).
    pub honours_default: bool,
    /// Keywords about devices that it takes.
    pub accepts: Accepts,
    /// `out=` on another device than the result is known to be refused.
    pub out_must_match: bool,
    /// It changes its first argument: `add_`, `__iadd__`, `torch.relu_`, `nn.init.normal_`.
    pub in_place: bool,
    /// Only for [`Kind::Distribution`].
    pub distribution: Option<Distribution>,
}

impl Op {
    /// The rule of the positional argument `position` (a method's receiver is 0).
    pub fn positional(&self, position: usize) -> Option<&ArgRule> {
        let at = |a: &&ArgRule| a.position.map(usize::from) == Some(position);
        self.args.iter().find(at).or_else(|| {
            self.args.iter().find(|a| a.variadic && a.position.is_some_and(|p| usize::from(p) <= position))
        })
    }

    /// The rule of the keyword argument `name`.
    pub fn keyword(&self, name: Sym) -> Option<&ArgRule> {
        self.args.iter().find(|a| a.name == name)
    }
}

/// What a callable is, as far as devices go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Makes a tensor: `torch.zeros`.
    Factory,
    /// Makes a tensor like another: `torch.zeros_like`.
    FactoryLike,
    /// The methods `new_*`.
    NewLike,
    /// Moves: `.to()`, `.cuda()`, `.cpu()`, `.type_as()`.
    Transfer,
    /// Demands that its arguments share a device, with the exceptions in [`ArgRule`].
    Same,
    /// Tolerates arguments on several devices.
    MixedOk,
    /// A view, or an elementwise function of one tensor. Every tensor argument counts, listed or not.
    Unary,
    /// Gives host data: `.item()`, `.shape`, `.numpy()`.
    ToHost,
    /// Works on the CPU only, or demands a CPU argument.
    CpuOnly,
    /// `x[i]`, `x[i] = v`, `index_put`. The rule of `__setitem__`'s value holds where an index is a tensor; with
    /// integers and slices alone the value may come from any device.
    Indexing,
    /// An attribute of `torch.Tensor` that is no method.
    Attribute,
    /// An `nn.Module`.
    Module,
    /// A distribution's constructor.
    Distribution,
    /// None of these.
    Other,
}

impl Kind {
    /// All kinds with their names in the data.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::Factory, "factory"),
        (Self::FactoryLike, "like"),
        (Self::NewLike, "new"),
        (Self::Transfer, "transfer"),
        (Self::Same, "same"),
        (Self::MixedOk, "mixed"),
        (Self::Unary, "unary"),
        (Self::ToHost, "host"),
        (Self::CpuOnly, "cpu_only"),
        (Self::Indexing, "indexing"),
        (Self::Attribute, "attribute"),
        (Self::Module, "module"),
        (Self::Distribution, "distribution"),
        (Self::Other, "other"),
    ];
}

/// What is known of one tensor argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgRule {
    /// The parameter's name.
    pub name: Sym,
    /// Its position; `None` for keyword-only. A method's receiver is position 0.
    pub position: Option<u8>,
    /// A list or tuple of tensors (or one).
    pub list: bool,
    /// This and all later positional arguments: `torch.einsum(equation, *operands)`.
    pub variadic: bool,
    /// Whether it shares a device with the others.
    pub share: Share,
    /// Whether it may be on the CPU when the others are on CUDA.
    pub cpu_ok: Elsewhere,
    /// Whether it may be on CUDA when the others are on the CPU.
    pub cuda_ok: Elsewhere,
}

/// Whether an argument shares a device with the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Share {
    /// With every other `Must` argument, but for [`ArgRule::cpu_ok`] and [`ArgRule::cuda_ok`].
    Must,
    /// It need not; `cpu_ok` and `cuda_ok` say what is refused all the same (a CUDA index on a CPU tensor).
    Free,
    /// It must be on the CPU, wherever the others are.
    Cpu,
    /// Not known, or no other tensor to share with.
    Unknown,
}

/// Whether an argument may be elsewhere than the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elsewhere {
    /// It is refused.
    No,
    /// It is accepted.
    Yes,
    /// Accepted when it is zero-dimensional, refused otherwise.
    ZeroDim,
    /// Accepted only where it and all others are zero-dimensional: they are broadcast first.
    AllZeroDim,
    /// Refused when it has dimensions; for zero-dimensional ones nobody knows.
    MaybeZeroDim,
    /// Not known.
    Unknown,
}

impl Elsewhere {
    /// Whether a tensor elsewhere is certainly refused, given what is known of it, and of every other argument,
    /// being zero-dimensional.
    pub fn refuses(self, zero_dim: Option<bool>, others_zero_dim: Option<bool>) -> bool {
        match self {
            Self::No => true,
            Self::ZeroDim | Self::MaybeZeroDim => zero_dim == Some(false),
            Self::AllZeroDim => zero_dim == Some(false) || others_zero_dim == Some(false),
            Self::Yes | Self::Unknown => false,
        }
    }

    /// Whether a tensor elsewhere is certainly accepted, given the same.
    pub fn accepts(self, zero_dim: Option<bool>, others_zero_dim: Option<bool>) -> bool {
        match self {
            Self::Yes => true,
            Self::ZeroDim => zero_dim == Some(true),
            Self::AllZeroDim => zero_dim == Some(true) && others_zero_dim == Some(true),
            Self::No | Self::MaybeZeroDim | Self::Unknown => false,
        }
    }
}

/// Where a result lives. A result that is a tuple of tensors follows the same rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResultRule {
    /// With the tensor arguments (a CPU scalar among CUDA tensors does not count); without any, as
    /// [`ResultRule::DeviceArgument`].
    Follows,
    /// With the first tensor argument (a method's `self`); `device=` overrides where it is accepted.
    Receiver,
    /// On `device=`, else the default device if the callable honours it, else the CPU.
    DeviceArgument,
    /// On `device=`, else on a default device that is set, else where the tensor given as data is, else the CPU.
    Data,
    /// Each element of the result with its own argument.
    Each,
    /// With the second tensor argument (`type_as`).
    OtherArgument,
    /// What the arguments of `.to()` say, else with the receiver.
    To,
    /// With the receiver, unless a type such as `torch.cuda.FloatTensor` is named.
    TypeArgument,
    /// With the parameters of the distribution.
    Parameters,
    /// On the CPU.
    Cpu,
    /// On CUDA, on the index that is given or the current device.
    Cuda,
    /// On another back end.
    Backend(Backend),
    /// No tensor.
    Host,
    /// A `torch.device`.
    Device,
    /// Not known.
    Unknown,
}

/// Keywords that matter to devices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Accepts {
    /// `device=`
    pub device: bool,
    /// `generator=`, which must be of the device type of the result.
    pub generator: bool,
    /// `pin_memory=`, which raises without CUDA.
    pub pin_memory: bool,
    /// `out=`
    pub out: bool,
    /// `dtype=`
    pub dtype: bool,
    /// `force=`, which lifts the demand for a CPU receiver (`Tensor.numpy`).
    pub force: bool,
    /// `check_device=`, without which its tensors may be anywhere (`assert_close`).
    pub check_device: bool,
}

/// What a distribution adds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Distribution {
    /// Parameters on different devices fail in the constructor; otherwise only in `sample` and `rsample`.
    pub fails_at_construction: bool,
    /// Whether `log_prob` takes a CPU value with parameters on CUDA.
    pub cpu_value: Elsewhere,
    /// Whether `log_prob` takes a CUDA value with parameters on the CPU.
    pub cuda_value: Elsewhere,
}

/// One module of `torch.nn`.
#[derive(Clone, PartialEq, Debug)]
pub struct ModuleOp {
    /// The dotted name: `torch.nn.Linear`.
    pub name: Sym,
    /// The constructor's parameters in order; `args,kwargs` where its signature does not tell.
    pub constructor: Box<[ConstructorParameter]>,
    /// The tensors of `forward`: their rules are against each other and, where there is state, the module.
    pub forward: Box<[ArgRule]>,
    /// Where the result of calling it lives.
    pub result: ResultRule,
    /// Whether it has parameters or buffers.
    pub state: State,
    /// Keywords of the constructor.
    pub accepts: Accepts,
}

impl ModuleOp {
    /// Does it hold what it is given, and nothing of its own?
    pub fn is_container(&self) -> bool {
        let class = self.name.as_str().rsplit('.').next();
        matches!(class, Some("Sequential" | "ModuleList" | "ModuleDict" | "ParameterList" | "ParameterDict"))
    }
}

/// One parameter of a module's constructor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConstructorParameter {
    /// Its name.
    pub name: Sym,
    /// It is a tensor that the module keeps as a buffer or parameter: `CrossEntropyLoss(weight=…)`.
    pub tensor: bool,
    /// It switches state: see [`State`].
    pub switch: bool,
}

/// Whether a module has parameters or buffers of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Yes; but where the constructor has switches ([`ConstructorParameter::switch`]), `False` for all of them
    /// leaves none.
    Yes,
    /// Never: it works wherever its inputs are.
    No,
    /// When a tensor was given to the constructor, or `True` for one of its switches.
    Sometimes,
    /// Not known.
    Unknown,
}
