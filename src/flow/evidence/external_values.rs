//! Attributes and methods of outside values, and what the program writes into them: `args.device = …`,
//! `cfg["gpu"] = …`.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{
    Device, Host, NO_ORIGIN, Outer, OuterId, OuterKey, Reason, Role, Tensor, Value,
};
use crate::flow::evidence::tensor_evidence::{
    no_tensors_take, only_tensors_do, only_tensors_have, only_tensors_take,
};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::{Args, names_device};
use crate::flow::machine::expressions::evaluate::ANY_VALUE;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;

/// Methods that only models and tensors have.
static MODELS_DO: Words = Words::of("models and tensors do");

/// Those that tensors have as well.
static MOVES: Words = Words::of("move or halve");

static MOVE_TO_DEVICE: Words = Words::of("move to a device");
static TRANSFERS: Words = Words::of("another device or number type");
static VIEWS: Words = Words::of("attributes of tensors that are tensors");
static SETTINGS: Words = Words::of("names of settings");
static STATES_OF_NUMBERS: Words = Words::of("objects with a state of numbers");
static VIEWS_OF_DICTS: Words = Words::of("views of a dict");
static PARAMETERS: Words = Words::of("parameters of a module");
static SHARED: Words = Words::of("methods that other libraries share");
static SHARED_UNLESS_TENSOR: Words = Words::of("methods that Python's types share");

