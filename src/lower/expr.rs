//! Expressions.

use rustpython_ast::{
    ArgOrKeyword, Arguments, BoolOp, CmpOp as AstCmpOp, Comprehension, ExprCompare, ExprDict, ExprFString,
    ExprStringLiteral, FStringPart, InterpolatedElement, InterpolatedStringElement, Number, Operator,
    UnaryOp as AstUnaryOp,
};
use rustpython_ast::{Expr as Ast, ExprContext};
use rustpython_text_size::Ranged;

use super::bindings::target_names;
use super::lowerer::{Lowerer, number};
use super::scope::resolve_walrus;
use super::span;
use crate::ir::{
    Arg, ArgKind, ArgList, BinOp, CallId, CmpOp, Comp, CompId, CompKind, Expr, ExprId, ExprList, Generator,
    IfElse, IfElseId, KeptCall, Real, UnaryOp, Walrus, WalrusId, Whole,
};
use crate::span::Span;
use crate::sym::Sym;

/// The length above which a string literal's text is not kept: such texts are for people.
const LONGEST_STR: usize = 200;

impl<'a> Lowerer<'a> {
    /// Lowers an expression and its parts.
    pub fn expr(&mut self, expr: &'a Ast) -> ExprId {
        let place = span(expr);
        if !self.enter() {
            return self.opaque([], place);
        }
        let id = self.expr_here(expr, place);
        self.depth -= 1;
        id
    }

    /// Lowers an optional expression.
    pub fn maybe(&mut self, expr: Option<&'a Ast>) -> Option<ExprId> {
        expr.map(|e| self.expr(e))
    }

    /// Lowers several expressions.
    pub fn list(&mut self, exprs: impl IntoIterator<Item = &'a Ast>) -> ExprList {
        let mark = self.exprs.len();
        for e in exprs {
            let id = self.expr(e);
            self.exprs.push(id);
        }
        self.list_since(mark)
    }

    /// A list of expressions that have been lowered.
    pub fn list_of(&mut self, ids: impl IntoIterator<Item = ExprId>) -> ExprList {
        let mark = self.exprs.len();
        self.exprs.extend(ids);
        self.list_since(mark)
    }

    fn opaque(&mut self, parts: impl IntoIterator<Item = ExprId>, place: Span) -> ExprId {
        let parts = self.list_of(parts);
        self.add(Expr::Opaque(parts), place)
    }

    fn expr_here(&mut self, expr: &'a Ast, place: Span) -> ExprId {
        let lowered = match expr {
            Ast::Name(e) if e.id.is_empty() || e.ctx == ExprContext::Invalid => {
                Expr::Opaque(ExprList::default())
            }
            Ast::Name(e) => Expr::Var(self.var(e.id.as_str())),
            Ast::Attribute(e) => {
                let base = self.expr(&e.value);
                if e.attr.is_empty() {
                    return self.opaque([base], place);
                }
                Expr::Attr { base, name: Sym::new(&e.attr) }
            }
            Ast::Call(e) => {
                let func = self.expr(&e.func);
                let args = self.args(&e.arguments);
                let id = CallId(number(self.module.calls.len()));
                self.module.calls.push(KeptCall { func, args, paren: span(&e.arguments) });
                Expr::Call(id)
            }
            Ast::Subscript(e) => Expr::Index { base: self.expr(&e.value), index: self.expr(&e.slice) },
            Ast::Slice(e) => {
                Expr::Slice(self.list([&e.lower, &e.upper, &e.step].into_iter().flatten().map(|e| &**e)))
            }
            Ast::Tuple(e) => Expr::Tuple(self.list(&e.elts)),
            Ast::List(e) => Expr::List(self.list(&e.elts)),
            Ast::Set(e) => Expr::Set(self.list(&e.elts)),
            Ast::Dict(e) => self.dict(e),
            Ast::BoolOp(e) => {
                let values = self.list(&e.values);
                if e.op == BoolOp::And { Expr::And(values) } else { Expr::Or(values) }
            }
            Ast::BinOp(e) => {
                Expr::Binary { op: binary(e.op), left: self.expr(&e.left), right: self.expr(&e.right) }
            }
            Ast::UnaryOp(e) => Expr::Unary { op: unary(e.op), operand: self.expr(&e.operand) },
            Ast::Compare(e) => return self.compare(e, place),
            Ast::If(e) => {
                let (test, then, orelse) = (self.expr(&e.test), self.expr(&e.body), self.expr(&e.orelse));
                let id = IfElseId(number(self.module.if_elses.len()));
                self.module.if_elses.push(IfElse { test, then, orelse });
                Expr::IfElse(id)
            }
            Ast::Named(e) => {
                let value = self.expr(&e.value);
                let Ast::Name(name) = &*e.target else {
                    let target = self.expr(&e.target);
                    return self.opaque([target, value], place);
                };
                let target = resolve_walrus(&self.scopes, Sym::new(name.id.as_str()));
                let id = WalrusId(number(self.module.walruses.len()));
                self.module.walruses.push(Walrus { target, value });
                Expr::Walrus(id)
            }
            Ast::Lambda(e) => Expr::Lambda(self.lambda(e)),
            Ast::Await(e) => Expr::Await(self.expr(&e.value)),
            Ast::Starred(e) => Expr::Star(self.expr(&e.value)),
            Ast::Yield(_) | Ast::YieldFrom(_) => self.yielded(expr, place),
            Ast::ListComp(e) => self.comp(CompKind::List, &e.elt, None, &e.generators),
            Ast::SetComp(e) => self.comp(CompKind::Set, &e.elt, None, &e.generators),
            Ast::Generator(e) => self.comp(CompKind::Generator, &e.elt, None, &e.generators),
            Ast::DictComp(e) => self.comp(CompKind::Dict, &e.key, Some(&e.value), &e.generators),
            _ => self.literal(expr),
        };
        self.add(lowered, place)
    }

