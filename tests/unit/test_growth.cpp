// SPDX-License-Identifier: Apache-2.0
// The cost of a round with 8 to 256 members, in counts that do not depend on time: slots that members
// compare, visits of the wait graph, operator applications, pieces of an exchange, and reports on members
// that agree.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/collective/exchange.hpp"
#include "core/comm/group-inl.hpp"
#include "core/kernel/fp_environment.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr int kSizes[] = {8, 16, 32, 64, 128, 256};

struct CountingSync : OsSync {
  static inline std::atomic<int64_t> slots{0};

  static void reading(const BasicSlot<CountingSync>&) noexcept { ++slots; }
  template <class T>
  static void reading(const T&) noexcept {}
};

// Each member of an oversubscribed group does this number of rounds, with an exchange if `exchange` is true.
bool make_rounds(BasicGroup<CountingSync>& group, int me, int rounds, bool exchange) {
  for (int i = 0; i < rounds; ++i) {
    close_digest(group.draft(me), nullptr);
    if (!group.arrive(me, -1).ok()) return false;
    if (!exchange) continue;
    if (!group.enter(me) || !group.finish(me).ok()) return false;
  }
  return true;
}

// Members sleep at once, so that each takes the slowest path.
void slots_are_compared_once(void**) {
  constexpr int kRounds = 5;
  for (const int size : kSizes) {
    for (const bool exchange : {false, true}) {
      Memory& memory = *Memory::create({});
      const Host host{};
      WaitPolicy policy;
      policy.oversubscribed = true;
      policy.spin_ns = 0;
      {
        BasicGroup<CountingSync> group(memory, size, policy, host, -1);
        group.begin_run({});
        CountingSync::slots = 0;
        std::atomic<int> good{0};
        std::vector<std::thread> members;
        for (int me = 0; me < size; ++me)
          members.emplace_back([&, me] { good += make_rounds(group, me, kRounds, exchange) ? 1 : 0; });
        for (std::thread& member : members) member.join();
        assert_int_equal(good.load(), size);
      }
      memory.release();
      const int64_t compared = CountingSync::slots / kRounds;
      std::printf("# %d members, %s: %lld slots compared in a round\n", size,
                  exchange ? "exchange" : "barrier", static_cast<long long>(compared));
      assert_true(compared <= size);
    }
  }
}

// A place at which members arrive in order.
class Place final : public WaitPlace {
 public:
  explicit Place(int size) : come_(static_cast<std::size_t>(size), 0) {}
  void come(int rank, uint32_t round) { come_[static_cast<std::size_t>(rank)] = round; }
  int64_t looks() const { return looks_; }

  int size() const noexcept override { return static_cast<int>(come_.size()); }
  int32_t number() const noexcept override { return 0; }
  int local_rank(int rank) const noexcept override { return rank; }
  Naming naming() const noexcept override { return {}; }
  bool arrived(int rank, uint32_t round) const noexcept override {
    ++looks_;
    return come_[static_cast<std::size_t>(rank)] >= round;
  }
  const Signature& signature(int, uint32_t, int64_t* out_sequence) const noexcept override {
    *out_sequence = 0;
    return departure();
  }
  bool claim() noexcept override {
    claimed_ = true;
    return false;
  }
  void post(const ErrorRecord&) noexcept override {}
  bool claimed() const { return claimed_; }

 private:
  std::vector<uint32_t> come_;
  mutable int64_t looks_ = 0;
  bool claimed_ = false;
};

// In one round all members but the last sleep, and the last one completes it. When it sleeps in the next
// round, the others still count as asleep.
void sleepers_of_one_place_do_not_search(void**) {
  for (const int size : kSizes) {
    Memory& memory = *Memory::create({});
    {
      WaitGraph graph(memory, size);
      Place place(size);
      std::vector<std::unique_ptr<OneWait>> waits;
      const auto sleep = [&](Place& where, int rank, uint32_t round) {
        where.come(rank, round);
        waits.push_back(std::make_unique<OneWait>(where, rank, round));
        graph.block(rank, *waits.back());
      };
      for (int rank = 0; rank + 1 < size; ++rank) sleep(place, rank, 1);
      place.come(size - 1, 1);
      sleep(place, size - 1, 2);
      std::printf("# %d members: %lld looks\n", size, static_cast<long long>(place.looks()));
      assert_true(place.looks() <= size);
      assert_false(place.claimed());
      for (int rank = 0; rank < size; ++rank) graph.unblock(rank);
    }
    memory.release();
  }
}

