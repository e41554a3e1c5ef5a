//! Small ELF files: what the dynamic loader reads of a library, and nothing else.

/// A library.
#[derive(Clone, Debug, Default)]
pub struct Elf<'a> {
    pub soname: &'a str,
    pub needed: Vec<&'a str>,
    pub rpath: &'a str,
    pub runpath: &'a str,
    /// A constant.
    pub text: &'a str,
    pub undefined: Vec<&'a str>,
    pub defined: Vec<&'a str>,
    /// `e_machine`; 0 for this processor's.
    pub machine: u16,
}

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;

struct Bytes(Vec<u8>);

impl Bytes {
    fn half(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn word(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn long(&mut self, value: usize) -> &mut Self {
        self.0.extend((value as u64).to_le_bytes());
        self
    }
}

impl Elf<'_> {
    /// The file. Addresses are offsets.
    pub fn bytes(&self) -> Vec<u8> {
        let mut names = vec![0u8];
        let mut name = |text: &str| {
            let at = names.len();
            names.extend(text.as_bytes());
            names.push(0);
            at
        };
        let mut dynamic: Vec<(usize, usize)> = self.needed.iter().map(|needed| (1, name(needed))).collect();
        for (tag, text) in [(14, self.soname), (15, self.rpath), (29, self.runpath)] {
            if !text.is_empty() {
                dynamic.push((tag, name(text)));
            }
        }
        let mut symbols = Bytes(vec![0; 24]);
        for (section, list) in [(0u16, &self.undefined), (1, &self.defined)] {
            for symbol in list {
                // Global, a function.
                symbols.word(u32::try_from(name(symbol)).unwrap()).half(0x12).half(section).long(0).long(0);
            }
        }
        let names_at = HEADER + 2 * SEGMENT;
        let symbols_at = names_at + names.len();
        let text_at = symbols_at + symbols.0.len();
        let dynamic_at = text_at + self.text.len() + 1;
        dynamic.extend([(5, names_at), (10, names.len()), (0, 0)]);
        let sections_at = dynamic_at + 16 * dynamic.len();
        let machine = match self.machine {
            0 if cfg!(target_arch = "aarch64") => 183,
            0 => 62,
            other => other,
        };
        let mut file = Bytes(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec());
        file.half(3).half(machine).word(1).long(0).long(HEADER).long(sections_at).word(0);
        file.half(64).half(56).half(2).half(64).half(4).half(0);
        let mut segment = |kind: u32, at: usize, length: usize| {
            file.word(kind).word(4).long(at).long(at).long(at).long(length).long(length).long(1);
        };
        segment(1, 0, sections_at);
        segment(2, dynamic_at, sections_at - dynamic_at);
        file.0.extend(&names);
        file.0.extend(&symbols.0);
        file.0.extend(self.text.as_bytes());
        file.0.push(0);
        for (tag, value) in dynamic {
            file.long(tag).long(value);
        }
        assert_eq!(file.0.len(), sections_at);
        let mut section = |kind: u32, flags: usize, at: usize, length: usize, link: u32| {
            file.word(0)
                .word(kind)
                .long(flags)
                .long(at)
                .long(at)
                .long(length)
                .word(link)
                .word(0)
                .long(1)
                .long(0);
        };
        section(0, 0, 0, 0, 0);
        section(3, 2, names_at, names.len(), 0);
        section(11, 2, symbols_at, symbols.0.len(), 1);
        section(1, 2, text_at, self.text.len() + 1, 0);
        assert_eq!(file.0.len(), sections_at + 4 * SECTION);
        file.0
    }
}
