//! The CUDA driver, called: the only place that does, and only in the probe's own process.
//!
//! cudarc finds and loads the library and has its constants. Its functions are looked up here once more, by name and
//! with plain integers for the error codes: cudarc's own return a closed enum, in which a code that it does not know
//! is undefined behavior (seen: SIGILL and SIGSEGV), and they panic where a library lacks a function.
#![allow(unsafe_code, reason = "the CUDA driver is a C library; nothing else in this program is")]

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;

use cudarc::driver::sys;
use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;
use libloading::Library;

use super::code;

/// The name under which PyTorch opens the driver.
pub const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The library has no such function.
    Missing(&'static str),
    /// It returned this code.
    Code(&'static str, i32),
}

impl CallError {
    /// The driver's code, if it gave one.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Missing(_) => None,
            Self::Code(_, code) => Some(*code),
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(call) => write!(f, "the driver has no `{call}`"),
            Self::Code(call, number) => write!(f, "`{call}` answered {}", code::in_words(*number)),
        }
    }
}

/// What a call gives.
pub type Result<T> = std::result::Result<T, CallError>;

/// Loads the library that PyTorch would, for good.
///
/// # Errors
/// In the loader's words, if there is none or it cannot be loaded.
pub fn open() -> std::result::Result<(), String> {
    // SAFETY: loading runs the library's constructors. Those of a CUDA driver may do anything; this is a process
    // of its own for that reason.
    match unsafe { Library::new(LIBRARY) } {
        // It stays loaded, so that the list of mapped files tells which one it is.
        Ok(library) => std::mem::forget(library),
        // What the loader said is the reason of the library's error.
        Err(error) => {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            return Err(reason.unwrap_or_else(|| error.to_string()));
        }
    }
    Ok(())
}

/// The driver.
#[derive(Clone, Copy)]
pub struct Driver {
    library: &'static Library,
}

/// Calls a function of the driver; its value is the error code as an integer.
macro_rules! call {
    ($driver:expr, $name:literal, $(($type:ty) $argument:expr),*) => {{
        // SAFETY: the type is the one that cuda.h declares for this name; `CUresult` is an `int`.
        let function = unsafe {
            $driver.library.get::<unsafe extern "C" fn($($type),*) -> i32>(concat!($name, "\0").as_bytes())
        };
        match function {
            Err(_) => Err(CallError::Missing($name)),
            // SAFETY: pointers point to what outlives the call and is large enough; handles come from the driver.
            Ok(function) => match unsafe { function($($argument),*) } {
                0 => Ok(()),
                code => Err(CallError::Code($name, code)),
            },
        }
    }};
}

impl Driver {
    /// The driver as cudarc finds it. [`open`] must have succeeded: cudarc panics where there is no library.
    pub fn load() -> Self {
        // SAFETY: see `open`; the names that cudarc tries include the one that was loaded there.
        Self { library: unsafe { sys::culib() } }
    }

    /// `cuInit`.
    pub fn init(self) -> Result<()> {
        call!(self, "cuInit", (c_uint) 0)
    }

    /// The newest CUDA that the driver runs, as 12040 for 12.4. Works before [`Self::init`].
    pub fn version(self) -> Result<i32> {
        let mut version = 0;
        call!(self, "cuDriverGetVersion", (*mut i32) &raw mut version).map(|()| version)
    }

