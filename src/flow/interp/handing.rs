//! Lightning's trainers, which refuse to be made for an accelerator that is not there.

use super::super::value::Value;
use super::Interp;
use super::args::Args;
use crate::sym::Sym;

impl Interp<'_> {
    /// `Trainer(accelerator="gpu")`: Lightning refuses where there is none.
    pub(super) fn refuses_without(&mut self, class: Sym, args: &Args) {
        let Some((Value::Str(kind, _), _)) = args.keyword("accelerator") else { return };
        let lightning = ["lightning.", "pytorch_lightning.", "lightning_fabric."];
        let class = class.as_str();
        let known = lightning.iter().any(|l| class.starts_with(l))
            && ["Trainer", "Fabric", "LightningLite"].iter().any(|name| class.ends_with(name));
        if known && matches!(kind.as_str(), "gpu" | "cuda") && !self.caught_around() {
            let there = self.available(None);
            self.path = self.d.and(self.path, there);
        }
    }
}
