// SPDX-License-Identifier: Apache-2.0
// core/ps: variables and commits without a network, the record of applied closures, and directories as
// messages.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory_resource>
#include <random>
#include <set>
#include <vector>

#include "core/ps/applied_ids.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/numbers.hpp"
#include "core/ps/parameter_store.hpp"
#include "core/ps/pushes.hpp"
#include "tests/unit/plain_error.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

Ref<Memory> some_memory() { return Ref<Memory>::adopt(Memory::create({})); }

void assert_ok(const Status& status) {
  if (!status.ok()) print_error("%s\n", last_message());
  assert_true(status.ok());
}

ValueRef floats(Memory& memory, std::vector<float> data) {
  const auto n = static_cast<int64_t>(data.size());
  ValueRef value;
  assert_ok(Value::copy_tensor(memory, {data.data(), DIST_F32, 1, &n, nullptr}, &value));
  return value;
}

const float* data_of(const Value& value) { return static_cast<const float*>(value.tensor().data); }

// ---- AppliedIds ----

void each_id_is_known_once(void**) {
  constexpr uint64_t kSeed = 20261123;
  std::printf("# seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  const Ref<Memory> memory = some_memory();
  AppliedIds ids(*memory);
  std::set<int64_t> wanted;
  int64_t watermark = 0;
  for (int step = 0; step < 20'000; ++step) {
    const int64_t id = watermark + static_cast<int64_t>(random() % 300) - 20;
    if (id >= 0) {
      assert_int_equal(ids.has(id), id < watermark || wanted.count(id) != 0);
      assert_ok(ids.reserve(id));
      ids.add(id);
      if (id >= watermark) wanted.insert(id);
      assert_true(ids.has(id));
    }
    if (random() % 7 == 0) {
      watermark += static_cast<int64_t>(random() % 150);
      ids.forget_below(watermark);
      ids.forget_below(watermark - 5);
      wanted.erase(wanted.begin(), wanted.lower_bound(watermark));
      assert_int_equal(ids.watermark(), watermark);
    }
    if (random() % 50 == 0) {
      std::pmr::vector<int64_t> numbers;
      ids.write(&numbers);
      AppliedIds again(*memory);
      assert_ok(again.read(numbers));
      for (int64_t each = watermark > 70 ? watermark - 70 : 0; each < watermark + 300; ++each)
        assert_int_equal(again.has(each), ids.has(each));
    }
  }
  assert_int_equal(ids.reserve(-1).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(ids.reserve(INT64_MAX).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(ids.read({}).code(), DIST_INVALID_ARGUMENT);
  const int64_t negative[] = {-1};
  assert_int_equal(ids.read(negative).code(), DIST_INVALID_ARGUMENT);
}

// ---- ParameterStore ----

struct Fixture {
  Ref<Memory> memory = some_memory();
  ParameterStore store{*memory};

  void create(std::vector<float> data) {
    const ValueRef value = floats(*memory, std::move(data));
    assert_ok(store.create(static_cast<int64_t>(store.num_variables()), *value, 0));
  }
  Status commit(int64_t id, int64_t watermark, const std::vector<Operation>& operations, bool* applied) {
    return store.commit({id, watermark, operations, 0}, applied);
  }
  std::vector<float> now(int64_t number) {
    ValueRef value;
    assert_ok(store.read(number, &value));
    const dist_tensor tensor = value->tensor();
    return {data_of(*value), data_of(*value) + tensor.shape[0]};
  }
};

Operation assign(const int64_t& variable, int32_t how, Value& value) {
  Operation operation;
  operation.how = how;
  operation.variables = {&variable, 1};
  operation.value = &value;
  return operation;
}

void a_commit_is_applied_once(void**) {
  Fixture f;
  f.create({1, 2});
  const int64_t zero = 0;
  const ValueRef ones = floats(*f.memory, {1, 1});
  bool applied = false;
  assert_ok(f.commit(5, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
  assert_true(applied);
  assert_ok(f.commit(5, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
  assert_false(applied);
  assert_ok(f.commit(3, 0, {assign(zero, DIST_ASSIGN_SUB, *ones)}, &applied));
  assert_true(applied);
  // A commit below the watermark has ended, even if it never arrived.
  assert_ok(f.commit(9, 5, {}, &applied));
  assert_ok(f.commit(4, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
  assert_false(applied);
  // The coordinator's own commits have no number, and are applied each time.
  for (int i = 0; i < 2; ++i) {
    assert_ok(f.commit(Commit::kNoClosure, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
    assert_true(applied);
  }
  assert_true((f.now(0) == std::vector<float>{3, 4}));
}

void what_was_given_out_stays(void**) {
  Fixture f;
  f.create({1, 2});
  const int64_t zero = 0;
  const ValueRef ones = floats(*f.memory, {1, 1});
  bool applied = false;
  ValueRef before;
  assert_ok(f.store.read(0, &before));
  assert_ok(f.commit(0, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
  assert_true(data_of(*before)[0] == 1);
  assert_true((f.now(0) == std::vector<float>{2, 3}));
  // No reader holds the current value, so it is changed in place.
  ValueRef value;
  assert_ok(f.store.read(0, &value));
  const void* const at = value->tensor().data;
  value = {};
  assert_ok(f.commit(1, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
  assert_ok(f.store.read(0, &value));
  assert_ptr_equal(value->tensor().data, at);
  // The first value's memory is used again once its reader has released it.
  const void* const spare = before->tensor().data;
  before = {};
  assert_ok(f.commit(2, 0, {assign(zero, DIST_ASSIGN_ADD, *ones)}, &applied));
  ValueRef last;
  assert_ok(f.store.read(0, &last));
  assert_ptr_equal(last->tensor().data, spare);
  assert_true(data_of(*value)[0] == 3 && data_of(*last)[0] == 4);
}

void a_large_variable_is_changed_in_pieces(void**) {
  Fixture f;
  const std::size_t n = 1'000'003;
  std::vector<float> data(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<float>(i % 1000);
  f.create(data);
  const int64_t zero = 0;
  const ValueRef delta = floats(*f.memory, data);
  bool applied = false;
  ValueRef kept;
  for (int round = 0; round < 3; ++round) {
    if (round == 1) assert_ok(f.store.read(0, &kept));
    assert_ok(f.commit(round, 0, {assign(zero, DIST_ASSIGN_ADD, *delta)}, &applied));
  }
  const std::vector<float> now = f.now(0);
  for (std::size_t i = 0; i < n; ++i) {
    assert_true(now[i] == 4 * data[i] && data_of(*kept)[i] == 2 * data[i]);
  }
}

dist_status halve_or_fail(dist_tensor* variables, std::size_t n, Value* arguments, void* host) {
  ++*static_cast<int*>(host);
  for (std::size_t v = 0; v < n; ++v) {
    for (int64_t i = 0; i < variables[v].shape[0]; ++i) static_cast<float*>(variables[v].data)[i] /= 2;
  }
  return arguments == nullptr || arguments->is_none() ? DIST_OK : fail(DIST_OUT_OF_RANGE, "no").code();
}

void a_commit_is_whole_or_nothing(void**) {
  Fixture f;
  f.create({1, 2});
  f.create({8});
  int called = 0;
  assert_ok(f.store.add_function("halve", {halve_or_fail, &called, nullptr}));
  assert_int_equal(f.store.add_function("halve", {halve_or_fail, &called, nullptr}).code(),
                   DIST_ALREADY_EXISTS);
  const int64_t both[] = {0, 1};
  const int64_t two = 2;
  const ValueRef ones = floats(*f.memory, {1, 1});
  const ValueRef three = floats(*f.memory, {1, 2, 3});
  const ValueRef text = Value::create_text(*f.memory, "fail");
  bool applied = false;
  Operation update;
  update.what = Operation::What::kUpdate;
  update.variables = both;
  update.function = "halve";
  update.value = text.get();
  const std::vector<Operation> bad[] = {
      {assign(both[0], DIST_ASSIGN_ADD, *ones), assign(two, DIST_ASSIGN_ADD, *ones)},
      {assign(both[0], DIST_ASSIGN_ADD, *ones), assign(both[1], DIST_ASSIGN_ADD, *ones)},
      {assign(both[0], DIST_ASSIGN_ADD, *ones), assign(both[0], 7, *ones)},
      {assign(both[0], DIST_ASSIGN, *three)},
      {assign(both[0], DIST_ASSIGN_ADD, *text)},
      {assign(both[0], DIST_ASSIGN_ADD, *ones), update},
  };
  for (const auto& each : bad) {
    assert_false(f.commit(0, 0, each, &applied).ok());
    assert_false(applied);
    assert_true((f.now(0) == std::vector<float>{1, 2}));
    assert_true((f.now(1) == std::vector<float>{8}));
  }
  assert_int_equal(called, 1);
  update.value = nullptr;
  assert_ok(f.commit(0, 0, {assign(both[0], DIST_ASSIGN_ADD, *ones), update, update}, &applied));
  assert_true((f.now(0) == std::vector<float>{0.5F, 0.75F}));
  assert_true((f.now(1) == std::vector<float>{2}));
  update.function = "nowhere";
  assert_int_equal(f.commit(1, 0, {update}, &applied).code(), DIST_NOT_FOUND);
}

void variables_are_numbered(void**) {
  Fixture f;
  f.create({1, 2});
  const ValueRef value = floats(*f.memory, {5, 6, 7});
  assert_int_equal(f.store.create(2, *value, 0).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(f.store.create(-1, *value, 0).code(), DIST_INVALID_ARGUMENT);
  // A variable may be created again, because its creation may have failed on another server.
  assert_ok(f.store.create(0, *value, 0));
  assert_int_equal(f.store.bytes(), 12);
  assert_int_equal(f.store.num_variables(), 1);
  ValueRef out;
  assert_int_equal(f.store.read(1, &out).code(), DIST_INVALID_ARGUMENT);
  f.store.clear();
  assert_int_equal(f.store.num_variables(), 0);
  assert_int_equal(f.store.bytes(), 0);
}

// ---- Directory ----

void a_directory_grows_as_it_is_sent(void**) {
  const Ref<Memory> memory = some_memory();
  Directory all(*memory);
  Directory copy(*memory);
  const auto add = [&](const char* name, const std::vector<int64_t>& shape,
                       const std::vector<int32_t>& servers) {
    RemoteVariable variable(*memory);
    variable.name = name;
    variable.dtype = DIST_F32;
    variable.shape.assign(shape.begin(), shape.end());
    variable.max_staleness = 3;
    for (const int32_t ps : servers) variable.parts.push_back({ps, 7, 0, 0});
    return all.add(std::move(variable));
  };
  assert_ok(add("a", {7, 2}, {1, 0, 1}));
  assert_ok(add("b", {}, {0}));
  assert_int_equal(add("a", {}, {0}).code(), DIST_ALREADY_EXISTS);
  ValueRef message;
  assert_ok(all.write(0, &message));
  assert_ok(copy.read(*message, 2));
  // Reading the same message again changes nothing.
  assert_ok(copy.read(*message, 2));
  assert_int_equal(copy.size(), 2);
  assert_ok(add("c", {0, 4}, {1}));
  assert_ok(all.write(2, &message));
  assert_ok(copy.read(*message, 2));
  assert_ok(all.write(3, &message));
  assert_true(message.get() == nullptr);
  const RemoteVariable* found = nullptr;
  assert_ok(copy.find("a", &found));
  assert_int_equal(found->parts.size(), 3);
  assert_int_equal(found->parts[1].begin, 3);
  assert_int_equal(found->parts[2].rows, 2);
  assert_int_equal(found->parts[2].number, 7);
  assert_int_equal(found->max_staleness, 3);
  assert_int_equal(found->bytes(), 56);
  assert_ok(copy.find("c", &found));
  assert_int_equal(copy.find("d", &found).code(), DIST_NOT_FOUND);

  // Changed messages are either valid lists or refused.
  constexpr uint64_t kSeed = 20261123;
  std::printf("# seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  assert_ok(all.write(0, &message));
  const dist_tensor numbers = message->items()[0]->tensor();
  const auto* const first = static_cast<const int64_t*>(numbers.data);
  for (int round = 0; round < 5000; ++round) {
    std::vector<int64_t> changed(first, first + numbers.shape[0]);
    changed.resize(1 + random() % changed.size());
    for (int k = 0; k < 2; ++k) {
      static constexpr int64_t kOdd[] = {-1, 0, 1, 2, 63, INT32_MAX, INT64_MAX, INT64_MIN};
      changed[random() % changed.size()] = kOdd[random() % 8];
    }
    Value* const rest[] = {message->items()[1].get()};
    ValueRef other;
    assert_ok(make_message(*memory, changed, rest, &other));
    Directory fresh(*memory);
    (void)fresh.read(*other, 2);
    assert_true(fresh.size() <= 3);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(each_id_is_known_once),
      cmocka_unit_test(a_commit_is_applied_once),
      cmocka_unit_test(what_was_given_out_stays),
      cmocka_unit_test(a_large_variable_is_changed_in_pieces),
      cmocka_unit_test(a_commit_is_whole_or_nothing),
      cmocka_unit_test(variables_are_numbered),
      cmocka_unit_test(a_directory_grows_as_it_is_sent),
  };
  return cmocka_run_group_tests_name("parameter servers without a network", tests, nullptr, nullptr);
}
