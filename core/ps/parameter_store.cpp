// SPDX-License-Identifier: Apache-2.0
#include "core/ps/parameter_store.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/os/cpus.hpp"
#include "core/base/text.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/in_place.hpp"
#include "core/net/rpc/answer.hpp"

namespace dist {
namespace {

// The work of one thread at a time; fits into the second-level cache.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

Status no_variable(int64_t number) noexcept {
  return invalid_argument("this parameter server has no variable number %lld",
                          static_cast<long long>(number));
}

// The store whose update function this thread is in.
thread_local const ParameterStore* updating = nullptr;

InPlace in_place_of(int32_t how) noexcept {
  return how == DIST_ASSIGN ? InPlace::kReplace : how == DIST_ASSIGN_ADD ? InPlace::kAdd : InPlace::kSubtract;
}

std::byte* bytes_of(const dist_tensor& tensor) noexcept { return static_cast<std::byte*>(tensor.data); }

}  // namespace

ParameterStore::ParameterStore(Memory& memory)
    : memory_(memory),
      arena_(memory, std::max(allowed_cpus(), 1)),
      functions_(&memory),
      variables_(&memory),
      applied_(memory),
      changed_(&memory) {}

ParameterStore::~ParameterStore() {
  for (const auto& [name, function] : functions_) {
    if (function.end != nullptr) function.end(function.host);
  }
}

Status ParameterStore::add_function(const char* name, const UpdateFunction& function) {
  if (functions_.find(std::string_view(name)) != functions_.end()) {
    return fail(DIST_ALREADY_EXISTS, "update function %s is already registered", Shown(name).c_str());
  }
  functions_.emplace(name, function);
  return kOk;
}

bool ParameterStore::inside_function() const noexcept { return updating == this; }

bool ParameterStore::has_functions(std::span<const Operation> operations) const noexcept {
  return std::any_of(operations.begin(), operations.end(),
                     [](const Operation& each) { return each.what == Operation::What::kUpdate; });
}

void ParameterStore::clear() noexcept {
  variables_.clear();
  bytes_ = 0;
  applied_ = AppliedIds(memory_);
}

Status ParameterStore::create(int64_t number, Value& initial, std::size_t message_bytes) {
  const auto next = static_cast<int64_t>(variables_.size());
  if (number < 0 || number > next || number >= static_cast<int64_t>(kMostVariables)) {
    return invalid_argument("the next variable of this parameter server has number %zu, not %lld",
                            variables_.size(), static_cast<long long>(number));
  }
  Stored made;
  DIST_TRY(keep(initial, message_bytes, &made.now));
  DIST_TRY(check_tensor(made.now->tensor(), "a variable", &made.size));
  if (number == next) variables_.emplace_back();
  Stored& variable = variables_[static_cast<std::size_t>(number)];
  bytes_ += made.size.bytes - variable.size.bytes;
  variable = std::move(made);
  return kOk;
}

Status ParameterStore::find(int64_t number, Stored** out) noexcept {
  if (number < 0 || number >= static_cast<int64_t>(variables_.size())) return no_variable(number);
  *out = &variables_[static_cast<std::size_t>(number)];
  return kOk;
}

Status ParameterStore::read(int64_t number, ValueRef* out) const noexcept {
  if (number < 0 || number >= static_cast<int64_t>(variables_.size())) return no_variable(number);
  *out = variables_[static_cast<std::size_t>(number)].now;
  return kOk;
}

// A value that is most of its message stays in the message's memory. A smaller value is copied, because it
// would keep the whole message alive.
Status ParameterStore::keep(Value& value, std::size_t message_bytes, ValueRef* out) {
  if (value.kind() != DIST_VALUE_TENSOR) return invalid_argument("the value of a variable must be a tensor");
  TensorSize size;
  DIST_TRY(check_tensor(value.tensor(), "the value of a variable", &size));
  if (message_bytes != 0 && size.contiguous && size.bytes >= message_bytes / 2) {
    *out = ValueRef::share(&value);
    return kOk;
  }
  return Value::copy_tensor(memory_, value.tensor(), out);
}

// ---- Commits ----

Status ParameterStore::commit(const Commit& commit, bool* applied) {
  const bool closure = commit.id != Commit::kNoClosure;
  *applied = false;
  applied_.forget_below(commit.watermark);
  if (closure) {
    DIST_TRY(applied_.reserve(commit.id));
    if (applied_.has(commit.id)) return kOk;
  }
  std::pmr::vector<Slices> slices(commit.operations.size(), &memory_);
  for (std::size_t i = 0; i < slices.size(); ++i) DIST_TRY(check(commit.operations[i], &slices[i]));
  changed_.clear();
  // From here on, only a host function or the allocation of copies can fail. If only one operation needs a
  // copy, nothing has been changed before.
  in_place_ = !has_functions(commit.operations);
  if (in_place_ && slices.size() > 1) {
    for (const Operation& each : commit.operations) {
      const bool replaces = each.what == Operation::What::kAssign && each.how == DIST_ASSIGN;
      const Stored& variable = variables_[static_cast<std::size_t>(each.variables[0])];
      in_place_ = in_place_ && !replaces && variable.now->sole();
    }
  }
  Status done = kOk;
  const FpEnvironment environment;
  try {
    for (std::size_t i = 0; done.ok() && i < slices.size(); ++i) {
      done = apply(commit.operations[i], slices[i], commit);
    }
  } catch (const std::bad_alloc&) {
    done = out_of_memory();
  }
  for (Stored* const each : changed_) {
    if (done.ok()) {
      // Memory of a message is not reused, because the next message brings its own.
      each->spare = each->copied ? std::move(each->now) : ValueRef();
      each->now = std::move(each->next);
    }
    each->next = {};
  }
  changed_.clear();
  if (!done.ok()) return done;
  if (closure) applied_.add(commit.id);
  *applied = true;
  return kOk;
}

Status ParameterStore::check(const Operation& operation, Slices* slices) {
  Stored* variable = nullptr;
  for (const int64_t each : operation.variables) DIST_TRY(find(each, &variable));
  if (variable == nullptr) return invalid_argument("an operation without a variable");
  char name[32];
  std::snprintf(name, sizeof name, "number %lld", static_cast<long long>(operation.variables[0]));
  const dist_tensor now = variable->now->tensor();
  switch (operation.what) {
    case Operation::What::kAssign: {
      if (operation.how < DIST_ASSIGN || operation.how > DIST_ASSIGN_SUB) {
        return invalid_argument("`how` is `%d`; use `DIST_ASSIGN`, `DIST_ASSIGN_ADD` or `DIST_ASSIGN_SUB`",
                                operation.how);
      }
      if (operation.how != DIST_ASSIGN) DIST_TRY(check_op(DIST_REDUCE_SUM, now.dtype));
      if (operation.value == nullptr || operation.value->kind() != DIST_VALUE_TENSOR) {
        return invalid_argument("the assigned value is not a tensor");
      }
      const dist_tensor given = operation.value->tensor();
      TensorSize size;
      DIST_TRY(check_tensor(given, "the assigned value", &size));
      if (given.dtype == now.dtype && same_shape(given, now) && size.contiguous) return kOk;
      char is[160];
      char wanted[160];
      describe(given, is, sizeof is);
      describe(now, wanted, sizeof wanted);
      return invalid_argument("%s cannot be assigned to a variable %s", is, wanted);
    }
    case Operation::What::kScatter:
      DIST_TRY(check_scatter(name, now.dtype, operation.how));
      if (operation.value == nullptr) return invalid_argument("slices are missing");
      return Slices::of(name, now, operation.how, *operation.value, slices);
    case Operation::What::kUpdate:
      if (operation.function != nullptr &&
          functions_.find(std::string_view(operation.function)) != functions_.end())
        return kOk;
      return fail(DIST_NOT_FOUND, "this parameter server has no update function %s",
                  Shown(operation.function).c_str());
  }
  return invalid_argument("an unknown operation");
}

Status ParameterStore::apply(const Operation& operation, const Slices& slices, const Commit& commit) {
  if (operation.what == Operation::What::kUpdate) return update(operation);
  Stored& variable = variables_[static_cast<std::size_t>(operation.variables[0])];
  if (operation.what == Operation::What::kAssign) return assign(operation, variable, commit);
  dist_tensor to{};
  DIST_TRY(writable(variable, true, &to));
  slices.apply(operation.how, to);
  return kOk;
}

Status ParameterStore::assign(const Operation& operation, Stored& variable, const Commit& commit) {
  if (operation.how == DIST_ASSIGN) {
    ValueRef kept;
    DIST_TRY(keep(*operation.value, commit.message_bytes, &kept));
    if (!variable.next) changed_.push_back(&variable);
    variable.next = std::move(kept);
    variable.copied = false;
    return kOk;
  }
  if (variable.size.bytes == 0) return kOk;
  const dist_tensor from = operation.value->tensor();
  const bool fresh = !variable.next && !(in_place_ && variable.now->sole());
  dist_tensor to{};
  DIST_TRY(writable(variable, false, &to));
  const dist_tensor base = fresh ? variable.now->tensor() : to;
  const std::size_t element = dtype_size(to.dtype);
  const auto pieces = static_cast<int64_t>((variable.size.bytes + kPieceBytes - 1) / kPieceBytes);
  std::pmr::vector<uint8_t> ran(static_cast<std::size_t>(pieces), &memory_);
  const auto part = [&](int64_t first, int64_t last) {
    const auto begin = static_cast<std::size_t>(first) * kPieceBytes;
    const auto end = std::min(static_cast<std::size_t>(last) * kPieceBytes, variable.size.bytes);
    const FpEnvironment environment;
    for (std::size_t at = begin; at < end; at += kPieceBytes) {
      const std::size_t some = std::min(kPieceBytes, end - at);
      if (fresh) std::memcpy(bytes_of(to) + at, bytes_of(base) + at, some);
      in_place(in_place_of(operation.how), to.dtype, bytes_of(to) + at, bytes_of(from) + at, some / element);
      ran[at / kPieceBytes] = 1;
    }
  };
  if (pieces <= 1) return part(0, pieces), kOk;
  if (arena_.parallel_for(0, pieces, 4, part).ok()) return kOk;
  // An update that began in place must be completed, even if oneTBB has no memory.
  for (int64_t i = 0; i < pieces; ++i) {
    if (ran[static_cast<std::size_t>(i)] == 0) part(i, i + 1);
  }
  return kOk;
}

Status ParameterStore::update(const Operation& operation) {
  const UpdateFunction& function = functions_.find(std::string_view(operation.function))->second;
  std::pmr::vector<dist_tensor> tensors(operation.variables.size(), &memory_);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Stored& variable = variables_[static_cast<std::size_t>(operation.variables[i])];
    DIST_TRY(writable(variable, true, &tensors[i]));
  }
  const uint64_t before = failures_on_this_thread();
  const ParameterStore* const outer = std::exchange(updating, this);
  const dist_status done = function.function(tensors.data(), tensors.size(), operation.value, function.host);
  updating = outer;
  return sendable(done, before, "the update function");
}

Status ParameterStore::writable(Stored& variable, bool copy, dist_tensor* out) {
  if (variable.next) {
    // The value assigned earlier in this commit may be in the message, which nobody else can see.
    *out = variable.next->tensor();
    return kOk;
  }
  if (in_place_ && variable.now->sole()) {
    *out = variable.now->tensor();
    return kOk;
  }
  changed_.push_back(&variable);
  variable.copied = true;
  const dist_tensor now = variable.now->tensor();
  if (variable.spare && variable.spare->sole()) {
    variable.next = std::move(variable.spare);
  } else {
    dist_tensor empty = now;
    empty.data = nullptr;
    const Status made = Value::copy_tensor(memory_, empty, &variable.next);
    if (!made.ok()) return changed_.pop_back(), made;
  }
  *out = variable.next->tensor();
  if (copy && variable.size.bytes != 0) std::memcpy(out->data, now.data, variable.size.bytes);
  return kOk;
}

}  // namespace dist
