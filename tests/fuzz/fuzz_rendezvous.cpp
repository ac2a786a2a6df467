// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the messages of a rendezvous. The first byte selects a registration, which worker 0 reads, or
// a response, which another worker reads. An accepted message is within the limits, and an accepted
// registration can be written and read again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/net/membership/registration.hpp"

namespace dist {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void take_registration(Memory& memory, std::string_view input) {
  Registration read(memory);
  if (!read.read(memory, bytes_of(input)).ok()) return;
  assert_in_range(read.size, 1, DIST_MAX_CLUSTER_TASKS);
  assert_in_range(read.rank, 0, read.size - 1);
  assert_in_range(read.port, 1, 65535);
  assert_true(read.job.size() <= kMostJobNameBytes);
  std::pmr::string text(&memory);
  read.write(&text);
  Registration again(memory);
  assert_true(again.read(memory, bytes_of(text)).ok());
  assert_true(again.job == read.job && again.host == read.host && again.rank == read.rank &&
              again.size == read.size && again.port == read.port);
}

void take_cluster(Memory& memory, std::string_view input) {
  Ref<ClusterSpec> spec;
  if (!read_cluster(memory, bytes_of(input), 1, 2, 41234, &spec).ok()) return;
  assert_int_equal(spec->jobs().size(), 1);
  assert_int_equal(spec->jobs()[0].num_tasks, 2);
  assert_non_null(std::strstr(spec->address(spec->jobs()[0], 1), ":41234"));
}

}  // namespace
}  // namespace dist

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto memory = dist::Ref<dist::Memory>::adopt(dist::Memory::create({}));
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  (data[0] & 1) == 0 ? dist::take_registration(*memory, input) : dist::take_cluster(*memory, input);
  return 0;
}
