// SPDX-License-Identifier: Apache-2.0
// Rejects every single allocation of merging, reducing and assigning in turn. Each time, the result is
// std::bad_alloc (RESOURCE_EXHAUSTED at the C ABI), nothing leaks, and the inputs do not change.
#include <array>
#include <cstring>
#include <new>
#include <vector>

#include "core/cross_replica/assign.hpp"
#include "core/cross_replica/gather.hpp"
#include "core/cross_replica/local_results.hpp"
#include "core/cross_replica/reduce.hpp"
#include "core/value/dlpack.hpp"
#include "tests/unit/counting_memory.hpp"

// Last: its macro fail() would hide dist::fail().
#include <setjmp.h>
#include <stdarg.h>

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr int32_t kReplicas = 3;

class Fixture {
 public:
  Fixture() : arena_(*memory_, 2) {}
  Memory& memory() { return *memory_; }
  CrossReplica context() { return {&*memory_, ReplicaCount(kReplicas), &arena_}; }

  ValueRef tensor(dist_dtype dtype, std::vector<int64_t> shape, bool gaps = false) {
    static const std::array<std::byte, 4096> kZeros{};
    std::vector<int64_t> strides(shape.size(), 1);  // all rows are at the same address
    const dist_tensor view{const_cast<std::byte*>(kZeros.data()), dtype, static_cast<int32_t>(shape.size()),
                           shape.data(), gaps ? strides.data() : nullptr};
    ValueRef value;
    if (gaps) {
      assert_true(Value::wrap_tensor(memory(), view, nullptr, nullptr, &value).ok());
    } else {
      assert_true(Value::copy_tensor(memory(), view, &value).ok());
    }
    return value;
  }
  ValueRef of(dist_value_kind kind, const std::vector<ValueRef>& items) {
    std::vector<Value*> pointers;
    for (const ValueRef& item : items) pointers.push_back(item.get());
    ValueRef value;
    assert_true(Value::create(memory(), kind, pointers, &value).ok());
    return value;
  }
  ValueRef spread(dist_dtype dtype, const std::vector<int64_t>& shape, bool gaps = false) {
    std::vector<ValueRef> items;
    for (int32_t r = 0; r < kReplicas; ++r) items.push_back(tensor(dtype, shape, gaps));
    return of(DIST_VALUE_PER_REPLICA, items);
  }

