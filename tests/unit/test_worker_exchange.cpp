// SPDX-License-Identifier: Apache-2.0
// Random collectives over workers, with all kinds of calls and all algorithms. The members' outputs equal
// those of a single process with all members, bit for bit.
#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/collective/worker_collective.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"
#include "tests/enums.h"
#include "tests/unit/exchange_cases.hpp"
#include "tests/unit/worker_cluster.hpp"

namespace dist {
namespace {

// Adds the bytes of two elements, and then the first byte to all. The result depends on the order of the
// operands.
void mix_bytes(void* acc, const void* in, int64_t count, dist_dtype, void* element_bytes) {
  const std::size_t size = *static_cast<const std::size_t*>(element_bytes);
  auto* a = static_cast<uint8_t*>(acc);
  const auto* b = static_cast<const uint8_t*>(in);
  for (int64_t i = 0; i < count; ++i, a += size, b += size) {
    for (std::size_t k = 0; k < size; ++k) a[k] = static_cast<uint8_t>(a[k] * 3 + b[k] + a[0]);
  }
}

// One tensor's memory and view.
struct Buffer {
  std::vector<std::byte> bytes;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  dist_tensor view(dist_dtype dtype) {
    return {bytes.data(), dtype, static_cast<int32_t>(shape.size()), shape.data(),
            strides.empty() ? nullptr : strides.data()};
  }
};

class Program {
 public:
  Program(int size, std::mt19937_64& random) : random_(random), sides_(static_cast<std::size_t>(size)) {
    while (!draw()) sides_ = std::vector<Side>(static_cast<std::size_t>(size));
  }

  Call& call(int rank) { return sides_[static_cast<std::size_t>(rank)].call; }
  std::string text() const {
    char words[512];
    describe(signature_, words, sizeof words);
    return words;
  }
  // Returns what one process writes. The buffers are restored afterwards.
  std::vector<std::vector<std::byte>> expected() {
    const auto before = buffers();
    std::vector<CallDescriptor> descriptors(sides_.size());
    std::vector<const CallDescriptor*> all;
    for (std::size_t p = 0; p < sides_.size(); ++p) {
      sides_[p].call.describe_in(descriptors[p]);
      all.push_back(&descriptors[p]);
    }
    const FpEnvironment environment;
    const Exchange exchange(sides_[0].call, static_cast<int>(sides_.size()), all.data(), 1 << 20);
    struct All final : MemberNames {
      int local_rank(int rank) const noexcept override { return rank; }
      Naming naming() const noexcept override { return {}; }
    };
    ErrorRecord why;
    for (int p = 0; p < static_cast<int>(sides_.size()); ++p) {
      if (exchange.refuses(All(), p, &why)) std::printf("# %s: %s\n", text().c_str(), why.message);
      assert_false(exchange.refuses(All(), p, nullptr));
    }
    exchange.run_all();
    auto after = buffers();
    restore(before);
    return after;
  }
  std::vector<std::vector<std::byte>> buffers() const {
    std::vector<std::vector<std::byte>> all;
    for (const Side& side : sides_) {
      for (const auto* list : {&side.in, &side.out}) {
        for (const Buffer& each : *list) all.push_back(each.bytes);
      }
    }
    return all;
  }
  void restore(const std::vector<std::vector<std::byte>>& all) {
    std::size_t i = 0;
    for (Side& side : sides_) {
      for (auto* list : {&side.in, &side.out}) {
        for (Buffer& each : *list) std::copy(all[i].begin(), all[i].end(), each.bytes.begin()), ++i;
      }
    }
  }

 private:
  struct Side {
    std::vector<Buffer> in;
    std::vector<Buffer> out;
    std::vector<dist_tensor> in_views;
    std::vector<dist_tensor> out_views;
    std::vector<double> weights;
    std::vector<int64_t> splits;
    std::vector<int64_t> offsets;
    Call call;
  };

  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  void make(Buffer& buffer, dist_dtype dtype, const std::vector<int64_t>& shape, bool gaps) {
    buffer.shape = shape;
    int64_t step = 1;
    if (gaps) {
      // Permutes the dimensions and adds gaps.
      std::vector<std::size_t> order(shape.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random_);
      buffer.strides.resize(shape.size());
      for (const std::size_t i : order) {
        step *= one_in(2) ? 1 : 2;
        buffer.strides[i] = step;
        step *= shape[i];
      }
    } else {
      for (const int64_t each : shape) step *= each;
    }
    buffer.bytes.resize(static_cast<std::size_t>(step) * dtype_size(dtype) + 1);
    for (std::size_t i = 0; i < buffer.bytes.size(); ++i) buffer.bytes[i] = static_cast<std::byte>(random_());
    // Avoids infinities and NaNs, whose results can depend on the order of operands.
    const std::size_t size = dtype == DIST_COMPLEX64 ? 4 : dtype_size(dtype);
    if (!dtype_is_floating(dtype)) return;
    for (std::size_t i = size - 1; i < buffer.bytes.size(); i += size) buffer.bytes[i] &= std::byte{0xBF};
  }

