//! Calls that lack a required argument: they raise a `TypeError`, and the path ends there.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{FuncId, ParamKind};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;

impl Interp<'_> {
    /// Handles a call of a function or class by name. Whether the path ends here.
    pub(crate) fn raises_for_lack(&mut self, f: Value, args: &Args) -> bool {
        let callee = match f {
            Value::Closure(id) => {
                let c = self.t.closures.get(id.0);
                Some((c.module, c.func, false))
            }
            Value::Class(key) => {
                let init = self.program.find_method(key, self.known.init);
                init.filter(|_| !self.is_decorated(key)).map(|(m, f)| (m, f, true))
            }
            _ => None,
        };
        self.ends_for_lack(callee, args)
    }

    /// The same for `receiver.name(…)`, where the receiver's class or file defines the function.
    pub(crate) fn method_raises_for_lack(&mut self, receiver: Value, name: Sym, args: &Args) -> bool {
        let callee = match receiver {
            Value::Object(id) => {
                let replaced = self.obj(id).attrs.iter().any(|&(n, _)| n == name);
                let class = self.obj(id).class.filter(|_| !replaced);
                class.and_then(|key| self.program.find_method(key, name)).map(|(m, f)| (m, f, true))
            }
            Value::Module(m) => match self.program.attribute(self.here().module, m, name) {
                Some(Resolved::Function(m, f)) => Some((m, f, false)),
                _ => None,
            },
            _ => None,
        };
        self.ends_for_lack(callee, args)
    }

    /// Whether a decorator replaces the class or one of its bases.
    fn is_decorated(&self, key: ClassKey) -> bool {
        let decorated = |k: &ClassKey| self.program.get(k.module).ir.class(k.class).decorators.len > 0;
        self.program.class(key).mro.iter().any(decorated)
    }

    fn ends_for_lack(&mut self, callee: Option<(ModIdx, FuncId, bool)>, args: &Args) -> bool {
        let Some((module, func, bound)) = callee else { return false };
        if self.run.muted > 0 || args.open || !self.lacks(module, func, bound, args) {
            return false;
        }
        self.path = FALSE;
        true
    }

    /// Whether a required parameter has no argument. Functions with decorators are excluded, because a decorator may
    /// add arguments.
    fn lacks(&self, module: ModIdx, func: FuncId, bound: bool, args: &Args) -> bool {
        let function = self.program.get(module).ir.function(func);
        let given = args.positional.len() + usize::from(bound);
        function.decorators.len == 0
            && function.params.iter().enumerate().any(|(n, p)| {
                let by_position = match p.kind {
                    ParamKind::PositionalOnly | ParamKind::Normal => n < given,
                    ParamKind::KeywordOnly => false,
                    ParamKind::Star | ParamKind::DoubleStar => true,
                };
                !by_position && p.default.is_none() && args.keyword(p.name.as_str()).is_none()
            })
    }
}
