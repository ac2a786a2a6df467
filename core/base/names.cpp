// SPDX-License-Identifier: Apache-2.0
#include "core/base/names.hpp"

#include <cstdio>

#include "core/base/text.hpp"

namespace dist {
namespace {

char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool equal_in_any_case(const char* name, const char* known) noexcept {
  for (; *known != '\0'; ++name, ++known) {
    if (upper(*name) != upper(*known)) return false;
  }
  return *name == '\0';
}

}  // namespace

Status number_of(std::span<const Named> names, const char* name, const char* what, int32_t* out) noexcept {
  for (const Named& named : names) {
    if (!equal_in_any_case(name, named.name)) continue;
    *out = named.number;
    return kOk;
  }
  char known[320] = "";
  std::size_t used = 0;
  for (std::size_t i = 0; i < names.size() && used < sizeof known; ++i) {
    const char* const before = i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    const int length = std::snprintf(known + used, sizeof known - used, "%s\"%s\"", before, names[i].name);
    used += static_cast<std::size_t>(length);
  }
  return invalid_argument("\"%s\" names no %s: use %s", Shown(name).c_str(), what, known);
}

Status reduction_of(int32_t aggregation, dist_reduce_op* out) noexcept {
  switch (aggregation) {
    case DIST_AGGREGATION_SUM: *out = DIST_REDUCE_SUM; return kOk;
    case DIST_AGGREGATION_MEAN: *out = DIST_REDUCE_MEAN; return kOk;
    default: break;
  }
  const char* const name = name_of(kAggregationNames, aggregation);
  if (name == nullptr)
    return invalid_argument("aggregation %d is no reduction: only SUM and MEAN are reductions", aggregation);
  return invalid_argument("aggregation %s is no reduction: only SUM and MEAN are reductions", name);
}

}  // namespace dist
