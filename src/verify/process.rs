//! Other programs, with a time limit that holds whatever they do.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// More output than this is not kept, in bytes.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;
/// How long a killed process may take to go away before it is left to itself. A process in the driver's kernel
/// code cannot be killed until that returns, if it ever does.
const GRACE: Duration = Duration::from_millis(500);

/// What is left of a program.
#[derive(Debug)]
pub struct Ended {
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// How it ended; `None` if its time was up.
    pub status: Option<ExitStatus>,
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: Receiver<Vec<u8>>,
    deadline: Instant,
}

/// Starts the program, without standard input and standard error.
///
/// # Errors
/// If it cannot be started.
pub fn start(mut command: Command, limit: Duration) -> io::Result<Running> {
    let deadline = Instant::now() + limit;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (sender, output) = sync_channel(16);
    if let Some(mut pipe) = child.stdout.take() {
        // The thread ends with the pipe; should that never close, it ends with the program.
        thread::spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            while let Ok(n @ 1..) = pipe.read(&mut chunk) {
                if sender.send(chunk[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    Ok(Running { child, output, deadline })
}

impl Running {
    /// Waits until it ends or its time is up; then it is killed.
    pub fn wait(mut self) -> Ended {
        let mut output = Vec::new();
        loop {
            match self.output.recv_timeout(self.deadline.saturating_duration_since(Instant::now())) {
                Ok(chunk) if output.len() < MAX_OUTPUT => output.extend(chunk),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    if let Some(status) = self.reap(self.deadline) {
                        return Ended { output, status: Some(status) };
                    }
                    break;
                }
            }
        }
        let _ = self.child.kill();
        self.reap(Instant::now() + GRACE);
        Ended { output, status: None }
    }

    fn reap(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Ended, Duration) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let begin = Instant::now();
        (start(command, limit).expect("a shell").wait(), begin.elapsed())
    }

    #[test]
    fn what_ends_is_heard_to_its_end() {
        let (ended, _) = shell("echo one; echo two >&2; echo three; exit 3", Duration::from_secs(20));
        assert_eq!(ended.output, b"one\nthree\n");
        assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn what_hangs_is_ended() {
        for script in ["echo one; exec sleep 100", "trap '' TERM; echo one; sleep 100; sleep 100"] {
            let (ended, took) = shell(script, Duration::from_millis(200));
            assert_eq!((ended.output.as_slice(), ended.status), (b"one\n".as_slice(), None), "{script}");
            assert!(took < Duration::from_secs(5), "{script}: {took:?}");
        }
    }

    #[test]
    fn a_closed_pipe_is_not_the_end() {
        let (ended, took) = shell("exec >&-; exec sleep 100", Duration::from_millis(200));
        assert!(ended.status.is_none() && took < Duration::from_secs(5));
    }
}