// One dense tensor per member, in separate memory.
class Members {
 public:
  Members(Collective collective, int size, int64_t in, int64_t out)
      : in_(static_cast<std::size_t>(size * in), 1.0f), out_(static_cast<std::size_t>(size * out)) {
    for (int p = 0; p < size; ++p) sides_.push_back(std::make_unique<Side>());
    for (int p = 0; p < size; ++p) {
      Side& side = *sides_[static_cast<std::size_t>(p)];
      side.in_shape = in;
      side.out_shape = out;
      side.in = {&in_[static_cast<std::size_t>(p * in)], DIST_F32, 1, &side.in_shape, nullptr};
      side.out = {&out_[static_cast<std::size_t>(p * out)], DIST_F32, 1, &side.out_shape, nullptr};
      side.call.collective = collective;
      side.call.in = &side.in;
      side.call.out = &side.out;
      side.call.n = 1;
      side.call.root = traits_of(collective).rooted() ? 0 : -1;
      if (traits_of(collective).reduces) side.call.op = DIST_REDUCE_USER;
      side.call.user_op = add;
      side.call.kind = DIST_SCAN_INCLUSIVE;
      descriptors_.push_back(&side.descriptor);
    }
    for (int p = 0; p < size; ++p) {
      Side& side = *sides_[static_cast<std::size_t>(p)];
      Signature signature;
      assert_true(side.call.check(p, size, signature).ok());
      side.call.describe_in(side.descriptor);
    }
    added_ = 0;
  }
  Exchange exchange() const {
    return Exchange(sides_[0]->call, static_cast<int>(sides_.size()), descriptors_.data(),
                    std::size_t{1} << 30);
  }
  float out(std::size_t i) const { return out_[i]; }
  static int64_t added() { return added_; }

 private:
  struct Side {
    int64_t in_shape;
    int64_t out_shape;
    dist_tensor in;
    dist_tensor out;
    Call call;
    CallDescriptor descriptor{};
  };
  static void add(void* acc, const void* in, int64_t count, dist_dtype, void*) {
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(acc)[i] += static_cast<const float*>(in)[i];
    added_ += static_cast<int64_t>(count);
  }
  static inline int64_t added_ = 0;

  std::vector<float> in_;
  std::vector<float> out_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<const CallDescriptor*> descriptors_;
};

// Counts the requests for local ranks, which reports on members make.
struct LocalRanks final : MemberNames {
  int local_rank(int rank) const noexcept override { return rank; }
  Naming naming() const noexcept override { return {}; }
};

void each_input_is_folded_once(void**) {
  constexpr int64_t kEach = 4;
  const FpEnvironment environment;
  for (const int size : kSizes) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kScan, Collective::kReduceScatter}) {
      const int64_t in = collective == Collective::kReduceScatter ? kEach * size : kEach;
      Members members(collective, size, in, kEach);
      const Exchange exchange = members.exchange();
      assert_int_equal(exchange.first_refusing(LocalRanks()), -1);
      exchange.run_all();
      assert_int_equal(members.added(), in * (size - 1));
      const bool scan = collective == Collective::kScan;
      assert_true(members.out(0) == static_cast<float>(scan ? 1 : size));
      assert_true(members.out(static_cast<std::size_t>(kEach * size) - 1) == static_cast<float>(size));
    }
  }
}

// Counts the pieces that for_pieces() produces.
void tasks_are_as_many_as_members(void**) {
  constexpr int64_t kEach = 4;
  for (const int size : kSizes) {
    struct Row {
      Collective collective;
      int64_t in;
      int64_t out;
      std::size_t most;
    };
    const auto n = static_cast<std::size_t>(size);
    const Row rows[] = {{Collective::kAllReduce, kEach, kEach, 1},
                        {Collective::kBroadcast, kEach, kEach, 1},
                        {Collective::kScan, kEach, kEach, 1},
                        {Collective::kAllGather, kEach, kEach * size, n},
                        {Collective::kReduceScatter, kEach * size, kEach, n},
                        {Collective::kAllToAll, kEach * size, kEach * size, n}};
    for (const Row& row : rows) {
      const Members members(row.collective, size, row.in, row.out);
      const Exchange exchange = members.exchange();
      std::size_t pieces = 0;
      TaskList::Cursor cursor;
      // Unit by unit with one cursor, which must not visit earlier tasks again.
      std::size_t at = 0;
      for (std::size_t unit = 0; unit < exchange.units(); ++unit) {
        exchange.tasks().for_pieces({unit, unit + 1}, cursor, Exchange::kBlockUnits,
                                    [&](const TaskList::Cursor& now, std::size_t, std::size_t) {
                                      pieces += now.task >= at ? 1 : row.most + exchange.units() + 1;
                                      at = now.task;
                                      return true;
                                    });
      }
      assert_true(pieces <= std::max(row.most, exchange.units()));
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(slots_are_compared_once), cmocka_unit_test(sleepers_of_one_place_do_not_search),
      cmocka_unit_test(each_input_is_folded_once), cmocka_unit_test(tasks_are_as_many_as_members)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
