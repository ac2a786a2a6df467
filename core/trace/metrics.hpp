// SPDX-License-Identifier: Apache-2.0
// Writes a strategy's counters and gauges in Prometheus' text exposition format (version 0.0.4).
#pragma once

#include <cstddef>

#include "core/base/text_out.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

struct Gauges {
  const char* strategy;  // label of every sample, as untrusted bytes; NULL: none
  const char* version;   // of the library
  const char* simd;
  std::size_t memory_held;
};

void write_metrics(const FlightRecorder& recorder, const Gauges& gauges, TextOut& out);

}  // namespace dist
