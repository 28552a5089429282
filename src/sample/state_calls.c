/* state_calls: system calls of x86-64 and aarch64: their names, and what a thread that is in one waits for.
 * Const data; any thread.
 * Must not know where the numbers come from. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "state.h"
#include "state_wait.h"

/* ---- names, by number ------------------------------------------------------------------------------------------- */
/* Not from the headers of the build machine: they may be older than the kernel. */
#if defined(__x86_64__)
static const char *const calls[] = {
    "read", "write", "open", "close", "stat", "fstat", "lstat", "poll", "lseek", "mmap", "mprotect", "munmap", "brk",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "ioctl", "pread64", "pwrite64", "readv", "writev", "access",
    "pipe", "select", "sched_yield", "mremap", "msync", "mincore", "madvise", "shmget", "shmat", "shmctl", "dup",
    "dup2", "pause", "nanosleep", "getitimer", "alarm", "setitimer", "getpid", "sendfile", "socket", "connect",
    "accept", "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "bind", "listen", "getsockname", "getpeername",
    "socketpair", "setsockopt", "getsockopt", "clone", "fork", "vfork", "execve", "exit", "wait4", "kill", "uname",
    "semget", "semop", "semctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl", "fcntl", "flock", "fsync",
    "fdatasync", "truncate", "ftruncate", "getdents", "getcwd", "chdir", "fchdir", "rename", "mkdir", "rmdir",
    "creat", "link", "unlink", "symlink", "readlink", "chmod", "fchmod", "chown", "fchown", "lchown", "umask",
    "gettimeofday", "getrlimit", "getrusage", "sysinfo", "times", "ptrace", "getuid", "syslog", "getgid", "setuid",
    "setgid", "geteuid", "getegid", "setpgid", "getppid", "getpgrp", "setsid", "setreuid", "setregid", "getgroups",
    "setgroups", "setresuid", "getresuid", "setresgid", "getresgid", "getpgid", "setfsuid", "setfsgid", "getsid",
    "capget", "capset", "rt_sigpending", "rt_sigtimedwait", "rt_sigqueueinfo", "rt_sigsuspend", "sigaltstack",
    "utime", "mknod", "uselib", "personality", "ustat", "statfs", "fstatfs", "sysfs", "getpriority", "setpriority",
    "sched_setparam", "sched_getparam", "sched_setscheduler", "sched_getscheduler", "sched_get_priority_max",
    "sched_get_priority_min", "sched_rr_get_interval", "mlock", "munlock", "mlockall", "munlockall", "vhangup",
    "modify_ldt", "pivot_root", "_sysctl", "prctl", "arch_prctl", "adjtimex", "setrlimit", "chroot", "sync", "acct",
    "settimeofday", "mount", "umount2", "swapon", "swapoff", "reboot", "sethostname", "setdomainname", "iopl",
    "ioperm", "create_module", "init_module", "delete_module", "get_kernel_syms", "query_module", "quotactl",
    "nfsservctl", "getpmsg", "putpmsg", "afs_syscall", "tuxcall", "security", "gettid", "readahead", "setxattr",
    "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
    "removexattr", "lremovexattr", "fremovexattr", "tkill", "time", "futex", "sched_setaffinity", "sched_getaffinity",
    "set_thread_area", "io_setup", "io_destroy", "io_getevents", "io_submit", "io_cancel", "get_thread_area",
    "lookup_dcookie", "epoll_create", "epoll_ctl_old", "epoll_wait_old", "remap_file_pages", "getdents64",
    "set_tid_address", "restart_syscall", "semtimedop", "fadvise64", "timer_create", "timer_settime", "timer_gettime",
    "timer_getoverrun", "timer_delete", "clock_settime", "clock_gettime", "clock_getres", "clock_nanosleep",
    "exit_group", "epoll_wait", "epoll_ctl", "tgkill", "utimes", "vserver", "mbind", "set_mempolicy", "get_mempolicy",
    "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "kexec_load", "waitid",
    "add_key", "request_key", "keyctl", "ioprio_set", "ioprio_get", "inotify_init", "inotify_add_watch",
    "inotify_rm_watch", "migrate_pages", "openat", "mkdirat", "mknodat", "fchownat", "futimesat", "newfstatat",
    "unlinkat", "renameat", "linkat", "symlinkat", "readlinkat", "fchmodat", "faccessat", "pselect6", "ppoll",
    "unshare", "set_robust_list", "get_robust_list", "splice", "tee", "sync_file_range", "vmsplice", "move_pages",
    "utimensat", "epoll_pwait", "signalfd", "timerfd_create", "eventfd", "fallocate", "timerfd_settime",
    "timerfd_gettime", "accept4", "signalfd4", "eventfd2", "epoll_create1", "dup3", "pipe2", "inotify_init1",
    "preadv", "pwritev", "rt_tgsigqueueinfo", "perf_event_open", "recvmmsg", "fanotify_init", "fanotify_mark",
    "prlimit64", "name_to_handle_at", "open_by_handle_at", "clock_adjtime", "syncfs", "sendmmsg", "setns", "getcpu",
    "process_vm_readv", "process_vm_writev", "kcmp", "finit_module", "sched_setattr", "sched_getattr", "renameat2",
    "seccomp", "getrandom", "memfd_create", "kexec_file_load", "bpf", "execveat", "userfaultfd", "membarrier",
    "mlock2", "copy_file_range", "preadv2", "pwritev2", "pkey_mprotect", "pkey_alloc", "pkey_free", "statx",
    "io_pgetevents", "rseq",
    [424] = "pidfd_send_signal", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "pidfd_open", "clone3", "close_range", "openat2", "pidfd_getfd",
    "faccessat2", "process_madvise", "epoll_pwait2", "mount_setattr", "quotactl_fd", "landlock_create_ruleset",
    "landlock_add_rule", "landlock_restrict_self", "memfd_secret", "process_mrelease", "futex_waitv",
    "set_mempolicy_home_node", "cachestat", "fchmodat2", "map_shadow_stack", "futex_wake", "futex_wait",
    "futex_requeue", "statmount", "listmount", "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules", "mseal",
    "setxattrat", "getxattrat", "listxattrat", "removexattrat", "open_tree_attr", "file_getattr", "file_setattr",
};
#elif defined(__aarch64__)
static const char *const calls[] = {
    "io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "setxattr", "lsetxattr", "fsetxattr",
    "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr",
    "fremovexattr", "getcwd", "lookup_dcookie", "eventfd2", "epoll_create1", "epoll_ctl", "epoll_pwait", "dup",
    "dup3", "fcntl", "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "ioctl", "ioprio_set", "ioprio_get",
    "flock", "mknodat", "mkdirat", "unlinkat", "symlinkat", "linkat", "renameat", "umount2", "mount", "pivot_root",
    "nfsservctl", "statfs", "fstatfs", "truncate", "ftruncate", "fallocate", "faccessat", "chdir", "fchdir", "chroot",
    "fchmod", "fchmodat", "fchownat", "fchown", "openat", "close", "vhangup", "pipe2", "quotactl", "getdents64",
    "lseek", "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "sendfile", "pselect6",
    "ppoll", "signalfd4", "vmsplice", "splice", "tee", "readlinkat", "newfstatat", "fstat", "sync", "fsync",
    "fdatasync", "sync_file_range", "timerfd_create", "timerfd_settime", "timerfd_gettime", "utimensat", "acct",
    "capget", "capset", "personality", "exit", "exit_group", "waitid", "set_tid_address", "unshare", "futex",
    "set_robust_list", "get_robust_list", "nanosleep", "getitimer", "setitimer", "kexec_load", "init_module",
    "delete_module", "timer_create", "timer_gettime", "timer_getoverrun", "timer_settime", "timer_delete",
    "clock_settime", "clock_gettime", "clock_getres", "clock_nanosleep", "syslog", "ptrace", "sched_setparam",
    "sched_setscheduler", "sched_getscheduler", "sched_getparam", "sched_setaffinity", "sched_getaffinity",
    "sched_yield", "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "restart_syscall",
    "kill", "tkill", "tgkill", "sigaltstack", "rt_sigsuspend", "rt_sigaction", "rt_sigprocmask", "rt_sigpending",
    "rt_sigtimedwait", "rt_sigqueueinfo", "rt_sigreturn", "setpriority", "getpriority", "reboot", "setregid",
    "setgid", "setreuid", "setuid", "setresuid", "getresuid", "setresgid", "getresgid", "setfsuid", "setfsgid",
    "times", "setpgid", "getpgid", "getsid", "setsid", "getgroups", "setgroups", "uname", "sethostname",
    "setdomainname", "getrlimit", "setrlimit", "getrusage", "umask", "prctl", "getcpu", "gettimeofday",
    "settimeofday", "adjtimex", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "gettid", "sysinfo",
    "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "msgget", "msgctl",
    "msgrcv", "msgsnd", "semget", "semctl", "semtimedop", "semop", "shmget", "shmctl", "shmat", "shmdt", "socket",
    "socketpair", "bind", "listen", "accept", "connect", "getsockname", "getpeername", "sendto", "recvfrom",
    "setsockopt", "getsockopt", "shutdown", "sendmsg", "recvmsg", "readahead", "brk", "munmap", "mremap", "add_key",
    "request_key", "keyctl", "clone", "execve", "mmap", "fadvise64", "swapon", "swapoff", "mprotect", "msync",
    "mlock", "munlock", "mlockall", "munlockall", "mincore", "madvise", "remap_file_pages", "mbind", "get_mempolicy",
    "set_mempolicy", "migrate_pages", "move_pages", "rt_tgsigqueueinfo", "perf_event_open", "accept4", "recvmmsg",
    [260] = "wait4", "prlimit64", "fanotify_init", "fanotify_mark", "name_to_handle_at", "open_by_handle_at",
    "clock_adjtime", "syncfs", "setns", "sendmmsg", "process_vm_readv", "process_vm_writev", "kcmp", "finit_module",
    "sched_setattr", "sched_getattr", "renameat2", "seccomp", "getrandom", "memfd_create", "bpf", "execveat",
    "userfaultfd", "membarrier", "mlock2", "copy_file_range", "preadv2", "pwritev2", "pkey_mprotect", "pkey_alloc",
    "pkey_free", "statx", "io_pgetevents", "rseq", "kexec_file_load",
    [424] = "pidfd_send_signal", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "pidfd_open", "clone3", "close_range", "openat2", "pidfd_getfd",
    "faccessat2", "process_madvise", "epoll_pwait2", "mount_setattr", "quotactl_fd", "landlock_create_ruleset",
    "landlock_add_rule", "landlock_restrict_self", "memfd_secret", "process_mrelease", "futex_waitv",
    "set_mempolicy_home_node", "cachestat", "fchmodat2", "map_shadow_stack", "futex_wake", "futex_wait",
    "futex_requeue", "statmount", "listmount", "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules", "mseal",
    "setxattrat", "getxattrat", "listxattrat", "removexattrat", "open_tree_attr", "file_getattr", "file_setattr",
};
#else
static const char *const calls[] = {NULL};
#endif

