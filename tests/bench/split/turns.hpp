// SPDX-License-Identifier: Apache-2.0
// Passes of an encoder: on libdist's logical devices, and on the same number of ONNX Runtime threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/tensor_parallel/encoder.h"
#include "examples/tensor_parallel/layout.h"
#include "examples/tensor_parallel/reference.h"
#include "tests/bench/peer_process.hpp"

namespace bench::split {

struct Files {
  const char *weights, *reference;
};

// The medians of a turn's passes. ONNX Runtime has only the time.
struct Turn {
  double us = 0;
  double own = 0, waiting = 0;  // shares of a pass that are spent in collectives
};

// One replica with logical devices and the model.
class OnDevices {
 public:
  // Throws std::runtime_error if libdist reports an error or a file is invalid.
  OnDevices(int devices, const Files& files);
  ~OnDevices();
  OnDevices(const OnDevices&) = delete;
  OnDevices& operator=(const OnDevices&) = delete;

  // Makes one pass to warm up, and then `passes` more. Throws std::runtime_error if one fails or an output is
  // wrong.
  Turn take(int passes);
  // The largest difference between an output and the reference so far.
  float difference() const { return difference_; }

 private:
  double pass();

  dist_strategy* strategy_ = nullptr;
  encoder* encoder_ = nullptr;
  reference reference_{};
  float difference_ = 0;
};

// ONNX Runtime in a separate process. Its first form has one thread, and its second form has two.
class OnThreads {
 public:
  explicit OnThreads(const peers::Words& command) : process_(command) {}
  const std::string& name() const { return process_.name(); }
  // Throws PeerLost, and std::runtime_error for a wrong result.
  Turn take(int threads, int passes);

 private:
  PeerProcess process_;
};

}  // namespace bench::split