impl Interp<'_> {
    /// Writes an attribute or item of an outside value. If nothing is known of the new value, the old symbol stays,
    /// because it has a name.
    pub(crate) fn write_outside(&mut self, part: OuterId, value: Value) {
        let named = Value::Outer(part);
        let known = match value {
            Value::Unknown | Value::Host(_) | Value::Absent | Value::Slice => false,
            Value::Outer(o) => self.t.get_outer(o).device || self.is_tensorish(o),
            _ => true,
        };
        let number = matches!(value, Value::Host(Host::Number | Host::Rank) | Value::Int(0..));
        *self.evidence.numbers_written.entry(part).or_insert(true) &= number;
        if !known && !self.evidence.outer_writes.contains_key(&part) {
            return;
        }
        let cell = self.cell_outside(part);
        self.store.set(cell, if known { value } else { named });
    }

    /// Reads an attribute or item of an outside value: what the program has written there, or the symbol for its
    /// initial value.
    pub(crate) fn read_outside(&self, part: OuterId) -> Value {
        match self.evidence.outer_writes.get(&part) {
            Some(&cell) => self.store.get(cell),
            None => Value::Outer(part),
        }
    }

    /// The value that the program has written there on the path to this point, if any.
    pub(crate) fn written_outside(&self, part: OuterId) -> Option<Value> {
        Some(self.read_outside(part)).filter(|&v| v != Value::Outer(part))
    }

    /// Records that a loop variable holds a new value in this round. Writes to the value of the previous round do not
    /// apply to it.
    pub(crate) fn is_new_outside(&mut self, thing: Value) {
        match thing {
            Value::Outer(o) => {
                let written: Vec<(OuterId, Cell)> =
                    self.evidence.outer_writes.iter().map(|(&p, &c)| (p, c)).collect();
                for (part, cell) in written {
                    if self.is_part_of(part, o) {
                        self.store.set(cell, Value::Outer(part));
                    }
                }
            }
            Value::Seq(s) => {
                for item in self.seq_items(s).to_vec() {
                    self.is_new_outside(item);
                }
            }
            _ => {}
        }
    }

    fn is_part_of(&self, part: OuterId, whole: OuterId) -> bool {
        let mut at = part;
        loop {
            match self.t.get_outer(at).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } if base == whole => return true,
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => at = base,
                _ => return false,
            }
        }
    }

    fn cell_outside(&mut self, part: OuterId) -> Cell {
        if let Some(&cell) = self.evidence.outer_writes.get(&part) {
            return cell;
        }
        // On a path without the write, it keeps its initial value.
        let cell = self.store.alloc_with(Value::Outer(part));
        self.evidence.outer_writes.insert(part, cell);
        cell
    }

    /// The outside value for a name of another library, or of a file that is not found.
    pub(crate) fn outside_name(&mut self, path: Sym) -> OuterId {
        let key = OuterKey::External(path);
        self.t.outer(key.clone(), || Outer::new(key, path.to_string()))
    }

    pub(crate) fn outer_attribute(&mut self, o: OuterId, name: Sym, e: ExprId) -> Value {
        let text = name.as_str();
        if only_tensors_have(name) {
            self.evidence.tensor_proofs.insert(o);
        }
        if let Some(known) = self.asked_of_accelerator(o, name) {
            return known;
        }
        // Looks up the attribute without creating it: a created attribute counts as a read, and a value with such
        // fields is no tensor.
        if let Some(&attr) = self.t.outer_ids.get(&OuterKey::Attr { base: o, name })
            && let Some(written) = self.written_outside(attr)
        {
            return written;
        }
        match text {
            "device" => {
                self.evidence.asked_for_device.insert(o);
                // A tensor's or module's device, or an option of that name: the symbol is the same.
                let d = self.device_symbol(o, e);
                Value::Device(d)
            }
            "is_cuda" => {
                let d = self.device_of_outer(o, e);
                Value::Bool(self.is_device(d, Device::Cuda(None), e))
            }
            // Handles `type` of a `device` parameter like `type` of any device.
            "type" if self.t.get_outer(o).device => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Given, NO_ORIGIN);
                Value::Device(self.at(Device::Named(o), origin))
            }
            "is_mps" => {
                let d = self.device_of_outer(o, e);
                Value::Bool(self.is_device(d, Device::Other(crate::world::Backend::Mps), e))
            }
            "shape" | "ndim" => Self::NUMBER,
            // An attribute of `accelerate`'s accelerator: the rank among all processes.
            "process_index" if self.t.get_outer(o).text.to_ascii_lowercase().contains("accelerator") => {
                Value::Host(Host::Rank)
            }
            name if VIEWS.has(name) && self.is_tensorish(o) => self.tensor_of_outer(o, e),
            _ => Value::Outer(self.outer_attr(o, name)),
        }
    }

    /// The device `x.device` of an outside value: the device of a tensor or module, or the value of an option.
    fn device_symbol(&mut self, o: OuterId, e: ExprId) -> crate::flow::domain::diagram::Dd {
        let outer = self.t.get_outer(o);
        let config = SETTINGS.has(outer.text.rsplit('.').next().unwrap_or(""));
        if config {
            let named = self.outer_attr(o, self.known.device);
            let place = self.place(e);
            let origin = self.origin(place, Reason::Given, NO_ORIGIN);
            return self.at(Device::Named(named), origin);
        }
        self.device_of_outer(o, e)
    }

    pub(crate) fn is_tensorish(&self, o: OuterId) -> bool {
        self.evidence.tensor_proofs.contains(&o) || self.t.get_outer(o).tensor
    }

    /// The value, or a number if it is an outside value that is used as a size.
    pub(crate) fn number_if_size(&self, v: Value) -> Value {
        match v {
            Value::Outer(o) if self.evidence.size_proofs.contains(&o) => Self::NUMBER,
            v => v,
        }
    }

    /// The outside value taken as a tensor. Other evidence must still show that it is one.
    pub(crate) fn tensor_of_outer(&mut self, o: OuterId, e: ExprId) -> Value {
        if self.evidence.size_proofs.contains(&o) {
            return Self::NUMBER;
        }
        let device = self.device_of_outer(o, e);
        self.possible_tensor(device)
    }

    /// Whether the class or the name says that the state holds numbers: a gradient scaler, a scheduler, a sampler.
    fn holds_numbers(&self, o: OuterId) -> bool {
        if self.class_outside(o).is_some_and(torch::is_tensorless) {
            return true;
        }
        let text = self.t.get_outer(o).text.to_ascii_lowercase();
        let last = text.rsplit('.').next().unwrap_or_default();
        STATES_OF_NUMBERS.is_part_of(last)
    }

    /// The table entry for a method of one of PyTorch's own objects: `torch.cuda.Event().record()`.
    fn fact_of_method(&self, o: OuterId, name: Sym) -> Option<(Sym, &'static torch::CallFact)> {
        let class = self.class_outside(o).filter(|class| class.as_str().starts_with("torch."))?;
        let path = Sym::new(&format!("{class}.{name}"));
        torch::call(path).map(|fact| (path, fact))
    }

    /// Calls a method of an outside value.
    pub(crate) fn outer_method(
        &mut self,
        o: OuterId,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        let text = name.as_str();
        if no_tensors_take(name, args) {
            return self.unknown_call(Value::Outer(o), args, e);
        }
        if let Some((path, fact)) = self.fact_of_method(o, name) {
            // An argument, such as a stream, has a device of its own already.
            let given = args.values().any(|(v, _)| v != Value::None);
            return if given { self.result_of(e) } else { self.fact_call(path, fact, args, e) };
        }
        self.shown_by_method(o, name, args);
        self.check_gathered(o, name, args);
        if let Some(prepared) = self.prepared_by(o, name, args, e) {
            return prepared;
        }
        if let Some(tokens) = self.tokens_by_method(o, name, args, e) {
            return tokens;
        }
        self.shown_as_module(o, name);
        if args.positional.len() < 2 {
            self.module_mode(Value::Outer(o), text, args, e);
        }
        match text {
            _ if VIEWS_OF_DICTS.has(text) => {
                return self.items_outside(o, text);
            }
            "get" | "pop" if !args.positional.is_empty() => {
                let key = args.positional[0].0;
                let item = self.outer_item(o, key);
                return self.read_outside(item);
            }
            _ if TRANSFERS.has(text) => {
                return self.transfer_outside(o, name, args, e, base);
            }
            "startswith" => return self.host_method(Value::Outer(o), name, args, e),
            // Only modules have these methods, and the parameters are on the module's device.
            _ if PARAMETERS.has(text) => {
                return self.parameters_outside(o, text, e);
            }
            _ => {}
        }
        // `accelerator.pin_memory(tensor)` is not a tensor's method.
        if text == "pin_memory" && !args.positional.is_empty() {
            return self.unknown_call(Value::Outer(o), args, e);
        }
        // Other types have methods of these names as well: lists, strings, sets.
        let shared = SHARED.has(text) || SHARED_UNLESS_TENSOR.has(text) && !self.is_tensorish(o);
        if crate::torch::method(name).is_some() && !shared {
            let t = self.tensor_of_outer(o, e);
            let place = self.place(e);
            let origin = self.origin(place, Reason::Given, NO_ORIGIN);
            self.evidence.own_results.insert(origin, o);
            return self.tensor_method(t, name, args, e, base);
        }
        if SHARED.has(text) && (text != "get_device" || args.positional.is_empty()) {
            let t = self.tensor_of_outer(o, e);
            return self.tensor_method(t, name, args, e, base);
        }
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
        self.result_of_method(o, name, args, e)
    }
    /// Records what the call of this method shows about an outside value.
    fn shown_by_method(&mut self, o: OuterId, name: Sym, args: &Args) {
        let text = name.as_str();
        if only_tensors_do(name) || only_tensors_take(name, args) {
            self.evidence.tensor_proofs.insert(o);
        }
        // A part that is moved may be data. Its call is better evidence.
        let part = matches!(self.t.get_outer(o).key, OuterKey::Item { .. });
        if MODELS_DO.has(text) && !(part && MOVES.has(text)) {
            self.used_as_weights(Value::Outer(o));
        }
        if text == "load_state_dict" && !self.holds_numbers(o) {
            for &(v, _) in args.positional.iter().take(1) {
                self.loaded_as_weights(v);
            }
        }
    }

    /// The result of `args.items()`, `args.keys()` or `args.values()`.
    fn items_outside(&mut self, o: OuterId, method: &str) -> Value {
        let any = if self.maps_to_tensors(o) { ANY_VALUE } else { Value::Unknown };
        let item = Value::Outer(self.outer_item(o, any));
        match method {
            "items" => {
                let pair = self.seq(&[Self::TEXT, item]);
                self.many(pair)
            }
            "values" => self.many(item),
            // Keys are strings in most cases, but may be devices.
            _ => self.many(Value::Unknown),
        }
    }

    /// `x.to(…)`, `x.float()`: the same value on another device, or with another number type.
    fn transfer_outside(&mut self, o: OuterId, name: Sym, args: &Args, e: ExprId, base: ExprId) -> Value {
        let t = self.tensor_of_outer(o, e);
        let moved = self.tensor_method(t, name, args, e, base);
        let moved = if self.may_be_anything(o) { self.in_one_piece(moved) } else { moved };
        if MOVE_TO_DEVICE.has(name.as_str()) {
            self.goes_along(o, moved);
            self.part_moves(o);
        }
        moved
    }

    /// The tensors of `net.parameters()` and similar methods. They are on the device of `net`.
    fn parameters_outside(&mut self, o: OuterId, method: &str, e: ExprId) -> Value {
        let device = self.device_of_outer(o, e);
        let p = self.tensor(Tensor {
            device,
            dims: Dims::ANY,
            role: Role::Parameter,
            certain: true,
            bytes: None,
            double: FALSE,
        });
        let item = if method.starts_with("named") { self.seq(&[Self::TEXT, p]) } else { p };
        self.many(item)
    }

    /// The result of a method of which nothing is known.
    fn result_of_method(&mut self, o: OuterId, name: Sym, args: &Args, e: ExprId) -> Value {
        // The result of an outside value's method is identified by the method.
        let method = self.outer_attr(o, name);
        if args.values().next().is_none() {
            let key = OuterKey::Item { base: method, key: Some(Value::None) };
            let text = self.t.get_outer(method).text.clone();
            let device = names_device(name.as_str());
            let id = self.t.outer(key.clone(), || Outer {
                key,
                text: if text.is_empty() { text } else { format!("{text}()") },
                tensor: false,
                device,
                varies: false,
                with: None,
                default: None,
            });
            return Value::Outer(id);
        }
        let result = self.result_of(e);
        self.is_made_of(result, args);
        self.lives_near(o, args, result);
        result
    }
}
