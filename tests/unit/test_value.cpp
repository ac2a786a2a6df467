// SPDX-License-Identifier: Apache-2.0
// Values, merging and splitting, variables and DLPack, below the C ABI.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/value/dlpack.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/plain_error.hpp"

// Last: its macro fail() would hide dist::fail().
#include <setjmp.h>
#include <stdarg.h>

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

ValueRef scalar(Memory& memory, float number) {
  ValueRef value;
  const dist_tensor tensor{&number, DIST_F32, 0, nullptr, nullptr};
  assert_true(Value::copy_tensor(memory, tensor, &value).ok());
  return value;
}

float number_of(const Value& value) {
  float number;
  std::memcpy(&number, value.tensor().data, sizeof number);
  return number;
}

std::vector<Value*> pointers(const std::vector<ValueRef>& values) {
  std::vector<Value*> all;
  for (const ValueRef& value : values) all.push_back(value.get());
  return all;
}

ValueRef make(Memory& memory, dist_value_kind kind, const std::vector<ValueRef>& items) {
  ValueRef value;
  assert_true(Value::create(memory, kind, pointers(items), &value).ok());
  return value;
}

ValueRef dict(Memory& memory, const std::vector<const char*>& keys, const std::vector<ValueRef>& items) {
  ValueRef value;
  assert_true(Value::create_dict(memory, keys, pointers(items), &value).ok());
  return value;
}

void assert_invalid(Status status, const char* message) {
  assert_int_equal(status.code(), DIST_INVALID_ARGUMENT);
  assert_string_equal(last_message(), message);
}

