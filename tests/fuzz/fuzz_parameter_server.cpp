// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: requests of coordinators and workers to a parameter server, and the directories sent to
// workers. Every request must be answered once, a failed one must change nothing, and the commit of a closure
// must be applied once. An accepted directory must survive a round trip. Nothing may leak.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/net/rpc/message.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/numbers.hpp"
#include "core/ps/parameter_service.hpp"
#include "core/trace/spans.hpp"
#include "tests/fuzz/bytes.h"

namespace dist {
namespace {

constexpr int64_t kFirstEpoch = 7;

class Call final : public IncomingCall {
 public:
  Call(Memory& memory, Ref<CallMessage> request) : IncomingCall(memory, std::move(request), 0) {}
  void answer(dist_status code, const char* text, Ref<CallParts> parts) noexcept override {
    ++answers;
    status = code;
    assert_non_null(known_status_name(code));
    assert_non_null(text);
    if (!parts) return;
    for (const auto& each : parts->parts()) whole.insert(whole.end(), each.begin(), each.end());
  }

  int answers = 0;
  dist_status status = DIST_OK;
  std::vector<std::byte> whole;

 private:
  ~Call() override = default;
};

Ref<CallMessage> message_of(Memory& memory, const std::vector<std::byte>& from) {
  Ref<CallMessage> message = CallMessage::create(memory, from.size());
  assert_true(message.get() != nullptr);
  std::copy(from.begin(), from.end(), message->data());
  return message;
}

// Changes the variables. The function "bad" then fails, and its changes must not become visible.
dist_status add_one(dist_tensor* variables, std::size_t n, Value* arguments, void* host) {
  for (std::size_t i = 0; i < n; ++i) {
    auto* const at = static_cast<unsigned char*>(variables[i].data);
    const std::size_t size = elements_of(variables[i]) * dtype_size(variables[i].dtype);
    for (std::size_t b = 0; b < size; ++b) at[b] = static_cast<unsigned char>(at[b] + 1);
  }
  if (host != nullptr) return fail(DIST_ABORTED, "as it always does").code();
  return arguments != nullptr && arguments->is_none() ? DIST_OK : DIST_UNKNOWN;
}

class Player {
 public:
  Player(Memory& memory, bytes* in) : memory_(memory), in_(in), spans_(memory), service_(memory, spans_) {
    assert_true(service_.store().add_function("add", {add_one, nullptr, nullptr}).ok());
    assert_true(service_.store().add_function("bad", {add_one, this, nullptr}).ok());
    service_.begin_epoch(kFirstEpoch);
  }

  void play() {
    while (in_->left > 0) step();
  }

 private:
  void step() {
    switch (take(in_) % 12) {
      case 0: return service_.begin_epoch(take(in_) % 2 == 0 ? kFirstEpoch : take_hostile(in_));
      case 1:
      case 2: return ask("dist.ps.create", {epoch(), nearly(created())}, {tensor()});
      case 3: return ask("dist.ps.read", some_numbers(), {});
      case 4: return ask("dist.ps.rows", {epoch(), number()}, {tensor()});
      case 5:
      case 6:
      case 7: return commit();
      case 8: return snapshot();
      case 9: return ask("dist.ps.restore", some_numbers(), {});
      case 10: return directory();
      default: return ask(any_name(), some_numbers(), {any_value(3), any_value(3)});
    }
  }

  // ---- Arguments of requests ----

