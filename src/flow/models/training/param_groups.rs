//! The value of an optimizer's `param_groups`: a dict for each group, with the parameters under `"params"`.

use crate::flow::domain::value::{NO_ORIGIN, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;

const DICT: ObjKind = ObjKind::Dict { module: false };

impl Interp<'_> {
    /// The value of `param_groups` for an optimizer that receives these parameters.
    pub(crate) fn groups_of(&mut self, (params, at): (Value, ExprId), e: ExprId) -> Value {
        let params = self.builtin_list(params, at, e);
        match params {
            // The program passes the groups as dicts.
            Value::Object(list) if self.holds_dicts(list) => params,
            params => {
                let key = Value::Str(Sym::new("params"), NO_ORIGIN);
                let content = self.seq(&[key, params]);
                let group = Value::Object(self.object(DICT, None, content));
                self.list(&[group])
            }
        }
    }

    fn builtin_list(&mut self, params: Value, at: ExprId, e: ExprId) -> Value {
        let args = Args { positional: vec![(params, at)], ..Args::default() };
        self.builtin(Sym::new("list"), &args, e)
    }

    fn holds_dicts(&self, list: ObjId) -> bool {
        let items = match self.own(list) {
            Value::Seq(s) => self.seq_items(s).to_vec(),
            Value::Many(m) => vec![*self.t.values.get(m)],
            _ => return false,
        };
        items.iter().any(|&v| matches!(v, Value::Object(o) if self.obj(o).kind == DICT))
    }
}
