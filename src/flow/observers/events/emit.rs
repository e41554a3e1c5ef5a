//! Emits events, together with the calls that lead to them.

use crate::flow::domain::event::{Bite, DeviceName, Entered, Event, Gives, Kind, Operand, Symbol};
use crate::flow::domain::value::{Device, ObjId, OriginId, OuterId, Reason, Value};
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::{Interp, Pending};
use crate::ir::{Expr, ExprId};
use crate::link::ClassKey;
use crate::span::Place;
use crate::words::Words;

/// Parts of the names of functions that need CUDA.
static FOR_CUDA: Words = Words::of("functions for CUDA");

impl Interp<'_> {
    /// Emits an event for the rules. It is dropped later if the outside values in `needs` turn out not to be tensors.
    pub(crate) fn emit(&mut self, kind: Kind, place: Place, bite: Bite, needs: Vec<OuterId>) {
        let cuda_only = matches!(kind, Kind::Use { .. }) && self.through_cuda_only();
        let event = Event {
            kind,
            place,
            bite,
            stack: self.call_stack(),
            entered: self.module_calls(),
            in_module: self.in_module(),
            speculative: self.run.speculative,
            callers_decide: false,
            followed: false,
            parameter: None,
            asked_before: self.run.asked_before,
            entry: self.calls.callers.entry,
            symbolic: self.run.symbolic,
            also: Vec::new(),
            cuda_only,
            asked_for: self.asked_for(),
            frequency: self.frequency(place),
            bytes: None,
        };
        self.events.push(Pending { event, needs, about: Vec::new(), function: self.calls.callers.entry });
    }

    /// Is one of the functions on the call stack in a file that is written for CUDA only? Then no machine without CUDA
    /// reaches this point.
    pub(crate) fn through_cuda_only(&mut self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let (module, caller) = (frame.module, frame.caller);
            let (files, relevance) = (crate::flow::evidence::file_facts::Files(self.program), self.relevance);
            if *self
                .observed
                .cuda_only
                .entry(module)
                .or_insert_with(|| files.cuda_only_file(relevance, module))
            {
                return true;
            }
            at = caller;
        }
        false
    }

    /// Does the name of a function on the call stack say that the caller wants an accelerator?
    fn asked_for(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let name =
                self.program.get(frame.module).ir.function(frame.func).name.as_str().to_ascii_lowercase();
            if frame.func.0 != 0 && FOR_CUDA.is_part_of(&name) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// The innermost frames of the call stack that are calls of modules, without any other call in between.
    fn module_calls(&self) -> Box<[Entered]> {
        let mut calls = Vec::new();
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let Some(site) = frame.site else { break };
            if !frame.class.is_some_and(|k| self.is_module_class(k)) {
                break;
            }
            if frame.module_call {
                let ir = &self.program.get(frame.module).ir;
                let forward = Place { file: ir.file, span: ir.function(frame.func).span };
                calls.push(Entered { site, forward, made: self.made_at(frame.receiver) });
            }
            at = frame.caller;
        }
        calls.into()
    }

    /// Where the program made a module, if no code has moved it since.
    fn made_at(&self, module: Value) -> Option<Place> {
        let Value::Object(id) = module else { return None };
        let Value::Device(device) = self.own(id) else { return None };
        let (_, origin) = *self.t.places.get(self.d.as_leaf(device)?);
        let origin = self.t.origins.get(origin.0);
        (origin.reason == Reason::Module).then_some(origin.place)
    }

    pub(crate) fn call_stack(&self) -> Box<[Place]> {
        let mut sites = Vec::new();
        let mut i = self.frame.0 as usize;
        while let Some(site) = self.frames[i].site {
            sites.push(site);
            let Some(caller) = self.caller_of(i) else { break };
            i = caller;
        }
        sites.reverse();
        sites.into()
    }

    /// The index of the frame that called this one.
    fn caller_of(&self, frame: usize) -> Option<usize> {
        self.frames[frame].caller.map(|f| f.0 as usize)
    }

    /// Is the current function a method of an `nn.Module`?
    pub(crate) fn in_module(&self) -> bool {
        self.class_here().is_some_and(|class| self.is_module_class(class))
    }

    /// Is the current function a method of an `nn.Module`, or of a class whose framework moves its tensors?
    pub(crate) fn in_class_that_moves(&self) -> bool {
        self.class_here().is_some_and(|class| self.is_module_class(class) || self.is_moved_for_user(class))
    }

    /// The class of the method that is being interpreted. A nested function belongs to the class around it.
    fn class_here(&self) -> Option<ClassKey> {
        let mut frame = self.here();
        loop {
            if frame.class.is_some() {
                return frame.class;
            }
            frame = &self.frames[frame.parent?.0 as usize];
        }
    }

    /// One side of a mismatch, as messages show it.
    pub(crate) fn operand(&mut self, e: ExprId, device: Device, origin: OriginId) -> Operand {
        let symbol = match device {
            Device::Named(o) | Device::Of(o) => {
                let names = matches!(device, Device::Named(_));
                Some(Symbol { text: self.t.get_outer(o).text.clone(), names })
            }
            _ => None,
        };
        Operand {
            place: self.place(e),
            device: self.name_of_device(device),
            chain: self.chain(origin),
            of_module: self.is_of_called_module(device, origin),
            gives: self.gives_at(e),
            symbol,
        }
    }

    /// A device, as messages name it.
    pub(crate) fn name_of_device(&self, device: Device) -> DeviceName {
        match device {
            Device::Cpu => DeviceName::Known("cpu".into()),
            Device::Cuda(None) | Device::CudaSome => DeviceName::Known("cuda".into()),
            Device::Cuda(Some(i)) => DeviceName::Known(format!("cuda:{i}")),
            Device::Meta => DeviceName::Known("meta".into()),
            Device::Other(b) => DeviceName::Known(b.name().into()),
            Device::Named(o) => DeviceName::Varies(self.t.get_outer(o).text.clone()),
            Device::Of(o) => {
                let outer = self.t.get_outer(o);
                if outer.with.is_some()
                    || matches!(outer.key, crate::flow::domain::value::OuterKey::Receiver { .. })
                {
                    DeviceName::WithModule
                } else {
                    DeviceName::Varies(outer.text.clone())
                }
            }
            Device::Unknown => DeviceName::Known("unknown".into()),
        }
    }

    /// Is the object a plain list that holds tensors and nothing else?
    fn is_list_of_tensors(&self, id: ObjId) -> bool {
        let tensor = |v: &Value| matches!(v, Value::Tensor(_));
        let plain = matches!(self.obj(id).kind, ObjKind::List { module: false });
        plain
            && match self.own(id) {
                Value::Many(m) => tensor(self.t.values.get(m)),
                Value::Seq(s) => {
                    let items = self.seq_items(s);
                    !items.is_empty() && items.iter().all(tensor)
                }
                _ => false,
            }
    }

    /// The kind of value that a name or a chain of attributes has in the current function.
    pub(crate) fn gives_at(&mut self, e: ExprId) -> Gives {
        let ir = &self.linked().ir;
        let mut root = e;
        while let Expr::Attr { base, .. } = ir.expr(root) {
            root = base;
        }
        if !matches!(ir.expr(root), Expr::Var(_)) || ir.function_around(root) != self.here().func {
            return Gives::Other;
        }
        self.run.muted += 1;
        let v = self.eval(e);
        self.run.muted -= 1;
        let one = |v: Value| match v {
            Value::Tensor(_) => Gives::Tensor,
            Value::Outer(o) if self.evidence.shown_modules.contains(&o) => Gives::Module,
            Value::Outer(_) => Gives::Tensor,
            Value::Object(id) if self.is_module_object(id) => Gives::Module,
            Value::Object(id) if self.is_list_of_tensors(id) => Gives::Tensors,
            _ => Gives::Other,
        };
        let mut all = self.values_of(v).into_iter().map(one);
        let first = all.next().unwrap_or(Gives::Other);
        if all.all(|other| other == first) { first } else { Gives::Other }
    }
}