    fn literal(&mut self, expr: &'a Ast) -> Expr {
        match expr {
            Ast::StringLiteral(e) => text(e).map_or(Expr::Opaque(ExprList::default()), Expr::Str),
            Ast::FString(e) => Expr::Format(self.f_string(e)),
            Ast::TString(e) => {
                let mark = self.exprs.len();
                for element in e.value.iter().flat_map(|part| &part.elements) {
                    if let InterpolatedStringElement::Interpolation(element) = element {
                        self.interpolation(element);
                    }
                }
                Expr::Opaque(self.list_since(mark))
            }
            Ast::NumberLiteral(e) => match &e.value {
                Number::Int(int) => {
                    int.as_i64().map_or(Expr::Opaque(ExprList::default()), |n| Expr::Int(Whole(n)))
                }
                Number::Float(float) => Expr::Float(Real(*float)),
                Number::Complex { .. } => Expr::Imaginary,
            },
            Ast::BooleanLiteral(e) if e.value => Expr::True,
            Ast::BooleanLiteral(_) => Expr::False,
            Ast::NoneLiteral(_) => Expr::None,
            Ast::EllipsisLiteral(_) => Expr::Ellipsis,
            _ => Expr::Opaque(ExprList::default()),
        }
    }

    /// Lowers the arguments of a call or of a class statement.
    pub fn args(&mut self, arguments: &'a Arguments) -> ArgList {
        let mark = self.args.len();
        for argument in arguments.arguments_source_order() {
            let (kind, value) = match argument {
                ArgOrKeyword::Arg(Ast::Starred(starred)) => (ArgKind::Star, &*starred.value),
                ArgOrKeyword::Arg(value) => (ArgKind::Positional, value),
                ArgOrKeyword::Keyword(keyword) => {
                    let name = keyword.arg.as_ref().map(|name| Sym::new(super::outdated::renamed(name)));
                    (name.map_or(ArgKind::DoubleStar, ArgKind::Keyword), &keyword.value)
                }
            };
            let value = self.expr(value);
            self.args.push(Arg { kind, value, span: span(argument.range()) });
        }
        let start = number(self.module.arg_pool.len());
        self.module.arg_pool.extend(self.args.drain(mark..));
        ArgList { start, len: number(self.module.arg_pool.len()) - start }
    }

    fn dict(&mut self, dict: &'a ExprDict) -> Expr {
        let mark = self.exprs.len();
        for item in &dict.items {
            let key = self.maybe(item.key.as_ref());
            let value = self.expr(&item.value);
            let key = key.unwrap_or_else(|| self.add(Expr::Star(value), span(&item.value)));
            self.exprs.extend([key, value]);
        }
        Expr::Dict(self.list_since(mark))
    }

    /// Lowers `a < b < c` as `a < b and b < c`, with `b` evaluated once.
    fn compare(&mut self, compare: &'a ExprCompare, place: Span) -> ExprId {
        let mark = self.exprs.len();
        let mut left = self.expr(&compare.left);
        let mut start = place.start;
        for (&op, right_side) in compare.ops.iter().zip(&compare.comparators) {
            let right = self.expr(right_side);
            let end = span(right_side).end;
            let end = if compare.ops.len() == 1 { place.end } else { end };
            let pair = self.add(Expr::Compare { op: comparison(op), left, right }, Span::new(start, end));
            self.exprs.push(pair);
            (left, start) = (right, span(right_side).start);
        }
        if let [only] = self.exprs[mark..] {
            self.exprs.truncate(mark);
            return only;
        }
        let pairs = self.list_since(mark);
        self.add(Expr::And(pairs), place)
    }

    fn yielded(&mut self, expr: &'a Ast, place: Span) -> Expr {
        self.scope().is_generator = true;
        match expr {
            Ast::YieldFrom(e) => Expr::YieldFrom(self.expr(&e.value)),
            Ast::Yield(e) => {
                let value = self.maybe(e.value.as_deref());
                Expr::Yield(value.unwrap_or_else(|| self.add(Expr::None, place)))
            }
            _ => Expr::Opaque(ExprList::default()),
        }
    }