  bool draw() {
    // @every collective but NONE, RETURN, BARRIER, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD
    constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kReduce,   Collective::kReduceScatter,
                                   Collective::kBroadcast, Collective::kScatter,  Collective::kAllGather,
                                   Collective::kGather,    Collective::kAllToAll, Collective::kPermute,
                                   Collective::kScan};
    const Collective collective = kAll[below(std::size(kAll))];
    const CollectiveTraits& traits = traits_of(collective);
    const std::size_t size = sides_.size();
    const std::size_t n = 1 + below(5);
    const int32_t axis = static_cast<int32_t>(below(3));
    const auto op = static_cast<dist_reduce_op>(traits.reduces ? 1 + below(DIST_REDUCE_USER) : 0);
    const bool user = op == DIST_REDUCE_USER;
    const bool gaps = !user && one_in(3);
    const bool contributes = traits.reduces && !traits.prefixes && one_in(3);
    const bool weighted = op == DIST_REDUCE_MEAN && one_in(2);
    const bool uneven = traits.swaps() && one_in(2);
    const dist_numerics numerics = one_in(3) ? DIST_NUMERICS_REPRODUCIBLE : DIST_NUMERICS_ORDERED;
    const bool in_place = traits.whole() && !traits.prefixes && op != DIST_REDUCE_MEAN && !gaps && one_in(3);
    const bool shares = traits.alike() && traits.destinations == Ends::kAll && !in_place && one_in(4);
    const auto root = static_cast<int32_t>(below(size));
    const auto shift = static_cast<int32_t>(below(size));
    const bool broken_ring = one_in(2);
    const dist_dtype only = user ? DIST_U8 : static_cast<dist_dtype>(one_in(2) ? 0 : 1 + below(LAST_DTYPE));
    // Sizes along the axis: what a member has of each tensor, or sends to each member.
    std::vector<dist_dtype> dtypes;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::vector<int64_t>> parts(n);
    for (std::size_t t = 0; t < n; ++t) {
      dtypes.push_back(only != 0 ? only : static_cast<dist_dtype>(1 + below(LAST_DTYPE)));
      shapes.push_back({static_cast<int64_t>(1 + below(6)), static_cast<int64_t>(1 + below(6)),
                        static_cast<int64_t>((1 + below(20)) * (user ? 6 : 1))});
      for (std::size_t p = 0; p < size; ++p)
        parts[t].push_back(static_cast<int64_t>(below(4) * (user ? 6 : 1)));
    }
    for (std::size_t p = 0; p < size; ++p) {
      Side& side = sides_[p];
      Call& call = side.call;
      call.collective = collective;
      call.op = op;
      call.kind = traits.prefixes && one_in(2) ? DIST_SCAN_EXCLUSIVE : DIST_SCAN_INCLUSIVE;
      if (p != 0) call.kind = sides_[0].call.kind;
      call.numerics = numerics;
      call.axis = traits.cuts || traits.joins ? axis : 0;
      call.root = traits.rooted() ? root : -1;
      call.n = n;
      if (user) {
        call.user_op = mix_bytes;
        call.element_bytes = kElement;
        call.user_data = const_cast<std::size_t*>(&kElement);
      }
      const std::size_t lists = contributes ? 1 + below(3) : 1;
      if (contributes) call.contributions = lists;
      for (std::size_t j = 0; j < lists; ++j) side.weights.push_back(static_cast<double>(below(9)) / 4);
      if (weighted) call.weights = side.weights.data();
      for (std::size_t r = 0; r < size; ++r) side.splits.push_back(static_cast<int64_t>(p + r) % 3);
      side.offsets.resize(size + 1);
      if (uneven) call.splits = side.splits.data();
      if (traits.pairs()) {
        // A ring with a random step, or one in which no member sends to member 0.
        const auto ranks = static_cast<int32_t>(size);
        const auto me = static_cast<int32_t>(p);
        call.destination = (me + shift) % ranks;
        call.source = (me + ranks - shift) % ranks;
        if (broken_ring && call.destination == 0) call.destination = -1;
        if (broken_ring && me == 0) call.source = -1;
      }
      side.in.resize(lists * n);
      side.out.resize(n);
      for (std::size_t t = 0; t < n; ++t) {
        auto in = shapes[t];
        auto out = shapes[t];
        int64_t whole = 0;
        for (const int64_t part : parts[t]) whole += part;
        const auto at = static_cast<std::size_t>(axis);
        if (traits.swaps() && uneven) {
          in[at] = out[at] = 0;
          for (std::size_t r = 0; r < size; ++r) {
            in[at] += side.splits[r];
            out[at] += static_cast<int64_t>(r + p) % 3;
          }
        } else if (traits.swaps()) {
          in[at] = out[at] = 3 * static_cast<int64_t>(size);
        } else if (traits.cuts || traits.joins) {
          in[at] = traits.cuts ? whole : parts[t][p];
          out[at] = traits.cuts ? parts[t][p] : whole;
        }
        for (std::size_t j = 0; j < lists; ++j) make(side.in[j * n + t], dtypes[t], in, gaps && one_in(2));
        make(side.out[t], op == DIST_REDUCE_MEAN ? dtype_of_mean(dtypes[t]) : dtypes[t], out,
             gaps && one_in(2));
      }
      for (std::size_t i = 0; i < side.in.size(); ++i)
        side.in_views.push_back(side.in[i].view(dtypes[i % n]));
      for (std::size_t t = 0; t < n; ++t) {
        side.out_views.push_back(
            side.out[t].view(op == DIST_REDUCE_MEAN ? dtype_of_mean(dtypes[t]) : dtypes[t]));
        if (in_place) side.out_views[t] = side.in_views[t];
      }
      call.in = side.in_views.data();
      call.out = side.out_views.data();
      Signature signature;
      if (!call.check(static_cast<int>(p), static_cast<int>(size), signature).ok()) return false;
      signature_ = signature;
      if (uneven) call.offset_splits(side.offsets.data(), static_cast<int>(size));
    }
    shares_ = shares;
    return true;
  }

