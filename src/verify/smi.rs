//! `nvidia-smi`: what only NVIDIA's management library knows. It sees all GPUs, whatever `CUDA_VISIBLE_DEVICES` says,
//! and numbers them by their place on the bus.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::machine::{ComputeMode, Process};
use super::process::{Running, start};
use super::system::Files;

/// Where Windows puts it for WSL; not always on `PATH`.
const IN_WSL: &str = "/usr/lib/wsl/lib/nvidia-smi";
const MIB: u64 = 1024 * 1024;

/// A GPU as `nvidia-smi` describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    /// Its number there.
    pub index: u32,
    /// Its UUID.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// The driver's version.
    pub driver: Option<String>,
    /// In bytes, to the MiB.
    pub total_bytes: Option<u64>,
    /// In bytes, to the MiB.
    pub free_bytes: Option<u64>,
    /// `8.0`.
    pub capability: Option<String>,
    /// Who may use it.
    pub compute_mode: Option<ComputeMode>,
    /// Is it divided into instances?
    pub mig: Option<bool>,
    /// Who holds its memory.
    pub processes: Vec<Process>,
}

/// What it said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// All GPUs.
    pub gpus: Vec<Gpu>,
    /// What it said if it failed.
    pub error: Option<String>,
}

/// Both of its lists, being written.
#[derive(Debug)]
pub struct Asked {
    gpus: Option<Running>,
    processes: Option<Running>,
    limit: Duration,
}

/// Starts it, if it is there.
pub fn ask(limit: Duration, files: &Files) -> Asked {
    let program = program(files);
    let query = |query: &str| {
        let mut command = Command::new(program.as_ref()?);
        command.args([query, "--format=csv,noheader,nounits"]);
        start(command, limit).ok()
    };
    Asked {
        gpus: query(
            "--query-gpu=index,uuid,name,driver_version,memory.total,memory.free,compute_cap,compute_mode,mig.mode.current",
        ),
        processes: query("--query-compute-apps=gpu_uuid,pid,process_name,used_memory"),
        limit,
    }
}

fn program(files: &Files) -> Option<PathBuf> {
    let name = format!("nvidia-smi{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join(&name));
    folders.chain([files.at(IN_WSL)]).find(|file| file.is_file())
}

impl Asked {
    /// Waits for it.
    pub fn listed(self) -> Listed {
        let Some(gpus) = self.gpus else { return Listed::default() };
        let ended = gpus.wait();
        let processes = self.processes.map(|running| running.wait().output).unwrap_or_default();
        let text = String::from_utf8_lossy(&ended.output);
        match ended.status {
            None => {
                let error = format!("no answer within {} seconds", self.limit.as_secs());
                Listed { gpus: Vec::new(), error: Some(error) }
            }
            Some(status) if !status.success() => {
                let first = text.lines().map(str::trim).find(|line| !line.is_empty());
                let error = first.map_or_else(|| status.to_string(), str::to_owned);
                Listed { gpus: Vec::new(), error: Some(error) }
            }
            Some(_) => {
                let mut gpus: Vec<Gpu> = text.lines().filter_map(gpu).collect();
                add_processes(&mut gpus, &String::from_utf8_lossy(&processes));
                Listed { gpus, error: None }
            }
        }
    }
}

/// A line of the list of GPUs. A name may have commas in it, the rest may be `[N/A]`.
fn gpu(line: &str) -> Option<Gpu> {
    let mut fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if fields.len() < 9 {
        return None;
    }
    let rest = fields.split_off(fields.len() - 6);
    let mib = |text: &str| text.parse::<u64>().ok().map(|n| n * MIB);
    Some(Gpu {
        index: fields[0].parse().ok()?,
        uuid: fields[1].to_owned(),
        name: fields[2..].join(", "),
        driver: Some(rest[0].to_owned()).filter(|text| super::system::is_driver_version(text)),
        total_bytes: mib(rest[1]),
        free_bytes: mib(rest[2]),
        capability: Some(rest[3].to_owned()).filter(|text| text.contains('.')),
        compute_mode: match rest[4] {
            "Default" => Some(ComputeMode::Default),
            "Prohibited" => Some(ComputeMode::Prohibited),
            "Exclusive_Process" | "Exclusive_Thread" => Some(ComputeMode::ExclusiveProcess),
            _ => None,
        },
        mig: match rest[5] {
            "Enabled" => Some(true),
            "Disabled" => Some(false),
            _ => None,
        },
        processes: Vec::new(),
    })
}

fn add_processes(gpus: &mut [Gpu], text: &str) {
    for line in text.lines() {
        let Some((uuid, rest)) = line.split_once(',') else { continue };
        let Some((pid, rest)) = rest.split_once(',') else { continue };
        let Some((name, used)) = rest.rsplit_once(',') else { continue };
        let Ok(pid) = pid.trim().parse() else { continue };
        let used_bytes = used.trim().parse::<u64>().ok().map(|n| n * MIB);
        if let Some(gpu) = gpus.iter_mut().find(|gpu| gpu.uuid == uuid.trim()) {
            gpu.processes.push(Process { pid, name: name.trim().to_owned(), used_bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_whatever_it_lacks() {
        let line =
            "1, GPU-aa, NVIDIA A100, the odd one, 550.54.14, 40960, 20480, 8.0, Exclusive_Process, Disabled";
        let gpu = gpu(line).unwrap();
        assert_eq!(
            (gpu.index, gpu.uuid.as_str(), gpu.name.as_str()),
            (1, "GPU-aa", "NVIDIA A100, the odd one")
        );
        assert_eq!(gpu.free_bytes, Some(20480 * MIB));
        assert_eq!(gpu.compute_mode, Some(ComputeMode::ExclusiveProcess));
        let gpu = super::gpu("0, GPU-bb, GB10, 580.95.05, [N/A], [N/A], 12.1, Default, [N/A]").unwrap();
        assert_eq!((gpu.total_bytes, gpu.mig, gpu.capability.as_deref()), (None, None, Some("12.1")));
        for line in ["", "No devices were found", "a, b, c, d, e, f, g, h, i"] {
            assert_eq!(super::gpu(line), None, "{line}");
        }
    }
}
