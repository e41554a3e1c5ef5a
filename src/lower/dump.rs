//! Prints a module for tests, similar to Python. Each name has its variable: `x.0` is local slot 0, `x^1.0` is a slot one function further
//! out, `x!0` is a slot of the module, `x?` is unbound.

use std::fmt::{Display, Write};

use crate::ir::{
    Arg, ArgKind, Block, CompKind, Expr, ExprId, ExprList, FuncId, FuncKind, Function, IfElse, Module,
    ParamKind, Real, Stmt, StmtId, Var, Walrus, Whole,
};

/// The whole module.
pub(crate) fn dump(module: &Module) -> String {
    let mut printer = Printer { module, out: String::new(), indent: 0, function: FuncId(0) };
    printer.frame(FuncId(0));
    printer.out
}

struct Printer<'m> {
    module: &'m Module,
    out: String,
    indent: usize,
    function: FuncId,
}

/// A literal in Python syntax, as far as the lowered module keeps it.
fn literal(literal: Expr) -> String {
    match literal {
        Expr::Str(s) => format!("{:?}", s.as_str()),
        Expr::Int(Whole(i)) => i.to_string(),
        Expr::Float(Real(f)) => format!("{f:?}"),
        Expr::Imaginary => "imaginary".to_owned(),
        Expr::True => "True".to_owned(),
        Expr::False => "False".to_owned(),
        Expr::None => "None".to_owned(),
        _ => "...".to_owned(),
    }
}