 public:
  // Gives the members of each worker one shared output. The outputs of the others stay unchanged.
  void share(const std::vector<int>& layout, const std::vector<std::vector<std::byte>>& before,
             std::vector<std::vector<std::byte>>* expected) {
    if (!shares_) return;
    std::size_t first = 0;
    std::size_t p = 0;
    std::size_t buffer = 0;
    for (const int members : layout) {
      for (first = p; p < first + static_cast<std::size_t>(members); ++p) {
        buffer += sides_[p].in.size();
        for (std::size_t t = 0; t < sides_[p].out.size(); ++t, ++buffer) {
          if (p == first) continue;
          sides_[p].out_views[t] = sides_[first].out_views[t];
          (*expected)[buffer] = before[buffer];
        }
      }
    }
  }

 private:
  static constexpr std::size_t kElement = 6;
  std::mt19937_64& random_;
  std::vector<Side> sides_;
  Signature signature_;
  bool shares_ = false;
};

Status play(Program& program, const Member& member, WorkerCommunicator& communicator, int rank) {
  Call call = program.call(rank);
  call.offsets = nullptr;
  call.in_place = call.strided = false;
  return worker_collective(member, communicator, call);
}

void any_call_any_layout_any_pieces(void**) {
  std::mt19937_64 random(kSeed);
  const std::vector<std::vector<int>> layouts = {{2, 2}, {1, 1, 1}, {3, 1}, {1, 4, 2}};
  std::array<int, index_of(kLastCollective) + 1> played{};
  for (const auto& layout : layouts) {
    int size = 0;
    for (const int members : layout) size += members;
    for (const std::size_t most_bytes : {std::size_t{64} << 20, std::size_t{20000}, std::size_t{3000}}) {
      Cluster cluster(layout, {.most_bytes = most_bytes});
      for (int turn = 0; turn < 60; ++turn) {
        Program program(size, random);
        const auto before = program.buffers();
        auto expected = program.expected();
        program.share(layout, before, &expected);
        const auto outcomes =
            cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
              return play(program, member, communicator, rank);
            });
        for (const Outcome& each : outcomes) {
          if (!each.status.ok()) std::printf("# %s: %s\n", program.text().c_str(), each.error.message);
          assert_true(each.status.ok());
        }
        ++played[index_of(program.call(0).collective)];
        if (program.buffers() == expected) continue;
        std::printf("# turn %d: %s, %zu workers, %zu bytes\n", turn, program.text().c_str(), layout.size(),
                    most_bytes);
        assert_true(false);
      }
    }
  }
  for (std::size_t i = 0; i < played.size(); ++i) {
    if (played[i] != 0) std::printf("# %s: %d\n", traits_of(collective_at(i)).name, played[i]);
  }
}

