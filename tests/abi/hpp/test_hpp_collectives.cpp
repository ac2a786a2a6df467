// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: every collective with its options, groups, and host operators. A collective on a vector, an array
// or a tensor_list must not allocate memory.
#include "hpp_support.hpp"

#include <cstdlib>
#include <numeric>

namespace {
thread_local std::size_t allocations = 0;
}

// Not inlined, because GCC would report the pair as mismatched.
[[gnu::noinline]] void *operator new(std::size_t size) {
  ++allocations;
  void *memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr int32_t R = 3;
using dist::const_tensor;
using dist::reduce_op;
using dist::replica;
using dist::tensor;

void reductions() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    const int32_t id = replica.id();
    const std::array<int32_t, 3> mine{id, id + 1, id + 2};
    std::array<int32_t, 3> all{};
    replica.all_reduce(reduce_op::max, mine, all);
    REQUIRE(all == (std::array<int32_t, 3>{2, 3, 4}));

    std::array<int32_t, 3> at_root{};
    replica.reduce_to_root(reduce_op::sum, 1, mine, at_root);
    REQUIRE(id != 1 || at_root == (std::array<int32_t, 3>{3, 6, 9}));
    std::array<int32_t, 3> in_place = mine;
    replica.reduce_to_root(reduce_op::prod, 0, in_place, {"product"});
    REQUIRE(id != 0 || in_place == (std::array<int32_t, 3>{0, 6, 24}));
    if (id == 2)
      replica.reduce_to_root(reduce_op::sum, 2, mine, at_root);
    else
      replica.reduce_to_root(reduce_op::sum, 2, mine, dist::nothing);
    REQUIRE(id != 2 || at_root[2] == 9);

    int32_t part = 0;
    replica.reduce_scatter(reduce_op::sum, mine, tensor(&part, {1}));
    REQUIRE(part == 3 + 3 * id);

    int64_t running = id + 1;
    replica.scan(reduce_op::sum, DIST_SCAN_INCLUSIVE, tensor(&running, {}));
    REQUIRE(running == (id + 1) * (id + 2) / 2);
    const double given = id + 1;
    double before = -1;
    replica.scan(reduce_op::prod, DIST_SCAN_EXCLUSIVE, const_tensor(&given, {}), tensor(&before, {}));
    REQUIRE(before == (id == 2 ? 2 : 1));
  });
}

void gathers() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    const int32_t id = replica.id();
    const std::vector<uint8_t> mine(static_cast<std::size_t>(id + 1), static_cast<uint8_t>(id));
    const std::vector<uint8_t> expected{0, 1, 1, 2, 2, 2};
    std::vector<uint8_t> all(6);
    replica.all_gather(mine, all);
    REQUIRE(all == expected);
    std::vector<uint8_t> joined(6);
    if (id == 2)
      replica.gather_to_root(2, mine, joined);
    else
      replica.gather_to_root(2, mine, dist::nothing);
    REQUIRE(id != 2 || joined == expected);

    std::vector<uint8_t> part(static_cast<std::size_t>(id + 1));
    if (id == 0)
      replica.scatter_from_root(0, all, part);
    else
      replica.scatter_from_root(0, dist::nothing, part);
    REQUIRE(part == mine);

    // Columns, selected by the axis: row r of the result contains column r of all replicas.
    const std::array<int32_t, 6> table{10 * id, 10 * id + 1, 10 * id + 2, -id, -id - 1, -id - 2};
    std::array<int32_t, 6> columns{};
    dist::collective_options along;
    along.axis = -1;
    replica.all_to_all(const_tensor(table.data(), {2, 3}), tensor(columns.data(), {2, 3}), along);
    REQUIRE(columns == (std::array<int32_t, 6>{id, 10 + id, 20 + id, -id, -id - 1, -id - 2}));

    // Uneven pieces: all rows go to replica 1.
    const std::array<int64_t, R> splits{0, 2, 0};
    const std::array<int32_t, 2> pair{id, -id};
    std::vector<int32_t> got(id == 1 ? 6 : 0);
    dist::collective_options uneven;
    uneven.splits = splits.data();
    replica.all_to_all(pair, got, uneven);
    REQUIRE(id != 1 || got == (std::vector<int32_t>{0, 0, 1, -1, 2, -2}));

    int32_t shared = id == 1 ? 7 : 0;
    replica.broadcast(1, tensor(&shared, {}));
    REQUIRE(shared == 7);
    bool flag = false;
    const bool yes = true;
    replica.broadcast(0, id == 0 ? const_tensor(&yes, {}) : tensor(&flag, {}), tensor(&flag, {}),
                      {"flag", -1});
    REQUIRE(flag);

    const int32_t token = id;
    int32_t received = -1;
    replica.permute((id + 1) % R, (id + R - 1) % R, const_tensor(&token, {}), tensor(&received, {}));
    REQUIRE(received == (id + R - 1) % R);
    replica.all_reduce(reduce_op::sum, columns, {nullptr, -1});
    replica.all_reduce(reduce_op::sum, columns, {});
    replica.barrier({"end"});
  });
}