const char *tare__system_call_name(int64_t number)
{
    return number >= 0 && (uint64_t)number < TARE__COUNT_OF(calls) ? calls[number] : NULL;
}

int64_t tare__system_call_number(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(calls); i++)
        if (calls[i] && strcmp(calls[i], name) == 0)
            return (int64_t)i;
    return -1;
}

/* ---- waits, sorted by name -------------------------------------------------------------------------------------- */
typedef struct wait_rule {
    const char *name;
    tare__wait_kind kind;
} wait_rule;

static const wait_rule rules[] = {
    {"accept", TARE__WAIT_DESCRIPTOR}, {"accept4", TARE__WAIT_DESCRIPTOR}, {"access", TARE__WAIT_DISK},
    {"brk", TARE__WAIT_MEMORY}, {"chdir", TARE__WAIT_DISK}, {"chmod", TARE__WAIT_DISK}, {"chown", TARE__WAIT_DISK},
    {"clock_nanosleep", TARE__WAIT_SLEEP}, {"clone", TARE__WAIT_SPAWN}, {"clone3", TARE__WAIT_SPAWN},
    {"close", TARE__WAIT_DESCRIPTOR}, {"connect", TARE__WAIT_DESCRIPTOR}, {"copy_file_range", TARE__WAIT_TWO},
    {"creat", TARE__WAIT_OPEN}, {"epoll_pwait", TARE__WAIT_EPOLL}, {"epoll_pwait2", TARE__WAIT_EPOLL},
    {"epoll_wait", TARE__WAIT_EPOLL}, {"execve", TARE__WAIT_DISK}, {"execveat", TARE__WAIT_DISK},
    {"exit", TARE__WAIT_MEMORY}, {"exit_group", TARE__WAIT_MEMORY}, {"faccessat", TARE__WAIT_DISK},
    {"faccessat2", TARE__WAIT_DISK}, {"fadvise64", TARE__WAIT_DESCRIPTOR}, {"fallocate", TARE__WAIT_DESCRIPTOR},
    {"fchdir", TARE__WAIT_DISK}, {"fchmod", TARE__WAIT_DISK}, {"fchmodat", TARE__WAIT_DISK},
    {"fchown", TARE__WAIT_DISK}, {"fchownat", TARE__WAIT_DISK}, {"fcntl", TARE__WAIT_FCNTL},
    {"fdatasync", TARE__WAIT_DESCRIPTOR}, {"fgetxattr", TARE__WAIT_DISK}, {"flock", TARE__WAIT_LOCK},
    {"fork", TARE__WAIT_SPAWN}, {"fsetxattr", TARE__WAIT_DISK}, {"fstat", TARE__WAIT_DESCRIPTOR},
    {"fstatfs", TARE__WAIT_DISK}, {"fsync", TARE__WAIT_DESCRIPTOR}, {"ftruncate", TARE__WAIT_DESCRIPTOR},
    {"futex", TARE__WAIT_FUTEX}, {"futex_wait", TARE__WAIT_FUTEX}, {"futex_waitv", TARE__WAIT_FUTEXES},
    {"getdents", TARE__WAIT_DESCRIPTOR}, {"getdents64", TARE__WAIT_DESCRIPTOR}, {"getxattr", TARE__WAIT_DISK},
    {"io_getevents", TARE__WAIT_DISK}, {"io_pgetevents", TARE__WAIT_DISK}, {"io_submit", TARE__WAIT_DISK},
    {"ioctl", TARE__WAIT_DESCRIPTOR}, {"lchown", TARE__WAIT_DISK}, {"lgetxattr", TARE__WAIT_DISK},
    {"link", TARE__WAIT_DISK}, {"linkat", TARE__WAIT_DISK}, {"listxattr", TARE__WAIT_DISK},
    {"lsetxattr", TARE__WAIT_DISK}, {"lstat", TARE__WAIT_DISK}, {"madvise", TARE__WAIT_MEMORY},
    {"mbind", TARE__WAIT_MEMORY}, {"membarrier", TARE__WAIT_MEMORY}, {"migrate_pages", TARE__WAIT_MEMORY},
    {"mincore", TARE__WAIT_DISK}, {"mkdir", TARE__WAIT_DISK}, {"mkdirat", TARE__WAIT_DISK},
    {"mlock", TARE__WAIT_MEMORY}, {"mlock2", TARE__WAIT_MEMORY}, {"mlockall", TARE__WAIT_MEMORY},
    {"mmap", TARE__WAIT_MEMORY}, {"mount", TARE__WAIT_DISK}, {"move_pages", TARE__WAIT_MEMORY},
    {"mprotect", TARE__WAIT_MEMORY}, {"mq_timedreceive", TARE__WAIT_MESSAGE}, {"mq_timedsend", TARE__WAIT_MESSAGE},
    {"mremap", TARE__WAIT_MEMORY}, {"msgrcv", TARE__WAIT_MESSAGE}, {"msgsnd", TARE__WAIT_MESSAGE},
    {"msync", TARE__WAIT_DISK}, {"munlock", TARE__WAIT_MEMORY}, {"munmap", TARE__WAIT_MEMORY},
    {"name_to_handle_at", TARE__WAIT_DISK}, {"nanosleep", TARE__WAIT_SLEEP}, {"newfstatat", TARE__WAIT_DISK},
    {"open", TARE__WAIT_OPEN}, {"open_by_handle_at", TARE__WAIT_DISK}, {"openat", TARE__WAIT_OPEN},
    {"openat2", TARE__WAIT_OPEN}, {"pkey_mprotect", TARE__WAIT_MEMORY}, {"poll", TARE__WAIT_POLL},
    {"ppoll", TARE__WAIT_POLL}, {"pread64", TARE__WAIT_DESCRIPTOR}, {"preadv", TARE__WAIT_DESCRIPTOR},
    {"preadv2", TARE__WAIT_DESCRIPTOR}, {"process_madvise", TARE__WAIT_MEMORY}, {"pselect6", TARE__WAIT_SELECT},
    {"pwrite64", TARE__WAIT_DESCRIPTOR}, {"pwritev", TARE__WAIT_DESCRIPTOR}, {"pwritev2", TARE__WAIT_DESCRIPTOR},
    {"quotactl", TARE__WAIT_DISK}, {"read", TARE__WAIT_DESCRIPTOR}, {"readahead", TARE__WAIT_DESCRIPTOR},
    {"readlink", TARE__WAIT_DISK}, {"readlinkat", TARE__WAIT_DISK}, {"readv", TARE__WAIT_DESCRIPTOR},
    {"recvfrom", TARE__WAIT_DESCRIPTOR}, {"recvmmsg", TARE__WAIT_DESCRIPTOR}, {"recvmsg", TARE__WAIT_DESCRIPTOR},
    {"rename", TARE__WAIT_DISK}, {"renameat", TARE__WAIT_DISK}, {"renameat2", TARE__WAIT_DISK},
    {"restart_syscall", TARE__WAIT_RESTART}, {"rmdir", TARE__WAIT_DISK}, {"select", TARE__WAIT_SELECT},
    {"semop", TARE__WAIT_LOCK}, {"semtimedop", TARE__WAIT_LOCK}, {"sendfile", TARE__WAIT_TWO},
    {"sendmmsg", TARE__WAIT_DESCRIPTOR}, {"sendmsg", TARE__WAIT_DESCRIPTOR}, {"sendto", TARE__WAIT_DESCRIPTOR},
    {"setxattr", TARE__WAIT_DISK}, {"shutdown", TARE__WAIT_DESCRIPTOR}, {"splice", TARE__WAIT_TWO},
    {"stat", TARE__WAIT_DISK}, {"statfs", TARE__WAIT_DISK}, {"statx", TARE__WAIT_DISK}, {"swapoff", TARE__WAIT_DISK},
    {"swapon", TARE__WAIT_DISK}, {"symlink", TARE__WAIT_DISK}, {"symlinkat", TARE__WAIT_DISK},
    {"sync", TARE__WAIT_DISK}, {"sync_file_range", TARE__WAIT_DESCRIPTOR}, {"syncfs", TARE__WAIT_DISK},
    {"tee", TARE__WAIT_TWO}, {"truncate", TARE__WAIT_DISK}, {"umount2", TARE__WAIT_DISK}, {"unlink", TARE__WAIT_DISK},
    {"unlinkat", TARE__WAIT_DISK}, {"utimensat", TARE__WAIT_DISK}, {"vfork", TARE__WAIT_SPAWN},
    {"vmsplice", TARE__WAIT_DESCRIPTOR}, {"wait4", TARE__WAIT_CHILD}, {"waitid", TARE__WAIT_CHILD},
    {"write", TARE__WAIT_DESCRIPTOR}, {"writev", TARE__WAIT_DESCRIPTOR},
};

static int by_name(const void *name, const void *rule)
{
    return strcmp(name, ((const wait_rule *)rule)->name);
}

tare__wait_kind tare__wait_kind_of(int64_t number)
{
    const char *name = tare__system_call_name(number);
    const wait_rule *rule = name ? bsearch(name, rules, TARE__COUNT_OF(rules), sizeof *rules, by_name) : NULL;
    return rule ? rule->kind : TARE__WAIT_OTHER;
}
