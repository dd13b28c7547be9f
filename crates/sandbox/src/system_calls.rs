//! Forbids families of system calls, with seccomp.
//!
//! This is a deny list, not an allow list. Which harmless calls an allocation, a panic or the end of a thread makes
//! depends on the libc, its version and the architecture. A call that is missing in an allow list would end the
//! process on some machine. A forbidden call fails with `EPERM`, which every caller has to expect.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, apply_filter_all_threads, sock_filter,
};

use crate::Scope;

/// Forbids to open and change files, to use sockets, to start processes and threads, to execute programs and make
/// memory executable, to send signals to other processes, and to inspect or change the rest of the system. Open files
/// can still be read and written. The error is the reason why this failed.
pub fn deny_system_calls(scope: Scope) -> Result<(), String> {
    let program = program()?;
    match scope {
        Scope::Thread => apply_filter(&program),
        Scope::Process => apply_filter_all_threads(&program),
    }
    .map_err(|error| error.to_string())
}

/// The number of this call on every architecture. `libc` does not define it on ARM.
const FCHMODAT2: c_long = 452;

/// Calls that open files or take their paths.
const FILES: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchmod,
    libc::SYS_fchownat,
    libc::SYS_fchown,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    libc::SYS_memfd_create,
    libc::SYS_ioctl,
    libc::SYS_mq_open,
    libc::SYS_quotactl,
];

const NETWORK: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

const PROCESSES: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_prctl,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
];

const SYSTEM: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_personality,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
];

/// Older variants of the calls above, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_inotify_init,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(target_arch = "aarch64")]
const OLDER: &[c_long] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLDER: &[c_long] = &[];

fn program() -> Result<BpfProgram, String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("there is no filter for {}", std::env::consts::ARCH))?;
    let filter = rules().and_then(|rules| {
        SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM.cast_unsigned()),
            architecture,
        )
    });
    let compiled = filter.and_then(BpfProgram::try_from).map_err(|error| error.to_string())?;
    Ok([foreign_calls_denied(), compiled].concat())
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let always = [FILES, NETWORK, PROCESSES, SYSTEM, OLDER].concat();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.into_iter().map(|call| (call, Vec::new())).collect();
    let rule = |argument, length, operator, value| {
        SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])
    };
    let executable = libc::PROT_EXEC.cast_unsigned().into();
    for call in [libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_pkey_mprotect] {
        let operator = SeccompCmpOp::MaskedEq(executable);
        rules.insert(call, vec![rule(2, SeccompCmpArgLen::Dword, operator, executable)?]);
    }
    // A process that aborts sends the signal to itself.
    let own = u64::from(std::process::id());
    let other = rule(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, own)?;
    rules.insert(libc::SYS_tgkill, vec![other]);
    Ok(rules)
}

/// Instructions before the filter that forbid the x32 calls of x86-64, which have their own numbers.
fn foreign_calls_denied() -> BpfProgram {
    if cfg!(not(target_arch = "x86_64")) {
        return Vec::new();
    }
    const X32_CALLS: u32 = 0x4000_0000;
    let code = |code: u32| u16::try_from(code).expect("classic BPF codes have 16 bits");
    vec![
        sock_filter { code: code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), jt: 0, jf: 0, k: 0 },
        sock_filter {
            code: code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K),
            jt: 0,
            jf: 1,
            k: X32_CALLS,
        },
        sock_filter {
            code: code(libc::BPF_RET | libc::BPF_K),
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned(),
        },
    ]
}