void equal_structures_merge_leaf_by_leaf(void**) {
  CountingMemory memory;
  {
    const ValueRef shared = scalar(*memory, 7);
    std::vector<ValueRef> results;
    for (int r = 0; r < 3; ++r) {
      const ValueRef pair = make(*memory, DIST_VALUE_LIST, {scalar(*memory, static_cast<float>(r)), shared});
      results.push_back(
          dict(*memory, {"pair", "alone"}, {pair, scalar(*memory, static_cast<float>(10 * r))}));
    }
    ValueRef merged;
    assert_true(merge(*memory, pointers(results), "result", &merged).ok());
    assert_int_equal(merged->kind(), DIST_VALUE_DICT);
    const Value* const pair = merged->find("pair");
    assert_non_null(pair);
    const Value& leaf = *pair->items()[0];
    assert_int_equal(leaf.kind(), DIST_VALUE_PER_REPLICA);
    for (std::size_t r = 0; r < 3; ++r) assert_true(number_of(*leaf.items()[r]) == static_cast<float>(r));
    assert_ptr_equal(pair->items()[1].get(), shared.get());

    // After splitting, every replica gets its own value back.
    for (int r = 0; r < 3; ++r) {
      ValueRef mine;
      assert_true(component_of(*memory, merged.get(), LocalReplica{r}, &mine).ok());
      assert_false(mine->holds_distributed());
      assert_true(number_of(*mine->find("alone")) == static_cast<float>(10 * r));
      assert_ptr_equal(mine->find("pair")->items()[0].get(),
                       results[static_cast<std::size_t>(r)]->find("pair")->items()[0].get());
    }
  }
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

// Small elements are stored in the value and large ones separately, which is not visible from outside.
void elements_of_any_size_are_aligned_and_whole(void**) {
  CountingMemory memory;
  for (int64_t n = 0; n <= 2200; n += n < 1200 ? 1 : 97) {
    for (const int32_t ndim : {1, 3}) {
      const int64_t shape[] = {n, 1, 1};
      std::vector<unsigned char> bytes(static_cast<std::size_t>(n), static_cast<unsigned char>(n));
      const dist_tensor given{bytes.data(), DIST_U8, ndim, shape, nullptr};
      ValueRef kept;
      assert_true(Value::copy_tensor(*memory, given, &kept).ok());
      const dist_tensor tensor = kept->tensor();
      assert_int_equal(reinterpret_cast<uintptr_t>(tensor.data) % 64, 0);
      if (n > 0) {
        std::fill_n(static_cast<unsigned char*>(tensor.data), n, static_cast<unsigned char>(0xff));
        assert_true(kept->keeps_elements());
      }
      assert_int_equal(tensor.shape[0], n);
      assert_int_equal(tensor.shape[ndim - 1], ndim == 1 ? n : 1);
      const std::string text(static_cast<std::size_t>(n), 'x');
      assert_string_equal(Value::create_text(*memory, text.c_str())->text(), text.c_str());
    }
  }
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

void what_all_have_in_common_stays_itself(void**) {
  CountingMemory memory;
  {
    const ValueRef one = scalar(*memory, 1);
    ValueRef merged;
    Value* const same[] = {one.get(), one.get(), one.get()};
    assert_true(merge(*memory, same, "result", &merged).ok());
    assert_ptr_equal(merged.get(), one.get());
    Value* const none[] = {nullptr, nullptr};
    assert_true(merge(*memory, none, "result", &merged).ok());
    assert_null(merged.get());
    Value* const single[] = {one.get()};
    assert_true(merge(*memory, single, "result", &merged).ok());
    assert_ptr_equal(merged.get(), one.get());
    // Two equal numbers are different objects.
    const ValueRef other = scalar(*memory, 1);
    Value* const equal[] = {one.get(), other.get()};
    assert_true(merge(*memory, equal, "result", &merged).ok());
    assert_int_equal(merged->kind(), DIST_VALUE_PER_REPLICA);
    // If requested, leaves always become per-replica.
    assert_true(merge_leaves(*memory, same, "value", &merged).ok());
    assert_int_equal(merged->kind(), DIST_VALUE_PER_REPLICA);
    // Two handles of one variable count as the same object.
    Ref<Variable> variable;
    assert_true(Variable::create(
                    *memory, {DIST_STRATEGY_MIRRORED, make_counted<ReplicaNumbers>(*memory, ReplicaCount(2))},
                    {}, one->tensor(), &variable)
                    .ok());
    const ValueRef handle = Value::of_variable(*variable);
    const ValueRef again = Value::of_variable(*variable);
    Value* const handles[] = {handle.get(), again.get()};
    assert_true(merge(*memory, handles, "result", &merged).ok());
    assert_ptr_equal(merged.get(), handle.get());
  }
  assert_int_equal(memory.live(), 0);
}

void different_structures_are_named_with_their_path(void**) {
  CountingMemory memory;
  const auto nest = [&](const ValueRef& leaf) {
    return dict(*memory, {"loss"}, {make(*memory, DIST_VALUE_LIST, {scalar(*memory, 0), leaf})});
  };
  const int64_t shape[] = {4};
  float four[] = {1, 2, 3, 4};
  ValueRef tensor;
  assert_true(Value::copy_tensor(*memory, {four, DIST_F32, 1, shape, nullptr}, &tensor).ok());
  const ValueRef two = make(*memory, DIST_VALUE_LIST, {scalar(*memory, 1), scalar(*memory, 2)});
  const ValueRef good = nest(two);
  const ValueRef bad = nest(tensor);
  ValueRef out;
  const ValueRef other = nest(two);
  Value* const results[] = {good.get(), other.get(), good.get(), bad.get()};
  assert_invalid(
      merge(*memory, results, "result", &out),
      "result[\"loss\"][1]: replica 0 has a list of 2, but replica 3 has a tensor f32[4]. Only values of "
      "the same structure can be merged.");
  const ValueRef three = make(*memory, DIST_VALUE_LIST, {tensor, tensor, tensor});
  Value* const lengths[] = {two.get(), three.get()};
  assert_invalid(
      merge(*memory, lengths, "result", &out),
      "result: replica 0 has a list of 2, but replica 1 has a list of 3. Only values of the same structure "
      "can be merged.");
  const ValueRef ab = dict(*memory, {"a", "b"}, {tensor, tensor});
  const ValueRef ac = dict(*memory, {"c", "a"}, {tensor, tensor});
  Value* const keys[] = {ab.get(), ac.get()};
  assert_invalid(merge(*memory, keys, "result", &out),
                 "result: replica 0 has the key \"b\", but replica 1 does not. All must have the same keys.");
  Value* const keys_reversed[] = {ac.get(), ab.get()};
  assert_invalid(merge(*memory, keys_reversed, "result", &out),
                 "result: replica 1 has the key \"b\", but replica 0 does not. All must have the same keys.");
  Value* const missing[] = {nullptr, two.get()};
  assert_invalid(merge(*memory, missing, "result", &out),
                 "result: replica 0 has nothing, but replica 1 has a list of 2. Only values of the same "
                 "structure can be merged.");
  const ValueRef pair = make(*memory, DIST_VALUE_TUPLE, {tensor, tensor});
  Value* const sequences[] = {pair.get(), two.get()};
  assert_invalid(merge(*memory, sequences, "result", &out),
                 "result: replica 0 has a tuple of 2, but replica 1 has a list of 2. Only values of the same "
                 "structure can be merged.");
  const ValueRef spread = make(*memory, DIST_VALUE_PER_REPLICA, {tensor, tensor});
  Value* const nested[] = {tensor.get(), spread.get()};
  assert_invalid(
      merge(*memory, nested, "result", &out),
      "result: replica 1 has a per-replica value, but each replica must pass its own part, or all of "
      "them the same object");
  assert_null(out.get());
}

void leaves_of_any_kind_stand_side_by_side(void**) {
  CountingMemory memory;
  {
    const ValueRef number = scalar(*memory, 1);
    const ValueRef text = Value::create_text(*memory, "one");
    const ValueRef none = Value::create_none(*memory);
    ValueRef merged;
    Value* const mixed[] = {number.get(), text.get(), nullptr};
    assert_true(merge(*memory, mixed, "result", &merged).ok());
    assert_int_equal(merged->kind(), DIST_VALUE_PER_REPLICA);
    assert_string_equal(merged->items()[1]->text(), "one");
    assert_true(merged->items()[2]->is_none());  // the other replicas have a result here
    // All None values are equal, even if they are different objects.
    const ValueRef other = Value::create_none(*memory);
    Value* const nothing[] = {none.get(), other.get(), nullptr};
    assert_true(merge(*memory, nothing, "result", &merged).ok());
    assert_true(merged->is_none());
    // Two texts with the same letters are different objects.
    const ValueRef again = Value::create_text(*memory, "one");
    Value* const texts[] = {text.get(), again.get()};
    assert_true(merge(*memory, texts, "result", &merged).ok());
    assert_int_equal(merged->kind(), DIST_VALUE_PER_REPLICA);
    // Tuples merge like lists, and stay tuples.
    const ValueRef first = make(*memory, DIST_VALUE_TUPLE, {number, none});
    const ValueRef second = make(*memory, DIST_VALUE_TUPLE, {text, other});
    Value* const tuples[] = {first.get(), second.get()};
    assert_true(merge(*memory, tuples, "result", &merged).ok());
    assert_int_equal(merged->kind(), DIST_VALUE_TUPLE);
    assert_int_equal(merged->items()[0]->kind(), DIST_VALUE_PER_REPLICA);
    assert_true(merged->items()[1]->is_none());
    ValueRef mine;
    assert_true(component_of(*memory, merged.get(), LocalReplica{1}, &mine).ok());
    assert_int_equal(mine->kind(), DIST_VALUE_TUPLE);
    assert_ptr_equal(mine->items()[0].get(), text.get());
  }
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

void lists_nest_sixty_four_deep(void**) {
  CountingMemory memory;
  {
    ValueRef nest = scalar(*memory, 1);
    for (int depth = 1; depth <= kMaxNesting; ++depth) {
      nest = make(*memory, DIST_VALUE_LIST, {nest});
      assert_int_equal(nest->depth(), depth);
    }
    ValueRef deeper;
    Value* const item[] = {nest.get()};
    assert_invalid(Value::create(*memory, DIST_VALUE_LIST, item, &deeper),
                   "a list is nested 65 levels deep, but lists, tuples and dictionaries can be nested at "
                   "most 64 levels");
    // A nest of the greatest depth can still be one replica's value.
    const ValueRef spread = make(*memory, DIST_VALUE_PER_REPLICA, {nest, nest});
    assert_int_equal(spread->depth(), kMaxNesting);
    ValueRef merged;
    Value* const results[] = {nest.get(), spread->items()[1].get()};
    assert_true(merge_leaves(*memory, results, "value", &merged).ok());
    assert_int_equal(merged->depth(), kMaxNesting);
  }
  assert_int_equal(memory.live(), 0);
}

void long_lists_merge(void**) {
  constexpr std::size_t kItems = 100000;
  CountingMemory memory;
  {
    std::vector<ValueRef> results;
    for (int r = 0; r < 2; ++r) {
      std::vector<ValueRef> items;
      items.reserve(kItems);
      for (std::size_t i = 0; i < kItems; ++i) items.push_back(scalar(*memory, static_cast<float>(i)));
      results.push_back(make(*memory, DIST_VALUE_LIST, items));
    }
    ValueRef merged;
    assert_true(merge(*memory, pointers(results), "result", &merged).ok());
    assert_int_equal(merged->items().size(), kItems);
    assert_ptr_equal(merged->items()[kItems - 1]->items()[1].get(), results[1]->items()[kItems - 1].get());
  }
  assert_int_equal(memory.live(), 0);
}

void components_are_found_and_counted(void**) {
  CountingMemory memory;
  const ValueRef plain = make(*memory, DIST_VALUE_LIST, {scalar(*memory, 1)});
  ValueRef out;
  assert_true(component_of(*memory, plain.get(), LocalReplica{5}, &out).ok());
  assert_ptr_equal(out.get(), plain.get());
  assert_true(component_of(*memory, nullptr, LocalReplica{0}, &out).ok());
  assert_null(out.get());
  const ValueRef spread = make(*memory, DIST_VALUE_MIRRORED, {scalar(*memory, 1), scalar(*memory, 2)});
  const ValueRef list = make(*memory, DIST_VALUE_LIST, {plain, spread});
  assert_true(component_of(*memory, list.get(), LocalReplica{1}, &out).ok());
  assert_ptr_equal(out->items()[0].get(), plain.get());
  assert_ptr_equal(out->items()[1].get(), spread->items()[1].get());
  assert_invalid(
      component_of(*memory, list.get(), LocalReplica{2}, &out),
      "a mirrored value has 2 components, but none for replica 2: it was created for another strategy");
}

// The number of memory blocks does not depend on the number of copies, because a model has thousands of
// variables.
void a_variable_has_three_blocks_of_memory(void**) {
  CountingMemory memory;
  {
    constexpr int32_t kReplicas = 12;
    const VariableHome home{DIST_STRATEGY_MIRRORED,
                            make_counted<ReplicaNumbers>(*memory, ReplicaCount(kReplicas))};
    VariableOptions options;
    options.name = "the kernel of a layer with a long name";
    int16_t start[] = {1, 2, 3};
    const int64_t shape[] = {3};
    const std::size_t before = memory.live();
    Ref<Variable> variable;
    assert_true(
        Variable::create(*memory, home, options, {start, DIST_I16, 1, shape, nullptr}, &variable).ok());
    assert_int_equal(memory.live() - before, 3);
    assert_int_equal(variable->num_copies(), kReplicas);
    for (int32_t copy = 0; copy < kReplicas; ++copy) {
      const void* const data = variable->component(LocalReplica{copy}).data;
      assert_int_equal(reinterpret_cast<uintptr_t>(data) % 64, 0);
      assert_memory_equal(data, start, sizeof start);
      std::string name = options.name;
      if (copy > 0) name += "/replica_" + std::to_string(copy);
      assert_string_equal(variable->copy_name(copy), name.c_str());
    }
  }
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

void assignments_change_one_copy(void**) {
  CountingMemory memory;
  const int64_t shape[] = {2, 3};
  const int32_t start[] = {1, 2, 3, 4, 5, INT32_MIN};
  const int32_t columns[] = {10, 40, 20, 50, 30, 1};  // [3, 2], read as its transpose
  const int64_t transposed[] = {1, 2};
  const dist_tensor initial{const_cast<int32_t*>(start), DIST_I32, 2, shape, nullptr};
  const dist_tensor value{const_cast<int32_t*>(columns), DIST_I32, 2, shape, transposed};
  Ref<Variable> variable;
  VariableOptions options;
  options.aggregation = DIST_AGGREGATION_SUM;
  options.name = "v";
  assert_true(Variable::create(
                  *memory, {DIST_STRATEGY_MIRRORED, make_counted<ReplicaNumbers>(*memory, ReplicaCount(3))},
                  options, initial, &variable)
                  .ok());
  assert_string_equal(variable->name(), "v");
  assert_true(variable->check_assign(DIST_ASSIGN_SUB, value, "value").ok());
  variable->assign(DIST_ASSIGN_SUB, LocalReplica{1}, value);
  const int32_t less[] = {-9, -18, -27, -36, -45, INT32_MAX};  // wraps
  assert_memory_equal(variable->component(LocalReplica{1}).data, less, sizeof less);
  variable->assign(DIST_ASSIGN_ADD, LocalReplica{1}, value);
  assert_memory_equal(variable->component(LocalReplica{1}).data, start, sizeof start);
  variable->assign(DIST_ASSIGN, LocalReplica{2}, value);
  const int32_t dense[] = {10, 20, 30, 40, 50, 1};
  assert_memory_equal(variable->component(LocalReplica{2}).data, dense, sizeof dense);
  assert_memory_equal(variable->component(LocalReplica{0}).data, start, sizeof start);
  variable->assign(DIST_ASSIGN_ADD, LocalReplica{2}, variable->component(LocalReplica{2}));
  const int32_t twice[] = {20, 40, 60, 80, 100, 2};
  assert_memory_equal(variable->component(LocalReplica{2}).data, twice, sizeof twice);
  for (int32_t r = 0; r < 3; ++r)
    assert_int_equal(reinterpret_cast<uintptr_t>(variable->component(LocalReplica{r}).data) % 64, 0);
  const int64_t other_shape[] = {3, 2};
  assert_invalid(
      variable->check_assign(DIST_ASSIGN, {const_cast<int32_t*>(start), DIST_I32, 2, other_shape, nullptr},
                             "value"),
      "variable \"v\" is i32[2, 3], but value is i32[3, 2]. Both must have the same dtype and shape.");
  assert_invalid(variable->check_assign(7, initial, "value"),
                 "variable \"v\": how is 7; use DIST_ASSIGN, DIST_ASSIGN_ADD or DIST_ASSIGN_SUB");
}

// Subtraction is negation and addition. Tests all floating dtypes, with more than one block.
template <class Bits>
void check_subtraction(dist_dtype dtype, Bits one, Bits three, Bits minus_two) {
  CountingMemory memory;
  constexpr std::size_t kCount = 3000;
  std::vector<Bits> ones(kCount, one);
  std::vector<Bits> threes(kCount, three);
  const int64_t shape[] = {kCount};
  Ref<Variable> variable;
  const dist_tensor initial{ones.data(), dtype, 1, shape, nullptr};
  assert_true(Variable::create(
                  *memory, {DIST_STRATEGY_MIRRORED, make_counted<ReplicaNumbers>(*memory, ReplicaCount(1))},
                  {}, initial, &variable)
                  .ok());
  variable->assign(DIST_ASSIGN_SUB, LocalReplica{0}, {threes.data(), dtype, 1, shape, nullptr});
  const std::vector<Bits> wanted(kCount, minus_two);
  assert_memory_equal(variable->component(LocalReplica{0}).data, wanted.data(), kCount * sizeof(Bits));
}

void subtraction_is_exact_in_every_floating_dtype(void**) {
  check_subtraction<uint16_t>(DIST_F16, 0x3C00, 0x4200, 0xC000);
  check_subtraction<uint16_t>(DIST_BF16, 0x3F80, 0x4040, 0xC000);
  check_subtraction<float>(DIST_F32, 1, 3, -2);
  check_subtraction<double>(DIST_F64, 1, 3, -2);
  check_subtraction<uint64_t>(DIST_COMPLEX64, 0x3F8000003F800000u, 0x4040000040400000u, 0xC0000000C0000000u);
}

void variables_refuse_what_they_cannot_do(void**) {
  CountingMemory memory;
  int32_t number = 1;
  const dist_tensor tensor{&number, DIST_I32, 0, nullptr, nullptr};
  const VariableHome mirrored{DIST_STRATEGY_MIRRORED, make_counted<ReplicaNumbers>(*memory, ReplicaCount(2))};
  const auto before = memory.live();
  Ref<Variable> variable;
  VariableOptions options;
  options.name = "count";
  options.aggregation = DIST_AGGREGATION_MEAN;
  assert_invalid(
      Variable::create(*memory, mirrored, options, tensor, &variable),
      "variable \"count\": the MEAN of i32 values is not i32. Use a floating-point dtype, or SUM or "
      "ONLY_FIRST_REPLICA.");
  options.aggregation = dist_aggregation{DIST_AGGREGATION_ONLY_FIRST_REPLICA + 1};
  assert_invalid(Variable::create(*memory, mirrored, options, tensor, &variable),
                 "variable \"count\": aggregation is 3076; use one of DIST_AGGREGATION_...");
  assert_int_equal(memory.live(), before);
}

int deleted = 0;
void count_deletion(DLManagedTensor*) { ++deleted; }

void dlpack_tensors_come_in_and_go_out(void**) {
  CountingMemory memory;
  {
    float data[] = {0, 1, 2, 3, 4, 5, 6};
    int64_t shape[] = {3, 2};
    int64_t strides[] = {1, 3};
    DLManagedTensor managed{
        {data, {1, 0}, 2, {2, 32, 1}, shape, strides, sizeof(float)}, nullptr, count_deletion};
    deleted = 0;
    ValueRef value;
    assert_true(from_dlpack(*memory, &managed, &value).ok());
    assert_ptr_equal(value->tensor().data, data + 1);
    assert_int_equal(value->tensor().strides[1], 3);
    DLManagedTensor* out = nullptr;
    assert_true(to_dlpack(*value, &out).ok());
    value = ValueRef();
    assert_int_equal(deleted, 0);  // `out` holds it
    assert_ptr_equal(out->dl_tensor.data, data + 1);
    assert_int_equal(out->dl_tensor.strides[0], 1);
    assert_int_equal(out->dl_tensor.strides[1], 3);
    out->deleter(out);
    assert_int_equal(deleted, 1);

    managed.dl_tensor.device.device_type = 2;
    assert_int_equal(from_dlpack(*memory, &managed, &value).code(), DIST_UNIMPLEMENTED);
    managed.dl_tensor.device.device_type = 1;
    managed.dl_tensor.dtype.lanes = 4;
    assert_int_equal(from_dlpack(*memory, &managed, &value).code(), DIST_UNIMPLEMENTED);
    managed.dl_tensor.dtype.lanes = 1;
    managed.dl_tensor.ndim = DIST_MAX_NDIM + 1;
    assert_int_equal(from_dlpack(*memory, &managed, &value).code(), DIST_INVALID_ARGUMENT);
    assert_int_equal(deleted, 1);  // a failure leaves the tensor to the caller

    // The exported tensor may hold the last reference to the Memory object.
    assert_true(to_dlpack(*scalar(*memory, 5), &out).ok());
    assert_int_equal(out->dl_tensor.ndim, 0);
    out->deleter(out);
  }
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(equal_structures_merge_leaf_by_leaf),
      cmocka_unit_test(elements_of_any_size_are_aligned_and_whole),
      cmocka_unit_test(what_all_have_in_common_stays_itself),
      cmocka_unit_test(different_structures_are_named_with_their_path),
      cmocka_unit_test(leaves_of_any_kind_stand_side_by_side),
      cmocka_unit_test(lists_nest_sixty_four_deep),
      cmocka_unit_test(long_lists_merge),
      cmocka_unit_test(components_are_found_and_counted),
      cmocka_unit_test(a_variable_has_three_blocks_of_memory),
      cmocka_unit_test(assignments_change_one_copy),
      cmocka_unit_test(subtraction_is_exact_in_every_floating_dtype),
      cmocka_unit_test(variables_refuse_what_they_cannot_do),
      cmocka_unit_test(dlpack_tensors_come_in_and_go_out),
  };
  return cmocka_run_group_tests_name("value", tests, nullptr, nullptr);
}
