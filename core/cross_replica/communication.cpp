// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/communication.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/base/names.hpp"

namespace dist {
namespace {

// The shortest decimal number of seconds with a decimal point: "2.5", "120.0".
void write_seconds(int64_t ns, char (&text)[40]) noexcept {
  const auto [end, error] = std::to_chars(text, text + sizeof text - 3, static_cast<double>(ns) / 1e9);
  *end = '\0';
  if (error == std::errc{} && std::strpbrk(text, ".e") == nullptr) std::memcpy(end, ".0", 3);
}

}  // namespace

Status check(const Communication& options) noexcept {
  if (name_of(kCommunicationNames, options.implementation) == nullptr) {
    return invalid_argument("implementation is %d: use DIST_COMMUNICATION_AUTO, RING or NCCL",
                            options.implementation);
  }
  if (options.bytes_per_pack < 0) {
    return invalid_argument("bytes_per_pack is %lld: use a number of bytes, or 0 for one pack",
                            static_cast<long long>(options.bytes_per_pack));
  }
  return kOk;
}

Communication merged(const Communication& base, const Communication& over) noexcept {
  Communication result = base;
  if (over.implementation != DIST_COMMUNICATION_AUTO) result.implementation = over.implementation;
  if (over.bytes_per_pack != 0) result.bytes_per_pack = over.bytes_per_pack;
  if (over.has_timeout) {
    result.has_timeout = true;
    result.timeout_ns = over.timeout_ns;
  }
  return result;
}

void describe(const Communication& options, char* text, std::size_t size) noexcept {
  char timeout[40] = "None";
  if (options.has_timeout) write_seconds(options.timeout_ns, timeout);
  std::snprintf(
      text, size,
      "Options(bytes_per_pack=%lld,timeout_seconds=%s, implementation=CommunicationImplementation.%s)",
      static_cast<long long>(options.bytes_per_pack), timeout,
      name_of(kCommunicationNames, options.implementation));
}

}  // namespace dist
