// SPDX-License-Identifier: Apache-2.0
// Calls of every kind of collective on small random tensors, for tests of exchanges and of workers.
#pragma once

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/collective/exchange.hpp"
#include "core/comm/signature.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail() is meant below

namespace dist {

// The tensors of one member: [rows, along, 3], whose axis is 1.
struct Side {
  std::vector<std::vector<int64_t>> in_shapes;
  std::vector<std::vector<int64_t>> out_shapes;
  std::vector<std::vector<float>> in_data;
  std::vector<std::vector<float>> out_data;
  std::vector<dist_tensor> in;
  std::vector<dist_tensor> out;
  std::vector<int64_t> splits;
  std::vector<int64_t> offsets;
  std::vector<double> weights;
  Call call;
  CallDescriptor descriptor{};

  static void make(std::vector<std::vector<int64_t>>& shapes, std::vector<std::vector<float>>& data,
                   std::vector<dist_tensor>& tensors, const std::vector<int64_t>& along, int64_t rows) {
    for (const int64_t size : along) {
      shapes.push_back({rows, size, 3});
      data.emplace_back(static_cast<std::size_t>(rows * size * 3), -1.0f);
    }
    for (std::size_t t = 0; t < along.size(); ++t)
      tensors.push_back({data[t].data(), DIST_F32, 3, shapes[t].data(), nullptr});
  }

  // Returns a copy in other memory and without outputs, like the one that a process keeps of another
  // process's member.
  CallDescriptor staged(std::vector<dist_tensor>& tensors, std::vector<std::vector<float>>& memory) const {
    tensors = in;
    memory = in_data;
    for (std::size_t t = 0; t < tensors.size(); ++t) tensors[t].data = memory[t].data();
    CallDescriptor copy = descriptor;
    copy.in = descriptor.in == nullptr ? nullptr : tensors.data();
    copy.in_data = descriptor.in == nullptr ? nullptr : reinterpret_cast<const std::byte*>(memory[0].data());
    copy.out_data = nullptr;
    return copy;
  }
};

struct Case {
  Collective collective;
  dist_reduce_op op;
  int32_t kind;
  bool weighted;
  bool uneven;
  dist_numerics numerics = DIST_NUMERICS_ORDERED;
};

// The other collectives do not exchange lists of tensors.
// @every collective but NONE, RETURN, BARRIER, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD
inline constexpr Case kCases[] = {
    {Collective::kAllReduce, DIST_REDUCE_SUM, 0, false, false},
    {Collective::kAllReduce, DIST_REDUCE_MEAN, 0, true, false},
    {Collective::kReduce, DIST_REDUCE_MAX, 0, false, false},
    {Collective::kReduceScatter, DIST_REDUCE_SUM, 0, false, false},
    {Collective::kBroadcast, {}, 0, false, false},
    {Collective::kScatter, {}, 0, false, false},
    {Collective::kAllGather, {}, 0, false, false},
    {Collective::kGather, {}, 0, false, false},
    {Collective::kAllToAll, {}, 0, false, false},
    {Collective::kAllToAll, {}, 0, false, true},
    {Collective::kPermute, {}, 0, false, false},
    {Collective::kScan, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, false, false},
    {Collective::kScan, DIST_REDUCE_PROD, DIST_SCAN_EXCLUSIVE, false, false},
    {Collective::kAllReduce, DIST_REDUCE_SUM, 0, false, false, DIST_NUMERICS_TREE},
    {Collective::kAllReduce, DIST_REDUCE_MEAN, 0, true, false, DIST_NUMERICS_TREE},
    {Collective::kReduceScatter, DIST_REDUCE_PROD, 0, false, false, DIST_NUMERICS_TREE},
    {Collective::kScan, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, false, false, DIST_NUMERICS_TREE},
};

// The calls of all members in one case, on lists of n tensors.
class Members {
 public:
  Members(const Case& the_case, int size, std::size_t n, std::mt19937_64& random)
      : sides_(static_cast<std::size_t>(size)) {
    const CollectiveTraits& traits = traits_of(the_case.collective);
    std::vector<std::vector<int64_t>> parts(sides_.size());  // [p][t]; in an all_to_all [p][r] of each tensor
    for (auto& part : parts) {
      for (std::size_t t = 0; t < n; ++t) part.push_back(static_cast<int64_t>(random() % 5));
    }
    for (int p = 0; p < size; ++p) {
      Side& side = sides_[static_cast<std::size_t>(p)];
      std::vector<int64_t> in(n, 5);
      std::vector<int64_t> out(n, 5);
      for (std::size_t t = 0; t < n; ++t) {
        int64_t all = 0;
        for (const auto& part : parts) all += part[t];
        const int64_t own = parts[static_cast<std::size_t>(p)][t];
        if (traits.swaps() && the_case.uneven) {
          // Rank p sends p + r + 1 steps to rank r.
          in[t] = out[t] = 0;
          for (int r = 0; r < size; ++r) {
            in[t] += p + r + 1;
            out[t] += p + r + 1;
          }
        } else if (traits.swaps()) {
          in[t] = 2 * size;
          out[t] = 2 * size;
        } else if (traits.cuts) {
          in[t] = all;
          out[t] = own;
        } else if (traits.joins) {
          in[t] = own;
          out[t] = all;
        }
      }
      Side::make(side.in_shapes, side.in_data, side.in, in, 7);
      Side::make(side.out_shapes, side.out_data, side.out, out, 7);
      for (auto& tensor : side.in_data) {
        for (float& element : tensor) element = static_cast<float>(random() % 1000) / 7;
      }
      for (int r = 0; r < size; ++r) side.splits.push_back(p + r + 1);
      side.offsets.resize(sides_.size() + 1);
      side.weights = {1.0 + p};
      Call& call = side.call;
      call.collective = the_case.collective;
      call.op = the_case.op;
      call.kind = the_case.kind;
      call.numerics = the_case.numerics;
      call.root = traits.rooted() ? 1 : -1;
      call.axis = traits.cuts || traits.joins ? 1 : 0;
      call.in = side.in.data();
      call.out = side.out.data();
      call.n = n;
      call.weights = the_case.weighted ? side.weights.data() : nullptr;
      call.splits = the_case.uneven ? side.splits.data() : nullptr;
      call.destination = (p + 1) % size;
      call.source = (p + size - 1) % size;
      Signature signature;
      assert_int_equal(call.check(p, size, signature).code(), DIST_OK);
      if (call.splits != nullptr) call.offset_splits(side.offsets.data(), size);
      call.describe_in(side.descriptor);
    }
  }

  int size() const noexcept { return static_cast<int>(sides_.size()); }
  Side& operator[](int rank) noexcept { return sides_[static_cast<std::size_t>(rank)]; }

  // Runs all members in one process.
  std::vector<std::vector<std::vector<float>>> together() {
    std::vector<const CallDescriptor*> descriptors;
    for (const Side& side : sides_) descriptors.push_back(&side.descriptor);
    const Exchange exchange(sides_[0].call, size(), descriptors.data(), 1 << 20);
    exchange.run_all();
    return take();
  }

  // Returns the outputs and resets them.
  std::vector<std::vector<std::vector<float>>> take() {
    std::vector<std::vector<std::vector<float>>> taken;
    for (Side& side : sides_) {
      taken.push_back(side.out_data);
      for (auto& tensor : side.out_data) std::fill(tensor.begin(), tensor.end(), -1.0f);
    }
    return taken;
  }

 private:
  std::vector<Side> sides_;
};

}  // namespace dist
