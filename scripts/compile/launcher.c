/*
 * The head of dist/kubelet where `deno compile` can't be had: unpacks what is appended to this program (Deno and two
 * bundles) once into a cache directory, asks the first bundle which files the agent needs for its configuration, and
 * becomes Deno, running the second bundle with those rights only. Linked statically: it must start on any Linux.
 *
 * There is no fork but for that question, so that process id, signals, standard streams, environment and systemd's
 * notion of the main process are the agent's own. The program is named `kubelet` in the cache, since the kernel takes
 * the name of a process from its file.
 *
 * baked.h is made by compile.ts: DIGEST (of all that is appended, and of all flags), files[] (names and sizes in the
 * order in which they are appended), plan_flags[], run_flags[] and environment[].
 *
 * Environment: DENOLET_CACHE (the cache directory), DENOLET_RUN (where the private mounts are; see private_mounts.ts).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct part {
  const char *name;
  off_t size;
};

#include "baked.h"

#define PARTS (sizeof files / sizeof *files)
#define SYSTEM_CACHE "/var/cache/denolet"
#define STALE_SECONDS 600
#define UNUSED_SECONDS 86400

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("Error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputs("\n", stderr);
  va_end(arguments);
  exit(1);
}

static char *text(const char *format, ...) {
  char *made;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&made, format, arguments) < 0) die("out of memory");
  va_end(arguments);
  return made;
}

/* Nobody but root and ourselves may be able to change it: it is going to be executed. */
static int ours(const struct stat *info) {
  return (info->st_uid == 0 || info->st_uid == geteuid()) && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Refuses a directory that others could swap, by its own owner and mode or by those of a directory above it. */
static void require_trusted(const char *directory) {
  struct stat info;
  if (lstat(directory, &info) != 0) die("cache directory %s: %s", directory, strerror(errno));
  if (!S_ISDIR(info.st_mode)) die("cache directory %s: it is not a directory (a link to one is refused)", directory);
  if (!ours(&info)) {
    die("cache directory %s: others may write to it, or own it; make it ours (chown, chmod go-w), or set DENOLET_CACHE"
        " to another", directory);
  }
  char path[PATH_MAX];
  if (!realpath(directory, path)) die("cache directory %s: %s", directory, strerror(errno));
  for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
    *slash = '\0';
    const char *above = *path == '\0' ? "/" : path;
    if (lstat(above, &info) != 0) die("%s: %s", above, strerror(errno));
    /* in a sticky directory, such as /tmp, nobody can swap what is another's */
    if (!ours(&info) && !((info.st_mode & S_ISVTX) && info.st_uid == 0)) {
      die("cache directory %s: others may write to %s above it; set DENOLET_CACHE to a safe place", directory, above);
    }
  }
}

static void make_directories(const char *path) {
  char *copy = text("%s", path);
  for (char *at = copy + 1;; at++) {
    if (*at != '/' && *at != '\0') continue;
    char kept = *at;
    *at = '\0';
    if (mkdir(copy, 0755) != 0 && errno != EEXIST) die("cannot make %s: %s", copy, strerror(errno));
    *at = kept;
    if (kept == '\0') break;
  }
  free(copy);
}

static char *cache_directory(void) {
  const char *set = getenv("DENOLET_CACHE");
  if (set && *set) {
    if (*set != '/') die("DENOLET_CACHE: %s is not an absolute path", set);
    return text("%s", set);
  }
  if (geteuid() == 0) return text("%s", SYSTEM_CACHE);
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (xdg && *xdg == '/') return text("%s/denolet", xdg);
  if (home && *home == '/') return text("%s/.cache/denolet", home);
  die("no place for the cache: set HOME, XDG_CACHE_HOME or DENOLET_CACHE to an absolute path");
  return NULL;
}

/* True when everything is there with the right size and can't have been changed by others. The contents are not read
   again: they are on the disk before the directory gets its name. */
