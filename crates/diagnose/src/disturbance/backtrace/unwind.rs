//! Unwinding of a copied stack by the tables of the files with code.

use std::borrow::Cow;
use std::fs::File;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder,
    UnwinderNative,
};
use object::{Object, ObjectSection, ReadCache};

use super::{Loaded, MOST_FRAMES, NativeElf};
use crate::disturbance::classify::Stack;

/// Addresses of the calls on a stack, innermost first.
pub(super) fn unwind(stack: &Stack, modules: &[Loaded]) -> Vec<u64> {
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