    fn f_string(&mut self, f_string: &'a ExprFString) -> ExprList {
        let mark = self.exprs.len();
        for part in &f_string.value {
            match part {
                FStringPart::Literal(literal) => self.text_part(&literal.value, span(literal)),
                FStringPart::FString(part) => {
                    for element in &part.elements {
                        match element {
                            InterpolatedStringElement::Literal(literal) => {
                                self.text_part(&literal.value, span(literal));
                            }
                            InterpolatedStringElement::Interpolation(element) => self.interpolation(element),
                        }
                    }
                }
            }
        }
        self.list_since(mark)
    }

    fn text_part(&mut self, text: &str, place: Span) {
        if text.is_empty() {
            return;
        }
        let part = if text.len() > LONGEST_STR {
            Expr::Opaque(ExprList::default())
        } else {
            Expr::Str(Sym::new(text))
        };
        let part = self.add(part, place);
        self.exprs.push(part);
    }

    /// Collects the expression in braces. With `=`, or with braces in its format, the inserted text is not the text of the value, so the
    /// part is opaque.
    fn interpolation(&mut self, element: &'a InterpolatedElement) {
        let mark = self.exprs.len();
        let value = self.expr(&element.expression);
        self.exprs.push(value);
        for spec in element.format_spec.iter().flat_map(|spec| &spec.elements) {
            if let InterpolatedStringElement::Interpolation(nested) = spec {
                // A format specification can contain another one. `expr` does not count this level.
                if self.enter() {
                    self.interpolation(nested);
                    self.depth -= 1;
                }
            }
        }
        if self.exprs.len() > mark + 1 || element.debug_text.is_some() {
            let parts = self.list_since(mark);
            let part = self.add(Expr::Opaque(parts), span(element));
            self.exprs.push(part);
        }
    }

    fn comp(
        &mut self,
        kind: CompKind,
        element: &'a Ast,
        value: Option<&'a Ast>,
        loops: &'a [Comprehension],
    ) -> Expr {
        // The first iterable is evaluated outside the comprehension, before its variables exist.
        let mut first = self.maybe(loops.first().map(|l| &l.iter));
        let mark = self.scope().inner.len();
        self.scope().comprehensions += 1;
        for l in loops {
            target_names(&l.target, &mut |name| self.scope().bind_inner(name, mark));
        }
        let mut generators = Vec::with_capacity(loops.len());
        for l in loops {
            let iter = first.take().unwrap_or_else(|| self.expr(&l.iter));
            let target = self.expr(&l.target);
            generators.push(Generator { target, iter, conditions: self.list(&l.ifs) });
        }
        let element = self.expr(element);
        let value = self.maybe(value);
        self.scope().comprehensions -= 1;
        self.scope().inner.truncate(mark);
        let id = CompId(number(self.module.comps.len()));
        self.module.comps.push(Comp { kind, element, value, generators: generators.into() });
        Expr::Comp(id)
    }
}

/// The text of a literal with its parts joined; `None` if it is long.
fn text(literal: &ExprStringLiteral) -> Option<Sym> {
    let parts = literal.value.as_slice();
    let length: usize = parts.iter().map(|part| part.value.len()).sum();
    if length > LONGEST_STR {
        return None;
    }
    match parts {
        [only] => Some(Sym::new(&only.value)),
        _ => Some(Sym::new(literal.value.to_str())),
    }
}

/// Converts the operator of a binary operation or an augmented assignment.
pub(super) fn binary(op: Operator) -> BinOp {
    match op {
        Operator::Add => BinOp::Add,
        Operator::Sub => BinOp::Sub,
        Operator::Mult => BinOp::Mul,
        Operator::MatMult => BinOp::MatMul,
        Operator::Div => BinOp::Div,
        Operator::Mod => BinOp::Mod,
        Operator::Pow => BinOp::Pow,
        Operator::LShift => BinOp::LShift,
        Operator::RShift => BinOp::RShift,
        Operator::BitOr => BinOp::BitOr,
        Operator::BitXor => BinOp::BitXor,
        Operator::BitAnd => BinOp::BitAnd,
        Operator::FloorDiv => BinOp::FloorDiv,
    }
}

fn unary(op: AstUnaryOp) -> UnaryOp {
    match op {
        AstUnaryOp::Invert => UnaryOp::Invert,
        AstUnaryOp::Not => UnaryOp::Not,
        AstUnaryOp::UAdd => UnaryOp::Pos,
        AstUnaryOp::USub => UnaryOp::Neg,
    }
}

fn comparison(op: AstCmpOp) -> CmpOp {
    match op {
        AstCmpOp::Eq => CmpOp::Eq,
        AstCmpOp::NotEq => CmpOp::NotEq,
        AstCmpOp::Lt => CmpOp::Lt,
        AstCmpOp::LtE => CmpOp::LtE,
        AstCmpOp::Gt => CmpOp::Gt,
        AstCmpOp::GtE => CmpOp::GtE,
        AstCmpOp::Is => CmpOp::Is,
        AstCmpOp::IsNot => CmpOp::IsNot,
        AstCmpOp::In => CmpOp::In,
        AstCmpOp::NotIn => CmpOp::NotIn,
    }
}
