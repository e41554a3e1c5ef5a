//! The slots of names.

use insta::assert_snapshot;

use super::ir;

#[test]
fn locals_globals_and_unbound_names() {
    assert_snapshot!(ir("\
x = 1
def f(a, *b, c=x, **d):
    y = a + x
    return print(y, z)
z = f
"), @r#"
    x.0 = 1
    def f.1(a.0, *b.1, kw c.2 = x.0, **d.3) f1
      y.4 = (a.0 Add x!0)
      return print?(y.4, z!2)
    z.2 = f.1
    "#);
}

#[test]
fn a_name_is_local_in_the_whole_body() {
    assert_snapshot!(ir("\
x = 1
def f():
    print(x)
    if x:
        for x in y: pass
"), @r#"
    x.0 = 1
    def f.1() f1
      print?(x.0)
      if x.0
        for x.0 in y?
          pass
    "#);
}

#[test]
fn global_and_nonlocal() {
    assert_snapshot!(ir("\
def outer():
    n = 0
    def inner():
        nonlocal n
        global made
        n += 1
        made = n
        def innermost():
            return n, made
    return made
def reads():
    return made
def only_declares():
    global star
    return star
"), @r#"
    def outer.0() f1
      n.0 = 0
      def inner.1() f2
        pass
        pass
        n^1.0 Add= 1
        made!3 = n^1.0
        def innermost.0() f3
          return (n^2.0, made!3)
      return made!3
    def reads.1() f4
      return made!3
    def only_declares.2() f5
      pass
      return star?
    "#);
}

#[test]
fn a_global_declaration_hides_an_enclosing_name() {
    assert_snapshot!(ir("\
x = 0
def f():
    x = 1
    def g():
        global x
        def h(): return x
        return x
"), @r#"
    x.0 = 0
    def f.1() f1
      x.0 = 1
      def g.1() f2
        pass
        def h.0() f3
          return x!0
        return x!0
    "#);
}

#[test]
fn class_bodies_are_not_seen_from_methods() {
    assert_snapshot!(ir("\
n = 1
class A:
    n = 2
    m = n
    def f(self, d=m):
        return n, m, A
    class B:
        k = n
        j = m
    xs = [n for _ in range(m)]
"), @r#"
    n.0 = 1
    class A.1() f1 [f=f2]
      n.0 = 2
      m.1 = n.0
      def f.2(self.0, d.1 = m.1) f2 method
        return (n!0, m?, A!1)
      class B.3() f3 []
        k.0 = n!0
        j.1 = m?
      xs.4 = list(n!0 for _.5 in range?(m.1))
    "#);
}

#[test]
fn a_class_in_a_function() {
    assert_snapshot!(ir("\
def f(p):
    q = 1
    class A:
        r = p
        def g(self):
            return p, q, r
        s = lambda: q
    return A
"), @r#"
    def f.0(p.0) f1
      q.1 = 1
      class A.2() f2 [g=f3]
        r.0 = p^1.0
        def g.1(self.0) f3 method
          return (p^2.0, q^2.1, r?)
        s.2 = (lambda : return q^2.1)
      return A.2
    "#);
}

#[test]
fn comprehensions_have_slots_of_their_own() {
    assert_snapshot!(ir("\
x = [1]
y = [x for x in x]
z = {k: [v for v in k if x] for k, v in x if v}
def f(x):
    return [lambda: x for x in x], (x for y in x for x in y)
"), @r#"
    x.0 = [1]
    y.1 = list(x.4 for x.4 in x.0)
    z.2 = dict(k.5: list(v.7 for v.7 in k.5 if x.0) for (k.5, v.6) in x.0 if v.6)
    def f.3(x.0) f1
      return (list((lambda : return x^1.1) for x.1 in x.0), gen(x.3 for y.2 in x.0 for x.3 in y.2))
    "#);
}

#[test]
fn walrus_binds_around_comprehensions() {
    assert_snapshot!(ir("\
def f(xs):
    if (n := len(xs)) > 1:
        pass
    ys = [last := x for x in xs]
    g = lambda: (inner := 1)
    return last, inner
[top := t for t in y]
"), @r#"
    def f.0(xs.0) f1
      if ((n.1 := len?(xs.0)) Gt 1)
        pass
      ys.3 = list((last.2 := x.5) for x.5 in xs.0)
      g.4 = (lambda : return (inner.0 := 1))
      return (last.2, inner?)
    list((top.1 := t.2) for t.2 in y?)
    "#);
}

#[test]
fn every_binding_statement() {
    assert_snapshot!(ir(r#"
def f():
    import a.b.c, d as e
    from .g import h as i, j
    from k import *
    with l as m, n as (o, p): pass
    try: pass
    except Q as q: pass
    r: int
    s += 1
    for t, *u in v: pass
    del w
    class x: pass
    def y(): pass
    type z = int
    match aa:
        case {"k": bb, **cc} | A(bb, k=cc): pass
        case [dd, *ee] as ff if dd: pass
        case 1 | None | "s": pass
        case gg: pass
    return a, e, i, j, m, o, p, q, r, s, t, u, w, x, y, z, bb, cc, dd, ee, ff, gg, c
"#), @r#"
    def f.0() f1
      import level=0 a.b.c None -> a.0 top=true
      import level=0 d None -> e.1 top=false
      import level=1 g Some("h") -> i.2 top=false
      import level=1 g Some("j") -> j.3 top=false
      import level=0 k Some("*") -> - top=false
      with l? as m.4, n? as (o.5, p.6)
        pass
      try
        pass
      except Q? as q.7 137..151
        pass
      r.8: int?
      s.9 Add= 1
      for (t.10, *u.11) in v?
        pass
      del w.12
      class x.13() f2 []
        pass
      def y.14() f3
        pass
      pass
      match aa?
      case [] binds [bb.16, cc.17] if -
        pass
      case [] binds [dd.18, ee.19, ff.20] if dd.18
        pass
      case [1, None, "s"] binds [] if -
        pass
      case [] binds [gg.21] if - any
        pass
      return (a.0, e.1, i.2, j.3, m.4, o.5, p.6, q.7, r.8, s.9, t.10, u.11, w.12, x.13, y.14, z.15, bb.16, cc.17, dd.18, ee.19, ff.20, gg.21, c?)
    "#);
}

#[test]
fn decorators_defaults_and_annotations_are_outside() {
    assert_snapshot!(ir(r#"
@d(x)
class A(B, metaclass=M):
    x = 1
    @x
    def f(self, x: x = x) -> "x":
        yield x
    if x:
        async def g(self): await x
    else:
        def g(self): pass
    try:
        def h(self): pass
    except E: pass
"#), @r#"
    @d?(x?)
    class A.0(B?, metaclass=M?) f1 [f=f2 g=f3 g=f4 h=f5]
      x.0 = 1
      @x.0
      def f.1(self.0, x.1: x.0 = x.0) -> "x" f2 generator method
        (yield x.1)
      if x.0
        def g.2(self.0) f3 async method
          await x?
      else
        def g.2(self.0) f4 method
          pass
      try
        def h.3(self.0) f5 method
          pass
      except E? as - 219..228
        pass
    "#);
}

#[test]
fn type_parameters() {
    assert_snapshot!(ir("\
def f[T](x: T) -> T:
    return T
class A[T](B[T]):
    y: T
    def m(self): return T, __class__
T
"), @r#"
    def f.0(x.0: T.2) -> T.2 f1
      return T!2
    class A.1(B?[T.3]) f2 [m=f3]
      y.0: T!3
      def m.1(self.0) f3 method
        return (T!3, __class__?)
    T?
    "#);
}