static int complete(const char *directory) {
  struct stat info;
  if (lstat(directory, &info) != 0 || !S_ISDIR(info.st_mode) || !ours(&info)) return 0;
  for (size_t i = 0; i < PARTS; i++) {
    char *path = text("%s/%s", directory, files[i].name);
    int good = lstat(path, &info) == 0 && S_ISREG(info.st_mode) && ours(&info) && info.st_size == files[i].size &&
               (i != 0 || (info.st_mode & S_IXUSR));
    free(path);
    if (!good) return 0;
  }
  return 1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info, (void)kind, (void)walk;
  return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* What a first start that was killed left behind would stay for ever: 100 MB each. */
static void remove_stale(const char *cache) {
  DIR *list = opendir(cache);
  if (!list) return;
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    if (strncmp(entry->d_name, ".unpack-", 8) != 0) continue;
    char *path = text("%s/%s", cache, entry->d_name);
    struct stat info;
    if (lstat(path, &info) == 0 && info.st_mtime < time(NULL) - STALE_SECONDS) remove_tree(path);
    free(path);
  }
  closedir(list);
}

static void write_part(int from, off_t *at, const char *directory, const struct part *part, mode_t mode) {
  char *path = text("%s/%s", directory, part->name);
  int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (to < 0) die("cannot make %s: %s", path, strerror(errno));
  for (off_t end = *at + part->size; *at < end;) {
    ssize_t sent = sendfile(to, from, at, end - *at);
    if (sent == 0) die("this program is cut off: install it anew");
    if (sent < 0 && errno != EINTR) {
      int why = errno;
      remove_tree(directory);
      die("cannot write %s: %s; DENOLET_CACHE may name another place", path, strerror(why));
    }
  }
  if (fchmod(to, mode) != 0 || fsync(to) != 0 || close(to) != 0) die("cannot write %s: %s", path, strerror(errno));
  free(path);
}

/* Unpacks beside and renames: nobody ever sees half of it, and of several first starts one wins and the others use
   what it made. A broken directory is moved away first, since a process may still run from it. */
static void unpack(const char *cache, const char *directory) {
  int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (self < 0 || fstat(self, &info) != 0) die("cannot read this program itself: %s", strerror(errno));
  off_t at = info.st_size;
  for (size_t i = 0; i < PARTS; i++) at -= files[i].size;
  if (at <= 0) die("this program is cut off: install it anew");

  remove_stale(cache);
  char *made = text("%s/.unpack-XXXXXX", cache);
  if (!mkdtemp(made)) die("cannot write to the cache directory %s: %s", cache, strerror(errno));
  for (size_t i = 0; i < PARTS; i++) write_part(self, &at, made, &files[i], i == 0 ? 0555 : 0444);
  close(self);
  char *state = text("%s/deno", made); /* for Deno's compiled code: halves the time of a start */
  if (mkdir(state, 0700) != 0 || chmod(made, 0755) != 0) die("cannot make %s: %s", state, strerror(errno));
  free(state);

  for (int tries = 0; rename(made, directory) != 0; tries++) {
    int why = errno;
    if (complete(directory)) {
      remove_tree(made);
      break;
    }
    if ((why != EEXIST && why != ENOTEMPTY && why != ENOTDIR) || tries == 3) {
      remove_tree(made);
      die("cannot put %s in place: %s", directory, strerror(why));
    }
    char *broken = text("%s.broken", made);
    if (rename(directory, broken) == 0) remove_tree(broken);
    free(broken);
  }
  free(made);
}

