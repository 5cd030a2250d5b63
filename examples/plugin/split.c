/* SPDX-License-Identifier: Apache-2.0 */
/* A storage in plain C: split:// joins files that lie in parts, as `split -d -a 3` makes them.
 * split:///data/train.tar is the bytes of /data/train.tar.000, .001 and so on.
 *
 *     cc -O2 -shared -fPIC split.c -o libsplit.so
 *         -I"$(python -c 'import headrace; print(headrace.include_dir())')" */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/plugin.h"

enum { SCHEME = sizeof "split://" - 1, MOST_PARTS = 1000, MOST_PATH = 4096 };

static int32_t system_error(headrace_error* error) {
  const int number = errno;
  int32_t code = HEADRACE_FAILED;
  if (number == ENOENT || number == ENOTDIR) code = HEADRACE_NOT_FOUND;
  if (number == EACCES) code = HEADRACE_NOT_ALLOWED;
  if (number == EIO || number == ESTALE || number == ETIMEDOUT) code = HEADRACE_TRY_AGAIN;
  return headrace_fail(error, code, "%s", strerror(number));
}

/* The path of a part; whether it fits. */
static int part_path(char* out, const char* path, int part) {
  return snprintf(out, MOST_PATH, "%s.%03d", path + SCHEME, part) < MOST_PATH;
}

static int64_t modified_ns(const struct stat* status) {
  return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

static int32_t get_status(const void* self, const char* path, headrace_path_status* status,
                          headrace_error* error) {
  char part[MOST_PATH];
  struct stat found;
  (void)self;
  if (stat(path + SCHEME, &found) == 0 && S_ISDIR(found.st_mode)) {
    status->kind = HEADRACE_FOLDER;
    status->modified_ns = modified_ns(&found);
    return HEADRACE_OK;
  }
  for (int i = 0; i < MOST_PARTS && part_path(part, path, i); ++i) {
    if (stat(part, &found) != 0) {
      if (i > 0 && errno == ENOENT) break; /* the one before was the last */
      return system_error(error);
    }
    status->kind = HEADRACE_FILE;
    status->size += (uint64_t)found.st_size;
    status->version = status->version * 31 + (uint64_t)found.st_ino;
    if (modified_ns(&found) > status->modified_ns) status->modified_ns = modified_ns(&found);
  }
  return HEADRACE_OK;
}

static int32_t list(const void* self, const char* path, const headrace_listing* listing,
                    headrace_error* error) {
  DIR* const folder = opendir(path + SCHEME);
  (void)self;
  if (!folder) return system_error(error);
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    char name[MOST_PATH];
    struct stat found;
    const size_t length = strlen(entry->d_name);
    int more = 1;
    if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &found, 0) != 0) continue;
    if (S_ISDIR(found.st_mode)) {
      more = listing->add(listing->entries, entry->d_name, HEADRACE_FOLDER);
    } else if (length > 4 && strcmp(entry->d_name + length - 4, ".000") == 0) {
      memcpy(name, entry->d_name, length - 4);
      name[length - 4] = 0;
      more = listing->add(listing->entries, name, HEADRACE_FILE);
    }
    if (!more) break;
  }
  closedir(folder);
  return HEADRACE_OK;
}

/* Reads what of it is in one part, which is enough for one call. */
static int32_t read_some(const void* self, const char* path, const headrace_path_status* known,
                         uint64_t offset, void* out, uint64_t bytes, uint64_t* got,
                         headrace_error* error) {
  char part[MOST_PATH];
  (void)self, (void)known;
  for (int i = 0; i < MOST_PARTS && part_path(part, path, i); ++i) {
    struct stat found;
    const int file = open(part, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &found) != 0) {
      const int32_t code = system_error(error);
      if (file >= 0) close(file);
      return code;
    }
    if (offset < (uint64_t)found.st_size) {
      const ssize_t count = pread(file, out, bytes, (off_t)offset);
      const int32_t code = count < 0 ? system_error(error) : HEADRACE_OK;
      if (count > 0) *got = (uint64_t)count;
      close(file);
      return code;
    }
    close(file);
    offset -= (uint64_t)found.st_size;
  }
  return HEADRACE_OK; /* the end */
}

static const headrace_storage kStorages[] = {
    {.scheme = "split",
     .help = "Local files in parts: NAME.000, NAME.001 and so on are the file NAME.",
     .example = "split:///data/train.tar",
     .get_status = get_status,
     .list = list,
     .read = read_some},
};

static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = "split",
                                        .version = "1.0",
                                        .help = "An example of a storage.",
                                        .storages = HEADRACE_LIST(kStorages)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