  // Runs body, which must succeed finally, and grants one more allocation each time.
  template <class Body>
  void refuse_each(const Body& body) {
    assert_true(body().ok());  // allocate what is made once and kept (oneTBB's arena)
    const std::size_t before = memory_.live();
    int refusals = 0;
    for (long k = 0;; ++k) {
      memory_.refuse(k);
      bool thrown = false;
      try {
        const Status status = body();
        assert_true(status.ok());
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      memory_.refuse(-1);
      assert_int_equal(memory_.live(), before);
      assert_int_equal(memory_.refused(), thrown);
      if (!thrown) break;
      ++refusals;
    }
    assert_true(refusals > 0);
    assert_int_equal(memory_.mistakes(), 0);
  }

 private:
  CountingMemory memory_;
  Arena arena_;
};

void merging(void**) {
  Fixture f;
  std::vector<ValueRef> results;
  std::vector<Value*> pointers;
  const char* const keys[] = {"one", "a key that is too long to be kept inside a string object"};
  for (int32_t r = 0; r < kReplicas; ++r) {
    const ValueRef list = f.of(DIST_VALUE_LIST, {f.tensor(DIST_F32, {2}), f.tensor(DIST_I8, {})});
    Value* const items[] = {list.get(), list->items()[0].get()};
    ValueRef dict;
    assert_true(Value::create_dict(f.memory(), keys, items, &dict).ok());
    results.push_back(dict);
    pointers.push_back(dict.get());
  }
  f.refuse_each([&] {
    ValueRef out;
    return merge(f.memory(), pointers, "result", &out);
  });
  ValueRef merged;
  assert_true(merge(f.memory(), pointers, "result", &merged).ok());
  f.refuse_each([&] {
    ValueRef out;
    return component_of(f.memory(), merged.get(), LocalReplica{1}, &out);
  });
}

void reducing(void**) {
  Fixture f;
  const ValueRef inside_out =
      f.of(DIST_VALUE_PER_REPLICA, {f.of(DIST_VALUE_LIST, {f.tensor(DIST_F64, {3})}),
                                    f.of(DIST_VALUE_LIST, {f.tensor(DIST_F64, {3})}),
                                    f.of(DIST_VALUE_LIST, {f.tensor(DIST_F64, {3})})});
  const ValueRef nest =
      f.of(DIST_VALUE_LIST, {f.spread(DIST_F32, {4}), f.spread(DIST_BF16, {2, 3}, true), inside_out});
  f.refuse_each([&] {
    ValueRef out;
    return reduce(f.context(), DIST_REDUCE_MEAN, *nest, {}, &out);
  });
  const int32_t axis = 0;
  f.refuse_each([&] {
    ValueRef out;
    return reduce(f.context(), DIST_REDUCE_SUM, *nest->items()[1], {&axis, 1}, &out);
  });
  // Large enough for the path that uses oneTBB.
  const int64_t n = 1 << 10;
  const ValueRef large = f.spread(DIST_I8, {n, n}, true);
  f.refuse_each([&] {
    ValueRef out;
    return reduce(f.context(), DIST_REDUCE_SUM, *large, {}, &out);
  });
}

void reducing_batches(void**) {
  Fixture f;
  const ValueRef a = f.spread(DIST_F32, {4});
  const ValueRef b = f.spread(DIST_F16, {5}, true);
  const ValueRef c = f.spread(DIST_I64, {});
  Value* const values[] = {a.get(), b.get(), c.get()};
  const Destination destinations[] = {
      {nullptr, nullptr, nullptr, true}, {nullptr, a.get()}, {nullptr, nullptr, "replica:1"}};
  f.refuse_each([&] {
    ValueRef outs[3];
    const auto nothing_written = [&] { return !outs[0] && !outs[1] && !outs[2]; };
    try {
      return reduce_to(f.context(), ReduceRules::kBatch, DIST_REDUCE_SUM, values, destinations, outs);
    } catch (const std::bad_alloc&) {
      assert_true(nothing_written());
      throw;
    }
  });
}

void gathering(void**) {
  Fixture f;
  const ValueRef a = f.spread(DIST_F32, {4, 2}, true);
  f.refuse_each([&] {
    ValueRef out;
    return gather(f.context(), *a, 1, &out);
  });
}

void changing_variables(void**) {
  Fixture f;
  const ValueRef value = f.spread(DIST_F32, {4});
  const VariableHome home{DIST_STRATEGY_MIRRORED,
                          make_counted<ReplicaNumbers>(f.memory(), ReplicaCount(kReplicas))};
  VariableOptions options;
  options.aggregation = DIST_AGGREGATION_SUM;
  options.name = "a name that is too long to be kept inside a string object";
  f.refuse_each([&] {
    Ref<Variable> made;
    return Variable::create(f.memory(), home, options, value->items()[0]->tensor(), &made);
  });
  Ref<Variable> variable;
  assert_true(Variable::create(f.memory(), home, options, value->items()[0]->tensor(), &variable).ok());
  f.refuse_each([&] { return assign(f.context(), *variable, DIST_ASSIGN_ADD, *value); });
  f.refuse_each([&] { return merged_assign(f.context(), *variable, DIST_ASSIGN, *value); });
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  Ref<Variable> apart;
  assert_true(Variable::create(f.memory(), home, options, value->items()[0]->tensor(), &apart).ok());
  f.refuse_each([&] {
    ValueRef sum;
    return read(f.context(), *apart, &sum);
  });
  f.refuse_each([&] { return assign(f.context(), *apart, DIST_ASSIGN, *value->items()[0]); });
  const ValueRef handle = Value::of_variable(*variable);
  f.refuse_each([&] {
    ValueRef list;
    return local_results(f.context(), *handle, &list);
  });
  f.refuse_each([&] {
    DLManagedTensor* managed = nullptr;
    DIST_TRY(to_dlpack(*handle, &managed));
    ValueRef back;
    try {
      return from_dlpack(f.memory(), managed, &back);
    } catch (const std::bad_alloc&) {
      managed->deleter(managed);  // the caller still owns it
      throw;
    }
  });
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(merging),   cmocka_unit_test(reducing),           cmocka_unit_test(reducing_batches),
      cmocka_unit_test(gathering), cmocka_unit_test(changing_variables),
  };
  return cmocka_run_group_tests_name("reduce_alloc", tests, nullptr, nullptr);
}
