//! CUDA driver through its C interface (CUDA Driver API: initialisation, primary context, memory),
//! loaded at run time.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;

#[cfg(not(target_env = "musl"))]
use libloading::Library;
#[cfg(target_env = "musl")]
use without_libraries::Library;

/// `CUresult`; 0 is success.
type Code = c_int;
/// `CUdeviceptr`.
type DevicePointer = u64;

/// Stand-in for libraries in a static program, which can load none.
#[cfg(target_env = "musl")]
mod without_libraries {
    pub(super) enum Library {}

    impl Library {
        /// # Safety
        /// No requirement: it always fails.
        pub(super) unsafe fn new(_: &str) -> Result<Self, &'static str> {
            Err(
                "a static program cannot load its driver; build onbeat-measure with this machine's C library",
            )
        }

        /// # Safety
        /// No requirement: there is no library.
        pub(super) unsafe fn get<T>(&self, _: &[u8]) -> Result<&T, &'static str> {
            match *self {}
        }
    }
}

/// Functions of the driver; valid while `library` is loaded.
struct Driver {
    get_name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Code,
    release: unsafe extern "C" fn(c_int) -> Code,
    set_current: unsafe extern "C" fn(*mut c_void) -> Code,
    allocate: unsafe extern "C" fn(*mut DevicePointer, usize) -> Code,
    free: unsafe extern "C" fn(DevicePointer) -> Code,
    allocate_host: unsafe extern "C" fn(*mut *mut c_void, usize) -> Code,
    free_host: unsafe extern "C" fn(*mut c_void) -> Code,
    to_device: unsafe extern "C" fn(DevicePointer, *const c_void, usize) -> Code,
    to_host: unsafe extern "C" fn(*mut c_void, DevicePointer, usize) -> Code,
    error_name: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    library: Library,
}

impl Driver {
    fn check(&self, what: &str, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: cuGetErrorName writes a pointer to a static, terminated string, or null for an
        // unknown code.
        let named = unsafe { (self.error_name)(code, &mut name) == 0 && !name.is_null() };
        let name = if named {
            // SAFETY: not null, terminated, and never freed.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        } else {
            format!("error {code}")
        };
        Err(format!("{what}: the CUDA driver says {name}"))
    }
}

/// First CUDA device, with its primary context current on the thread that opened it (and therefore
/// not `Send`).
pub(crate) struct Device {
    driver: Driver,
    device: c_int,
    /// A context belongs to a thread.
    _on_this_thread: PhantomData<*const ()>,
}