/* The directory to run from. Users may run from what root has unpacked; only they need not have a copy each. */
static char *unpacked(char **state) {
  char *shared = text("%s/kubelet-%s", SYSTEM_CACHE, DIGEST);
  char *cache = cache_directory();
  char *own = text("%s/kubelet-%s", cache, DIGEST);
  struct stat info;
  int is_shared = geteuid() != 0 && !getenv("DENOLET_CACHE") && complete(shared) && lstat(shared, &info) == 0 &&
                  info.st_uid == 0;
  if (!is_shared) {
    make_directories(cache);
    require_trusted(cache);
    /* its time tells clean() that it is used; one that clean() has just taken away is made anew */
    do {
      if (!complete(own)) unpack(cache, own);
    } while (utimensat(AT_FDCWD, own, NULL, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT);
  }
  *state = is_shared ? text("%s/deno", cache) : text("%s/deno", own);
  return is_shared ? shared : own;
}

static int is_called(const char *pid, const char *name) {
  char *path = text("/proc/%s/comm", pid), line[32] = "";
  FILE *file = fopen(path, "re");
  int same = file && fgets(line, sizeof line, file) && strcspn(line, "\n") == strlen(name) &&
             strncmp(line, name, strlen(name)) == 0;
  if (file) fclose(file);
  free(path);
  return same;
}

/* Whether a process runs from it: by the program's file, since its path may be another in another mount namespace. A
   kubelet of which that may not be known counts as use. */
static int in_use(const char *directory) {
  struct stat program, running;
  char *path = text("%s/%s", directory, files[0].name);
  int there = lstat(path, &program) == 0, used = 0;
  free(path);
  if (!there) return 0;
  DIR *list = opendir("/proc");
  if (!list) return 1;
  for (struct dirent *entry; !used && (entry = readdir(list)) != NULL;) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    path = text("/proc/%s/exe", entry->d_name);
    if (stat(path, &running) == 0) used = running.st_dev == program.st_dev && running.st_ino == program.st_ino;
    else used = errno != ENOENT && errno != ESRCH && is_called(entry->d_name, files[0].name);
    free(path);
  }
  closedir(list);
  return used;
}

/* Removes what other builds unpacked, 100 MB each, that no process runs from and that no start has used for so long. */
static void clean(long seconds) {
  char *cache = cache_directory();
  struct stat before, after;
  if (lstat(cache, &before) != 0 && errno == ENOENT) return;
  require_trusted(cache);
  remove_stale(cache);
  DIR *list = opendir(cache);
  if (!list) die("cache directory %s: %s", cache, strerror(errno));
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    const char *name = entry->d_name;
    if (strncmp(name, "kubelet-", 8) != 0 || strlen(name + 8) != strlen(DIGEST) || strcmp(name + 8, DIGEST) == 0) continue;
    char *directory = text("%s/%s", cache, name), *away = text("%s/.unpack-%s", cache, name);
    if (lstat(directory, &before) == 0 && S_ISDIR(before.st_mode) && ours(&before) &&
        before.st_mtime <= time(NULL) - seconds && !in_use(directory) && rename(directory, away) == 0) {
      /* out of the way nobody can begin to use it; who did so just before has touched it, or runs from it */
      int same = lstat(away, &after) == 0 && after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
                 after.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
      if (same && !in_use(away)) {
        remove_tree(away);
        printf("removed %s\n", directory);
      } else if (rename(away, directory) != 0) {
        die("cannot put %s back: %s", directory, strerror(errno));
      }
    }
    free(directory);
    free(away);
  }
  closedir(list);
}

/* The seconds of --denolet-clean. */
static long seconds_of(const char *word) {
  if (!word) return UNUSED_SECONDS;
  char *end;
  errno = 0;
  long seconds = strtol(word, &end, 10);
  if (errno != 0 || *end != '\0' || end == word || seconds < 0 || seconds > 1000000000) {
    die("--denolet-clean: %.80s: write whole seconds", word);
  }
  return seconds;
}

struct words {
  char **list;
  size_t count;
};

static void add(struct words *words, const char *word) {
  words->list = realloc(words->list, (words->count + 2) * sizeof *words->list);
  if (!words->list) die("out of memory");
  words->list[words->count++] = (char *)word;
  words->list[words->count] = NULL;
}

static void add_all(struct words *words, const char *const *more) {
  for (; *more; more++) add(words, *more);
}