    /// How many devices there are.
    pub fn device_count(self) -> Result<u32> {
        let mut count = 0;
        call!(self, "cuDeviceGetCount", (*mut i32) &raw mut count)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// The device with this number.
    pub fn device(self, ordinal: u32) -> Result<Device> {
        let mut handle = 0;
        let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
        call!(self, "cuDeviceGet", (*mut i32) &raw mut handle, (i32) ordinal)?;
        Ok(Device { driver: self, handle })
    }
}

/// A device.
#[derive(Clone, Copy)]
pub struct Device {
    driver: Driver,
    handle: i32,
}

impl Device {
    /// Its name.
    pub fn name(self) -> Result<String> {
        const LENGTH: i32 = 256;
        let mut name = [0 as c_char; LENGTH as usize];
        call!(
            self.driver,
            "cuDeviceGetName",
            (*mut c_char) name.as_mut_ptr(),
            (i32) LENGTH - 1,
            (i32) self.handle
        )?;
        // SAFETY: the last byte is still zero, as the driver was told of one byte less.
        Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Its UUID as `nvidia-smi` writes it. That of an instance, if the device is one.
    pub fn uuid(self) -> Result<String> {
        let mut bytes = [0u8; 16];
        let newer = call!(self.driver, "cuDeviceGetUuid_v2", (*mut u8) bytes.as_mut_ptr(), (i32) self.handle);
        if newer.is_err() {
            // Before CUDA 11.4.
            call!(self.driver, "cuDeviceGetUuid", (*mut u8) bytes.as_mut_ptr(), (i32) self.handle)?;
        }
        let hex = |range: std::ops::Range<usize>| -> String {
            bytes[range].iter().map(|byte| format!("{byte:02x}")).collect()
        };
        Ok(format!("GPU-{}-{}-{}-{}-{}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)))
    }

    /// All of its memory, in bytes.
    pub fn total_memory(self) -> Result<u64> {
        let mut bytes = 0usize;
        call!(self.driver, "cuDeviceTotalMem_v2", (*mut usize) &raw mut bytes, (i32) self.handle)?;
        Ok(bytes as u64)
    }

    fn attribute(self, attribute: Attribute) -> Result<i32> {
        let mut value = 0;
        call!(
            self.driver,
            "cuDeviceGetAttribute",
            (*mut i32) &raw mut value,
            (i32) attribute as i32,
            (i32) self.handle
        )?;
        Ok(value)
    }

    /// Its compute capability.
    pub fn capability(self) -> Result<(i32, i32)> {
        Ok((
            self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    /// `CUcomputemode`: 0 default, 2 prohibited, 3 exclusive process.
    pub fn compute_mode(self) -> Result<i32> {
        self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
    }

    /// Does it share the host's memory?
    pub fn integrated(self) -> Result<bool> {
        Ok(self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0)
    }

    /// Domain, bus and slot on the PCI bus.
    pub fn pci(self) -> Result<(i32, i32, i32)> {
        Ok((
            self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
        ))
    }

    /// May it read the other's memory directly?
    pub fn reaches(self, other: Self) -> Result<bool> {
        let mut can = 0;
        call!(
            self.driver,
            "cuDeviceCanAccessPeer",
            (*mut i32) &raw mut can,
            (i32) self.handle,
            (i32) other.handle
        )?;
        Ok(can != 0)
    }

    /// Makes the device's primary context, the one that PyTorch uses too.
    pub fn context(self) -> Result<Context> {
        let mut raw = ptr::null_mut();
        call!(self.driver, "cuDevicePrimaryCtxRetain", (*mut *mut c_void) &raw mut raw, (i32) self.handle)?;
        Ok(Context { device: self, raw })
    }
}

/// A device's context; given back when it goes out of scope.
pub struct Context {
    device: Device,
    raw: *mut c_void,
}

impl Context {
    fn driver(&self) -> Driver {
        self.device.driver
    }

    fn make_current(&self) -> Result<()> {
        call!(self.driver(), "cuCtxSetCurrent", (*mut c_void) self.raw)
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.make_current()?;
        let (mut free, mut total) = (0usize, 0usize);
        call!(self.driver(), "cuMemGetInfo_v2", (*mut usize) &raw mut free, (*mut usize) &raw mut total)?;
        Ok((free as u64, total as u64))
    }

    /// Memory of the device.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer<'_>> {
        self.make_current()?;
        let mut address = 0;
        call!(self.driver(), "cuMemAlloc_v2", (*mut u64) &raw mut address, (usize) bytes)?;
        Ok(Buffer { context: self, address, bytes })
    }

    /// A module from PTX, which must end in a zero byte.
    pub fn module(&self, ptx: &CStr) -> Result<Module<'_>> {
        self.make_current()?;
        let mut raw = ptr::null_mut();
        call!(
            self.driver(),
            "cuModuleLoadData",
            (*mut *mut c_void) &raw mut raw,
            (*const c_void) ptx.as_ptr().cast()
        )?;
        Ok(Module { context: self, raw })
    }

    /// Waits for what was launched.
    pub fn synchronize(&self) -> Result<()> {
        self.make_current()?;
        call!(self.driver(), "cuCtxSynchronize",)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = call!(self.driver(), "cuDevicePrimaryCtxRelease_v2", (i32) self.device.handle);
    }
}

/// Memory of a device; freed when it goes out of scope.
pub struct Buffer<'a> {
    context: &'a Context,
    address: u64,
    bytes: usize,
}

impl Buffer<'_> {
    /// Fills it from the host, as far as both reach.
    pub fn write(&self, from: &[u8]) -> Result<()> {
        self.context.make_current()?;
        let bytes = from.len().min(self.bytes);
        call!(
            self.context.driver(),
            "cuMemcpyHtoD_v2",
            (u64) self.address,
            (*const c_void) from.as_ptr().cast(),
            (usize) bytes
        )
    }

    /// Its content.
    pub fn read(&self) -> Result<Vec<u8>> {
        self.context.make_current()?;
        let mut to = vec![0; self.bytes];
        call!(
            self.context.driver(),
            "cuMemcpyDtoH_v2",
            (*mut c_void) to.as_mut_ptr().cast(),
            (u64) self.address,
            (usize) self.bytes
        )?;
        Ok(to)
    }

    /// Copies it to another device, as far as both reach.
    pub fn copy_to(&self, other: &Buffer<'_>) -> Result<()> {
        self.context.make_current()?;
        let bytes = self.bytes.min(other.bytes);
        call!(
            self.context.driver(),
            "cuMemcpyPeer",
            (u64) other.address,
            (*mut c_void) other.context.raw,
            (u64) self.address,
            (*mut c_void) self.context.raw,
            (usize) bytes
        )
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            let _ = call!(self.context.driver(), "cuMemFree_v2", (u64) self.address);
        }
    }
}

/// Loaded code.
pub struct Module<'a> {
    context: &'a Context,
    raw: *mut c_void,
}

impl Module<'_> {
    /// The kernel of this name.
    pub fn kernel(&self, name: &CStr) -> Result<Kernel<'_>> {
        let mut raw = ptr::null_mut();
        call!(
            self.context.driver(),
            "cuModuleGetFunction",
            (*mut *mut c_void) &raw mut raw,
            (*mut c_void) self.raw,
            (*const c_char) name.as_ptr()
        )?;
        Ok(Kernel { context: self.context, raw, module: PhantomData })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            let _ = call!(self.context.driver(), "cuModuleUnload", (*mut c_void) self.raw);
        }
    }
}

/// A kernel that takes a buffer of 32-bit numbers and their count.
pub struct Kernel<'a> {
    context: &'a Context,
    raw: *mut c_void,
    module: PhantomData<&'a Module<'a>>,
}

impl Kernel<'_> {
    /// Runs it on all numbers of the buffer. The kernel must not touch anything behind `count`: the one of
    /// `exercise.rs`, the only one, does not.
    pub fn launch(&self, buffer: &Buffer<'_>) -> Result<()> {
        const THREADS: c_uint = 256;
        self.context.make_current()?;
        let mut address = buffer.address;
        let mut count = u32::try_from(buffer.bytes / 4).unwrap_or(u32::MAX);
        let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut count).cast()];
        call!(
            self.context.driver(),
            "cuLaunchKernel",
            (*mut c_void) self.raw,
            (c_uint) count.div_ceil(THREADS), (c_uint) 1, (c_uint) 1,
            (c_uint) THREADS, (c_uint) 1, (c_uint) 1,
            (c_uint) 0,
            (*mut c_void) ptr::null_mut(),
            (*mut *mut c_void) arguments.as_mut_ptr(),
            (*mut *mut c_void) ptr::null_mut()
        )
    }
}