impl Printer<'_> {
    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.out, "{:width$}{text}", "", width = self.indent * 2);
    }

    fn frame(&mut self, id: FuncId) {
        let around = std::mem::replace(&mut self.function, id);
        self.block(self.module.function(id).body);
        self.function = around;
    }

    fn block(&mut self, block: Block) {
        for &id in self.module.block(block) {
            self.stmt(id);
        }
    }

    fn indented(&mut self, head: impl Display, block: Block) {
        self.line(head);
        self.indent += 1;
        self.block(block);
        self.indent -= 1;
    }

    fn orelse(&mut self, head: &str, block: Block) {
        if block != Block::default() {
            self.indented(head, block);
        }
    }

    fn stmt(&mut self, id: StmtId) {
        match self.module.stmt(id) {
            Stmt::Expr(e) => self.line(self.expr(*e)),
            Stmt::Assign { targets, value } => {
                let targets: Vec<_> = self.module.list(*targets).iter().map(|t| self.expr(*t)).collect();
                self.line(format!("{} = {}", targets.join(" = "), self.expr(*value)));
            }
            Stmt::AugAssign { target, op, value } => {
                self.line(format!("{} {op:?}= {}", self.expr(*target), self.expr(*value)));
            }
            Stmt::AnnAssign { target, annotation, value } => {
                let value = value.map_or(String::new(), |v| format!(" = {}", self.expr(v)));
                self.line(format!("{}: {}{value}", self.expr(*target), self.expr(*annotation)));
            }
            Stmt::Return(value) => self.line(format!("return {}", self.maybe(*value))),
            Stmt::Raise { exception, cause } => {
                self.line(format!("raise {} from {}", self.maybe(*exception), self.maybe(*cause)));
            }
            Stmt::Assert { test, message } => {
                self.line(format!("assert {}, {}", self.expr(*test), self.maybe(*message)));
            }
            Stmt::Del(targets) => self.line(format!("del {}", self.list(*targets))),
            Stmt::Import(parts) => {
                for i in self.module.imported(*parts) {
                    let target = i.target.map_or("-".to_owned(), |v| self.var(v));
                    let (level, module, name) = (i.level, i.module, i.name);
                    self.line(format!("import level={level} {module} {name:?} -> {target} top={}", i.top));
                }
            }
            Stmt::Break => self.line("break"),
            Stmt::Continue => self.line("continue"),
            Stmt::Pass => self.line("pass"),
            other => self.compound(other),
        }
    }

    fn compound(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::If { test, then, orelse } => {
                self.indented(format!("if {}", self.expr(*test)), *then);
                self.orelse("else", *orelse);
            }
            Stmt::While { test, body, orelse } => {
                self.indented(format!("while {}", self.expr(*test)), *body);
                self.orelse("else", *orelse);
            }
            Stmt::For { target, iter, body, orelse } => {
                self.indented(format!("for {} in {}", self.expr(*target), self.expr(*iter)), *body);
                self.orelse("else", *orelse);
            }
            Stmt::With { items, body } => {
                let items: Vec<_> =
                    items.iter().map(|(e, v)| format!("{} as {}", self.expr(*e), self.maybe(*v))).collect();
                self.indented(format!("with {}", items.join(", ")), *body);
            }
            Stmt::Try { body, handlers, orelse, finally } => {
                self.indented("try", *body);
                for h in self.module.handlers(*handlers) {
                    let name = h.name.map_or("-".to_owned(), |v| self.var(v));
                    let head =
                        format!("except {} as {name} {}..{}", self.maybe(h.types), h.head.start, h.head.end);
                    self.indented(head, h.body);
                }
                self.orelse("else", *orelse);
                self.orelse("finally", *finally);
            }
            Stmt::Match { subject, cases } => {
                self.line(format!("match {}", self.expr(*subject)));
                for c in cases {
                    let binds: Vec<_> = c.binds.iter().map(|v| self.var(*v)).collect();
                    let (binds, values, guard) = (binds.join(", "), self.list(c.values), self.maybe(c.guard));
                    let any = if c.irrefutable { " any" } else { "" };
                    self.indented(format!("case [{values}] binds [{binds}] if {guard}{any}"), c.body);
                }
            }
            Stmt::Def(id, var) => self.def(*id, self.var(*var)),
            Stmt::Class(id, var) => {
                let class = self.module.class(*id);
                let methods: Vec<_> = class.methods.iter().map(|(n, f)| format!("{n}=f{}", f.0)).collect();
                for &d in self.module.list(class.decorators) {
                    self.line(format!("@{}", self.expr(d)));
                }
                let (bases, methods) = (self.args(self.module.args(class.bases)), methods.join(" "));
                self.line(format!("class {}({bases}) f{} [{methods}]", self.var(*var), class.body.0));
                self.indent += 1;
                self.frame(class.body);
                self.indent -= 1;
            }
            _ => {}
        }
    }

    fn def(&mut self, id: FuncId, var: String) {
        let f = self.module.function(id);
        for &d in self.module.list(f.decorators) {
            self.line(format!("@{}", self.expr(d)));
        }
        let flags = [(f.is_async, " async"), (f.is_generator, " generator"), (f.class.is_some(), " method")];
        let flags: String = flags.iter().filter(|f| f.0).map(|f| f.1).collect();
        let returns = f.returns.map_or(String::new(), |r| format!(" -> {}", self.expr(r)));
        self.line(format!("def {var}({}){returns} f{}{flags}", self.params(f), id.0));
        self.indent += 1;
        self.frame(id);
        self.indent -= 1;
    }

    fn params(&self, f: &Function) -> String {
        let params: Vec<_> = f
            .params
            .iter()
            .map(|p| {
                let mark = match p.kind {
                    ParamKind::PositionalOnly => "/",
                    ParamKind::Normal => "",
                    ParamKind::Star => "*",
                    ParamKind::KeywordOnly => "kw ",
                    ParamKind::DoubleStar => "**",
                };
                let annotation = p.annotation.map_or(String::new(), |a| format!(": {}", self.expr(a)));
                let default = p.default.map_or(String::new(), |d| format!(" = {}", self.expr(d)));
                format!("{mark}{}.{}{annotation}{default}", p.name, p.slot)
            })
            .collect();
        params.join(", ")
    }

    fn var(&self, var: Var) -> String {
        let name = |mut id: FuncId, up: usize, slot: u16| {
            for _ in 0..up {
                id = self.module.function(id).parent.unwrap_or(id);
            }
            self.module.function(id).slots[slot as usize]
        };
        match var {
            Var::Local(slot) => format!("{}.{slot}", name(self.function, 0, slot)),
            Var::Enclosing { depth, slot } => {
                format!("{}^{depth}.{slot}", name(self.function, depth as usize, slot))
            }
            Var::Global(slot) => format!("{}!{slot}", name(FuncId(0), 0, slot)),
            Var::Unbound(name) => format!("{name}?"),
        }
    }

    fn maybe(&self, e: Option<ExprId>) -> String {
        e.map_or("-".to_owned(), |e| self.expr(e))
    }

    fn list(&self, list: ExprList) -> String {
        let parts: Vec<_> = self.module.list(list).iter().map(|e| self.expr(*e)).collect();
        parts.join(", ")
    }

    fn args(&self, args: &[Arg]) -> String {
        let args: Vec<_> = args
            .iter()
            .map(|a| {
                let value = self.expr(a.value);
                match a.kind {
                    ArgKind::Positional => value,
                    ArgKind::Keyword(name) => format!("{name}={value}"),
                    ArgKind::Star => format!("*{value}"),
                    ArgKind::DoubleStar => format!("**{value}"),
                }
            })
            .collect();
        args.join(", ")
    }

    fn lambda(&self, id: FuncId) -> String {
        let f = self.module.function(id);
        assert_eq!(f.kind, FuncKind::Lambda);
        let mut inner = Printer { module: self.module, out: String::new(), indent: 0, function: FuncId(0) };
        inner.frame(id);
        format!("(lambda {}: {})", self.params(f), inner.out.trim_end())
    }

    fn expr(&self, id: ExprId) -> String {
        match self.module.expr(id) {
            Expr::Var(v) => self.var(v),
            Expr::Attr { base, name } => format!("{}.{name}", self.expr(base)),
            Expr::Call(c) => {
                let call = self.module.call(c);
                format!("{}({})", self.expr(call.func), self.args(call.args))
            }
            Expr::Index { base, index } => format!("{}[{}]", self.expr(base), self.expr(index)),
            Expr::Slice(l) => format!("slice({})", self.list(l)),
            Expr::Tuple(l) => format!("({})", self.list(l)),
            Expr::List(l) => format!("[{}]", self.list(l)),
            Expr::Set(l) => format!("{{{}}}", self.list(l)),
            Expr::Dict(l) => format!("dict({})", self.list(l)),
            Expr::Binary { op, left, right } => format!("({} {op:?} {})", self.expr(left), self.expr(right)),
            Expr::Unary { op, operand } => format!("({op:?} {})", self.expr(operand)),
            Expr::And(l) => format!("and({})", self.list(l)),
            Expr::Or(l) => format!("or({})", self.list(l)),
            Expr::Compare { op, left, right } => format!("({} {op:?} {})", self.expr(left), self.expr(right)),
            Expr::IfElse(id) => {
                let IfElse { test, then, orelse } = self.module.if_else(id);
                format!("({} if {} else {})", self.expr(then), self.expr(test), self.expr(orelse))
            }
            literal @ (Expr::Str(_)
            | Expr::Int(_)
            | Expr::Float(_)
            | Expr::Imaginary
            | Expr::True
            | Expr::False
            | Expr::None
            | Expr::Ellipsis) => self::literal(literal),
            Expr::Format(l) => format!("f({})", self.list(l)),
            Expr::Lambda(f) => self.lambda(f),
            Expr::Comp(c) => self.comp(c),
            Expr::Await(e) => format!("await {}", self.expr(e)),
            Expr::Yield(e) => format!("(yield {})", self.expr(e)),
            Expr::YieldFrom(e) => format!("(yield from {})", self.expr(e)),
            Expr::Star(e) => format!("*{}", self.expr(e)),
            Expr::Walrus(id) => {
                let Walrus { target, value } = self.module.walrus(id);
                format!("({} := {})", self.var(target), self.expr(value))
            }
            Expr::Opaque(l) => format!("opaque({})", self.list(l)),
        }
    }

    fn comp(&self, id: crate::ir::CompId) -> String {
        let comp = self.module.comp(id);
        let kind = match comp.kind {
            CompKind::List => "list",
            CompKind::Set => "set",
            CompKind::Dict => "dict",
            CompKind::Generator => "gen",
        };
        let mut out = format!("{kind}({}", self.expr(comp.element));
        if let Some(value) = comp.value {
            let _ = write!(out, ": {}", self.expr(value));
        }
        for g in &comp.generators {
            let _ = write!(out, " for {} in {}", self.expr(g.target), self.expr(g.iter));
            for &c in self.module.list(g.conditions) {
                let _ = write!(out, " if {}", self.expr(c));
            }
        }
        out + ")"
    }
}
