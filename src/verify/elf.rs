//! What the dynamic loader reads of a library: its headers, the libraries that it needs, where it says that these are,
//! and its symbols. Pieces are read by their offsets, with a limit on each, so that neither the size of a library nor
//! what its headers claim decides how much is read. Only 64-bit files: PyTorch has no others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, Dyn64, FileHeader64, ProgramHeader64, Rela64, SectionHeader64, Sym64};
use object::pod::{from_bytes, slice_from_all_bytes};
use object::read::elf::SectionHeader;

use crate::source::read;

/// No table is longer, in bytes: the symbols' names of PyTorch's largest library take 6 MB.
const MAX_TABLE: u64 = 96 << 20;
/// No file has more segments or sections than this.
const MAX_HEADERS: u16 = 4096;
/// The file header's size, in bytes.
const HEADER: usize = size_of::<FileHeader64<Endianness>>();

/// Why a file is no library that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It cannot be opened, with the system's reason.
    Unreadable(String),
    /// It is a folder, a pipe, a device.
    NotRegular,
    /// It is shorter than an ELF file's header.
    TooShort,
    /// It does not begin like an ELF file.
    NotElf,
    /// It is for another kind of processor, or of 32 bits.
    OtherMachine,
    /// Its headers speak of more bytes than it has.
    Truncated {
        /// How many bytes it would have to have.
        needed: u64,
        /// How many it has.
        length: u64,
    },
}

