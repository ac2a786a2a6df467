// SPDX-License-Identifier: Apache-2.0
// The tensors of rows that involve more than one all_reduce of one tensor: lists of gradients, the parts for
// other collectives, sums of wide range, and training steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/bench/data.hpp"

namespace bench {

// Networks whose gradients determine the number and the sizes of the tensors in lists.
enum class Network { kResNet50, kBertBase };
const char* network_name(Network network);
// For quick runs, each tensor is smaller by the factor `share`.
std::vector<size_t> tensor_counts(Network network, int share);

// A list of f32 tensors in separate memory, which is all-reduced in place.
class DataList final : public Checked {
 public:
  DataList(const std::vector<size_t>& counts, int replicas);
  int replicas() const { return tensors_[0]->replicas(); }
  size_t size() const { return tensors_.size(); }
  Data& at(size_t tensor) const { return *tensors_[tensor]; }
  size_t bytes() const;
  bool alike() const;  // all tensors have the same length
  // Returns one replica's tensors for libdist. They refer to this object's memory.
  std::vector<dist_tensor> views(int replica) const;
  // Compares a sum in other memory.
  void check_result(size_t tensor, const void* result) noexcept;

  int most_iterations() const override { return tensors_[0]->most_iterations(); }
  void expect(int iterations) override;
  void reset(int replica) noexcept override;
  void check(int replica, int iterations) noexcept override;

 private:
  std::vector<std::unique_ptr<Data>> tensors_;
  std::vector<int64_t> counts_;
};

// f32 inputs that do not change and outputs that are known, with a separate buffer for each on every replica.
class Exchanged final : public Checked {
 public:
  struct Buffers {
    std::vector<float> start;     // contents of the input
    std::vector<float> expected;  // expected contents of the output
    size_t pieces = 1;            // equal parts of the input, each in separate memory
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

// `contributions` tensors per replica, as the pieces of its input, with values normal * 2^uniform(-exponents,
// exponents). The expected sum is that of DIST_NUMERICS_... `numerics`; TREE only for powers of two.
std::unique_ptr<Exchanged> wide_range_sum(size_t count, int replicas, int contributions, int exponents,
                                          dist_numerics numerics);

// Collectives other than all_reduce. `bytes` is the larger of a replica's input and output.
enum class Handing { kAllGather, kReduceScatter, kBroadcast, kAllToAll, kScatter, kScan };
const char* handing_name(Handing handing);
std::unique_ptr<Exchanged> handed(Handing handing, size_t bytes, int replicas);

// Gradients, parameters and velocities of every replica, and their expected values.
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
  // Half of the gradients' norm.
  double clip_norm() const { return form_.clip ? norm_ / 2 : 0; }
  std::vector<dist_tensor> gradients(int replica) const { return views(replica, 0); }
  std::vector<dist_tensor> parameters(int replica) const { return views(replica, 1); }
  std::vector<dist_tensor> velocities(int replica) const { return views(replica, 2); }

  // After clipping, a side may leave the gradients changed or unchanged.
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
  // Every tensor repeats these values.
  std::vector<std::vector<float>> gradient_;  // of each replica
  std::vector<float> parameter_, velocity_, mean_, expected_parameter_, expected_velocity_;
  double norm_ = 0;  // of the mean of the replicas' gradients over the whole list
};

}  // namespace bench
