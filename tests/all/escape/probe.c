/* Tries what no sandbox may allow, beside what every one must. One line each: `refused NAME` or `done NAME`.
   Built and run by probes.rs; what it prints is held by golden/probes-*.txt. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(const char *name, long result) {
  printf("%s %s\n", result < 0 ? "refused" : "done", name);
  fflush(stdout);
}
#define TRY(name, call) told(name, (long)(call))

/* Set by any means, the bits are what counts. */
static void bits(const char *name, const char *path) {
  struct stat found;
  int set = stat(path, &found) == 0 && (found.st_mode & (S_IFREG | S_IFDIR)) && (found.st_mode & 06000);
  told(name, set ? 0 : -1);
  if (set) chmod(path, 0755);
}

static void setuid_bits(void) {
  struct { unsigned long flags, mode, resolve; } how = {O_CREAT | O_WRONLY, 04755, 0};
  close(open("f", O_CREAT | O_WRONLY, 0644));
  TRY("chmod 0755", chmod("f", 0755));
  chmod("f", 04755), bits("setuid by chmod", "f");
  chmod("f", 02755), bits("setgid by chmod", "f");
  syscall(SYS_chmod, "f", 0xffffffff00000000UL | 04755), bits("setuid by chmod with high bits", "f");
  int fd = open("f", O_RDONLY);
  fchmod(fd, 04755), bits("setuid by fchmod", "f");
  fchmodat(AT_FDCWD, "f", 04755, 0), bits("setuid by fchmodat", "f");
  syscall(452, AT_FDCWD, "f", 04755, 0), bits("setuid by fchmodat2", "f");
  open("g1", O_CREAT | O_WRONLY, 04755), bits("setuid by open", "g1");
  syscall(SYS_open, "g2", O_CREAT | O_WRONLY, 04755), bits("setuid by old open", "g2");
  creat("g3", 04755), bits("setuid by creat", "g3");
  syscall(SYS_openat2, AT_FDCWD, "g4", &how, sizeof how), bits("setuid by openat2", "g4");
  mknod("g5", S_IFREG | 04755, 0), bits("setuid by mknod", "g5");
  mkdir("d1", 02755), bits("setgid by mkdir", "d1");
  fd = open(".", O_TMPFILE | O_RDWR, 04755);
  if (fd >= 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    linkat(AT_FDCWD, path, AT_FDCWD, "g6", AT_SYMLINK_FOLLOW);
  }
  bits("setuid by tmpfile", "g6");
  TRY("open", open("g7", O_CREAT | O_WRONLY, 0644));
  TRY("open with odd mode and no creation", syscall(SYS_open, "g7", O_RDONLY, 06777));
  TRY("mkdir", mkdir("d2", 0755));
  TRY("mknod pipe", mknod("pipe", S_IFIFO | 0644, 0));
  TRY("mknod character device", mknod("c", S_IFCHR | 0666, 0x103));
  TRY("mknod block device", mknod("b", S_IFBLK | 0666, 0x800));
}

static void namespaces(void) {
  int child = fork();
  if (child == 0) _exit(0);
  TRY("fork", child);
  waitpid(child, 0, 0);
  child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  TRY("clone user namespace", child);
  TRY("clone3", syscall(435, 0, 0) < 0 && errno != EINVAL ? -1 : 0);
  TRY("setns", setns(open("/proc/1/ns/mnt", O_RDONLY), 0));
  TRY("mount", mount("none", "/tmp", "tmpfs", 0, 0));
  TRY("bind mount", mount("/usr", "/tmp", 0, MS_BIND, 0));
  TRY("remount", mount(0, "/usr", 0, MS_REMOUNT | MS_BIND, 0));
  TRY("umount", umount2("/usr", MNT_DETACH));
  TRY("fsopen", syscall(430, "tmpfs", 0));
  TRY("open_tree", syscall(428, AT_FDCWD, "/", 1));
  TRY("move_mount", syscall(429, -1, "", AT_FDCWD, "/", 4));
  TRY("mount_setattr", syscall(442, AT_FDCWD, "/", 0, "", 0));
  TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
  TRY("unshare mount namespace", unshare(CLONE_NEWNS));
  TRY("unshare network namespace", unshare(CLONE_NEWNET));
}

static void kernel(void) {
  TRY("ptrace", ptrace(PTRACE_ATTACH, 1, 0, 0));
  TRY("process_vm_readv", syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0));
  TRY("memory of the guest", open("/proc/1/mem", O_RDONLY));
  TRY("bpf", syscall(SYS_bpf, 0, 0, 0));
  TRY("perf_event_open", syscall(SYS_perf_event_open, 0, 0, 0, 0, 0));
  TRY("io_uring", syscall(425, 1, 0));
  TRY("keyctl", syscall(SYS_keyctl, 0, -1, 0));
  TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -1));
  TRY("request_key", syscall(SYS_request_key, "user", "x", 0, 0));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
  TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, "", 0));
  TRY("init_module", syscall(SYS_init_module, 0, 0, 0));
  TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, 0));
  TRY("iopl", syscall(SYS_iopl, 3));
  TRY("settimeofday", syscall(SYS_settimeofday, 0, "\0\0\0\0\0\0\0\0"));
  TRY("sethostname", sethostname("x", 1));
  TRY("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
  TRY("swapon", syscall(SYS_swapon, "f", 0));
  TRY("quotactl", syscall(SYS_quotactl, 0, 0, 0, 0));
  TRY("setuid root", geteuid() == 0 ? 0 : setuid(0));
}

static void files(void) {
  glob_t found;
  TRY("core_pattern", open("/proc/sys/kernel/core_pattern", O_WRONLY));
  TRY("sysrq-trigger", open("/proc/sysrq-trigger", O_WRONLY));
  TRY("kcore", open("/proc/kcore", O_RDONLY) >= 0 && read(open("/proc/kcore", O_RDONLY), &found, 1) == 1 ? 0 : -1);
  TRY("mem", open("/dev/mem", O_RDONLY));
  int agents = 0;
  if (glob("/sys/fs/cgroup/*/release_agent", 0, 0, &found) == 0)
    for (size_t at = 0; at < found.gl_pathc; at++) agents += open(found.gl_pathv[at], O_WRONLY) >= 0;
  TRY("release_agent", agents ? 0 : -1);
  TRY("new cgroup", mkdir("/sys/fs/cgroup/memory/x", 0755) == 0 ? 0 : mkdir("/sys/fs/cgroup/x", 0755));
  TRY("null", open("/dev/null", O_RDWR));
}

static void network(void) {
  for (int family = 0; family < 46; family++) {
    int one = socket(family, SOCK_STREAM, 0), two = socket(family, SOCK_RAW, 0), three = socket(family, SOCK_SEQPACKET, 0);
    if (one >= 0 || two >= 0 || three >= 0) printf("done socket family %d\n", family);
  }
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  inet_pton(AF_INET, "169.254.169.254", &to.sin_addr);
  TRY("metadata address", connect(fd, (void *)&to, sizeof to));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  TRY("own loopback", connect(fd, (void *)&to, sizeof to));
  TRY("raw socket", socket(AF_INET, SOCK_RAW, 1));
  TRY("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
  TRY("audit netlink", socket(AF_NETLINK, SOCK_RAW, 9));
  int pair[2];
  TRY("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

int main(void) {
  umask(0);
  setuid_bits();
  namespaces();
  kernel();
  files();
  network();
  return 0;
}
