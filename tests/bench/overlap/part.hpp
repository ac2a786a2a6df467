// SPDX-License-Identifier: Apache-2.0
// One process's part in the turns: the simulated backward pass over ResNet-50, which is the same code for all
// sides. The layers are 53 convolutions, each followed by a batch normalisation, and a dense layer. A
// backward pass visits them in reverse order. A layer takes its share of the computation by the
// multiplications of its forward pass.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/bench/overlap/page.hpp"

namespace bench::overlap {

struct Layer {
  int first, tensors;  // the tensors of its parameters
  double share;        // of the computation of a pass
};

// Multiplies and adds, using a few KiB of memory.
void compute(double loops);
// Returns the number of loops per 1 us of CPU time.
double measure_loops_per_us();

class Part {
 public:
  // Maps the page. Throws std::runtime_error.
  Part(int side, int me);

  Side& side() noexcept { return side_; }
  int workers() const noexcept { return page_.workers; }
  int me() const noexcept { return me_; }
  const std::vector<std::size_t>& elements() const noexcept { return elements_; }
  const std::vector<Layer>& layers() const noexcept { return layers_; }
  // Sets the memory to which the pass writes the gradient of a tensor.
  void place(int tensor, float* at) { gradients_[static_cast<std::size_t>(tensor)] = at; }

  // Ends this side's turn and waits for its next one. This and the next three functions throw an empty
  // std::runtime_error if a process of the side has failed.
  Turn next_turn();
  void begin_step();
  // The backward pass of one layer. Either it computes for a fixed number of loops and writes the gradients,
  // or it waits until a device would have finished, which has begun with the first layer and does not wait
  // for this process.
  void pass(int layer);
  void end_step();
  // Throws std::runtime_error unless `mean` is the mean over all workers of the gradient of this step.
  void check(int tensor, const float* mean) const;

 private:
  float scale_of(double worker) const noexcept;
  void write(int tensor);

  Page& page_;
  Side& side_;
  const int me_;
  std::vector<std::size_t> elements_;
  std::vector<Layer> layers_;
  std::vector<double> until_;  // by layer: the computed part of the pass when its gradients are complete
  std::vector<float*> gradients_;
  int step_ = 0;  // counted over all turns
  int step_of_turn_ = 0;
  double begin_us_ = 0, begin_cpu_us_ = 0;
};

}  // namespace bench::overlap