void lists_in_one_collective() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    const auto id = static_cast<float>(replica.id());
    std::array<float, 2> weights{id, 1};
    std::array<double, 1> bias{1};
    replica.all_reduce(reduce_op::sum, {tensor(weights), tensor(bias)});
    REQUIRE(weights[0] == 3 && weights[1] == 3 && bias[0] == 3);

    const dist::tensor_list both{tensor(weights), tensor(bias)};
    const dist::tensor_list copy = both;  // its views refer to its own shapes
    replica.all_reduce(reduce_op::max, copy);
    REQUIRE(copy.size() == 2 && copy[1].elements() == 1 && weights[0] == 3);

    std::array<float, 6> all_weights{};
    std::array<double, 3> all_bias{};
    replica.all_gather(both, std::vector<tensor>{tensor(all_weights), tensor(all_bias)});
    REQUIRE(all_weights[5] == 3 && all_bias[2] == 3);
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, replica.all_gather(both, all_weights));

    std::array<int64_t, 1> third{1};
    replica.all_reduce(reduce_op::sum, {weights, bias, third}, {weights, bias, third}, {"three"});
    REQUIRE(weights[0] == 9 && bias[0] == 9 && third[0] == 3);

    // Every second one of four numbers.
    std::array<int32_t, 4> numbers{1, 2, 3, 4};
    replica.all_reduce(reduce_op::sum, tensor(numbers.data(), {2}).strided({2}));
    REQUIRE(numbers == (std::array<int32_t, 4>{3, 2, 9, 4}));
    // 1.0 in bfloat16, which C++17 does not have.
    uint16_t half = 0x3f80;
    replica.all_reduce(reduce_op::sum, tensor(&half, DIST_BF16, {}));
    REQUIRE(half == 0x4040);
    std::complex<float> turn(0, 1);
    replica.all_reduce(reduce_op::prod, tensor(&turn, {}));
    REQUIRE(turn == std::complex<float>(0, -1));
  });
}

void weights_contributions_numerics() {
  const dist::strategy strategy(2);
  strategy.run([](replica replica) {
    const double id = replica.id();
    // Replica 0 contributes one tensor, and replica 1 two.
    std::array<float, 1> first{1e8F}, second{-1e8F}, sum{};
    const double weights[2] = {1, 3};
    dist::collective_options options;
    options.numerics = DIST_NUMERICS_REPRODUCIBLE;
    options.contributions = id == 0 ? 1 : 2;
    std::array<float, 1> small{0.5F};
    if (id == 0)
      replica.all_reduce(reduce_op::sum, small, sum, options);
    else
      replica.all_reduce(reduce_op::sum, {tensor(first), tensor(second)}, sum, options);
    REQUIRE(sum[0] == 0.5F);

    dist::collective_options weighted;
    weighted.weights = weights + replica.id();
    std::array<double, 1> number{id};
    replica.all_reduce(reduce_op::mean, number, weighted);
    REQUIRE(number[0] == 0.75);
    options.contributions = 2;
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, replica.all_reduce(reduce_op::sum, small, sum, options));
  });
}