/// A library's headers.
#[derive(Debug)]
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// The processor that it is for: `e_machine`.
    pub machine: u16,
    /// Does the file have all of its sections, too, which the loader does without?
    pub whole: bool,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RPATH`, as it is written.
    pub rpath: Option<String>,
    /// `DT_RUNPATH`, as it is written.
    pub runpath: Option<String>,
    /// `PT_INTERP`: the loader that a program asks for.
    pub interpreter: Option<String>,
    endian: Endianness,
    sections: Vec<SectionHeader64<Endianness>>,
}

/// What a library asks of others and gives to them.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Names that it needs and does not have; weak ones, which may stay without a definition, are not among them.
    pub undefined: Vec<Undefined>,
    /// Names that it gives to others.
    pub defined: Vec<Vec<u8>>,
    /// Versions that it needs: of which library by `DT_SONAME`, and which: ("libstdc++.so.6", "GLIBCXX_3.4.29").
    pub needs: Vec<(String, String)>,
    /// Versions that it has; none if it has no table of them.
    pub gives: Option<Vec<String>>,
}

/// A name that a library needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The name.
    pub name: Vec<u8>,
    /// The version of it that is asked for.
    pub version: Option<String>,
    /// Its number in the table of symbols.
    pub index: u32,
}

impl Library {
    /// Reads a library's headers.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn open(path: &Path) -> Result<Self, Defect> {
        let mut file = Pieces::open(path)?;
        let head = file.upto(0, HEADER as u64).unwrap_or_default();
        if head.len() < HEADER {
            return Err(Defect::TooShort);
        }
        if !head.starts_with(&elf::ELFMAG) {
            return Err(Defect::NotElf);
        }
        let (header, _) = from_bytes::<FileHeader64<Endianness>>(&head).map_err(|()| Defect::NotElf)?;
        let endian = match header.e_ident.data {
            elf::ELFDATA2LSB => Endianness::Little,
            elf::ELFDATA2MSB => Endianness::Big,
            _ => return Err(Defect::NotElf),
        };
        if header.e_ident.class != elf::ELFCLASS64 {
            return Err(Defect::OtherMachine);
        }
        let mut library = Self {
            path: path.to_owned(),
            machine: header.e_machine.get(endian),
            whole: false,
            soname: None,
            needed: Vec::new(),
            rpath: None,
            runpath: None,
            interpreter: None,
            endian,
            sections: Vec::new(),
        };
        let (count, offset) = (header.e_phnum.get(endian), header.e_phoff.get(endian));
        let segments: Vec<ProgramHeader64<Endianness>> = file.table(offset, count)?;
        let segment_ends = segments
            .iter()
            .map(|segment| segment.p_offset.get(endian).saturating_add(segment.p_filesz.get(endian)));
        file.reaches(segment_ends.max().unwrap_or_default())?;
        // The loader does without sections; then the symbols are not known here.
        let (count, offset) = (header.e_shnum.get(endian), header.e_shoff.get(endian));
        let sections = file.table(offset, count);
        library.whole = sections.is_ok();
        library.sections = sections.unwrap_or_default();
        library.read_dynamic(&mut file, &segments);
        Ok(library)
    }

    fn read_dynamic(&mut self, file: &mut Pieces, segments: &[ProgramHeader64<Endianness>]) {
        let endian = self.endian;
        let piece = |file: &mut Pieces, kind: u32| {
            let segment = segments.iter().find(|segment| segment.p_type.get(endian) == kind)?;
            file.exactly(segment.p_offset.get(endian), segment.p_filesz.get(endian))
        };
        self.interpreter = piece(file, elf::PT_INTERP).map(|bytes| name_at(&bytes, 0));
        let dynamic = piece(file, elf::PT_DYNAMIC).unwrap_or_default();
        let whole = dynamic.len() - dynamic.len() % size_of::<Dyn64<Endianness>>();
        let Ok(entries) = slice_from_all_bytes::<Dyn64<Endianness>>(&dynamic[..whole]) else { return };
        let entries: Vec<(u64, u64)> = entries
            .iter()
            .map(|entry| (entry.d_tag.get(endian), entry.d_val.get(endian)))
            .take_while(|(tag, _)| *tag != u64::from(elf::DT_NULL))
            .collect();
        let value = |wanted: u32| entries.iter().find(|(tag, _)| *tag == u64::from(wanted)).map(|(_, v)| *v);
        let (Some(address), Some(size)) = (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) else { return };
        // The table is given by its address in memory.
        let offset = segments.iter().filter(|segment| segment.p_type.get(endian) == elf::PT_LOAD).find_map(
            |segment| {
                let into = address.checked_sub(segment.p_vaddr.get(endian))?;
                (into < segment.p_filesz.get(endian))
                    .then(|| segment.p_offset.get(endian).checked_add(into))?
            },
        );
        let Some(strings) = offset.and_then(|offset| file.exactly(offset, size)) else { return };
        let text = |at: u64| usize::try_from(at).ok().map(|at| name_at(&strings, at));
        let of = |tag: u32| value(tag).and_then(text);
        self.soname = of(elf::DT_SONAME);
        self.rpath = of(elf::DT_RPATH);
        self.runpath = of(elf::DT_RUNPATH);
        let needed = entries.iter().filter(|(tag, _)| *tag == u64::from(elf::DT_NEEDED));
        self.needed = needed.filter_map(|(_, at)| text(*at)).collect();
    }

    /// Its symbols. Nothing if it has no table of them or cannot be read.
    pub fn symbols(&self) -> Option<Symbols> {
        let endian = self.endian;
        let mut file = Pieces::open(&self.path).ok()?;
        let of_kind = |kind: u32| self.sections.iter().find(|section| section.sh_type.get(endian) == kind);
        let bytes = |file: &mut Pieces, section: &SectionHeader64<Endianness>| {
            file.exactly(section.sh_offset.get(endian), section.sh_size.get(endian))
        };
        let linked = |section: &SectionHeader64<Endianness>| {
            self.sections.get(usize::try_from(section.sh_link.get(endian)).ok()?)
        };
        let table = of_kind(elf::SHT_DYNSYM)?;
        let names = bytes(&mut file, linked(table)?)?;
        let table = bytes(&mut file, table)?;
        let text = |at: u32| name_at(&names, usize::try_from(at).unwrap_or(usize::MAX));
        let mut symbols = Symbols::default();
        // As if the file began with the section.
        let alone = |section: &SectionHeader64<Endianness>| {
            let mut section = *section;
            section.sh_offset.set(endian, 0);
            section
        };
        let mut versions: BTreeMap<u16, String> = BTreeMap::new();
        if let Some(section) = of_kind(elf::SHT_GNU_VERNEED)
            && let Some(data) = bytes(&mut file, section)
            && let Ok(Some((mut needs, _))) = alone(section).gnu_verneed(endian, &data[..])
        {
            while let Ok(Some((library, mut needed))) = needs.next() {
                while let Ok(Some(version)) = needed.next() {
                    let name = text(version.vna_name.get(endian));
                    // A weak one may be missing.
                    if version.vna_flags.get(endian) & elf::VER_FLG_WEAK == 0 {
                        symbols.needs.push((text(library.vn_file.get(endian)), name.clone()));
                    }
                    versions.insert(version.vna_other.get(endian), name);
                }
            }
        }
        if let Some(section) = of_kind(elf::SHT_GNU_VERDEF)
            && let Some(data) = bytes(&mut file, section)
            && let Ok(Some((mut given, _))) = alone(section).gnu_verdef(endian, &data[..])
        {
            let mut gives = Vec::new();
            while let Ok(Some((_, mut names))) = given.next() {
                gives.extend(names.next().ok().flatten().map(|name| text(name.vda_name.get(endian))));
            }
            symbols.gives = Some(gives);
        }
        let numbers =
            of_kind(elf::SHT_GNU_VERSYM).and_then(|section| bytes(&mut file, section)).unwrap_or_default();
        let numbers = slice_from_all_bytes::<elf::Versym<Endianness>>(&numbers).unwrap_or_default();
        let table = slice_from_all_bytes::<Sym64<Endianness>>(&table).ok()?;
        for (index, symbol) in (0u32..).zip(table) {
            let undefined = symbol.st_shndx.get(endian) == elf::SHN_UNDEF;
            if symbol.st_bind() == elf::STB_LOCAL || (undefined && symbol.st_bind() == elf::STB_WEAK) {
                continue;
            }
            let name = bytes_at(&names, usize::try_from(symbol.st_name.get(endian)).ok()?);
            if !is_c(name) {
                continue;
            }
            let name = name.to_owned();
            if undefined {
                let number = usize::try_from(index).ok().and_then(|at| numbers.get(at));
                let version = number.and_then(|number| versions.get(&number.0.get(endian))).cloned();
                symbols.undefined.push(Undefined { name, version, index });
            } else {
                symbols.defined.push(name);
            }
        }
        Some(symbols)
    }

    /// Which of these symbols, by their numbers, the loader looks for first, second, …: the order of the relocations.
    pub fn in_loading_order(&self, mut indices: Vec<u32>) -> Vec<u32> {
        let endian = self.endian;
        if indices.len() < 2 {
            return indices;
        }
        let Ok(mut file) = Pieces::open(&self.path) else { return indices };
        let mut ordered = Vec::new();
        for section in self.sections.iter().filter(|section| section.sh_type.get(endian) == elf::SHT_RELA) {
            let data =
                file.exactly(section.sh_offset.get(endian), section.sh_size.get(endian)).unwrap_or_default();
            for relocation in slice_from_all_bytes::<Rela64<Endianness>>(&data).unwrap_or_default() {
                let symbol = relocation.r_sym(endian, false);
                if let Some(at) = indices.iter().position(|index| *index == symbol) {
                    ordered.push(indices.swap_remove(at));
                }
            }
        }
        ordered.extend(indices);
        ordered
    }

    /// Where its constants are: offset and length in bytes of each section that is neither code nor can be written.
    pub fn constants(&self) -> Vec<(u64, u64)> {
        let endian = self.endian;
        let constant = |section: &&SectionHeader64<Endianness>| {
            let flags = section.sh_flags.get(endian);
            section.sh_type.get(endian) == elf::SHT_PROGBITS
                && flags & u64::from(elf::SHF_ALLOC) != 0
                && flags & u64::from(elf::SHF_WRITE | elf::SHF_EXECINSTR) == 0
        };
        let sections = self.sections.iter().filter(constant);
        sections.map(|section| (section.sh_offset.get(endian), section.sh_size.get(endian))).collect()
    }
}

/// Is it a name of C, not one that C++ has made of a name and its types? Only C names are compared: NVIDIA's
/// libraries have no others.
fn is_c(name: &[u8]) -> bool {
    !name.is_empty() && !name.starts_with(b"_Z")
}

fn bytes_at(table: &[u8], at: usize) -> &[u8] {
    let rest = table.get(at..).unwrap_or_default();
    &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
}

fn name_at(table: &[u8], at: usize) -> String {
    String::from_utf8_lossy(bytes_at(table, at)).into_owned()
}

/// A file that is read in pieces.
struct Pieces {
    file: File,
    length: u64,
}

impl Pieces {
    fn open(path: &Path) -> Result<Self, Defect> {
        let (file, length) = read::open(path).map_err(|reason| match reason {
            read::Unreadable::NotRegular(_) => Defect::NotRegular,
            other => Defect::Unreadable(other.to_string()),
        })?;
        Ok(Self { file, length })
    }

    /// So many bytes from this offset, fewer at the end of the file.
    fn upto(&mut self, offset: u64, size: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(offset)).ok()?;
        self.file.by_ref().take(size.min(MAX_TABLE)).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// So many bytes from this offset; nothing if there are fewer, or if that is more than any table has.
    fn exactly(&mut self, offset: u64, size: u64) -> Option<Vec<u8>> {
        let fits = size <= MAX_TABLE && offset.checked_add(size)? <= self.length;
        let bytes = fits.then(|| self.upto(offset, size))??;
        (bytes.len() as u64 == size).then_some(bytes)
    }

    fn reaches(&self, needed: u64) -> Result<(), Defect> {
        if needed > self.length { Err(Defect::Truncated { needed, length: self.length }) } else { Ok(()) }
    }

    fn table<T: object::pod::Pod + Copy>(&mut self, offset: u64, count: u16) -> Result<Vec<T>, Defect> {
        let size = u64::from(count.min(MAX_HEADERS)) * size_of::<T>() as u64;
        self.reaches(offset.saturating_add(size))?;
        let bytes = self.exactly(offset, size).ok_or(Defect::NotElf)?;
        slice_from_all_bytes(&bytes).map(<[T]>::to_vec).map_err(|()| Defect::NotElf)
    }
}
