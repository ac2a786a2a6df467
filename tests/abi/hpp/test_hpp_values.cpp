// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: values and nested values, reductions and gathering in the cross-replica context, cross-device
// operations, and host functions that replace them.
#include <dist/tf.hpp>
#include "hpp_support.hpp"
#include "tests/abi/dlpack.h"

namespace {

using dist::const_tensor;
using dist::reduce_op;
using dist::tensor;
using dist::value;

value parts_of(const dist::strategy &strategy, float first, float second) {
  return value::per_replica(strategy, {scalar(strategy, first), scalar(strategy, second)});
}

void every_kind() {
  const dist::strategy strategy(2);
  const value one = scalar(strategy, 1.0F), two = scalar(strategy, 2.0F);
  const value list = value::list(strategy, {one, two, value::none(strategy)});
  assert_int_equal(list.kind(), DIST_VALUE_LIST);
  assert_int_equal(list.size(), 3);
  assert_true(list[1] == two && list[1] != one);
  assert_int_equal(list[2].kind(), DIST_VALUE_NONE);
  assert_int_equal(value::tuple(strategy, {one}).kind(), DIST_VALUE_TUPLE);
  assert_int_equal(value::mirrored(strategy, {one, one}).kind(), DIST_VALUE_MIRRORED);
  const value dict = value::dict(strategy, {{"b", one}, {"a", value::text(strategy, "words")}});
  assert_string_equal(dict.key(0), "a");
  assert_string_equal(dict["a"].text(), "words");
  assert_null(dict.key(2));
  assert_null(one.text());
  REQUIRE_ERROR(DIST_NOT_FOUND, dict["c"]);
  REQUIRE_ERROR(DIST_OUT_OF_RANGE, list[3]);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, list.tensor());
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, value::per_replica(strategy, {one}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, one.tensor().data<double>());

  const std::vector<float> rows{1, 2, 3, 4};
  const std::vector<int64_t> indices{0, 5}, dense{9, 2};
  const value slices = value::composite(
      strategy, DIST_VALUE_INDEXED_SLICES,
      {value(strategy, const_tensor(rows.data(), {2, 2})), value(strategy, indices), value(strategy, dense)});
  assert_int_equal(slices.kind(), DIST_VALUE_INDEXED_SLICES);
  assert_string_equal(value::list(strategy, {one, value::none(strategy)}).describe().c_str(),
                      "[f32 1, None]");
  assert_false(static_cast<bool>(value()));

  value copy = list, moved = std::move(copy);
  copy = moved;
  assert_true(copy == list && value::share(list.get()) == list);
}

template <class... Index>
bool all_are(const value &list, const value &item, Index... index) {
  return ((list[index] == item) && ...);
}

void items_by_number_and_key() {
  const dist::strategy strategy(1);
  const value one = scalar(strategy, 1.0F), two = scalar(strategy, 2.0F);
  const value list = value::list(strategy, {one, two});
  assert_true(list[0] == one && list[0U] == one && list[0L] == one && list[0UL] == one && list[0LL] == one);
  assert_true(all_are(list, two, int8_t{1}, uint8_t{1}, int16_t{1}, uint16_t{1}, int32_t{1}, uint32_t{1}));
  assert_true(all_are(list, two, int64_t{1}, uint64_t{1}, std::size_t{1}, std::ptrdiff_t{1}));
  assert_string_equal(REQUIRE_ERROR(DIST_OUT_OF_RANGE, list[-1]).c_str(), "the value has no item -1");
  REQUIRE_ERROR(DIST_OUT_OF_RANGE, list[SIZE_MAX]);
  const int64_t shape[] = {3, 5};
  assert_int_equal(dist::num_elements({nullptr, DIST_F16, 2, shape, nullptr}), 15);
  assert_int_equal(dist::dtype_size(DIST_F16), 2);

  const value dict = value::dict(strategy, {{"0", one}, {"loss", two}});
  const char *pointer = "loss";
  const std::string text = pointer;
  assert_true(
      all_are(dict, two, "loss", pointer, text, std::string_view(text), std::string_view("losses", 4)));
  assert_true(dict["0"] == one && dict[0] == one);
  pointer = nullptr;
  REQUIRE_ERROR(DIST_NOT_FOUND, dict[pointer]);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dict[std::string_view("loss\0", 5)]);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dict[std::string("loss\0", 5)]);
}

