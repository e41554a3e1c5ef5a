//! Programs of NVIDIA's driver that a program uses to find a GPU: `shutil.which("nvidia-smi")`. Code after a successful run of one has
//! a GPU.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;

/// The program of NVIDIA's driver.
const DRIVER: &str = "nvidia-smi";
/// Functions that run a program and raise if it fails, even in a shell.
const CHECKED: &[&str] = &["subprocess.check_call", "subprocess.check_output"];
/// Functions that run a program and raise if it does not exist.
const RUN: &[&str] = &["subprocess.run", "subprocess.call", "subprocess.Popen"];

impl Interp<'_> {
    /// A call that names the driver's program. Returns its result, or `None` for other calls.
    pub(crate) fn driver_call(&mut self, path: Sym, args: &Args, e: ExprId) -> Option<Value> {
        let &(program, _) = args.positional.first()?;
        if !self.names_driver(program) {
            return None;
        }
        let in_shell =
            args.keyword("shell").is_some_and(|(v, _)| v != Value::Bool(crate::flow::domain::diagram::FALSE));
        if CHECKED.contains(&path.as_str()) || !in_shell && RUN.contains(&path.as_str()) {
            let there = self.available(None);
            match self.caught_around() {
                true => self.survive(crate::flow::domain::diagram::TRUE, there),
                false => self.path = self.d.and(self.path, there),
            }
        }
        Some(self.result_called(e, |_| {
            format!("{}(\"{DRIVER}\") of a GPU", crate::flow::models::tensors::functions::short(path))
        }))
    }

    /// Is it `"nvidia-smi -L"`, or a list that begins with such a string?
    fn names_driver(&self, program: Value) -> bool {
        match program {
            Value::Str(text, _) => text.as_str().contains(DRIVER),
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::List { module: false }) => {
                self.names_driver(self.own(id))
            }
            Value::Seq(id) => self.seq_items(id).first().is_some_and(|&first| self.names_driver(first)),
            _ => false,
        }
    }
}
