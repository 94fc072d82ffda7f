//! Restrictions that a worker applies before it reads its first job. The operator's hub may hold secrets, files and
//! connections; a worker holds two pipes.

use std::{fs::File, io, os::fd::AsFd as _};

/// Address space in bytes that a worker may use beyond its size at the start.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 256 << 20;

/// The pipes from and to the hub.
pub(super) fn pipes() -> io::Result<(File, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// `/proc/self/status`, opened while files can be, and the peak memory at that time in bytes.
#[cfg(target_os = "linux")]
static ACCOUNT: std::sync::OnceLock<(File, u64)> = std::sync::OnceLock::new();

/// Bytes by which the peak memory of the process exceeds its size at the start; 0 where it is not measured.
pub(super) fn grown() -> u64 {
    #[cfg(target_os = "linux")]
    if let Some((account, start)) = ACCOUNT.get() {
        return peak(account).map_or(0, |peak| peak.saturating_sub(*start));
    }
    0
}

#[cfg(target_os = "linux")]
fn peak(account: &File) -> Option<u64> {
    use std::os::unix::fs::FileExt as _;
    let mut text = [0; 4096];
    let length = account.read_at(&mut text, 0).ok()?;
    let text = str::from_utf8(&text[..length]).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Closes descriptors inherited from the hub that were not marked close-on-exec.
pub(super) fn drop_descriptors() {
    #[cfg(target_os = "linux")]
    let folder = "/proc/self/fd";
    #[cfg(not(target_os = "linux"))]
    let folder = "/dev/fd";
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let open: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for descriptor in open {
        // The directory listing's own descriptor is among them and already closed.
        #[cfg(unix)]
        let _ = nix::unistd::close(descriptor);
    }
}

/// Disables core files, file writes and new privileges, limits descriptors and memory, and makes the process
/// unreadable for others.
#[cfg(target_os = "linux")]
pub(super) fn limit() -> io::Result<()> {
    use nix::sys::{
        prctl,
        resource::{Resource, setrlimit},
    };
    let pages: u64 = std::fs::read_to_string("/proc/self/statm")?
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let account = File::open("/proc/self/status")?;
    let start = peak(&account).unwrap_or(0);
    let _ = ACCOUNT.set((account, start));
    let memory = pages * 4096 + MEMORY;
    setrlimit(Resource::RLIMIT_AS, memory, memory)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_NOFILE, 8, 8)?;
    prctl::set_no_new_privs()?;
    prctl::set_dumpable(false)?;
    Ok(())
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn limit() -> io::Result<()> {
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_NOFILE, 16, 16)?;
    Ok(())
}

/// Forbids all system calls but those for memory, threads, clocks and the two pipes, in all threads of the process.
/// Returns `false` where the system does not support it.
#[cfg(target_os = "linux")]
pub(super) fn filter() -> bool {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return false };
    let allowed = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // Calls fail with an error and do not kill: the C library looks for a time zone and machine settings, and works
    // without.
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(allowed, refuse, SeccompAction::Allow, arch);
    let program: Option<BpfProgram> = filter.ok().and_then(|filter| filter.try_into().ok());
    program.is_some_and(|program| seccompiler::apply_filter_all_threads(&program).is_ok())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn filter() -> bool {
    false
}

#[cfg(target_os = "linux")]
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    // Called when a thread ends.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
];
