//! Whether modules are in training mode: `self.training`.
//!
//! A module that has been made in sight is, until somebody says `eval()`. What was made before an entry point began may have
//! been told anything since.

use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;

/// Parts of parts that are told of a change.
const MAX_PARTS: u32 = 5;

impl Interp<'_> {
    /// `module.training`
    pub(crate) fn training_mode(&mut self, id: ObjId, e: ExprId) -> Value {
        if let Some(o) = self.obj(id).outer {
            return Value::Outer(self.outer_attr(o, self.known.training));
        }
        // Parts of a module that was given from outside are in whatever mode that is.
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

    /// Code that is not in sight has got hold of it.
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
                // What holds modules and is none hands nothing on, but whoever gets it may.
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
            // Of several, one is meant.
            Value::Choice(_) => {
                for part in self.values_of(v) {
                    self.set_mode(part, Value::Unknown, depth + 1);
                }
            }
            _ => {}
        }
    }
}
