// SPDX-License-Identifier: Apache-2.0
#include "core/base/names.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/collective_traits.hpp"
#include "core/base/tensor.hpp"
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

// An enum of types.h, with the names that the library has for its values.
struct Domain {
  const char* name;  // "REDUCE_OP", of DIST_ENUM_REDUCE_OP
  const char* what;  // describes such a name
  int32_t first, last;
  const char* (*name_of)(int32_t value) noexcept;
};

// Adapts the name function of a typed enum to the type in Domain.
template <class Enum, const char* (*kNameOf)(Enum) noexcept>
const char* typed(int32_t value) noexcept {
  return kNameOf(static_cast<Enum>(value));
}

template <const auto& kNames>
const char* named(int32_t value) noexcept {
  return name_of(kNames, value);
}

// A domain whose values are those that have a name in `kNames`.
template <const auto& kNames>
constexpr Domain domain(const char* name, const char* what) noexcept {
  int32_t last = kNames[0].number;
  for (const Named& named : kNames) last = std::max(last, named.number);
  return {name, what, kNames[0].number, last, named<kNames>};
}

// Indexed by the domain's number, starting with DIST_ENUM_STATUS.
constexpr Domain kDomains[] = {
    {"STATUS", "status", DIST_OK, DIST_DATA_LOSS, status_name},
    {"DTYPE", "dtype", DIST_F16, kLastDtype, typed<dist_dtype, dtype_name>},
    {"REDUCE_OP", "operator", DIST_REDUCE_SUM, DIST_REDUCE_USER, typed<dist_reduce_op, op_name>},
    {"VALUE_REDUCTION", "value reduction", DIST_REDUCE_SUM, DIST_REDUCE_MEAN, typed<dist_reduce_op, op_name>},
    {"COLLECTIVE", "collective", DIST_COLLECTIVE_ALL_REDUCE, static_cast<int32_t>(kLastCollective),
     collective_name},
    domain<kSynchronizationNames>("SYNCHRONIZATION", "variable synchronization"),
    domain<kAggregationNames>("AGGREGATION", "variable aggregation"),
    domain<kCrossDeviceNames>("CROSS_DEVICE", "cross-device operation"),
    domain<kInputModeNames>("INPUT_MODE", "input mode"),
    domain<kShardNames>("SHARD_POLICY", "shard policy")};
static_assert(std::size(kDomains) == kNumDomains);

// The largest number of names in a domain.
constexpr std::size_t most_names() noexcept {
  int32_t most = 0;
  for (const Domain& domain : kDomains) most = std::max(most, domain.last - domain.first + 1);
  return static_cast<std::size_t>(most);
}

// NULL for an unknown domain.
const Domain* domain_of(int32_t number) noexcept {
  const int64_t index = int64_t{number} - DIST_ENUM_STATUS;
  return index >= 0 && index < kNumDomains ? &kDomains[index] : nullptr;
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
  return invalid_argument("\"%s\" is not the name of a %s: use %s", Shown(name).c_str(), what, known);
}

Status check_domain(int32_t domain, const char* call) noexcept {
  if (domain_of(domain) != nullptr) return kOk;
  char known[256] = "";
  std::size_t used = 0;
  for (const Domain& each : kDomains) {
    if (used >= sizeof known) break;
    used += static_cast<std::size_t>(
        std::snprintf(known + used, sizeof known - used, "%s%s", used == 0 ? "DIST_ENUM_" : ", ", each.name));
  }
  return invalid_argument("`%s()`: domain is %d, but must be one of %s", call, domain, known);
}

const char* enum_name(int32_t domain, int32_t number) noexcept {
  const Domain* const known = domain_of(domain);
  return known == nullptr || number < known->first || number > known->last ? nullptr : known->name_of(number);
}

Status enum_from_name(int32_t domain, const char* name, int32_t* out) noexcept {
  const Domain& known = *domain_of(domain);
  Named names[most_names()];
  std::size_t count = 0;
  for (int32_t number = known.first; number <= known.last; ++number) {
    const char* const each = known.name_of(number);
    if (each != nullptr) names[count++] = {number, each};  // a number may be unused
  }
  return number_of({names, count}, name, known.what, out);
}

Status reduction_of(int32_t aggregation, dist_reduce_op* out) noexcept {
  switch (aggregation) {
    case DIST_AGGREGATION_SUM: *out = DIST_REDUCE_SUM; return kOk;
    case DIST_AGGREGATION_MEAN: *out = DIST_REDUCE_MEAN; return kOk;
    default: break;
  }
  const char* const name = name_of(kAggregationNames, aggregation);
  if (name == nullptr)
    return invalid_argument("aggregation %d cannot be used as a reduction. Use SUM or MEAN.", aggregation);
  return invalid_argument("aggregation %s cannot be used as a reduction. Use SUM or MEAN.", name);
}

}  // namespace dist