impl Device {
    /// Loads the driver and opens its first device.
    pub(crate) fn open(library: &str) -> Result<Self, String> {
        // SAFETY: loading runs the library's initialisers; it is the machine's own CUDA driver, by
        // its name, which is made to be loaded so.
        let library = unsafe { Library::new(library) }
            .map_err(|error| format!("no GPU that can be used: {error}"))?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the type is the one the CUDA Driver API gives this name; it is kept only
                // together with the library.
                unsafe { library.get($name) }.map(|symbol| *symbol).map_err(|error| {
                    format!("no GPU that can be used: the CUDA driver is too old or broken: {error}")
                })?
            };
        }
        let initialise: unsafe extern "C" fn(c_uint) -> Code = symbol!(b"cuInit\0");
        let get_count: unsafe extern "C" fn(*mut c_int) -> Code = symbol!(b"cuDeviceGetCount\0");
        let get: unsafe extern "C" fn(*mut c_int, c_int) -> Code = symbol!(b"cuDeviceGet\0");
        let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> Code =
            symbol!(b"cuDevicePrimaryCtxRetain\0");
        let driver = Driver {
            get_name: symbol!(b"cuDeviceGetName\0"),
            release: symbol!(b"cuDevicePrimaryCtxRelease_v2\0"),
            set_current: symbol!(b"cuCtxSetCurrent\0"),
            allocate: symbol!(b"cuMemAlloc_v2\0"),
            free: symbol!(b"cuMemFree_v2\0"),
            allocate_host: symbol!(b"cuMemAllocHost_v2\0"),
            free_host: symbol!(b"cuMemFreeHost\0"),
            to_device: symbol!(b"cuMemcpyHtoD_v2\0"),
            to_host: symbol!(b"cuMemcpyDtoH_v2\0"),
            error_name: symbol!(b"cuGetErrorName\0"),
            library,
        };
        let no_gpu = |problem| format!("no GPU that can be used: {problem}");
        let (mut count, mut device, mut context) = (0, 0, ptr::null_mut());
        // SAFETY: cuInit takes flags, of which there are none; it comes before all other calls.
        driver.check("cuInit", unsafe { initialise(0) }).map_err(no_gpu)?;
        // SAFETY: writes one integer.
        driver.check("cuDeviceGetCount", unsafe { get_count(&mut count) }).map_err(no_gpu)?;
        if count < 1 {
            return Err(no_gpu("the CUDA driver has no device".into()));
        }
        // SAFETY: writes one integer, for a number below the count.
        driver.check("cuDeviceGet", unsafe { get(&mut device, 0) }).map_err(no_gpu)?;
        // SAFETY: `device` came from cuDeviceGet; writes one handle, which `drop` releases.
        driver.check("cuDevicePrimaryCtxRetain", unsafe { retain(&mut context, device) })?;
        let device = Self { driver, device, _on_this_thread: PhantomData };
        // SAFETY: the context is the one just retained.
        device.driver.check("cuCtxSetCurrent", unsafe { (device.driver.set_current)(context) })?;
        Ok(device)
    }

    /// Name of the device.
    pub(crate) fn name(&self) -> Result<String, String> {
        let mut name = [0; 256];
        let length = name.len() as c_int;
        // SAFETY: writes at most `length` characters with their end into `name`, which is that
        // long.
        let code = unsafe { (self.driver.get_name)(name.as_mut_ptr(), length, self.device) };
        self.driver.check("cuDeviceGetName", code)?;
        let bytes = name.iter().take_while(|&&character| character != 0).map(|&character| character as u8);
        Ok(String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned())
    }

    /// Allocates memory on the device.
    pub(crate) fn allocate(&self, size: usize) -> Result<OnDevice<'_>, String> {
        let mut pointer = 0;
        // SAFETY: writes one device pointer; the context is current on this thread.
        self.driver.check("cuMemAlloc", unsafe { (self.driver.allocate)(&mut pointer, size) })?;
        Ok(OnDevice { device: self, pointer, size })
    }

    /// Allocates pinned memory of the host.
    pub(crate) fn allocate_pinned(&self, size: usize) -> Result<Pinned<'_>, String> {
        let mut pointer = ptr::null_mut();
        // SAFETY: writes one pointer; the context is current on this thread.
        self.driver.check("cuMemAllocHost", unsafe { (self.driver.allocate_host)(&mut pointer, size) })?;
        // SAFETY: the driver gave `size` bytes at `pointer`, used by nothing else; zeroed, they are
        // initialised.
        unsafe { ptr::write_bytes(pointer.cast::<u8>(), 0, size) };
        Ok(Pinned { device: self, pointer: pointer.cast(), size })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained in `open`, released once; all memory that borrowed the device is gone. A
        // refusal changes nothing for a process that no longer uses it.
        let _ = unsafe { (self.driver.release)(self.device) };
        // The library is dropped last, as a field.
        let _ = &self.driver.library;
    }
}

/// Memory on a device, freed on drop.
pub(crate) struct OnDevice<'a> {
    device: &'a Device,
    pointer: DevicePointer,
    size: usize,
}

impl OnDevice<'_> {
    /// Copies from the host to its beginning, and waits for the end.
    pub(crate) fn copy_from(&mut self, host: &[u8]) -> Result<(), String> {
        let size = host.len().min(self.size);
        // SAFETY: `size` bytes are readable in `host` and writable at the device pointer; when the
        // call returns, both are the caller's again.
        let code = unsafe { (self.device.driver.to_device)(self.pointer, host.as_ptr().cast(), size) };
        self.device.driver.check("cuMemcpyHtoD", code)
    }

    /// Copies from its beginning to the host, and waits for the end.
    pub(crate) fn copy_to(&self, host: &mut [u8]) -> Result<(), String> {
        let size = host.len().min(self.size);
        // SAFETY: `size` bytes are writable in `host` and readable at the device pointer.
        let code = unsafe { (self.device.driver.to_host)(host.as_mut_ptr().cast(), self.pointer, size) };
        self.device.driver.check("cuMemcpyDtoH", code)
    }
}

impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate` on this device, freed once.
        let _ = unsafe { (self.device.driver.free)(self.pointer) };
    }
}

/// Pinned memory of the host, freed on drop.
pub(crate) struct Pinned<'a> {
    device: &'a Device,
    pointer: *mut u8,
    size: usize,
}

impl Pinned<'_> {
    /// Bytes of the memory.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `size` initialised bytes, ours alone while `self` is borrowed; copies to and from
        // a device are over when their calls return.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.size) }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate_pinned` on this device, freed once.
        let _ = unsafe { (self.device.driver.free_host)(self.pointer.cast()) };
    }
}
