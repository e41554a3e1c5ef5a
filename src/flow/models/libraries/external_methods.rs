//! Methods of objects that other libraries made.

use crate::flow::domain::atom::gpus_at_least;
use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Outer, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::{Args, names_device};
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::libraries::external_calls::HOST_LIBRARIES;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self, Elsewhere};
use crate::world::Backend;

impl Interp<'_> {
    /// A call of a library function that is not in the tables.
    pub(crate) fn foreign_call(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        if let Some(answer) = self.driver_call(path, args, e) {
            return answer;
        }
        let text = path.as_str();
        if HOST_LIBRARIES.iter().any(|library| text.starts_with(library)) {
            args.values().for_each(|(v, _)| self.read_on_host(v));
        }
        if text.starts_with("numpy.") {
            return Self::ARRAY;
        }
        if torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Optimizer)
            || text.starts_with("torch.optim.")
        {
            return Value::Object(self.object(ObjKind::Inert, None, Value::Absent));
        }
        if torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module) {
            return self.foreign_instance(None, args, e);
        }
        let last = crate::flow::models::tensors::functions::short(path);
        if matches!(last, "from_pretrained") && text.contains("Model")
            || text.starts_with("torchvision.models.")
        {
            return self.foreign_instance(None, args, e);
        }
        if text == "torch.cuda.device_count" {
            return Value::Outer(self.known.device_count);
        }
        // `types.SimpleNamespace(x=x)`: its attributes are the keyword arguments.
        let holds = matches!(text, "types.SimpleNamespace" | "argparse.Namespace");
        if holds && args.positional.is_empty() && !args.open {
            let id = self.object(ObjKind::Instance, None, Value::Absent);
            for &(name, v, _) in &args.keywords {
                self.set_field(id, name, v);
            }
            return Value::Object(id);
        }
        // `torch.ops.hpu.…` exists only with the plug-in of that back end.
        let space = text.strip_prefix("torch.ops.").and_then(|rest| rest.split('.').next());
        if let Some(b) = space.and_then(Backend::from_name) {
            self.cannot_do_without(b);
        }
        self.check_given_device(path, args, e);
        self.unknown_call(Value::Unknown, args, e)
    }

    /// Calls a method of an object that models an object of another library.
    pub(crate) fn foreign_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        self.training_method(id, name, args, e);
        self.pool_method(id, name, args, e);
        match (self.obj(id).kind, name.as_str()) {
            (ObjKind::Parser, "add_argument") => {
                self.add_argument(id, args);
                Value::None
            }
            (ObjKind::Parser, "parse_args" | "parse_known_args") => {
                let namespace = self.object(ObjKind::Namespace, None, Value::Object(id));
                if args.get(0, "args").is_some_and(|(v, _)| v != Value::None) {
                    self.libraries.lists.insert(namespace, self.place(e));
                }
                if name.as_str() == "parse_args" {
                    return Value::Object(namespace);
                }
                self.seq(&[Value::Object(namespace), Value::Unknown])
            }
            (ObjKind::Parser, "add_argument_group" | "add_mutually_exclusive_group") => Value::Object(id),
            (ObjKind::Generator, "manual_seed") => Value::Object(id),
            // The state is a CPU tensor for a generator on any device.
            (ObjKind::Generator, "set_state") => {
                if let Some((v, at)) = args.get(0, "new_state")
                    && let Some((device, _)) = self.tensor_place(v, at)
                {
                    self.check_on_cpu(device, at, e, "`.set_state()`");
                }
                Value::Object(id)
            }
            (ObjKind::Generator, "get_state") => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Host, NO_ORIGIN);
                let cpu = self.at(Device::Cpu, origin);
                self.plain_tensor(cpu, crate::flow::domain::dims::Dims::SOME)
            }
            (ObjKind::Generator, _) => Self::NUMBER,
            (ObjKind::Distribution(_), "sample" | "rsample" | "sample_n") => {
                let parameters = self.distribution_parameters(id, e);
                self.meet(
                    crate::flow::domain::event::Meeting::Function,
                    &format!("`.{name}()`"),
                    e,
                    &parameters,
                );
                self.drawn(id, args)
            }
            (ObjKind::Distribution(op), "log_prob" | "cdf" | "icdf") => {
                let mut parties = self.distribution_parameters(id, e);
                // Some distributions move the value to the device of their parameters.
                let moves = op.distribution.as_ref().is_some_and(|d| {
                    d.cpu_value == Elsewhere::Yes
                        && d.cuda_value == Elsewhere::Yes
                        && name.as_str() == "log_prob"
                });
                for &(v, at) in args.positional.iter().filter(|_| !moves) {
                    parties.extend(self.party(
                        v,
                        at,
                        crate::flow::observers::mismatch::meet::Rule::ARITHMETIC,
                    ));
                }
                self.meet(
                    crate::flow::domain::event::Meeting::Function,
                    &format!("`.{name}()`"),
                    e,
                    &parties,
                );
                self.density(id)
            }
            (ObjKind::Distribution(_), "entropy") => self.density(id),
            (ObjKind::Inert, "load_state_dict") => {
                for &(v, _) in args.positional.iter().take(1) {
                    self.used_as_weights(v);
                }
                self.result_of(e)
            }
            (ObjKind::Inert, "remove") => {
                self.remove_hook(id);
                Value::None
            }
            (ObjKind::Inert, _) => self.result_of(e),
            _ => self.unknown_call(Value::Unknown, args, e),
        }
    }

    pub(crate) fn add_argument(&mut self, parser: ObjId, args: &Args) {
        let dest = args.keyword("dest").and_then(|(v, _)| match v {
            Value::Str(s, _) => Some(s.as_str().to_owned()),
            _ => None,
        });
        let flags: Vec<&str> = args
            .positional
            .iter()
            .filter_map(|&(v, _)| match v {
                Value::Str(s, _) => Some(s.as_str()),
                _ => None,
            })
            .collect();
        let long = flags.iter().find(|f| f.starts_with("--")).or_else(|| flags.first());
        let Some(name) = dest.or_else(|| long.map(|f| f.trim_start_matches('-').replace('-', "_"))) else {
            return;
        };
        let action = args.keyword("action").and_then(|(v, _)| match v {
            Value::Str(s, _) => Some(s.as_str()),
            _ => None,
        });
        // `default=torch.cuda.is_available` without a call: the default is the function, which is always true.
        let given = args.keyword("default").map(|(v, at)| match self.check_uncalled(at, v) {
            Some(meant) => Value::Bool(meant),
            None => v,
        });
        let default = given.or(match action {
            Some("store_true") => Some(Value::Bool(crate::flow::domain::diagram::FALSE)),
            Some("store_false") => Some(Value::Bool(TRUE)),
            _ => Some(Value::None),
        });
        let Some(&parser) = self.libraries.parsers.get(&parser) else { return };
        let key = OuterKey::Argument { parser, list: None, name: Sym::new(&name) };
        let device = names_device(&name);
        let text = format!("args.{name}");
        self.t.outer(key.clone(), || Outer { device, default, ..Outer::new(key, text) });
    }

    /// `args.name`: an option of the command line.
    pub(crate) fn argument(&mut self, namespace: ObjId, name: Sym, e: ExprId) -> Value {
        let Value::Object(parser) = self.own(namespace) else { return self.result_of(e) };
        let Some(&parser) = self.libraries.parsers.get(&parser) else { return self.result_of(e) };
        let list = self.libraries.lists.get(&namespace).copied();
        let declared = OuterKey::Argument { parser, list: None, name };
        let default = self.t.known_outer(&declared).and_then(|o| self.t.get_outer(o).default);
        let key = OuterKey::Argument { parser, list, name };
        let device = names_device(name.as_str());
        let text = format!("args.{name}");
        let id = self.t.outer(key.clone(), || Outer { device, default, ..Outer::new(key, text) });
        Value::Outer(id)
    }

    /// `super().__init__(…)` of a base outside of the project.
    pub(crate) fn call_foreign_init(&mut self, args: &Args) {
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
    }

    /// The condition that the machine has at least this many GPUs.
    pub(crate) fn at_least(&mut self, n: u32) -> crate::flow::domain::diagram::Cond {
        self.d.atom(gpus_at_least(n))
    }
}
