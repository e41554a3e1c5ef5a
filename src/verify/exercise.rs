//! `run`: are the devices not only there, but do they work? Everything is given back before it ends.

use std::ffi::CStr;

use super::driver::{self, Context, Device};
use super::facts::Progress;
use super::machine::{Allocation, Check};

/// How much memory of each device the checks take, in bytes. The limit that is promised is 64 MiB.
const BUFFER: usize = 4 * 1024 * 1024;

/// `x = 3 * x + 1` on 32-bit numbers. Written for an old virtual architecture, so that every driver can compile it.
const PTX: &CStr = c"
.version 6.0
.target sm_50
.address_size 64
.visible .entry samedevice_step(.param .u64 buffer, .param .u32 count)
{
    .reg .pred %p1;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [buffer];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    mad.lo.s32 %r7, %r6, 3, 1;
    st.global.u32 [%rd4], %r7;
done:
    ret;
}
";

/// Uses every device, one after the other, then pairs of them.
pub(super) fn run(devices: &[Device], sizes: &[u64], progress: &mut Progress) {
    for (index, device) in devices.iter().enumerate() {
        progress.doing(&format!("creating a context on device {index}"));
        let context = match device.context() {
            Ok(context) => context,
            Err(error) => {
                progress.facts.devices[index].checks.push(failed("context", &error));
                continue;
            }
        };
        progress.facts.devices[index].checks.push(passed("context", "created and destroyed"));
        progress.doing(&format!("reading the free memory of device {index}"));
        if let Ok((free, _)) = context.memory() {
            progress.facts.devices[index].free_bytes = Some(free);
        }
        progress.doing(&format!("copying and computing on device {index}"));
        progress.facts.devices[index].checks.extend(use_memory(&context));
        for &bytes in sizes {
            progress.doing(&format!("allocating {bytes} bytes on device {index}"));
            let allocation = allocate(&context, bytes);
            progress.facts.devices[index].allocations.push(allocation);
        }
    }
    for (from, a) in devices.iter().enumerate() {
        for (to, b) in devices.iter().enumerate().filter(|(to, _)| *to != from) {
            progress.doing(&format!("copying from device {from} to device {to}"));
            if let Some(check) = copy_between(*a, *b, to) {
                progress.facts.devices[from].checks.push(check);
            }
        }
    }
}

fn passed(name: &str, detail: &str) -> Check {
    Check { name: name.to_owned(), ok: true, code: None, detail: detail.to_owned() }
}

fn failed(name: &str, error: &driver::CallError) -> Check {
    Check { name: name.to_owned(), ok: false, code: error.code(), detail: error.to_string() }
}

/// The check, with the first of its errors.
fn checked(name: &str, outcome: driver::Result<Result<&str, String>>) -> Check {
    match outcome {
        Ok(Ok(detail)) => passed(name, detail),
        Ok(Err(detail)) => Check { name: name.to_owned(), ok: false, code: None, detail },
        Err(error) => failed(name, &error),
    }
}

/// Bytes without a period that a copy could hide behind.
fn pattern(seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    (0..BUFFER / 4).flat_map(|_| next().to_le_bytes()).collect()
}

fn use_memory(context: &Context) -> Vec<Check> {
    let buffer = match context.allocate(BUFFER) {
        Ok(buffer) => buffer,
        Err(error) => return vec![failed("allocation", &error)],
    };
    let sent = pattern(1);
    let copy = || -> driver::Result<Result<&str, String>> {
        buffer.write(&sent)?;
        let back = buffer.read()?;
        Ok(difference(&sent, &back).map_or(Ok("copied 4 MiB to the GPU and back without a difference"), Err))
    };
    let kernel = || -> driver::Result<Result<&str, String>> {
        buffer.write(&sent)?;
        let module = context.module(PTX)?;
        module.kernel(c"samedevice_step")?.launch(&buffer)?;
        context.synchronize()?;
        let back = buffer.read()?;
        Ok(difference(&stepped(&sent), &back).map_or(Ok("1048576 results are correct"), Err))
    };
    vec![passed("allocation", "4 MiB"), checked("copy", copy()), checked("kernel", kernel())]
}

/// What the kernel should make of it.
fn stepped(bytes: &[u8]) -> Vec<u8> {
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words.flat_map(|word| word.wrapping_mul(3).wrapping_add(1).to_le_bytes()).collect()
}

fn difference(expected: &[u8], got: &[u8]) -> Option<String> {
    let at = expected.iter().zip(got).position(|(a, b)| a != b);
    let at = at.or_else(|| (expected.len() != got.len()).then_some(expected.len().min(got.len())))?;
    Some(format!("byte {at} came back wrong"))
}

fn allocate(context: &Context, bytes: u64) -> Allocation {
    let refused = |detail: String| Allocation { bytes, ok: false, detail };
    let free = match context.memory() {
        Ok((free, _)) => free,
        Err(error) => return refused(error.to_string()),
    };
    // Asking for more may make other processes fail, and the answer is known.
    if bytes > free {
        return refused(format!("not tried: only {free} bytes are free"));
    }
    let Ok(size) = usize::try_from(bytes) else { return refused("too large for this system".to_owned()) };
    match context.allocate(size) {
        Ok(_) => Allocation { bytes, ok: true, detail: "allocated and freed".to_owned() },
        Err(error) => refused(error.to_string()),
    }
}

/// `None` if one of them cannot be used at all, which its own checks tell.
fn copy_between(from: Device, to: Device, index: usize) -> Option<Check> {
    let (from, to) = (from.context().ok()?, to.context().ok()?);
    let copy = || -> driver::Result<Result<&str, String>> {
        let (source, target) = (from.allocate(BUFFER)?, to.allocate(BUFFER)?);
        let sent = pattern(2);
        source.write(&sent)?;
        source.copy_to(&target)?;
        to.synchronize()?;
        Ok(difference(&sent, &target.read()?).map_or(Ok(""), Err))
    };
    let mut check = checked("peer-copy", copy());
    check.detail = format!(
        "to cuda:{index}: {}",
        if check.ok { "copied 4 MiB without a difference" } else { &check.detail }
    );
    Some(check)
}
