// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/loaded_plugins.h"

#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>

#include "headrace/base/mutex.h"
#include "headrace/base/number_text.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/shared_library.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kNoFile{
    "HR0576", ErrorKind::kConfig, "plug-in not found",
    "hr.load_plugin() takes the path of a shared library, or the name of an entry point in the "
    "group headrace.plugins of an installed Python distribution. No such file exists."};

const ErrorCode kChanged{
    "HR0577", ErrorKind::kConfig, "plug-in has changed",
    "A plug-in is loaded once per process and stays loaded, since transforms in use point into it. "
    "Its file has changed since then. Start a new process, or give the new file a different path "
    "and its transforms different names. A rejected plug-in is closed, and a corrected file may "
    "have its path, unless the dynamic linker keeps it, as it does most C++ libraries."};

const ErrorCode kOther{
    "HR0578", ErrorKind::kConfig, "plug-in has a different fingerprint",
    "A pickled transform or a loader's description contains the path of the plug-in's file and a "
    "fingerprint of its contents. The file found here has different contents: another version or "
    "build. Use the same file, or create the transform again. A description is plain data, and "
    "loads no library: call hr.load_plugin() before Loader.from_description()."};

std::string expected_plugin_text(const OpOrigin& wanted) {
  return wanted.plugin + " " + wanted.version + " (" + wanted.fingerprint + ")";
}

class Loaded {
 public:
  // `wanted`: null, or the required fingerprint.
  const Plugin& load(const std::string& given, bool checked, const OpOrigin* wanted = nullptr)
      EXCLUDES_LOCK(mutex_) {
    std::error_code failed;
    const std::filesystem::path path = std::filesystem::absolute(given, failed);
    if (failed || !std::filesystem::exists(path, failed))
      raise(kNoFile, "there is no file " + (failed ? given : path.string()));
    if (!std::filesystem::is_regular_file(path, failed))
      raise(kNoFile, path.string() + " is not a file", "pass the path of the .so itself");
    Buffer file;
    if (!read_file(path.string(), file, {.max_bytes = std::numeric_limits<uint64_t>::max()}))
      raise(kNoFile, path.string() + " cannot be read");
    const std::string fingerprint = hex_text(content_hash(file.bytes()));
    if (wanted && wanted->fingerprint != fingerprint) {  // before any of its code runs
      raise(kOther, path.string() + " has the fingerprint " + fingerprint +
                        ", but the expected "
                        "one is " +
                        expected_plugin_text(*wanted));
    }
    MutexLock lock(mutex_);
    for (const std::unique_ptr<Plugin>& each : plugins_) {
      if (each->origin.fingerprint == fingerprint) return with_checks(*each, checked);
      if (each->origin.path == path.string()) refuse_changed(path.string(), "loaded it");
    }
    const auto stayed = rejected_.find(path.string());
    if (stayed != rejected_.end() && stayed->second != fingerprint)
      refuse_changed(path.string(), "rejected it; the dynamic linker still has the old file");
    try {
      OpenedLibrary library = open_library(path.string(), file.bytes());
      plugins_.push_back(declared(*library.table, path.string(), fingerprint));
      (void)library.handle.release();  // its table and functions are used from now on
    } catch (...) {
      if (is_in_process(path.string())) rejected_.emplace(path.string(), fingerprint);
      throw;
    }
    register_parts(*plugins_.back());
    return with_checks(*plugins_.back(), checked);
  }

  const Plugin& require(const OpOrigin& wanted, bool may_load) EXCLUDES_LOCK(mutex_) {
    for (const Plugin* each : all()) {
      if (each->origin.fingerprint == wanted.fingerprint) return *each;
    }
    if (may_load) return load(wanted.path, false, &wanted);
    raise(kOther, "the plug-in " + expected_plugin_text(wanted) + " is not loaded",
          "hr.load_plugin(\"" + wanted.path + "\") first, if you trust that file");
  }

 private:
  std::vector<const Plugin*> all() EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    std::vector<const Plugin*> out;
    for (const std::unique_ptr<Plugin>& each : plugins_) out.push_back(each.get());
    return out;
  }

  [[noreturn]] static void refuse_changed(const std::string& path, const std::string& event) {
    raise(kChanged, path + " has changed since this process " + event,
          "start a new process to load the new file");
  }

  static const Plugin& with_checks(Plugin& plugin, bool checked) {
    if (!checked) return plugin;
    name_crashes();
    plugin.checked = true;
    return plugin;
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<Plugin>> plugins_ GUARDED_BY(mutex_);
  // By path, the fingerprints of rejected plug-ins that the dynamic linker did not remove.
  std::map<std::string, std::string> rejected_ GUARDED_BY(mutex_);
};

Loaded& loaded() {
  static Loaded* const plugins = new Loaded;  // records outlive static destructors
  return *plugins;
}

}  // namespace

const Plugin& load_plugin(const std::string& path, bool checked) {
  return loaded().load(path, checked);
}

const Plugin& require_plugin(const OpOrigin& wanted, bool may_load) {
  return loaded().require(wanted, may_load);
}

}  // namespace headrace
