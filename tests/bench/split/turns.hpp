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

// The medians of a turn's passes. Of ONNX Runtime the times alone.
struct Turn {
  double us = 0;
  double own = 0, waiting = 0;  // shares of a pass: in collectives
};

// One replica of some logical devices, with the model.
class OnDevices {
 public:
  // Throws std::runtime_error where libdist or a file says no.
  OnDevices(int devices, const Files& files);
  ~OnDevices();
  OnDevices(const OnDevices&) = delete;
  OnDevices& operator=(const OnDevices&) = delete;

  // One pass to wake up, and as many more. Throws std::runtime_error where one fails or an output is wrong.
  Turn take(int passes);
  // The most by which an output differed from the reference so far.
  float difference() const { return difference_; }

 private:
  double pass();

  dist_strategy* strategy_ = nullptr;
  encoder* encoder_ = nullptr;
  reference reference_{};
  float difference_ = 0;
};

// ONNX Runtime, a process of its own; its first form has one thread, its second one two.
class OnThreads {
 public:
  explicit OnThreads(const peers::Words& command) : process_(command) {}
  const std::string& name() const { return process_.name(); }
  // Throws PeerLost, and std::runtime_error on a wrong result.
  Turn take(int threads, int passes);

 private:
  PeerProcess process_;
};

}  // namespace bench::split