// Returns the last of two numbers that is not 0, so the order matters.
struct last_one {
  int32_t none;
  int32_t operator()(int32_t before, int32_t next) const noexcept { return next == none ? before : next; }
};

void operators_of_the_host() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    const int32_t id = replica.id();
    std::array<int32_t, 3> mine{};
    mine[static_cast<std::size_t>(id)] = id + 1;
    const last_one op{0};
    replica.all_reduce(dist::reduce_with<int32_t>(op), mine);
    REQUIRE(mine == (std::array<int32_t, 3>{1, 2, 3}));

    std::array<double, 2> values{id + 1.0, 2};
    replica.all_reduce(dist::reduce_with<double>([](double a, double b) noexcept { return a * b; }), values);
    REQUIRE(values[0] == 6 && values[1] == 8);
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, replica.all_reduce(dist::reduce_with<int32_t>(op), values));

    std::array<uint8_t, 2> bits{static_cast<uint8_t>(1 << id), 0};
    auto any = [](void *acc, const void *in, int64_t count, dist_dtype) noexcept {
      for (int64_t i = 0; i < count; ++i)
        static_cast<uint8_t *>(acc)[i] |= static_cast<const uint8_t *>(in)[i];
    };
    replica.scan(dist::reduce_with(any), DIST_SCAN_INCLUSIVE, bits);
    REQUIRE(bits[0] == (2 << id) - 1);
  });
}

struct located {
  double value;
  int64_t where;
};

void operators_on_structs() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    const int32_t id = replica.id();
    std::array<located, 1000> mine{};
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = {i % R == static_cast<std::size_t>(id) ? 1.0 : 0.0, id};
    const auto largest = [](const located &a, const located &b) noexcept {
      return b.value > a.value ? b : a;
    };
    auto *const bytes = reinterpret_cast<uint8_t *>(mine.data());
    const tensor all(bytes, sizeof mine), half(bytes, sizeof(located) / 2);
    replica.all_reduce(dist::reduce_with<located>(largest), all);
    for (std::size_t i = 0; i < mine.size(); ++i)
      REQUIRE(mine[i].value == 1 && mine[i].where == static_cast<int64_t>(i % R));
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, replica.all_reduce(dist::reduce_with<located>(largest), half));
  });
}

void groups_meet_without_the_others() {
  const dist::strategy strategy(4);
  const dist::group even(strategy, {0, 2}), odd(strategy, {1, 3});
  assert_int_equal(even.size(), 2);
  assert_int_equal(odd.rank(3), 1);
  assert_int_equal(odd.rank(2), -1);
  strategy.run([&](replica replica) {
    int32_t sum = replica.id();
    replica.all_reduce(reduce_op::sum, tensor(&sum, {}), {"pairs", 0, replica.id() % 2 == 0 ? even : odd});
    REQUIRE(sum == (replica.id() % 2 == 0 ? 2 : 4));
  });
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::group(strategy, {2, 0}));
  dist::group moved = dist::group(strategy, {3});
  moved = dist::group(strategy, {0, 1, 2});
  assert_int_equal(moved.size(), 3);
}

