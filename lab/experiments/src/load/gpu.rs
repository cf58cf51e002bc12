//! GPU: copies to a CUDA device and back, of 0.5 to 2.6 MB each, as a perception task of a robot
//! makes them.
//!
//! The driver's library is loaded when the load starts, so that a machine without one needs nothing
//! of it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Done, LoadError};
use crate::sys::cuda::Device;

/// Sizes of the copies, in bytes, as the paper has them.
pub const SIZES: [usize; 5] = [500_000, 1_000_000, 1_500_000, 2_000_000, 2_600_000];

/// Source of the copies on the host's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMemory {
    /// Pinned memory: the device fetches it by itself.
    Pinned,
    /// Ordinary memory: the driver copies it first.
    Pageable,
    /// Both in turn.
    Both,
}

/// Name of this machine's CUDA device, if it has one.
///
/// # Errors
/// One sentence that says what is missing.
pub fn find() -> Result<String, LoadError> {
    let device = Device::open(LIBRARY).map_err(LoadError)?;
    device.name().map_err(LoadError)
}

/// Copies of these sizes in turn until `stop` is set.
///
/// # Errors
/// No driver, no device, or one that refuses.
pub fn run(memory: HostMemory, sizes: &[usize], stop: &AtomicBool) -> Result<Done, LoadError> {
    // Relaxed: the flag carries nothing but itself.
    run_with(LIBRARY, memory, sizes, |_| !stop.load(Ordering::Relaxed)).map_err(LoadError)
}

/// Copies as long as `goes_on`, which is called with their number.
fn run_with(
    library: &str,
    memory: HostMemory,
    sizes: &[usize],
    goes_on: impl Fn(u64) -> bool,
) -> Result<Done, String> {
    let device = Device::open(library)?;
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let mut on_device = device.allocate(largest)?;
    let mut pinned = device.allocate_pinned(largest)?;
    let mut ordinary = vec![0x5A; largest];
    let mut count = 0;
    'all: loop {
        for &size in sizes {
            for is_pinned in [true, false] {
                let skip = if is_pinned { HostMemory::Pageable } else { HostMemory::Pinned };
                if memory == skip {
                    continue;
                }
                if !goes_on(count) {
                    break 'all;
                }
                let host = if is_pinned { pinned.bytes() } else { ordinary.as_mut_slice() };
                on_device.copy_from(&host[..size])?;
                on_device.copy_to(&mut host[..size])?;
                count += 2;
            }
        }
    }
    Ok(Done { count, what: "CUDA copies" })
}

/// The CUDA driver's library, as the driver installs it.
const LIBRARY: &str = "libcuda.so.1";

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_machine_without_a_device_says_so() {
        match find() {
            Ok(name) => assert!(!name.is_empty()),
            Err(error) => {
                let sentence = error.to_string();
                assert!(sentence.contains("libcuda.so.1") || sentence.contains("CUDA"), "{sentence}");
            }
        }
        let error = run_with("libno-such-driver.so.1", HostMemory::Both, &SIZES, |_| false).unwrap_err();
        assert!(error.contains("libno-such-driver.so.1"), "{error}");
    }

    /// A driver in software: memory behind "device" pointers. It shows that calls, sizes and order
    /// are right, and that everything is given back.
    const DRIVER: &str = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        static int allocations, initialised, retained, current;
        int cuInit(unsigned flags) { initialised = 1; return flags ? 1 : 0; }
        int cuDeviceGetCount(int *count) { *count = 1; return initialised ? 0 : 3; }
        int cuDeviceGet(int *device, int number) { *device = 7; return number ? 101 : 0; }
        int cuDeviceGetName(char *name, int length, int device) {
            snprintf(name, length, "Software %d", device); return 0; }
        int cuDevicePrimaryCtxRetain(void **context, int device) {
            retained++; *context = &retained; return device == 7 ? 0 : 101; }
        int cuDevicePrimaryCtxRelease_v2(int device) { retained--; (void)device;
            return allocations || retained ? 700 : 0; }
        int cuCtxSetCurrent(void *context) { current = context == &retained; return 0; }
        int cuMemAlloc_v2(unsigned long long *pointer, size_t size) {
            if (!current) return 201; allocations++;
            *pointer = (unsigned long long)malloc(size); return 0; }
        int cuMemFree_v2(unsigned long long pointer) { allocations--; free((void *)pointer); return 0; }
        int cuMemAllocHost_v2(void **pointer, size_t size) { allocations++; *pointer = malloc(size); return 0; }
        int cuMemFreeHost(void *pointer) { allocations--; free(pointer); return 0; }
        int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size) {
            memcpy((void *)to, from, size); return size < 500000 || size > 2600000; }
        int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size) {
            memcpy(to, (void *)from, size); return 0; }
        int cuGetErrorName(int code, const char **name) { *name = code == 201 ? "CUDA_ERROR_INVALID_CONTEXT"
            : "CUDA_ERROR_INVALID_VALUE"; return 0; }
    "#;

    #[test]
    fn copies_go_to_the_device_and_back() {
        let folder = std::env::temp_dir().join(format!("onbeat-cuda-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (source, library) = (folder.join("driver.c"), folder.join("libdriver.so"));
        std::fs::write(&source, DRIVER).expect("a file");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            let _ = std::fs::remove_dir_all(&folder);
            return testkit::skip!("no C compiler `cc` for a driver in software");
        }
        let library = library.to_str().expect("UTF-8");
        assert_eq!(Device::open(library).and_then(|device| device.name()).unwrap(), "Software 7");
        for memory in [HostMemory::Both, HostMemory::Pinned, HostMemory::Pageable] {
            // Every size more than once.
            let done = run_with(library, memory, &SIZES, |count| count < 30);
            assert_eq!(done.unwrap().count, 30, "{memory:?}");
            let of_one = run_with(library, memory, &SIZES[4..], |count| count < 8);
            assert_eq!(of_one.unwrap().count, 8, "{memory:?}");
        }
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