#define RUN "--allow-run="

/* Deno takes this flag once: programs that the plan names (credential plugins) join those that are baked in. */
static void add_programs(struct words *words, const char *more) {
  for (size_t i = 0; i < words->count; i++) {
    if (strncmp(words->list[i], RUN, sizeof RUN - 1) != 0) continue;
    words->list[i] = text("%s,%s", words->list[i], more + sizeof RUN - 1);
    return;
  }
  add(words, more);
}

static void become(const char *directory, struct words *words) {
  char *program = text("%s/%s", directory, files[0].name);
  execv(program, words->list);
  die("cannot run %s: %s%s", program, strerror(errno),
      errno == EACCES ? " (is it on a file system mounted noexec? DENOLET_CACHE may name another place)" : "");
}

/* Runs the plan and adds the flags that it prints, each ended by a NUL; variables go into the environment. */
static void add_planned(struct words *flags, const char *directory, char **arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) die("pipe: %s", strerror(errno));
  pid_t child = fork();
  if (child < 0) die("fork: %s", strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(ends[1], 1) < 0) die("dup2: %s", strerror(errno));
    const char *run = getenv("DENOLET_RUN");
    if (!run || !*run) run = "/run/denolet";
    if (strchr(run, ',')) die("DENOLET_RUN: %s: a path without commas is needed", run);
    struct words words = {0};
    add(&words, "kubelet");
    add_all(&words, plan_flags);
    if (geteuid() == 0) add(&words, text("--allow-write=%s", run));
    add(&words, text("%s/plan.js", directory));
    add_all(&words, (const char *const *)arguments);
    become(directory, &words);
  }
  close(ends[1]);
  size_t size = 0, room = 65536;
  char *answer = malloc(room + 1);
  if (!answer) die("out of memory");
  for (;;) {
    ssize_t got = read(ends[0], answer + size, room - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if ((size += got) < room) continue;
    answer = realloc(answer, (room *= 2) + 1);
    if (!answer) die("out of memory");
  }
  close(ends[0]);
  answer[size] = '\0';
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) die("waitpid: %s", strerror(errno));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) die("could not find out which files the configuration needs");
  for (char *word = answer; word < answer + size; word += strlen(word) + 1) {
    if (strncmp(word, "DENOLET_", 8) == 0) {
      if (putenv(word) != 0) die("out of memory");
      continue;
    }
    if (strncmp(word, RUN "/", sizeof RUN) == 0) {
      add_programs(flags, word);
      continue;
    }
    /* whatever a configuration holds, it can't add other rights */
    if (strncmp(word, "--allow-read=", 13) != 0 && strncmp(word, "--allow-write=", 14) != 0) die("bad plan: %s", word);
    add(flags, word);
  }
}

int main(int count, char **arguments) {
  signal(SIGCHLD, SIG_DFL); /* who started us may have it ignored, and then no child can be waited for */
  if (count > 1 && strcmp(arguments[1], "--denolet-clean") == 0) {
    if (count > 3) die("--denolet-clean takes one word, the seconds");
    clean(seconds_of(arguments[2]));
    return 0;
  }
  int only_print = count > 1 && strcmp(arguments[1], "--denolet-permissions") == 0;
  char **rest = arguments + (count > 0) + only_print;
  char *state, *directory = unpacked(&state);
  if (setenv("DENO_DIR", state, 1) != 0) die("out of memory");
  for (const char *const *pair = environment; *pair; pair += 2) setenv(pair[0], pair[1], 0);

  struct words words = {0};
  add(&words, "kubelet");
  add_all(&words, run_flags);
  add_planned(&words, directory, rest);
  if (only_print) {
    puts(MADE);
    for (size_t i = 1; i < words.count; i++) puts(words.list[i]);
    return 0;
  }
  add(&words, text("%s/kubelet.js", directory));
  add_all(&words, (const char *const *)rest);
  become(directory, &words);
}