void nests() {
  const dist::strategy strategy(2);
  strategy.run([](replica replica) {
    const dist::strategy_ref owner = replica.strategy();
    const float id = static_cast<float>(replica.id());
    const dist::value nest = dist::value::dict(owner, {{"b", scalar(owner, id)}, {"a", scalar(owner, 1.0F)}});
    const dist::value sums = replica.all_reduce_value(reduce_op::sum, nest, {"nest"});
    REQUIRE(scalar_of<float>(sums["a"]) == 2 && scalar_of<float>(sums["b"]) == 1);
    const std::vector<float> row(static_cast<std::size_t>(replica.id() + 1), id);
    REQUIRE(row_of<float>(replica.all_gather_value(dist::value(owner, row))) ==
            (std::vector<float>{0, 1, 1}));
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT,
                  replica.all_reduce_value(reduce_op::sum, dist::value::text(owner, "a")));
  });
}

void disagreement_is_reported() {
  const dist::strategy strategy(R);
  try {
    strategy.run([](replica replica) {
      std::vector<float> data(replica.id() == 1 ? 4 : 3);
      replica.all_reduce(reduce_op::sum, data, {"loss", 0});
    });
    fail_msg("%s", "nobody noticed");
  } catch (const dist::error &failure) {
    assert_int_equal(failure.code(), DIST_INVALID_ARGUMENT);
    assert_int_equal(failure.replica(), 1);
    assert_int_equal(failure.worker(), 0);
    assert_int_equal(failure.logical_device(), -1);
    assert_int_equal(failure.group(), 0);
    assert_int_equal(failure.collective(), DIST_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(failure.sequence(), 1);
    assert_string_equal(failure.tag().c_str(), "loss");
    assert_false(failure.expected().empty() || failure.received().empty() || failure.hint().empty());
  }
}

void loops_throw() {
  const dist::strategy strategy(2);
  std::vector<int> seen(1000);
  strategy.run([&](replica replica) {
    if (replica.id() != 0) return;
    replica.parallel_for(0, 1000, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
  });
  for (const int times : seen) assert_int_equal(times, 1);
  const auto failing = [](replica replica) {
    replica.parallel_for(0, 100, 1, [](int64_t, int64_t end) {
      if (end > 50) throw own_error("past the middle");
    });
  };
  REQUIRE_OWN_ERROR("past the middle", strategy.run(failing));
}

void collectives_allocate_nothing() {
  const dist::strategy strategy(2);
  std::vector<float> data[2] = {std::vector<float>(100), std::vector<float>(100)};
  std::vector<float> parts[2] = {std::vector<float>(50), std::vector<float>(50)};
  std::array<double, 4> more[2]{};
  std::size_t made[2] = {1, 1};
  strategy.run([&](replica replica) {
    const auto id = static_cast<std::size_t>(replica.id());
    const dist::tensor_list list{tensor(data[id]), tensor(more[id])};
    const auto step = [&] {
      replica.all_reduce(reduce_op::sum, data[id], {"gradients", 0});
      replica.all_reduce(reduce_op::mean, more[id]);
      replica.all_reduce(reduce_op::sum, tensor(data[id].data(), {10, 10}));
      replica.all_reduce(reduce_op::sum, list);
      replica.reduce_scatter(reduce_op::sum, data[id], parts[id]);
      replica.all_gather(parts[id], data[id]);
      replica.broadcast(0, list, {"list"});
      replica.all_reduce(dist::reduce_with<float>([](float a, float) noexcept { return a; }), data[id]);
      replica.barrier();
    };
    step();
    const std::size_t before = allocations;
    for (int i = 0; i < 10; ++i) step();
    made[id] = allocations - before;
  });
  assert_int_equal(made[0], 0);
  assert_int_equal(made[1], 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(reductions),
      HPP_TEST(gathers),
      HPP_TEST(lists_in_one_collective),
      HPP_TEST(weights_contributions_numerics),
      HPP_TEST(operators_of_the_host),
      HPP_TEST(operators_on_structs),
      HPP_TEST(groups_meet_without_the_others),
      HPP_TEST(nests),
      HPP_TEST(disagreement_is_reported),
      HPP_TEST(loops_throw),
      HPP_TEST(collectives_allocate_nothing),
  };
  return cmocka_run_group_tests_name("dist.hpp: collectives", tests, nullptr, nullptr);
}
