// SPDX-License-Identifier: Apache-2.0
// The tensors of rows that involve more than one all_reduce of one tensor: lists of gradients, the parts for
// other collectives, sums of wide range, and training steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/bench/data.hpp"

namespace bench {

// Networks whose gradients make the lists: so many tensors, of so many elements.
enum class Network { kResNet50, kBertBase };
const char* network_name(Network network);
// `share`: each tensor that many times smaller, for quick runs.
std::vector<size_t> tensor_counts(Network network, int share);

// A list of f32 tensors, each in memory of its own, that is all-reduced in place.
class DataList final : public Checked {
 public:
  DataList(const std::vector<size_t>& counts, int replicas);
  int replicas() const { return tensors_[0]->replicas(); }
  size_t size() const { return tensors_.size(); }
  Data& at(size_t tensor) const { return *tensors_[tensor]; }
  size_t bytes() const;
  bool alike() const;  // all tensors are equally long
  // One replica's tensors, as libdist takes them. Borrows from this.
  std::vector<dist_tensor> views(int replica) const;
  // Compares a sum that lies elsewhere.
  void check_result(size_t tensor, const void* result) noexcept;

  int most_iterations() const override { return tensors_[0]->most_iterations(); }
  void expect(int iterations) override;
  void reset(int replica) noexcept override;
  void check(int replica, int iterations) noexcept override;

 private:
  std::vector<std::unique_ptr<Data>> tensors_;
  std::vector<int64_t> counts_;
};

// Inputs that stay and outputs that are known: f32, a buffer each on every replica.
class Exchanged final : public Checked {
 public:
  struct Buffers {
    std::vector<float> start;     // the input's contents
    std::vector<float> expected;  // the output's
    size_t pieces = 1;            // equal parts of the input, each in memory of its own
  };
  explicit Exchanged(std::vector<Buffers> replicas);
  int replicas() const { return static_cast<int>(replicas_.size()); }
  float* in(int replica, size_t piece = 0) const { return static_cast<float*>(at(replica).in[piece].get()); }
  float* out(int replica) const { return static_cast<float*>(at(replica).out.get()); }
  size_t pieces(int replica) const { return at(replica).buffers.pieces; }
  size_t in_count(int replica) const { return at(replica).buffers.start.size() / pieces(replica); }
  size_t out_count(int replica) const { return at(replica).buffers.expected.size(); }

  int most_iterations() const override { return 1 << 20; }
  void expect(int) override {}
  void reset(int replica) noexcept override;
  void check(int replica, int iterations) noexcept override;

 private:
  struct Replica {
    Buffers buffers;
    std::vector<Buffer> in;
    Buffer out;
  };
  const Replica& at(int replica) const { return replicas_[static_cast<size_t>(replica)]; }
  std::vector<Replica> replicas_;
};

// `contributions` tensors a replica, the pieces of its input, of values normal * 2^uniform(-exponents,
// exponents); the sum is what DIST_NUMERICS_... `numerics` give: TREE of powers of two alone.
std::unique_ptr<Exchanged> wide_range_sum(size_t count, int replicas, int contributions, int exponents,
                                          dist_numerics numerics);

// Collectives beside all_reduce. `bytes` is what a replica has where it has most.
enum class Handing { kAllGather, kReduceScatter, kBroadcast, kAllToAll, kScatter, kScan };
const char* handing_name(Handing handing);
std::unique_ptr<Exchanged> handed(Handing handing, size_t bytes, int replicas);

// Gradients, parameters and velocities of every replica, and what they become.
struct StepForm {
  bool momentum = false, clip = false;
};
class StepData final : public Checked {
 public:
  static constexpr double kRate = 0.0625, kMomentum = 0.875;

  StepData(const std::vector<size_t>& counts, int replicas, StepForm form);
  StepForm form() const { return form_; }
  int replicas() const { return static_cast<int>(replicas_.size()); }
  size_t size() const { return counts_.size(); }
  size_t count(size_t tensor) const { return static_cast<size_t>(counts_[tensor]); }
  // The gradients' norm is twice this.
  double clip_norm() const { return form_.clip ? norm_ / 2 : 0; }
  std::vector<dist_tensor> gradients(int replica) const { return views(replica, 0); }
  std::vector<dist_tensor> parameters(int replica) const { return views(replica, 1); }
  std::vector<dist_tensor> velocities(int replica) const { return views(replica, 2); }

  // A clip leaves gradients changed, or not, as the side likes.
  int most_iterations() const override { return form_.clip ? 1 : 16; }
  void expect(int iterations) override;
  void reset(int replica) noexcept override;
  void check(int replica, int iterations) noexcept override;

 private:
  static constexpr size_t kParts = 3;  // gradient, parameter, velocity
  std::vector<dist_tensor> views(int replica, size_t part) const;
  size_t parts() const { return form_.momentum ? kParts : kParts - 1; }

  StepForm form_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<Buffer>> replicas_;  // all parts of tensor 0, of tensor 1, ...
  // Every tensor repeats these.
  std::vector<std::vector<float>> gradient_;  // a replica's
  std::vector<float> parameter_, velocity_, mean_, expected_parameter_, expected_velocity_;
  double norm_ = 0;  // of the mean of the gradients of the whole list
};

}  // namespace bench
