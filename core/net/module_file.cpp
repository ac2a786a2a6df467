// SPDX-License-Identifier: Apache-2.0
#include "core/net/module_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/os/library.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/grpc_config.hpp"

namespace dist {
namespace {

constexpr std::size_t kPathBytes = 4096 + 64;

// A path in a message. A long one loses its beginning, to leave room for the rest of the message.
class ShownPath {
 public:
  explicit ShownPath(const char* path) noexcept {
    constexpr std::size_t kMost = 160;
    const std::size_t length = std::strlen(path);
    std::size_t at = length > kMost ? length - kMost : 0;
    // Do not begin inside a character of UTF-8.
    while ((static_cast<unsigned char>(path[at]) & 0xC0u) == 0x80u) ++at;
    if (at > 0) std::memcpy(text_, "...", 3);
    copy_shown(text_ + (at > 0 ? 3 : 0), sizeof text_ - 3, path + at);
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[200] = "";
};

// A hint for programs that are installed elsewhere, for example a jar that contains libdist.
constexpr const char* kOrSayWhere =
    "or set DIST_MODULE_FOLDER to the folder that contains it (PREFIX/lib/dist of an installed libdist).";

Status load(const ModuleFile& file, const char* path, const void** out) noexcept {
  const ShownPath shown(path);
  Library library;
  char why[512];
  if (!library.load(path, file.host_symbol, why, sizeof why)) {
    return fail(DIST_UNAVAILABLE, "%s cannot be loaded: %s. Install it from the same build as libdist.",
                shown.c_str(), why);
  }
  void* const entry = library.symbol(file.entry);
  if (entry == nullptr) {
    return fail(DIST_UNAVAILABLE, "%s is not a %s module. Install it from the same build as libdist.",
                shown.c_str(), file.name);
  }
  return file.check(entry, shown.c_str(), out);
}

}  // namespace

Status load_module(const ModuleFile& file, const char* folder, const void** out) noexcept {
  char path[kPathBytes];
  if (folder != nullptr) {
    const Shown shown(folder);
    std::string_view rest(folder);
    do {
      const std::string_view first = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), first.size() + 1));
      std::snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(first.size()), first.data(), file.name);
    } while (!file_is_there(path) && !rest.empty());
    if (!file_is_there(path)) {
      return fail(DIST_UNAVAILABLE, "DIST_MODULE_FOLDER is \"%s\", but %s was not found at %s. %s, %s",
                  shown.c_str(), file.name, ShownPath(path).c_str(), file.how, kOrSayWhere);
    }
    const Status loaded = load(file, path, out);
    if (loaded.ok()) return kOk;
    const ErrorRecord why = last_error();
    return fail(loaded.code(), "DIST_MODULE_FOLDER is \"%s\", but %s", shown.c_str(), why.message);
  }
  char own[kPathBytes - 64] = "";
  if (own_folder(own, sizeof own)) {
    for (const char* const below : {"/dist", ""}) {
      std::snprintf(path, sizeof path, "%s%s/%s", own, below, file.name);
      if (file_is_there(path)) return load(file, path, out);
    }
  }
  if (sizeof DIST_GRPC_FOLDER > 1) {
    std::snprintf(path, sizeof path, "%s/%s", DIST_GRPC_FOLDER, file.name);
    if (file_is_there(path)) return load(file, path, out);
  }
  return fail(DIST_UNAVAILABLE, "%s was not found in %s/dist, %s or %s. %s, %s", file.name,
              ShownPath(own).c_str(), ShownPath(own).c_str(), ShownPath(DIST_GRPC_FOLDER).c_str(), file.how,
              kOrSayWhere);
}

}  // namespace dist
