//! Functions, lambdas and classes: code with a frame of its own.

use rustpython_ast::{
    Decorator, Expr as AstExpr, ExprLambda, Parameter, Parameters, Stmt as AstStmt, StmtClassDef,
    StmtFunctionDef, TypeParams,
};

use super::bindings::{bind_body, bind_expr};
use super::documented::{docstring, says_tensor};
use super::lowerer::{Lowerer, number};
use super::scope::Scope;
use super::span;
use crate::ir::{
    ArgList, Block, Class, ClassId, ExprId, ExprList, FuncId, FuncKind, Function, Param, ParamKind, Stmt,
};
use crate::span::Span;
use crate::sym::Sym;

/// A parameter before its function has a scope: the parts that are evaluated outside the function.
struct Signature<'a> {
    parameter: &'a Parameter,
    kind: ParamKind,
    default: Option<ExprId>,
    annotation: Option<ExprId>,
    documented: bool,
}

/// The arguments of [`Lowerer::frame`].
struct Frame<'a> {
    kind: FuncKind,
    name: Sym,
    class: Option<ClassId>,
    signature: Vec<Signature<'a>>,
    decorators: ExprList,
    returns: Option<ExprId>,
    is_async: bool,
    span: Span,
    name_span: Span,
}

#[derive(Clone, Copy)]
enum Body<'a> {
    Stmts(&'a [AstStmt]),
    Expr(&'a AstExpr),
}

impl<'a> Lowerer<'a> {
    /// Lowers a `def`.
    pub fn def(&mut self, s: &'a StmtFunctionDef) -> Stmt {
        let decorators = self.decorators(&s.decorator_list);
        let mark = self.type_params(s.type_params.as_deref());
        let mut signature = self.signature(&s.parameters);
        let name = Sym::new(&s.name);
        let doc = match name.as_str() {
            "__init__" => docstring(&s.body).or(self.class_doc),
            _ => docstring(&s.body),
        };
        if let Some(doc) = doc {
            documented(&mut signature, doc);
        }
        let returns = self.maybe(s.returns.as_deref());
        let frame = Frame {
            kind: FuncKind::Function,
            name,
            class: None,
            signature,
            decorators,
            returns,
            is_async: s.is_async,
            span: span(s),
            name_span: span(&s.name),
        };
        let (id, _) = self.frame(frame, Body::Stmts(&s.body));
        let scope = self.scope();
        scope.inner.truncate(mark);
        if scope.kind == FuncKind::ClassBody {
            scope.methods.push((name, id));
        }
        Stmt::Def(id, self.var(&s.name))
    }

    /// Lowers a `lambda`.
    pub fn lambda(&mut self, e: &'a ExprLambda) -> FuncId {
        let signature = e.parameters.as_deref().map_or_else(Vec::new, |p| self.signature(p));
        let frame = Frame {
            kind: FuncKind::Lambda,
            name: Sym::new("<lambda>"),
            class: None,
            signature,
            decorators: ExprList::default(),
            returns: None,
            is_async: false,
            span: span(e),
            name_span: span(e),
        };
        self.frame(frame, Body::Expr(&e.body)).0
    }

    /// Lowers a `class`.
    pub fn class(&mut self, s: &'a StmtClassDef) -> Stmt {
        let decorators = self.decorators(&s.decorator_list);
        let mark = self.type_params(s.type_params.as_deref());
        let bases = s.arguments.as_deref().map_or_else(ArgList::default, |arguments| self.args(arguments));
        let id = ClassId(number(self.module.classes.len()));
        self.module.classes.push(Class {
            name: Sym::new(&s.name),
            bases,
            decorators,
            body: FuncId(0),
            methods: Box::default(),
            span: span(s),
            name_span: span(&s.name),
        });
        let frame = Frame {
            kind: FuncKind::ClassBody,
            name: Sym::new(&s.name),
            class: Some(id),
            signature: Vec::new(),
            decorators: ExprList::default(),
            returns: None,
            is_async: false,
            span: span(s),
            name_span: span(&s.name),
        };
        let around = std::mem::replace(&mut self.class_doc, docstring(&s.body));
        let (body, methods) = self.frame(frame, Body::Stmts(&s.body));
        self.class_doc = around;
        self.scope().inner.truncate(mark);
        let class = &mut self.module.classes[id.0 as usize];
        (class.body, class.methods) = (body, methods.into());
        Stmt::Class(id, self.var(&s.name))
    }

    /// Adds a function and lowers its body in a scope of its own. Also returns the functions that are directly in a class body.
    fn frame(&mut self, frame: Frame<'a>, body: Body<'a>) -> (FuncId, Vec<(Sym, FuncId)>) {
        let id = FuncId(number(self.module.functions.len()));
        let mut scope = match self.spare.pop() {
            Some(spare) => spare.again(id, frame.kind, frame.class),
            None => Scope::new(id, frame.kind, frame.class),
        };
        let params = params(&mut scope, &frame.signature);
        match body {
            Body::Stmts(body) => bind_body(&mut scope, body, self.walruses),
            Body::Expr(body) if self.walruses.may_be_in(body) => bind_expr(&mut scope, body),
            Body::Expr(_) => {}
        }
        let around = self.scope();
        let (parent, around_class) = (around.id, around.class);
        self.module.functions.push(Function {
            kind: frame.kind,
            name: frame.name,
            parent: Some(parent),
            class: frame.class.or(around_class),
            params,
            decorators: frame.decorators,
            returns: frame.returns,
            body: Block::default(),
            exprs: 0..0,
            slots: Box::default(),
            is_async: frame.is_async,
            is_generator: false,
            span: frame.span,
            name_span: frame.name_span,
        });
        self.scopes.push(scope);
        let first = number(self.module.exprs.len());
        let block = match body {
            Body::Stmts(body) => self.block(body),
            Body::Expr(body) => {
                let value = self.expr(body);
                self.block_of(Stmt::Return(Some(value)), span(body))
            }
        };
        let end = number(self.module.exprs.len());
        let Some(mut scope) = self.scopes.pop() else { return (id, Vec::new()) };
        let function = &mut self.module.functions[id.0 as usize];
        function.body = block;
        function.exprs = first..end;
        function.is_generator = scope.is_generator;
        function.slots = scope.slots.as_slice().into();
        let methods = std::mem::take(&mut scope.methods);
        self.spare.push(scope);
        (id, methods)
    }

    fn decorators(&mut self, decorators: &'a [Decorator]) -> ExprList {
        self.list(decorators.iter().map(|decorator| &decorator.expression))
    }

    /// Makes type parameters visible in the scope around their function or class. Returns the length to which [`Scope::inner`] must be
    /// truncated at the end.
    fn type_params(&mut self, params: Option<&'a TypeParams>) -> usize {
        let scope = self.scope();
        let mark = scope.inner.len();
        for param in params.iter().flat_map(|params| params.iter()) {
            scope.bind_inner(param.name(), mark);
        }
        mark
    }

    fn signature(&mut self, parameters: &'a Parameters) -> Vec<Signature<'a>> {
        let mut signature = Vec::with_capacity(parameters.len());
        let groups = [
            (&parameters.posonlyargs, ParamKind::PositionalOnly, None),
            (&parameters.args, ParamKind::Normal, parameters.vararg.as_deref()),
            (&parameters.kwonlyargs, ParamKind::KeywordOnly, parameters.kwarg.as_deref()),
        ];
        for (group, kind, rest) in groups {
            for p in group {
                let default = self.maybe(p.default.as_deref());
                let annotation = self.maybe(p.parameter.annotation.as_deref());
                signature.push(Signature {
                    parameter: &p.parameter,
                    kind,
                    default,
                    annotation,
                    documented: false,
                });
            }
            if let Some(parameter) = rest {
                let annotation = self.maybe(parameter.annotation.as_deref());
                let kind = if kind == ParamKind::Normal { ParamKind::Star } else { ParamKind::DoubleStar };
                signature.push(Signature { parameter, kind, default: None, annotation, documented: false });
            }
        }
        signature
    }
}

/// Marks the parameters without an annotation that the docstring documents as tensors.
fn documented(signature: &mut [Signature<'_>], doc: &str) {
    let single =
        |kind| matches!(kind, ParamKind::PositionalOnly | ParamKind::Normal | ParamKind::KeywordOnly);
    for s in signature.iter_mut().filter(|s| s.annotation.is_none() && single(s.kind)) {
        s.documented = says_tensor(doc, &s.parameter.name);
    }
}

/// Binds the parameters, in order. Leaves out parameters if the frame has no slot left.
fn params(scope: &mut Scope, signature: &[Signature<'_>]) -> Box<[Param]> {
    let mut params = Vec::with_capacity(signature.len());
    params.extend(signature.iter().filter_map(|s| {
        let name = &s.parameter.name;
        Some(Param {
            name: Sym::new(name),
            slot: scope.bind(name)?,
            kind: s.kind,
            default: s.default,
            annotation: s.annotation,
            documented: s.documented,
            span: span(name),
        })
    }));
    params.into()
}
