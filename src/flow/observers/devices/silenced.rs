//! Uses of an accelerator that comments or settings suppress. A suppressed use does not hide later uses from the rules.

use crate::finding::Code;
use crate::flow::domain::event::UseKind;
use crate::flow::machine::Interp;
use crate::span::Place;

use crate::world::Backend;

impl Interp<'_> {
    /// Is a finding of one of these rules at this place suppressed? The comment may be there, at the origin of the device, or at a call
    /// that leads there. Settings may also switch the rule off for the whole file.
    pub(crate) fn is_silenced(&self, codes: &[Code], place: Place, origin: Option<Place>) -> bool {
        if self.program.silence.is_empty() {
            return false;
        }
        let flow: Vec<Place> = self.call_stack().iter().copied().chain(origin).collect();
        self.is_silenced_on(codes, place, &flow)
    }

    /// The same, with the places of the flow as an argument.
    pub(crate) fn is_silenced_on(&self, codes: &[Code], place: Place, flow: &[Place]) -> bool {
        let silence = &self.program.silence;
        let file = self.program.get(self.entry).ir.file;
        silence.is_off(codes, file) || flow.iter().chain([&place]).any(|&p| silence.is_commented(codes, p))
    }

    /// The rules that may report a use.
    pub(crate) fn rules_of_use(
        &self,
        backend: Option<Backend>,
        index: Option<u32>,
        how: UseKind,
        inverted: bool,
    ) -> &'static [Code] {
        match (backend, how) {
            (Some(_), _) => &[Code(102)],
            (None, UseKind::LegacyType) => &[Code(106)],
            (None, UseKind::DeviceList) => &[Code(402)],
            _ if inverted => &[Code(104)],
            _ if index.is_some_and(|i| i > 0) => &[Code(401)],
            _ if self.in_module() => &[Code(101), Code(305)],
            _ => &[Code(101)],
        }
    }
}
