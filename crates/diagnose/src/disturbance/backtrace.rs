//! From a copy of a stack to the names of the calls on it.
//!
//! The real-time thread pays for the kernel's copy and nothing else: no signal is sent to it, which
//! would end its system calls and need a handler that may not allocate. The copy is read here,
//! later, by the unwind tables that every Rust program has (`.eh_frame`), so that neither frame
//! pointers nor debug information are needed; with debug information there are files and lines.

/// No stacks are requested from the kernel on other processors (`perf::REGISTER_COUNT`).
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod unwind {
    pub(super) fn unwind(_: &super::Stack, _: &[super::Loaded]) -> Vec<u64> {
        Vec::new()
    }
}

use std::borrow::Cow;
use std::fs;
use std::fs::File;
use std::path::PathBuf;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder,
    UnwinderNative,
};
use object::read::elf::ElfFile;
use object::{NativeEndian, Object, ObjectSection, ObjectSegment, ReadCache, SegmentFlags, elf};

use super::classify::Stack;
use super::report::Frame;

/// The calls on `stack`, innermost first, of a thread of this process.
pub(super) fn backtrace(stack: &Stack) -> Vec<Frame> {
    let modules = modules();
    let addresses = unwind(stack, &modules);
    addresses.into_iter().flat_map(|address| name(address, &modules)).take(MOST_FRAMES).collect()
}

/// Names of memory mappings, read at the first request.
#[derive(Debug, Default)]
pub(super) struct Regions {
    maps: Option<Vec<Map>>,
}

impl Regions {
    /// The memory at `address`: its file, or what the kernel calls it.
    pub(super) fn name(&mut self, address: u64) -> String {
        let maps = self.maps.get_or_insert_with(maps);
        let Some(map) = maps.iter().find(|map| (map.start..map.end).contains(&address)) else {
            return "unmapped memory".to_owned();
        };
        match map.path.file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => "anonymous memory".to_owned(),
        }
    }
}

/// A file with code of this machine.
#[cfg(target_pointer_width = "64")]
type NativeElf<'data> = ElfFile<'data, elf::FileHeader64<NativeEndian>, &'data ReadCache<File>>;
#[cfg(not(target_pointer_width = "64"))]
type NativeElf<'data> = ElfFile<'data, elf::FileHeader32<NativeEndian>, &'data ReadCache<File>>;

/// A line of /proc/self/maps.
#[derive(Debug)]
struct Map {
    start: u64,
    end: u64,
    offset: u64,
    executable: bool,
    path: PathBuf,
}

fn maps() -> Vec<Map> {
    let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let map = |line: &str| {
        // "start-end perms offset device inode   path"
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        let path = fields.nth(2).unwrap_or_default().trim_start();
        Some(Map {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset,
            executable: permissions.contains('x'),
            path: path.into(),
        })
    };
    text.lines().filter_map(map).collect()
}

/// A file with code.
struct Loaded {
    path: PathBuf,
    start: u64,
    end: u64,
    /// Offset added to the file's own addresses.
    bias: u64,
}

fn modules() -> Vec<Loaded> {
    let maps = maps();
    let code = maps.iter().filter(|map| map.executable && map.path.is_absolute());
    code.filter_map(|map| {
        let cache = ReadCache::new(File::open(&map.path).ok()?);
        let file = NativeElf::parse(&cache).ok()?;
        // The mapping begins with the page that the segment begins in.
        let mut segments = file.segments().filter(|segment| {
            let (offset, size) = segment.file_range();
            let executable =
                matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
            executable && offset < map.offset + (map.end - map.start) && map.offset < offset + size
        });
        let segment = segments.next()?;
        let (offset, _) = segment.file_range();
        let bias = map.start.wrapping_sub(map.offset).wrapping_sub(segment.address().wrapping_sub(offset));
        let of_file = || maps.iter().filter(|other| other.path == map.path);
        Some(Loaded {
            start: of_file().map(|map| map.start).min()?,
            end: of_file().map(|map| map.end).max()?,
            path: map.path.clone(),
            bias,
        })
    })
    .collect()
}

/// The function at an address, and the functions inlined there before it; the bare address if none
/// is known.
fn name(address: u64, modules: &[Loaded]) -> Vec<Frame> {
    let mut frames = Vec::new();
    // The symbol of a call is looked up by its return address.
    let next = address.wrapping_add(1);
    backtrace::resolve(std::ptr::with_exposed_provenance_mut(next as usize), |symbol| {
        let Some(function) = symbol.name() else { return };
        let file = symbol.filename().map(|it| it.display().to_string());
        frames.push(Frame { function: format!("{function:#}"), file, line: symbol.lineno() });
    });
    if frames.is_empty() {
        let module = modules.iter().find(|it| (it.start..it.end).contains(&address));
        let function = module.map_or_else(
            || format!("{address:#x}"),
            |module| {
                let file = module.path.file_name().unwrap_or_default().to_string_lossy();
                format!("{file} + {:#x}", address.wrapping_sub(module.bias))
            },
        );
        frames.push(Frame { function, file: None, line: None });
    }
    frames
}

const MOST_FRAMES: usize = 64;

/// Addresses of the calls on a stack, innermost first.
fn unwind(stack: &Stack, modules: &[Loaded]) -> Vec<u64> {
    let mut unwinder = UnwinderNative::<Vec<u8>, MayAllocateDuringUnwind>::new();
    modules.iter().filter_map(unwind_tables).for_each(|module| unwinder.add_module(module));
    let mut cache = CacheNative::<MayAllocateDuringUnwind>::new();
    let Some((pointer, registers, lowest)) = registers(stack) else { return Vec::new() };
    let mut read = |address: u64| {
        let at = address.checked_sub(lowest).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
        let bytes = stack.bytes.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
        Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
    };
    let mut frames = unwinder.iter_frames(pointer, registers, &mut cache, &mut read);
    let mut addresses = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        addresses.push(frame.address_for_lookup());
        if addresses.len() == MOST_FRAMES {
            break;
        }
    }
    addresses
}

/// Instruction pointer, registers, and where the copy begins.
#[cfg(target_arch = "x86_64")]
fn registers(stack: &Stack) -> Option<(u64, UnwindRegsNative, u64)> {
    let &[frame, top, pointer] = stack.registers.as_slice() else { return None };
    Some((pointer, UnwindRegsNative::new(pointer, top, frame), top))
}

#[cfg(target_arch = "aarch64")]
fn registers(stack: &Stack) -> Option<(u64, UnwindRegsNative, u64)> {
    let &[frame, link, top, pointer] = stack.registers.as_slice() else { return None };
    Some((pointer, UnwindRegsNative::new(link, top, frame), top))
}

fn unwind_tables(loaded: &Loaded) -> Option<Module<Vec<u8>>> {
    let cache = ReadCache::new(File::open(&loaded.path).ok()?);
    let file = NativeElf::parse(&cache).ok()?;
    let range = |name| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let bytes = |name| {
        let data = file.section_by_name(name)?.uncompressed_data().ok()?;
        Some(Cow::into_owned(data))
    };
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: bytes(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: bytes(".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    };
    let name = loaded.path.display().to_string();
    Some(Module::new(name, loaded.start..loaded.end, loaded.bias, sections))
}