void memory_of_the_host() {
  const dist::strategy strategy(2);
  auto data = std::make_shared<std::vector<double>>(std::vector<double>{1, 2});
  {
    const value held = value::wrap(strategy, *data, data);
    const value also = value::list(strategy, {held});
    assert_int_equal(data.use_count(), 2);
    assert_ptr_equal(held.tensor().data<double>(), data->data());
  }
  assert_int_equal(data.use_count(), 1);
  const value borrowed = value::wrap(strategy, *data);
  data->at(0) = 5;
  assert_true(row_of<double>(borrowed)[0] == 5);
  int64_t number = 0;
  const tensor negative(&number, {-1});
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, value::wrap(strategy, negative, data));
  assert_int_equal(data.use_count(), 1);

  auto owned = std::make_unique<std::shared_ptr<std::vector<double>>>(data);
  {
    const value object = value::object(strategy, std::move(owned));
    assert_int_equal(data.use_count(), 2);
    assert_true(*object.object<std::shared_ptr<std::vector<double>>>() == data);
    assert_ptr_equal(value::object(strategy, &number).object(), &number);
  }
  assert_int_equal(data.use_count(), 1);
}

void dlpack() {
  const dist::strategy strategy(1);
  const value shared = row<float>(strategy, {1, 2, 3});
  DLManagedTensor *managed = shared.to_dlpack();
  const value back = value::from_dlpack(strategy, managed);
  assert_ptr_equal(back.tensor().data<float>(), shared.tensor().data<float>());
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, value::none(strategy).to_dlpack());
  auto *again = reinterpret_cast<DLManagedTensor *>(back.to_dlpack());
  assert_int_equal(again->tensor.shape[0], 3);
  again->deleter(again);
}

void reductions_from_outside() {
  const dist::strategy strategy(2);
  const value parts = parts_of(strategy, 1.5F, 2.5F);
  assert_true(scalar_of<float>(dist::reduce(strategy, reduce_op::sum, parts)) == 4);
  assert_true(scalar_of<float>(strategy.reduce(reduce_op::mean, parts)) == 2);
  const value rows =
      value::per_replica(strategy, {row<float>(strategy, {1, 2, 3}), row<float>(strategy, {6})});
  assert_true(scalar_of<float>(strategy.reduce(reduce_op::mean, rows, {0})) == 3);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.reduce(reduce_op::mean, rows));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.reduce(reduce_op::max, parts));
  assert_true(row_of<float>(strategy.gather(rows, 0)) == (std::vector<float>{1, 2, 3, 6}));

  const value everywhere = strategy.reduce_to(reduce_op::sum, parts, {});
  assert_int_equal(everywhere.kind(), DIST_VALUE_MIRRORED);
  assert_int_equal(strategy.reduce_to(reduce_op::sum, parts, "CPU:1").kind(), DIST_VALUE_TENSOR);
  const std::vector<float> zero{0};
  const dist::variable variable(strategy, zero, "w");
  const std::vector<value> both =
      strategy.batch_reduce_to(reduce_op::mean, {{parts, variable}, {everywhere, parts}});
  assert_int_equal(both.size(), 2);
  assert_true(scalar_of<float>(both[0][1]) == 2 && scalar_of<float>(both[1][0]) == 4);
  assert_int_equal(strategy.batch_reduce_to(reduce_op::sum, {{parts, {}}})[0].kind(), DIST_VALUE_MIRRORED);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.batch_reduce_to(reduce_op::sum, {{parts, {}}, {rows, {}}}));

  dist::communication_options how;
  how.bytes_per_pack = 1;
  assert_true(scalar_of<float>(strategy.reduce_to(reduce_op::sum, parts, "CPU:1", how)) == 4);
  assert_true(scalar_of<float>(strategy.batch_reduce_to(reduce_op::sum, {{parts, "CPU:1"}}, how)[0]) == 4);
  how.timeout_ns = -2;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.reduce_to(reduce_op::sum, parts, "CPU:1", how));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.batch_reduce_to(reduce_op::sum, {{parts, "CPU:1"}}, how));

  const value copies = strategy.broadcast_to(scalar(strategy, 3.0F), {});
  assert_int_equal(copies.kind(), DIST_VALUE_MIRRORED);
  const value results = strategy.local_results(parts);
  assert_int_equal(results.size(), 2);
  assert_true(results[1] == parts[1]);
  assert_string_equal(strategy.destination_device("CPU:1").c_str(), strategy.device(1));
  REQUIRE_ERROR(DIST_NOT_FOUND, strategy.destination_device("replica:7"));
}

