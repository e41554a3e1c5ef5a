//! Calls of functions that use or query an accelerator.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::{Kind, UseKind};
use crate::flow::domain::value::{Device, NO_ORIGIN, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, AcceleratorCall, CallFact, Numpy, Returns, Without};

/// The maximum number of elements of a list to check one by one.
const MAX_CONVERTED: usize = 8;

impl Interp<'_> {
    /// A call of a function that the tables describe.
    pub(crate) fn fact_call(&mut self, path: Sym, fact: &'static CallFact, args: &Args, e: ExprId) -> Value {
        self.check_emptied(path, e);
        self.check_autocast_type(path, args, e);
        self.check_index_wanted(fact, args);
        if let Some(a) = fact.accelerator
            && let Some(v) = self.accelerator_call(path, a, args, e)
        {
            return v;
        }
        if fact.to_numpy != Numpy::None {
            for (i, &(v, at)) in args.positional.iter().enumerate() {
                let whole = fact.to_numpy == Numpy::Items && matches!(v, Value::Tensor(_));
                if fact.to_numpy.converts(i) && !whole {
                    self.check_converted(v, at, e, path.as_str());
                }
            }
        }
        if fact.moves_for_user || !fact.leaves_arguments && fact.returns == Returns::Unknown {
            for (v, _) in args.values() {
                self.escape(v, 0);
            }
        }
        match fact.returns {
            Returns::Argument(a) => {
                args.get(usize::from(a.position), a.name.as_str()).map_or(Value::Unknown, |(v, _)| v)
            }
            Returns::Host => Self::NUMBER,
            // The rank within another group may be a different number.
            Returns::Rank if args.positional.is_empty() && args.keywords.is_empty() => {
                Value::Host(crate::flow::domain::value::Host::Rank)
            }
            Returns::Rank => Self::NUMBER,
            Returns::Memory => Value::Host(crate::flow::domain::value::Host::Memory),
            Returns::CurrentGpu => Value::Host(crate::flow::domain::value::Host::CurrentGpu),
            Returns::Items => self.data_set_of_files(args, e),
            Returns::Cpu => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Host, NO_ORIGIN);
                let d = self.at(Device::Cpu, origin);
                self.plain_tensor(d, Dims::ANY)
            }
            Returns::Method(name) => match args.positional.split_first() {
                Some((&(v, at), rest)) => {
                    let rest = Args { positional: rest.to_vec(), ..args.clone() };
                    self.call_method(v, name, &rest, e, at)
                }
                None => self.result_of(e),
            },
            _ if path.as_str().starts_with("numpy.") => Self::ARRAY,
            _ => self.result_of(e),
        }
    }

    /// A function converts the value to an array. Reports tensors that are not on the CPU.
    pub(crate) fn check_converted(&mut self, v: Value, at: ExprId, e: ExprId, what: &str) {
        match v {
            Value::Tensor(t) if self.get_tensor(t).certain => {
                let device = self.get_tensor(t).device;
                self.check_host(device, at, e, &format!("`{what}`"));
            }
            Value::Outer(o) => self.taken_to_host(Device::Of(o)),
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::List { module: false }) => {
                let items = match self.own(id) {
                    Value::Many(m) => vec![*self.t.values.get(m)],
                    Value::Seq(s) => self.seq_items(s).iter().copied().take(MAX_CONVERTED).collect(),
                    _ => Vec::new(),
                };
                for v in items {
                    self.check_converted(v, at, e, what);
                }
            }
            // A dict with one value for each column.
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Dict { .. }) && is_of_pandas(what) => {
                let Value::Seq(s) = self.own(id) else { return };
                let columns: Vec<Value> = self.seq_items(s).iter().skip(1).step_by(2).copied().collect();
                for v in columns.into_iter().take(MAX_CONVERTED) {
                    self.check_converted(v, at, e, what);
                }
            }
            _ => {}
        }
    }

    /// A function of `torch.cuda` or of another back end. Returns `None` if the rest of the function's entry describes the result.
    pub(crate) fn accelerator_call(
        &mut self,
        path: Sym,
        a: AcceleratorCall,
        args: &Args,
        e: ExprId,
    ) -> Option<Value> {
        let nvml = path.as_str() == "torch.cuda.is_available" && self.asks_through_nvml();
        if crate::flow::query::relevance::import_effects::asks_cuda(path) && !nvml {
            let place = self.place(e);
            self.initialises(TRUE, place);
        }
        let backend = match a.accelerator {
            Accelerator::Cuda => None,
            Accelerator::Backend(b) => Some(b),
            Accelerator::Any if a.without == Without::Availability => {
                return Some(Value::Bool(self.any_accelerator()));
            }
            // The number of devices of an arbitrary back end says nothing about CUDA.
            Accelerator::Any if a.without == Without::Count => return Some(Self::NUMBER),
            Accelerator::Any => return None,
        };
        if let (Some(b), true) = (backend, a.accelerator.needs_plugin()) {
            self.check_plugin(path, b, e);
        }
        match a.without {
            Without::Availability => Some(Value::Bool(self.available(backend))),
            Without::Count if backend.is_none() => Some(Value::Outer(self.known.device_count)),
            Without::Count | Without::NoGuard => Some(self.result_of(e)),
            Without::Implied => {
                let (there, said) = (self.available(backend), self.unknown_test(e));
                Some(Value::Bool(self.d.and(there, said)))
            }
            Without::Built => Some(Value::Bool(self.is_built(path))),
            Without::Safe => None,
            Without::Raises => {
                let device = a.device.and_then(|d| args.get(usize::from(d.position), d.name.as_str()));
                let harmless = a.none_is_harmless && matches!(device, Some((Value::None, _)))
                    || matches!(device, Some((Value::Int(i), _)) if i < 0 && a.none_is_harmless);
                if !harmless && !a.context {
                    let what = format!("`{path}()`");
                    let told = self.events.len();
                    if let (Some((number, at)), Some(_)) = (device, backend) {
                        self.check_index_meaning(number, at, backend);
                    }
                    self.use_of_device(device, backend, e, UseKind::Query, &what);
                    // For any device object, the call raises without CUDA. So code after it has CUDA.
                    if backend.is_none() && self.events.len() == told {
                        if self.raises_for_any(device) {
                            let there = self.available(None);
                            self.path = self.d.and(self.path, there);
                        } else {
                            self.chooses_gpu(path, e);
                        }
                    }
                }
                None
            }
        }
    }

    /// The condition that the machine has some accelerator: CUDA, or another one.
    fn any_accelerator(&mut self) -> Cond {
        let mut some = self.available(None);
        for b in crate::flow::models::devices::intrinsics::CURRENT {
            let there = self.available(Some(b));
            some = self.d.or(some, there);
        }
        some
    }

    /// Is the argument a `torch.device` object, so that the call raises without CUDA for any device?
    fn raises_for_any(&self, device: Option<(Value, ExprId)>) -> bool {
        device.is_some_and(|(v, _)| self.values_of(v).iter().all(|v| matches!(v, Value::Device(_))))
            && !self.caught_around()
    }

    /// `torch.backends.mps.is_built()`: usually true, with or without the accelerator. So assuming it needs no guess, and it is
    /// no guard.
    fn is_built(&mut self, path: Sym) -> Cond {
        let test = crate::flow::machine::Test::Truth(Value::External(path));
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let text = format!("{path}()");
                let atom = self.atoms.add(Atom::Flag {
                    text,
                    about_devices: false,
                    settable: true,
                    default: Some(true),
                });
                self.note_test(test, atom);
                atom
            }
        };
        self.d.atom(atom)
    }

    /// A use of an accelerator. The argument names the device, or the use takes the current one.
    pub(crate) fn use_of_device(
        &mut self,
        device: Option<(Value, ExprId)>,
        backend: Option<crate::world::Backend>,
        e: ExprId,
        how: UseKind,
        what: &str,
    ) {
        let place = self.place(e);
        let d = match (device, backend) {
            // The first GPU is there wherever CUDA is, so the cause is the call and not the number.
            (Some((Value::Int(0), _)), None) => {
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                self.at(Device::Cuda(Some(0)), origin)
            }
            (Some((v, at)), None) if v != Value::None => {
                let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                // `device.index` as an argument uses CUDA, whatever the device is.
                let index = matches!(v, Value::Outer(o)
                    if matches!(self.t.get_outer(o).key, OuterKey::Attr { name, .. } if name.as_str() == "index"));
                // So does a number that is a literal or an option's default, unless it is negative.
                let number = |o| {
                    self.evidence.numbers_written.get(&o) == Some(&true)
                        || matches!(self.t.get_outer(o).default, Some(Value::Int(0..)))
                };
                let index = index || matches!(v, Value::Outer(o) if number(o));
                let names_other =
                    matches!(v, Value::Outer(_) | Value::Device(_) | Value::Choice(_)) && !index;
                let d = if index { self.unknown_device() } else { d };
                if names_other { d } else { self.only_cuda_device(d) }
            }
            (_, None) => {
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                self.at(Device::Cuda(None), origin)
            }
            (_, Some(b)) => {
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                self.at(Device::Other(b), origin)
            }
        };
        self.check_use(d, e, how, what);
        if backend.is_none() {
            self.check_refused_cpu(d, e, how, what);
        }
    }

    /// A function for CUDA devices receives a device that is the CPU on a machine without CUDA. `torch.cuda.set_device(device)`
    /// raises there (torch/cuda/_utils.py, `_get_device_index`). With a negative number, it does nothing.
    pub(crate) fn check_refused_cpu(
        &mut self,
        d: crate::flow::domain::diagram::Dd,
        e: ExprId,
        how: UseKind,
        what: &str,
    ) {
        if self.is_text(d) {
            return;
        }
        for (leaf, device, _) in self.device_leaves(d) {
            if device == Device::Cpu {
                let here = self.d.where_leaf(d, &mut |p| p == leaf);
                self.check_leaf_use(here, NO_ORIGIN, None, None, e, how, what);
            }
        }
    }

    /// `library.Detector(device="cuda")`: another library puts what it makes on that device.
    pub(crate) fn check_given_device(&mut self, path: Sym, args: &Args, e: ExprId) {
        let text = path.as_str();
        if text.starts_with("torch.") || text.starts_with("builtins.") || !text.contains('.') {
            return;
        }
        let Some((Value::Str(device, origin), _)) = args.keyword("device") else { return };
        if !matches!(
            crate::flow::models::devices::from_values::parse_device(device.as_str()),
            Some(crate::flow::domain::value::Device::Cuda(_))
        ) {
            return;
        }
        let d = self.at(
            crate::flow::models::devices::from_values::parse_device(device.as_str())
                .unwrap_or(crate::flow::domain::value::Device::Unknown),
            origin,
        );
        let what = format!("`{}(device=…)`", crate::flow::models::tensors::functions::short(path));
        self.check_use(d, e, UseKind::Query, &what);
    }

    /// Reports `wait = torch.cuda.synchronize`, stored for later calls, on a path for machines without CUDA.
    pub(crate) fn check_reference(&mut self, v: Value, e: ExprId) {
        let Value::External(path) = v else { return };
        let Some(a) = torch::call(path).and_then(|f| f.accelerator) else { return };
        if a.accelerator != Accelerator::Cuda || a.without != Without::Raises || a.context {
            return;
        }
        let there = self.available(None);
        let absent = self.d.not(there);
        if !self.d.implies(self.path, absent) {
            return;
        }
        if let Some(bite) = self.bite(absent, false) {
            let place = self.place(e);
            let kind = Kind::Use {
                what: format!("`{path}`"),
                origin: None,
                index: None,
                backend: None,
                how: UseKind::Query,
                inverted: true,
            };
            self.emit(kind, place, bite, Vec::new());
        }
    }

    /// `device_ids=[0, 1, 2, 3]`: a list of indices where a function takes devices. The check needs a GPU: on a machine without
    /// one, the function ignores the list, or something else raises first.
    pub(crate) fn check_device_list(&mut self, path: Sym, args: &Args, e: ExprId) {
        if !args.values().any(|(v, _)| matches!(v, Value::Object(_) | Value::Seq(_) | Value::Choice(_))) {
            return;
        }
        let Some(arg) = torch::call(path).and_then(|f| f.accelerator).and_then(|a| a.device) else { return };
        let Some((list, _)) = args.get(usize::from(arg.position), arg.name.as_str()) else { return };
        // `[0, 1] if torch.cuda.is_available() else None`
        self.each(list, &mut |i, list| {
            i.check_listed(arg.name, list, e);
            Value::None
        });
    }

    fn check_listed(&mut self, name: Sym, list: Value, e: ExprId) {
        let Some(items) = self.exact_elements(list) else { return };
        let index = |v: &Value| match v {
            Value::Int(i) => u32::try_from(*i).ok(),
            _ => None,
        };
        let Some(highest) = items.iter().filter_map(index).max().filter(|&i| i > 0) else { return };
        if self.caught_around() {
            return;
        }
        let (there, enough) = (self.at_least(1), self.at_least(highest + 1));
        let missing = self.d.not(enough);
        let bad = self.d.and(there, missing);
        let Some(bite) = self.bite(bad, false) else { return };
        let place = self.place(e);
        let what = format!("`{name}={:?}`", items.iter().filter_map(index).collect::<Vec<_>>());
        let kind = Kind::Use {
            what,
            origin: None,
            index: Some(highest),
            backend: None,
            how: UseKind::DeviceList,
            inverted: false,
        };
        self.emit(kind, place, bite, Vec::new());
    }

    pub(crate) fn only_cuda_device(
        &mut self,
        d: crate::flow::domain::diagram::Dd,
    ) -> crate::flow::domain::diagram::Dd {
        let places = &mut self.t.places;
        self.d.map(d, &mut |p| match *places.get(p) {
            (Device::Unknown, o) => places.add((Device::CudaSome, o)),
            _ => p,
        })
    }

    /// A use of CUDA on the current device.
    pub(crate) fn use_cuda(&mut self, e: ExprId, how: UseKind, what: &str) {
        self.use_of_device(None, None, e, how, what);
    }
}

/// Does the function make columns from the values of a dict?
fn is_of_pandas(function: &str) -> bool {
    function.starts_with("pandas.")
}