  int64_t epoch() { return nearly(kFirstEpoch); }
  int64_t number() { return take_hostile(in_); }
  std::vector<int64_t> some_numbers() {
    std::vector<int64_t> numbers = {epoch()};
    for (int n = take_below(in_, 5); n > 0; --n) numbers.push_back(number());
    return numbers;
  }
  const char* any_name() {
    static const char* const kNames[] = {"",
                                         "dist.ps.",
                                         "dist.ps.create",
                                         "dist.ps.read",
                                         "dist.ps.rows",
                                         "dist.ps.commit",
                                         "dist.ps.snapshot",
                                         "dist.ps.snapshot_read",
                                         "dist.ps.snapshot_end",
                                         "dist.ps.restore",
                                         "dist.ps.x"};
    // Methods with another prefix are not passed to this service.
    return kNames[1 + take_below(in_, 10)];
  }
  ValueRef tensor() {
    const uint8_t kind = take(in_);
    static constexpr dist_dtype kDtypes[] = {DIST_F32, DIST_I64, DIST_I32, DIST_BOOL, DIST_F64, DIST_BF16};
    dist_tensor made{nullptr, kDtypes[kind % 6], take_below(in_, 3), nullptr, nullptr};
    int64_t shape[3] = {take_below(in_, 5), take_below(in_, 4), 1};
    made.shape = shape;
    alignas(64) unsigned char data[5 * 4 * 8];
    for (unsigned char& each : data) each = static_cast<unsigned char>(kind % 4);
    take_into(in_, data, kind % 8);
    // A bool is 0 or 1.
    if (made.dtype == DIST_BOOL) std::for_each(data, data + sizeof data, [](auto& each) { each &= 1; });
    made.data = data;
    ValueRef value;
    assert_true(Value::copy_tensor(memory_, made, &value).ok());
    return value;
  }
  ValueRef any_value(int depth) {
    const uint8_t kind = take(in_);
    if (depth == 0 || kind % 4 == 0) return tensor();
    if (kind % 4 == 1)
      return Value::create_text(memory_, kind % 8 == 1 ? "add" : kind % 16 == 5 ? "bad" : "v");
    if (kind % 4 == 2) return Value::create_none(memory_);
    std::vector<ValueRef> kept;
    std::pmr::vector<Value*> items(&memory_);
    for (int n = take_below(in_, 4); n > 0; --n)
      items.push_back(kept.emplace_back(any_value(depth - 1)).get());
    ValueRef made;
    assert_true(
        Value::create(memory_, kind % 8 == 3 ? DIST_VALUE_TUPLE : DIST_VALUE_LIST, items, &made).ok());
    return made;
  }
  ValueRef sequence(const std::vector<ValueRef>& of) {
    std::pmr::vector<Value*> items(&memory_);
    for (const ValueRef& each : of) items.push_back(each.get());
    ValueRef made;
    assert_true(Value::create(memory_, DIST_VALUE_TUPLE, items, &made).ok());
    return made;
  }

  // ---- Calls ----

  std::vector<std::byte> bytes_of(const char* method, const std::vector<int64_t>& numbers,
                                  const std::vector<ValueRef>& rest) {
    std::pmr::vector<Value*> items(&memory_);
    for (const ValueRef& each : rest) items.push_back(each.get());
    ValueRef message;
    assert_true(make_message(memory_, numbers, items, &message).ok());
    Ref<CallParts> parts;
    assert_true(write_message(memory_, method, message.get(), &parts).ok());
    std::vector<std::byte> whole;
    for (const auto& each : parts->parts()) whole.insert(whole.end(), each.begin(), each.end());
    return whole;
  }
  Ref<Call> send(const std::vector<std::byte>& request) {
    Ref<Call> call = make_counted<Call>(memory_, message_of(memory_, request));
    service_.called(Ref<IncomingCall>::share(call.get()));
    service_.store().arena().wait_for_tasks();
    assert_int_equal(call->answers, 1);
    return call;
  }
  // A request that fails must not have changed any variable.
  Ref<Call> send_checked(const std::vector<std::byte>& request) {
    const std::string before = everything();
    Ref<Call> call = send(request);
    if (call->status != DIST_OK) assert_true(everything() == before);
    return call;
  }
  void ask(const char* method, const std::vector<int64_t>& numbers, const std::vector<ValueRef>& rest) {
    const Ref<Call> call = send_checked(bytes_of(method, numbers, rest));
    if (call->status != DIST_OK) return;
    std::string_view name;
    ValueRef result;
    assert_true(read_message(memory_, message_of(memory_, call->whole), &name, &result).ok());
  }

  int64_t created() { return static_cast<int64_t>(service_.store().num_variables()); }
  int64_t some_variable() {
    const int64_t n = std::min<int64_t>(created(), 8);
    return n == 0 ? number() : nearly(take_below(in_, static_cast<int32_t>(n)));
  }
  // A change for this variable: a tensor with its dtype and shape, or one row and its index.
  ValueRef change_of(int64_t variable, bool row) {
    ValueRef now;
    if (take(in_) % 16 == 15 || !service_.store().read(variable, &now).ok()) return any_value(2);
    dist_tensor like = now->tensor();
    int64_t shape[DIST_MAX_NDIM] = {};
    std::copy_n(like.shape, like.ndim, shape);
    if (row) shape[0] = 1;
    alignas(64) unsigned char data[5 * 4 * 8];
    const int fill = like.dtype == DIST_BOOL ? 1 : 1 + take_below(in_, 2);
    std::fill(std::begin(data), std::end(data), static_cast<unsigned char>(fill));
    like.shape = shape;
    like.data = data;
    ValueRef value;
    assert_true(Value::copy_tensor(memory_, like, &value).ok());
    if (!row) return value;
    int32_t index = take_below(in_, 5);
    const int64_t one = 1;
    ValueRef indices;
    assert_true(Value::copy_tensor(memory_, {&index, DIST_I32, 1, &one, nullptr}, &indices).ok());
    return sequence({value, indices});
  }

