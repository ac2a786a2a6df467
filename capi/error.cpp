// SPDX-License-Identifier: Apache-2.0
// error.h: the version, errors, and names for the constants of types.h.
#include <dist/experimental/links.h>
#include <algorithm>
#include <cstring>
#include <string>

#include "capi/guard.hpp"
#include "core/base/names.hpp"
#include "core/base/optional_libraries.hpp"  // generated
#include "core/cluster/job_settings.hpp"
#include "core/net/grpc_library.hpp"
#include "core/net/link_modules.hpp"

using namespace dist;
using namespace dist::capi;

int32_t dist_version(void) { return DIST_VERSION; }

namespace {

// Loads the module: its file may be there without the libraries that it needs.
bool has_module(bool gloo) noexcept {
  return guard([&]() -> Status {
           std::pmr::string text;
           DIST_TRY(read_module_folder(&text));
           const char* const folder = text.empty() ? nullptr : text.c_str();
           const dist_link_functions* links = nullptr;
           if (gloo) DIST_TRY(find_link_module("gloo", folder, &links));
           return try_grpc_library(folder);
         }) == DIST_OK;
}

}  // namespace

int32_t dist_has_feature(const char* name) {
  if (name == nullptr) return 0;
#if DIST_HAVE_HWLOC
  if (std::strcmp(name, "numa") == 0) return 1;
#endif
#if DIST_HAVE_ISAL
  if (std::strcmp(name, "isal") == 0) return 1;
#endif
  if (std::strcmp(name, "grpc") == 0) return has_module(false) ? 1 : 0;
  if (std::strcmp(name, "gloo") == 0) return has_module(true) ? 1 : 0;
  return std::strcmp(name, "pinning") == 0 ? 1 : 0;
}

const char* dist_status_name(dist_status status) {
  const char* const name = known_status_name(status);
  return name != nullptr ? name : "UNKNOWN_STATUS";
}

namespace {

// This thread's latest error, without marks from now on.
const ErrorRecord& plain_error() noexcept {
  ErrorRecord& error = last_error();
  copy_plain(error.message, error.message);
  copy_plain(error.expected, error.expected);
  copy_plain(error.received, error.received);
  copy_plain(error.hint, error.hint);
  return error;
}

dist_status read_error(dist_error_info* out_info, bool marked) noexcept {
  // A wrong call must not replace the latest error, which it asks for.
  if (out_info == nullptr || out_info->struct_size < sizeof(uint32_t) + sizeof(dist_status))
    return DIST_INVALID_ARGUMENT;
  const ErrorRecord& error = marked ? last_error() : plain_error();
  dist_error_info info{};
  info.struct_size = out_info->struct_size;
  info.code = error.code;
  const MemberName& culprit = error.culprit;
  info.worker = culprit.worker >= 0 ? culprit.worker : culprit.home >= 0 ? culprit.home : 0;
  info.replica = number(error.culprit.replica);
  info.collective = static_cast<dist_collective>(error.collective);
  info.group = error.group;
  info.sequence = error.sequence;
  info.message = error.message;
  info.tag = error.tag;
  info.expected = error.expected;
  info.received = error.received;
  info.hint = error.hint;
  info.logical_device = error.culprit.logical_device;
  info.inside = error.inside;
  info.function = error.function;
  info.parameter = error.parameter;
  std::memcpy(out_info, &info, std::min<std::size_t>(info.struct_size, sizeof info));
  return DIST_OK;
}

}  // namespace

const char* dist_last_error(void) { return plain_error().message; }

dist_status dist_last_error_info(dist_error_info* out_info) { return read_error(out_info, false); }

dist_status dist_last_error_marked(dist_error_info* out_info) { return read_error(out_info, true); }

dist_status dist_fail(dist_status status, const char* message) {
  if (status == DIST_OK)
    return named(invalid_argument("`dist_fail()`: `status` is `DIST_OK`, but must be an error"), "dist_fail");
  char shown[sizeof(ErrorRecord::message)];
  copy_shown(shown, message, Keep::kBreaksAndMarks);  // a binding reports an error again
  return fail(status, "%s", shown).code();
}

static_assert(kNumDomains == DIST_ENUM_SHARD_POLICY - DIST_ENUM_STATUS + 1);

const char* dist_enum_name(dist_enum_domain domain, int32_t value) { return enum_name(domain, value); }

dist_status dist_enum_from_name(dist_enum_domain domain, const char* name, int32_t* out_value) {
  return guard([&]() -> Status {
    DIST_TRY(check_domain(domain, "dist_enum_from_name"));
    DIST_TRY(require(name, "dist_enum_from_name", "name"));
    DIST_TRY(require(out_value, "dist_enum_from_name", "out_value"));
    return enum_from_name(domain, name, out_value);
  });
}
