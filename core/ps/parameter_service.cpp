// SPDX-License-Identifier: Apache-2.0
#include "core/ps/parameter_service.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/rpc/answer.hpp"
#include "core/net/rpc/message.hpp"
#include "core/ps/numbers.hpp"

namespace dist {
namespace {

// Limit for calls that run on a network thread: about ten microseconds of work.
constexpr std::size_t kMostLightBytes = std::size_t{128} << 10;

}  // namespace

ParameterService::ParameterService(Memory& memory, SpanLog& spans)
    : memory_(memory), spans_(spans), store_(memory), snapshot_(&memory), queue_(&memory) {}

ParameterService::~ParameterService() { store_.arena().wait_for_tasks(); }

void ParameterService::begin_epoch(int64_t epoch) noexcept {
  Item item;
  item.new_epoch = epoch;
  add(std::move(item));
}

void ParameterService::called(Ref<IncomingCall> call) noexcept {
  Item item;
  item.call = std::move(call);
  item.came_ns = steady_now_ns();
  const Ref<IncomingCall> kept = item.call;
  try {
    const Ref<CallMessage> request = Ref<CallMessage>::share(&kept->request());
    const Status read = read_message(memory_, request, &item.method, &item.arguments);
    if (!read.ok()) return answer_failure(*kept, read);
    item.heavy = is_heavy(item);
  } catch (const std::bad_alloc&) {
    return kept->answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
  }
  add(std::move(item));
}

bool ParameterService::is_heavy(const Item& item) const noexcept {
  if (item.call->request().bytes() > kMostLightBytes) return true;
  if (item.method != "dist.ps.commit") return item.method == "dist.ps.rows";
  // Rows of a variable that is being read, and host functions, may take any amount of time.
  std::span<const int64_t> numbers;
  if (!read_numbers(item.arguments.get(), 3, 1, &numbers).ok()) return false;
  for (std::size_t at = 3; at + 2 < numbers.size();) {
    if (numbers[at] != static_cast<int64_t>(Operation::What::kAssign)) return true;
    if (numbers[at + 2] != 1) return false;
    at += 4;
  }
  return false;
}

void ParameterService::add(Item item) noexcept {
  const Ref<IncomingCall> call = item.call;
  try {
    const std::scoped_lock lock(mutex_);
    queue_.push_back(std::move(item));
    if (std::exchange(busy_, true)) return;
  } catch (const std::bad_alloc&) {
    if (call) call->answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
    return;
  }
  drain(true);
}

void ParameterService::drain(bool here) noexcept {
  for (;;) {
    Item item;
    {
      const std::scoped_lock lock(mutex_);
      if (queue_.empty()) {
        busy_ = false;
        return;
      }
      if (here && queue_.front().heavy) {
        const auto go_on = [](void* self, uint32_t) { static_cast<ParameterService*>(self)->drain(false); };
        // If there is no memory for a task, the work is done here.
        if (store_.arena().submit(go_on, this, 0, 1).ok()) return;
      }
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    run(item);
  }
}

void ParameterService::run(Item& item) noexcept {
  if (!item.call) {
    epoch_ = item.new_epoch;
    used_.store(false, std::memory_order_relaxed);
    snapshot_.clear();
    store_.clear();
    return;
  }
  Span span{.category = "ps", .begin_ns = steady_now_ns()};
  span.waited_ns = span.begin_ns - item.came_ns;
  span.set_name(item.method.substr(kPsPrefix.size()));
  try {
    std::span<const int64_t> numbers;
    ValueRef result;
    const std::size_t rest = item.arguments->kind() == DIST_VALUE_TUPLE && !item.arguments->items().empty()
                                 ? item.arguments->items().size() - 1
                                 : 0;
    Status done = read_numbers(item.arguments.get(), 1, rest, &numbers);
    if (done.ok() && numbers[0] != epoch_) {
      done = failed_precondition("the call and this parameter server belong to different coordinators");
    }
    if (done.ok()) {
      used_.store(true, std::memory_order_relaxed);
      done = answer(item, numbers.subspan(1), &span, &result);
    }
    done = spans_.end(&span, done);
    // Releases the message, so that the store is the only owner of its values before the next call.
    item.arguments = {};
    if (!done.ok()) return answer_failure(*item.call, done);
    answer_with(*item.call, result.get());
  } catch (const std::bad_alloc&) {
    item.call->answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
  }
}

Status ParameterService::answer(const Item& item, std::span<const int64_t> numbers, Span* span,
                                ValueRef* out) {
  const std::string_view method = item.method.substr(kPsPrefix.size());
  const auto args = item.arguments->items();
  if (method == "read") return read(numbers, out);
  if (method == "commit") return commit(item, numbers, span, out);
  if (method == "rows") return rows(item, numbers, out);
  if (method == "create") {
    if (numbers.size() != 1 || args.size() != 2)
      return invalid_argument("an invalid message about a new variable");
    return store_.create(numbers[0], *args[1], item.call->request().bytes());
  }
  if (method == "snapshot") return snapshot(out);
  if (method == "snapshot_read") {
    if (numbers.size() != 1 || numbers[0] < 0 || static_cast<std::size_t>(numbers[0]) >= snapshot_.size()) {
      return failed_precondition("the snapshot does not contain this variable");
    }
    *out = snapshot_[static_cast<std::size_t>(numbers[0])];
    return kOk;
  }
  if (method == "snapshot_end") {
    snapshot_.clear();
    return kOk;
  }
  if (method == "restore") return store_.restore(numbers);
  return fail(DIST_NOT_FOUND, "a parameter server has no method %s",
              Shown(std::string(item.method).c_str()).c_str());
}

Status ParameterService::read(std::span<const int64_t> numbers, ValueRef* out) {
  std::pmr::vector<ValueRef> values(numbers.size(), &memory_);
  std::pmr::vector<Value*> plain(&memory_);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    DIST_TRY(store_.read(numbers[i], &values[i]));
    plain.push_back(values[i].get());
  }
  return Value::create(memory_, DIST_VALUE_TUPLE, plain, out);
}

Status ParameterService::rows(const Item& item, std::span<const int64_t> numbers, ValueRef* out) {
  const auto args = item.arguments->items();
  if (numbers.size() != 1 || args.size() != 2 || args[1]->kind() != DIST_VALUE_TENSOR) {
    return invalid_argument("an invalid request for rows");
  }
  ValueRef variable;
  DIST_TRY(store_.read(numbers[0], &variable));
  const dist_tensor from = variable->tensor();
  const dist_tensor indices = args[1]->tensor();
  if (from.ndim == 0 || indices.ndim != 1 || (indices.dtype != DIST_I32 && indices.dtype != DIST_I64)) {
    return invalid_argument(
        "rows must be requested by i32[k] or i64[k], from a variable with at least one dimension");
  }
  int64_t shape[DIST_MAX_NDIM];
  std::copy_n(from.shape, from.ndim, shape);
  shape[0] = indices.shape[0];
  ValueRef made;
  DIST_TRY(Value::copy_tensor(memory_, {nullptr, from.dtype, from.ndim, shape, nullptr}, &made));
  std::size_t row = dtype_size(from.dtype);
  for (int32_t i = 1; i < from.ndim; ++i) row *= static_cast<std::size_t>(from.shape[i]);
  for (int64_t i = 0; i < indices.shape[0]; ++i) {
    const int64_t index = indices.dtype == DIST_I32 ? static_cast<const int32_t*>(indices.data)[i]
                                                    : static_cast<const int64_t*>(indices.data)[i];
    if (index < 0 || index >= from.shape[0]) {
      return invalid_argument("row %lld was requested, but there are %lld rows",
                              static_cast<long long>(index), static_cast<long long>(from.shape[0]));
    }
    if (row == 0) continue;
    std::memcpy(static_cast<std::byte*>(made->tensor().data) + static_cast<std::size_t>(i) * row,
                static_cast<const std::byte*>(from.data) + static_cast<std::size_t>(index) * row, row);
  }
  *out = std::move(made);
  return kOk;
}

Status ParameterService::commit(const Item& item, std::span<const int64_t> numbers, Span* span,
                                ValueRef* out) {
  const auto args = item.arguments->items();
  if (numbers.size() < 2 || args.size() != 2 || !args[1]->is_sequence())
    return invalid_argument("an invalid commit");
  const auto values = args[1]->items();
  std::pmr::vector<Operation> operations(&memory_);
  std::size_t at = 2;
  for (const ValueRef& value : values) {
    if (at + 3 > numbers.size()) return invalid_argument("a commit with fewer operations than values");
    Operation each;
    const int64_t what = numbers[at];
    const int64_t n = numbers[at + 2];
    if (what < 0 || what > static_cast<int64_t>(Operation::What::kUpdate) || numbers[at + 1] < 0 ||
        numbers[at + 1] > INT32_MAX || n < 1 || n > static_cast<int64_t>(numbers.size() - at - 3) ||
        (n != 1 && what != static_cast<int64_t>(Operation::What::kUpdate))) {
      return invalid_argument("an unknown operation");
    }
    each.what = static_cast<Operation::What>(what);
    each.how = static_cast<int32_t>(numbers[at + 1]);
    each.variables = numbers.subspan(at + 3, static_cast<std::size_t>(n));
    each.value = value.get();
    if (each.what == Operation::What::kUpdate) {
      if (!value->is_sequence() || value->items().size() != 2 || value->items()[0]->text() == nullptr) {
        return invalid_argument("an update without a function");
      }
      each.function = value->items()[0]->text();
      each.value = value->items()[1].get();
    }
    at += 3 + static_cast<std::size_t>(n);
    operations.push_back(each);
  }
  if (at != numbers.size()) return invalid_argument("a commit with more operations than values");
  span->id = numbers[0];
  bool applied = false;
  DIST_TRY(store_.commit({numbers[0], numbers[1], operations, item.call->request().bytes()}, &applied));
  if (!applied) span->set_name("repeated commit");
  const int64_t number = applied ? 1 : 0;
  return make_numbers(memory_, {&number, 1}, out);
}

Status ParameterService::snapshot(ValueRef* out) {
  snapshot_.clear();
  for (std::size_t i = 0; i < store_.num_variables(); ++i) {
    DIST_TRY(store_.read(static_cast<int64_t>(i), &snapshot_.emplace_back()));
  }
  std::pmr::vector<int64_t> numbers(&memory_);
  store_.applied().write(&numbers);
  return make_numbers(memory_, numbers, out);
}

}  // namespace dist