  void commit() {
    std::vector<int64_t> numbers = {epoch(), nearly(take_below(in_, 8)), nearly(0)};
    std::vector<ValueRef> values;
    for (int n = 1 + take_below(in_, 3); n > 0; --n) {
      const int what = take_below(in_, 3);
      const int variables = what == 2 ? 1 + take_below(in_, 3) : 1;
      numbers.push_back(nearly(what));
      numbers.push_back(nearly(what == 1 ? DIST_SCATTER_BATCH_UPDATE : take_below(in_, 3)));
      numbers.push_back(nearly(variables));
      const int64_t first = some_variable();
      numbers.push_back(first);
      for (int v = 1; v < variables; ++v) numbers.push_back(some_variable());
      if (what == 2) {
        const char* const function = take(in_) % 4 == 0 ? "bad" : "add";
        values.push_back(sequence({Value::create_text(memory_, function),
                                   nearly(0) == 0 ? Value::create_none(memory_) : tensor()}));
      } else {
        values.push_back(change_of(first, what == 1));
      }
    }
    const std::vector<std::byte> request = bytes_of("dist.ps.commit", numbers, {sequence(values)});
    const Ref<Call> first = send_checked(request);
    if (first->status != DIST_OK || numbers[1] < 0) return;
    const std::string after = everything();
    const Ref<Call> second = send(request);
    assert_int_equal(second->status, DIST_OK);
    assert_true(everything() == after);
  }

  void snapshot() {
    ask("dist.ps.snapshot", {epoch()}, {});
    ask("dist.ps.snapshot_read", {epoch(), number()}, {});
    if (take(in_) % 2 == 0) ask("dist.ps.snapshot_end", {epoch()}, {});
  }

  // Returns the bytes of all variables.
  std::string everything() {
    std::string all;
    for (std::size_t i = 0; i < service_.store().num_variables(); ++i) {
      ValueRef value;
      assert_true(service_.store().read(static_cast<int64_t>(i), &value).ok());
      const dist_tensor tensor = value->tensor();
      all += std::to_string(tensor.dtype) + "," + std::to_string(elements_of(tensor)) + ":";
      all.append(static_cast<const char*>(tensor.data), elements_of(tensor) * dtype_size(tensor.dtype));
    }
    return all;
  }

  // ---- Directories ----

  void directory() {
    constexpr int32_t kServers = 3;
    Directory told(memory_);
    std::vector<int64_t> numbers = {nearly(0)};
    for (int entries = take_below(in_, 3); entries > 0; --entries) {
      numbers.push_back(nearly(1));  // bytes of its name
      numbers.push_back(nearly(DIST_F32));
      numbers.push_back(nearly(take_below(in_, 3)));
      const int ndim = take_below(in_, 3);
      numbers.push_back(nearly(ndim));
      for (int i = 0; i < ndim; ++i) numbers.push_back(nearly(take_below(in_, 5)));
      const int parts = 1 + take_below(in_, 3);
      numbers.push_back(nearly(parts));
      for (int i = 0; i < parts; ++i) {
        numbers.push_back(nearly(i));
        numbers.push_back(nearly(i));
      }
    }
    ValueRef head, names;
    const int64_t bytes = 3;
    assert_true(make_numbers(memory_, numbers, &head).ok());
    assert_true(
        Value::copy_tensor(memory_, {const_cast<char*>("abc"), DIST_U8, 1, &bytes, nullptr}, &names).ok());
    const ValueRef message = take(in_) % 16 == 0 ? any_value(3) : sequence({head, names});
    if (!told.read(*message, kServers).ok() || told.size() == 0) return;
    ValueRef sent, same;
    assert_true(told.write(0, &sent).ok());
    Directory again(memory_);
    assert_true(again.read(*sent, kServers).ok());
    assert_int_equal(again.size(), told.size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      const RemoteVariable& each = told.at(i);
      assert_true(again.at(i).name == each.name && again.at(i).shape == each.shape);
      int64_t rows = 0;
      for (const RemoteVariable::Part& part : each.parts) {
        assert_true(part.ps >= 0 && part.ps < kServers && part.rows >= 0);
        rows += part.rows;
      }
      assert_true(each.shape.empty() || rows == each.shape[0]);
    }
  }
  // Mostly returns the wanted number, and always after the end of the input, where bytes are 0.
  int64_t nearly(int64_t wanted) { return take(in_) % 16 == 15 ? number() : wanted; }

  Memory& memory_;
  bytes* const in_;
  SpanLog spans_;
  ParameterService service_;
};

}  // namespace
}  // namespace dist

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  const auto memory = dist::Ref<dist::Memory>::adopt(dist::Memory::create({}));
  const std::size_t before = memory->held();
  dist::Player(*memory, &in).play();
  assert_int_equal(memory->held(), before);
  return 0;
}
