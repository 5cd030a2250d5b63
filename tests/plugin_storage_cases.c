/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins with a storage, for tests/test_plugin_storages.py: NAME://... are the files below ROOT.
 * With -DREAD=... and the like, one that breaks a rule. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/plugin.h"

#ifndef STATUS
#define STATUS get_status
#endif
#ifndef LIST
#define LIST list
#endif
#ifndef READ
#define READ read_all
#endif
#ifndef CREATE
#define CREATE NULL
#endif
#ifndef EXAMPLE
#define EXAMPLE SCHEME "://train"
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef MORE
#define MORE
#endif

#define UNUSED __attribute__((unused)) static

static void local(char* out, const char* path) {
  snprintf(out, 4096, "%s/%s", ROOT, strstr(path, "://") + 3);
}

UNUSED int32_t refuses(void** self, headrace_error* error) {
  (void)self;
  return headrace_fail(error, HEADRACE_FAILED, "no credentials");
}

#define STATUS_ARGUMENTS \
  const void *self, const char *path, headrace_path_status *status, headrace_error *error

UNUSED int32_t get_status(STATUS_ARGUMENTS) {
  char file[4096];
  struct stat found;
  local(file, path);
  (void)self;
  if (stat(file, &found) != 0) return headrace_fail(error, HEADRACE_NOT_FOUND, "no %s", file);
  status->kind = S_ISDIR(found.st_mode) ? HEADRACE_FOLDER : HEADRACE_FILE;
  status->size = (uint64_t)found.st_size;
  status->version = (uint64_t)found.st_ino;
  status->modified_ns = found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
  return HEADRACE_OK;
}
#define STATUS_LIE(name, change)                                \
  UNUSED int32_t name(STATUS_ARGUMENTS) {                       \
    const int32_t code = get_status(self, path, status, error); \
    if (status->kind == HEADRACE_FILE) change;                  \
    return code;                                                \
  }
STATUS_LIE(other_kind, status->kind = 9)
STATUS_LIE(too_long, status->size += 100)
STATUS_LIE(endless, status->size = UINT64_MAX)
STATUS_LIE(crash, abort())
static uint64_t versions;
STATUS_LIE(changing, status->version = __atomic_add_fetch(&versions, 1, __ATOMIC_RELAXED))

#define LIST_ARGUMENTS \
  const void *self, const char *path, const headrace_listing *listing, headrace_error *error

UNUSED int32_t list(LIST_ARGUMENTS) {
  char name[4096];
  local(name, path);
  DIR* const folder = opendir(name);
  (void)self;
  if (!folder) return headrace_fail(error, HEADRACE_FAILED, "no listing");
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    if (!listing->add(listing->entries, entry->d_name,
                      entry->d_type == DT_DIR ? HEADRACE_FOLDER : HEADRACE_FILE))
      break;
  }
  closedir(folder);
  return HEADRACE_OK;
}
#define LIST_LIE(function, name, kind)                           \
  UNUSED int32_t function(LIST_ARGUMENTS) {                      \
    (void)self, (void)path, (void)error;                         \
    while (listing->add(listing->entries, name, kind)) continue; \
    return HEADRACE_OK;                                          \
  }
LIST_LIE(with_slash, "../a", HEADRACE_FILE)
LIST_LIE(parent, "..", HEADRACE_FOLDER)
LIST_LIE(null_name, NULL, HEADRACE_FILE)
LIST_LIE(no_kind, "a", 0)
LIST_LIE(list_crashes, (abort(), "a"), HEADRACE_FILE)
static char long_name[4097];
LIST_LIE(no_end, memset(long_name, 'a', sizeof long_name - 1), HEADRACE_FILE)

#define READ_ARGUMENTS                                                                    \
  const void *self, const char *path, const headrace_path_status *known, uint64_t offset, \
      void *out, uint64_t bytes, uint64_t *got, headrace_error *error

UNUSED int32_t read_all(READ_ARGUMENTS) {
  char name[4096];
  local(name, path);
  (void)self, (void)known;
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return headrace_fail(error, HEADRACE_NOT_FOUND, "it is gone");
  const ssize_t count = pread(file, out, bytes, (off_t)offset);
  close(file);
  if (count < 0) return headrace_fail(error, HEADRACE_FAILED, "pread");
  *got = (uint64_t)count;
  return HEADRACE_OK;
}
UNUSED int32_t read_few(READ_ARGUMENTS) {
  return read_all(self, path, known, offset, out, bytes < 7 ? bytes : 7, got, error);
}
UNUSED int32_t read_late(READ_ARGUMENTS) {
  usleep(2000);
  return read_all(self, path, known, offset, out, bytes, got, error);
}
static __thread int tries;
UNUSED int32_t third_time(READ_ARGUMENTS) {
  if (++tries % 3 != 0) return headrace_fail(error, HEADRACE_TRY_AGAIN, "503 slow down");
  return read_all(self, path, known, offset, out, bytes, got, error);
}
#define READ_CODE(name, code, text)                                                       \
  UNUSED int32_t name(READ_ARGUMENTS) {                                                   \
    (void)self, (void)path, (void)known, (void)offset, (void)out, (void)bytes, (void)got; \
    return headrace_fail(error, code, text);                                              \
  }
READ_CODE(never, HEADRACE_TRY_AGAIN, "503 slow down")
READ_CODE(forbidden, HEADRACE_NOT_ALLOWED, "403 forbidden")
READ_CODE(bad_record, HEADRACE_BAD_RECORD, "the checksum differs")
READ_CODE(fails, HEADRACE_FAILED, "the license has expired")
READ_CODE(unknown_code, 77, "?")
#define READ_LIE(name, change)                                                        \
  UNUSED int32_t name(READ_ARGUMENTS) {                                               \
    const int32_t code = read_all(self, path, known, offset, out, bytes, got, error); \
    change;                                                                           \
    return code;                                                                      \
  }
READ_LIE(says_more, ++*got)
READ_LIE(writes_more, ((char*)out)[bytes] = 1)
READ_LIE(crashes, abort())
UNUSED int32_t writes_less(READ_ARGUMENTS) {
  const int32_t code = read_all(self, path, known, offset, out, bytes - 3, got, error);
  *got += 3;
  return code;
}

static const headrace_storage kStorages[] = {{.scheme = SCHEME,
                                              .help = "Local files.",
                                              .example = EXAMPLE,
                                              .flags = FLAGS,
                                              .create = CREATE,
                                              .get_status = STATUS,
                                              .list = LIST,
                                              .read = READ} MORE};
static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = PLUGIN,
                                        .version = "1.0",
                                        .storages = HEADRACE_LIST(kStorages)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
