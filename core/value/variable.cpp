// SPDX-License-Identifier: Apache-2.0
#include "core/value/variable.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <string_view>

#include "core/base/text.hpp"
#include "core/kernel/in_place.hpp"
#include "core/value/variable_registry.hpp"

namespace dist {
namespace {

constexpr std::size_t kCopyAlign = 64;
// Calls rows(part of copy, part of value) for the longest parts that are contiguous in both.
template <class Rows>
void for_each_row(const dist_tensor& copy, const dist_tensor& value, const Rows& rows) {
  if (copy.ndim == 0) return rows(copy, value);
  if (copy.ndim == 1 && (value.strides == nullptr || value.strides[0] == 1)) return rows(copy, value);
  const auto size = static_cast<int64_t>(dtype_size(copy.dtype));
  int64_t inner = 1;
  for (int32_t i = 1; i < copy.ndim; ++i) inner *= copy.shape[i];
  const int64_t stride = value.strides != nullptr ? value.strides[0] : inner;
  for (int64_t i = 0; i < copy.shape[0]; ++i) {
    for_each_row(
        dist_tensor{static_cast<std::byte*>(copy.data) + i * inner * size, copy.dtype, copy.ndim - 1,
                    copy.shape + 1, nullptr},
        dist_tensor{static_cast<std::byte*>(value.data) + i * stride * size, value.dtype, value.ndim - 1,
                    value.shape + 1, value.strides != nullptr ? value.strides + 1 : nullptr},
        rows);
  }
}

// The mode to which a mirrored strategy resolves AUTO. Other strategies have no choice.
dist_synchronization resolved(const VariableHome& home, dist_synchronization synchronization) noexcept {
  const bool chooses =
      home.strategy_kind == DIST_STRATEGY_MIRRORED && synchronization == DIST_SYNCHRONIZATION_AUTO;
  return chooses ? DIST_SYNCHRONIZATION_ON_WRITE : synchronization;
}

Status check(const VariableHome& home, const VariableOptions& options, const char* name, dist_dtype dtype) {
  if (options.synchronization < DIST_SYNCHRONIZATION_AUTO ||
      options.synchronization > DIST_SYNCHRONIZATION_ON_READ) {
    return invalid_argument(
        "variable \"%s\": `synchronization` is `%d`; use one of `DIST_SYNCHRONIZATION_...`", name,
        options.synchronization);
  }
  if (options.aggregation < DIST_AGGREGATION_NONE ||
      options.aggregation > DIST_AGGREGATION_ONLY_FIRST_REPLICA) {
    return invalid_argument("variable \"%s\": `aggregation` is `%d`; use one of `DIST_AGGREGATION_...`", name,
                            options.aggregation);
  }
  if (home.strategy_kind != DIST_STRATEGY_MIRRORED) return kOk;
  if (options.synchronization == DIST_SYNCHRONIZATION_NONE) {
    return invalid_argument(
        "variable \"%s\": synchronization is NONE, which a mirrored strategy does not support. Use ON_WRITE, "
        "ON_READ or AUTO.",
        name);
  }
  if (options.aggregation == DIST_AGGREGATION_MEAN && !dtype_is_floating(dtype)) {
    return invalid_argument(
        "variable \"%s\": the MEAN of %s values is not %s. Use a floating-point dtype, or SUM or "
        "ONLY_FIRST_REPLICA.",
        name, dtype_name(dtype), dtype_name(dtype));
  }
  return kOk;
}

}  // namespace

Variable::Variable(Memory& memory, const VariableHome& home, const VariableOptions& options,
                   const dist_tensor& initial, const TensorSize& size)
    : Counted(memory),
      home_(home),
      synchronization_(resolved(home, options.synchronization)),
      aggregation_(options.aggregation),
      dtype_(initial.dtype),
      ndim_(initial.ndim),
      num_copies_(mirrored() ? home.replicas->local() : 1),
      size_(size),
      names_(&memory),
      step_(std::max(kCopyAlign, (size.bytes + kCopyAlign - 1) / kCopyAlign * kCopyAlign)) {
  std::copy_n(initial.shape, ndim_, shape_.begin());
  size_.contiguous = true;
  name_copies(options.name);
  if (step_ > most_of<std::byte>() / static_cast<std::size_t>(num_copies_)) throw std::bad_alloc();
  copies_ =
      static_cast<std::byte*>(memory.allocate(static_cast<std::size_t>(num_copies_) * step_, kCopyAlign));
  for (int32_t copy = 0; copy < num_copies_; ++copy) copy_elements(initial, component(LocalReplica{copy}));
}

Variable::~Variable() { memory().free(copies_, static_cast<std::size_t>(num_copies_) * step_, kCopyAlign); }

void Variable::name_copies(const char* name) {
  constexpr std::string_view kSuffix = "/replica_";
  constexpr std::size_t kDigits = std::numeric_limits<int32_t>::digits10 + 1;
  const std::string_view first(name);
  names_.reserve(static_cast<std::size_t>(num_copies_) * (first.size() + kSuffix.size() + kDigits + 1));
  names_.append(first);
  for (int32_t copy = 1; copy < num_copies_; ++copy) {
    char digits[kDigits];
    names_.append(1, '\0').append(first).append(kSuffix);
    names_.append(digits, std::to_chars(digits, digits + kDigits, copy).ptr);
  }
}

const char* Variable::copy_name(int32_t copy) const noexcept {
  const char* name = names_.c_str();
  for (; copy > 0; --copy) name += std::strlen(name) + 1;
  return name;
}

Status Variable::create(Memory& memory, const VariableHome& home, const VariableOptions& options,
                        const dist_tensor& initial, Ref<Variable>* out) {
  VariableOptions named = options;
  if (named.name == nullptr) named.name = "Variable";
  DIST_TRY(check_name(named.name, "the name of a variable or metric"));
  TensorSize size;
  DIST_TRY(check_tensor(initial, "initial", &size));
  DIST_TRY(check(home, named, named.name, initial.dtype));
  *out = make_counted<Variable>(memory, home, named, initial, size);
  return kOk;
}

bool Variable::made_with(const VariableOptions& options) const noexcept {
  return resolved(home_, options.synchronization) == synchronization_ && options.aggregation == aggregation_;
}

const char* Variable::class_name() const noexcept {
  if (sync_on_read()) return "SyncOnReadVariable";
  if (mirrored()) return "MirroredVariable";
  return central() ? "AggregatingVariable" : "Variable";
}

dist_tensor Variable::component(LocalReplica replica) const noexcept {
  const std::size_t copy = mirrored() ? index(replica) : 0;
  return {copies_ + copy * step_, dtype_, ndim_, shape_.data(), nullptr};
}

Status Variable::component(GlobalReplica replica, const char* call, dist_tensor* out) const noexcept {
  const ReplicaCount replicas = home_.replicas->count();
  const LocalReplica local = replicas.local_of(replica);
  if (local == kNoLocalReplica) {
    return invalid_argument("`%s()`: `replica_id` is %d, but variable \"%s\" has components %d to %d", call,
                            number(replica), name(), number(replicas.first()), number(replicas.last()));
  }
  *out = component(local);
  return kOk;
}

void Variable::close(Variable* variable) noexcept {
  // In a forked child, the lock of the list of variables may be held forever, so the list is not changed.
  if (variable->memory().forked()) return;
  variable->handle_.close();
  if (VariableRegistry* const owner = variable->registry(); owner != nullptr) {
    owner->remove(*variable);
  } else {
    variable->release();
  }
}

Status Variable::check_assign(int32_t how, const dist_tensor& value, const char* what) const noexcept {
  if (how < DIST_ASSIGN || how > DIST_ASSIGN_SUB) {
    return invalid_argument(
        "variable \"%s\": `how` is `%d`; use `DIST_ASSIGN`, `DIST_ASSIGN_ADD` or `DIST_ASSIGN_SUB`", name(),
        how);
  }
  TensorSize size;
  DIST_TRY(check_tensor(value, what, &size));
  const dist_tensor copy = first_copy();
  if (value.dtype != dtype_ || !same_shape(value, copy)) {
    char is[160];
    char wanted[160];
    describe(value, is, sizeof is);
    describe(copy, wanted, sizeof wanted);
    return invalid_argument("variable \"%s\" is %s, but %s is %s. Both must have the same dtype and shape.",
                            name(), wanted, what, is);
  }
  return how == DIST_ASSIGN ? kOk : check_op(DIST_REDUCE_SUM, dtype_);
}

void Variable::assign(int32_t how, LocalReplica replica, const dist_tensor& value) noexcept {
  if (size_.elements == 0) return;
  const dist_tensor copy = component(replica);
  if (how == DIST_ASSIGN) {
    if (value.data != copy.data) copy_elements(value, copy);
    return;
  }
  const InPlace op = how == DIST_ASSIGN_SUB ? InPlace::kSubtract : InPlace::kAdd;
  const auto rows = [&](const dist_tensor& to, const dist_tensor& from) {
    std::size_t count = 1;
    for (int32_t i = 0; i < to.ndim; ++i) count *= static_cast<std::size_t>(to.shape[i]);
    in_place(op, dtype_, static_cast<std::byte*>(to.data), static_cast<const std::byte*>(from.data), count);
  };
  if (value.strides == nullptr) {
    rows(copy, value);
  } else {
    for_each_row(copy, value, rows);
  }
}

}  // namespace dist
