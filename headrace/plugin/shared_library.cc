// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/shared_library.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kNotLoadable{
    "HR0570", ErrorKind::kConfig, "plug-in cannot be loaded",
    "hr.load_plugin() takes a shared library (.so) that was built for this machine with the "
    "headers of headrace.include_dir() and exports headrace_plugin_table. The dynamic linker must "
    "find the libraries that it depends on: `ldd FILE` shows missing ones."};

const ErrorCode kOtherVersion{
    "HR0571", ErrorKind::kConfig, "plug-in built for an incompatible version",
    "The plug-in was compiled with a version of headrace/plugin.h that is incompatible with this "
    "Headrace. Recompile it with the headers in headrace.include_dir()."};

#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

std::string name_of_machine(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "64-bit ARM";
    case EM_386:
      return "32-bit x86";
    case EM_ARM:
      return "32-bit ARM";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "POWER";
    case EM_S390:
      return "System z";
    default:
      return "machine " + std::to_string(machine);
  }
}

bool begins_with(std::span<const uint8_t> file, std::string_view bytes) {
  return file.size() >= bytes.size() && std::memcmp(file.data(), bytes.data(), bytes.size()) == 0;
}

// What the file is, if it is not an ELF file.
std::string other_format(std::span<const uint8_t> file) {
  if (file.empty()) return "the file is empty";
  if (begins_with(file, "MZ")) return "it is a Windows library";
  if (begins_with(file, "\xcf\xfa\xed\xfe") || begins_with(file, "\xca\xfe\xba\xbe"))
    return "it is a macOS library";
  if (begins_with(file, "!<arch>")) return "it is a static library (.a)";
  const bool text = std::ranges::none_of(file.first(std::min<size_t>(file.size(), 256)),
                                         [](uint8_t byte) { return byte == 0; });
  return text ? "it is a text file" : "it is not a library";
}

// Checks that everything that the dynamic linker will map is in the file.
std::string why_incomplete(std::span<const uint8_t> file, const Elf64_Ehdr& header) {
  const std::string ends = "the file ends after " + std::to_string(file.size()) + " bytes, ";
  const size_t count = header.e_phnum, at = header.e_phoff;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || count == 0) return "its header is damaged";
  if (at > file.size() || count * sizeof(Elf64_Phdr) > file.size() - at)
    return ends + "before the table of its segments";
  bool dynamic = false;
  for (size_t i = 0; i < count; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + at + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_DYNAMIC) dynamic = true;
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    const bool fits =
        segment.p_offset <= file.size() && segment.p_filesz <= file.size() - segment.p_offset;
    if (fits) continue;
    return ends + "and a segment of it needs " + std::to_string(segment.p_offset) + " + " +
           std::to_string(segment.p_filesz);
  }
  return dynamic ? "" : "it has no dynamic section: it is a static program";
}

// A hint for an error of the dynamic linker.
std::string hint_for(const std::string& linker, const std::string& path) {
  if (linker.find("undefined symbol") != std::string::npos)
    return "link the library that defines it; -Wl,--no-undefined reports such symbols at link time";
  if (linker.find("cannot open shared object") != std::string::npos)
    return "`ldd " + path +
           "` shows its dependencies; set their location with -Wl,-rpath or LD_LIBRARY_PATH";
  if (linker.find("GLIBC") != std::string::npos)
    return "it was built on a newer system: build it on this system, or on the oldest one that it "
           "must run on";
  return {};
}

[[noreturn]] void refuse(const std::string& path, const std::string& why, std::string hint) {
  raise(kNotLoadable, path + ": " + why, std::move(hint));
}

// Why this process cannot load the bytes as a shared library; "" if it can. `hint` receives a
// remedy.
std::string why_not_loadable(std::span<const uint8_t> file, std::string& hint) {
  if (!begins_with(file, ELFMAG)) {
    hint = "build a shared library with cc -shared -fPIC";
    return other_format(file);
  }
  hint = "compile it on or for this machine";
  if (file.size() <= EI_CLASS || file[EI_CLASS] != ELFCLASS64)
    return "it was built for a 32-bit machine, but this process has 64 bits";
  Elf64_Ehdr header;
  if (file.size() < sizeof header) {
    hint = "copy it again";
    return "the file ends after " + std::to_string(file.size()) + " bytes, within its header";
  }
  std::memcpy(&header, file.data(), sizeof header);
  if (header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "it was built for a machine with a different byte order";
  if (header.e_machine != kMachine)
    return "it was built for " + name_of_machine(header.e_machine) + ", but this process is " +
           name_of_machine(kMachine);
  hint = "build a shared library with cc -shared -fPIC";
  if (header.e_type == ET_REL) return "it is an object file (.o)";
  if (header.e_type != ET_DYN) return "it is a program, not a shared library";
  hint = "copy or relink it";
  return why_incomplete(file, header);
}

}  // namespace

void CloseLibrary::operator()(void* handle) const { dlclose(handle); }

bool is_in_process(const std::string& path) {
  return LibraryHandle(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD)) != nullptr;
}

OpenedLibrary open_library(const std::string& path, std::span<const uint8_t> file) {
  std::string hint;
  if (const std::string why = why_not_loadable(file, hint); !why.empty()) refuse(path, why, hint);
  LibraryHandle library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    const char* said = dlerror();
    std::string why = said ? said : "the dynamic linker rejected it";
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
    refuse(path, why, hint_for(why, path));
  }
  void* const symbol = dlsym(library.get(), "headrace_plugin_table");
  if (!symbol) {
    refuse(path, "it does not export headrace_plugin_table",
           "define it as declared in headrace/plugin.h, with HEADRACE_EXPORT; in C++, use "
           "HEADRACE_PLUGIN of headrace/plugin.hpp");
  }
  const auto table = reinterpret_cast<decltype(&headrace_plugin_table)>(symbol);
  const headrace_plugin* plugin = nullptr;
  try {
    plugin = table(HEADRACE_PLUGIN_ABI);
  } catch (...) {
    refuse(path, "headrace_plugin_table threw an exception", "");
  }
  const std::string ours = "this Headrace has version " + std::to_string(HEADRACE_PLUGIN_ABI);
  if (!plugin) raise(kOtherVersion, path + ": it refuses to be loaded, and " + ours);
  if (plugin->abi != HEADRACE_PLUGIN_ABI) {
    raise(
        kOtherVersion,
        path + ": it has version " + std::to_string(plugin->abi) + " of the interface, but " + ours,
        "recompile it with the headers in headrace.include_dir()");
  }
  return {.handle = std::move(library), .table = plugin};
}

}  // namespace headrace
