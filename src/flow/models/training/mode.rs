//! Whether modules are in training mode: `self.training`.
//!
//! A new module is in training mode until the program calls `eval()`. A module that existed before the entry point began may be in
//! either mode.

use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;

/// How many levels of submodules a change reaches.
const MAX_PARTS: u32 = 5;

impl Interp<'_> {
    /// `module.training`
    pub(crate) fn training_mode(&mut self, id: ObjId, e: ExprId) -> Value {
        if let Some(o) = self.obj(id).outer {
            return Value::Outer(self.outer_attr(o, self.known.training));
        }
        // Submodules of an outside module have the mode of that module.
        let made_here = (id.0 as usize) >= self.run.made_before && !self.calls.unbuilt.contains_key(&id);
        if !made_here {
            return self.result_of(e);
        }
        match self.get_field(id, self.known.training) {
            Value::Absent => Value::Bool(crate::flow::domain::diagram::TRUE),
            Value::Unknown => self.result_of(e),
            v => v,
        }
    }

    /// `module.eval()`, `module.train()`, `module.train(mode)`
    pub(crate) fn sets_mode(&mut self, module: Value, name: &str, args: &Args) {
        let mode = match (name, args.get(0, "mode")) {
            ("eval", _) => Value::Bool(crate::flow::domain::diagram::FALSE),
            ("train", None) if !args.open && !args.open_names => {
                Value::Bool(crate::flow::domain::diagram::TRUE)
            }
            ("train", Some((v @ Value::Bool(_), _))) => v,
            ("train", _) => Value::Unknown,
            _ => return,
        };
        self.set_mode(module, mode, 0);
    }

    /// Unknown code has access to the value, and may change its mode.
    pub(crate) fn forget_mode(&mut self, v: Value) {
        self.set_mode(v, Value::Unknown, 0);
    }

    fn set_mode(&mut self, v: Value, mode: Value, depth: u32) {
        if depth > MAX_PARTS {
            return;
        }
        match v {
            Value::Object(id) => match self.obj(id).kind {
                ObjKind::Module => {
                    self.set_field(id, self.known.training, mode);
                    for (_, cell) in self.obj(id).attrs.clone() {
                        let part = self.store.get(cell);
                        self.set_mode(part, mode, depth + 1);
                    }
                }
                // An object that is no module does not pass the mode on to its parts. Unknown code that has the object may change them.
                ObjKind::Instance if mode == Value::Unknown => {
                    for (_, cell) in self.obj(id).attrs.clone() {
                        let part = self.store.get(cell);
                        self.set_mode(part, mode, depth + 1);
                    }
                }
                ObjKind::List { module } | ObjKind::Dict { module } if module || mode == Value::Unknown => {
                    let content = self.own(id);
                    self.set_mode(content, mode, depth + 1);
                }
                _ => {}
            },
            Value::Seq(s) => {
                for part in self.seq_items(s) {
                    self.set_mode(part, mode, depth + 1);
                }
            }
            Value::Many(m) => {
                let part = *self.t.values.get(m);
                self.set_mode(part, mode, depth + 1);
            }
            // Only one of several alternatives changes.
            Value::Choice(_) => {
                for part in self.values_of(v) {
                    self.set_mode(part, Value::Unknown, depth + 1);
                }
            }
            _ => {}
        }
    }
}
