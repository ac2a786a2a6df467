// SPDX-License-Identifier: Apache-2.0
// The product that a member of a split model computes before each all_reduce: its share of 4096 activations
// by its rows of a bf16 matrix of 4096 x 4096, on one thread, by oneDNN. The matrices hold made-up weights
// and are used in turn, so that with enough of them they come from memory, as in a model.
#pragma once

#include <cstddef>
#include <memory>

namespace bench::decode {

constexpr size_t kElements = 4096;

class Product {
 public:
  // If `matrices` is 0, multiply() does nothing. Otherwise, throws std::runtime_error if the build has no
  // oneDNN.
  Product(int members, int matrices);
  ~Product();
  void multiply(int step);

  // Whether the build has oneDNN.
  static const bool kAvailable;

 private:
  struct Engine;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace bench::decode
