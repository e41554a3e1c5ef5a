//! Branches that only run where somebody has set a flag that speaks of devices, by whatever name the branch knows it.
//!
//! `def forward(self, x, fast=True)`, where every call gives `fast=args.cuda`: who comes to `if fast:` has asked for CUDA.

use super::Fixed;
use super::values::argument_at;
use crate::flow::device_words::speaks_of_devices;
use crate::flow::methods::{class_of_self, is_unpacked, set_to};
use crate::flow::nodes::Target;
use crate::ir::{Arg, ArgKind, Expr, ExprId, UnaryOp, Var, Whole};
use crate::link::ModIdx;
use crate::span::Place;
use crate::sym::Sym;

/// So many hands are followed to where the flag is.
const MAX_HANDS: u32 = 3;
/// Parts of the names of flags that say the opposite.
const OPPOSITE: &[&str] = &["no", "not", "non", "cpu", "disable", "disabled", "without"];

impl Fixed<'_> {
    /// Is the place in a branch that only such a flag leads to?
    pub fn is_chosen(&self, place: Place) -> bool {
        let Some(m) = self.program.module_of(place.file) else { return false };
        let conditions = super::conditions(&self.program.get(m).ir, place.span);
        conditions.into_iter().any(|(test, truth)| self.hangs_on_flag(m, test, truth))
    }

    /// Does the test come out so only if a flag is set?
    fn hangs_on_flag(&self, m: ModIdx, test: ExprId, truth: bool) -> bool {
        let ir = &self.program.get(m).ir;
        match ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => self.hangs_on_flag(m, operand, !truth),
            Expr::And(list) if truth => ir.list(list).iter().any(|&e| self.hangs_on_flag(m, e, truth)),
            Expr::Or(list) if !truth => ir.list(list).iter().any(|&e| self.hangs_on_flag(m, e, truth)),
            // What a name says where it is asked is known there.
            Expr::Var(Var::Local(slot)) => {
                let function = ir.function(ir.function_around(test));
                let given = function.params.iter().any(|p| p.slot == slot);
                truth && given && self.is_flag(m, test, MAX_HANDS) == Some(true)
            }
            Expr::Attr { base, .. } if class_of_self(ir, m, base).is_some() => {
                truth && self.is_flag(m, test, MAX_HANDS) == Some(true)
            }
            _ => false,
        }
    }

    /// Is it a flag by its name, and one that is off unless somebody sets it?
    fn named(&self, name: Option<Sym>) -> Option<bool> {
        let name = name?.as_str();
        let opposite = || name.to_ascii_lowercase().split('_').any(|word| OPPOSITE.contains(&word));
        (speaks_of_devices(name) && !opposite() && !self.is_on_by_default(name)).then_some(true)
    }

    /// `parser.add_argument("--cuda", default=True)`: that is a decision made for the user.
    fn is_on_by_default(&self, name: &str) -> bool {
        self.files.iter().any(|&m| {
            let ir = &self.program.get(m).ir;
            let on = |a: &Arg| match (a.kind, ir.expr(a.value)) {
                (ArgKind::Keyword(key), Expr::True) => key.as_str() == "default",
                (ArgKind::Keyword(key), Expr::Int(Whole(n))) => key.as_str() == "default" && n != 0,
                (ArgKind::Keyword(key), Expr::Str(text)) => {
                    key.as_str() == "action" && text.as_str() == "store_false"
                }
                _ => false,
            };
            let option = |a: &Arg| {
                matches!(ir.expr(a.value), Expr::Str(text) if text.as_str().trim_start_matches('-').replace('-', "_") == name)
            };
            ir.has_attribute(Sym::new("add_argument"))
                && ir.calls().any(|call| {
                    ir.last_name(call.func).is_some_and(|n| n.as_str() == "add_argument")
                        && call.args.iter().any(option)
                        && call.args.iter().any(on)
                })
        })
    }

    /// Is it such a flag, handed on: `true`; or never true: `false`?
    fn is_flag(&self, m: ModIdx, e: ExprId, hands: u32) -> Option<bool> {
        let ir = &self.program.get(m).ir;
        let hands = hands.checked_sub(1)?;
        match ir.expr(e) {
            Expr::None | Expr::False => Some(false),
            Expr::And(list) => {
                ir.list(list).iter().any(|&e| self.is_flag(m, e, hands) == Some(true)).then_some(true)
            }
            Expr::Var(Var::Local(slot)) => {
                let f = ir.function_around(e);
                let function = ir.function(f);
                match function.params.iter().position(|p| p.slot == slot) {
                    Some(at) => self.is_given_flag((m, f), at, hands),
                    None => self.named(ir.last_name(e)),
                }
            }
            Expr::Attr { base, name } => match class_of_self(ir, m, base) {
                Some(_) if is_unpacked(ir, name) => None,
                Some(class) if self.is_open(class, name) => {
                    let set = set_to(self.program, class, name);
                    all(set.into_iter().map(|(m, e)| self.is_flag(m, e, hands)))
                }
                Some(_) => None,
                None => self.named(Some(name)),
            },
            Expr::Index { index, .. } => match ir.expr(index) {
                Expr::Str(key) => self.named(Some(key)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Is every call's argument for the parameter such a flag, or its default never true?
    fn is_given_flag(&self, (m, f): Target, at: usize, hands: u32) -> Option<bool> {
        let param = self.program.get(m).ir.function(f).params.get(at)?;
        let sites = self.sites((m, f))?;
        all(sites.into_iter().map(|site| {
            match argument_at(&self.program.get(site.module).ir, site, at, param.name)? {
                Some(given) => self.is_flag(site.module, given, hands),
                None => self.is_flag(m, param.default?, hands),
            }
        }))
    }
}

/// Are all of them known, and one of them a flag?
fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let known: Vec<bool> = parts.collect::<Option<_>>()?;
    Some(known.contains(&true))
}
