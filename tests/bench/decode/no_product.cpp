// SPDX-License-Identifier: Apache-2.0
// Product in a build without oneDNN.
#include <stdexcept>

#include "tests/bench/decode/product.hpp"

namespace bench::decode {

const bool Product::kAvailable = false;
struct Product::Engine {};

Product::Product(int, int matrices) {
  if (matrices != 0) throw std::runtime_error("this build has no oneDNN");
}
Product::~Product() = default;
void Product::multiply(int) {}

}  // namespace bench::decode