// An all_reduce SUM of a list of tensors with one element each, or of one tensor.
Status sum_of(const Member& member, WorkerCommunicator& communicator, std::vector<float>& data,
              std::size_t tensors) {
  const auto length = static_cast<int64_t>(data.size() / tensors);
  std::vector<dist_tensor> list;
  for (std::size_t t = 0; t < tensors; ++t)
    list.push_back({data.data() + t * static_cast<std::size_t>(length), DIST_F32, 1, &length, nullptr});
  Call call;
  call.collective = Collective::kAllReduce;
  call.op = DIST_REDUCE_SUM;
  call.in = call.out = list.data();
  call.n = tensors;
  return worker_collective(member, communicator, call);
}

void large_calls_keep_to_their_room(void**) {
  constexpr std::size_t kMost = std::size_t{256} << 10;
  for (const std::size_t tensors : {std::size_t{1}, std::size_t{10'000}}) {
    Cluster cluster({2, 2}, {.unsteady = true, .most_bytes = kMost});
    std::vector<std::vector<float>> data(4, std::vector<float>(1'000'000));
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t i = 0; i < data[r].size(); ++i) data[r][i] = static_cast<float>(i % 1000 + r);
    }
    const std::size_t before = cluster.held();
    const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
      return sum_of(member, communicator, data[static_cast<std::size_t>(rank)], tensors);
    });
    for (std::size_t r = 0; r < 4; ++r) {
      assert_true(outcomes[r].status.ok());
      bool right = true;
      for (std::size_t i = 0; i < data[r].size(); ++i)
        right = right && data[r][i] == static_cast<float>(4 * (i % 1000) + 6);
      assert_true(right);
    }
    // Beside the staging memory, there are tables whose size does not depend on that of the tensors.
    constexpr std::size_t kTables = std::size_t{1} << 20;
    if (cluster.held() - before > 2 * kMost + kTables)
      std::printf("# %zu bytes are held\n", cluster.held() - before);
    assert_true(cluster.held() - before <= 2 * kMost + kTables);
    // Pieces are as large as allowed, and not one per tensor: 4 MB in pieces of 256 KiB, with 8 parts for
    // each unit.
    assert_true(cluster.messages() < 800);
  }
}

void collectives_are_counted_and_not_their_parts(void**) {
  Cluster cluster({2, 1}, {.most_bytes = 1});
  const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
    double got = 0;
    const Status status = sum(member, communicator, rank, 5, &got);
    return status.ok() && member.group.sequence(member.me) != 5 ? Status(DIST_INTERNAL) : status;
  });
  for (const Outcome& each : outcomes) assert_true(each.status.ok());
}

// Messages that are in transit do not disturb the next run.
void a_run_that_ends_between_pieces_is_over(void**) {
  for (int turn = 0; turn < 10; ++turn) {
    Cluster cluster({2, 1}, {.unsteady = true, .most_bytes = 1, .seed = kSeed + static_cast<uint64_t>(turn)});
    std::atomic<int> folds{0};
    struct Ending {
      Cluster& cluster;
      std::atomic<int>& folds;
      int turn;
    } ending{cluster, folds, turn};
    const auto outcomes =
        cluster.run([&](const Member& member, WorkerCommunicator& communicator, int) -> Status {
          std::vector<double> numbers(100, 1);
          const int64_t shape[] = {100};
          const dist_tensor tensor{numbers.data(), DIST_F64, 1, shape, nullptr};
          Call call;
          call.collective = Collective::kAllReduce;
          call.op = DIST_REDUCE_USER;
          call.user_op = [](void*, const void*, int64_t, dist_dtype, void* data) {
            auto& to_end = *static_cast<Ending*>(data);
            if (to_end.folds.fetch_add(1) == 2 * to_end.turn) to_end.cluster.group(0).cancel("enough");
          };
          call.user_data = &ending;
          call.in = call.out = &tensor;
          call.n = 1;
          return worker_collective(member, communicator, call);
        });
    for (const Outcome& each : outcomes) assert_false(each.status.ok());
    works_again(cluster);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {
      cmocka_unit_test(any_call_any_layout_any_pieces),
      cmocka_unit_test(large_calls_keep_to_their_room),
      cmocka_unit_test(collectives_are_counted_and_not_their_parts),
      cmocka_unit_test(a_run_that_ends_between_pieces_is_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