void cross_device_operations() {
  const dist::strategy strategy(2);
  const value parts = parts_of(strategy, 3, 4);
  const dist::cross_device plain(DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE);
  assert_int_equal(plain.kind(), DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE);
  assert_null(plain.device());
  assert_true(scalar_of<float>(plain.reduce(reduce_op::sum, parts, "CPU:0")) == 7);
  assert_true(scalar_of<float>(plain.batch_reduce(reduce_op::mean, {{parts, "CPU:0"}})[0]) == 3.5F);
  assert_int_equal(plain.broadcast(scalar(strategy, 1.0F), parts).size(), 2);
  const value rows =
      value::per_replica(strategy, {row<int32_t>(strategy, {1}), row<int32_t>(strategy, {2, 3})});
  assert_true(row_of<int32_t>(plain.gather(rows, 0)) == (std::vector<int32_t>{1, 2, 3}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, plain.reduce(reduce_op::sum, parts, {}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::cross_device(dist_cross_device_kind{99}));

  dist::cross_device one = dist::cross_device::reduction_to_one_device("CPU:0");
  assert_string_equal(one.device(), dist::canonical_device("CPU:0").c_str());
  const auto largest = [](void *acc, const void *in, int64_t count, dist_dtype) noexcept {
    auto *left = static_cast<float *>(acc);
    const auto *right = static_cast<const float *>(in);
    for (int64_t i = 0; i < count; ++i) left[i] = left[i] < right[i] ? right[i] : left[i];
  };
  one = dist::cross_device::reduction_to_one_device(nullptr, dist::reduce_with(largest));
  assert_true(scalar_of<float>(one.reduce(reduce_op::sum, parts, "CPU:0")) == 4);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::cross_device::reduction_to_one_device(nullptr, reduce_op::sum));
}

void sum_of(reduce_op op, const dist_tensor *components, std::size_t n, dist_tensor &out) {
  if (op != reduce_op::sum) throw own_error("sums alone");
  auto *sum = tensor(out).data<float>();
  *sum = 0;
  for (std::size_t i = 0; i < n; ++i) *sum += 10 * *const_tensor(components[i]).data<float>();
}

void functions_of_the_host() {
  dist::cross_device_functions functions;
  functions.reduce = sum_of;
  functions.gather = [](const dist_tensor *, std::size_t, int32_t, dist_tensor &) {
    throw own_error("no gathering here");
  };
  const dist::cross_device host(functions);
  assert_int_equal(host.kind(), DIST_CROSS_DEVICE_HOST);
  const dist::strategy plain(2);
  const value parts = parts_of(plain, 1, 2);
  const value rows = value::per_replica(plain, {row<float>(plain, {1}), row<float>(plain, {2})});
  assert_true(scalar_of<float>(host.reduce(reduce_op::sum, parts, "CPU:0")) == 30);
  REQUIRE_OWN_ERROR("sums alone", host.reduce(reduce_op::mean, parts, "CPU:0"));
  REQUIRE_OWN_ERROR("no gathering here", host.gather(rows, 0));
  functions.reduce = nullptr;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::cross_device(functions));

  dist::strategy_functions own;
  own.reduce = sum_of;
  own.gather = functions.gather;
  own.broadcast = [](const dist_tensor &from, dist_tensor *copies, std::size_t n) {
    for (std::size_t r = 0; r < n; ++r)
      *tensor(copies[r]).data<float>() = *const_tensor(from).data<float>() + static_cast<float>(r);
  };
  own.copy_of_replica = [](int32_t replica_id, int32_t) { return replica_id; };
  own.device_of_replica = [](int32_t replica_id) { return replica_id == 0 ? "CPU:4" : "CPU:2"; };
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist::strategy strategy(options, own);
  assert_string_equal(strategy.device(1), dist::canonical_device("CPU:2").c_str());
  const value mine = parts_of(strategy, 1, 2);
  assert_true(scalar_of<float>(strategy.reduce(reduce_op::sum, mine)) == 30);
  assert_true(scalar_of<float>(strategy.broadcast_to(scalar(strategy, 1.0F), {})[1]) == 2);
  dist::strategy moved = std::move(strategy);
  REQUIRE_OWN_ERROR("sums alone", moved.reduce(reduce_op::mean, mine));
  const value own_rows = value::per_replica(moved, {row<float>(moved, {1}), row<float>(moved, {2})});
  REQUIRE_OWN_ERROR("no gathering here", moved.gather(own_rows, 0));
  own.device_of_replica = [](int32_t) -> const char * { throw own_error("where am I?"); };
  REQUIRE_OWN_ERROR("where am I?", dist::strategy(options, own));
}

void values_from_functions() {
  const dist::strategy strategy(3);
  const value made = strategy.values_from_function([&](const dist_value_context &context) {
    return scalar(strategy, context.replica_id_in_sync_group * 2);
  });
  assert_int_equal(made.size(), 3);
  assert_int_equal(scalar_of<int32_t>(made[2]), 4);
  const auto throws = [](const dist_value_context &context) -> value {
    if (context.replica_id_in_sync_group == 1) throw own_error("none for replica 1");
    return {};
  };
  REQUIRE_OWN_ERROR("none for replica 1", strategy.values_from_function(throws));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(every_kind),
      HPP_TEST(items_by_number_and_key),
      HPP_TEST(memory_of_the_host),
      HPP_TEST(dlpack),
      HPP_TEST(reductions_from_outside),
      HPP_TEST(cross_device_operations),
      HPP_TEST(functions_of_the_host),
      HPP_TEST(values_from_functions),
  };
  return cmocka_run_group_tests_name("dist.hpp: values", tests, nullptr, nullptr);
}
